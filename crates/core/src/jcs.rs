//! The JSON Canonicalization Scheme (RFC 8785): the one byte form that is digested, signed and sent.
//!
//! Key order is kept by [`Object`](crate::json::Object) itself; here only strings and numbers are written. There is
//! no Unicode normalisation (PROFILE §3).

use crate::json::{Number, Value};

/// The canonical bytes of a value, valid UTF-8.
#[must_use]
pub fn to_bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    write(value, &mut out);
    out
}

/// Appends the canonical bytes of a value.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(*number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            for (index, (key, member)) in object.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write(member, out);
            }
            out.push(b'}');
        }
    }
}

/// RFC 8785 §3.2.2.3: as ECMAScript writes it.
pub(crate) fn write_number(number: Number, out: &mut Vec<u8>) {
    let mut buffer = ryu_js::Buffer::new();
    out.extend_from_slice(buffer.format_finite(number.get()).as_bytes());
}

/// RFC 8785 §3.2.2.2: escapes only what must be escaped, the short form where there is one.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_text(text, out);
    out.push(b'"');
}

/// What stands between the quotes.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(at) = first_to_escape(rest) {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain);
        if let Some((byte, after)) = tail.split_first() {
            write_escape(*byte, out);
            rest = after;
        }
    }
    out.extend_from_slice(rest);
}

/// Nearly every string has nothing to escape; whole blocks are looked at without a branch for each byte.
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let must = |byte: &u8| (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    let blocks = bytes.chunks_exact(BLOCK);
    let clean = blocks
        .take_while(|block| !block.iter().fold(false, |any, byte| any | must(byte)))
        .count()
        * BLOCK;
    let rest = bytes.get(clean..).unwrap_or_default();
    rest.iter().position(must).map(|at| clean + at)
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0C => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ => {
            let hex = |nibble: u8| {
                if nibble < 10 {
                    b'0' + nibble
                } else {
                    b'a' + nibble - 10
                }
            };
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 0x0F)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Bytes looked at together.
const BLOCK: usize = 16;
