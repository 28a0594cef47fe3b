//! JSON objects one after the other, with commas, line ends and one outer array's brackets between them: how Gemini
//! answers without server-sent events, and Bedrock's events a line each.

use super::reason::Reason;

/// Cuts a byte stream into the texts of its outermost objects, each at most `most` bytes. Only where an object ends is
/// looked for; whether it is JSON is the parser's question.
#[derive(Debug)]
pub(super) struct Objects {
    most: usize,
    held: Vec<u8>,
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// Whether the array's bracket came, and whether it was closed.
    opened: bool,
    closed: bool,
}

impl Objects {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            held: Vec::new(),
            depth: 0,
            in_text: false,
            escaped: false,
            opened: false,
            closed: false,
        }
    }

    pub(super) fn push(
        &mut self,
        chunk: &[u8],
        take: &mut dyn FnMut(&[u8]) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        for byte in chunk {
            if self.depth == 0 {
                self.between(*byte)?;
                continue;
            }
            if self.held.len() >= self.most {
                return Err(Reason::TooLarge);
            }
            self.held.push(*byte);
            self.inside(*byte);
            if self.depth == 0 {
                let object = std::mem::take(&mut self.held);
                take(&object)?;
                self.held = object;
                self.held.clear();
            }
        }
        Ok(())
    }

    pub(super) fn is_inside(&self) -> bool {
        self.depth > 0 || (self.opened && !self.closed)
    }

    fn between(&mut self, byte: u8) -> Result<(), Reason> {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b',' if self.opened && !self.closed => {}
            b'{' if !self.closed => {
                self.held.push(byte);
                self.depth = 1;
            }
            b'[' if !self.opened => self.opened = true,
            b']' if self.opened && !self.closed => self.closed = true,
            _ => return Err(Reason::Framing),
        }
        Ok(())
    }

    fn inside(&mut self, byte: u8) {
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
    }
}
