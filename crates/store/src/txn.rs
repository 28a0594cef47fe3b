//! The named transactions: the only ways to change what the store keeps.
//!
//! Each is whole or not at all, carries the receipts of what it does, and says what time it is.

use lychgate_core::act::SourceType;
use lychgate_core::code::Code;
use lychgate_core::id::{
    ActId, AuthorityId, ConsentId, DelegationId, EffectId, HolderId, Nonce, TicketId,
};
use lychgate_core::receipt::Salt;
use lychgate_core::signed::KeyId;
use lychgate_core::{ConsequenceClass, Digest, Epochs, State, Timestamp};

pub use lychgate_ledger::LeafHash;

use crate::budget::{Charge, Refund};
use crate::outcome::Rejected;
use crate::row::Grant;

/// One line for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The receipt's canonical bytes.
    pub bytes: Vec<u8>,
    /// Their leaf hash ([`lychgate_ledger::leaf_hash`]). The line's index is not among the hashed bytes,
    /// so whoever makes a receipt hashes it before it is committed.
    pub leaf: LeafHash,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Txn {
    /// Keeps an allowed act and its unused authority.
    Issue(Issue),
    /// Consumes an authority: after this, and only then, the effect may run.
    Dispatch(Box<Dispatch>),
    /// Says what became of a dispatched act.
    Settle(Settle),
    /// Makes a delegation durable, which is the effect of the act that asked for it.
    Delegate(Box<Delegate>),
    /// Keeps a denial.
    Refuse(Refuse),
    /// Keeps an act that waits for a person.
    Escalate(Escalate),
    /// Keeps a person's decision.
    Decide(Decide),
    /// Ends what ran out or was given up.
    Lapse(Lapse),
    /// An answer reached its caller, durably and with receipts.
    Deliver(Deliver),
    /// Keeps that a late answer contradicts a person's verdict.
    Contradict(Contradict),
    /// Applies a configuration.
    Apply(Apply),
    /// Revokes subjects, or takes that back.
    Revoke(Revoke),
    /// Moves the authority epoch.
    Rotate(Rotate),
    /// Keeps a consent.
    Consent(Consent),
    /// Ends consents before their time.
    WithdrawConsent(WithdrawConsent),
    /// Drops the bytes of old receipts.
    Prune(Prune),
    /// Receipts only.
    Note(Note),
}

/// What the store keeps of an act from its first moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAct {
    /// The act.
    pub id: ActId,
    /// When it was made.
    pub created_at: Timestamp,
    /// What equal calls have in common (PROFILE §5); absent where they do not matter.
    pub twin: Option<Digest>,
    /// The whole act's digest; absent where a request never became an act.
    pub act_digest: Option<Digest>,
    /// What the receipts' commitment to the arguments opens to.
    pub arguments_digest: Option<Digest>,
    /// What the receipts' commitment to the destination opens to, sealed: it is text of the arguments (PROFILE §10).
    pub destination: Option<Vec<u8>>,
    /// The salt behind the receipts' commitments.
    pub salt: Salt,
    /// The agent.
    pub agent: String,
    /// Hops from the principal's own agent.
    pub depth: u32,
    /// The last link of the chain it acts under; absent for the principal's own agent.
    pub delegation: Option<DelegationId>,
    /// The server in the catalogue; absent when the name resolved to nothing.
    pub tool: Option<String>,
    /// The function in the catalogue; absent when the name resolved to nothing.
    pub function: Option<String>,
    /// The class.
    pub class: Option<ConsequenceClass>,
    /// Who asked; absent means UNKNOWN.
    pub source: Option<SourceType>,
    /// Whether the source is only what configuration vouches for (PROFILE §10).
    pub vouched: bool,
    /// The earlier act this one repeats.
    pub retry_of: Option<ActId>,
}

