//! The parts of requests and answers: refusals, configurations, and what is shown of tickets, acts and changes.

mod plan;

use std::collections::BTreeMap;
use std::path::Path;

use lychgate_core::code::Code;
use lychgate_core::digest::b64;
use lychgate_core::id::{ActId, EffectId, GateId, TicketId};
use lychgate_core::json::{self, Limits, Value};
use lychgate_core::receipt::{Approver, Isolation};
use lychgate_core::{ConsequenceClass, Digest, Epochs, State, Timestamp};
use lychgate_policy::{Diagnostics, Pins};
use serde::{Deserialize, Serialize};

pub use self::plan::{ChangeView, Effect, Plan};
#[cfg(doc)]
use super::Request;

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Which exit status it is worth (CLI.md).
    pub class: Class,
    /// A sentence for the person.
    pub reason: String,
    /// What is wrong with a configuration; empty for everything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<DiagnosticView>,
}

impl Refusal {
    /// One without diagnostics.
    pub fn new(class: Class, reason: impl ToString) -> Self {
        Self {
            class,
            reason: reason.to_string(),
            diagnostics: Vec::new(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.reason)?;
        for diagnostic in &self.diagnostics {
            write!(out, "\n{diagnostic}")?;
        }
        Ok(())
    }
}

/// The exit status a refusal is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// 1: refused, denied, or a verification failed.
    Refused,
    /// 2: wrong usage or configuration.
    Usage,
    /// 3: an internal fault; nothing ran.
    Fault,
}

impl Class {
    /// The exit status.
    pub fn status(self) -> u8 {
        match self {
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Fault => 3,
        }
    }
}

/// One problem of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiagnosticView {
    /// The file at fault, as the client named it.
    pub file: String,
    /// Line from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub line: Option<u64>,
    /// Column in characters from 1.
    pub column: u64,
    /// What is wrong.
    pub message: String,
    /// What was probably meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub suggestion: Option<String>,
}

impl DiagnosticView {
    /// The views of all problems.
    pub fn of(diagnostics: &Diagnostics) -> Vec<Self> {
        let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let one = |one: &lychgate_policy::Diagnostic| Self {
            file: one.file.to_string_lossy().into_owned(),
            line: one.line.map(wide),
            column: wide(one.column),
            message: one.message.clone(),
            suggestion: one.suggestion.clone(),
        };
        diagnostics.iter().map(one).collect()
    }
}

impl std::fmt::Display for DiagnosticView {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", lychgate_core::display::escape(&self.file))?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        write!(out, ": {}", self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(out, " (did you mean `{suggestion}`?)")?;
        }
        Ok(())
    }
}

/// A configuration as a client read it from its files; the gate compiles it anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The text of `lychgate.toml`.
    pub text: String,
    /// Its path; only names the text in diagnostics.
    pub file: String,
    /// The raw bytes of `pins/<server>.json`, by server name.
    pub pins: BTreeMap<String, Bytes>,
}

impl Configuration {
    /// Of what was read.
    pub fn new(text: impl Into<String>, file: &Path, pins: &Pins) -> Self {
        Self {
            text: text.into(),
            file: file.to_string_lossy().into_owned(),
            pins: pins
                .iter()
                .map(|(name, bytes)| (name.clone(), Bytes(bytes.clone())))
                .collect(),
        }
    }

    /// The pins as the compiler takes them.
    pub fn pins(&self) -> Pins {
        self.pins
            .iter()
            .map(|(name, bytes)| (name.clone(), bytes.0.clone()))
            .collect()
    }
}

/// Bytes; on the wire base64url without padding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bytes(pub Vec<u8>);

/// A text that is not base64url.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be base64url without padding")]
pub struct NotBytes;

impl TryFrom<String> for Bytes {
    type Error = NotBytes;

    fn try_from(text: String) -> Result<Self, NotBytes> {
        b64::decode(&text).map(Self).ok_or(NotBytes)
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        b64::encode(&bytes.0)
    }
}

