//! Durable state and the sequenced record, behind one small trait.
//!
//! Everything the gate must not forget across a crash goes through [`Store::commit`]: which authority was issued and
//! which one is consumed, what became of an act, the epochs, the approvals, and the receipts of all that, in the order
//! in which it happened. A transaction carries its receipts, so no state changes without its line in the record and no
//! line stands there for a change that did not happen.
//!
//! - [`contract`]: the [`Store`] trait and its durability contract in prose; [`Pending`], the promise of a commit
//! - [`txn`]: the named transactions, the only ways to change anything
//! - [`outcome`]: what a commit resolves to: committed, [`Rejected`], or a [`StoreFault`]
//! - [`row`]: what reads give back
//! - [`budget`]: what acts draw on beside their authority
//! - [`ledger`]: what makes the record provable: the signer of its heads, its tiles
//! - [`meter`]: how busy a store is
//! - [`sqlite`]: the store on one SQLite file, one writer thread, group commit
//! - `testing` (feature `testing`): the conformance suite that every backend passes, and a store that fails on request

pub mod budget;
pub mod contract;
pub mod ledger;
pub mod meter;
pub mod outcome;
pub mod row;
pub mod sqlite;
#[cfg(feature = "testing")]
pub mod testing;
pub mod txn;

pub use budget::{Account, Charge, Drawn, Over, Refund};
pub use contract::{Answer, Pending, Store};
pub use ledger::{GroupSigner, SignRefused, Signatory, StoreTiles};
pub use meter::Load;
pub use outcome::{Committed, Done, Rejected, StoreFault, Which};
pub use row::{
    ActQuery, ActRow, AppliedRow, BatchSignature, ConsentRow, Counts, DelegationRow, Grant,
    HeadRow, ProtectedState, RecordRow, Revocation, SaidRow, TicketQuery, TicketRow, TicketState,
    VerdictRow,
};
pub use sqlite::{Options, SqliteStore};
pub use txn::{
    Apply, Approval, Awaited, Consent, Contradict, Decide, Delegate, Deliver, Dispatch, Entry,
    Escalate, Issue, Lapse, Lapsed, LeafHash, NewAct, NewDelegation, NewTicket, Note, Prune,
    Refuse, Revoke, Rotate, Ruling, Said, Settle, Txn, Whose, WithdrawConsent,
};
