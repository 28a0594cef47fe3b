//! How a server's process is started: command, folder and environment from the applied configuration alone, nothing
//! inherited (PROFILE §4), in a process group of its own.

use lychgate_gate::log::Shown;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lychgate_policy::{Root, Server};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdout, Command};

/// What to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program, absolute, and its arguments.
    pub command: Vec<String>,
    /// The working folder; `/` when none is given, so that nothing depends on where the gate was started.
    pub cwd: Option<PathBuf>,
    /// Literal variables.
    pub env: BTreeMap<String, String>,
    /// Names copied from the gate's own environment.
    pub pass_env: Vec<String>,
    /// The declared roots, for `roots/list`.
    pub roots: Vec<Root>,
    /// How long to wait for an answer while inspecting.
    pub timeout: Duration,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchFault {
    /// The configuration has no command.
    #[error("the server has no command")]
    NoCommand,
    /// The operating system said no.
    #[error("`{program}` cannot be started: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The pipes could not be taken.
    #[error("the server's pipes cannot be used: {0}")]
    Pipes(#[from] std::io::Error),
}

impl LaunchFault {
    /// For the log.
    pub(crate) fn shown(&self) -> Shown<'_> {
        match self {
            Self::NoCommand => "the server has no command".into(),
            Self::Spawn { source, .. } | Self::Pipes(source) => source.into(),
        }
    }
}

/// A running server.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: ChildStdout,
}

impl Launch {
    /// As the applied configuration says.
    pub fn of(server: &Server) -> Self {
        Self {
            command: server.command.clone(),
            cwd: server.cwd.clone(),
            env: server.env.clone(),
            pass_env: server.pass_env.clone(),
            roots: server.roots.clone(),
            timeout: server.timeout,
        }
    }

    pub(crate) fn start(&self) -> Result<Running, LaunchFault> {
        let (program, arguments) = self.command.split_first().ok_or(LaunchFault::NoCommand)?;
        #[allow(
            clippy::disallowed_methods,
            reason = "a sink starts the server it gates"
        )]
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.passed())
            .envs(&self.env)
            .current_dir(self.cwd.as_deref().unwrap_or(Path::new("/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let spawned = command.spawn();
        let mut child = spawned.map_err(|source| LaunchFault::Spawn {
            program: program.clone(),
            source,
        })?;
        let missing = || std::io::Error::other("a pipe is missing");
        let stdin = child.stdin.take().ok_or_else(missing)?.into_owned_fd()?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        if let Some(mut stderr) = child.stderr.take() {
            // A server's log may hold anything, arguments included: it is read, so that the server does not block on
            // it, and kept nowhere.
            tokio::spawn(async move {
                let mut bytes = [0; 8192];
                while matches!(stderr.read(&mut bytes).await, Ok(1..)) {}
            });
        }
        Ok(Running {
            child,
            stdin: pipe::Sender::from_owned_fd(stdin)?,
            stdout,
        })
    }

    fn passed(&self) -> Vec<(String, std::ffi::OsString)> {
        #[allow(
            clippy::disallowed_methods,
            reason = "only the names the configuration lists are read"
        )]
        let read = |name: &String| std::env::var_os(name).map(|value| (name.clone(), value));
        self.pass_env.iter().filter_map(read).collect()
    }
}

/// Ends a child: end of its input, then SIGTERM, then SIGKILL to its whole process group.
pub(crate) async fn end(mut child: Child) {
    let group = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if tokio::time::timeout(PATIENCE, child.wait()).await.is_ok() {
        // The leader is gone; what it left behind in its group goes too.
        signal(group, rustix::process::Signal::KILL);
        return;
    }
    signal(group, rustix::process::Signal::TERM);
    if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
        signal(group, rustix::process::Signal::KILL);
        drop(child.wait().await);
    }
}

fn signal(group: Option<rustix::process::Pid>, signal: rustix::process::Signal) {
    if let Some(group) = group {
        // It may have ended by itself; that is what is wanted.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// How long a child may take to end before it is asked more firmly.
const PATIENCE: Duration = Duration::from_secs(2);
