//! What a tool's, function's or method's name may be made of (PROFILE §8). One rule for what a client names, a server
//! lists and a catalogue writes, so that the three can never disagree on which names exist.

//= PROFILE §8: names have ASCII letters, digits, `_ - . /`; anything else is refused
/// Whether a text may be a name: 1 to [`LONGEST`] bytes of ASCII letters, digits and `_ - . /`.
pub fn is_name(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/'))
}

/// The longest name, in bytes.
pub const LONGEST: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ascii_names_of_a_bounded_length_are_names() {
        for name in [
            "a",
            "read_file",
            "ns/tool-1.2",
            "resources/read",
            &"x".repeat(128),
        ] {
            assert!(is_name(name), "{name}");
        }
        for text in [
            "",
            "a b",
            "tool\u{0}",
            "re\u{430}d",
            "a:b",
            "a\n",
            &"x".repeat(129),
        ] {
            assert!(!is_name(text), "{text:?}");
        }
    }
}
