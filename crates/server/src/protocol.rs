//! What a client asks the gate, and what it answers: closed JSON objects, read with the strict parser (PROFILE §3).
//!
//! A request's frame is `{"protocol":3,"request":…}`. A connection may ask one thing after another, so that a plan, a
//! passphrase typed meanwhile and the change itself can share one; they need not. [`Request::Mcp`] and a following
//! [`Request::Acts`] take the rest of the connection.

mod control;
mod delegation;
mod envelope;
mod ledger;
mod view;

use lychgate_core::delegation::DelegationFile;
use lychgate_core::id::{ActId, EnvelopeId, TicketId};
use lychgate_core::json::{self, CaseRule, Limits, Value};
use lychgate_core::signed::KeyId;
use lychgate_core::{Digest, State};
use lychgate_gate::DelegationRequest;
use lychgate_keys::Role;
use lychgate_keys::verdict::{
    ApprovalVerdict, ApproverChange, BundleEdge, Challenge, ConfigurationChange, KeyChange,
    PruneVerdict, PublicKey, Reason, ReconciliationVerdict,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::control::{
    ConnectionView, ConsentView, ControlAnswer, ControlRequest, ControlView, EndView, EpochsView,
};
pub use self::delegation::{DelegationView, MOST_DELEGATIONS};
pub use self::envelope::EnvelopeView;
pub use self::ledger::{LedgerView, MOST_HEADS, MOST_RECORDS, RecordLine};
pub use self::view::{
    ActView, Asked, Bytes, ChangeView, Class, Configuration, DiagnosticView, Effect, NotBytes,
    Plan, Refusal, SignedObjects, Status, Ticket, TicketSummary, Wanted,
};
use crate::frame::{Frame, Kind, MOST_CONTROL};

/// The one version of this protocol.
pub const PROTOCOL: u64 = 3;

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// To speak MCP to a server of the catalogue. Answered with [`Response::Mcp`]; from then on lines go both ways.
    Mcp {
        /// The server's name.
        server: String,
        /// The chain a worker comes with; without one the client speaks as the agent itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        delegation: Option<DelegationFile>,
        /// One of the configured purposes; the usual one when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        purpose: Option<String>,
    },
    /// To hand a part of one's standing on. Answered with [`Response::Asked`] when a person is asked, once for each
    /// time, and at last with [`Response::Delegated`].
    Delegate {
        /// What, to whom.
        request: DelegationRequest,
        /// The chain of whoever delegates; without one it is the agent itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        from: Option<DelegationFile>,
    },
    /// The delegations there are, newest first. Answered with [`Response::Delegations`].
    Delegations,
    /// The open envelopes. Answered with [`Response::Envelopes`].
    Envelopes,
    /// To close one. Answered with [`Response::Envelopes`]: those that are left.
    CloseEnvelope {
        /// Which.
        id: EnvelopeId,
    },
    /// Revocation, consent and how far they have come. Answered with [`Response::Control`].
    Control {
        /// What.
        control: ControlRequest,
    },
    /// How the gate is. Answered with [`Response::Status`].
    Status,
    /// To end. Answered with [`Response::Stopping`].
    Stop,
    /// Tickets that wait for a person, at most [`MOST_TICKETS`] at a time. Answered with [`Response::Pending`].
    Pending {
        /// Which.
        wanted: Wanted,
    },
    /// The tickets that wait and that a text names: an id, or how it begins or ends. Answered with [`Response::Named`].
    Named {
        /// The text.
        part: String,
    },
    /// One of them, with what the person is to be shown. Answered with [`Response::Ticket`].
    Ticket {
        /// Which.
        id: TicketId,
    },
    /// A person's verdict on a ticket. Answered with [`Response::Ruled`].
    Rule {
        /// Signed.
        verdict: ApprovalVerdict,
    },
    /// Another approver, or one less. Answered with [`Response::ApproverChanged`].
    ChangeApprover {
        /// Signed.
        change: ApproverChange,
    },
    /// Acts, newest first. Answered with [`Response::Acts`]; when following, with one more whenever some have changed.
    Acts {
        /// Only those in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        state: Option<State>,
        /// At most so many; never more than [`MOST_ACTS`].
        limit: u32,
        /// Whether to go on telling.
        follow: bool,
    },
    /// One act. Answered with [`Response::Act`].
    Act {
        /// Which.
        id: ActId,
    },
    /// What was signed on an act's way. Answered with [`Response::Objects`].
    Objects {
        /// Which act.
        id: ActId,
    },
    /// What applying a configuration would change. Answered with [`Response::Plan`].
    Plan {
        /// The new one.
        configuration: Configuration,
    },
    /// To apply a configuration. Answered with [`Response::Applied`].
    Apply {
        /// The new one.
        configuration: Configuration,
        /// The approver's yes, with the plan's challenge in it; needed when the plan says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        yes: Option<ConfigurationChange>,
    },
    /// A one-time challenge for a signature. Answered with [`Response::Challenge`].
    Challenge,
    /// A person's verdict on an act in doubt. Answered with [`Response::Reconciled`].
    Reconcile {
        /// Signed.
        verdict: ReconciliationVerdict,
    },
    /// The same where there is no approver to sign one. Answered with [`Response::Reconciled`].
    ReconcileUnsigned {
        /// The act.
        id: ActId,
        /// Whether it had its effect.
        effect: bool,
        /// Why the person says so.
        reason: Reason,
    },
    /// To make a key for a role, which nobody believes yet. Answered with [`Response::KeyPrepared`].
    PrepareKey {
        /// Whose.
        role: Role,
    },
    /// To put a prepared key in the place of a role's current one. Answered with [`Response::Rotated`]; the gate then
    /// ends and the next one signs with the new key.
    Rotate {
        /// Signed; names the role and the key.
        change: KeyChange,
    },
    /// To drop the bytes of archived lines of the record. Answered with [`Response::Pruned`].
    Prune {
        /// The first line.
        first: BundleEdge,
        /// One past the last line.
        below: BundleEdge,
        /// Digest of the archive, as in `lychgate_keys::verdict::PruneVerdict`.
        archive: Digest,
        /// The approver's yes to this, where there is an approver.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        yes: Option<PruneVerdict>,
    },
    /// The trust bundle. Answered with [`Response::Trust`].
    Trust,
    /// How the log stands. Answered with [`Response::Ledger`].
    Ledger,
    /// Records in their order, [`MOST_RECORDS`] at a time. Answered with [`Response::Records`].
    Records {
        /// The first one's number.
        from: u64,
        /// At most so many.
        limit: u32,
    },
    /// The log's kept heads, smallest first, [`MOST_HEADS`] at a time. Answered with [`Response::Heads`].
    Heads {
        /// Only those of at least so many records.
        from: u64,
        /// At most so many.
        limit: u32,
    },
    /// A record with its proof. Answered with [`Response::Proof`].
    Proof {
        /// The record's number.
        index: u64,
        /// Whether to open what it commits to.
        open: bool,
        /// Under this head, a signed note, as a witness cosigned it; else under the newest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "json::present")]
        head: Option<Bytes>,
    },
}

