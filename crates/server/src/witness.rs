//! `lychgate witness`: cosigns the heads of other people's logs, and never two stories of one (C2SP tlog-witness,
//! tlog-cosignature).
//!
//! It remembers the last head it cosigned of each log, on stable storage before it answers, and cosigns only what
//! provably grew from there. What it may witness is named when it starts; its key never leaves its folder.

mod http;
mod memory;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lychgate_core::display::escape;
use lychgate_core::outside::Clock;
use lychgate_core::{Digest, Timestamp};
use lychgate_gate::SteadyClock;
use lychgate_keys::{KeyFault, SigningKey, lone_key};
use lychgate_ledger::note::{NotAKeyName, NotAVerifierKey, SignatureKind};
use lychgate_ledger::witness::{AddCheckpoint, Judgement};
use lychgate_ledger::{KeyName, VerifierKey};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::memory::{Memory, MemoryFault};

/// How to run.
#[derive(Clone, Debug)]
pub struct WitnessOptions {
    /// Where its key and what it remembers lie: a folder of its own, mode 0700.
    pub folder: PathBuf,
    /// Where to listen.
    pub listen: SocketAddr,
    /// What it is called in its cosignatures; `None` for a name made of its key.
    pub name: Option<KeyName>,
    /// The logs it witnesses: keys whose names are the logs' origins; several of one name are one log's.
    pub logs: Vec<VerifierKey>,
    /// Who is told what a person must know: a forked log, a disk that fails.
    pub report: fn(&str),
}

