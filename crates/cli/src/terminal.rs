//! Everything a person reads: colours only on a terminal, aligned tables, and no character from outside that could
//! move, hide or overwrite what stands there (CASES "Display").

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};

use serde_json::Value;

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    #[default]
    Plain,
    /// What matters most.
    Bold,
    /// What matters least.
    Dim,
    /// Good, or narrower.
    Green,
    /// Look here, or wider.
    Yellow,
    /// Not done.
    Red,
}

/// A piece of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    text: String,
    style: Style,
}

impl Span {
    /// How many columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// Text in a style. Nothing reaches the screen but letters, digits, signs and the few marks this program draws.
pub(crate) fn styled(style: Style, text: impl ToString) -> Span {
    Span {
        text: calm(&text.to_string()),
        style,
    }
}

/// Plain text.
pub(crate) fn text(text: impl ToString) -> Span {
    styled(Style::Plain, text)
}

/// Text that matters most.
pub(crate) fn bold(text: impl ToString) -> Span {
    styled(Style::Bold, text)
}

/// Text that matters least.
pub(crate) fn dim(text: impl ToString) -> Span {
    styled(Style::Dim, text)
}

/// Where a command writes: results to standard output, everything else to standard error.
pub(crate) struct Terminal {
    out: Channel,
    err: Channel,
    width: usize,
}

struct Channel {
    to: To,
    colours: bool,
    screen: bool,
    failed: Option<io::Error>,
}

enum To {
    Stream(Box<dyn Write>),
    #[cfg(test)]
    Memory(Vec<u8>),
}

impl Channel {
    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let done = match &mut self.to {
            To::Stream(stream) => stream.write_all(bytes),
            #[cfg(test)]
            To::Memory(memory) => memory.write_all(bytes),
        };
        self.failed = done.err();
    }

    fn line(&mut self, spans: &[Span]) {
        let mut line = String::new();
        for span in spans {
            match (self.colours, code(span.style)) {
                // Writing to a string does not fail.
                (true, Some(code)) => {
                    let _ = write!(line, "\x1b[{code}m{}\x1b[0m", span.text);
                }
                _ => line.push_str(&span.text),
            }
        }
        let mut line = line.trim_end().to_owned();
        line.push('\n');
        self.write(line.as_bytes());
    }
}

impl Terminal {
    /// The process's own.
    pub(crate) fn standard() -> Self {
        let colourless = crate::places::no_colour();
        let channel = |to: Box<dyn Write>, screen: bool| Channel {
            to: To::Stream(to),
            colours: screen && !colourless,
            screen,
            failed: None,
        };
        let (out, err) = (io::stdout(), io::stderr());
        let width = rustix::termios::tcgetwinsize(&out)
            .or_else(|_| rustix::termios::tcgetwinsize(&err))
            .map_or(0, |size| usize::from(size.ws_col));
        let (out_screen, err_screen) = (out.is_terminal(), err.is_terminal());
        Self {
            out: channel(Box::new(io::BufWriter::new(out)), out_screen),
            err: channel(Box::new(err), err_screen),
            width: if width < LEAST_WIDTH {
                USUAL_WIDTH
            } else {
                width
            },
        }
    }

    /// One that keeps what it is told.
    #[cfg(test)]
    pub(crate) fn captured(width: usize) -> Self {
        let channel = || Channel {
            to: To::Memory(Vec::new()),
            colours: false,
            screen: false,
            failed: None,
        };
        Self {
            out: channel(),
            err: channel(),
            width,
        }
    }

    /// What standard output and standard error were told.
    #[cfg(test)]
    pub(crate) fn taken(&mut self) -> (String, String) {
        let take = |channel: &mut Channel| match &mut channel.to {
            To::Memory(memory) => String::from_utf8_lossy(&std::mem::take(memory)).into_owned(),
            To::Stream(_) => String::new(),
        };
        (take(&mut self.out), take(&mut self.err))
    }

    /// Columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether standard output is a terminal.
    pub(crate) fn is_screen(&self) -> bool {
        self.out.screen
    }

    /// A line of the result.
    pub(crate) fn line(&mut self, spans: &[Span]) {
        self.out.line(spans);
    }

    /// An empty line.
    pub(crate) fn gap(&mut self) {
        self.out.write(b"\n");
    }