/// What the gate answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Response {
    /// What was asked of the rules.
    Control {
        /// That.
        answer: ControlAnswer,
    },
    /// Lines may go both ways.
    Mcp {
        /// The longest line the gate takes, in bytes.
        message_bytes: u64,
    },
    /// A person is asked; more follows.
    Asked {
        /// The ticket.
        ticket: TicketId,
    },
    /// It is made.
    Delegated {
        /// The act that made it.
        act: ActId,
        /// What its holder is handed; the secret is told this once.
        file: DelegationFile,
    },
    /// The delegations.
    Delegations {
        /// Newest first.
        delegations: Vec<DelegationView>,
    },
    /// The open envelopes.
    Envelopes {
        /// Oldest first.
        envelopes: Vec<EnvelopeView>,
    },
    /// How the gate is.
    Status {
        /// That.
        status: Status,
    },
    /// It ends.
    Stopping,
    /// One page of the tickets.
    Pending {
        /// In the order that was asked for.
        tickets: Vec<TicketSummary>,
        /// Whether there are further ones.
        more: bool,
        /// How many wait in all.
        waiting: u64,
    },
    /// The tickets that a text names.
    Named {
        /// At most three: more than one names none.
        tickets: Vec<TicketId>,
    },
    /// The ticket.
    Ticket {
        /// `null` when there is none, or it waits no longer.
        ticket: Option<Ticket>,
    },
    /// The verdict is kept.
    Ruled {
        /// Who is still to say yes; empty when the ticket is decided.
        still: Vec<Asked>,
    },
    /// The approver has come or gone.
    ApproverChanged {
        /// The key's id.
        key_id: KeyId,
    },
    /// The acts.
    Acts {
        /// Newest first. When following: those that changed since the last answer.
        acts: Vec<ActView>,
    },
    /// The act.
    Act {
        /// `null` when there is none.
        act: Option<ActView>,
    },
    /// What was signed.
    Objects {
        /// `null` when there is no such act, or it was never dispatched.
        objects: Option<SignedObjects>,
    },
    /// What would change.
    Plan {
        /// That.
        plan: Plan,
    },
    /// The configuration holds now.
    Applied {
        /// Its digest.
        digest: Digest,
        /// The names in any server's `pass_env` that the gate's own environment does not have.
        unset: Vec<String>,
    },
    /// To be signed.
    Challenge {
        /// Once, within fifteen minutes.
        challenge: Challenge,
    },
    /// The act is no longer in doubt.
    Reconciled {
        /// Where it stands now.
        state: State,
    },
    /// A key is made, and kept in the gate's memory for fifteen minutes.
    KeyPrepared {
        /// The key: what the approver signs.
        public: PublicKey,
        /// Its id, as it will stand in the trust bundle.
        key_id: KeyId,
        /// To be signed with it.
        challenge: Challenge,
    },
    /// The new key is in place.
    Rotated {
        /// Its id.
        key_id: KeyId,
    },
    /// The lines' bytes are gone.
    Pruned,
    /// The trust bundle.
    Trust {
        /// Its canonical text; see `lychgate_keys::TrustBundle::from_bytes`.
        bundle: String,
    },
    /// The log.
    Ledger {
        /// That.
        ledger: LedgerView,
    },
    /// One page of the record.
    Records {
        /// In their order.
        records: Vec<RecordLine>,
        /// How many there are in all.
        size: u64,
    },
    /// One page of the heads.
    Heads {
        /// Signed notes, smallest first.
        heads: Vec<Bytes>,
    },
    /// A record with its proof.
    Proof {
        /// A `lychgate_ledger::ReceiptProof`'s canonical bytes.
        proof: Bytes,
    },
    /// No.
    Refused(Refusal),
}

