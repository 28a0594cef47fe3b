//! The whole of `lychgate mcp NAME`: lines from standard input to the gate, lines from the gate to standard output.
//! It holds nothing and decides nothing (PROFILE §4).

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lychgate_core::delegation::DelegationFile;
use lychgate_intake::Lines;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;

use crate::client::{Client, ClientFault};
use crate::frame::{Frame, FrameFault, Kind, MOST_LINE, Token};
use crate::protocol::{Class, Request, Response};

/// Why a relay ended before its client did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayFault {
    /// The gate did not take the connection.
    #[error(transparent)]
    Client(#[from] ClientFault),
    /// The gate ended, or ended this connection.
    #[error(
        "the gate has ended this connection; what was under way is recorded there (`lychgate acts`)"
    )]
    GateGone,
    /// The relay could not work.
    #[error("the relay failed: {0}")]
    Io(#[from] io::Error),
}

impl RelayFault {
    /// The exit status (CLI.md).
    pub fn status(&self) -> u8 {
        match self {
            Self::Client(fault) => fault.status(),
            Self::GateGone | Self::Io(_) => Class::Fault.status(),
        }
    }
}

/// Relays this process's standard input and output, for a worker with its delegation, until the client or the gate ends. `Ok` when the client ended.
///
/// The reader of standard input may still be blocked then; return from `main` without waiting for it.
///
/// # Errors
/// When the gate refuses the server, or ends first.
pub fn relay_stdio(
    client: Client,
    server: &str,
    delegation: Option<DelegationFile>,
    purpose: Option<&str>,
) -> Result<(), RelayFault> {
    relay(
        client,
        server,
        delegation,
        purpose,
        io::stdin(),
        io::stdout(),
    )
}

/// As [`relay_stdio`], between any two streams.
///
/// # Errors
/// As [`relay_stdio`].
pub fn relay(
    mut client: Client,
    server: &str,
    delegation: Option<DelegationFile>,
    purpose: Option<&str>,
    input: impl Read + Send + 'static,
    mut output: impl Write + AsFd,
) -> Result<(), RelayFault> {
    let request = Request::Mcp {
        server: server.to_owned(),
        delegation,
        purpose: purpose.map(str::to_owned),
    };
    let Response::Mcp { message_bytes } = client.ask(&request)? else {
        return Err(ClientFault::Confused.into());
    };
    let limit = usize::try_from(message_bytes)
        .unwrap_or(MOST_LINE)
        .min(MOST_LINE);
    let mut stream = client.into_stream();
    let shared = Arc::new(Shared {
        output: pipe_of(&output),
        ..Shared::default()
    });
    let theirs = Arc::clone(&shared);
    spawn("input", move || theirs.read_input(input, limit))?;
    let theirs = Arc::clone(&shared);
    let writer = stream.try_clone()?;
    spawn("to-gate", move || theirs.write_to_gate(writer))?;
    let ended = write_output(&mut stream, &shared, &mut output);
    // Before the other threads hear of it, so that what they then do is not taken for the cause.
    let client_ended = shared.state().client_ended;
    shared.say_over();
    // Nobody listens any more; a stream that is closed already is no fault.
    let _ = stream.shutdown(Shutdown::Both);
    match ended {
        // After the client's own end whatever the gate does is in order.
        _ if client_ended => Ok(()),
        Ok(Ended::ClientGone) => Ok(()),
        Ok(Ended::GateGone) => Err(RelayFault::GateGone),
        Err(fault) => Err(RelayFault::Client(fault.into())),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}

/// What the three threads share.
///
/// Only `to-gate` writes to the socket. The thread that writes output must never wait for the socket: the gate may be
/// waiting for output to be read.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The client's end of the answers, where it is a pipe: what it has taken out can be seen.
    output: Option<OwnedFd>,
}

/// A line on its way out whose delivery is to be reported.
struct Outgoing {
    token: Token,
    /// All of it is in the pipe.
    whole: bool,
}

