//! Server-sent events out of arbitrary chunks, in bounded memory (WHATWG HTML §9.2.6), and no more lenient than that:
//! a byte order mark and a field of no known name are faults, and an event that no blank line ends is none.

use super::reason::Reason;

/// One event as it was framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty when there was none.
    pub name: &'a str,
    /// The `data` fields, joined by line feeds.
    pub data: &'a [u8],
}

/// What takes events as they become whole.
pub(super) type Take<'t> = &'t mut dyn FnMut(Event<'_>) -> Result<(), Reason>;

/// Cuts a byte stream into events. However the stream is split into chunks, the events are the same.
#[derive(Debug)]
pub struct Sse {
    most: usize,
    line: Vec<u8>,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    started: bool,
}

impl Sse {
    /// Events of at most `most` bytes each.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            line: Vec::new(),
            after_cr: false,
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            started: false,
        }
    }

    /// Takes the next chunk and hands on every event that it completes.
    ///
    /// # Errors
    /// The first fault; nothing after it can be read.
    pub fn push(&mut self, chunk: &[u8], take: Take<'_>) -> Result<(), Reason> {
        let mut rest = chunk;
        loop {
            if std::mem::take(&mut self.after_cr) {
                match rest.split_first() {
                    Some((b'\n', after)) => rest = after,
                    Some(_) => {}
                    None => {
                        self.after_cr = true;
                        return Ok(());
                    }
                }
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            let Some((ending, after)) = after.split_first() else {
                self.hold(part)?;
                return self.no_mark(false);
            };
            self.after_cr = *ending == b'\r';
            rest = after;
            if self.line.is_empty() && self.started {
                self.line(part, take)?;
            } else {
                self.hold(part)?;
                self.no_mark(true)?;
                let line = std::mem::take(&mut self.line);
                let done = self.line(&line, take);
                self.line = line;
                self.line.clear();
                done?;
            }
        }
    }

    /// Whether the stream stopped inside an event.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    fn hold(&mut self, part: &[u8]) -> Result<(), Reason> {
        if self.line.len().saturating_add(part.len()) > self.most {
            return Err(Reason::TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// The stream's first bytes are no byte order mark. `whole`: the first line is complete.
    fn no_mark(&mut self, whole: bool) -> Result<(), Reason> {
        if !self.started {
            if self.line.starts_with(MARK) {
                return Err(Reason::Bom);
            }
            self.started = whole || self.line.len() >= MARK.len();
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], take: Take<'_>) -> Result<(), Reason> {
        if line.is_empty() {
            return self.dispatch(take);
        }
        if line.len() > self.most {
            return Err(Reason::TooLarge);
        }
        if line.first() == Some(&b':') {
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let joined = usize::from(self.has_data).saturating_add(value.len());
                if self.data.len().saturating_add(joined) > self.most {
                    return Err(Reason::TooLarge);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                let name = std::str::from_utf8(value).map_err(|_| Reason::Framing)?;
                name.clone_into(&mut self.name);
            }
            b"id" | b"retry" => {}
            // A browser would skip it; here it may be an answer that is no event stream at all.
            _ => return Err(Reason::Framing),
        }
        Ok(())
    }

    fn dispatch(&mut self, take: Take<'_>) -> Result<(), Reason> {
        let done = if self.has_data {
            take(Event {
                name: &self.name,
                data: &self.data,
            })
        } else {
            Ok(())
        };
        self.has_data = false;
        self.data.clear();
        self.name.clear();
        done
    }
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    type Cut = (Vec<(String, Vec<u8>)>, Result<(), Reason>, bool);

    fn cut(most: usize, chunks: &[&[u8]]) -> Cut {
        let mut sse = Sse::new(most);
        let mut events = Vec::new();
        let mut ended = Ok(());
        for chunk in chunks {
            ended = sse.push(chunk, &mut |event| {
                events.push((event.name.to_owned(), event.data.to_vec()));
                Ok(())
            });
            if ended.is_err() {
                break;
            }
        }
        (events, ended, sse.is_inside())
    }

    fn event(name: &str, data: &str) -> (String, Vec<u8>) {
        (name.to_owned(), data.as_bytes().to_vec())
    }

    #[test]
    fn every_line_end_ends_a_line_and_comments_and_ids_are_no_content() {
        let text = b": hi\r\nevent: a\rdata: 1\ndata:2\n\r\nid: 7\nretry: 1\ndata\n\ndata: left";
        let (events, ended, inside) = cut(64, &[text]);
        assert_eq!(events, [event("a", "1\n2"), event("", "")]);
        assert_eq!((ended, inside), (Ok(()), true));
    }

    #[test]
    fn parsing_a_mark_or_a_line_of_no_known_field_is_a_fault() {
        assert_eq!(
            cut(64, &[b"\xEF\xBB", b"\xBFdata: 1\n\n"]).1,
            Err(Reason::Bom)
        );
        assert_eq!(cut(64, &[b"{\"error\": 1}\n"]).1, Err(Reason::Framing));
    }

    #[test]
    fn resources_a_line_and_an_event_have_a_bound() {
        assert_eq!(cut(8, &[&[b'x'; 9]]).1, Err(Reason::TooLarge));
        let most = b"data:12\ndata:34\ndata:56\n";
        assert_eq!(cut(8, &[most, b"\n"]).0, [event("", "12\n34\n56")]);
        assert_eq!(cut(8, &[most, b"data:\n"]).1, Err(Reason::TooLarge));
    }

    proptest! {
        #[test]
        fn any_split_into_chunks_yields_the_same_events(
            bytes in prop::collection::vec(prop::sample::select(b"dat: \r\n\xEF\xBB\xBF".to_vec()), 0..60),
            words in prop::collection::vec(prop::sample::select(&["data: 1\r\n", "event: x\n", "\n", "\r", ":c\n"][..]), 0..12),
            cuts in prop::collection::vec(0_usize..90, 0..12),
        ) {
            let mut text = words.concat().into_bytes();
            text.extend(bytes);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            let (whole, split) = (cut(1000, &[&text]), cut(1000, &chunks));
            prop_assert_eq!(&split.0, &whole.0);
            prop_assert_eq!(split.1, whole.1);
        }
    }
}
