//! Where things lie: the configuration, the state folder, programs. The environment is read here and nowhere else, and
//! nothing is ever looked up from the working folder unless a flag names it (PROFILE §10).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lychgate_core::Timestamp;
use lychgate_core::display::escape;
use lychgate_core::outside::Clock as _;
use lychgate_server::anchor::default_anchors;
use lychgate_server::state::{StateFault, StateFolder, default_config_file, default_state_dir};

use crate::outcome::{Outcome, Stop};

/// The two places a command works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// `lychgate.toml`, absolute.
    pub(crate) config: PathBuf,
    /// The state folder, absolute.
    pub(crate) state: PathBuf,
}

impl Places {
    /// From the flags, else the user's own folders.
    pub(crate) fn find(config: Option<&Path>, state: Option<&Path>) -> Outcome<Self> {
        let home = home();
        let config = match config {
            Some(path) => absolute(path)?,
            None => default_config_file(
                folder_variable("XDG_CONFIG_HOME").as_deref(),
                home.as_deref(),
            )
            .ok_or_else(|| nowhere("--config FILE"))?,
        };
        let state = match state {
            Some(path) => absolute(path)?,
            None => default_state_dir(
                folder_variable("XDG_STATE_HOME").as_deref(),
                home.as_deref(),
            )
            .ok_or_else(|| nowhere("--state-dir DIR"))?,
        };
        Ok(Self { config, state })
    }

    /// The folder of pinned definitions.
    pub(crate) fn pins(&self) -> PathBuf {
        self.config.with_file_name("pins")
    }

    /// The pinned definitions of one server.
    pub(crate) fn pin(&self, server: &str) -> PathBuf {
        self.pins().join(format!("{server}.json"))
    }

    /// What lies where in the state folder.
    pub(crate) fn folder(&self) -> Outcome<StateFolder> {
        StateFolder::at(&self.state).map_err(state_fault)
    }

    /// The approver's encrypted key.
    pub(crate) fn approver(&self) -> Outcome<PathBuf> {
        Ok(self.folder()?.approver_key())
    }

    /// The encrypted key of one approver of several; without a name the first one's.
    pub(crate) fn approver_named(&self, name: Option<&str>) -> Outcome<PathBuf> {
        let path = self.approver()?;
        let Some(name) = name else { return Ok(path) };
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Err(Stop::usage(format!(
                "`{}` is no approver's name: 1 to 64 small letters, digits and `-`",
                escape(name)
            )));
        }
        Ok(path.with_file_name(format!("approver-{name}.key")))
    }
}

/// What a fault of the state folder is worth.
pub(crate) fn state_fault(fault: StateFault) -> Stop {
    crate::connection::with_status(fault.status(), &fault)
}

/// The user's home.
pub(crate) fn home() -> Option<PathBuf> {
    folder_variable("HOME")
}

/// The folder of the ledger's anchors.
pub(crate) fn anchors() -> Option<PathBuf> {
    default_anchors(
        folder_variable("XDG_DATA_HOME").as_deref(),
        home().as_deref(),
    )
}

/// A path as a person may see it.
pub(crate) fn shown(path: &Path) -> String {
    let full = escape(&path.to_string_lossy());
    let home = home().map(|home| escape(&home.to_string_lossy()));
    match home.and_then(|home| Some(format!("~{}", full.strip_prefix(&home)?))) {
        Some(short) if short == "~" || short.starts_with("~/") => short,
        _ => full,
    }
}

/// A path that a flag named, made absolute; symbolic links stay.
pub(crate) fn absolute(path: &Path) -> Outcome<PathBuf> {
    std::path::absolute(path)
        .map_err(|fault| Stop::usage(format!("`{}`: {fault}", escape(&path.to_string_lossy()))))
}

/// The absolute path of a program: as given when it has a slash, else the first match in `PATH`.
pub(crate) fn program(name: &str) -> Outcome<PathBuf> {
    if name.contains('/') {
        let path = absolute(Path::new(name))?;
        return if is_program(&path) {
            Ok(path)
        } else {
            Err(Stop::usage(format!(
                "`{}` is not a program that can be started",
                escape(name)
            )))
        };
    }
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // A relative entry would mean another program in every folder.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| is_program(candidate))
        .ok_or_else(|| Stop::usage(format!("there is no program `{}` in PATH", escape(name))))
}

/// `user:NAME` of the operating-system user.
pub(crate) fn principal() -> String {
    let named = ["USER", "LOGNAME"]
        .into_iter()
        .filter_map(variable)
        .filter_map(|name| name.into_string().ok());
    let plain = |name: &String| {
        !name.is_empty()
            && name.len() <= 64
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    };
    let user = named.into_iter().find(plain);
    user.map_or_else(
        || format!("user:{}", rustix::process::geteuid().as_raw()),
        |name| format!("user:{name}"),
    )
}

/// Now.
pub(crate) fn now() -> Timestamp {
    lychgate_gate::SteadyClock::start(Timestamp::from_millis(0)).now()
}

/// Whether colours are unwelcome (no-color.org, dumb terminals).
pub(crate) fn no_colour() -> bool {
    variable("NO_COLOR").is_some_and(|value| !value.is_empty())
        || variable("TERM").is_some_and(|term| term == "dumb")
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// A variable that names a folder; a relative one is no folder of the user's.
fn folder_variable(name: &str) -> Option<PathBuf> {
    variable(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the binary reads its environment"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn nowhere(flag: &str) -> Stop {
    Stop::usage("HOME is not set to an absolute path, so there is no folder of yours to use")
        .try_this(format!("lychgate {flag} ..."))
}