/// Keeps an allowed act and its unused authority.
///
/// The act is new (`SeenAct` otherwise), or it is escalated and its ticket is approved, unused and in time: then it
/// becomes allowed, and its first row's facts stay. The nonce must be the holder's own with a counter from 1
/// (`NonceUnusable`) and unseen (`SeenNonce`). An issue in itself compares no epochs; dispatching does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The act.
    pub act: NewAct,
    /// The authority.
    pub grant: Grant,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// Consumes an authority (PROFILE §4). Compared in this order, the first that fails being the answer:
///
/// 1. issued: the act's row carries this authority (`NotIssued`)
/// 2. the holder is the same (`HolderMismatch`)
/// 3. unused: the act is allowed (`AlreadyUsed` when it was dispatched, `Expired` when it lapsed, else `WrongState`)
/// 4. in time (`Expired`)
/// 5. the nonce is the one issued (`NonceUnusable`) and unseen (`SeenNonce`)
/// 6. policy, authority, revocation epoch, then the policy digest: what the authority was issued under, what the caller
///    expects and what holds now are all the same (`EpochMismatch`)
/// 7. no subject is revoked (`Revoked`)
/// 8. the approval, when one is named or the act was escalated: its ticket exists (`UnknownTicket`), is for this subject
///    (`TicketSubject`), is approved (`TicketNotApproved`), unused (`TicketConsumed`) and in time (`TicketExpired`)
/// 9. every budget it draws on has room for it (`OverBudget`); all of them are drawn on, or none
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Issued first, in the same transaction; rejected as a whole when either part is. Its receipts come first.
    pub issue: Option<Issue>,
    /// The act.
    pub act: ActId,
    /// The authority presented.
    pub authority: AuthorityId,
    /// Who presents it.
    pub holder: HolderId,
    /// Its nonce.
    pub nonce: Nonce,
    /// What the epochs must be.
    pub expected_epochs: Epochs,
    /// What the applied configuration must be.
    pub policy_digest: Digest,
    /// What must not be revoked.
    pub revocation_subjects: Vec<String>,
    /// The attempt at the effect.
    pub effect: EffectId,
    /// The key passed to the destination.
    pub idempotency_key: Option<String>,
    /// What it draws on the budgets of its chain; each account once (`Malformed` otherwise).
    pub charges: Vec<Charge>,
    /// The approval to consume. For an escalated act it is that act's own ticket (`ApprovalMissing` otherwise).
    pub approval: Option<Approval>,
    /// What a read-back would need from the arguments, sealed; deleted when the act settles.
    pub read_back: Option<Vec<u8>>,
    /// What the PED and the sink say of the act, to be signed with the group and kept for whoever audits it.
    pub said: Option<Said>,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// What is said of a dispatched act: the objects as they are before they are signed, and their leaves in the group's
/// batches. The store signs the batches before it consumes anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Evidence, authority and verification, sealed.
    pub objects: Vec<u8>,
    /// The PED's leaves, evidence and authority; `None` where the authority was presented from outside and is signed.
    pub ped: Option<[LeafHash; 2]>,
    /// The sink's leaf, its verification.
    pub sink: LeafHash,
}

/// A ticket and what it must be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The ticket.
    pub ticket: TicketId,
    /// The subject of the act at hand (PROFILE §11).
    pub subject: Digest,
}

/// Says what became of a dispatched (or indeterminate) act: `to` is one of effected, failed, `input_required`,
/// indeterminate and the two reconciled states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settle {
    /// The act.
    pub act: ActId,
    /// What became of it.
    pub to: State,
    /// The answer, sealed. Kept only while `undelivered`, until it is delivered or forgotten; takes the
    /// place of one kept earlier.
    pub answer: Option<Vec<u8>>,
    /// The answer has yet to reach its caller: the act stays open until then.
    pub undelivered: bool,
    /// What is known of a failure.
    pub code: Option<Code>,
    /// What it drew, given back: only with `Failed` and `InputRequired`, for then it certainly had no effect (`Malformed`
    /// otherwise).
    pub refund: Vec<Refund>,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// Makes a delegation durable (`SeenDelegation` when there is one of this id) and settles, as effected, the act that asked
