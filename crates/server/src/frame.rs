//! Frames on the socket: `[length: u32, big-endian][kind: u8][payload]`. Bounded, and read without trusting the length.

use lychgate_gate::log::Shown;
use std::io::{self, Read, Write};

use lychgate_core::id::ActId;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One JSON object of [`crate::protocol`].
    Control,
    /// One MCP line without its end. From the gate, eight bytes stand before it: the delivery token, 0 for none.
    Line,
    /// Eight bytes: the token of a line that has reached the client.
    Delivered,
    /// Nothing more comes this way. Empty.
    End,
    /// A line that was longer than allowed; it was thrown away. Empty.
    TooLong,
    /// Eight bytes: the number of the newest control. From the gate: it holds now. From the client: it was told.
    Told,
}

impl Kind {
    /// From the byte on the wire.
    pub fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Control,
            Self::Line,
            Self::Delivered,
            Self::End,
            Self::TooLong,
            Self::Told,
        ]
        .get(usize::from(byte))
        .copied()
    }

    fn byte(self) -> u8 {
        self as u8
    }

    /// The longest payload of this kind, in bytes.
    pub fn most(self) -> usize {
        match self {
            Self::Control => MOST_CONTROL,
            Self::Line => MOST_LINE + TOKEN,
            Self::Delivered | Self::Told => TOKEN,
            Self::End | Self::TooLong => 0,
        }
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it carries.
    pub kind: Kind,
    /// The bytes.
    pub payload: Vec<u8>,
}

/// Why bytes are no frame. The connection is closed then: there is no way back into step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// A kind that does not exist.
    #[error("frame of unknown kind {0}")]
    Kind(u8),
    /// Longer than its kind may be.
    #[error("frame of {found} bytes where at most {most} are allowed")]
    TooLong {
        /// What the header says.
        found: usize,
        /// What is allowed.
        most: usize,
    },
    /// Not as long as its kind is.
    #[error("frame has not the length its kind has")]
    Length,
    /// The stream ended inside a frame.
    #[error("connection ended inside a frame")]
    Cut,
    /// The connection failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

impl FrameFault {
    /// For the log.
    pub(crate) fn shown(&self) -> Shown<'_> {
        match self {
            Self::Kind(_) => "frame of unknown kind".into(),
            Self::TooLong { .. } => "frame is too long".into(),
            Self::Length => "frame has not the length its kind has".into(),
            Self::Cut => "connection ended inside a frame".into(),
            Self::Io(fault) => fault.into(),
        }
    }
}

/// The number by which a line's delivery is reported; 0 stands for none and is never one.
pub type Token = u64;

impl Frame {
    /// A control object's frame.
    pub fn control(payload: Vec<u8>) -> Self {
        Self {
            kind: Kind::Control,
            payload,
        }
    }

    /// A client's line.
    pub fn line(line: Vec<u8>) -> Self {
        Self {
            kind: Kind::Line,
            payload: line,
        }
    }

    /// A line from the gate, with the token to report its delivery by.
    pub fn line_from_gate(token: Token, line: &[u8]) -> Self {
        let mut payload = Vec::with_capacity(line.len() + TOKEN);
        payload.extend_from_slice(&token.to_be_bytes());
        payload.extend_from_slice(line);
        Self {
            kind: Kind::Line,
            payload,
        }
    }

    /// The report that a line has reached the client.
    pub fn delivered(token: Token) -> Self {
        Self {
            kind: Kind::Delivered,
            payload: token.to_be_bytes().to_vec(),
        }
    }

    /// The newest control's number, or word that it was heard.
    pub fn told(number: u64) -> Self {
        Self {
            kind: Kind::Told,
            payload: number.to_be_bytes().to_vec(),
        }
    }

    /// Nothing more comes this way.
    pub fn end() -> Self {
        Self {
            kind: Kind::End,
            payload: Vec::new(),
        }
    }

    /// A line was thrown away.
    pub fn too_long() -> Self {
        Self {
            kind: Kind::TooLong,
            payload: Vec::new(),
        }
    }

