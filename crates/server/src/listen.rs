//! Who may connect, and how many: peer credentials, bounds, and one conversation per connection.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lychgate_core::Timestamp;
use lychgate_core::delegation::DelegationFile;
use lychgate_gate::{Gate, Peer};
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::frame::{Frame, FrameFault};
use crate::protocol::{Class, Refusal, Request, Response};
use crate::state::{FILE_MODE, Lock, StateFolder};
use crate::{control, link};
use lychgate_gate::log;

/// Binds the folder's socket, in the place of one that a dead gate left. Only who holds the lock may do that.
pub(crate) fn bind(state: &StateFolder, _held: &Lock) -> io::Result<UnixListener> {
    let path = state.socket();
    match fs::remove_file(&path) {
        Ok(()) => log::info("a stale socket was replaced", &[]),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
        Err(fault) => return Err(fault),
    }
    let listener = UnixListener::bind(&path)?;
    // Until here the folder's own mode has kept others away.
    fs::set_permissions(&path, fs::Permissions::from_mode(FILE_MODE))?;
    Ok(listener)
}

/// What every connection shares.
pub(crate) struct Door {
    gate: Arc<Gate>,
    pub(crate) state: StateFolder,
    pub(crate) started_at: Timestamp,
    users: Vec<u32>,
    room: Arc<Semaphore>,
    links: Arc<Semaphore>,
    pub(crate) clients: AtomicU64,
}

