//! Finding atoms in a folded text, in one pass.

use crate::atom::{self, Atom, Kind};
use crate::date;
use crate::fold::words;

/// Calls `each` with every atom and its place in the folded text.
pub(crate) fn scan(folded: &str, each: &mut dyn FnMut(Atom, usize, usize)) {
    // Up to here one account or telephone number takes everything: its tail is no number of its own.
    let mut taken = 0;
    chunks(folded, |start, end| {
        let chunk = &folded[start..end];
        let bytes = chunk.as_bytes();
        let Some(first) = bytes.first() else { return };
        let special = bytes
            .iter()
            .any(|b| b.is_ascii_digit() || matches!(b, b'@' | b'.' | b'/' | b'\\' | b':'));
        if special {
            atom::of_chunk(chunk, &mut |atom| each(atom, start, end));
            if start >= taken
                && (*first == b'+' || first.is_ascii_digit())
                && let Some(long) = spaced_phone(folded, start, end, each)
            {
                taken = start + long;
            }
            if bytes.len() == 4
                && bytes[..2].iter().all(u8::is_ascii_lowercase)
                && let Some((atom, long)) = atom::grouped_account(&folded[start..])
            {
                each(atom, start, start + long);
                taken = start + long;
            }
        } else if first.is_ascii_lowercase() && (3..=10).contains(&bytes.len()) {
            let word = chunk.trim_end_matches(['.', ',']);
            if date::month(word).is_some() {
                spelled(folded, start, start + word.len(), each);
            }
        }
    });
}

/// The atoms that a whole value is, when it is nothing else besides.
pub(crate) fn whole(folded: &str) -> Vec<Atom> {
    let value = folded.trim();
    let mut found = Vec::new();
    if value.is_empty() || value.len() > LONGEST {
        return found;
    }
    let days = date::numeric(value);
    if !days.is_empty() && clock(value) {
        return days.into_iter().map(Atom::day).collect();
    }
    if let Some((atom, end)) = atom::grouped_account(value)
        && end == value.len()
    {
        found.push(atom);
    } else if let Some(phone) = atom::phone(value) {
        found.push(Atom::new(Kind::Phone, phone));
    } else if !value.contains(char::is_whitespace) {
        atom::of_chunk(value, &mut |atom| found.push(atom));
        // Of a URL the whole counts, not whose it is.
        if found.iter().any(|atom| atom.kind == Kind::Url) {
            found.retain(|atom| atom.kind != Kind::Host);
        }
    }
    found
}

/// Stretches between blanks, brackets, quotes and separators. A comma inside a number separates nothing.
pub(crate) fn chunks(text: &str, mut each: impl FnMut(usize, usize)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let parts = SEPARATES[usize::from(*byte)] && !(*byte == b',' && thousands(bytes, at));
        if parts {
            if at > start {
                each(start, at);
            }
            start = at + 1;
        }
    }
    if bytes.len() > start {
        each(start, bytes.len());
    }
}

fn thousands(bytes: &[u8], at: usize) -> bool {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    at > 0 && digit(at - 1) && digit(at + 1) && digit(at + 2) && digit(at + 3) && !digit(at + 4)
}

/// Nothing but a time stands behind the date.
fn clock(value: &str) -> bool {
    let rest = value.find(['t', ' ']).map_or("", |at| &value[at..]);
    rest.bytes()
        .all(|b| b.is_ascii_digit() || b"t :.+-zapm".contains(&b))
}

fn spelled(folded: &str, start: usize, end: usize, each: &mut dyn FnMut(Atom, usize, usize)) {
    let from = floor(folded, start.saturating_sub(64));
    let to = floor(folded, (end + 24).min(folded.len()));
    let window = &folded[from..to];
    let mut list = Vec::new();
    let mut at = None;
    words(window, |first, last| {
        if from + first == start {
            at = Some(list.len());
        }
        list.push(&window[first..last]);
    });
    if let Some(at) = at {
        for day in date::spelled(&list, at) {
            each(Atom::day(day), start, end);
        }
    }
}

/// A telephone number over several chunks, from the start of the first: how long it is.
fn spaced_phone(
    folded: &str,
    start: usize,
    end: usize,
    each: &mut dyn FnMut(Atom, usize, usize),
) -> Option<usize> {
    let rest = folded.as_bytes()[start..].iter().take(24);
    let long = rest
        .take_while(|b| b.is_ascii_digit() || b"+ -.()".contains(b))
        .count();
    let text = folded[start..start + long].trim_end_matches([' ', '-', '.', '(', ')']);
    if start + text.len() <= end {
        return None;
    }
    let phone = atom::phone(text)?;
    each(Atom::new(Kind::Phone, phone), start, start + text.len());
    Some(text.len())
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A longer value is a text, not an atom.
const LONGEST: usize = 2048;

const SEPARATES: [bool; 256] = {
    let mut table = [false; 256];
    let list = b" \t\r\n()[]{}<>\"'`|;,";
    let mut at = 0;
    while at < list.len() {
        table[list[at] as usize] = true;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        scan(&crate::fold::folded(text), &mut |atom, _, _| {
            found.push(atom.text)
        });
        found
    }

    #[test]
    fn atoms_are_found_in_running_text() {
        assert_eq!(
            all("Pay 1,200.50 to GB29 NWBK 6016 1331 9268 19 on May 1st, 2024 (see www.x.com/a)."),
            [
                "1200.5",
                "gb29nwbk60161331926819",
                "6016",
                "1331",
                "9268",
                "19",
                "2024-05-01",
                "1",
                "2024",
                "x.com",
                "x.com/a"
            ]
            .into_iter()
            .filter(|one| *one != "1")
            .collect::<Vec<_>>()
        );
        assert_eq!(
            all("call +44 20 7946 0958 now"),
            ["44", "442079460958", "20", "7946", "958"]
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_value_is_an_atom_only_as_a_whole() {
        let kinds = |text: &str| {
            whole(text)
                .into_iter()
                .map(|atom| atom.kind)
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds("2025-01-02 00:00"), [Kind::Date]);
        assert_eq!(kinds("jane@google.com"), [Kind::Email]);
        assert_eq!(kinds("jane@google.com and others"), []);
        assert_eq!(kinds("https://x.com/a"), [Kind::Url]);
        assert_eq!(kinds("98.7"), [Kind::Number]);
    }
}