    /// Token and line of a line from the gate, or the token of a report.
    ///
    /// # Errors
    /// When there are fewer than eight bytes.
    pub fn split_token(&self) -> Result<(Token, &[u8]), FrameFault> {
        let (token, line) = self
            .payload
            .split_first_chunk::<TOKEN>()
            .ok_or(FrameFault::Length)?;
        Ok((u64::from_be_bytes(*token), line))
    }

    /// The bytes on the wire.
    ///
    /// # Errors
    /// When the payload is longer than its kind may be.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FrameFault> {
        let most = self.kind.most();
        let found = self.payload.len();
        let length = u32::try_from(found)
            .ok()
            .filter(|_| found <= most)
            .ok_or(FrameFault::TooLong { found, most })?;
        let mut bytes = Vec::with_capacity(found + HEADER);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.push(self.kind.byte());
        bytes.extend_from_slice(&self.payload);
        Ok(bytes)
    }

    /// Reads one frame; `None` when the stream ended between two.
    ///
    /// # Errors
    /// As [`FrameFault`] says.
    pub fn read(from: &mut impl Read) -> Result<Option<Self>, FrameFault> {
        let mut header = [0; HEADER];
        let mut have = 0;
        while have < HEADER {
            let rest = header.get_mut(have..).unwrap_or_default();
            match from.read(rest) {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => return Err(FrameFault::Cut),
                Ok(read) => have += read,
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        let (kind, length) = parse_header(header)?;
        let mut payload = Vec::with_capacity(length.min(FIRST));
        from.take(length as u64).read_to_end(&mut payload)?;
        whole(kind, length, payload)
    }

    /// As [`Frame::read`], on an asynchronous stream.
    ///
    /// # Errors
    /// As [`FrameFault`] says.
    pub async fn read_async(
        from: &mut (impl AsyncRead + Unpin),
    ) -> Result<Option<Self>, FrameFault> {
        let mut header = [0; HEADER];
        let mut have = 0;
        while have < HEADER {
            let rest = header.get_mut(have..).unwrap_or_default();
            match from.read(rest).await? {
                0 if have == 0 => return Ok(None),
                0 => return Err(FrameFault::Cut),
                read => have += read,
            }
        }
        let (kind, length) = parse_header(header)?;
        let mut payload = Vec::with_capacity(length.min(FIRST));
        from.take(length as u64).read_to_end(&mut payload).await?;
        whole(kind, length, payload)
    }

    /// Writes the frame whole.
    ///
    /// # Errors
    /// When it is too long or the connection fails.
    pub fn write(&self, to: &mut impl Write) -> Result<(), FrameFault> {
        to.write_all(&self.to_bytes()?)?;
        Ok(to.flush()?)
    }

    /// As [`Frame::write`], on an asynchronous stream.
    ///
    /// # Errors
    /// When it is too long or the connection fails.
    pub async fn write_async(&self, to: &mut (impl AsyncWrite + Unpin)) -> Result<(), FrameFault> {
        to.write_all(&self.to_bytes()?).await?;
        Ok(to.flush().await?)
    }
}

fn parse_header(header: [u8; HEADER]) -> Result<(Kind, usize), FrameFault> {
    let [a, b, c, d, byte] = header;
    let kind = Kind::from_byte(byte).ok_or(FrameFault::Kind(byte))?;
    let found = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    let most = kind.most();
    if found > most {
        return Err(FrameFault::TooLong { found, most });
    }
    if kind == Kind::Delivered && found != TOKEN {
        return Err(FrameFault::Length);
    }
    Ok((kind, found))
}

fn whole(kind: Kind, length: usize, payload: Vec<u8>) -> Result<Option<Frame>, FrameFault> {
    if payload.len() == length {
        Ok(Some(Frame { kind, payload }))
    } else {
        Err(FrameFault::Cut)
    }
}

/// The delivery tokens of one connection, on the gate's side: which act's answer a token stands for.
///
/// Bounded: the oldest is forgotten when too many are open, and its act stays undelivered, which is safe.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    last: Token,
    open: std::collections::BTreeMap<Token, ActId>,
}