/// A control frame's bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolFault {
    /// Another version of the program speaks at the other end.
    #[error(
        "gate and client speak different protocols (ours is {PROTOCOL}); stop the old gate with `lychgate gate stop`"
    )]
    Version,
    /// No such object.
    #[error("message is not understood: {0}")]
    Malformed(String),
}

#[derive(Serialize)]
struct Envelope<'a> {
    protocol: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a Request>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a Response>,
}

impl Request {
    /// The request's frame.
    ///
    /// # Errors
    /// When it has no canonical form.
    pub fn to_frame(&self) -> Result<Frame, ProtocolFault> {
        to_frame(&Envelope {
            protocol: PROTOCOL,
            request: Some(self),
            response: None,
        })
    }

    /// Reads a control frame.
    ///
    /// # Errors
    /// When it is no request of this protocol.
    pub fn from_frame(frame: &Frame) -> Result<Self, ProtocolFault> {
        from_frame(frame, "request")
    }
}

impl Response {
    /// The response's frame.
    ///
    /// # Errors
    /// When it has no canonical form.
    pub fn to_frame(&self) -> Result<Frame, ProtocolFault> {
        to_frame(&Envelope {
            protocol: PROTOCOL,
            request: None,
            response: Some(self),
        })
    }

    /// Reads a control frame.
    ///
    /// # Errors
    /// When it is no response of this protocol.
    pub fn from_frame(frame: &Frame) -> Result<Self, ProtocolFault> {
        from_frame(frame, "response")
    }
}

fn to_frame(envelope: &Envelope<'_>) -> Result<Frame, ProtocolFault> {
    json::to_canonical(envelope)
        .map(Frame::control)
        .map_err(|fault| ProtocolFault::Malformed(fault.to_string()))
}

fn from_frame<T: DeserializeOwned>(frame: &Frame, member: &str) -> Result<T, ProtocolFault> {
    let malformed = |why: &dyn ToString| ProtocolFault::Malformed(why.to_string());
    if frame.kind != Kind::Control {
        return Err(malformed(&"it is no control message"));
    }
    let limits = Limits {
        max_bytes: MOST_CONTROL,
        max_depth: 64,
        case: CaseRule::Allow,
    };
    let value = json::parse(&frame.payload, &limits).map_err(|fault| malformed(&fault))?;
    let object = value.as_object().ok_or(ProtocolFault::Version)?;
    if object.get("protocol").and_then(Value::as_u64) != Some(PROTOCOL) {
        return Err(ProtocolFault::Version);
    }
    match (object.get(member), object.len()) {
        (Some(content), 2) => json::from_value(content).map_err(|fault| malformed(&fault)),
        _ => Err(malformed(&format!(
            "`protocol` and `{member}` are its members"
        ))),
    }
}

/// The most tickets that one name is told of.
pub const MOST_NAMED: usize = 3;
/// The most tickets in one answer.
pub const MOST_TICKETS: usize = 500;
/// The most acts in one answer.
pub const MOST_ACTS: u32 = 1000;
