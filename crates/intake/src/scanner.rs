//! The walk behind [`crate::envelope`]: over well-formed JSON, part by part, in memory bounded by the depth.

use lychgate_core::json::{CaseRule, Limits, Value, parse};

use crate::envelope::{Fault, FaultKind, Member};

/// Steps over JSON text without recursion.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
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

    pub(crate) const fn fault(&self, kind: FaultKind) -> Fault {
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

    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.peek().is_some() {
            Err(self.fault(FaultKind::Syntax))
        } else {
            Ok(())
        }
    }

    /// Walks over the whole text, one container: `part` takes each part, with the depth that is left inside.
    pub(crate) fn parts(
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

    pub(crate) fn member(&mut self, depth: usize) -> Result<Member<'a>, Fault> {
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
    pub(crate) fn value(&mut self, max_depth: usize) -> Result<&'a [u8], Fault> {
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

/// The longest outermost key as written, in bytes.
const LONGEST_KEY: usize = 1024;
