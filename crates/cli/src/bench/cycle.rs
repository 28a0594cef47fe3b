//! The full durable cycle of one act, one at a time and many at once: from the client's raw line to the delivered answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lychgate_gate::{
    Caller, CallerGone, Connected, End, FinalitySink, Gate, Passed, Peer, Session,
};
use lychgate_intake::{Body, FromClient, Limits, from_client, request_bytes};

use super::histogram::Histogram;
use super::rows;
use crate::tour::lab::{Fault, Folder, Lab, Plan, at, definition, pins};

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// PERSISTENT_STATE_CHANGE in a recoverable root: equal calls are watched, answers are kept until delivered.
    Write,
    /// INFORMATIONAL.
    Read,
}

/// How much, how long, how many at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) kind: Kind,
    pub(crate) acts: u64,
    pub(crate) within: Duration,
    pub(crate) in_flight: usize,
}

/// What came of a load.
#[derive(Clone)]
pub(crate) struct Outcome {
    pub(crate) times: Histogram,
    pub(crate) wall: Duration,
    /// Processor time of this process meanwhile; it says more than the rate does on a machine that is busy otherwise.
    pub(crate) cpu: Duration,
    /// Resident memory before and after, in KiB; 0 where the system does not say.
    pub(crate) rss: (u64, u64),
}

/// A gate under load, and one client connection to it.
pub(crate) struct Bed {
    gate: Arc<Gate>,
    session: Arc<Session>,
    sink: FinalitySink,
    write: Connected,
    read: Connected,
    root: PathBuf,
    next: AtomicU64,
    caller: Caller,
    _caller_is_there: CallerGone,
}

impl Bed {
    /// A fresh gate in `folder/name`, with `rows` consumed acts in its store.
    pub(crate) async fn make(folder: &Folder, name: &str, rows: u64) -> Result<Self, Fault> {
        let state = folder.inside(name)?;
        let root = folder.inside(&format!("{name}-notes"))?;
        let write = definition(WRITE)?;
        let read = definition(READ)?;
        let config = CONFIG
            .replace("@ROOT@", &root.display().to_string())
            .replace("@WRITE@", &write.digest.to_base64url())
            .replace("@READ@", &read.digest.to_base64url());
        let pinned = pins(SERVER, &[write.clone(), read.clone()])?;
        let plan = Plan {
            state: &state,
            config: &config,
            pins: &pinned,
            passphrase: None,
        };
        let lab = Lab::open(&plan).await?;
        let gate = lab.gate;
        let bed = Self::over(gate, &write.digest, &read.digest, root)?;
        if rows > 0 {
            bed.act(Kind::Write).await?;
            rows::fill(&state.join("store.db"), rows)?;
        }
        Ok(bed)
    }

    fn over(
        gate: Arc<Gate>,
        write: &lychgate_core::Digest,
        read: &lychgate_core::Digest,
        root: PathBuf,
    ) -> Result<Self, Fault> {
        let session = gate
            .connect(SERVER, Peer { uid: 0, pid: None })
            .map_err(at("connect"))?;
        let current = gate.current();
        let server = current.applied.server(SERVER);
        let endpoint = server
            .map(|server| server.endpoint().to_owned())
            .unwrap_or_default();
        let connected = |digest: &lychgate_core::Digest| Connected {
            endpoint: endpoint.clone(),
            definition: Some(*digest),
            listed: true,
        };
        let (gone, caller) = CallerGone::new();
        Ok(Self {
            sink: FinalitySink::mcp(SERVER),
            write: connected(write),
            read: connected(read),
            gate,
            session,
            root,
            next: AtomicU64::new(1),
            caller,
            _caller_is_there: gone,
        })
    }

