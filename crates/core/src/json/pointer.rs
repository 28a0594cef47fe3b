//! JSON pointers (RFC 6901): how a fault says where it is.

/// Puts `token` before the pointer: a fault's pointer is built from the inside out.
pub(super) fn prepend(pointer: &mut String, token: &str) {
    let escaped = token.replace('~', "~0").replace('/', "~1");
    *pointer = format!("/{escaped}{pointer}");
}

/// RFC 6901 §4: `~1` is `/`, `~0` is `~`, any other `~` is malformed.
pub(super) fn unescape(token: &str) -> Option<String> {
    let mut key = String::with_capacity(token.len());
    let mut rest = token.chars();
    while let Some(next) = rest.next() {
        key.push(match next {
            '~' => match rest.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(key)
}

/// RFC 6901 §4: digits without a leading zero.
pub(super) fn index(token: &str) -> Option<usize> {
    let canonical = token.bytes().all(|byte| byte.is_ascii_digit())
        && (token == "0" || !token.starts_with('0'));
    canonical.then(|| token.parse().ok()).flatten()
}

/// The pointer as the tail of a message, empty for the whole value.
pub(super) fn at(pointer: &str) -> String {
    if pointer.is_empty() {
        String::new()
    } else {
        format!(" at `{}`", quoted(pointer))
    }
}

/// Text from outside as it may stand in a message: short, and nothing in it can steer a terminal.
pub(super) fn quoted(text: &str) -> String {
    let mut shown = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect::<String>();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// How many characters of a pointer or key a message shows.
const SHOWN: usize = 160;
