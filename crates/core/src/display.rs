//! How a text reaches a person's eyes (CASES "Display").
//!
//! What an approver sees is the digest-bound text with every character that could move, hide or impersonate escaped,
//! on every surface alike; the bytes that run are unchanged. Nothing is cut silently.

use std::fmt::Write as _;

/// Escapes `text` for a terminal, a page or a log: printable ASCII and printable letters of other scripts stay, all
/// else becomes `\u{…}`. The backslash itself is doubled, so the escaped form reads back to exactly one text.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() && !looks_empty(c) => out.push(c),
            // Writing to a String cannot fail.
            c => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    out
}

/// Whether `text` holds letters outside ASCII: a person is told, because such letters can look like others.
pub fn has_foreign_letters(text: &str) -> bool {
    text.chars().any(|c| !c.is_ascii() && c.is_alphanumeric())
}

/// At most `limit` characters of `text`, escaped; what is left out is said, with its length.
pub fn escape_within(text: &str, limit: usize) -> String {
    let escaped = escape(text);
    let total = escaped.chars().count();
    if total <= limit {
        return escaped;
    }
    let half = limit / 2;
    let head: String = escaped.chars().take(half).collect();
    let tail: String = escaped.chars().skip(total - half).collect();
    format!(
        "{head} …[{} characters not shown]… {tail}",
        total - 2 * half
    )
}

/// Alphanumeric to Unicode, yet drawn as nothing or as a space.
fn looks_empty(c: char) -> bool {
    matches!(
        u32::from(c),
        0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x3164 | 0xffa0 | 0x2800 | 0xe0000..=0xe0fff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_hides_or_overwrites_is_escaped() {
        for (raw, shown) in [
            ("rm -rf /\rls", "rm -rf /\\rls"),
            ("\x1b[2Kok", "\\u{1b}[2Kok"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("a\u{fe0f}", "a\\u{fe0f}"),
            ("\u{202e}txt", "\\u{202e}txt"),
            ("\u{e0041}", "\\u{e0041}"),
            ("\u{3164}", "\\u{3164}"),
            ("e\u{301}", "e\\u{301}"),
            ("\\u{1b}", "\\\\u{1b}"),
        ] {
            assert_eq!(escape(raw), shown);
        }
        assert_eq!(escape("Grüße, Zoë"), "Grüße, Zoë");
        assert!(
            has_foreign_letters("pаypal"),
            "a Cyrillic letter is pointed out"
        );
    }

    #[test]
    fn a_hidden_tail_is_shown_and_what_is_left_out_is_said() {
        let padded = format!("harmless{}; rm -rf /", " ".repeat(5000));
        let shown = escape_within(&padded, 200);
        assert!(shown.ends_with("; rm -rf /"));
        assert!(shown.contains("characters not shown"));
    }
}
