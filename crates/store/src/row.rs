//! What reads give back.

use lychgate_core::act::SourceType;
use lychgate_core::code::Code;
use lychgate_core::id::{
    ActId, AuthorityId, ConsentId, DelegationId, EffectId, HolderId, Nonce, TicketId,
};
use lychgate_core::receipt::Salt;
use lychgate_core::signed::{BatchPlace, KeyId};
use lychgate_core::{ConsequenceClass, Digest, Epochs, State, Timestamp};

use crate::txn::LeafHash;

/// What authorities are compared with inside the consuming transaction, and the time mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectedState {
    /// Policy, authority and revocation epoch.
    pub epochs: Epochs,
    /// Moves when purposes are reconfigured (PROFILE §11).
    pub purpose_epoch: u64,
    /// The applied configuration; `None` before the first `Apply`.
    pub policy_digest: Option<Digest>,
    /// The latest time any transaction named; the gate's clock never starts below it.
    pub last_time: Timestamp,
}

/// An act as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActRow {
    /// The act.
    pub id: ActId,
    /// Where it stands.
    pub state: State,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// What equal calls have in common (PROFILE §5); absent where they do not matter.
    pub twin: Option<Digest>,
    /// The whole act's digest; absent where a request never became an act.
    pub act_digest: Option<Digest>,
    /// What the receipts' commitment to the arguments opens to.
    pub arguments_digest: Option<Digest>,
    /// What the receipts' commitment to the destination opens to, sealed.
    pub destination: Option<Vec<u8>>,
    /// The salt behind the receipts' commitments.
    pub salt: Salt,
    /// The agent.
    pub agent: String,
    /// Hops from the principal's own agent.
    pub depth: u32,
    /// The last link of the chain it acts under.
    pub delegation: Option<DelegationId>,
    /// The server in the catalogue.
    pub tool: Option<String>,
    /// The function in the catalogue.
    pub function: Option<String>,
    /// The class.
    pub class: Option<ConsequenceClass>,
    /// Who asked; absent means UNKNOWN.
    pub source: Option<SourceType>,
    /// Whether the source is only what configuration vouches for.
    pub vouched: bool,
    /// The earlier act this one repeats.
    pub retry_of: Option<ActId>,
    /// The authority, once one was issued.
    pub grant: Option<Grant>,
    /// The attempt at the effect, once dispatched.
    pub effect: Option<EffectId>,
    /// The idempotency key passed to the destination.
    pub idempotency_key: Option<String>,
    /// The escalation it waits for, waited for, or was licensed by.
    pub ticket: Option<TicketId>,
    /// Why it was not executed, or what is known of its failure.
    pub code: Option<Code>,
    /// The equal act whose kept answer its caller was given.
    pub answered_by: Option<ActId>,
    /// A late answer contradicts the person who reconciled it.
    pub contradicted: bool,
    /// Settled, and the answer has not reached its caller.
    pub undelivered: bool,
    /// The sealed answer; only from [`crate::Store::act`].
    pub answer: Option<Vec<u8>>,
    /// What a read-back needs, sealed; only from [`crate::Store::act`].
    pub read_back: Option<Vec<u8>>,
}

/// What was said of a dispatched act, and by which signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidRow {
    /// Evidence, authority and verification without their signatures, sealed.
    pub objects: Vec<u8>,
    /// Where evidence and authority stand in the PED's batch; `None` where the authority was presented from outside.
    pub ped: Option<[BatchSignature; 2]>,
    /// Where the verification stands in the sink's batch.
    pub sink: BatchSignature,
}

/// A place in a batch, and the signature of the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSignature {
    /// The place.
    pub place: BatchPlace,
    /// The signature over the batch's root.
    pub signature: [u8; 64],
}

/// An authority as the store issued it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The authority.
    pub authority: AuthorityId,
    /// Who alone may present it.
    pub holder: HolderId,
    /// Its nonce.
    pub nonce: Nonce,
    /// From here on it is worth nothing.
    pub expires_at: Timestamp,
    /// The epochs it is bound to.
    pub epochs: Epochs,
    /// The configuration it is bound to.
    pub policy_digest: Digest,
}

/// Which acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActQuery {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those past this one, in the direction of the walk.
    pub after: Option<ActId>,
    /// From the newest down, else from the oldest up.
    pub newest_first: bool,
    /// At most so many.
    pub limit: usize,
}

/// How many acts stand in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub(crate) [u64; 12]);

