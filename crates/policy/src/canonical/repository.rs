//! Repositories: a git URL, the `user@host:path` form, or `owner/name`.

use super::{Name, host};
use crate::reach::Unresolved;

/// `host/path` without `.git`, or `owner/name` where no host is written.
pub(crate) fn repository(text: &str) -> Result<Name, Unresolved> {
    let refused = || Unresolved::new("a repository is neither a git url nor `owner/name`");
    let (host, path) = if let Some((scheme, rest)) = text.split_once("://") {
        let (authority, path) = rest.split_once('/').ok_or_else(refused)?;
        match scheme {
            "https" if !authority.contains('@') => (Some(host::host_and_port(authority)?), path),
            "ssh" => (
                Some(host::host_and_port(
                    authority.strip_prefix("git@").unwrap_or(authority),
                )?),
                path,
            ),
            // `ext::`, `file://`, `git://` and the rest run commands, read files or are not protected.
            _ => return Err(refused()),
        }
    } else if let Some(rest) = text.strip_prefix("git@") {
        let (authority, path) = rest.split_once(':').ok_or_else(refused)?;
        (Some(host::host_and_port(authority)?), path)
    } else {
        (None, text)
    };
    let path = path.strip_suffix(".git").unwrap_or(path);
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    let parts = path.split('/').collect::<Vec<_>>();
    let count = if host.is_some() { 1..=8 } else { 2..=2 };
    if path.len() > 256 || !count.contains(&parts.len()) || !parts.iter().all(|one| part(one)) {
        return Err(refused());
    }
    Ok(match host {
        Some(host) => Name {
            id: format!("{}/{path}", host.id),
            ..host
        },
        None => Name {
            id: path.to_owned(),
            host: Some(String::new()),
            metadata: false,
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn one_repository_has_one_name() {
        for (text, id) in [
            (
                "https://Git.Example/owner/name.git",
                "git.example/owner/name",
            ),
            ("git@git.example:owner/name.git", "git.example/owner/name"),
            ("ssh://git@git.example/owner/name", "git.example/owner/name"),
            ("owner/name", "owner/name"),
        ] {
            assert_eq!(repository(text).unwrap().id, id);
        }
        for bad in [
            "",
            "name",
            "a/b/c",
            "../name",
            "owner/..",
            "-oProxyCommand=x/y",
            "ext::sh -c x",
            "file:///x/y",
            "https://user:pass@git.example/o/n",
            "https://git.example",
            "git@git.example:../x",
            "o/n\n",
            "o\\n/x",
            "https://git.example/o/n?x",
            "https://git.example/o/n#x",
            "оwner/name",
        ] {
            assert!(repository(bad).is_err(), "{bad:?}");
        }
    }
}
