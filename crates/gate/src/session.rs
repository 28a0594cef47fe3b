//! One client connection: the holder of every authority issued for its calls (PROFILE §4: non-bearer).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lychgate_core::Timestamp;
use lychgate_core::act::SourceType;
use lychgate_core::id::{HolderId, Nonce};
use lychgate_policy::Agent;

use crate::delegation::Worker;
use crate::delivery::Flights;
use crate::throttle::Throttle;

/// Who connected, as the operating system says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// User id.
    pub uid: u32,
    /// Process id, when known.
    pub pid: Option<i32>,
}

/// A live client connection to one server.
///
/// Its nonces are the gate's to give: a counter per holder that only grows, so the store's keys grow too.
#[derive(Debug)]
pub struct Session {
    holder: HolderId,
    server: String,
    /// `None`: the gate's own agent.
    peer: Option<Peer>,
    /// The chain a worker came with; `None` for the principal's own agent.
    worker: Option<Worker>,
    count: AtomicU64,
    gone: AtomicBool,
    /// Shared by all connections of this user to this server.
    denials: Arc<Throttle>,
    /// The configured purpose it was opened for; `None`: the usual one.
    purpose: Option<String>,
    /// A sink runs for it and follows controls.
    sink_runs: AtomicBool,
    flights: Flights,
}

impl Session {
    /// A client's; without a peer, the gate's own.
    pub(crate) fn new(
        holder: HolderId,
        server: String,
        peer: Option<Peer>,
        worker: Option<Worker>,
        purpose: Option<String>,
        denials: Arc<Throttle>,
    ) -> Arc<Self> {
        Arc::new(Self {
            holder,
            server,
            peer,
            worker,
            count: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            denials,
            purpose,
            sink_runs: AtomicBool::new(false),
            flights: Flights::default(),
        })
    }

    /// The connection's identity.
    pub fn holder(&self) -> HolderId {
        self.holder
    }

    /// The server in the catalogue it talks to.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Who connected; `None` for the gate's own agent.
    pub fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// Whether the gate's own agent calls over it.
    pub fn is_own(&self) -> bool {
        self.peer.is_none()
    }

    /// The chain a worker came with.
    pub(crate) fn worker(&self) -> Option<&Worker> {
        self.worker.as_ref()
    }

    //= PROFILE §11: depth and parent from the verified delegation chain
    /// Which agent speaks over it, `configured` being the clients': the last one of a worker's chain.
    pub(crate) fn agent<'a>(&'a self, configured: &'a str) -> &'a str {
        match &self.worker {
            _ if self.is_own() => lychgate_policy::RECONCILER,
            Some(worker) => worker.chain.agent(),
            None => configured,
        }
    }

    /// Whether its user may speak as the agent itself, without a chain.
    pub(crate) fn speaks_for_itself(&self, agent: &Agent) -> bool {
        match (self.peer, &agent.uids) {
            (None, _) | (_, None) => true,
            (Some(peer), Some(uids)) => uids.contains(&peer.uid),
        }
    }

    /// The purpose it was opened for, `usual` being the one it has otherwise.
    pub(crate) fn purpose<'a>(&'a self, usual: &'a str) -> &'a str {
        self.purpose.as_deref().unwrap_or(usual)
    }

    /// A sink runs for this connection, follows controls, and will say how far it has come.
    pub fn mark_sink(&self, runs: bool) {
        self.sink_runs.store(runs, Ordering::Release);
    }

    pub(crate) fn sink_runs(&self) -> bool {
        self.sink_runs.load(Ordering::Acquire)
    }

    pub(crate) fn flights(&self) -> &Flights {
        &self.flights
    }

    /// Who asks: of the gate's own agent, the configuration that the operator applied.
    pub(crate) fn source(&self, vouched: Option<SourceType>) -> Option<SourceType> {
        if self.is_own() {
            Some(SourceType::System)
        } else {
            vouched
        }
    }

    /// The caller is no longer there: nothing held for it is ever dispatched, and answers cannot reach it.
    pub fn mark_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Whether the caller vanished.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Waits for this caller's turn to be denied once more.
    pub(crate) async fn denial_turn(&self, now: Timestamp) {
        let wait = self.denials.turn(now);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    pub(crate) fn next_nonce(&self) -> Nonce {
        Nonce {
            holder: self.holder,
            count: self.count.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }
}
