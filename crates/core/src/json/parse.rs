//! The strict parser: raw bytes in, a [`Value`] or the exact place of the fault out. It never repairs (PROFILE §3).

use super::fault::{Fault, FaultKind};
use super::number;
use super::value::{Object, Value, utf16_cmp};

/// Reads one JSON text.
///
/// Works in time O(n log n) of the bytes at worst, and on a stack bounded by `limits.max_depth`.
///
/// # Errors
/// The first fault found, and where it is.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Value, Fault> {
    if bytes.len() > limits.max_bytes {
        return Err(Fault::new(limits.max_bytes, FaultKind::TooLarge));
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(Fault::new(0, FaultKind::Bom));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|fault| Fault::new(fault.valid_up_to(), FaultKind::InvalidUtf8))?;
    let depth = limits.max_depth.min(DEEPEST);
    let mut parser = Parser {
        text,
        bytes,
        at: 0,
        case: limits.case,
    };
    parser.skip_space();
    if parser.peek().is_none() {
        return Err(parser.fault(FaultKind::Empty));
    }
    let value = parser.value(depth)?;
    parser.skip_space();
    if parser.peek().is_some() {
        Err(parser.fault(FaultKind::Trailing))
    } else {
        Ok(value)
    }
}

/// What the parser takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest text, in bytes.
    pub max_bytes: usize,
    /// The most arrays and objects inside each other; never more than 128, whatever is asked.
    pub max_depth: usize,
    /// What to do about keys that differ only in case.
    pub case: CaseRule,
}

impl Limits {
    /// A tool's arguments: 1 MiB, 64 deep.
    pub const ARGUMENTS: Self = Self {
        max_bytes: 1 << 20,
        max_depth: 64,
        case: CaseRule::Refuse,
    };
    /// Our own objects, envelopes, stored records: 4 MiB, 64 deep.
    pub const OBJECT: Self = Self {
        max_bytes: 4 << 20,
        max_depth: 64,
        case: CaseRule::Refuse,
    };
    /// The commands `canon` and `digest`: as RFC 8785 has it, 64 MiB, 64 deep.
    pub const CANON: Self = Self {
        max_bytes: 64 << 20,
        max_depth: 64,
        case: CaseRule::Allow,
    };
}

/// Whether keys of one object may differ only in case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseRule {
    /// They are a fault: one reader would see one of them, another the other. Characters are compared after simple
    /// upper-casing and then lower-casing, so that `ſ` counts as `s` and the Kelvin sign as `k`, as some readers do.
    Refuse,
    /// They are different keys.
    Allow,
}

struct Parser<'a> {
    text: &'a str,
    /// The same as `text`.
    bytes: &'a [u8],
    at: usize,
    case: CaseRule,
}

