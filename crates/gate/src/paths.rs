//! Where a path really leads (CASES "Files").

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use lychgate_policy::{PathRefused, Paths};

/// Resolves paths against the real file system and knows which ones no sink may touch.
#[derive(Clone, Debug)]
pub struct RealPaths {
    forbidden: Vec<PathBuf>,
}

impl RealPaths {
    /// `forbidden` are files or folders (the gate's state and configuration, the clients' configuration files) that
    /// are no target for any sink, whether or not they exist yet (PROFILE §10).
    pub fn new(forbidden: impl IntoIterator<Item = PathBuf>) -> Self {
        let forbidden = forbidden
            .into_iter()
            .map(|path| resolve(&path).unwrap_or(path))
            .collect();
        Self { forbidden }
    }
}

impl Paths for RealPaths {
    fn resolve(&self, path: &str, base: Option<&Path>) -> Result<PathBuf, PathRefused> {
        if path.is_empty() || path.contains('\0') {
            return Err(PathRefused("it is empty or holds a NUL"));
        }
        let full = match base {
            Some(base) => base.join(path),
            None => PathBuf::from(path),
        };
        resolve(&full).ok_or(PathRefused(
            "it is relative, climbs through a name that does not exist, or cannot be followed",
        ))
    }

    fn forbidden(&self, path: &Path) -> bool {
        self.forbidden.iter().any(|place| path.starts_with(place))
    }

    fn holds_forbidden(&self, path: &Path) -> bool {
        self.forbidden.iter().any(|place| place.starts_with(path))
    }
}

/// The real path of `path`: its longest existing ancestor with every symbolic link followed, then the names that do not
/// exist yet. `None` when it is relative, climbs with `..` through a name that does not exist, or cannot be read.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut missing: Vec<OsString> = Vec::new();
    let mut base = path.to_path_buf();
    loop {
        // A dangling link exists as a name but not as a target: where it will lead is not known, so it is refused.
        match (base.canonicalize(), base.symlink_metadata()) {
            (Ok(real), _) => {
                return Some(
                    missing
                        .iter()
                        .rev()
                        .fold(real, |path, name| path.join(name)),
                );
            }
            (Err(_), Ok(_)) => return None,
            (Err(fault), Err(_)) if fault.kind() != std::io::ErrorKind::NotFound => return None,
            (Err(_), Err(_)) => {}
        }
        match base.components().next_back()? {
            Component::Normal(name) => missing.push(name.to_owned()),
            _ => return None,
        }
        base.pop();
    }
}
