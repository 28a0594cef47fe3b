//! `normalize`: a provider's raw stream on standard input, what it comes to as JSON lines.

use std::io::Read;

use lychgate_intake::streams::{Content, Limits, Normaliser, Reason};

use crate::args::Normalize;
use crate::outcome::{Outcome, Stop};
use crate::terminal::{Terminal, count};

/// Prints every block as soon as it is sealed.
pub(crate) fn run(args: &Normalize, terminal: &mut Terminal) -> Outcome {
    normalize(args, &mut std::io::stdin().lock(), terminal)
}

fn normalize(args: &Normalize, input: &mut dyn Read, terminal: &mut Terminal) -> Outcome {
    let mut normaliser = Normaliser::new(args.provider, Limits::default());
    let mut chunk = vec![0; CHUNK];
    let mut refused = 0_usize;
    // Behind a fault nothing can be read, and nobody is left to read for behind a closed pipe.
    while normaliser.fault().is_none() && !terminal.is_gone() {
        let length = match input.read(&mut chunk) {
            Ok(length) => length,
            Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(fault) => {
                return Err(Stop::fault(format!("cannot read standard input: {fault}")));
            }
        };
        normaliser.push(chunk.get(..length).unwrap_or_default());
        if length == 0 {
            normaliser.finish();
        }
        refused += print(&mut normaliser, terminal);
        if length == 0 {
            break;
        }
    }
    ended(normaliser.fault(), refused, normaliser.is_complete())
}

/// Prints what is ready, and says how much of it was refused.
fn print(normaliser: &mut Normaliser, terminal: &mut Terminal) -> usize {
    let mut refused = 0;
    let mut any = false;
    for block in normaliser {
        refused += usize::from(matches!(block.content, Content::Refused(_)));
        terminal.json_text(&block.line());
        any = true;
    }
    if any {
        // What could not be written is told at the end.
        let _ = terminal.flush();
    }
    refused
}

fn ended(fault: Option<Reason>, refused: usize, complete: bool) -> Outcome {
    if let Some(fault) = fault {
        let fault = fault.name();
        return Err(Stop::refused(format!(
            "the stream cannot be read to its end: {fault}"
        )));
    }
    if refused > 0 {
        let blocks = count(refused, "block is", "blocks are");
        return Err(Stop::refused(format!("{blocks} refused")));
    }
    if !complete {
        return Err(Stop::refused("the provider did not end the message"));
    }
    Ok(())
}

/// Read at once.
const CHUNK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use lychgate_intake::streams::Provider;

    use super::*;
    use crate::outcome::Status;

    const TEXT: &str = "data: {\"type\":\"message_start\",\"message\":{}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"a\u{9b}\"}}\n\n\
        data: {\"type\":\"content_block_stop\",\"index\":0}\n\n";

    /// One byte a read, then a fault where there is one.
    struct Slow<'a>(&'a [u8], Option<std::io::ErrorKind>);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            match (self.0.split_first(), into.first_mut()) {
                (Some((byte, rest)), Some(place)) => {
                    *place = *byte;
                    self.0 = rest;
                    Ok(1)
                }
                _ => self.1.take().map_or(Ok(0), |kind| Err(kind.into())),
            }
        }
    }

    fn said(stream: &str, fault: Option<std::io::ErrorKind>) -> (String, Option<Status>) {
        let mut terminal = Terminal::captured(80);
        let args = Normalize {
            provider: Provider::Anthropic,
        };
        let ended = normalize(&args, &mut Slow(stream.as_bytes(), fault), &mut terminal);
        (terminal.taken().0, ended.err().map(|stop| stop.status()))
    }

    #[test]
    fn a_message_that_nobody_ended_is_no_success() {
        let line = "{\"kind\":\"text\",\"ordinal\":0,\"text\":\"a\u{9b}\"}\n";
        let whole = format!("{TEXT}data: {{\"type\":\"message_stop\"}}\n\n");
        assert_eq!(said(&whole, None), (line.to_owned(), None));
        assert_eq!(said(TEXT, None), (line.to_owned(), Some(Status::Refused)));
        assert_eq!(said("", None), (String::new(), Some(Status::Refused)));
    }

    #[test]
    fn a_fault_of_reading_is_ours_and_an_interruption_is_none() {
        let interrupted = said(TEXT, Some(std::io::ErrorKind::Interrupted)).1;
        assert_eq!(interrupted, Some(Status::Refused));
        let lost = said(TEXT, Some(std::io::ErrorKind::UnexpectedEof)).1;
        assert_eq!(lost, Some(Status::Fault));
    }
}
