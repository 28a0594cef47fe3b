//! A key of its own in one file, for what is no gate: a witness.

use std::path::Path;

use crate::files::{self, line};
use crate::{KeyFault, SigningKey};

/// The key of a file, made with the file when there is none. `word` says what it is for, and a file that says another is
/// refused. The file's folder is made with mode 0700 if need be.
///
/// # Errors
/// When folder or file is open to others, a symbolic link, another user's, or cannot be read or written; when the file
/// is no such key.
pub fn lone_key(path: &Path, word: &str) -> Result<SigningKey, KeyFault> {
    if let Some(folder) = path.parent() {
        files::create_folder(folder)?;
    }
    if let Some(key) = open(path, word)? {
        return Ok(key);
    }
    let (key, seed) = SigningKey::generate_with_seed()?;
    let text = line::compose(word, &key.key_id().0, &seed);
    files::create(path, text.as_bytes())?;
    Ok(key)
}

fn open(path: &Path, word: &str) -> Result<Option<SigningKey>, KeyFault> {
    let (id, seed) = match line::load_any(path, word) {
        Ok(found) => found,
        Err(KeyFault::Missing { .. }) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let key = SigningKey::from_seed(&seed)?;
    if key.key_id().0 == id {
        Ok(Some(key))
    } else {
        Err(KeyFault::Format {
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_made_once_and_only_for_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/witness.key");
        let made = lone_key(&path, "witness").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(lone_key(&path, "witness").unwrap().public(), made.public());
        assert!(lone_key(&path, "ledger").is_err());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(" witness ", " witness x")).unwrap();
        assert!(lone_key(&path, "witness").is_err());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(lone_key(&path, "witness").is_err());
    }
}