impl Door {
    pub(crate) fn new(gate: Arc<Gate>, state: StateFolder, client_uid: Option<u32>) -> Arc<Self> {
        let mut users = vec![rustix::process::geteuid().as_raw()];
        users.extend(client_uid);
        Arc::new(Self {
            started_at: gate.now(),
            gate,
            state,
            users,
            room: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
            links: Arc::new(Semaphore::new(MOST_LINKS)),
            clients: AtomicU64::new(0),
        })
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Takes a connection in, or turns it away.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        accepted: io::Result<(UnixStream, SocketAddr)>,
        connections: &mut JoinSet<()>,
    ) {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(fault) => {
                // Out of descriptors, most likely: a connection that ends makes room.
                log::warn(
                    "a connection could not be accepted",
                    &[("fault", (&fault).into())],
                );
                tokio::time::sleep(BREATH).await;
                return;
            }
        };
        let Some(peer) = self.peer_of(&stream) else {
            return;
        };
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            log::warn("too many connections", &[("uid", peer.uid.into())]);
            turn_away(&stream, "the gate has too many connections");
            return;
        };
        let door = Arc::clone(self);
        connections.spawn(async move { door.converse(stream, peer, room).await });
    }

    //= PROFILE §4: thin clients on its unix socket (peer credentials)
    fn peer_of(&self, stream: &UnixStream) -> Option<Peer> {
        match stream.peer_cred() {
            Ok(found) if self.users.contains(&found.uid()) => Some(Peer {
                uid: found.uid(),
                pid: found.pid(),
            }),
            Ok(found) => {
                log::warn(
                    "a connection of another user was closed",
                    &[("uid", found.uid().into())],
                );
                None
            }
            Err(fault) => {
                log::warn(
                    "a connection without credentials was closed",
                    &[("fault", (&fault).into())],
                );
                None
            }
        }
    }

    async fn converse(
        self: &Arc<Self>,
        mut stream: UnixStream,
        peer: Peer,
        _room: OwnedSemaphorePermit,
    ) {
        loop {
            let frame = tokio::select! {
                frame = tokio::time::timeout(IDLE, Frame::read_async(&mut stream)) => frame,
                () = self.gate.closing() => return,
            };
            let frame = match frame {
                Ok(Ok(Some(frame))) => frame,
                Ok(Ok(None)) | Err(_) => return,
                Ok(Err(fault)) => {
                    log::warn(
                        "a connection out of step was closed",
                        &[("fault", fault.shown())],
                    );
                    return;
                }
            };
            let response = match Request::from_frame(&frame) {
                Ok(Request::Mcp {
                    server,
                    delegation,
                    purpose,
                }) => {
                    self.enter(stream, peer, &server, delegation, purpose.as_deref())
                        .await;
                    return;
                }
                Ok(Request::Delegate { request, from }) => {
                    if control::delegate(self, &mut stream, peer, from, request).await {
                        continue;
                    }
                    return;
                }
                Ok(Request::Acts {
                    state,
                    limit,
                    follow: true,
                }) => {
                    control::follow(self, &mut stream, state, limit).await;
                    return;
                }
                Ok(request) => control::answer(self, request).await,
                Err(fault) => {
                    log::warn("a request was not understood", &[]);
                    let refusal = Response::Refused(Refusal::new(Class::Usage, fault));
                    let _ = say(&mut stream, &refusal).await;
                    return;
                }
            };
            let stopping = response == Response::Stopping;
            if say(&mut stream, &response).await.is_err() {
                return;
            }
            if stopping {
                self.gate.close();
                return;
            }
        }
    }

    async fn enter(
        self: &Arc<Self>,
        mut stream: UnixStream,
        peer: Peer,
        server: &str,
        delegation: Option<DelegationFile>,
        purpose: Option<&str>,
    ) {
        let Ok(_room) = Arc::clone(&self.links).try_acquire_owned() else {
            let refusal = Refusal::new(Class::Refused, "the gate serves too many clients already");
            let _ = say(&mut stream, &Response::Refused(refusal)).await;
            return;
        };
        self.clients.fetch_add(1, Ordering::Relaxed);
        link::serve(self, stream, peer, server, delegation, purpose).await;
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Writes an answer; a client that does not read it in time is given up.
pub(crate) async fn say(stream: &mut UnixStream, response: &Response) -> Result<(), FrameFault> {
    let frame = response.to_frame().map_err(|_| {
        log::error("an answer could not be written", &[]);
        FrameFault::Length
    })?;
    let written = tokio::time::timeout(PATIENCE, frame.write_async(stream)).await;
    written.unwrap_or(Err(FrameFault::Cut))
}

/// Says why without waiting for anybody: a fresh connection has room for it.
fn turn_away(stream: &UnixStream, why: &str) {
    let response = Response::Refused(Refusal::new(Class::Refused, why));
    let bytes = response
        .to_frame()
        .ok()
        .and_then(|frame| frame.to_bytes().ok());
    if let Some(bytes) = bytes {
        let _ = stream.try_write(&bytes);
    }
}

/// All connections.
const MOST_CONNECTIONS: usize = 256;
/// Of these, clients of servers: a person must always get through to stop or to decide.
const MOST_LINKS: usize = 224;
/// How long a control connection may say nothing: as long as a challenge lives.
const IDLE: Duration = Duration::from_secs(900);
const PATIENCE: Duration = Duration::from_secs(30);
const BREATH: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::path::Path;

    use crate::OpenOptions;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_peer_of_another_user_is_not_let_in() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("state");
        let made = tokio::task::spawn_blocking(move || {
            let text = lychgate_policy::template("user:test", &[]);
            let pins = lychgate_policy::Pins::new();
            let first = lychgate_policy::load(&text, Path::new("lychgate.toml"), &pins).unwrap();
            let at = Timestamp::from_millis(1_700_000_000_000);
            let state = StateFolder::create(&path, None, &first, at).unwrap();
            let opened = state.open(&OpenOptions::default()).unwrap();
            (state, opened)
        });
        let (state, opened) = made.await.unwrap();
        let gate = Gate::assemble(opened.parts).unwrap();
        let door = Door::new(Arc::clone(&gate), state.clone(), None);
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(door.peer_of(&ours).unwrap().uid, own);
        let mut other = Arc::into_inner(Door::new(gate, state, None)).unwrap();
        other.users = vec![own + 1];
        assert!(other.peer_of(&ours).is_none());
    }
}
