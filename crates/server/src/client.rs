//! The thin client's side: connecting to the gate, and starting it in the background where it does not run.
//!
//! Blocking on purpose: a client does one thing and ends.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::frame::{Frame, FrameFault};
use crate::protocol::{Class, ProtocolFault, Refusal, Request, Response};
use crate::state::{StateFault, StateFolder};

/// Whether a gate that does not run is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// No (`--no-start`).
    Never,
    /// Yes, in the background: this program with these arguments, which must end in [`crate::run()`] with
    /// `background` set. Its exit status must be [`crate::RunFault::status`].
    Background {
        /// Usually the program that runs.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
}

/// Why there is no talking to the gate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientFault {
    /// The state folder is not there or not fit.
    #[error(transparent)]
    State(#[from] StateFault),
    /// Not running, and not to be started.
    #[error("no gate runs on `{}`; start one with `lychgate gate`, or leave out `--no-start`", folder.display())]
    NotRunning {
        /// The state folder.
        folder: PathBuf,
    },
    /// Something listens there that is not this folder's gate.
    #[error("`{}` belongs to another user than its folder; it is not this folder's gate", socket.display())]
    Impostor {
        /// The socket.
        socket: PathBuf,
    },
    /// It could not be started.
    #[error("the gate could not be started: {reason}")]
    Start {
        /// What it said, or what the system said.
        reason: String,
        /// Its exit status, when it had one of ours.
        status: u8,
    },
    /// It was started and did not listen in time.
    #[error("the gate did not answer within {} s; see `{}`", WAIT.as_secs(), log.display())]
    Slow {
        /// Its log.
        log: PathBuf,
    },
    /// The connection ended before the answer.
    #[error("the gate closed the connection; see its log, or `lychgate gate status`")]
    Gone,
    /// What came is no frame, or the connection failed.
    #[error(transparent)]
    Frame(#[from] FrameFault),
    /// What came is no answer of this protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolFault),
    /// The gate says no.
    #[error("{0}")]
    Refused(Refusal),
    /// It answered something else than what was asked.
    #[error("the gate gave an answer to another question")]
    Confused,
}

impl ClientFault {
    /// The exit status (CLI.md).
    pub fn status(&self) -> u8 {
        match self {
            Self::Refused(refusal) => refusal.class.status(),
            Self::NotRunning { .. } => Class::Refused.status(),
            Self::State(fault) => fault.status(),
            Self::Start { status, .. } => *status,
            _ => Class::Fault.status(),
        }
    }
}

/// A connection to the gate.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
}

impl Client {
    /// Asks one thing and waits for the answer. A refusal comes as [`ClientFault::Refused`].
    ///
    /// # Errors
    /// When the gate refuses or the connection fails.
    pub fn ask(&mut self, request: &Request) -> Result<Response, ClientFault> {
        match request.to_frame()?.write(&mut self.stream) {
            Ok(()) => {}
            // A gate that turned us away may have said why before it closed.
            Err(FrameFault::Io(fault)) if fault.kind() == io::ErrorKind::BrokenPipe => {}
            Err(fault) => return Err(fault.into()),
        }
        self.hear()
    }

    /// The next answer: after a following [`Request::Acts`].
    ///
    /// # Errors
    /// As [`Client::ask`]; [`ClientFault::Gone`] when the gate has ended.
    pub fn hear(&mut self) -> Result<Response, ClientFault> {
        let frame = match Frame::read(&mut self.stream) {
            Ok(Some(frame)) => frame,
            Ok(None) => return Err(ClientFault::Gone),
            Err(FrameFault::Io(fault)) if fault.kind() == io::ErrorKind::ConnectionReset => {
                return Err(ClientFault::Gone);
            }
            Err(fault) => return Err(fault.into()),
        };
        match Response::from_frame(&frame)? {
            Response::Refused(refusal) => Err(ClientFault::Refused(refusal)),
            response => Ok(response),
        }
    }

    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream
    }
}

/// Connects to the gate of a state folder, starting it where that is wanted.
///
/// Clients that start it at the same time end with one gate: its lock decides, and all of them connect to the winner.
///
/// # Errors
/// As [`ClientFault`] says, each with the way out.
pub fn connect(folder: &Path, start: &Start) -> Result<Client, ClientFault> {
    let state = StateFolder::at(folder)?;
    if let Some(client) = try_connect(&state)? {
        return Ok(client);
    }
    match start {
        Start::Never => Err(ClientFault::NotRunning {
            folder: folder.to_owned(),
        }),
        Start::Background { program, arguments } => {
            let environment = environment(&state);
            wait_for(&state, || spawn(program, arguments, &environment))
        }
    }
}