    /// The client's raw line of the next call; no two are equal.
    fn line(&self, kind: Kind) -> Vec<u8> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.root.join(format!("note-{n}.txt"));
        let path = path.display();
        match kind {
            Kind::Write => format!(
                r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"write_note","arguments":{{"path":"{path}","content":"{CONTENT}","tags":["bench","durable"],"revision":{n}}}}}}}"#
            ),
            Kind::Read => format!(
                r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"read_note","arguments":{{"path":"{path}"}}}}}}"#
            ),
        }
        .into_bytes()
    }

    /// One act, all the way.
    async fn act(&self, kind: Kind) -> Result<(), Fault> {
        let line = self.line(kind);
        let parsed = from_client(&line, &Limits::default()).map_err(at("intake"))?;
        let FromClient::Request {
            body: Body::Acts(proposal),
            ..
        } = parsed
        else {
            return Err(Fault("intake took a call for something else".to_owned()));
        };
        let connected = match kind {
            Kind::Write => &self.write,
            Kind::Read => &self.read,
        };
        let held = self
            .gate
            .hold(&self.session, *proposal, connected.clone())
            .map_err(at("hold"))?;
        let live = || connected.clone();
        let passed = self
            .gate
            .pass(held, &self.sink, &self.caller, &live, &|_| {})
            .await;
        let (held, dispatched) = match passed {
            Passed::Dispatched { held, dispatched } => (held, dispatched),
            other => return Err(Fault(format!("an act did not come through: {other:?}"))),
        };
        let act = dispatched.permit.act();
        let sent = std::hint::black_box(request_bytes(1, held.proposal(), None));
        let begun = match dispatched.permit.begin() {
            Ok(begun) => begun,
            Err(late) => {
                let settled = self.gate.settle(late.into(), None).await;
                return Err(Fault(format!("a permit ran out: {settled:?}")));
            }
        };
        drop(sent);
        let settled = self
            .gate
            .settle(begun.end(End::Effected), Some(ANSWER))
            .await;
        if !settled.recorded {
            return Err(Fault("an outcome was not recorded".to_owned()));
        }
        self.gate.delivered(act);
        Ok(())
    }

    /// How busy the store has been so far.
    pub(crate) fn store_load(&self) -> lychgate_store::Load {
        self.gate.store().load()
    }

    /// How long one commit takes that does next to nothing, on average of `count`, one after the other.
    pub(crate) async fn empty_commits(self: &Arc<Self>, count: u64) -> Result<Duration, Fault> {
        let bed = Arc::clone(self);
        let task = tokio::spawn(async move {
            let began = instant();
            for _ in 0..count {
                let note = lychgate_store::Note {
                    now: bed.gate.now(),
                    receipts: Vec::new(),
                };
                let done = bed
                    .gate
                    .store()
                    .commit(lychgate_store::Txn::Note(note))
                    .await;
                done.map(lychgate_store::Committed::done)
                    .map_err(at("commit"))?
                    .map_err(at("commit"))?;
            }
            let times = u32::try_from(count.max(1)).map_err(at("commits"))?;
            Ok(began.elapsed() / times)
        });
        task.await.map_err(at("task"))?
    }

    /// `count` acts, one after the other.
    pub(crate) async fn one_by_one(
        self: &Arc<Self>,
        kind: Kind,
        count: u64,
    ) -> Result<Histogram, Fault> {
        // On a worker, as an act of a real gate is; the main thread is woken more slowly.
        let bed = Arc::clone(self);
        let task = tokio::spawn(async move {
            let mut times = Histogram::new();
            for _ in 0..count {
                let began = instant();
                bed.act(kind).await?;
                times.add(began.elapsed());
            }
            Ok(times)
        });
        task.await.map_err(at("task"))?
    }

    /// Many at once, each beginning its next act when its last is delivered.
    pub(crate) async fn many(self: &Arc<Self>, load: &Load) -> Result<Outcome, Fault> {
        let left = Arc::new(AtomicU64::new(load.acts));
        let before = resident_kib();
        let spent = processor_time();
        let began = instant();
        let deadline = began + load.within;
        let mut tasks = Vec::with_capacity(load.in_flight);
        for _ in 0..load.in_flight {
            let (bed, left, kind) = (Arc::clone(self), Arc::clone(&left), load.kind);
            tasks.push(tokio::spawn(async move {
                let mut times = Histogram::new();
                while take(&left) && instant() < deadline {
                    let began = instant();
                    bed.act(kind).await?;
                    times.add(began.elapsed());
                }
                Ok::<_, Fault>(times)
            }));
        }
        let mut times = Histogram::new();
        for task in tasks {
            times.merge(&task.await.map_err(at("task"))??);
        }
        Ok(Outcome {
            times,
            wall: began.elapsed(),
            cpu: processor_time().saturating_sub(spent),
            rss: (before, resident_kib()),
        })
    }
}

fn take(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        left.checked_sub(1)
    })
    .is_ok()
}

/// The one clock of the bench: it measures, and decides nothing.
#[allow(
    clippy::disallowed_methods,
    reason = "measuring durations is what a bench is for"
)]
pub(super) fn instant() -> Instant {
    Instant::now()
}

/// User and system time so far, as Linux tells it: the 14th and 15th field, in hundredths of a second.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name and may hold blanks; it ends with the last bracket.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    Duration::from_millis(
        ticks
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum::<u64>()
            * 10,
    )
}

/// Resident memory in KiB, as Linux tells it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

const SERVER: &str = "bench";
const ANSWER: &[u8] = br#"{"content":[{"type":"text","text":"written"}],"isError":false}"#;
const CONTENT: &str = "The gate holds this call non-effective until evidence and authority are made, and the sink has \
consumed the authority. These words fill the arguments to about three hundred bytes, as calls of a coding agent have.";

const CONFIG: &str = r#"
version = 1
[agent]
id = "bench-agent"
allow = ["bench"]
[roots.notes]
path = "@ROOT@"
recoverable = true
[servers.bench]
command = ["/usr/bin/true"]
roots = ["notes"]
errors = "no-effect"
[servers.bench.tools.write_note]
definition = "@WRITE@"
class = "PERSISTENT_STATE_CHANGE"
act_type = "FILE_WRITE"
destination = { path = ["/path"] }
roles = { "/path" = "target", "/content" = "content", "/tags" = "content", "/revision" = "control" }
[servers.bench.tools.read_note]
definition = "@READ@"
class = "INFORMATIONAL"
destination = { path = ["/path"] }
roles = { "/path" = "target" }
"#;

const WRITE: &str = r#"{"name":"write_note","description":"Writes one note.","inputSchema":{"type":"object","properties":{"path":{"type":"string","minLength":1,"maxLength":4096},"content":{"type":"string","maxLength":65536},"tags":{"type":"array","items":{"type":"string","maxLength":32},"maxItems":8},"revision":{"type":"integer","minimum":0}},"required":["path","content"],"additionalProperties":false},"annotations":{"readOnlyHint":false,"idempotentHint":true}}"#;
const READ: &str = r#"{"name":"read_note","description":"Reads one note.","inputSchema":{"type":"object","properties":{"path":{"type":"string","minLength":1,"maxLength":4096}},"required":["path"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}"#;
