//! Bounded decoding of what may hide a value: percent, base64 and hex, at most twice over.

/// What a stretch of text decodes to, if it is one of the encodings and gives readable text.
pub(crate) fn decoded(chunk: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut next = vec![chunk.to_owned()];
    for _ in 0..DEPTH {
        let here = next.iter().flat_map(|text| once(text)).collect::<Vec<_>>();
        found.extend(here.iter().cloned());
        next = here;
    }
    found
}

fn once(chunk: &str) -> Vec<String> {
    if chunk.len() > LONGEST {
        return Vec::new();
    }
    let ways = [percent(chunk), hex(chunk), base64(chunk)];
    ways.into_iter().flatten().filter_map(readable).collect()
}

/// Whether a chunk is worth a try at all.
pub(crate) fn may_be_encoded(chunk: &str) -> bool {
    if chunk.len() > LONGEST {
        return false;
    }
    let bytes = chunk.as_bytes();
    if bytes.contains(&b'%') {
        return true;
    }
    chunk.len() >= SHORTEST
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=-_".contains(b))
        && (bytes.iter().any(u8::is_ascii_digit) || bytes.ends_with(b"=") || mixed(bytes))
}

/// Capitals inside a word: prose has them at its start only.
fn mixed(bytes: &[u8]) -> bool {
    let inside = bytes.get(1..).unwrap_or_default();
    inside.iter().any(u8::is_ascii_uppercase) && inside.iter().any(u8::is_ascii_lowercase)
}

fn readable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let odd = text.chars().any(|c| c.is_control() && !c.is_whitespace());
    (!odd && text.len() >= 3).then_some(text)
}

fn percent(chunk: &str) -> Option<Vec<u8>> {
    let bytes = chunk.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let (mut at, mut any) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        let pair = bytes
            .get(at + 1)
            .zip(bytes.get(at + 2))
            .and_then(|(a, b)| Some(nibble(*a)? << 4 | nibble(*b)?));
        match (byte, pair) {
            (b'%', Some(value)) => {
                out.push(value);
                any = true;
                at += 3;
            }
            _ => {
                out.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    any.then_some(out)
}

fn hex(chunk: &str) -> Option<Vec<u8>> {
    let bytes = chunk.as_bytes();
    if bytes.len() < SHORTEST || bytes.len() % 2 != 0 {
        return None;
    }
    bytes
        .chunks_exact(2)
        .map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?))
        .collect()
}

fn base64(chunk: &str) -> Option<Vec<u8>> {
    let chunk = chunk.trim_end_matches('=');
    if chunk.len() + 3 < SHORTEST {
        return None;
    }
    let mut out = Vec::with_capacity(chunk.len());
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in chunk.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from(bits >> held & 0xff).ok()?);
        }
    }
    Some(out)
}

const fn nibble(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// How often over.
const DEPTH: usize = 2;
/// Shorter than this is a word, not an encoding.
const SHORTEST: usize = 12;
/// Longer than this is not looked into.
pub(crate) const LONGEST: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_encodings_and_one_within_another() {
        assert!(decoded("jay%40google.com").contains(&"jay@google.com".to_owned()));
        assert!(decoded("6a617940676f6f676c652e636f6d").contains(&"jay@google.com".to_owned()));
        assert!(decoded("amF5QGdvb2dsZS5jb20=").contains(&"jay@google.com".to_owned()));
        assert!(decoded("amF5JTQwZ29vZ2xlLmNvbQ==").contains(&"jay@google.com".to_owned()));
        assert!(decoded("hello").is_empty());
    }
}
