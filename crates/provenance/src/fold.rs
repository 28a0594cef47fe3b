//! The one normalisation for both sides of a comparison: NFKC, case folded, invisible characters left out. It is for
//! matching alone; what is sent is never touched.

use icu_normalizer::ComposingNormalizerBorrowed;

/// A text as it is compared, and where each byte of it came from.
pub(crate) struct Folded {
    pub(crate) text: String,
    /// For each byte the offset in the original; empty when the text is ASCII and the offsets are the same.
    from: Vec<u32>,
}

impl Folded {
    /// Where in the original a byte of the folded text came from.
    pub(crate) fn from(&self, at: usize) -> u32 {
        match self.from.is_empty() {
            true => u32::try_from(at).unwrap_or(u32::MAX),
            false => self.from.get(at).or(self.from.last()).copied().unwrap_or(0),
        }
    }
}

/// Folds a text.
pub(crate) fn fold(text: &str) -> Folded {
    if text.is_ascii() {
        return Folded {
            text: text.to_ascii_lowercase(),
            from: Vec::new(),
        };
    }
    let nfkc = ComposingNormalizerBorrowed::new_nfkc();
    let mut folded = Folded {
        text: String::with_capacity(text.len()),
        from: Vec::with_capacity(text.len() + 1),
    };
    let mut rest = 0;
    while rest < text.len() {
        let piece = piece(&text[rest..]);
        let offset = u32::try_from(rest).unwrap_or(u32::MAX);
        if piece.is_ascii() {
            for (i, byte) in piece.bytes().enumerate() {
                folded.text.push(char::from(byte.to_ascii_lowercase()));
                folded
                    .from
                    .push(offset.saturating_add(u32::try_from(i).unwrap_or(0)));
            }
        } else {
            let visible = piece.chars().filter(|c| !invisible(*c)).collect::<String>();
            for c in nfkc
                .normalize(&visible)
                .chars()
                .flat_map(char::to_lowercase)
            {
                folded.text.push(c);
                folded.from.resize(folded.from.len() + c.len_utf8(), offset);
            }
        }
        rest += piece.len();
    }
    folded
}

/// The folded text alone.
pub(crate) fn folded(text: &str) -> String {
    fold(text).text
}

/// The longest start that is ASCII and composes with nothing after it, else one stretch that is not.
fn piece(text: &str) -> &str {
    let plain = text.bytes().take_while(u8::is_ascii).count();
    if plain == text.len() || plain > 1 {
        // The last ASCII character stays with what follows: an accent may stand there.
        let end = if plain == text.len() {
            plain
        } else {
            plain - 1
        };
        return &text[..end];
    }
    let mut end = 0;
    for (at, c) in text.char_indices() {
        if at > 0 && c.is_ascii() && !(at == 1 && plain == 1) {
            break;
        }
        end = at + c.len_utf8();
        if at > 0 && end > PIECE && c.is_whitespace() {
            break;
        }
    }
    &text[..end]
}

/// Characters that show nothing, or only steer how others are shown.
pub(crate) const fn invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A stretch of other scripts is normalised in pieces of about so many bytes.
const PIECE: usize = 64;

/// The words of a folded text: runs of letters and digits; of scripts without spaces, each character.
pub(crate) fn words(folded: &str, mut each: impl FnMut(usize, usize)) {
    let bytes = folded.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_alphanumeric() {
            let start = at;
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                at += 1;
            }
            if at < bytes.len() && !bytes[at].is_ascii() {
                at = end_of_word(folded, at);
            }
            each(start, at);
        } else if bytes[at].is_ascii() {
            at += 1;
        } else {
            let c = folded[at..].chars().next().unwrap_or(' ');
            let next = at + c.len_utf8();
            if lone(c) {
                each(at, next);
                at = next;
            } else if c.is_alphanumeric() {
                let end = end_of_word(folded, at);
                each(at, end);
                at = end;
            } else {
                at = next;
            }
        }
    }
}

fn end_of_word(folded: &str, at: usize) -> usize {
    let rest = &folded[at..];
    let end = rest.find(|c: char| !word_character(c));
    at + end.unwrap_or(rest.len())
}

/// A letter, a digit or an accent that stands alone.
fn word_character(c: char) -> bool {
    (c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}')) && !lone(c)
}

/// Scripts written without spaces.
const fn lone(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' | '\u{e00}'..='\u{e7f}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn list(text: &str) -> Vec<String> {
        let text = folded(text);
        let mut found = Vec::new();
        words(&text, |start, end| found.push(text[start..end].to_owned()));
        found
    }

    #[test]
    fn width_case_and_invisible_characters_make_no_difference_and_letters_do() {
        assert_eq!(folded("Ｊａｎｅ\u{200b}Long"), "janelong");
        assert_eq!(folded("BREIZH Cafe\u{301}"), folded("Breizh Café"));
        assert_ne!(
            folded("pаypal"),
            folded("paypal"),
            "a Cyrillic letter is another letter"
        );
    }

    #[test]
    fn words_are_runs_and_scripts_without_spaces_are_characters() {
        assert_eq!(
            list("Chez L'Ami-Jean 12.5"),
            ["chez", "l", "ami", "jean", "12", "5"]
        );
        assert_eq!(list("北京 Café"), ["北", "京", "café"]);
    }

    proptest::proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in "\\PC{0,40}") {
            let once = folded(&text);
            proptest::prop_assert_eq!(folded(&once), once);
        }

        #[test]
        fn every_byte_knows_where_it_came_from(text in "\\PC{0,40}") {
            let folded = fold(&text);
            for at in 0..folded.text.len() {
                proptest::prop_assert!((folded.from(at) as usize) < text.len());
            }
        }
    }
}
