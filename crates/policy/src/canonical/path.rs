//! What a path's text must not contain before the machine is asked about it.

use super::LONGEST;
use crate::reach::Unresolved;

/// Refuses texts that a server may read as another path than the gate does: `~`, URLs, control characters.
pub(crate) fn check(text: &str) -> Result<(), Unresolved> {
    if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(Unresolved::new(
            "a path is empty, too long or has control characters",
        ));
    }
    // Several servers expand a home folder or take a file URL; the gate cannot know which.
    if text.starts_with('~')
        || text.contains("://")
        || text.to_ascii_lowercase().starts_with("file:")
    {
        return Err(Unresolved::new("a path begins with `~` or is a URL"));
    }
    if text.trim() != text || text.starts_with(['"', '\'']) || text.contains('\\') {
        return Err(Unresolved::new(
            "a path has outer white space, quotes or backslashes, which servers rewrite",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn files_texts_that_servers_rewrite_are_refused() {
        for bad in [
            "",
            "~",
            "~/x",
            "~root/x",
            "file:///etc/passwd",
            "FILE:/etc",
            "a\0b",
            "a\nb",
            " /x",
            "/x ",
            "\"/x\"",
            "C:\\x",
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        for good in ["/x", "x/y", "./x", "/x y/z", "/ünïcode"] {
            assert!(check(good).is_ok(), "{good:?}");
        }
    }
}
