//! Newline-delimited framing over arbitrary chunks, in bounded memory.

use std::collections::VecDeque;

/// Why bytes do not make a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// A line longer than the limit; it is skipped to its end and reported once.
    #[error("line is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes, without the line's end.
        limit: usize,
    },
    /// The stream ended inside a line: what came of it is never taken for a message.
    #[error("stream ended inside a line")]
    Unterminated,
}

/// Cuts a byte stream into lines at LF. One CR before the LF belongs to the line's end; empty lines are skipped. Other
/// line separators (U+2028 among them) are content. However the stream is split into chunks, the lines are the same.
///
/// As an iterator it gives the lines that are complete so far; after `None`, push more and go on.
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    // INVARIANT: at most `limit + 1` bytes, the last one a CR when there are more than `limit`.
    pending: Vec<u8>,
    /// Inside a line already reported as too long.
    skipping: bool,
    ready: VecDeque<Result<Vec<u8>, FrameFault>>,
}

impl Lines {
    /// Lines of at most `max_bytes` bytes each, without their ends.
    #[must_use]
    pub const fn new(max_bytes: usize) -> Self {
        Self {
            limit: max_bytes,
            pending: Vec::new(),
            skipping: false,
            ready: VecDeque::new(),
        }
    }

    /// Takes the next chunk. What is held grows by at most the chunk; drain the lines before pushing again.
    pub fn push(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (segment, after) = rest.split_at(end);
            self.extend(segment);
            self.end_line();
            rest = after.get(1..).unwrap_or_default();
        }
        self.extend(rest);
    }

    /// The stream has ended: a line that has no end is a fault.
    pub fn finish(&mut self) -> Option<FrameFault> {
        let inside = self.skipping || !self.pending.is_empty();
        self.skipping = false;
        self.pending = Vec::new();
        inside.then_some(FrameFault::Unterminated)
    }

    fn extend(&mut self, segment: &[u8]) {
        if self.skipping || segment.is_empty() {
            return;
        }
        let length = self.pending.len().saturating_add(segment.len());
        let only_end_beyond = length == self.limit.saturating_add(1) && segment.ends_with(b"\r");
        if length > self.limit && !only_end_beyond {
            self.skipping = true;
            self.pending = Vec::new();
            let limit = self.limit;
            self.ready.push_back(Err(FrameFault::TooLong { limit }));
        } else {
            self.pending.extend_from_slice(segment);
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.skipping) {
            return;
        }
        let mut line = std::mem::take(&mut self.pending);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if !line.is_empty() {
            self.ready.push_back(Ok(line));
        }
    }
}

impl Iterator for Lines {
    type Item = Result<Vec<u8>, FrameFault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn cut(
        limit: usize,
        chunks: &[&[u8]],
    ) -> (Vec<Result<Vec<u8>, FrameFault>>, Option<FrameFault>) {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        for chunk in chunks {
            lines.push(chunk);
            out.extend(lines.by_ref());
        }
        let end = lines.finish();
        (out, end)
    }

    #[test]
    fn a_line_ends_at_lf_only_and_a_cr_before_it_is_tolerated() {
        let (lines, end) = cut(64, &["{\"a\":\"\u{2028}\"}\r\n\n\r\n{}\n".as_bytes()]);
        let expected = [
            Ok("{\"a\":\"\u{2028}\"}".as_bytes().to_vec()),
            Ok(b"{}".to_vec()),
        ];
        assert_eq!(lines, expected);
        assert_eq!(end, None);
    }

    #[test]
    fn resources_an_endless_line_is_reported_once_and_takes_no_memory() {
        let mut lines = Lines::new(8);
        for _ in 0..1000 {
            lines.push(&[b'x'; 1000]);
            assert!(
                lines.pending.capacity() <= 16,
                "what is skipped is not kept"
            );
        }
        lines.push(b"\nok\n");
        let all: Vec<_> = lines.by_ref().collect();
        assert_eq!(
            all,
            [Err(FrameFault::TooLong { limit: 8 }), Ok(b"ok".to_vec())]
        );
    }

    #[test]
    fn the_limit_is_exact_with_and_without_a_cr() {
        assert_eq!(cut(3, &[b"abc\r\n"]).0, [Ok(b"abc".to_vec())]);
        assert_eq!(cut(3, &[b"abc", b"\r", b"\n"]).0, [Ok(b"abc".to_vec())]);
        assert_eq!(
            cut(3, &[b"abcd\n"]).0,
            [Err(FrameFault::TooLong { limit: 3 })]
        );
        assert_eq!(
            cut(3, &[b"abc\rd\n"]).0,
            [Err(FrameFault::TooLong { limit: 3 })]
        );
    }

    #[test]
    fn bytes_without_a_line_end_are_a_fault_never_a_message() {
        assert_eq!(cut(64, &[b"{}"]), (vec![], Some(FrameFault::Unterminated)));
    }

    proptest! {
        #[test]
        fn any_split_into_chunks_yields_the_same_lines(
            bytes in prop::collection::vec(prop::sample::select(b"ab\r\n{}".to_vec()), 0..80),
            cuts in prop::collection::vec(0_usize..80, 0..10),
            limit in 0_usize..12,
        ) {
            let whole = cut(limit, &[&bytes]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(cut(limit, &chunks), whole);
        }
    }
}
