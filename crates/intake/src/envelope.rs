//! A lenient scanner: whether a text is well-formed JSON, and where its outermost parts lie. It gives spans, so what
//! passes through stays byte-true (PROFILE §3). It does not recurse and never judges inner keys or numbers.

use lychgate_core::json::{CaseRule, Limits, Value, parse};

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

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(Self { bytes, at: 0 }),
            Err(fault) => Err(Fault {
                offset: fault.valid_up_to(),
                kind: FaultKind::InvalidUtf8,
            }),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    const fn fault(&self, kind: FaultKind) -> Fault {
        Fault {
            offset: self.at,
            kind,
        }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, byte: u8) -> Result<(), Fault> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.fault(FaultKind::Syntax))
        }
    }

    fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.peek().is_some() {
            Err(self.fault(FaultKind::Syntax))
        } else {
            Ok(())
        }
    }

    /// Walks over the whole text, one container: `part` takes each part, with the depth that is left inside.
    fn parts(
        mut self,
        (open, close): (u8, u8),
        max_depth: usize,
        mut part: impl FnMut(&mut Self, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.space();
        self.need(open)?;
        let inner = max_depth
            .checked_sub(1)
            .ok_or_else(|| self.fault(FaultKind::TooDeep))?;
        self.space();
        if !self.take(close) {
            loop {
                part(&mut self, inner)?;
                self.space();
                if self.take(close) {
                    break;
                }
                self.need(b',')?;
            }
        }
        self.end()
    }

    fn member(&mut self, depth: usize) -> Result<Member<'a>, Fault> {
        self.space();
        let start = self.at;
        self.string()?;
        let raw_key = self.since(start);
        let limits = Limits {
            max_bytes: LONGEST_KEY,
            max_depth: 1,
            case: CaseRule::Refuse,
        };
        let Ok(Value::String(key)) = parse(raw_key, &limits) else {
            return Err(Fault {
                offset: start,
                kind: FaultKind::Key,
            });
        };
        self.space();
        self.need(b':')?;
        let raw = self.value(depth)?;
        Ok(Member { key, raw_key, raw })
    }

    /// Steps over a key and its colon.
    fn key(&mut self) -> Result<(), Fault> {
        self.space();
        self.string()?;
        self.space();
        self.need(b':')
    }

    /// Steps over one value with at most `max_depth` containers inside each other, and gives its span.
    fn value(&mut self, max_depth: usize) -> Result<&'a [u8], Fault> {
        self.space();
        let start = self.at;
        // The closing bytes of the containers that are open.
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.space();
            let close = match self.peek() {
                Some(b'{') => b'}',
                Some(b'[') => b']',
                _ => {
                    self.scalar()?;
                    if self.close(&mut open)? {
                        return Ok(self.since(start));
                    }
                    continue;
                }
            };
            if open.len() >= max_depth {
                return Err(self.fault(FaultKind::TooDeep));
            }
            self.at += 1;
            self.space();
            if self.take(close) {
                if self.close(&mut open)? {
                    return Ok(self.since(start));
                }
            } else {
                open.push(close);
                if close == b'}' {
                    self.key()?;
                }
            }
        }
    }

    /// After a value: steps over what closes, up to where the next value starts. True when the outermost is complete.
    fn close(&mut self, open: &mut Vec<u8>) -> Result<bool, Fault> {
        while let Some(&close) = open.last() {
            self.space();
            if self.take(b',') {
                if close == b'}' {
                    self.key()?;
                }
                return Ok(false);
            }
            self.need(close)?;
            open.pop();
        }
        Ok(true)
    }

    fn scalar(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.fault(FaultKind::Syntax)),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        word.iter().try_for_each(|byte| self.need(*byte))
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.fault(FaultKind::Syntax));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.need(b'"')?;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..=0x1F) | None => return Err(self.fault(FaultKind::Syntax)),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.fault(FaultKind::Syntax));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.fault(FaultKind::Syntax)),
        }
        Ok(())
    }
}

/// How many outermost members an object may have.
pub const MOST_MEMBERS: usize = 256;

/// The longest outermost key as written, in bytes.
const LONGEST_KEY: usize = 1024;
