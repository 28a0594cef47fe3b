//! A client of one gated connection, and the server behind it, by what came in there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lychgate_core::json::Value;
use lychgate_core::receipt::Receipt;
use lychgate_sinks::mcp::{FromLink, ToLink, serve};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::kit::{Kit, value_of};

/// A connection to the scripted server.
pub(crate) struct Client {
    pub(crate) kit: Kit,
    pub(crate) to: mpsc::Sender<FromLink>,
    from: mpsc::Receiver<ToLink>,
    serving: JoinHandle<()>,
}

impl Client {
    /// A connection before any handshake. `server` is what stands in the server's table beside its command.
    pub(crate) async fn connect(manners: &str, limits: &str, server: &str) -> Self {
        let command = command(manners);
        let kit = Kit::with(|text| {
            let log = log_in(&text);
            let command = command.replace("LOG", &log);
            // A table of its own stands behind everything else.
            let (keys, tables) = server.split_at(server.find('[').unwrap_or(server.len()));
            let keys = format!("{command}\n{keys}");
            let text = text.replace(r#"command = ["/bin/box"]"#, &keys) + tables;
            text.replace("hold = \"120s\"", &format!("hold = \"120s\"\n{limits}"))
        })
        .await;
        Self::to_gate(kit)
    }

    /// Another connection to the same gate.
    pub(crate) fn to_gate(kit: Kit) -> Self {
        let session = kit.session();
        let (to, from_client) = mpsc::channel(64);
        let (to_client, from) = mpsc::channel(64);
        let serving = tokio::spawn(serve(
            Arc::clone(&kit.gate),
            session,
            from_client,
            to_client,
        ));
        Self {
            kit,
            to,
            from,
            serving,
        }
    }

    /// A connection after the handshake of the sessionful era.
    pub(crate) async fn ready(manners: &str, limits: &str, server: &str) -> Self {
        let mut client = Self::connect(manners, limits, server).await;
        client.shake_hands().await;
        client
    }

    pub(crate) async fn usual() -> Self {
        Self::ready("", "", "").await
    }

    pub(crate) async fn shake_hands(&mut self) {
        let capabilities =
            r#"{"elicitation":{},"sampling":{},"roots":{"listChanged":true},"tasks":{}}"#;
        self.line(&format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
        ))
        .await;
        let answer = self.answer().await;
        assert!(answer.get("result").is_some(), "{answer:?}");
        self.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
    }

    pub(crate) async fn line(&self, line: &str) {
        self.send(FromLink::Line(line.as_bytes().to_vec())).await;
    }

    pub(crate) async fn send(&self, message: FromLink) {
        self.to.send(message).await.unwrap();
    }

    /// Calls `write_note` with a file's name and a text.
    pub(crate) async fn write(&self, id: i64, name: &str, text: &str) {
        let arguments = self.kit.note("work", name, text);
        self.call(id, "write_note", &arguments).await;
    }

    pub(crate) async fn call(&self, id: i64, tool: &str, arguments: &str) {
        self.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ))
        .await;
    }

    pub(crate) async fn ask(&self, id: i64, method: &str) {
        self.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#
        ))
        .await;
    }

    /// The next message, and the act whose answer it is.
    pub(crate) async fn next(&mut self) -> ToLink {
        let next = tokio::time::timeout(Duration::from_secs(10), self.from.recv());
        next.await.expect("nothing came").expect("the end came")
    }

    pub(crate) async fn answer(&mut self) -> Value {
        value_of(&self.next().await.line)
    }

    /// The next message is a refusal of this request with this code; gives its decision object.
    pub(crate) async fn refused(&mut self, id: Option<i64>, code: &str) -> Value {
        let answer = self.answer().await;
        let expected = id.map_or("null".to_owned(), |id| id.to_string());
        assert_eq!(shown(answer.get("id").unwrap()), expected, "{answer:?}");
        let found = answer
            .pointer("/result/_meta/dev.lychgate~1decision")
            .or_else(|| answer.pointer("/error/data"));
        let found = found
            .unwrap_or_else(|| panic!("no decision in {answer:?}"))
            .clone();
        assert_eq!(text_at(&found, "/code"), code, "{answer:?}");
        // Constant per code, wherever it stands.
        let told = answer
            .pointer("/error/message")
            .or_else(|| answer.pointer("/result/content/0/text"));
        let sentence = code.parse::<lychgate_core::Code>().unwrap().text();
        let told = told.and_then(Value::as_str).unwrap();
        assert!(told.contains(sentence), "{told}");
        let extra = told.replace(sentence, "");
        assert!(extra.len() < 120 && !extra.contains("server"), "{told}");
        found
    }

    /// The lines the server has read, of one method.
    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let (whole, _) = log.rsplit_once('\n').unwrap_or_default();
        let lines = whole.lines().map(|line| value_of(line.as_bytes()));
        lines
            .filter(|line| {
                line.get("method")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    == method
            })
            .collect()
    }

    /// Waits until the server has read so many lines of a method.
    pub(crate) async fn until_heard(&self, method: &str, count: usize) {
        for _ in 0..500 {
            if self.heard(method).len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server did not hear {method} {count} times");
    }

    fn log(&self) -> PathBuf {
        self.kit.folder.path("config").join("server.log")
    }

    pub(crate) fn details(&self) -> Vec<String> {
        let receipts = self.kit.receipts();
        receipts
            .into_iter()
            .filter_map(|receipt: Receipt| receipt.detail)
            .collect()
    }

    /// The gate ends, and with it everything that was begun for the client.
    pub(crate) async fn leave(self) -> Kit {
        self.kit.gate.close();
        drop((self.to, self.from));
        let end = tokio::time::timeout(Duration::from_secs(15), self.serving);
        end.await.expect("the connection does not end").unwrap();
        self.kit
    }
}

pub(crate) fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} in {value:?}"))
}

pub(crate) fn shown(value: &Value) -> String {
    String::from_utf8(lychgate_core::jcs::to_bytes(value)).unwrap()
}

/// The log lies in the folder the kit made, which only the configuration's text names here.
fn log_in(text: &str) -> String {
    let at = text.find("[roots.work]\npath = \"").unwrap();
    let path = text[at..].split('"').nth(1).unwrap();
    format!("{}/config/server.log", path.strip_suffix("/work").unwrap())
}

fn command(manners: &str) -> String {
    let python = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .map(|folder| folder.join("python3"))
        .find(|path| path.is_file())
        .expect("python3 is needed");
    // What a version manager puts in the way is slow to start.
    let real = std::process::Command::new(python)
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    let python = String::from_utf8(real.stdout).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/server.py");
    let manners = manners.split_whitespace();
    let words = [python.trim(), "-S", script, "LOG"]
        .into_iter()
        .chain(manners);
    let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    format!("command = [{}]", words.join(", "))
}
