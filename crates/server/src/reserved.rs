//! The places no sink may touch: the gate's own files and the files by which clients find their servers (PROFILE §10).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use lychgate_gate::RealPaths;
use lychgate_policy::{PathRefused, Paths};

/// Files and folders that say which programs a client starts, by how their paths end. A folder stands for everything in
/// it. They are found in a user's home, in projects, and in parts of projects: wherever they lie.
pub const CLIENT_FILES: &[&str] = &[
    ".amazonq",
    ".claude",
    ".claude.json",
    ".codeium/windsurf",
    ".codex",
    ".config/Claude",
    ".config/Code/User",
    ".config/Cursor/User",
    ".config/goose",
    ".config/opencode",
    ".config/zed",
    ".continue",
    ".copilot",
    ".cursor",
    ".gemini",
    ".kiro",
    ".mcp.json",
    ".qwen",
    ".roo",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".windsurf",
    ".zed",
    "claude_desktop_config.json",
    "cline_mcp_settings.json",
    "mcp_settings.json",
    "opencode.json",
];

/// Where the gate's own things and the user's home are.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The state folder.
    pub state: PathBuf,
    /// The configuration file; the pinned definitions lie beside it.
    pub config_file: Option<PathBuf>,
    /// The client user's home.
    pub home: Option<PathBuf>,
    /// The ledger's anchors.
    pub anchors: Vec<PathBuf>,
}

/// The places that no sink may even read in passing: the gate's own, and the clients' of this user.
pub fn private(places: &Places) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::from([places.state.clone()]);
    all.extend(places.anchors.iter().cloned());
    if let Some(file) = &places.config_file {
        all.insert(file.clone());
        all.extend(file.parent().map(|folder| folder.join("pins")));
    }
    if let Some(home) = &places.home {
        all.extend(CLIENT_FILES.iter().map(|file| home.join(file)));
    }
    all
}

/// Whether a path is, or lies beneath, a file or folder of [`CLIENT_FILES`], wherever that is. Letter case does not
/// count: there are file systems where it does not.
pub fn is_client_file(path: &Path) -> bool {
    let parts = normal(path);
    CLIENT_FILES.iter().any(|file| {
        let file = normal(Path::new(file));
        parts.windows(file.len()).any(|window| same(window, &file))
    })
}

/// Whether a path names a folder in which a file of [`CLIENT_FILES`] would lie, so that what is moved there may hold one.
fn is_client_folder(path: &Path) -> bool {
    let parts = normal(path);
    CLIENT_FILES.iter().any(|file| {
        let file = normal(Path::new(file));
        (1..file.len())
            .filter_map(|length| file.get(..length))
            // Many programs keep things of their own there; the user's own is reserved by its place.
            .filter(|head| *head != [OsStr::new(".config")])
            .any(|head| {
                let at = parts.len().saturating_sub(head.len());
                parts.get(at..).is_some_and(|tail| same(tail, head))
            })
    })
}

/// Whether a folder holds a file of [`CLIENT_FILES`] now. A folder too large or too closed to tell counts as one that
/// does.
fn holds_client_file(path: &Path) -> bool {
    let mut folders = vec![path.to_owned()];
    let mut seen = 0_u32;
    while let Some(folder) = folders.pop() {
        // What is no folder, or not there yet, holds nothing. A link is not followed: it is moved as a link.
        if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else {
            return true;
        };
        for entry in entries {
            seen += 1;
            let Some(entry) = entry.ok().filter(|_| seen <= MOST_ENTRIES) else {
                return true;
            };
            let path = entry.path();
            if is_client_file(&path) {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    false
}

fn normal(path: &Path) -> Vec<&OsStr> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect()
}

fn same(one: &[&OsStr], other: &[&OsStr]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// The real file system, and what no sink may touch in it.
#[derive(Debug)]
pub struct LivePaths {
    private: RealPaths,
}

impl LivePaths {
    /// Of a gate's places.
    pub fn new(places: &Places) -> Self {
        Self {
            private: RealPaths::new(private(places)),
        }
    }
}

impl Paths for LivePaths {
    fn resolve(&self, path: &str, base: Option<&Path>) -> Result<PathBuf, PathRefused> {
        self.private.resolve(path, base)
    }

    fn forbidden(&self, path: &Path) -> bool {
        self.private.forbidden(path) || is_client_file(path)
    }

    fn holds_forbidden(&self, path: &Path) -> bool {
        self.private.holds_forbidden(path) || is_client_folder(path) || holds_client_file(path)
    }

    fn holds_private(&self, path: &Path) -> bool {
        self.private.holds_forbidden(path)
    }
}

/// More than this beneath a folder is not looked through: moving it is refused.
const MOST_ENTRIES: u32 = 50_000;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn client_files_are_found_at_any_depth_and_in_any_letter_case() {
        for path in [
            "/home/a/.claude.json",
            "/home/a/.claude/settings.json",
            "/home/a/.config/Claude/claude_desktop_config.json",
            "/srv/work/.mcp.json",
            "/srv/work/packages/one/.mcp.json",
            "/srv/work/a/.cursor/mcp.json",
            "/srv/work/a/.cursor/rules/x.mdc",
            "/srv/work/a/.codex/config.toml",
            "/srv/work/a/.gemini/settings.json",
            "/srv/work/a/.vscode/tasks.json",
            "/srv/work/a/.VSCode/Settings.json",
            "/srv/work/a/.vscode/launch.json",
            "/srv/work/a/.vscode/mcp.json",
            "/home/a/.codeium/windsurf/mcp_config.json",
        ] {
            assert!(is_client_file(Path::new(path)), "{path}");
        }
        for path in [
            "/srv/work/.vscode",
            "/srv/work/.vscode/extensions.json",
            "/srv/work/mcp.json",
            "/srv/work/settings.json",
            "/srv/work/claude",
            "/srv/work/.claude-notes/x",
            "/srv/work/.config/app.toml",
        ] {
            assert!(!is_client_file(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_folder_that_holds_or_would_hold_one_is_not_moved_or_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b/.vscode")).unwrap();
        fs::create_dir_all(root.join("plain/sub")).unwrap();
        let paths = LivePaths::new(&Places {
            state: root.join("state"),
            ..Places::default()
        });
        for name in ["a", "plain", "plain/sub", "missing", ".config"] {
            assert!(!paths.holds_forbidden(&root.join(name)), "{name}");
        }
        fs::write(root.join("a/b/.vscode/tasks.json"), "{}").unwrap();
        for name in ["a", "a/b", "a/b/.vscode", ".vscode", "plain/.VSCODE"] {
            assert!(paths.holds_forbidden(&root.join(name)), "{name}");
        }
        assert!(paths.holds_forbidden(&root), "the state folder is in it");
        assert!(paths.holds_private(&root));
        assert!(
            !paths.holds_private(&root.join("a")),
            "a project with client files may be searched"
        );
    }

    #[test]
    fn the_gates_own_files_are_reserved_before_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let paths = LivePaths::new(&Places {
            state: root.join("state"),
            config_file: Some(root.join("config/lychgate.toml")),
            home: Some(root.join("home")),
            anchors: vec![root.join("anchors/log.checkpoint")],
        });
        for name in [
            "anchors/log.checkpoint",
            "state/store.db",
            "config/lychgate.toml",
            "config/pins/s.json",
            "home/.config/zed/settings.json",
        ] {
            assert!(paths.forbidden(&root.join(name)), "{name}");
        }
        assert!(!paths.forbidden(&root.join("config/other.toml")));
        for name in ["config", "home", "home/.config"] {
            assert!(paths.holds_private(&root.join(name)), "{name}");
        }
    }
}