/// Why a witness does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessFault {
    /// Its key.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// What it remembers.
    #[error(transparent)]
    Memory(#[from] MemoryFault),
    /// Its name.
    #[error(transparent)]
    Name(#[from] NotAKeyName),
    /// Its key, as others write it.
    #[error(transparent)]
    Verifier(#[from] NotAVerifierKey),
    /// The system said no.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

fn fault(what: &'static str) -> impl FnOnce(io::Error) -> WitnessFault {
    move |source| WitnessFault::Io { what, source }
}

/// Runs until `SIGTERM` or `SIGINT`; `ready` is told where it listens and by which key its cosignatures are verified.
/// Blocks, and makes its own threads.
///
/// # Errors
/// When its folder cannot be used or its address is taken.
pub fn run(
    options: &WitnessOptions,
    ready: impl FnOnce(SocketAddr, &VerifierKey),
) -> Result<(), WitnessFault> {
    let memory = Memory::open(&options.folder)?;
    let key = lone_key(&options.folder.join("witness.key"), "witness")?;
    let witness = Witness::new(options, key, memory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.map_err(fault("make threads"))?.block_on(serve(
        Arc::new(witness),
        options.listen,
        ready,
    ))
}

async fn serve(
    witness: Arc<Witness>,
    listen: SocketAddr,
    ready: impl FnOnce(SocketAddr, &VerifierKey),
) -> Result<(), WitnessFault> {
    let mut end = signal(SignalKind::terminate()).map_err(fault("hear signals"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(fault("hear signals"))?;
    let listener = TcpListener::bind(listen).await.map_err(fault("listen"))?;
    ready(
        listener.local_addr().map_err(fault("listen"))?,
        &witness.verifier,
    );
    let room = Arc::new(Semaphore::new(MOST_AT_ONCE));
    let mut requests = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = end.recv() => break,
            _ = interrupt.recv() => break,
            Some(_) = requests.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match (accepted, Arc::clone(&room).try_acquire_owned()) {
            (Ok((stream, _)), Ok(permit)) => {
                let witness = Arc::clone(&witness);
                requests.spawn(async move {
                    // Who is slow is given up; there is nobody to tell.
                    let _ = tokio::time::timeout(PATIENCE, http::answer(witness, stream)).await;
                    drop(permit);
                });
            }
            (Ok(_), Err(_)) => {}
            (Err(_), _) => tokio::time::sleep(BREATH).await,
        }
    }
    // What was begun may end: a head that is kept should be answered.
    let rest = async { while requests.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(PATIENCE, rest).await;
    Ok(())
}

/// Status and body of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: String,
    /// Whether the body is a log's size.
    size: bool,
}

impl Answer {
    fn plain(status: u16, body: impl ToString) -> Self {
        let body = format!("{}\n", body.to_string());
        let size = false;
        Self { status, body, size }
    }
}

struct Witness {
    name: KeyName,
    key: SigningKey,
    verifier: VerifierKey,
    // By origin.
    logs: BTreeMap<String, Vec<VerifierKey>>,
    clock: SteadyClock,
    report: fn(&str),
    // Held from comparing to keeping: no two heads are ever judged against one memory.
    memory: Mutex<Memory>,
}

impl Witness {
    fn new(
        options: &WitnessOptions,
        key: SigningKey,
        memory: Memory,
    ) -> Result<Self, WitnessFault> {
        let name = match &options.name {
            Some(name) => name.clone(),
            None => {
                let id: String = key.key_id().0.chars().take(8).collect();
                KeyName::new(format!("lychgate-witness/{id}"))?
            }
        };
        let verifier = VerifierKey::new(name.clone(), SignatureKind::Cosignature, key.public())?;
        let mut logs: BTreeMap<String, Vec<VerifierKey>> = BTreeMap::new();
        for log in &options.logs {
            let origin = log.name().as_str().to_owned();
            logs.entry(origin).or_default().push(log.clone());
        }
        Ok(Self {
            name,
            key,
            verifier,
            logs,
            clock: SteadyClock::start(Timestamp::from_millis(0)),
            report: options.report,
            memory: Mutex::new(memory),
        })
    }

    /// Answers `add-checkpoint`. Blocks until what it cosigns is on stable storage.
    fn add_checkpoint(&self, body: &[u8]) -> Answer {
        let request = match AddCheckpoint::parse(body) {
            Ok(request) => request,
            Err(fault) => return Answer::plain(400, fault),
        };
        let origin = request.checkpoint.checkpoint().origin().to_owned();
        let log = self.logs.get(&origin).map(Vec::as_slice);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let judged = request.judge(log, memory.latest(&origin));
        let status = judged.status();
        match judged {
            Judgement::Cosign(_) => self.cosign(&request, &mut memory),
            Judgement::UnknownLog => Answer::plain(status, "this log is not witnessed here"),
            Judgement::Unsigned(fault) => Answer::plain(status, fault),
            Judgement::Backwards => Answer::plain(status, "old size is beyond the checkpoint's"),
            Judgement::Inconsistent(fault) => Answer::plain(status, fault),
            Judgement::Stale { latest } => Answer {
                status,
                body: format!("{latest}\n"),
                size: true,
            },
            Judgement::Forked { size } => {
                // Two heads of one size, both signed by the log: the proof that it lies is worth keeping.
                let kept = if memory.keep_evidence(&request.checkpoint) {
                    "kept in `forks`"
                } else {
                    "which could not be kept"
                };
                let origin = escape(&origin);
                (self.report)(&format!(
                    "the log `{origin}` told two stories of {size} records; the second head, {kept}, proves it"
                ));
                Answer {
                    status,
                    body: format!("{size}\n"),
                    size: true,
                }
            }
        }
    }

    /// The head of a log that was cosigned last, whole: what its owner cannot take back. It is public; a log may ask before
    /// it goes on.
    fn latest(&self, path: &str) -> Answer {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.logs.keys().find(|origin| latest_path(origin) == path);
        match known.map(|origin| memory.head(origin)) {
            Some(Ok(Some(head))) => Answer {
                status: 200,
                body: head.to_string(),
                size: false,
            },
            Some(Ok(None)) | None => Answer::plain(404, "nothing was cosigned of this log"),
            Some(Err(fault)) => {
                (self.report)(&format!("a head cannot be read: {fault}"));
                Answer::plain(500, "it cannot be read")
            }
        }
    }

    fn cosign(&self, request: &AddCheckpoint, memory: &mut Memory) -> Answer {
        let mut signed = request.checkpoint.clone();
        let seconds = self.clock.now().as_millis() / 1000;
        let line = match signed.cosign(&self.name, seconds, &self.key) {
            Ok(line) => line,
            Err(fault) => {
                (self.report)(&format!("cannot cosign: {fault}"));
                return Answer::plain(500, "cannot cosign");
            }
        };
        if let Err(fault) = memory.keep(&signed) {
            (self.report)(&format!("nothing is cosigned any more: {fault}"));
            return Answer::plain(500, "cannot keep it, so it is not cosigned");
        }
        Answer {
            status: 200,
            body: line,
            size: false,
        }
    }
}

/// Where a witness of ours shows the head that it cosigned last of a log. No part of tlog-witness: others answer 404.
pub(crate) fn latest_path(origin: &str) -> String {
    let digest = Digest::sha256(origin.as_bytes());
    format!("{LATEST}{}", digest.to_base64url())
}

const LATEST: &str = "/checkpoint/";
const MOST_AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_secs(10);
const BREATH: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
