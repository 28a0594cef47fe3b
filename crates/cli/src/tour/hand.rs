//! The tour's own hand on a server: it acts once, with a permit, so that every object on the way can be shown.

use std::process::Stdio;

use lychgate_gate::sink::Effect;
use lychgate_gate::{Attempt, End, Permit, Unknown};
use lychgate_intake::{Proposal, request_bytes};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::lab::{Fault, at};

/// A running server and its two pipes.
pub(super) struct Hand {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Hand {
    /// Starts the server as the applied configuration says, and shakes hands with it.
    pub(super) async fn start(command: &[String]) -> Result<Self, Fault> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Fault("no command".to_owned()))?;
        #[allow(
            clippy::disallowed_methods,
            reason = "the tour's sink starts the server it gates"
        )]
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .kill_on_drop(true);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(at("the tour's server"))?;
        let missing = || Fault("the tour's server has no pipes".to_owned());
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let mut hand = Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
        };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        hand.write(hello.to_string().into_bytes())
            .await
            .map_err(at("the tour's server"))?;
        hand.read()
            .await
            .ok_or_else(|| Fault("the tour's server is silent".to_owned()))?;
        Ok(hand)
    }

    /// Ends the server.
    pub(super) async fn stop(mut self) {
        drop(self.stdin);
        // It ends with its input; should it not, dropping the child kills it.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(2), self.child.wait()).await;
    }

    async fn write(&mut self, mut line: Vec<u8>) -> std::io::Result<()> {
        line.push(b'\n');
        self.stdin.write_all(&line).await?;
        self.stdin.flush().await
    }

    async fn read(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }
}

/// One call by hand.
pub(super) struct ByHand<'a> {
    pub(super) hand: &'a mut Hand,
    pub(super) proposal: &'a Proposal,
}

impl Effect for ByHand<'_> {
    type Answer = Option<Value>;

    async fn perform(self, permit: Permit) -> (Attempt, Option<Value>) {
        let line = request_bytes(1, self.proposal, None);
        let begun = match permit.begin() {
            Ok(begun) => begun,
            Err(late) => return (late.into(), None),
        };
        let lost = End::Unknown(Unknown::AnswerLost);
        if self.hand.write(line).await.is_err() {
            return (begun.end(lost), None);
        }
        match self.hand.read().await {
            Some(answer) => (begun.end(End::Effected), Some(answer)),
            None => (begun.end(lost), None),
        }
    }
}
