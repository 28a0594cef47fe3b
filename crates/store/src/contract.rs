//! The contract every store keeps, and the promise a commit gives.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use lychgate_core::id::{ActId, DelegationId, TicketId};
use lychgate_core::{Digest, Timestamp};
use lychgate_ledger::{Frontier, Hash};
use tokio::sync::{oneshot, watch};

use crate::budget::{Account, Drawn};
use crate::meter::Load;
use crate::outcome::{Committed, StoreFault};
use crate::row::{
    ActQuery, ActRow, AppliedRow, ConsentRow, Counts, DelegationRow, HeadRow, ProtectedState,
    RecordRow, Revocation, SaidRow, TicketQuery, TicketRow, VerdictRow,
};
use crate::txn::Txn;

/// Durable state and the sequenced record of one gate.
///
/// # The durability contract
///
/// **Commits.** [`commit`](Store::commit) hands a transaction over and returns at once; the work is done elsewhere.
/// The [`Pending`] resolves to
/// - `Ok(Committed::Done(..))` only after the transaction, its receipts included, has reached stable storage (`fsync`).
///   It then survives a crash of the process, of the kernel and of the power.
/// - `Ok(Committed::Rejected(..))` when the state did not allow it. Then it changed nothing at all, not even the record.
/// - `Err(StoreFault::Unrecorded)` when storage failed in the middle of making it durable. It may or may not be there
///   after a restart. The store is then closed: every later call answers `Closed`, and the process must exit, because
///   after a failed `fsync` nobody knows what the page cache still holds.
/// - any other `Err` when it is certainly not committed and never will be.
///
/// A transaction is handed over whether or not the `Pending` is awaited: dropping it withdraws nothing. A caller who
/// must not act without the commit simply does not act before `Done`.
///
/// **Order.** Transactions take effect one after another (serializable), those of one caller that waits in between in
/// its order. Receipts are appended in the order in which transactions take effect, those of one transaction together
/// and in their own order, without gaps from index 0.
///
/// **Isolation.** Transactions may be made durable in groups. A rejected transaction never fails or changes its
/// neighbours; it sees what those before it in the same group did.
///
/// **Once.** For each authority at most one `Dispatch` is ever `Done`, whatever races, repeats or restarts happen; each
/// nonce and each approval is consumed at most once. The draws on a budget that are `Done` never add up to more than its
/// limits, whatever races. No state ever changes but along
/// [`State::may_become`](lychgate_core::State::may_become).
///
/// **Heads.** Every commit group that appends is sealed in its own transaction: the tree over the record grows by its
/// receipts, and the new head is signed, once a group, by the [`GroupSigner`](crate::GroupSigner) the store was opened
/// with. So a `Done` receipt is always covered by a signed head. A head that cannot be signed fails the group, which is
/// then certainly not committed. A head is handed out ([`Store::watch_heads`]) only after its commit. Kept are the newest
/// 1,024 heads and the first one after every 256 lines, for ever: about two bytes a line.
///
/// **Time.** The store reads no clock. Each transaction says when it is; the highest of these is kept
/// ([`ProtectedState::last_time`]) and lifetimes are compared with that mark where it is later than what the
/// transaction says; the times in rows are of that later one too. So a clock that steps back revives nothing, and after a restart the gate's clock begins there.
///
/// **Bounds.** The queue is bounded. A full one answers `Busy` at once, which is certainly not committed; the caller
/// denies (EF-081) or submits later. Reads with a `limit` give at most that many rows.
///
/// **Reads** see every transaction whose `Pending` has resolved to `Done`, and may see one that is just about to. They
/// block briefly; they never wait for a commit. No read decides a race: whatever a decision rests on is compared again
/// inside the transaction.
///
/// **Sealed bytes** (answers, displays, read-backs) are opaque here: they arrive encrypted (PROFILE §10) and are deleted
/// with the transaction that ends their purpose.
pub trait Store: Send + Sync + 'static {
    /// Hands a transaction over; see the contract above.
    fn commit(&self, txn: Txn) -> Pending;

    /// The answer of a settled act has reached its caller: drops the sealed answer, and the act is no longer open.
    ///
    /// Fire and forget: written with the next group, or within 250 ms. When a crash loses it, the act stays open as
    /// undelivered, which is safe: an equal call is then given the recorded answer instead of a second effect
    /// (PROFILE §5). An act without an undelivered answer, or unknown, is left alone; an indeterminate
    /// one stays open.
    fn note_delivered(&self, act: ActId);

    /// The epochs, the policy digest and the time mark, as of the last commit.
    ///
    /// # Errors
    /// `Closed`, `Unavailable`; so for every read.
    fn protected_state(&self) -> Result<ProtectedState, StoreFault>;

    /// One act, with its sealed bytes.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn act(&self, id: ActId) -> Result<Option<ActRow>, StoreFault>;

    /// Acts in the order of their ids, which is that of their making. Rows come without their sealed bytes.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn acts(&self, query: &ActQuery) -> Result<Vec<ActRow>, StoreFault>;

    /// How many acts stand in each state.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn counts(&self) -> Result<Counts, StoreFault>;

    /// Every act that an equal call must be held against (PROFILE §5): dispatched, indeterminate, or settled and not
    /// delivered. Rows come without their sealed bytes.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn open_acts(&self) -> Result<Vec<ActRow>, StoreFault>;

    /// What was said of a dispatched act, with its signatures; `None` when nothing is kept.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn said(&self, id: ActId) -> Result<Option<SaidRow>, StoreFault>;

    /// Acts, oldest first, that settled at or before `until`, are undelivered, and whose answer is still kept.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn kept_answers(&self, until: Timestamp) -> Result<Vec<ActId>, StoreFault>;

    /// One ticket, with its sealed display while it is pending.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn ticket(&self, id: TicketId) -> Result<Option<TicketRow>, StoreFault>;

    /// The verdicts on a ticket, at most one a key, in the order of the keys.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn verdicts(&self, id: TicketId) -> Result<Vec<VerdictRow>, StoreFault>;

    /// Tickets in the order of their ids, which is that of their making. Rows come without their sealed displays.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn tickets(&self, query: &TicketQuery) -> Result<Vec<TicketRow>, StoreFault>;

    /// The tickets of an approval subject (PROFILE §11) that are pending, or approved and not consumed, newest first.
    /// Whether one has expired by now is the caller's to compare; consuming it compares again. Rows come without their
    /// sealed displays.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn tickets_of(&self, subject: &Digest, limit: usize) -> Result<Vec<TicketRow>, StoreFault>;

    /// The applied configuration; `None` before the first `Apply`.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn applied(&self) -> Result<Option<AppliedRow>, StoreFault>;

    /// Everything that is revoked, in the order of the subjects.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn revocations(&self) -> Result<Vec<Revocation>, StoreFault>;

    /// What was drawn on an account; `None` when nothing ever was.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn account(&self, account: Account) -> Result<Option<Drawn>, StoreFault>;

    /// One delegation.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn delegation(&self, id: DelegationId) -> Result<Option<DelegationRow>, StoreFault>;

    /// Delegations, newest first, at most `limit`.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn delegations(&self, limit: usize) -> Result<Vec<DelegationRow>, StoreFault>;

    /// Consents, newest first: with `live_at`, those alone that are not withdrawn and cover something after that moment.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn consents(
        &self,
        live_at: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<ConsentRow>, StoreFault>;

    /// The record from index `from`, at most `limit` lines.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn record(&self, from: u64, limit: usize) -> Result<Vec<RecordRow>, StoreFault>;

    /// The record's newest signed head; `None` while it is empty. It covers every line.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn newest_head(&self) -> Result<Option<HeadRow>, StoreFault>;

    /// The kept heads of at least `from` lines, smallest first, at most `limit`. The first one with `from` = index + 1 is
    /// the closest that covers a line. Two of one size are a fork (they cannot come from here).
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn heads(&self, from: u64, limit: usize) -> Result<Vec<HeadRow>, StoreFault>;

    /// Follows the newest head: each value is durable when it is seen. A slow reader sees the latest one only.
    fn watch_heads(&self) -> watch::Receiver<Option<HeadRow>>;

    /// How busy the store is, for metrics alone.
    fn load(&self) -> Load {
        Load::default()
    }

    /// The tree over the record, as kept (RFC 9162 §2.1.2).
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn frontier(&self) -> Result<Frontier, StoreFault>;

    /// At most `count` hashes of a tile level (0: the lines' leaf hashes; n: the roots over 256^n lines each), in order
    /// from number `from` on, as far as the record has grown. See [`StoreTiles`](crate::StoreTiles).
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn tree_hashes(&self, level: u8, from: u64, count: u16) -> Result<Vec<Hash>, StoreFault>;

    /// How many lines the record has.
    ///
    /// # Errors
    /// As [`Store::protected_state`].
    fn record_len(&self) -> Result<u64, StoreFault>;
}