    /// Exact bytes of the result.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.write(bytes);
    }

    /// A line that is not part of the result.
    pub(crate) fn note(&mut self, spans: &[Span]) {
        let _ = self.flush();
        self.err.line(spans);
    }

    /// A JSON document, indented.
    pub(crate) fn document(&mut self, value: &Value) {
        let text = serde_json::to_string_pretty(&sorted(value)).unwrap_or_default();
        self.out.write(ascii(&text).as_bytes());
        self.out.write(b"\n");
    }

    /// A JSON line, there at once.
    pub(crate) fn json_line(&mut self, value: &Value) {
        self.out.write(ascii(&sorted(value).to_string()).as_bytes());
        self.out.write(b"\n");
        let _ = self.flush();
    }

    /// A JSON line as it was written by somebody else: exactly those bytes, in ASCII where a person looks.
    pub(crate) fn json_text(&mut self, line: &[u8]) {
        if self.is_screen() {
            let shown = ascii(&String::from_utf8_lossy(line));
            self.out.write(shown.as_bytes());
        } else {
            self.out.write(line);
        }
        self.out.write(b"\n");
    }

    /// Columns aligned, two spaces between; what does not fit of the last one goes on under it.
    pub(crate) fn table(&mut self, rows: &[Vec<Span>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths = (0..columns)
            .map(|at| {
                rows.iter()
                    .filter_map(|row| row.get(at))
                    .map(Span::width)
                    .max()
                    .unwrap_or(0)
            })
            .collect::<Vec<_>>();
        for row in rows {
            let Some((last, before)) = row.split_last() else {
                continue;
            };
            let mut spans = vec![text(INDENT)];
            for (cell, width) in before.iter().zip(&widths) {
                spans.push(cell.clone());
                spans.push(text(" ".repeat(width - cell.width() + 2)));
            }
            self.wrapped(&spans, last);
        }
    }

    /// A value after what names it. What does not fit goes on under a bar, so that no value can pass for a line of its
    /// own.
    pub(crate) fn wrapped(&mut self, before: &[Span], value: &Span) {
        let indent = before.iter().map(Span::width).sum::<usize>();
        let room = self.width.saturating_sub(indent + 1).max(LEAST_ROOM);
        let indent = indent.min(self.width.saturating_sub(LEAST_ROOM + 1)).max(2);
        let characters = value.text.chars().collect::<Vec<_>>();
        let mut chunks = characters.chunks(room).map(|chunk| Span {
            text: chunk.iter().collect(),
            style: value.style,
        });
        let mut first = before.to_vec();
        first.extend(chunks.next());
        self.line(&first);
        for chunk in chunks {
            self.line(&[dim(format!("{}┊ ", " ".repeat(indent - 2))), chunk]);
        }
    }

    /// The sentence a command ends with when it did not do what it was asked, and the way out.
    pub(crate) fn complain(&mut self, message: &str, way_out: Option<&str>) {
        let mut lines = message.lines();
        let first = lines.next().unwrap_or_default();
        self.note(&[styled(Style::Red, "lychgate:"), text(format!(" {first}"))]);
        for line in lines {
            self.note(&[text(format!("  {line}"))]);
        }
        if let Some(way_out) = way_out {
            for line in way_out.lines() {
                self.note(&[dim("  try: "), text(line)]);
            }
        }
    }

    /// Sends what is waiting.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.out.to {
            To::Stream(stream) => stream.flush(),
            #[cfg(test)]
            To::Memory(_) => Ok(()),
        }
    }

    /// Whether everything was written. A reader that has gone away (`| head`) has what it wanted.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let flushed = self.flush();
        match self.out.failed.take().map_or(flushed, Err) {
            Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.out.failed.is_some()
    }
}

/// A net under everything that is written: what could steer a terminal or look like nothing is escaped, whoever forgot
/// to do so before. Text from outside has gone through `display::escape` by then, which this leaves alone.
fn calm(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\\' || OUR_MARKS.contains(&c) {
            out.push(c);
        } else {
            out.push_str(&lychgate_core::display::escape(c.encode_utf8(&mut [0; 4])));
        }
    }
    out
}

/// Members in the order of their names. A dependency may switch the order of their making on for the whole build; what is
/// printed must not depend on that.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}

/// JSON text with everything outside printable ASCII as `\u` escapes: the same value, and nothing for a terminal to
/// act on.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, ' '..='~' | '\n') {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// A span of time as a person says it: `12 s`, `4 min`, `3 h`, `2 d`.
pub(crate) fn ago(span: std::time::Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5_999 => format!("{} min", seconds / 60),
        6_000..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// `1 act`, `2 acts`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {many}")
    }
}

fn code(style: Style) -> Option<&'static str> {
    match style {
        Style::Plain => None,
        Style::Bold => Some("1"),
        Style::Dim => Some("2"),
        Style::Green => Some("32"),
        Style::Yellow => Some("33"),
        Style::Red => Some("31"),
    }
}

/// What every block of a result is set in by.
const INDENT: &str = "  ";
const USUAL_WIDTH: usize = 100;
const LEAST_WIDTH: usize = 40;
/// A value gets at least so many columns.
const LEAST_ROOM: usize = 24;
const OUR_MARKS: [char; 9] = ['…', '·', '→', '│', '┊', '×', '✓', '–', '●'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_written_can_steer_a_terminal() {
        let mut terminal = Terminal::captured(80);
        terminal.line(&[text("a\r\x1b[2K\u{202e}b\u{9b}1m\\u{1b}")]);
        assert_eq!(
            terminal.taken().0,
            "a\\r\\u{1b}[2K\\u{202e}b\\u{9b}1m\\u{1b}\n"
        );
    }

    #[test]
    fn json_is_the_same_value_in_ascii() {
        let value = serde_json::json!({"a": "\u{202e}é😀\u{7f}\n"});
        let shown = ascii(&value.to_string());
        assert!(shown.is_ascii() && !shown.contains('\u{7f}'));
        assert_eq!(serde_json::from_str::<Value>(&shown).ok(), Some(value));
    }

    #[test]
    fn columns_line_up() {
        let mut terminal = Terminal::captured(80);
        terminal.table(&[
            vec![text("a"), text("long"), text("x")],
            vec![text("bbb"), text("c"), text("y")],
        ]);
        assert_eq!(terminal.taken().0, "  a    long  x\n  bbb  c     y\n");
    }
}
