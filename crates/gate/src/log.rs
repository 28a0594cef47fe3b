//! The one way into the gate's log: a constant sentence and fields of an allowlist (PROFILE §10).
//!
//! There is no kind of field that an argument, a tool's text, a pointer into a message or any other free text would fit
//! into, so nobody has to remember to leave it out. `cargo xtask layers` keeps `tracing` out of every other file, and the log
//! takes no events but those made here.

use std::fmt;
use std::io;

use lychgate_core::id::{ActId, EffectId, GateId, HolderId, TicketId};
use lychgate_core::signed::KeyId;
use lychgate_core::{Code, Digest, State};
use lychgate_policy::Server;
use lychgate_store::{Rejected, StoreFault};

use crate::session::Session;

/// What a field may say.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// A constant word or phrase.
    Word(&'static str),
    /// A count, a size, a process, a user.
    Number(u64),
    /// An act.
    Act(ActId),
    /// A ticket.
    Ticket(TicketId),
    /// A connection.
    Holder(HolderId),
    /// A gate.
    Gate(GateId),
    /// An attempt.
    Effect(EffectId),
    /// A decision code.
    Code(Code),
    /// Where an act stands.
    State(State),
    /// A digest of something that is not guessed from it, such as a configuration; never of arguments.
    Digest(Digest),
    /// A key.
    Key(&'a KeyId),
    /// A server of the applied configuration, by its name there.
    Server(&'a Server),
    /// The server a connection is to, by its name in the applied configuration.
    ServerOf(&'a Session),
    /// What the system said: its kind and number, not its text.
    Io(&'a io::Error),
    /// What the store said: a phrase for it, not its text.
    Store(&'a StoreFault),
    /// Why the store rejected a transaction.
    Rejected(&'a Rejected),
}

/// A field: its name and what it says.
pub type Field<'a> = (&'static str, Shown<'a>);

/// Something happened that an operator may want to find again.
pub fn info(sentence: &'static str, fields: &[Field<'_>]) {
    tracing::info!(target: TARGET, "{sentence}{}", Fields(fields));
}

/// Something is not as it should be, and the gate goes on.
pub fn warn(sentence: &'static str, fields: &[Field<'_>]) {
    tracing::warn!(target: TARGET, "{sentence}{}", Fields(fields));
}

/// Somebody must look.
pub fn error(sentence: &'static str, fields: &[Field<'_>]) {
    tracing::error!(target: TARGET, "{sentence}{}", Fields(fields));
}

/// What the log's own events are marked with.
pub const TARGET: &str = "lychgate_log";

struct Fields<'a>(&'a [Field<'a>]);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|(name, shown)| write!(out, " {name}={shown}"))
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(out, "\"{word}\""),
            Self::Number(number) => write!(out, "{number}"),
            Self::Act(id) => write!(out, "{id}"),
            Self::Ticket(id) => write!(out, "{id}"),
            Self::Holder(id) => write!(out, "{id}"),
            Self::Gate(id) => write!(out, "{id}"),
            Self::Effect(id) => write!(out, "{id}"),
            Self::Code(code) => out.write_str(code.number()),
            Self::State(state) => out.write_str(state.name()),
            Self::Digest(digest) => out.write_str(&digest.to_base64url()),
            Self::Key(key) => out.write_str(&key.0),
            Self::Server(server) => out.write_str(&server.name),
            Self::ServerOf(session) => out.write_str(session.server()),
            Self::Io(fault) => {
                write!(out, "\"{}", fault.kind())?;
                if let Some(number) = fault.raw_os_error() {
                    write!(out, " ({number})")?;
                }
                out.write_str("\"")
            }
            Self::Store(fault) => write!(out, "\"{}\"", phrase(fault)),
            Self::Rejected(why) => out.write_str(crate::gate::code_of(why).number()),
        }
    }
}

/// A phrase for what the store said. Of its own text only what is in this list is said.
fn phrase(fault: &StoreFault) -> &'static str {
    match fault {
        StoreFault::Busy => "too much to do",
        StoreFault::Unavailable(text) => known(text),
        StoreFault::Unrecorded => "whether it was recorded is unknown",
        StoreFault::Closed => "closed",
        StoreFault::Corrupt(_) => "it holds what this program did not write",
        StoreFault::Record(_) => "the record does not agree with itself",
        StoreFault::Version { .. } => "of another version",
        StoreFault::Open { .. } => "cannot be opened",
        _ => "fault",
    }
}

fn known(text: &str) -> &'static str {
    [
        "disk is full",
        "disk I/O error",
        "database is locked",
        "readonly database",
        "unable to open database file",
        "malformed",
        "out of memory",
    ]
    .into_iter()
    .find(|phrase| text.contains(phrase))
    .unwrap_or("cannot answer")
}

macro_rules! from {
    ($($kind:ty => $variant:ident;)*) => {$(
        impl<'a> From<$kind> for Shown<'a> {
            fn from(value: $kind) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

from! {
    &'static str => Word;
    u64 => Number;
    ActId => Act;
    TicketId => Ticket;
    HolderId => Holder;
    GateId => Gate;
    EffectId => Effect;
    Code => Code;
    State => State;
    Digest => Digest;
    &'a KeyId => Key;
    &'a Server => Server;
    &'a Session => ServerOf;
    &'a io::Error => Io;
    &'a StoreFault => Store;
    &'a Rejected => Rejected;
}

impl From<usize> for Shown<'_> {
    fn from(value: usize) -> Self {
        Self::Number(u64::try_from(value).unwrap_or(u64::MAX))
    }
}

impl From<u32> for Shown<'_> {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn faults_are_named_and_their_text_is_not_repeated() {
        let shown = |shown: Shown<'_>| shown.to_string();
        let full = StoreFault::Unavailable("database or disk is full: hunter2".to_owned());
        assert_eq!(shown((&full).into()), "\"disk is full\"");
        let odd = StoreFault::Unavailable("hunter2".to_owned());
        assert_eq!(shown((&odd).into()), "\"cannot answer\"");
        let own = io::Error::other("hunter2");
        assert_eq!(shown((&own).into()), "\"other error\"");
        let systems = io::Error::from_raw_os_error(28);
        assert!(shown((&systems).into()).ends_with("(28)\""));
        let revoked = Rejected::Revoked {
            subject: "destination:hunter2".to_owned(),
        };
        assert_eq!(shown((&revoked).into()), "EF-062");
        let fields = [("act", Shown::Number(1)), ("code", Code::FailClosed.into())];
        assert_eq!(Fields(&fields).to_string(), " act=1 code=EF-080");
    }
}
