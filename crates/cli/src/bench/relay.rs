//! What the gate adds to a real call: the binary's own server, asked directly and through `lychgate mcp`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lychgate_store::Load;
use serde_json::{Value, json};

use super::cycle::{Bed, Kind, instant};
use super::histogram::Histogram;
use super::raw;
use crate::tour::lab::{Fault, Folder, Lab, Plan, at, definition, pins};
use crate::tour::server::DEFINITIONS;

/// Calls to the server itself; through a gate on this disk; through a gate whose state folder lies in memory, where a
/// durable write costs nothing; and what the disk takes for two durable writes meanwhile.
pub(crate) struct Relayed {
    pub(crate) direct: Histogram,
    pub(crate) gated: Histogram,
    pub(crate) in_memory: Option<Histogram>,
    pub(crate) pair: Histogram,
    /// How long an act waits for its two commits where durable writes cost nothing: handing over, signing, applying, SQLite.
    pub(crate) commits: Duration,
}

/// Measures `calls` of each kind in turn, in blocks, so that a busy moment hits all of them.
pub(super) async fn measure(folder: &Folder, calls: u64) -> Result<Relayed, Fault> {
    let disk = Place::make(folder).await?;
    let shared_memory = Path::new(MEMORY);
    let memory = if shared_memory.is_dir() {
        Some(Folder::fresh(shared_memory, "lychgate-bench")?)
    } else {
        None
    };
    let in_memory = match &memory {
        Some(memory) => Some(Place::make(memory).await?),
        None => None,
    };
    let beside = memory.as_ref().unwrap_or(folder);
    let commits = two_commits(beside, calls).await?;
    // The pipes are blocking, as most clients' are; nothing else runs meanwhile.
    tokio::task::block_in_place(|| in_turn(folder, &disk, in_memory.as_ref(), calls))
        .map(|relayed| Relayed { commits, ..relayed })
}

/// How long an act waits for its two commits: the writer's work for the groups of an act, of the same kind and alone, and
/// what a commit takes beyond that, which is handing it over to the writer's thread and waking up again.
async fn two_commits(folder: &Folder, calls: u64) -> Result<Duration, Fault> {
    let bed = Arc::new(Bed::make(folder, "beside", 0).await?);
    bed.one_by_one(Kind::Read, calls / 5).await?;
    let start = bed.store_load();
    bed.one_by_one(Kind::Read, calls).await?;
    let acted = bed.store_load();
    let waited = bed.empty_commits(calls).await?;
    let noted = bed.store_load();
    let work = each(&start, &acted)?;
    let handing_over = waited.saturating_sub(each(&acted, &noted)?);
    Ok((work + handing_over) * 2)
}

/// The writer's work for one group.
fn each(before: &Load, after: &Load) -> Result<Duration, Fault> {
    let groups = after.group_count().saturating_sub(before.group_count());
    let worked = after.worked.saturating_sub(before.worked);
    Ok(worked / u32::try_from(groups.max(1)).map_err(at("groups"))?)
}

/// The gates that the measured clients have started end whatever came of it.
fn in_turn(
    folder: &Folder,
    disk: &Place,
    in_memory: Option<&Place>,
    calls: u64,
) -> Result<Relayed, Fault> {
    let measured = blocks(folder, disk, in_memory, calls);
    let stopped = [Some(disk), in_memory]
        .into_iter()
        .flatten()
        .map(Place::stop);
    let stopped: Result<Vec<()>, Fault> = stopped.collect::<Vec<_>>().into_iter().collect();
    let relayed = measured?;
    stopped?;
    Ok(relayed)
}

fn blocks(
    folder: &Folder,
    disk: &Place,
    in_memory: Option<&Place>,
    calls: u64,
) -> Result<Relayed, Fault> {
    let mut direct = Pipe::start(&disk.program, &["tour-server".to_owned()])?;
    let mut gated = disk.gated()?;
    let mut free = in_memory.map(Place::gated).transpose()?;
    let mut relayed = Relayed {
        direct: Histogram::new(),
        gated: Histogram::new(),
        in_memory: free.as_ref().map(|_| Histogram::new()),
        pair: Histogram::new(),
        commits: Duration::ZERO,
    };
    for block in 0..=calls.div_ceil(BLOCK) {
        // The first block warms up and is not counted.
        let counts = block > 0;
        relayed
            .direct
            .merge(&direct.calls(&disk.note, BLOCK)?.counted(counts));
        relayed
            .gated
            .merge(&gated.calls(&disk.note, BLOCK)?.counted(counts));
        if let (Some(place), Some(pipe), Some(times)) =
            (in_memory, &mut free, &mut relayed.in_memory)
        {
            times.merge(&pipe.calls(&place.note, BLOCK)?.counted(counts));
        }
        relayed.pair.merge(&raw::pairs(folder.path(), BLOCK / 2)?);
    }
    direct.end();
    gated.end();
    if let Some(pipe) = free {
        pipe.end();
    }
    Ok(relayed)
}

/// A state folder that a gate of its own can be started on.
struct Place {
    program: PathBuf,
    state: PathBuf,
    config: PathBuf,
    note: PathBuf,
}