/// A member as it was read, with the offset of its key.
type Member = (String, Value, usize);

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        Fault::new(self.at, kind)
    }

    /// The fault of finding something else than the grammar asks for here.
    fn unexpected(&self) -> Fault {
        self.fault(if self.peek().is_some() {
            FaultKind::Syntax
        } else {
            FaultKind::Truncated
        })
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Steps over `byte` when it is next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The value that starts here, with room for `depth` more containers.
    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{' | b'[') if depth == 0 => Err(self.fault(FaultKind::TooDeep)),
            Some(b'{') => self.object(depth - 1).map(Value::Object),
            Some(b'[') => self.array(depth - 1).map(Value::Array),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => {
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                let (number, length) = number::read(rest).map_err(|kind| self.fault(kind))?;
                self.at += length;
                Ok(Value::Number(number))
            }
            Some(b'N' | b'I' | b'+' | b'.') => Err(self.fault(FaultKind::NumberSyntax)),
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Fault> {
        for byte in word.bytes() {
            if !self.take(byte) {
                return Err(self.unexpected());
            }
        }
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Value>, Fault> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(items);
        }
        loop {
            self.skip_space();
            let item = self
                .value(depth)
                .map_err(|fault| fault.under(&items.len().to_string()))?;
            items.push(item);
            self.skip_space();
            if self.take(b']') {
                return Ok(items);
            }
            if !self.take(b',') {
                return Err(self.unexpected());
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Object, Fault> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Object::new());
        }
        loop {
            self.skip_space();
            let key_at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.unexpected());
            }
            self.skip_space();
            match self.value(depth) {
                Ok(value) => members.push((key, value, key_at)),
                Err(fault) => return Err(fault.under(&key)),
            }
            self.skip_space();
            if self.take(b'}') {
                return close(members, self.case);
            }
            if !self.take(b',') {
                return Err(self.unexpected());
            }
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let plain = self.plain_run();
        if self.take(b'"') {
            return Ok(plain.to_owned());
        }
        let mut text = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(0..=0x1F) => return Err(self.fault(FaultKind::ControlCharacter)),
                Some(_) => text.push_str(self.plain_run()),
                None => return Err(self.fault(FaultKind::Truncated)),
            }
        }
    }

    /// The text up to the next quote, backslash or control character.
    fn plain_run(&mut self) -> &'a str {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| matches!(byte, 0..=0x1F | b'"' | b'\\'))
            .unwrap_or(rest.len());
        let from = self.at;
        self.at += length;
        // INVARIANT: both ends stand beside an ASCII byte or the end of the text, so they are character boundaries.
        self.text.get(from..self.at).unwrap_or_default()
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        let short = match self.bytes.get(start + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            Some(_) => return Err(self.fault(FaultKind::Escape)),
            None => return Err(Fault::new(self.bytes.len(), FaultKind::Truncated)),
        };
        self.at += 2;
        Ok(short)
    }

    /// `\uXXXX`, or two of them that make a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        let unpaired = Fault::new(start, FaultKind::UnpairedSurrogate);
        let first = self.hex_unit()?;
        let scalar = match first {
            0xD800..=0xDBFF if self.bytes.get(self.at..self.at + 2) == Some(b"\\u") => match self
                .hex_unit()?
            {
                second @ 0xDC00..=0xDFFF => 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                _ => return Err(unpaired),
            },
            other => other,
        };
        char::from_u32(scalar).ok_or(unpaired)
    }

    /// The code unit of the `\uXXXX` that starts here.
    fn hex_unit(&mut self) -> Result<u32, Fault> {
        let mut unit = 0;
        for at in self.at + 2..self.at + 6 {
            let byte = self
                .bytes
                .get(at)
                .ok_or_else(|| Fault::new(at, FaultKind::Truncated))?;
            let digit = char::from(*byte)
                .to_digit(16)
                .ok_or_else(|| self.fault(FaultKind::Escape))?;
            unit = unit * 16 + digit;
        }
        self.at += 6;
        Ok(unit)
    }
}

/// Makes an object of the members read: sorted once, then neighbours compared, so a wide object costs no more than
/// its sorting.
fn close(mut members: Vec<Member>, case: CaseRule) -> Result<Object, Fault> {
    // Stable, so of two equal keys the later one is named.
    members.sort_by(|one, other| utf16_cmp(&one.0, &other.0));
    if let Some([_, later]) = members
        .array_windows()
        .find(|[one, other]| one.0 == other.0)
    {
        return Err(Fault::new(later.2, FaultKind::DuplicateKey).under(&later.0));
    }
    if case == CaseRule::Refuse
        && let Some(later) = case_duplicate(&members)
    {
        return Err(Fault::new(later.2, FaultKind::CaseDuplicateKey).under(&later.0));
    }
    Ok(Object::from_sorted(
        members
            .into_iter()
            .map(|(key, value, _)| (key, value))
            .collect(),
    ))
}

/// A member whose key differs from an earlier one only in case.
fn case_duplicate(members: &[Member]) -> Option<&Member> {
    let caseless = |key: &str| {
        key.bytes()
            .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
    };
    if members.iter().all(|member| caseless(&member.0)) {
        return None;
    }
    let mut folded = members.iter().collect::<Vec<_>>();
    folded.sort_by(|one, other| fold(&one.0).cmp(fold(&other.0)).then(one.2.cmp(&other.2)));
    folded
        .array_windows()
        .find(|[one, other]| fold(&one.0).eq(fold(&other.0)))
        .map(|[_, later]| *later)
}

fn fold(key: &str) -> impl Iterator<Item = char> + '_ {
    key.chars().map(|letter| {
        let mut upper = letter.to_uppercase();
        let upper = if upper.len() == 1 {
            upper.next().unwrap_or(letter)
        } else {
            letter
        };
        // The first character is the simple mapping: only `İ` has a second one, a combining dot.
        upper.to_lowercase().next().unwrap_or(upper)
    })
}

/// The deepest nesting that fits any thread's stack with room to spare.
const DEEPEST: usize = 128;
