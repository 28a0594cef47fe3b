//! One client connection: the holder of every authority issued for its calls (PROFILE §4: non-bearer).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lychgate_core::id::{HolderId, Nonce};

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
    peer: Peer,
    count: AtomicU64,
    gone: AtomicBool,
}

impl Session {
    pub(crate) fn new(holder: HolderId, server: String, peer: Peer) -> Arc<Self> {
        Arc::new(Self {
            holder,
            server,
            peer,
            count: AtomicU64::new(0),
            gone: AtomicBool::new(false),
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

    /// Who connected.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// The caller is no longer there: nothing held for it is ever dispatched, and answers cannot reach it.
    pub fn mark_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Whether the caller vanished.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub(crate) fn next_nonce(&self) -> Nonce {
        Nonce {
            holder: self.holder,
            count: self.count.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }
}
