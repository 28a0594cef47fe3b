//! Where a path really leads (CASES "Files").

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
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

    /// Whether a file with several names (hard links) has one of them in a forbidden place.
    fn is_second_name(&self, path: &Path) -> bool {
        let Ok(found) = path.symlink_metadata() else {
            return false;
        };
        found.is_file()
            && found.nlink() > 1
            && self
                .forbidden
                .iter()
                .any(|place| holds(place, &found, DEPTH))
    }
}

/// Whether a file of this identity lies at or beneath `place`, at most `depth` folders down. What cannot be read does
/// not count: the gate can read its own.
fn holds(place: &Path, file: &Metadata, depth: usize) -> bool {
    let Ok(here) = place.symlink_metadata() else {
        return false;
    };
    if here.is_file() {
        return here.dev() == file.dev() && here.ino() == file.ino();
    }
    if !here.is_dir() || depth == 0 {
        return false;
    }
    let Ok(entries) = std::fs::read_dir(place) else {
        return false;
    };
    entries
        .flatten()
        .take(MOST_ENTRIES)
        .any(|entry| holds(&entry.path(), file, depth - 1))
}

/// The path with each `..` taking back the name before it, as programs do that do not look at the file system.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
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
        let climbs = full.components().any(|part| part == Component::ParentDir);
        let shared = full.starts_with(SHARED) && !climbs;
        if !shared && PROCESS_OWN.iter().any(|place| full.starts_with(place)) {
            return Err(PathRefused("it means another thing to each process"));
        }
        let real = resolve(&full).ok_or(PathRefused(
            "it is relative, climbs through a name that does not exist, or cannot be followed",
        ))?;
        // `link/..` is where the link leads to for some programs and where the link lies for others.
        if climbs && resolve(&lexical(&full)).as_ref() != Some(&real) {
            return Err(PathRefused(
                "`..` behind a link leads to different places for different programs",
            ));
        }
        Ok(real)
    }

    fn forbidden(&self, path: &Path) -> bool {
        self.forbidden.iter().any(|place| path.starts_with(place)) || self.is_second_name(path)
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
        // One look whether the name is there: following every name on the way costs a look each.
        match base.symlink_metadata() {
            Ok(_) => {
                // A dangling link exists as a name but not as a target: where it will lead is not known, so it is
                // refused.
                let real = base.canonicalize().ok()?;
                let names = missing.iter().rev();
                return Some(names.fold(real, |path, name| path.join(name)));
            }
            Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => return None,
            Err(_) => {}
        }
        match base.components().next_back()? {
            Component::Normal(name) => missing.push(name.to_owned()),
            _ => return None,
        }
        base.pop();
    }
}

/// Trees whose entries are each process's own: what the gate sees there is not what a server sees.
const PROCESS_OWN: [&str; 2] = ["/proc", "/dev"];
/// Files in memory, the same for everybody.
const SHARED: &str = "/dev/shm";
/// How far down a forbidden folder a second name is looked for, and among how many entries of each folder.
const DEPTH: usize = 3;
const MOST_ENTRIES: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_two_readings_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        let paths = RealPaths::new([]);
        let resolve = |path: &str| paths.resolve(path, Some(&root));
        assert_eq!(resolve("a/b/../new.txt").unwrap(), root.join("a/new.txt"));
        assert!(
            resolve("link/../new.txt").is_err(),
            "a/new.txt to some, new.txt to others"
        );
        assert_eq!(resolve("link/new.txt").unwrap(), root.join("a/b/new.txt"));
        for path in [
            "/proc/self/root/etc/passwd",
            "/proc/self/fd/3",
            "/dev/fd/3",
            "/dev/stdin",
            "missing/../x",
        ] {
            assert!(resolve(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_second_name_of_a_forbidden_file_is_forbidden() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("gate/keys")).unwrap();
        std::fs::write(root.join("gate/keys/ped.key"), "secret").unwrap();
        std::fs::hard_link(root.join("gate/keys/ped.key"), root.join("innocent.txt")).unwrap();
        std::fs::write(root.join("other.txt"), "x").unwrap();
        std::fs::hard_link(root.join("other.txt"), root.join("another.txt")).unwrap();
        let paths = RealPaths::new([root.join("gate")]);
        assert!(paths.forbidden(&root.join("innocent.txt")));
        assert!(!paths.forbidden(&root.join("another.txt")));
        assert!(paths.forbidden(&root.join("gate/new")));
    }
}
