//! A lenient scanner: whether a text is well-formed JSON, and where its outermost parts lie. It gives spans, so what
//! passes through stays byte-true (PROFILE §3). It does not recurse and never judges inner keys or numbers.

use crate::scanner::Scanner;

/// Why a text is not taken, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}, byte {offset}")]
pub struct Fault {
    /// Byte offset in the text scanned.
    pub offset: usize,
    /// What is wrong.
    pub kind: FaultKind,
}

/// The ways a text can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// Bytes that are not UTF-8.
    #[error("invalid utf-8")]
    InvalidUtf8,
    /// Not JSON (a byte order mark, a truncated value and a second value included).
    #[error("not json")]
    Syntax,
    /// Arrays and objects nested deeper than allowed.
    #[error("nested deeper than allowed")]
    TooDeep,
    /// More outermost members or items than allowed.
    #[error("too many parts")]
    TooMany,
    /// An outermost key that is longer than allowed or no text (half a surrogate pair).
    #[error("unusable key")]
    Key,
    /// Two outermost keys that are equal or differ only in case: readers would disagree.
    #[error("duplicate key")]
    DuplicateKey,
    /// Well-formed, but not what a message must look like; the text says what.
    #[error("{0}")]
    Shape(&'static str),
}

impl Fault {
    pub(crate) const fn shape(what: &'static str) -> Self {
        Self {
            offset: 0,
            kind: FaultKind::Shape(what),
        }
    }
}

/// One outermost member.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The key, unescaped.
    pub key: String,
    /// The key as written, with its quotes.
    pub raw_key: &'a [u8],
    /// The value as written.
    pub raw: &'a [u8],
}

/// The outermost members of one JSON object, as spans of its text. Keys are unique, also without regard to case.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    members: Vec<Member<'a>>,
}

impl<'a> Envelope<'a> {
    /// The raw value of a member, by exact name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.members
            .iter()
            .find(|member| member.key == key)
            .map(|member| member.raw)
    }

    /// The members in the order they were written.
    #[must_use]
    pub fn members(&self) -> &[Member<'a>] {
        &self.members
    }
}

/// Scans one JSON object with at most `max_depth` arrays and objects inside each other (itself counted) and at most
/// [`MOST_MEMBERS`] outermost members. Time is linear, memory bounded by `max_depth` and the number of members.
///
/// # Errors
/// The first fault.
pub fn scan(bytes: &[u8], max_depth: usize) -> Result<Envelope<'_>, Fault> {
    let mut members = Vec::new();
    Scanner::new(bytes)?.parts((b'{', b'}'), max_depth, |scanner, inner| {
        if members.len() >= MOST_MEMBERS {
            return Err(scanner.fault(FaultKind::TooMany));
        }
        members.push(scanner.member(inner)?);
        Ok(())
    })?;
    unique(&members)?;
    Ok(Envelope { members })
}

/// The raw items of one JSON array, at most `max_items` of them.
///
/// # Errors
/// The first fault.
pub fn items(bytes: &[u8], max_depth: usize, max_items: usize) -> Result<Vec<&[u8]>, Fault> {
    let mut items = Vec::new();
    Scanner::new(bytes)?.parts((b'[', b']'), max_depth, |scanner, inner| {
        if items.len() >= max_items {
            return Err(scanner.fault(FaultKind::TooMany));
        }
        items.push(scanner.value(inner)?);
        Ok(())
    })?;
    Ok(items)
}

/// Whether a text is one well-formed JSON value of any kind.
///
/// # Errors
/// The first fault.
pub fn well_formed(bytes: &[u8], max_depth: usize) -> Result<(), Fault> {
    let mut scanner = Scanner::new(bytes)?;
    scanner.value(max_depth)?;
    scanner.end()
}

/// The first byte of a text that is no white space.
pub(crate) fn first(bytes: &[u8]) -> Option<u8> {
    bytes
        .iter()
        .copied()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

fn unique(members: &[Member<'_>]) -> Result<(), Fault> {
    // Upper first, so that `ſ` counts as `s` and the Kelvin sign as `k`, as some readers do.
    let mut folded: Vec<String> = members
        .iter()
        .map(|member| member.key.to_uppercase().to_lowercase())
        .collect();
    folded.sort_unstable();
    if folded.array_windows().any(|[one, other]| one == other) {
        return Err(Fault {
            offset: 0,
            kind: FaultKind::DuplicateKey,
        });
    }
    Ok(())
}

/// How many outermost members an object may have.
pub const MOST_MEMBERS: usize = 256;