impl Counts {
    /// How many stand in `state`.
    pub fn of(&self, state: State) -> u64 {
        self.0
            .get(usize::from(state.number()))
            .copied()
            .unwrap_or(0)
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Where a ticket stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TicketState {
    /// It waits for a person.
    Pending,
    /// A person said yes; it licenses one act of its subject until it expires.
    Approved,
    /// A person said no. Final.
    Denied,
    /// Nobody decided, or nobody used the approval, in time. Final.
    Expired,
    /// Its approval was used. Final.
    Consumed,
    /// What it asks for was revoked. Final.
    Withdrawn,
}

impl TicketState {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Approved,
        Self::Denied,
        Self::Expired,
        Self::Consumed,
        Self::Withdrawn,
    ];

    /// The spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Consumed => "consumed",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// The small number the store keeps; stable for ever.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// From the store's number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl std::fmt::Display for TicketState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// An escalation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketRow {
    /// The ticket.
    pub id: TicketId,
    /// Where it stands.
    pub state: TicketState,
    /// What an approval of it is for (PROFILE §11).
    pub subject: Digest,
    /// The act that asked first.
    pub act: ActId,
    /// When it was made.
    pub created_at: Timestamp,
    /// From here on it can neither be decided on nor used.
    pub expires_at: Timestamp,
    /// When a person decided.
    pub decided_at: Option<Timestamp>,
    /// With which key.
    pub approver: Option<KeyId>,
    /// Which act used the approval.
    pub consumed_by: Option<ActId>,
    /// What a list shows of it, sealed; gone once it is no longer pending.
    pub summary: Option<Vec<u8>>,
    /// What the person is shown, sealed; gone once it is no longer pending. Only from [`crate::Store::ticket`].
    pub display: Option<Vec<u8>>,
    /// How long the sealed display is, in bytes; 0 once it is gone.
    pub display_bytes: u64,
}

/// A delegation that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegationRow {
    /// The link.
    pub id: DelegationId,
    /// The act that made it.
    pub act: ActId,
    /// When it was made.
    pub made_at: Timestamp,
    /// From here on it is worth nothing.
    pub expires_at: Timestamp,
    /// The signed object's canonical bytes.
    pub body: Vec<u8>,
}

/// Which tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketQuery {
    /// Only those in this state.
    pub state: Option<TicketState>,
    /// Only those past this one, in the direction of the walk.
    pub after: Option<TicketId>,
    /// From the newest down, else from the oldest up.
    pub newest_first: bool,
    /// At most so many.
    pub limit: usize,
}

impl TicketQuery {
    /// The newest ones, newest first.
    #[must_use]
    pub const fn newest(state: Option<TicketState>, limit: usize) -> Self {
        Self {
            state,
            after: None,
            newest_first: true,
            limit,
        }
    }
}

/// A verdict on a ticket, as it was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictRow {
    /// With which key, as the store was told.
    pub approver: KeyId,
    /// The signed object. Nothing here vouches for it: it is verified before it is used.
    pub bytes: Vec<u8>,
}

/// The applied configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedRow {
    /// Its digest.
    pub digest: Digest,
    /// The policy epoch it began.
    pub epoch: u64,
    /// Its bytes, as the caller gave them.
    pub snapshot: Vec<u8>,
    /// When it was applied.
    pub at: Timestamp,
}

/// Something that is revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// What, in the gate's own spelling (for example `server:fs`).
    pub subject: String,
    /// Since when.
    pub at: Timestamp,
}

/// A consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRow {
    /// Its id.
    pub id: ConsentId,
    /// When it was granted.
    pub granted_at: Timestamp,
    /// From here on it covers nothing.
    pub expires_at: Timestamp,
    /// When it was withdrawn.
    pub withdrawn_at: Option<Timestamp>,
    /// What was consented to, as it was handed over.
    pub terms: Vec<u8>,
    /// What the approver signed, as it was handed over. Nothing here vouches for it.
    pub grant: Option<Vec<u8>>,
}

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRow {
    /// Its place, from 0.
    pub index: u64,
    /// The receipt's canonical bytes; `None` once they were archived and pruned.
    pub bytes: Option<Vec<u8>>,
    /// Its leaf hash.
    pub leaf: LeafHash,
}

/// A signed head of the record: what it was when it had `size` lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadRow {
    /// How many lines.
    pub size: u64,
    /// The signed checkpoint's bytes ([`lychgate_ledger::SignedCheckpoint`]).
    pub note: Vec<u8>,
}