/// How the gate is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The running gate.
    pub gate_id: GateId,
    /// Its process.
    pub pid: u32,
    /// The program's version.
    pub program: String,
    /// What it calls now.
    pub now: Timestamp,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// The epochs.
    pub epochs: Epochs,
    /// The applied configuration.
    pub policy_digest: Digest,
    /// Its profile.
    pub profile: String,
    /// Its servers.
    pub servers: Vec<String>,
    /// Whether it shares the agent's user.
    pub isolation: Isolation,
    /// Whether there is an approver.
    pub approver: Approver,
    /// Clients connected to servers.
    pub clients: u64,
    /// Tickets that wait for a person.
    pub pending: u64,
    /// How many acts stand in each state that has any, by the state's name.
    pub acts: BTreeMap<String, u64>,
    /// Lines in the record.
    pub receipts: u64,
}

/// A ticket that waits for a person, as a list shows it: bounded, and without the arguments. Every text but the digests
/// comes from the act and is at most [`TicketSummary::MOST_TEXT`] characters long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TicketSummary {
    /// The ticket.
    pub id: TicketId,
    /// What an approval of it is for.
    pub subject: Digest,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it can be decided and used.
    pub expires_at: Timestamp,
    /// Whether its caller still waits.
    pub waiting: bool,
    /// The act that asked.
    pub act: ActId,
    /// The server in the catalogue.
    pub tool: String,
    /// The function in the catalogue.
    pub function: String,
    /// The consequence class.
    pub class: String,
    /// Where it would take effect: the first target, or the destination.
    pub reach: String,
    /// How many targets it has beyond that one.
    pub more: u64,
    /// The digest of the arguments.
    pub arguments_digest: String,
    /// Why it asks: the code's number.
    pub code: String,
    /// Why it asks, in words.
    pub why: String,
}

impl TicketSummary {
    /// The most characters of a text; one that is longer ends in an ellipsis.
    pub const MOST_TEXT: usize = 200;
}

/// A ticket that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The ticket.
    pub id: TicketId,
    /// What an approval of it is for; goes into the verdict.
    pub subject: Digest,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it can be decided and used.
    pub expires_at: Timestamp,
    /// Whether its caller still waits.
    pub waiting: bool,
    /// Who is asked, and how many of them have said yes.
    pub asked: Vec<Asked>,
    /// What the person is shown, as canonical JSON; see [`Ticket::display`].
    pub display: String,
}

/// How far the yeses of one group of approvers have come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The group in the configuration; empty when any approver may decide alone.
    pub group: String,
    /// How many different keys must say yes.
    pub quorum: u64,
    /// How many have.
    pub yes: u64,
}

/// Which of the tickets that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Only those past this one, in the direction of the walk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub after: Option<TicketId>,
    /// From the newest down, else from the oldest up.
    pub newest_first: bool,
    /// Only calls of this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub tool: Option<String>,
    /// Only calls of this function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub function: Option<String>,
    /// Only calls of this class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub class: Option<ConsequenceClass>,
    /// At most so many; never more than [`super::MOST_TICKETS`].
    pub limit: u64,
}

impl Ticket {
    /// What the person is shown: an object with `tool_id`, `function_id`, `arguments` (canonical text) and more.
    pub fn display(&self) -> Option<Value> {
        json::parse(self.display.as_bytes(), &Limits::CANON).ok()
    }
}

/// An act as the store keeps it, without its sealed parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActView {
    /// The act.
    pub id: ActId,
    /// Where it stands.
    pub state: State,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The agent.
    pub agent: String,
    /// The server in the catalogue; absent when the name resolved to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub tool: Option<String>,
    /// The function in the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub function: Option<String>,
    /// The consequence class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub class: Option<ConsequenceClass>,
    /// The digest of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub arguments_digest: Option<Digest>,
    /// The canonical destination; only in answer to [`Request::Act`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub destination: Option<String>,
    /// The attempt at the effect, once dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub effect: Option<EffectId>,
    /// The earlier act this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub retry_of: Option<ActId>,
    /// Its escalation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub ticket: Option<TicketId>,
    /// Why it was not executed, or what is known of its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub code: Option<Code>,
    /// The equal act whose kept answer its caller was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub answered_by: Option<ActId>,
    /// A late answer contradicts the person who reconciled it.
    pub contradicted: bool,
    /// Settled, and the answer has not reached its caller.
    pub undelivered: bool,
}

/// What was signed on an act's way, each as the canonical text that was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedObjects {
    /// The PED's evidence; the text `null` where the authority came from outside.
    pub evidence: String,
    /// The PED's authority.
    pub authority: String,
    /// The sink's verification.
    pub verification: String,
}