#[derive(Default)]
struct State {
    /// At most `MOST_QUEUED`.
    lines: VecDeque<Frame>,
    /// Go first. As many as the gate has open.
    tokens: VecDeque<Token>,
    outgoing: Option<Outgoing>,
    /// The newest control that the gate told of, to be answered.
    told: Option<u64>,
    client_ended: bool,
    over: bool,
}

enum Ended {
    ClientGone,
    GateGone,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.changed
            .wait_while(self.state(), condition)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn say_over(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// The client is served no longer, its grace included.
    fn is_over(&self) -> bool {
        self.state().over
    }

    /// What went out last was taken, unless that was reported already.
    fn report(&self) {
        let mut state = self.state();
        let read = state.outgoing.take();
        state.tokens.extend(read.map(|one| one.token));
        drop(state);
        self.changed.notify_all();
    }

    /// A client that has read an answer may say its next word before the pipe was looked at again: the answer's
    /// delivery is reported first, or an equal call would be taken for a repetition of one that nobody heard of.
    fn note_read(&self) {
        let Some(output) = &self.output else { return };
        let is_empty = || rustix::io::ioctl_fionread(output) == Ok(0);
        let begun = |state: &mut State| {
            is_empty() && state.outgoing.as_ref().is_some_and(|one| !one.whole) && !state.over
        };
        // Either nothing of it is in the pipe yet, or all of it was taken out the moment it was in.
        let waited = self
            .changed
            .wait_timeout_while(self.state(), MOMENT, begun)
            .unwrap_or_else(PoisonError::into_inner);
        let mut state = waited.0;
        if is_empty() && state.outgoing.as_ref().is_some_and(|one| one.whole) {
            let read = state.outgoing.take();
            state.tokens.extend(read.map(|one| one.token));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// A line with a token goes out.
    fn begin(&self, token: Token) {
        self.state().outgoing = Some(Outgoing {
            token,
            whole: false,
        });
    }

    fn is_whole(&self) {
        if let Some(outgoing) = &mut self.state().outgoing {
            outgoing.whole = true;
        }
        self.changed.notify_all();
    }

    fn read_input(&self, mut input: impl Read, limit: usize) {
        let mut lines = Lines::new(limit);
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            lines.push(chunk.get(..read).unwrap_or_default());
            for line in lines.by_ref() {
                let frame = line.map_or_else(|_| Frame::too_long(), Frame::line);
                self.note_read();
                let mut state =
                    self.wait_while(|state| state.lines.len() >= MOST_QUEUED && !state.over);
                if state.over {
                    return;
                }
                state.lines.push_back(frame);
                drop(state);
                self.changed.notify_all();
            }
        }
        // An unfinished line is no message.
        let mut state = self.state();
        state.client_ended = true;
        state.lines.push_back(Frame::end());
        drop(state);
        self.changed.notify_all();
        // Answers still due may come for a while; clients kill what does not end within two seconds.
        let waited = self
            .changed
            .wait_timeout_while(self.state(), GRACE, |state| !state.over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.say_over();
    }

    fn write_to_gate(&self, mut stream: UnixStream) {
        loop {
            let mut state = self.wait_while(|state| {
                state.lines.is_empty()
                    && state.tokens.is_empty()
                    && state.told.is_none()
                    && !state.over
            });
            let next = match (state.told.take(), state.tokens.pop_front()) {
                (Some(number), token) => {
                    state.tokens.extend(token);
                    Some(Frame::told(number))
                }
                (None, Some(token)) => Some(Frame::delivered(token)),
                (None, None) => state.lines.pop_front(),
            };
            let over = state.over;
            drop(state);
            self.changed.notify_all();
            let written = match next {
                Some(frame) => frame.write(&mut stream).is_ok(),
                None => false,
            };
            if over || !written {
                break;
            }
        }
        // Wakes the thread that reads from the gate.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn write_output(
    stream: &mut UnixStream,
    shared: &Shared,
    output: &mut (impl Write + AsFd),
) -> Result<Ended, FrameFault> {
    let is_pipe = shared.output.is_some();
    let mut stream = io::BufReader::new(stream);
    loop {
        let frame = match Frame::read(&mut stream) {
            Ok(Some(frame)) => frame,
            Ok(None) | Err(FrameFault::Cut) => return Ok(Ended::GateGone),
            Err(FrameFault::Io(fault)) if fault.kind() == io::ErrorKind::ConnectionReset => {
                return Ok(Ended::GateGone);
            }
            Err(fault) => return Err(fault),
        };
        match frame.kind {
            Kind::Line => {
                let (token, line) = frame.split_token()?;
                let mut bytes = Vec::with_capacity(line.len() + 1);
                bytes.extend_from_slice(line);
                bytes.push(b'\n');
                if token != 0 {
                    shared.begin(token);
                }
                if !put(&bytes, is_pipe, output, shared) {
                    return Ok(Ended::ClientGone);
                }
                if token != 0 {
                    shared.is_whole();
                    if is_pipe && !drained(output.as_fd(), shared) {
                        return Ok(Ended::ClientGone);
                    }
                    // When this does not get through, the act stays undelivered, which is safe.
                    shared.report();
                }
            }
            Kind::Told => {
                let (number, _) = frame.split_token()?;
                shared.state().told = Some(number);
                shared.changed.notify_all();
            }
            Kind::End => return Ok(Ended::GateGone),
            Kind::Control | Kind::Delivered | Kind::TooLong => return Err(FrameFault::Length),
        }
    }
}

/// Its own handle on the output, where that is a pipe.
fn pipe_of(output: &impl AsFd) -> Option<OwnedFd> {
    let found = rustix::fs::fstat(output.as_fd()).ok()?;
    let is_pipe = FileType::from_raw_mode(found.st_mode) == FileType::Fifo;
    is_pipe
        .then(|| output.as_fd().try_clone_to_owned().ok())
        .flatten()
}

/// Writes a line. False when the client is gone, or its grace is over while it does not read: a write into a full pipe
/// would keep this process from ending.
fn put(line: &[u8], is_pipe: bool, output: &mut (impl Write + AsFd), shared: &Shared) -> bool {
    if !is_pipe {
        return output.write_all(line).and_then(|()| output.flush()).is_ok();
    }
    for part in line.chunks(ATOMIC) {
        while !is_writable(output.as_fd()) {
            if shared.is_over() {
                return false;
            }
        }
        if output
            .write_all(part)
            .and_then(|()| output.flush())
            .is_err()
        {
            return false;
        }
    }
    true
}

/// Waits a while for a pipe to take [`ATOMIC`] bytes without blocking. A broken pipe counts: writing to it tells.
fn is_writable(output: BorrowedFd<'_>) -> bool {
    let mut ends = [PollFd::from_borrowed_fd(output, PollFlags::OUT)];
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    matches!(rustix::event::poll(&mut ends, Some(&wait)), Ok(1..))
}

//= PROFILE §5: an answer that was not read is not delivered
/// Waits until the reader has taken everything out of the pipe. False when it is gone first.
fn drained(output: BorrowedFd<'_>, shared: &Shared) -> bool {
    let mut pause = Duration::from_micros(200);
    loop {
        // The reader's end first: bytes of a pipe that nobody reads stay in it for ever.
        let mut ends = [PollFd::from_borrowed_fd(output, PollFlags::empty())];
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(pause.subsec_nanos()),
        };
        match rustix::io::ioctl_fionread(output) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        let polled = rustix::event::poll(&mut ends, Some(&wait));
        let closed = ends
            .iter()
            .any(|end| end.revents().intersects(PollFlags::ERR | PollFlags::HUP));
        let hopeless = polled.is_err_and(|fault| fault != rustix::io::Errno::INTR);
        if closed || hopeless || shared.is_over() {
            return rustix::io::ioctl_fionread(output) == Ok(0);
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

const CHUNK: usize = 64 << 10;
/// A pipe that polls writable takes so much without blocking (PIPE_BUF).
const ATOMIC: usize = 4096;
/// Lines taken from the client that the socket has no room for yet.
const MOST_QUEUED: usize = 16;
/// From the last byte of an answer to its being noted.
const MOMENT: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_millis(1500);