impl Place {
    async fn make(folder: &Folder) -> Result<Self, Fault> {
        let program = std::env::current_exe().map_err(at("this program's own path"))?;
        let (state, notes) = (folder.inside("relay")?, folder.inside("relay-notes")?);
        let note = notes.join("note.txt");
        std::fs::write(&note, "A short note.").map_err(at("note"))?;
        let definitions = DEFINITIONS.iter().map(|text| definition(text));
        let definitions = definitions.collect::<Result<Vec<_>, _>>()?;
        let digest = definitions
            .iter()
            .find(|one| one.name == "read_note")
            .map(|one| one.digest);
        let text = CONFIG
            .replace("@PROGRAM@", &quoted(&program)?)
            .replace("@NOTES@", &quoted(&notes)?)
            .replace(
                "@READ@",
                &digest
                    .map(lychgate_core::Digest::to_base64url)
                    .unwrap_or_default(),
            );
        let config = folder.path().join("lychgate.toml");
        std::fs::write(&config, &text).map_err(at("configuration"))?;
        let pinned = pins("echo", &definitions)?;
        let plan = Plan {
            state: &state,
            config: &text,
            pins: &pinned,
            passphrase: None,
        };
        // Made here, and left to the gate that `mcp` starts.
        drop(Lab::open(&plan).await?);
        Ok(Self {
            program,
            state,
            config,
            note,
        })
    }

    fn gated(&self) -> Result<Pipe, Fault> {
        Pipe::start(&self.program, &self.arguments(&["mcp", "echo"]))
    }

    fn stop(&self) -> Result<(), Fault> {
        let stopped = command(&self.program, &self.arguments(&["gate", "stop"]))
            .stdout(Stdio::null())
            .status();
        stopped.map(drop).map_err(at("gate stop"))
    }

    fn arguments(&self, words: &[&str]) -> Vec<String> {
        let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        for (flag, path) in [("--state-dir", &self.state), ("--config", &self.config)] {
            arguments.extend([flag.to_owned(), path.display().to_string()]);
        }
        arguments
    }
}

/// A server, or the relay to one.
struct Pipe {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
}

impl Pipe {
    fn start(program: &Path, arguments: &[String]) -> Result<Self, Fault> {
        let mut command = command(program, arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(at("start"))?;
        let missing = || Fault("a pipe is missing".to_owned());
        let to = child.stdin.take().ok_or_else(missing)?;
        let from = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        let mut pipe = Self {
            child,
            to,
            from,
            next: 0,
        };
        let info = json!({"name": "lychgate-bench", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        pipe.ask("initialize", &params)?;
        pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(pipe)
    }

    fn calls(&mut self, note: &Path, count: u64) -> Result<Histogram, Fault> {
        let mut times = Histogram::new();
        let params =
            json!({"name": "read_note", "arguments": {"path": note.display().to_string()}});
        for _ in 0..count {
            let began = instant();
            let answer = self.ask("tools/call", &params)?;
            times.add(began.elapsed());
            let text = answer
                .pointer("/result/content/0/text")
                .and_then(Value::as_str);
            if text != Some("A short note.") {
                return Err(Fault(format!("a call was answered otherwise: {answer}")));
            }
        }
        Ok(times)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Fault> {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.from.read_line(&mut line).map_err(at("read"))? == 0 {
                return Err(Fault(format!("no answer to `{method}`")));
            }
            let answer: Value = serde_json::from_str(&line).map_err(at("answer"))?;
            if answer.get("id").and_then(Value::as_u64) == Some(id) {
                return Ok(answer);
            }
        }
    }

    fn say(&mut self, message: &Value) -> Result<(), Fault> {
        let line = format!("{message}\n");
        self.to
            .write_all(line.as_bytes())
            .and_then(|()| self.to.flush())
            .map_err(at("write"))
    }

    fn end(self) {
        let Self {
            mut child,
            to,
            from,
            ..
        } = self;
        drop(to);
        drop(from);
        // It ends with its input.
        let _ = child.wait();
    }
}

fn command(program: &Path, arguments: &[String]) -> Command {
    #[allow(
        clippy::disallowed_methods,
        reason = "the bench starts its own binary to measure it"
    )]
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn quoted(path: &Path) -> Result<String, Fault> {
    let text = path
        .to_str()
        .ok_or_else(|| Fault(format!("`{}` is not UTF-8", path.display())))?;
    Ok(toml_edit::Value::from(text).to_string().trim().to_owned())
}

/// Where files live in memory, on the systems the gate runs on.
const MEMORY: &str = "/dev/shm";
/// Calls in a row.
const BLOCK: u64 = 50;

const CONFIG: &str = r#"version = 1
[agent]
id = "bench-agent"
allow = ["echo"]
[roots.notes]
path = @NOTES@
recoverable = true
[servers.echo]
command = [@PROGRAM@, "tour-server"]
roots = ["notes"]
[servers.echo.tools.read_note]
definition = "@READ@"
class = "INFORMATIONAL"
destination = { path = ["/path"] }
roles = { "/path" = "target" }
"#;