/// `None` when nothing listens.
fn try_connect(state: &StateFolder) -> Result<Option<Client>, ClientFault> {
    let owner = state.owner()?;
    let socket = state.socket();
    match fs::symlink_metadata(&socket) {
        Ok(found) if found.uid() != owner => return Err(ClientFault::Impostor { socket }),
        Ok(_) => {}
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(fault) => return Err(FrameFault::from(fault).into()),
    }
    match UnixStream::connect(&socket) {
        Ok(stream) => Ok(Some(Client { stream })),
        Err(fault) => match fault.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(FrameFault::from(fault).into()),
        },
    }
}

//= PROFILE §4: what a server is given comes from the applied configuration alone
/// What of this process's environment the gate is given: what names the user's places and language, and what the applied
/// configuration says that servers get. The rest is nobody's business there: a gate lives longer than the shell, or the
/// agent, that happened to start it.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that hands an environment on to the gate"
)]
fn environment(state: &StateFolder) -> Vec<(OsString, OsString)> {
    // A store that cannot be read is for the gate to complain about.
    let passed = state.passed_names().unwrap_or_default();
    std::env::vars_os()
        .filter(|(name, _)| is_kept(name, &passed))
        .collect()
}

fn is_kept(name: &OsStr, passed: &BTreeSet<String>) -> bool {
    name.to_str().is_some_and(|name| {
        KEPT.contains(&name)
            || KEPT_FAMILIES.iter().any(|start| name.starts_with(start))
            || passed.contains(name)
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one place that starts the gate in the background; it causes no effect of an act"
)]
fn spawn(
    program: &Path,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<Child, ClientFault> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().map_err(|fault| ClientFault::Start {
        reason: fault.to_string(),
        status: Class::Fault.status(),
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "a client waits for a socket to appear, with a bound; nothing is decided by this clock"
)]
fn wait_for(
    state: &StateFolder,
    start: impl Fn() -> Result<Child, ClientFault>,
) -> Result<Client, ClientFault> {
    let until = Instant::now() + WAIT;
    let mut pause = Duration::from_millis(2);
    let mut child = start()?;
    let mut lost: Option<(Instant, String)> = None;
    while Instant::now() < until {
        if let Some(client) = try_connect(state)? {
            return Ok(client);
        }
        match &lost {
            None => lost = lost_race(&mut child)?.map(|said| (Instant::now(), said)),
            // The one that had the folder may have been on its way out.
            Some((since, _)) if since.elapsed() > AGAIN => {
                child = start()?;
                lost = None;
            }
            Some(_) => {}
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    Err(match lost {
        Some((_, reason)) => ClientFault::Start {
            reason,
            status: Class::Refused.status(),
        },
        None => ClientFault::Slow { log: state.log() },
    })
}

/// What a started gate said that ended because another one has the folder, whose socket will come. `None` while it runs.
fn lost_race(child: &mut Child) -> Result<Option<String>, ClientFault> {
    let Ok(Some(status)) = child.try_wait() else {
        return Ok(None);
    };
    let status = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(Class::Fault.status());
    let reason = said(child);
    if status == Class::Refused.status() {
        return Ok(Some(reason));
    }
    Err(ClientFault::Start {
        reason,
        status: status.max(Class::Usage.status()),
    })
}

/// What an ended gate said on its way out.
fn said(child: &mut Child) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // A fault while reading leaves what was read so far.
        let _ = stderr.take(4096).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    if text.is_empty() {
        "it ended without a word".to_owned()
    } else {
        text.lines()
            .map(lychgate_core::display::escape)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Variables that a gate in the background keeps.
const KEPT: [&str; 7] = ["HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER"];
/// How the names of further ones begin.
const KEPT_FAMILIES: [&str; 3] = ["LC_", "LYCHGATE_", "XDG_"];
/// How long a started gate may take to listen.
const WAIT: Duration = Duration::from_secs(10);
/// How long the winner of a race may take before it is thought to have ended.
const AGAIN: Duration = Duration::from_millis(700);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_gate_keeps_places_language_and_what_servers_are_given() {
        let passed = BTreeSet::from(["TOKEN".to_owned()]);
        for name in [
            "HOME",
            "PATH",
            "LC_ALL",
            "XDG_STATE_HOME",
            "LYCHGATE_CONFIG",
            "TOKEN",
        ] {
            assert!(is_kept(OsStr::new(name), &passed), "{name}");
        }
        for name in [
            "LD_PRELOAD",
            "AWS_SECRET_ACCESS_KEY",
            "TOKEN2",
            "PATHS",
            "NODE_OPTIONS",
        ] {
            assert!(!is_kept(OsStr::new(name), &passed), "{name}");
        }
    }
}
