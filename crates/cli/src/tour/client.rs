//! An MCP client of the tour's gate: it speaks to the same code that serves `lychgate mcp`, without the socket between.

use std::sync::Arc;

use lychgate_core::id::ActId;
use lychgate_gate::{Gate, Peer};
use lychgate_intake::DECISION_KEY;
use lychgate_sinks::mcp::{FromLink, ToLink, serve};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::lab::{Fault, at};

/// One client connection, with a child process of the server behind it.
pub(super) struct Client {
    to: mpsc::Sender<FromLink>,
    from: mpsc::Receiver<ToLink>,
    serving: JoinHandle<()>,
    next: u64,
}

/// What the client was answered.
pub(super) struct Answer {
    line: Value,
}

impl Answer {
    /// The decision object's code, such as `EF-012`, when it has one.
    pub(super) fn code(&self) -> Option<&str> {
        self.decision("code")
    }

    /// The act, when the gate names one.
    pub(super) fn act(&self) -> Option<ActId> {
        self.decision("act_id")?.parse().ok()
    }

    /// The tool's own words.
    pub(super) fn text(&self) -> &str {
        self.line
            .pointer("/result/content/0/text")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn decision(&self, member: &str) -> Option<&str> {
        self.line
            .get("result")?
            .get("_meta")?
            .get(DECISION_KEY)?
            .get(member)?
            .as_str()
    }
}

impl Client {
    /// Connects and shakes hands.
    pub(super) async fn connect(gate: &Arc<Gate>, server: &str) -> Result<Self, Fault> {
        let session = gate
            .connect(server, Peer { uid: 0, pid: None })
            .map_err(at("connect"))?;
        let (to, from_client) = mpsc::channel(16);
        let (to_client, from) = mpsc::channel(16);
        let serving = tokio::spawn(serve(Arc::clone(gate), session, from_client, to_client));
        let mut client = Self {
            to,
            from,
            serving,
            next: 1,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "lychgate-tour", "version": env!("CARGO_PKG_VERSION")}
        });
        let id = client.request("initialize", &hello).await?;
        client.answer(id).await?;
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.say(&done).await?;
        Ok(client)
    }

    /// Sends a call; its answer is for [`Client::answer`].
    pub(super) async fn send(&mut self, tool: &str, arguments: &Value) -> Result<u64, Fault> {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// Sends a call and waits for its answer.
    pub(super) async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, Fault> {
        let id = self.send(tool, arguments).await?;
        self.answer(id).await
    }

    /// Waits for the answer to a request; what else the server says is passed over.
    pub(super) async fn answer(&mut self, id: u64) -> Result<Answer, Fault> {
        loop {
            let message = timeout(PATIENCE, self.from.recv())
                .await
                .map_err(at("an answer"))?;
            let message = message.ok_or_else(|| Fault("the gate hung up".to_owned()))?;
            if let Some(act) = message.delivery {
                self.to
                    .send(FromLink::Delivered(act))
                    .await
                    .map_err(at("delivery"))?;
            }
            let line: Value = serde_json::from_slice(&message.line).map_err(at("an answer"))?;
            if line.get("id").and_then(Value::as_u64) == Some(id) {
                return Ok(Answer { line });
            }
        }
    }

    /// Hangs up and waits until the gate has ended the child.
    pub(super) async fn leave(self) {
        let Self {
            to, from, serving, ..
        } = self;
        drop(to);
        drop(from);
        // A task that failed has said so on its own ground; the steps have been checked already.
        let _ = serving.await;
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<u64, Fault> {
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await?;
        Ok(id)
    }

    async fn say(&self, message: &Value) -> Result<(), Fault> {
        let line = message.to_string().into_bytes();
        self.to
            .send(FromLink::Line(line))
            .await
            .map_err(at("the gate"))
    }
}

/// Nothing in the tour takes longer, on the slowest machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
