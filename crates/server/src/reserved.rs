//! The places no sink may touch: the gate's own files and the files by which clients find their servers (PROFILE §10).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use lychgate_gate::RealPaths;
use lychgate_policy::{Applied, PathRefused, Paths};

/// Files and folders below the user's home that say which programs a client starts. A folder stands for everything in it.
pub const CLIENT_FILES: &[&str] = &[
    ".claude.json",
    ".claude",
    ".cursor/mcp.json",
    ".config/Code/User/mcp.json",
    ".config/Code/User/settings.json",
    ".codex",
];

/// The same inside every declared root.
pub const PROJECT_FILES: &[&str] = &[".vscode/mcp.json", ".mcp.json"];

/// Where the gate's own things and the user's home are.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The state folder.
    pub state: PathBuf,
    /// The configuration file; the pinned definitions lie beside it.
    pub config_file: Option<PathBuf>,
    /// The client user's home.
    pub home: Option<PathBuf>,
}

/// Every place that is no target for any sink under a configuration.
pub fn reserved(places: &Places, applied: &Applied) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::from([places.state.clone()]);
    if let Some(file) = &places.config_file {
        all.insert(file.clone());
        all.extend(file.parent().map(|folder| folder.join("pins")));
    }
    if let Some(home) = &places.home {
        all.extend(CLIENT_FILES.iter().map(|file| home.join(file)));
    }
    for root in applied.servers().flat_map(|server| &server.roots) {
        all.extend(PROJECT_FILES.iter().map(|file| root.path.join(file)));
    }
    all
}

/// The real file system, with the reserved places of the configuration that holds now.
#[derive(Debug)]
pub struct LivePaths {
    places: Places,
    now: RwLock<(BTreeSet<PathBuf>, RealPaths)>,
}

impl LivePaths {
    /// Of a configuration.
    pub fn new(places: Places, applied: &Applied) -> Self {
        let all = reserved(&places, applied);
        let real = RealPaths::new(all.clone());
        Self {
            places,
            now: RwLock::new((all, real)),
        }
    }

    /// Reserves what a further configuration reserves. Nothing is given up before the gate ends: a place too many only
    /// denies.
    pub fn also(&self, applied: &Applied) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        now.0.extend(reserved(&self.places, applied));
        now.1 = RealPaths::new(now.0.clone());
    }
}

impl Paths for LivePaths {
    fn resolve(&self, path: &str, base: Option<&Path>) -> Result<PathBuf, PathRefused> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.1.resolve(path, base)
    }

    fn forbidden(&self, path: &Path) -> bool {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.1.forbidden(path)
    }

    fn holds_forbidden(&self, path: &Path) -> bool {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.1.holds_forbidden(path)
    }
}