/// for it: either both or neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegate {
    /// The act's settlement.
    pub settle: Settle,
    /// The delegation.
    pub new: NewDelegation,
}

/// A new delegation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelegation {
    /// The link.
    pub id: DelegationId,
    /// From here on it is worth nothing.
    pub expires_at: Timestamp,
    /// The signed object's canonical bytes.
    pub body: Vec<u8>,
}

/// Keeps a denial: `to` is one of refused, expired and withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuse {
    /// Whose.
    pub whose: Whose,
    /// What it becomes.
    pub to: State,
    /// Why.
    pub code: Option<Code>,
    /// The equal act whose kept answer was given in its place (PROFILE §5).
    pub answered_by: Option<ActId>,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// An act that has a row, or one that has none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It gets its row now (`SeenAct` when there is one).
    New(Box<NewAct>),
    /// It has one (`UnknownAct` otherwise).
    Existing(ActId),
}

/// Keeps an act that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalate {
    /// The act; new.
    pub act: NewAct,
    /// What it waits for.
    pub ticket: Awaited,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// The ticket an escalated act waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A new one, for this act.
    New(NewTicket),
    /// One that is pending already for an equal act: one question, asked once, and still one approval
    /// for one act.
    Pending(Approval),
}

/// A new ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTicket {
    /// The ticket.
    pub id: TicketId,
    /// What an approval of it is for (PROFILE §11).
    pub subject: Digest,
    /// What a list shows of it, sealed; deleted with the display.
    pub summary: Vec<u8>,
    /// What the person is shown, sealed; deleted with the decision or when it lapses.
    pub display: Vec<u8>,
    /// From here on it can neither be decided on nor used.
    pub expires_at: Timestamp,
}

/// Keeps a person's verdict on a pending ticket that is in time, one a key (`SeenVerdict`). What ends the ticket deletes
/// its sealed display. A no also moves every act that still waits for it to refused (EF-071); a yes moves no act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decide {
    /// The ticket.
    pub ticket: TicketId,
    /// What the verdict makes of it.
    pub ruling: Ruling,
    /// With which key.
    pub approver: KeyId,
    /// The verdict as it was signed. Opaque here; whoever uses an approval verifies it again.
    pub verdict: Vec<u8>,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// What a verdict makes of its ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// A yes that is not enough alone: the ticket stays pending.
    Counted,
    /// The yes that was wanted, or the last one.
    Approved,
    /// A no: one ends it.
    Denied,
}

/// Ends what ran out or was given up, all of it or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lapse {
    /// Pending or approved tickets that become expired; their sealed displays are deleted. Acts that still wait for one
    /// are not moved: name them too.
    pub tickets: Vec<TicketId>,
    /// Pending or approved tickets that become withdrawn, in the same way: what they ask for was revoked.
    pub withdrawn: Vec<TicketId>,
    /// Acts that become expired or withdrawn, and why.
    pub acts: Vec<Lapsed>,
    /// Acts whose sealed answer is deleted (PROFILE §5: after ten minutes) while they stay undelivered.
    pub forget_answers: Vec<ActId>,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

impl Lapse {
    /// One that ends nothing yet.
    pub fn at(now: Timestamp) -> Self {
        Self {
            tickets: Vec::new(),
            withdrawn: Vec::new(),
            acts: Vec::new(),
            forget_answers: Vec::new(),
            now,
            receipts: Vec::new(),
        }
    }
}

/// An act that lapses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lapsed {
    /// The act.
    pub act: ActId,
    /// Expired or withdrawn.
    pub to: State,
    /// Why.
    pub code: Option<Code>,
}

