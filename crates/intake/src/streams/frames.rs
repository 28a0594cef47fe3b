//! The binary event stream of Amazon's services out of arbitrary chunks: total length, header length, checksum of
//! both, typed headers, payload, checksum of all.

use super::reason::Reason;

/// What a frame says of itself, and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// `:message-type`: `event`, `exception` or `error`.
    pub(super) message: &'a str,
    /// `:event-type` or `:exception-type`.
    pub(super) kind: &'a str,
    pub(super) payload: &'a [u8],
}

/// Cuts a byte stream into frames of at most `most` bytes.
#[derive(Debug)]
pub(super) struct Frames {
    most: usize,
    held: Vec<u8>,
}

impl Frames {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            held: Vec::new(),
        }
    }

    pub(super) fn push(
        &mut self,
        chunk: &[u8],
        take: &mut dyn FnMut(Frame<'_>) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        self.held.extend_from_slice(chunk);
        let mut at = 0;
        let ended = loop {
            let rest = self.held.get(at..).unwrap_or_default();
            match whole(rest, self.most) {
                Ok(Some(total)) => {
                    let frame = rest.get(..total).unwrap_or_default();
                    if let Err(fault) = read(frame).and_then(&mut *take) {
                        break Err(fault);
                    }
                    at += total;
                }
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        self.held.drain(..at);
        ended
    }

    pub(super) fn is_inside(&self) -> bool {
        !self.held.is_empty()
    }
}

/// The length of the frame that starts here, once it is all there.
fn whole(bytes: &[u8], most: usize) -> Result<Option<usize>, Reason> {
    let Some((prelude, _)) = bytes.split_at_checked(PRELUDE) else {
        return Ok(None);
    };
    let (lengths, sum) = prelude.split_at(8);
    if number(sum)? != crc32(lengths) {
        return Err(Reason::Checksum);
    }
    let (total, headers) = lengths.split_at(4);
    let (total, headers) = (number(total)? as usize, number(headers)? as usize);
    if total > most {
        return Err(Reason::TooLarge);
    }
    if headers.saturating_add(PRELUDE + 4) > total {
        return Err(Reason::Framing);
    }
    Ok((bytes.len() >= total).then_some(total))
}

fn read(frame: &[u8]) -> Result<Frame<'_>, Reason> {
    let (body, sum) = frame
        .split_at_checked(frame.len().saturating_sub(4))
        .ok_or(Reason::Framing)?;
    if number(sum)? != crc32(body) {
        return Err(Reason::Checksum);
    }
    let headers = number(body.get(4..8).unwrap_or_default())? as usize;
    let (headers, payload) = body
        .get(PRELUDE..)
        .and_then(|rest| rest.split_at_checked(headers))
        .ok_or(Reason::Framing)?;
    let mut walk = Walk(headers);
    let (mut message, mut kind) = (None, None);
    while !walk.0.is_empty() {
        let (name, value) = walk.header()?;
        let slot = match name {
            b":message-type" => &mut message,
            b":event-type" | b":exception-type" | b":error-code" => &mut kind,
            _ => continue,
        };
        let value = value.and_then(|text| std::str::from_utf8(text).ok());
        // Twice, or no text: nobody knows what the frame is.
        if slot.is_some() || value.is_none() {
            return Err(Reason::Framing);
        }
        *slot = value;
    }
    match (message, kind) {
        (Some(message), Some(kind)) => Ok(Frame {
            message,
            kind,
            payload,
        }),
        _ => Err(Reason::Framing),
    }
}

/// Steps over typed headers.
struct Walk<'a>(&'a [u8]);

impl<'a> Walk<'a> {
    /// A name, and the value when it is a text.
    fn header(&mut self) -> Result<(&'a [u8], Option<&'a [u8]>), Reason> {
        let length = self.length(1)?;
        let name = self.bytes(length)?;
        let kind = self.length(1)?;
        let fixed = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            9 => 16,
            6 | 7 => {
                let length = self.length(2)?;
                let value = self.bytes(length)?;
                return Ok((name, (kind == 7).then_some(value)));
            }
            _ => return Err(Reason::Framing),
        };
        self.bytes(fixed)?;
        Ok((name, None))
    }

    fn length(&mut self, width: usize) -> Result<usize, Reason> {
        let digits = self.bytes(width)?;
        Ok(digits
            .iter()
            .fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Reason> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Reason::Framing)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn number(bytes: &[u8]) -> Result<u32, Reason> {
    <[u8; 4]>::try_from(bytes)
        .map(u32::from_be_bytes)
        .map_err(|_| Reason::Framing)
}

/// CRC-32 as in Ethernet and gzip (reflected 0x04C11DB7).
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        let at = ((sum ^ u32::from(*byte)) & 0xFF) as usize;
        // INVARIANT: a byte is an index into 256 entries.
        (sum >> 8) ^ TABLE.get(at).copied().unwrap_or_default()
    })
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut sum = at as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 {
                (sum >> 1) ^ 0xEDB8_8320
            } else {
                sum >> 1
            };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
};

/// Two lengths and their checksum.
const PRELUDE: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