impl Tokens {
    pub(crate) fn give(&mut self, act: ActId) -> Token {
        self.last += 1;
        if self.open.len() >= MOST_TOKENS {
            self.open.pop_first();
        }
        self.open.insert(self.last, act);
        self.last
    }

    pub(crate) fn take(&mut self, token: Token) -> Option<ActId> {
        self.open.remove(&token)
    }
}

/// The longest control object, in bytes: a configuration with its pinned definitions.
pub const MOST_CONTROL: usize = 48 << 20;
/// The longest line, in bytes, whatever the configuration allows.
pub const MOST_LINE: usize = 64 << 20;
const HEADER: usize = 5;
const TOKEN: usize = 8;
/// Room made before the bytes are there; a header alone takes no more.
const FIRST: usize = 16 << 10;
const MOST_TOKENS: usize = 4096;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// Gives its bytes in pieces of one size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let size = self.1.min(out.len()).min(self.0.len());
            let (now, later) = self.0.split_at(size);
            out[..size].copy_from_slice(now);
            self.0 = later;
            Ok(size)
        }
    }

    fn some_frames() -> Vec<Frame> {
        vec![
            Frame::control(b"{}".to_vec()),
            Frame::line(vec![b'x'; 70_000]),
            Frame::line_from_gate(7, b"{\"a\":1}"),
            Frame::delivered(u64::MAX),
            Frame::too_long(),
            Frame::line(Vec::new()),
            Frame::end(),
        ]
    }

    #[test]
    fn frames_are_the_same_however_the_stream_is_split() {
        let bytes: Vec<u8> = some_frames()
            .iter()
            .flat_map(|frame| frame.to_bytes().unwrap())
            .collect();
        for size in [1, 2, 3, 5, 7, 64, 4096, bytes.len()] {
            let mut stream = Pieces(&bytes, size);
            let mut found = Vec::new();
            while let Some(frame) = Frame::read(&mut stream).unwrap() {
                found.push(frame);
            }
            assert_eq!(found, some_frames(), "pieces of {size}");
        }
    }

    #[test]
    fn a_stream_cut_anywhere_is_a_fault_or_an_end_never_a_frame_too_many() {
        let bytes = Frame::line(b"abc".to_vec()).to_bytes().unwrap();
        assert!(Frame::read(&mut &bytes[..0]).unwrap().is_none());
        for cut in 1..bytes.len() {
            assert!(matches!(
                Frame::read(&mut &bytes[..cut]),
                Err(FrameFault::Cut)
            ));
        }
    }

    #[test]
    fn a_header_alone_is_refused_before_memory_is_taken_for_it() {
        for kind in 0..=255_u8 {
            let mut bytes = u32::MAX.to_be_bytes().to_vec();
            bytes.push(kind);
            let found = Frame::read(&mut bytes.as_slice());
            assert!(matches!(
                found,
                Err(FrameFault::TooLong { .. } | FrameFault::Kind(_))
            ));
        }
        let short_report = [0, 0, 0, 1, 2, 9];
        assert!(matches!(
            Frame::read(&mut short_report.as_slice()),
            Err(FrameFault::Length)
        ));
    }

    #[tokio::test]
    async fn both_readers_read_the_same() {
        let bytes: Vec<u8> = some_frames()
            .iter()
            .flat_map(|frame| frame.to_bytes().unwrap())
            .collect();
        let mut stream = bytes.as_slice();
        let mut found = Vec::new();
        while let Some(frame) = Frame::read_async(&mut stream).await.unwrap() {
            found.push(frame);
        }
        assert_eq!(found, some_frames());
    }

    #[test]
    fn a_token_counts_once_and_the_oldest_goes_first() {
        let act = |number: u8| ActId::from_bytes([number; 16]);
        let mut tokens = Tokens::default();
        let first = tokens.give(act(1));
        let second = tokens.give(act(2));
        assert_ne!(first, 0);
        assert_eq!(tokens.take(second), Some(act(2)));
        assert_eq!(tokens.take(second), None);
        for _ in 0..MOST_TOKENS {
            tokens.give(act(3));
        }
        assert_eq!(tokens.take(first), None);
    }
}
