//! One server process: requests go in under ids of ours, answers come back to whoever asked.

use lychgate_gate::log;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as Plain, PoisonError};

use lychgate_gate::{Begun, NotSent, Permit};
use lychgate_intake::{FromServer, Lines, RequestId, from_server};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::ChildStdout;
use tokio::sync::{Mutex, MutexGuard, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// A raw `result`, or a raw `error`.
pub(crate) type Answer = Result<Vec<u8>, Vec<u8>>;

/// Something the server says by itself.
#[derive(Debug)]
pub(crate) enum Event {
    Request {
        id: RequestId,
        method: String,
        params: Option<Vec<u8>>,
    },
    Notification {
        method: String,
        params: Option<Vec<u8>>,
    },
}

/// The writing side and the table of who waits for what.
pub(crate) struct Upstream {
    stdin: Mutex<Option<pipe::Sender>>,
    next: AtomicU64,
    waiting: Plain<HashMap<u64, oneshot::Sender<Answer>>>,
    queue: Queue,
    /// The pipe holds half a line, or the server broke the framing: nothing more can be said to it.
    broken: AtomicBool,
    /// Bytes of answers that the client has not made room for.
    pub(crate) unread: AtomicUsize,
    ended: watch::Sender<bool>,
}

/// Lines that are no acts, waiting to be written by a task of their own, so that nobody has to wait for a server that
/// does not read.
struct Queue {
    lines: mpsc::Sender<Vec<u8>>,
    bytes: AtomicUsize,
    put: AtomicU64,
    written: watch::Sender<u64>,
}

impl Upstream {
    pub(crate) fn new(stdin: pipe::Sender) -> Arc<Self> {
        let (lines, queued) = mpsc::channel(MOST_QUEUED);
        let upstream = Arc::new(Self {
            stdin: Mutex::new(Some(stdin)),
            next: AtomicU64::new(1),
            waiting: Plain::default(),
            queue: Queue {
                lines,
                bytes: AtomicUsize::new(0),
                put: AtomicU64::new(0),
                written: watch::Sender::new(0),
            },
            broken: AtomicBool::new(false),
            unread: AtomicUsize::new(0),
            ended: watch::Sender::new(false),
        });
        tokio::spawn(Arc::clone(&upstream).write_queued(queued));
        upstream
    }

    /// An id nobody has used on this connection.
    pub(crate) fn fresh_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A fresh id and the place where its answer will come. Dropping the place forgets it.
    pub(crate) fn expect(&self) -> (u64, oneshot::Receiver<Answer>) {
        let id = self.fresh_id();
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, one| !one.is_closed());
        waiting.insert(id, sender);
        (id, receiver)
    }

    /// Whether more may be asked of the server, and heard from it: not while too much waits for a client that does not
    /// read.
    pub(crate) fn has_room(&self) -> bool {
        self.unread.load(Ordering::Relaxed) < MOST_UNREAD
    }

    /// Whether the server has ended or can no longer be spoken to.
    pub(crate) fn is_over(&self) -> bool {
        *self.ended.borrow() || self.broken.load(Ordering::Acquire)
    }

    /// Resolves when it has.
    pub(crate) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        drop(ended.wait_for(|ended| *ended).await);
    }

    /// Nothing more will be said: end of the server's input.
    pub(crate) async fn hang_up(&self) {
        // A writer stuck in a full pipe holds the lock; the child is then ended by signal.
        let soon = std::time::Duration::from_millis(100);
        if let Ok(mut stdin) = tokio::time::timeout(soon, self.turn()).await {
            stdin.take();
        }
    }

    /// Puts a line that is no act behind what is already to be said, without waiting. `false` when the server can no
    /// longer be spoken to, or too much waits for it.
    pub(crate) fn tell(&self, line: Vec<u8>) -> bool {
        let bytes = line.len();
        let queued = self.queue.bytes.fetch_add(bytes, Ordering::AcqRel);
        let fits = queued == 0 || queued.saturating_add(bytes) <= MOST_QUEUED_BYTES;
        if self.is_over() || !fits || self.queue.lines.try_send(line).is_err() {
            self.queue.bytes.fetch_sub(bytes, Ordering::AcqRel);
            return false;
        }
        self.queue.put.fetch_add(1, Ordering::AcqRel);
        true
    }

    async fn write_queued(self: Arc<Self>, mut queued: mpsc::Receiver<Vec<u8>>) {
        loop {
            let line = tokio::select! {
                line = queued.recv() => line,
                () = self.over() => None,
            };
            let Some(line) = line else { return };
            let bytes = line.len();
            let mut stdin = self.stdin.lock().await;
            if let Some(pipe) = stdin.as_mut().filter(|_| !self.is_over()) {
                self.write_line(pipe, line, Instant::now() + STALLED).await;
            }
            drop(stdin);
            self.queue.bytes.fetch_sub(bytes, Ordering::AcqRel);
            self.queue.written.send_modify(|written| *written += 1);
        }
    }

    /// The pipe, once everything is written that was told before: what is told and what is said keep their order.
    async fn turn(&self) -> MutexGuard<'_, Option<pipe::Sender>> {
        let put = self.queue.put.load(Ordering::Acquire);
        let mut written = self.queue.written.subscribe();
        tokio::select! {
            written = written.wait_for(|written| *written >= put) => drop(written),
            () = self.over() => {}
        }
        self.stdin.lock().await
    }

    /// Writes a line that is no act. `false` when the server can no longer be spoken to.
    pub(crate) async fn say(&self, line: Vec<u8>) -> bool {
        let mut stdin = self.turn().await;
        let Some(pipe) = stdin.as_mut().filter(|_| !self.is_over()) else {
            return false;
        };
        self.write_line(pipe, line, Instant::now() + STALLED).await
    }

    //= PROFILE §4.3: a Permit is spent at the first byte of the effect and has a deadline of its own
    /// Writes an act's line, spending its permit immediately before the first byte.
    ///
    /// `Ok` means that the first byte has left, and so that the effect may happen whatever comes after. `until` bounds
    /// the rest of the line: when the server stops reading in the middle of it, the pipe is of no more use.
    pub(crate) async fn act(
        &self,
        line: Vec<u8>,
        permit: Permit,
        until: Instant,
    ) -> Result<Begun, NotSent> {
        let deadline = permit.deadline();
        let Ok(mut stdin) = timeout_at(deadline, self.turn()).await else {
            return Err(permit.give_up());
        };
        let Some(pipe) = stdin.as_mut().filter(|_| !self.is_over()) else {
            return Err(permit.give_up());
        };
        loop {
            match timeout_at(deadline, pipe.writable()).await {
                Ok(Ok(())) if has_room(pipe) => break,
                // The runtime's readiness is a hint; trying with nothing to write makes it look again.
                Ok(Ok(())) => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
                Ok(Err(_)) | Err(_) => return Err(permit.give_up()),
            }
            if Instant::now() >= deadline {
                return Err(permit.give_up());
            }
        }
        let begun = permit.begin()?;
        // The line has begun; how it goes on is told by the answer, or by its absence.
        self.write_line(pipe, line, until).await;
        Ok(begun)
    }

    async fn write_line(&self, pipe: &pipe::Sender, mut line: Vec<u8>, until: Instant) -> bool {
        line.push(b'\n');
        let mut left = line.as_slice();
        while !left.is_empty() {
            match pipe.try_write(left) {
                Ok(0) => break,
                Ok(written) => left = left.get(written..).unwrap_or_default(),
                Err(fault) if fault.kind() == std::io::ErrorKind::WouldBlock => {
                    let ready = async {
                        tokio::select! {
                            ready = pipe.writable() => ready.is_ok(),
                            () = self.over() => false,
                        }
                    };
                    let ready = timeout_at(until, ready).await.unwrap_or(false);
                    if !ready {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        let whole = left.is_empty();
        if !whole {
            self.broken.store(true, Ordering::Release);
            self.finish();
        }
        whole
    }

    /// Reads the server's lines until it ends or breaks the framing.
    pub(crate) async fn read(
        self: Arc<Self>,
        mut stdout: ChildStdout,
        largest: usize,
        events: mpsc::Sender<Event>,
    ) {
        let mut lines = Lines::new(largest);
        let mut bytes = vec![0; READ];
        'reading: loop {
            // What a client leaves lying is not piled up here: its acts' answers stay with the server, and an act whose
            // answer is not read in time is indeterminate until it is.
            while !self.has_room() && !self.is_over() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            let read = tokio::select! {
                read = stdout.read(&mut bytes) => read,
                () = self.over() => break,
            };
            let Ok(count @ 1..) = read else { break };
            lines.push(bytes.get(..count).unwrap_or_default());
            for line in lines.by_ref() {
                match line {
                    Ok(line) => {
                        if !self.take(&line, &events).await {
                            break 'reading;
                        }
                    }
                    Err(_) => {
                        log::warn(
                            "a server's line is too long or broken off; the connection ends",
                            &[],
                        );
                        break 'reading;
                    }
                }
            }
        }
        self.finish();
    }

    /// One line. `false` when nobody listens any more.
    async fn take(&self, line: &[u8], events: &mpsc::Sender<Event>) -> bool {
        match from_server(line) {
            Ok(FromServer::Batch(batch)) => {
                for message in batch.into_iter().flatten() {
                    if !self.take_one(message, events).await {
                        return false;
                    }
                }
                true
            }
            Ok(message) => self.take_one(message, events).await,
            Err(_) => {
                // A line that is no message: servers print such things. It is dropped; an answer in it is lost, and a
                // lost answer is indeterminate.
                // What is wrong with it may repeat what the server printed, and that an argument.
                log::warn(
                    "a server's line is no message",
                    &[("bytes", line.len().into())],
                );
                true
            }
        }
    }

    async fn take_one(&self, message: FromServer<'_>, events: &mpsc::Sender<Event>) -> bool {
        match message {
            FromServer::Response { id, result } => {
                let id = match id {
                    Some(RequestId::Number(id)) => u64::try_from(id).ok(),
                    _ => None,
                };
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(waiter) = id.and_then(|id| waiting.remove(&id)) {
                    drop(waiter.send(result.map(<[u8]>::to_vec).map_err(<[u8]>::to_vec)));
                }
                true
            }
            FromServer::Request { id, method, params } => events
                .send(Event::Request {
                    id,
                    method,
                    params: params.map(<[u8]>::to_vec),
                })
                .await
                .is_ok(),
            FromServer::Notification { method, params } => events
                .send(Event::Notification {
                    method,
                    params: params.map(<[u8]>::to_vec),
                })
                .await
                .is_ok(),
            FromServer::Batch(_) => true,
        }
    }

    /// The server has ended: whoever waits hears that nothing will come.
    pub(crate) fn finish(&self) {
        self.ended.send_replace(true);
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Whether a byte can be written now without waiting. For a pipe with one writer this does not turn false again.
fn has_room(pipe: &pipe::Sender) -> bool {
    let mut fds = [PollFd::new(pipe, PollFlags::OUT)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut fds, Some(&now)), Ok(1..))
        && fds.iter().any(|fd| fd.revents() == PollFlags::OUT)
}

const READ: usize = 64 << 10;
/// Bytes of answers that wait for a client before nothing more is taken from it or its server.
const MOST_UNREAD: usize = 8 << 20;
/// Lines, and bytes, that wait for a server that does not read.
const MOST_QUEUED: usize = 256;
const MOST_QUEUED_BYTES: usize = 32 << 20;
/// How long a server may not read before it is given up.
const STALLED: std::time::Duration = std::time::Duration::from_secs(30);
