//! The gate's process: from its lock to its last receipt.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lychgate_core::Code;
use lychgate_core::receipt::ReceiptKind;
use lychgate_gate::{Gate, Reconciler};
use lychgate_sinks::mcp::LookUps;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::anchor;
use crate::cosign;
use crate::listen::{Door, bind};
use crate::log as log_file;
use crate::open::{OpenOptions, Opened};
use crate::protocol::Class;
use crate::state::{Lock, StateFault, StateFolder};
use crate::telemetry;
use lychgate_gate::log;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Started by a client: leave its session and terminal first, so that what kills the client's process group does
    /// not kill the gate.
    pub background: bool,
    /// The configuration file, which no sink may touch.
    pub config_file: Option<PathBuf>,
    /// The client user's home, whose clients' configuration files no sink may touch.
    pub home: Option<PathBuf>,
    /// The folder of anchors; `None` for no anchor.
    pub anchors: Option<PathBuf>,
    /// The user the clients run as, when that is not the gate's own.
    pub client_uid: Option<u32>,
}

/// How the gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to.
    Stopped,
    /// Its store could no longer be believed; nothing was permitted after that.
    Broken,
}

impl Exit {
    /// The exit status (CLI.md).
    pub fn status(self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Broken => Class::Fault.status(),
        }
    }
}

/// Why the gate did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFault {
    /// The state folder is not fit, or another gate has it.
    #[error(transparent)]
    State(#[from] StateFault),
    /// The gate could not settle what its predecessor left open.
    #[error("what the last gate left open cannot be settled ({0}); the store does not answer")]
    Recover(Code),
    /// The system said no.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl RunFault {
    /// The exit status (CLI.md). 1 exactly when another gate has the folder, which a client that started this one
    /// relies on.
    pub fn status(&self) -> u8 {
        match self {
            Self::State(fault) => fault.status(),
            Self::Recover(_) | Self::Io { .. } => Class::Fault.status(),
        }
    }

    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// Runs the gate of a state folder until it is stopped (`SIGTERM`, `SIGINT`, a client's `Stop`) or breaks. Blocks, and
/// makes its own threads; call it outside any asynchronous runtime.
///
/// # Errors
/// Before anything is decided: when the folder is not fit, another gate has it, or its socket cannot be bound.
pub fn run(state: &StateFolder, options: &RunOptions) -> Result<Exit, RunFault> {
    if options.background {
        // A leader of a group cannot leave its session, and has nothing to fear from its own group.
        let _ = rustix::process::setsid();
    }
    keep_memory().map_err(RunFault::io("keep its memory to itself"))?;
    let open = OpenOptions {
        config_file: options.config_file.clone(),
        home: options.home.clone(),
        anchors: options.anchors.clone(),
        client_uid: options.client_uid,
    };
    let Opened {
        parts,
        lock,
        anchors,
        anchor_note,
    } = state.open(&open)?;
    log_file::to_file(&state.log()).map_err(RunFault::io("open the log"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(RunFault::io("start threads"))?;
    let exit = runtime.block_on(async {
        let gate = Gate::assemble(parts).map_err(RunFault::Recover)?;
        let recovered = gate.recover().await.map_err(RunFault::Recover)?;
        if let Some(note) = anchor_note {
            log::warn(note.phrase(), &[]);
            gate.note_anchor(note).await.map_err(RunFault::Recover)?;
        }
        let found = [
            ("gate", gate.id().into()),
            ("indeterminate", recovered.indeterminate.into()),
            ("lapsed", recovered.lapsed.into()),
        ];
        log::info("the gate has started", &found);
        let listener = bind(state, &lock).map_err(RunFault::io("listen on the socket"))?;
        let door = Door::new(Arc::clone(&gate), state.clone(), options.client_uid);
        let gate = Arc::clone(door.gate());
        let keeper = tokio::spawn(anchor::keep(Arc::clone(&gate), Arc::clone(&anchors)));
        let mut followers = tokio::task::JoinSet::new();
        for witness in cosign::witnesses(&gate) {
            followers.spawn(cosign::follow(
                Arc::clone(&gate),
                witness,
                Arc::clone(&anchors),
            ));
        }
        let exit = serve(door, listener).await;
        followers.abort_all();
        keeper.abort();
        anchor::finish(&gate, anchors).await;
        exit
    });
    end(state, runtime, lock);
    exit
}

//= PROFILE §10: raw arguments live only in memory
/// No core file holds what this process has in memory, and no other process of this user reads it. The servers it
/// starts leave none either; the call they work on is in theirs.
fn keep_memory() -> io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

async fn serve(door: Arc<Door>, listener: UnixListener) -> Result<Exit, RunFault> {
    let gate = Arc::clone(door.gate());
    let mut terminate =
        signal(SignalKind::terminate()).map_err(RunFault::io("listen for signals"))?;
    let mut interrupt =
        signal(SignalKind::interrupt()).map_err(RunFault::io("listen for signals"))?;
    let sweeper = tokio::spawn(sweep(Arc::clone(&gate)));
    let reconciler = Reconciler::new(Arc::clone(&gate), Arc::new(LookUps));
    let reconciler = tokio::spawn(reconciler.run());
    let teller = tokio::spawn(telemetry::tell(Arc::clone(&door)));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            () = gate.closing() => break,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            accepted = listener.accept() => door.admit(accepted, &mut connections).await,
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    gate.close();
    let all = async {
        while connections.join_next().await.is_some() {}
        drop(reconciler.await);
    };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        log::warn(
            "connections did not end in time",
            &[("left", connections.len().into())],
        );
        connections.shutdown().await;
    }
    sweeper.abort();
    // Bounded by itself.
    let _ = teller.await;
    if gate.is_broken() {
        log::error("the gate ends because its store cannot be believed", &[]);
        return Ok(Exit::Broken);
    }
    match gate.note(ReceiptKind::Stopped).await {
        Ok(()) => {
            log::info("the gate has stopped", &[]);
            Ok(Exit::Stopped)
        }
        Err(code) => {
            log::error("the stop could not be recorded", &[("code", code.into())]);
            Ok(Exit::Broken)
        }
    }
}

async fn sweep(gate: Arc<Gate>) {
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        if let Err(code) = gate.sweep().await {
            log::warn(
                "what has run out could not be ended",
                &[("code", code.into())],
            );
        }
    }
}

/// The socket goes before the lock: nobody else's can be there.
fn end(state: &StateFolder, runtime: Runtime, lock: Lock) {
    runtime.shutdown_timeout(GRACE);
    // A socket that stays is stale, and the next gate replaces it.
    let _ = std::fs::remove_file(state.socket());
    drop(lock);
}

/// Decisions are short, and the store has a thread of its own.
const WORKERS: usize = 4;
/// How often what ran out is ended.
const BEAT: Duration = Duration::from_secs(1);
/// How long sessions may take to end.
const GRACE: Duration = Duration::from_secs(5);