/// The promise of a commit. Await it, or [`wait`](Pending::wait) for it on a thread that may block.
#[must_use = "nothing is known of a commit before its promise resolves"]
#[derive(Debug)]
pub struct Pending(Inner);

#[derive(Debug)]
enum Inner {
    Known(Option<Result<Committed, StoreFault>>),
    Waiting(oneshot::Receiver<Result<Committed, StoreFault>>),
}

/// The other end of a [`Pending`]. Dropping it without an answer says `Unrecorded`: whoever held it died at work.
#[derive(Debug)]
pub struct Answer(oneshot::Sender<Result<Committed, StoreFault>>);

impl Answer {
    /// Resolves the promise. Nobody may be listening any more; that is no fault.
    pub fn give(self, result: Result<Committed, StoreFault>) {
        let _ = self.0.send(result);
    }
}

impl Pending {
    /// A promise and the means to keep it, for backends.
    pub fn new() -> (Answer, Self) {
        let (sender, receiver) = oneshot::channel();
        (Answer(sender), Self(Inner::Waiting(receiver)))
    }

    /// A promise that is kept already.
    pub fn ready(result: Result<Committed, StoreFault>) -> Self {
        Self(Inner::Known(Some(result)))
    }

    /// Blocks until the promise resolves. Not for a thread that drives async tasks: tokio panics there.
    ///
    /// # Errors
    /// As the commit's own.
    pub fn wait(self) -> Result<Committed, StoreFault> {
        match self.0 {
            Inner::Known(result) => result.unwrap_or(Err(StoreFault::Unrecorded)),
            Inner::Waiting(receiver) => receiver
                .blocking_recv()
                .unwrap_or(Err(StoreFault::Unrecorded)),
        }
    }
}

impl Future for Pending {
    type Output = Result<Committed, StoreFault>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            // A second poll after the answer is a misuse; the safe reading of it is "unknown".
            Inner::Known(result) => {
                Poll::Ready(result.take().unwrap_or(Err(StoreFault::Unrecorded)))
            }
            Inner::Waiting(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|got| got.unwrap_or(Err(StoreFault::Unrecorded))),
        }
    }
}
