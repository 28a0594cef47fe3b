//! What the tests share: a real state folder with one small server, and a gate in a process of its own.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lychgate_core::Timestamp;
use lychgate_core::json::{self, Limits, Object, Value};
use lychgate_policy::{Applied, Definition, Pins, load};
use lychgate_server::protocol::{ActView, Configuration, Status};
use lychgate_server::{
    Client, ClientFault, RelayFault, Request, Response, RunOptions, Start, StateFolder, connect,
};

pub(crate) const PASSPHRASE: &[u8] = b"correct horse battery";

/// A state folder in a folder of its own; its gate is stopped at the end.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) state: StateFolder,
    pub(crate) text: String,
    pub(crate) pins: Pins,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Some(PASSPHRASE), |text| text)
    }

    /// With another configuration, or without an approver.
    pub(crate) fn with(approver: Option<&[u8]>, change: impl FnOnce(String) -> String) -> Self {
        let folder = tempfile::Builder::new().prefix("lg").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "plain"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let tools = [tool("write"), tool("hang")];
        let script = root.join("peer.sh");
        fs::write(&script, peer_script(&tools)).unwrap();
        let text = change(config(&root, &script, &tools));
        let pins = pins(&tools);
        let applied = compile(&text, &pins);
        let path = root.join("state");
        let at = Timestamp::from_millis(1_700_000_000_000);
        let state = StateFolder::create(&path, approver, &applied, at).unwrap();
        Self {
            folder,
            state,
            text,
            pins,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn configuration(&self, text: &str) -> Configuration {
        Configuration::new(text, Path::new("/somewhere/lychgate.toml"), &self.pins)
    }

    /// This test program as a gate; see [`be_a_gate`].
    pub(crate) fn start(&self) -> Start {
        Start::Background {
            program: std::env::current_exe().unwrap(),
            arguments: ["child_gate", "--exact", "--ignored", "--nocapture"]
                .into_iter()
                .map(Into::into)
                .chain([self.state.path().as_os_str().to_owned()])
                .collect(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        connect(self.state.path(), &self.start()).unwrap()
    }

    pub(crate) fn running(&self) -> Result<Client, ClientFault> {
        connect(self.state.path(), &Start::Never)
    }

    pub(crate) fn status(&self) -> Status {
        match self.client().ask(&Request::Status).unwrap() {
            Response::Status { status } => status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn acts(&self) -> Vec<ActView> {
        let all = Request::Acts {
            state: None,
            limit: 100,
            follow: false,
        };
        match self.client().ask(&all).unwrap() {
            Response::Acts { acts } => acts,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn stop(&self) {
        let stopped = self
            .running()
            .and_then(|mut client| client.ask(&Request::Stop));
        if stopped.is_ok() {
            self.wait_until_ended();
        }
    }

    /// Kills the gate and waits until it is dead.
    pub(crate) fn kill(&self) {
        let pid = rustix::process::Pid::from_raw(self.status().pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        eventually("the gate is dead", || self.state.lock().is_ok());
    }

    pub(crate) fn wait_until_ended(&self) {
        eventually("the gate has ended", || {
            !self.state.socket().exists() && self.state.lock().is_ok()
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Ok(mut client) = self.running() {
            let _ = client.ask(&Request::Stop);
        }
    }
}

/// The body of each test program's `child_gate`: the gate of the folder named last on the command line.
pub(crate) fn be_a_gate() {
    let folder = std::env::args().next_back().unwrap();
    if !folder.starts_with('/') {
        return;
    }
    let state = StateFolder::at(Path::new(&folder)).unwrap();
    let options = RunOptions {
        background: true,
        ..RunOptions::default()
    };
    let status = match lychgate_server::run(&state, &options) {
        Ok(exit) => exit.status(),
        Err(fault) => {
            let _ = writeln!(std::io::stderr(), "{fault}");
            fault.status()
        }
    };
    std::process::exit(status.into());
}

pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A client of a server through the relay, as an MCP client sees it.
pub(crate) struct Mcp {
    pub(crate) input: Option<File>,
    pub(crate) output: BufReader<File>,
    pub(crate) relay: JoinHandle<Result<(), RelayFault>>,
}

impl Mcp {
    pub(crate) fn connect(world: &World) -> Self {
        let client = world.client();
        let (their_input, input) = std::io::pipe().unwrap();
        let (output, their_output) = std::io::pipe().unwrap();
        let file = |end: OwnedFd| File::from(end);
        let relay = std::thread::spawn(move || {
            lychgate_server::relay::relay(
                client,
                "s",
                None,
                file(their_input.into()),
                file(their_output.into()),
            )
        });
        Self {
            input: Some(file(input.into())),
            output: BufReader::new(file(output.into())),
            relay,
        }
    }

    pub(crate) fn ready(world: &World) -> Self {
        let mut mcp = Self::connect(world);
        mcp.say(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        );
        assert!(mcp.hear().contains("\"serverInfo\""));
        mcp.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        mcp.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert!(mcp.hear().contains("\"write\""));
        mcp
    }

    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn call(&mut self, id: u32, tool: &str, path: &Path, content: &str) {
        let path = path.display();
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"path":"{path}","content":"{content}"}}}}}}"#
        ));
    }

    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

fn tool(name: &str) -> Definition {
    let text = format!(
        r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string"}},"content":{{"type":"string"}}}},"required":["path","content"],"additionalProperties":false}}}}"#
    );
    let value = json::parse(text.as_bytes(), &Limits::ARGUMENTS).unwrap();
    Definition::parse(value).unwrap()
}

fn text_of(value: &Value) -> String {
    String::from_utf8(lychgate_core::jcs::to_bytes(value)).unwrap()
}

/// A server of a few lines: `write` answers, `hang` never does.
fn peer_script(tools: &[Definition]) -> String {
    let list = tools
        .iter()
        .map(|tool| text_of(&tool.value))
        .collect::<Vec<_>>()
        .join(",");
    format!(
        r#"#!/bin/sh
while IFS= read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
  case "$line" in
    *'"method":"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"p","version":"1"}}}}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[%s]}}}}\n' "$id" '{list}' ;;
    *'"name":"hang"'*) ;;
    *'"method":"tools/call"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[{{"type":"text","text":"done"}}]}}}}\n' "$id" ;;
  esac
done
"#
    )
}

fn pins(tools: &[Definition]) -> Pins {
    let mut file = Object::new();
    let one = json::parse(b"1", &Limits::ARGUMENTS).unwrap();
    file.insert("version".to_owned(), one);
    file.insert("server".to_owned(), Value::from("s"));
    let tools = tools.iter().map(|tool| tool.value.clone()).collect();
    file.insert("tools".to_owned(), Value::Array(tools));
    Pins::from([("s".to_owned(), text_of(&Value::Object(file)).into_bytes())])
}

fn config(root: &Path, script: &Path, tools: &[Definition]) -> String {
    let root = root.display();
    let mut text = format!(
        r#"version = 1
profile = "balanced"
[principal]
id = "user:test"
type = "user"
[agent]
id = "test-agent"
max_depth = 0
allow = ["s"]
[purpose]
id = "general"
declared = "testing"
[roots.work]
path = "{root}/work"
recoverable = true
[roots.plain]
path = "{root}/plain"
[servers.s]
command = ["/bin/sh", "{script}"]
roots = ["work", "plain"]
"#,
        script = script.display()
    );
    for tool in tools {
        let (name, digest) = (&tool.name, tool.digest.to_base64url());
        text.push_str(&format!(
            "[servers.s.tools.{name}]\ndefinition = \"{digest}\"\nclass = \"PERSISTENT_STATE_CHANGE\"\n\
             act_type = \"FILE_WRITE\"\ndestination = {{ path = [\"/path\"] }}\n"
        ));
    }
    text
}

pub(crate) fn compile(text: &str, pins: &Pins) -> Applied {
    load(text, Path::new("lychgate.toml"), pins).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"))
}
