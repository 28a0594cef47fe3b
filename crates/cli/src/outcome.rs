//! How a command ends: the exit statuses of the command line's contract, and the sentence that goes with each.

use std::process::ExitCode;

use crate::terminal::Terminal;

/// What a command gives back.
pub(crate) type Outcome<T = ()> = Result<T, Stop>;

/// Why a command stops, and with which status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    status: Status,
    message: String,
    way_out: Option<String>,
}

/// The statuses other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Refused, denied, or a verification failed.
    Refused = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// An internal fault; nothing ran.
    Fault = 3,
}

impl Stop {
    /// Refused, denied, or a verification failed.
    pub(crate) fn refused(message: impl ToString) -> Self {
        Self::new(Status::Refused, message)
    }

    /// Wrong usage or configuration.
    pub(crate) fn usage(message: impl ToString) -> Self {
        Self::new(Status::Usage, message)
    }

    /// An internal fault.
    pub(crate) fn fault(message: impl ToString) -> Self {
        Self::new(Status::Fault, message)
    }

    fn new(status: Status, message: impl ToString) -> Self {
        Self {
            status,
            message: message.to_string(),
            way_out: None,
        }
    }

    /// Says what to do about it.
    pub(crate) fn try_this(mut self, way_out: impl ToString) -> Self {
        self.way_out = Some(way_out.to_string());
        self
    }

    /// The status.
    #[cfg(test)]
    pub(crate) fn status(&self) -> Status {
        self.status
    }
}

/// The status for the shell; the sentence goes to standard error. Output that could not be written is a fault too.
pub(crate) fn exit_code(ended: Outcome, terminal: &mut Terminal) -> ExitCode {
    let ended = ended.and_then(|()| match terminal.finish() {
        Ok(()) => Ok(()),
        Err(fault) => Err(Stop::fault(format!(
            "cannot write to standard output: {fault}"
        ))),
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            // An empty sentence: everything was said already.
            if !stop.message.is_empty() {
                terminal.complain(&stop.message, stop.way_out.as_deref());
            }
            ExitCode::from(stop.status as u8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_status() {
        for (ended, status) in [
            (Ok(()), 0),
            (Err(Stop::refused("no")), 1),
            (Err(Stop::usage("what?")), 2),
            (Err(Stop::fault("oh")), 3),
        ] {
            let mut terminal = Terminal::captured(80);
            assert_eq!(
                format!("{:?}", exit_code(ended, &mut terminal)),
                format!("{:?}", ExitCode::from(status))
            );
        }
    }

    #[test]
    fn the_sentence_and_the_way_out_go_to_standard_error() {
        let mut terminal = Terminal::captured(80);
        let stop = Stop::refused("no such ticket").try_this("lychgate pending");
        let _ = exit_code(Err(stop), &mut terminal);
        let (out, err) = terminal.taken();
        assert_eq!(out, "");
        assert_eq!(err, "lychgate: no such ticket\n  try: lychgate pending\n");
    }
}
