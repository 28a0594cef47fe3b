//! What a commit resolves to.

use lychgate_core::{Digest, State};

use crate::budget::{Account, Over};
use crate::row::TicketState;

/// The answer to a transaction that the store could decide on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a rejected transaction changed nothing"]
pub enum Committed {
    /// Durable.
    Done(Done),
    /// The state did not allow it; nothing changed.
    Rejected(Rejected),
}

impl Committed {
    /// The success, or why it was rejected.
    ///
    /// # Errors
    /// The rejection.
    pub fn done(self) -> Result<Done, Rejected> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Rejected(why) => Err(why),
        }
    }
}

/// What is known of a durable transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The record index of its first receipt; of the next receipt to come when it carried none.
    pub first_index: u64,
    /// The epochs after it.
    pub epochs: lychgate_core::Epochs,
}

/// Why a transaction was not allowed. Exhaustive: the gate maps each to a code (PROFILE §6).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The store never issued this authority for this act. EF-002.
    #[error("the authority was not issued for this act")]
    NotIssued,
    /// The presenter is not the holder. EF-050.
    #[error("the authority belongs to another holder")]
    HolderMismatch,
    /// The authority is consumed. EF-005.
    #[error("the authority is already used")]
    AlreadyUsed,
    /// The authority's time is over. EF-004.
    #[error("the authority has expired")]
    Expired,
    /// The nonce was consumed by an earlier act. EF-006.
    #[error("the nonce has been seen")]
    SeenNonce,
    /// An act of this id exists. EF-006.
    #[error("the act has been seen")]
    SeenAct,
    /// The nonce is not the one issued, is not the holder's own, or its counter is out of range. EF-007.
    #[error("the nonce is unusable")]
    NonceUnusable,
    /// An epoch or the policy digest moved. EF-030, EF-031, EF-032.
    #[error("the {which} moved")]
    EpochMismatch {
        /// What moved; the first in the order policy, authority, revocation, digest.
        which: Which,
    },
    /// Something the act needs is revoked. EF-062.
    #[error("`{subject}` is revoked")]
    Revoked {
        /// The first of the transaction's subjects that is.
        subject: String,
    },
    /// A budget that it draws on has no room for it. EF-051, EF-043.
    #[error("the {over} of a budget are used up")]
    OverBudget {
        /// Whose.
        account: Account,
        /// Which limit.
        over: Over,
    },
    /// A delegation of this id exists.
    #[error("the delegation has been seen")]
    SeenDelegation,
    /// No such ticket.
    #[error("there is no such ticket")]
    UnknownTicket,
    /// A ticket of this id exists.
    #[error("the ticket exists already")]
    SeenTicket,
    /// Only a pending ticket can be decided on.
    #[error("the ticket is not pending but {state}")]
    TicketNotPending {
        /// What it is.
        state: TicketState,
    },
    /// This key has given its verdict on the ticket.
    #[error("this key has decided on the ticket before")]
    SeenVerdict,
    /// Only an approved ticket licenses an act. EF-070, EF-071.
    #[error("the ticket is not approved but {state}")]
    TicketNotApproved {
        /// What it is.
        state: TicketState,
    },
    /// The ticket's time is over. EF-072.
    #[error("the ticket has expired")]
    TicketExpired,
    /// The approval is consumed. EF-005.
    #[error("the approval is already used")]
    TicketConsumed,
    /// The ticket is for another subject. EF-010.
    #[error("the ticket is for another subject")]
    TicketSubject,
    /// The act was escalated, and the transaction names no approval to consume, or not its own ticket. EF-070.
    #[error("the act needs its approval")]
    ApprovalMissing,
    /// No such act.
    #[error("there is no such act")]
    UnknownAct,
    /// The act's lifecycle does not allow this step.
    #[error("an act that is {} cannot become {}", from.name(), to.name())]
    WrongState {
        /// Where it stands.
        from: State,
        /// Where it was to go.
        to: State,
    },
    /// A consent of this id exists.
    #[error("the consent exists already")]
    SeenConsent,
    /// No such consent, or it is withdrawn already.
    #[error("there is no such consent, or it is withdrawn already")]
    UnknownConsent,
    /// The applied configuration is not the one the change was made from.
    #[error("another configuration was applied meanwhile")]
    PolicyMoved {
        /// The applied one.
        found: Option<Digest>,
    },
    /// The transaction names a thing twice, or a value lies outside what can be kept.
    #[error("the transaction is not well formed: {0}")]
    Malformed(&'static str),
}

/// Which of the things an authority is bound to has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The policy epoch.
    Policy,
    /// The authority epoch.
    Authority,
    /// The revocation epoch.
    Revocation,
    /// The applied configuration's digest.
    PolicyDigest,
}

impl std::fmt::Display for Which {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Policy => "policy epoch",
            Self::Authority => "authority epoch",
            Self::Revocation => "revocation epoch",
            Self::PolicyDigest => "policy digest",
        })
    }
}

/// The store could not do its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreFault {
    /// The queue is full; certainly not committed. EF-081.
    #[error("the store has too much to do")]
    Busy,
    /// Storage answered with an error before anything was made durable; certainly not committed. EF-081.
    #[error("the store cannot answer: {0}")]
    Unavailable(String),
    /// Storage failed while making it durable: it may or may not be there after a restart. The store is closed.
    #[error("whether the transaction was recorded is unknown; the store is closed")]
    Unrecorded,
    /// The store was closed by an earlier `Unrecorded`, or is shutting down; certainly not committed.
    #[error("the store is closed")]
    Closed,
    /// What is stored is not what this program wrote.
    #[error("the store holds what this program did not write: {0}")]
    Corrupt(String),
    /// Record, tree and signed heads do not agree: lines were changed, dropped or put in behind the store's back.
    #[error("the record does not agree with itself: {0}")]
    Record(String),
    /// The file is of a version this program does not know.
    #[error("the store has schema version {found}, this program knows {known}")]
    Version {
        /// The file's.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The file cannot be opened or made.
    #[error("cannot open the store `{path}`: {reason}")]
    Open {
        /// Where.
        path: String,
        /// What the system said.
        reason: String,
    },
}