/// An answer reached its caller, or a person has taken note of it: as [`crate::Store::note_delivered`], but durable, with
/// receipts, and rejected (`UnknownAct`) when there is no such act. Delivering twice changes nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deliver {
    /// The act.
    pub act: ActId,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// A late answer says otherwise than the person who reconciled the act (`WrongState` when nobody has). The act's state
/// stays: what was released on the strength of it cannot be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradict {
    /// The act.
    pub act: ActId,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// Applies a configuration; moves the policy epoch, and the others asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apply {
    /// The configuration the change was made from (`PolicyMoved` when another is applied).
    pub expected: Option<Digest>,
    /// The new one's digest.
    pub digest: Digest,
    /// The new one's bytes.
    pub snapshot: Vec<u8>,
    /// Purposes changed: moves the purpose epoch.
    pub purposes_moved: bool,
    /// A principal's authorization changed: moves the authority epoch.
    pub authority_moved: bool,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// Revokes subjects, or takes that back; moves the revocation epoch. A subject that is revoked keeps its first time; one
/// that is not revoked may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoke {
    /// Revoked from now on.
    pub add: Vec<String>,
    /// No longer revoked. A subject in both lists is `Malformed`.
    pub remove: Vec<String>,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// A key was rotated: moves the authority epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotate {
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// Keeps a consent (`SeenConsent` when there is one of this id). It lets more happen, so no epoch moves: what was decided
/// without it stays denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// Its id.
    pub id: ConsentId,
    /// From here on it covers nothing.
    pub expires_at: Timestamp,
    /// What was consented to. Opaque here.
    pub terms: Vec<u8>,
    /// What the approver signed; absent where there is no approver.
    pub grant: Option<Vec<u8>>,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// Withdraws consents, all of them or none (`UnknownConsent` for one that is not there or is withdrawn already); moves the
/// authority epoch, and so voids every authority that was issued under any of them and not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithdrawConsent {
    /// Which.
    pub consents: Vec<ConsentId>,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// Drops the bytes of lines that were archived as entry bundles (C2SP tlog-tiles). Their leaf hashes and the whole tree
/// stay, so no proof about any line, old or new, is lost; what a dropped line said, only the archive tells.
///
/// `from` and `below` are multiples of 256, at most 65,536 apart, and the record has all lines below `below`
/// (`Malformed` otherwise). What is dropped already stays so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prune {
    /// The first line.
    pub from: u64,
    /// One past the last line.
    pub below: u64,
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

impl Settle {
    //= PROFILE §5: only what certainly had no effect gives back what it drew
    /// Whether what it drew may be given back.
    pub(crate) fn may_refund(&self) -> Result<(), Rejected> {
        match self.to {
            _ if self.refund.is_empty() => Ok(()),
            State::Failed | State::InputRequired => Ok(()),
            _ => Err(Rejected::Malformed(
                "an effect may have been, and is paid for",
            )),
        }
    }
}

impl Prune {
    /// The lines, when a record of `size` lines may be pruned so.
    pub(crate) fn lines(&self, size: u64) -> Result<std::ops::Range<u64>, Rejected> {
        let whole = self.from.is_multiple_of(BUNDLE) && self.below.is_multiple_of(BUNDLE);
        let far = self.below.saturating_sub(self.from) > MOST_PRUNED;
        if !whole || far || self.from > self.below || self.below > size {
            return Err(Rejected::Malformed("no whole bundles of the record"));
        }
        Ok(self.from..self.below)
    }
}

/// Receipts only: the gate started, stopped, or has something to note.
///
/// A gate that starts settles what its predecessor left open with the other transactions, receipts and all: it reads
/// [`crate::Store::open_acts`], allowed and escalated acts and pending tickets, and commits `Settle` and `Lapse`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What time it is.
    pub now: Timestamp,
    /// For the record.
    pub receipts: Vec<Entry>,
}

/// Lines in an entry bundle.
const BUNDLE: u64 = 256;
/// Lines in one transaction: the writer serves others in between.
const MOST_PRUNED: u64 = 65_536;
