//! The one thread that writes: blocks for one transaction, drains the queue, commits the group, and has it made durable
//! and answered (see `super::sync`).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lychgate_core::id::ActId;
use rusqlite::Connection;

use super::apply;
use super::column::Stop;
use super::head::Head;
use super::sync::{Log, MustClose, Syncer, Written};
use super::tree::{Grown, Tree};
use crate::contract::{Answer, Pending};
use crate::meter::{Load, Meter};
use crate::outcome::{Committed, StoreFault};
use crate::row::{HeadRow, ProtectedState};
use crate::txn::Txn;

/// What the callers and the writer share.
#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    closed: AtomicBool,
    protected: Mutex<ProtectedState>,
    capacity: usize,
    group: usize,
    meter: Meter,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    delivered: Vec<ActId>,
    stopping: bool,
}

#[derive(Debug)]
struct Job {
    txn: Txn,
    answer: Answer,
}

impl Shared {
    pub(super) fn new(capacity: usize, group: usize, protected: ProtectedState) -> Self {
        Self {
            queue: Mutex::default(),
            wake: Condvar::new(),
            closed: AtomicBool::new(false),
            protected: Mutex::new(protected),
            capacity: capacity.max(1),
            group: group.max(1),
            meter: Meter::new(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn load(&self) -> Load {
        let queued = lock(&self.queue).jobs.len();
        self.meter.read(queued, self.capacity)
    }

    pub(super) fn protected(&self) -> ProtectedState {
        *lock(&self.protected)
    }

    pub(super) fn submit(&self, txn: Txn) -> Pending {
        let mut queue = lock(&self.queue);
        // Under the lock: the writer closes under it too, so no job is left behind in a dead queue.
        if self.is_closed() || queue.stopping {
            return Pending::ready(Err(StoreFault::Closed));
        }
        if queue.jobs.len() >= self.capacity {
            self.meter.busy();
            return Pending::ready(Err(StoreFault::Busy));
        }
        let (answer, pending) = Pending::new();
        queue.jobs.push_back(Job { txn, answer });
        drop(queue);
        self.wake.notify_one();
        pending
    }

    pub(super) fn deliver(&self, act: ActId) {
        let mut queue = lock(&self.queue);
        if self.is_closed() || queue.delivered.len() >= DELIVERED_MOST {
            // Losing one is safe, see the contract.
            return;
        }
        queue.delivered.push(act);
        let many = queue.delivered.len();
        drop(queue);
        // The first starts the writer's 250 ms; a full batch ends them.
        if many == 1 || many == DELIVERED_BATCH {
            self.wake.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        lock(&self.queue).stopping = true;
        self.wake.notify_one();
    }

    /// A group is durable.
    pub(super) fn durable(&self, transactions: usize, took: Duration) {
        self.meter.group(transactions, took);
    }

    /// Blocks until there is work; `None` when there is none and none will come.
    fn next(&self) -> Option<(Vec<Job>, Vec<ActId>)> {
        let mut queue = lock(&self.queue);
        loop {
            let due = queue.delivered.len() >= DELIVERED_BATCH;
            if !queue.jobs.is_empty() || due || queue.stopping {
                break;
            }
            if queue.delivered.is_empty() {
                queue = self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (woken, waited) = self
                .wake
                .wait_timeout(queue, DELIVERED_WITHIN)
                .unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            if waited.timed_out() {
                break;
            }
        }
        let many = queue.jobs.len().min(self.group);
        let jobs: Vec<Job> = queue.jobs.drain(..many).collect();
        let delivered = std::mem::take(&mut queue.delivered);
        (!jobs.is_empty() || !delivered.is_empty()).then_some((jobs, delivered))
    }

    /// From here on nothing is taken in, and what waits is certainly not committed.
    pub(super) fn close(&self) {
        let mut queue = lock(&self.queue);
        self.closed.store(true, Ordering::Release);
        let left = std::mem::take(&mut queue.jobs);
        drop(queue);
        for job in left {
            job.answer.give(Err(StoreFault::Closed));
        }
    }
}

/// The writer's life.
pub(super) fn run(shared: &Shared, connection: &Connection, mut tree: Tree, log: &Log) {
    // However this thread ends, callers must not wait for it.
    let _closing = Closing(shared);
    let syncer = Syncer::new(shared, log, tree.heads());
    std::thread::scope(|scope| {
        let (hand, groups) = sync_channel(0);
        let named = std::thread::Builder::new().name("store-sync".to_owned());
        let disk = &syncer;
        if named
            .spawn_scoped(scope, move || disk.run(&groups))
            .is_err()
        {
            return;
        }
        let mut writer = Writer {
            shared,
            connection,
            tree: &mut tree,
            syncer: &syncer,
            hand,
            alone: 0,
        };
        while let Some((jobs, delivered)) = shared.next() {
            if writer.group(jobs, &delivered).is_err() {
                return;
            }
        }
    });
}

struct Closing<'s>(&'s Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Writer<'s> {
    shared: &'s Shared,
    connection: &'s Connection,
    tree: &'s mut Tree,
    syncer: &'s Syncer<'s>,
    hand: SyncSender<Written>,
    /// How many groups in a row had one transaction.
    alone: u32,
}

impl Writer<'_> {
    /// One group. When something below the rules fails before the commit, the group is rolled back and each transaction
    /// is tried alone, so that whoever caused it fails alone.
    fn group(&mut self, jobs: Vec<Job>, delivered: &[ActId]) -> Result<(), MustClose> {
        #[allow(
            clippy::disallowed_methods,
            reason = "measures how long a group takes, decides nothing"
        )]
        let began = Instant::now();
        let (txns, answers): (Vec<Txn>, Vec<Answer>) =
            jobs.into_iter().map(|job| (job.txn, job.answer)).unzip();
        match attempt(self.shared, self.connection, self.tree, &txns, delivered) {
            Ok((results, head)) => self.written(Written {
                answers: answers.into_iter().zip(results).collect(),
                head,
                began,
            }),
            Err(Failure::NotBegun(fault)) => {
                answer_all(answers, &fault);
                Ok(())
            }
            Err(Failure::Before(fault)) if txns.len() + delivered.len() == 1 => {
                answer_all(answers, &fault);
                Ok(())
            }
            Err(Failure::Before(_)) => self.one_by_one(txns, answers, delivered),
            Err(Failure::RollbackFailed(fault)) => {
                answer_all(answers, &fault);
                Err(MustClose)
            }
            Err(Failure::Commit) => {
                // Closed before anybody learns of it, so that no answer is followed by a commit.
                self.shared.close();
                answer_all(answers, &StoreFault::Unrecorded);
                Err(MustClose)
            }
        }
    }

    /// Who is alone does not gain from a second thread, and would pay for waking it.
    fn written(&mut self, written: Written) -> Result<(), MustClose> {
        if written.answers.is_empty() {
            // Reports of delivery reach the disk with the next group; losing them is safe, see the contract.
            return Ok(());
        }
        let alone = written.answers.len() <= 1;
        self.alone = if alone {
            self.alone.saturating_add(1)
        } else {
            0
        };
        if self.alone >= ALONE && self.syncer.is_idle() {
            self.syncer.finish(written)
        } else {
            self.syncer.hand_over(written, &self.hand)
        }
    }

    fn one_by_one(
        &mut self,
        txns: Vec<Txn>,
        answers: Vec<Answer>,
        delivered: &[ActId],
    ) -> Result<(), MustClose> {
        let mut jobs = txns
            .into_iter()
            .zip(answers)
            .map(|(txn, answer)| Job { txn, answer });
        for job in jobs.by_ref() {
            if let Err(must_close) = self.group(vec![job], &[]) {
                // The rest was rolled back and is not tried again.
                jobs.for_each(|job| job.answer.give(Err(StoreFault::Closed)));
                return Err(must_close);
            }
        }
        delivered
            .iter()
            .try_for_each(|act| self.group(Vec::new(), &[*act]))
    }
}

fn answer_all(answers: Vec<Answer>, fault: &StoreFault) {
    for answer in answers {
        answer.give(Err(fault.clone()));
    }
}

enum Failure {
    /// Not even begun, for a reason that all of the group share.
    NotBegun(StoreFault),
    /// Certainly not committed.
    Before(StoreFault),
    /// Certainly not committed, but the connection is in no state to go on.
    RollbackFailed(StoreFault),
    /// Nobody knows.
    Commit,
}

fn attempt(
    shared: &Shared,
    connection: &Connection,
    tree: &mut Tree,
    txns: &[Txn],
    delivered: &[ActId],
) -> Result<(Vec<Committed>, Option<HeadRow>), Failure> {
    execute(connection, "BEGIN IMMEDIATE")
        .map_err(|error| Failure::NotBegun(StoreFault::Unavailable(error.to_string())))?;
    let (results, head, grown) = match work(connection, tree, txns, delivered) {
        Ok(done) => done,
        Err(fault) => {
            return Err(match execute(connection, "ROLLBACK") {
                Ok(()) => Failure::Before(fault),
                // SQLite rolls back by itself after some errors; then there is nothing left to do.
                Err(_) if connection.is_autocommit() => Failure::Before(fault),
                Err(_) => Failure::RollbackFailed(fault),
            });
        }
    };
    execute(connection, "COMMIT").map_err(|_| Failure::Commit)?;
    *lock(&shared.protected) = head.protected;
    Ok((results, grown.map(|grown| tree.keep(grown))))
}

fn work(
    connection: &Connection,
    tree: &Tree,
    txns: &[Txn],
    delivered: &[ActId],
) -> Result<(Vec<Committed>, Head, Option<Grown>), StoreFault> {
    let mut head = Head::load(connection, txns, tree.signer())?;
    // First: what is delivered was settled in an earlier group, never in this one.
    for act in delivered {
        apply::delivered(connection, *act)?;
    }
    let mut results = Vec::with_capacity(txns.len());
    for txn in txns {
        results.push(match apply::transaction(connection, &mut head, txn) {
            Ok(done) => Committed::Done(done),
            Err(Stop::Rejected(why)) => Committed::Rejected(why),
            Err(Stop::Fault(fault)) => return Err(fault.into()),
        });
        head.batches.pass(txn);
    }
    // What happens once a group.
    let grown = tree.grow(connection, &head)?;
    head.save(connection, grown.as_ref().map(|grown| &grown.frontier))?;
    Ok((results, head, grown))
}

fn execute(connection: &Connection, sql: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panicking thread left is a queue of whole jobs or a whole state: nothing is half written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// After so many groups of one transaction nobody else is waiting.
const ALONE: u32 = 2;
/// Deliveries are written at the latest after this.
const DELIVERED_WITHIN: Duration = Duration::from_millis(250);
/// So many are written at once, without waiting.
const DELIVERED_BATCH: usize = 256;
/// More than this are dropped while the writer is busy.
const DELIVERED_MOST: usize = 16_384;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::Arc;

    use lychgate_core::Timestamp;

    use super::super::{head, open};
    use super::*;
    use crate::txn::{Entry, LeafHash, Note};

    fn note() -> Txn {
        let receipts = vec![Entry {
            bytes: b"line".to_vec(),
            leaf: LeafHash([0; 32]),
        }];
        Txn::Note(Note {
            now: Timestamp::from_millis(1),
            receipts,
        })
    }

    /// A commit that fails after everything in it went well, as a full disk or a failing `fsync` does: here a
    /// constraint that is looked at only then.
    fn failing_at_commit(path: &std::path::Path) -> (Connection, Log) {
        let (connection, log) = open::writer(path).unwrap();
        connection
            .execute_batch(
                "PRAGMA foreign_keys = ON;
                 CREATE TABLE parent (id INTEGER PRIMARY KEY);
                 CREATE TABLE child (p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
                 CREATE TRIGGER fail AFTER INSERT ON record BEGIN INSERT INTO child VALUES (7); END",
            )
            .unwrap();
        (connection, log)
    }

    #[test]
    fn a_failing_commit_says_unrecorded_to_all_and_closes() {
        let folder = tempfile::tempdir().unwrap();
        let (connection, log) = failing_at_commit(&folder.path().join("store.db"));
        let shared = Arc::new(Shared::new(9, 2, head::protected(&connection).unwrap()));
        let pending: Vec<_> = (0..3).map(|_| shared.submit(note())).collect();
        // So that the thread ends even if it wrongly went on.
        shared.stop();
        let theirs = Arc::clone(&shared);
        let tree = Tree::load(&connection, crate::testing::make::signer()).unwrap();
        std::thread::spawn(move || run(&theirs, &connection, tree, &log))
            .join()
            .unwrap();
        let results: Vec<_> = pending.into_iter().map(Pending::wait).collect();
        let unrecorded = Err(StoreFault::Unrecorded);
        // The third was not in the group: certainly not committed.
        assert_eq!(
            results,
            [unrecorded.clone(), unrecorded, Err(StoreFault::Closed)]
        );
        assert_eq!(shared.submit(note()).wait(), Err(StoreFault::Closed));
        assert!(shared.is_closed());
    }

    #[test]
    fn a_failing_sync_says_unrecorded_to_all_shows_no_head_and_closes() {
        let folder = tempfile::tempdir().unwrap();
        let (connection, _) = open::writer(&folder.path().join("store.db")).unwrap();
        for many in [1, 3] {
            let shared = Arc::new(Shared::new(9, 2, head::protected(&connection).unwrap()));
            let pending: Vec<_> = (0..many).map(|_| shared.submit(note())).collect();
            shared.stop();
            let tree = Tree::load(&connection, crate::testing::make::signer()).unwrap();
            let (heads, before) = (tree.watch(), tree.watch().borrow().clone());
            run(&shared, &connection, tree, &Log::failing());
            let results: Vec<_> = pending.into_iter().map(Pending::wait).collect();
            assert!(
                results.iter().all(|result| matches!(
                    result,
                    Err(StoreFault::Unrecorded | StoreFault::Closed)
                )),
                "{results:?}"
            );
            assert_eq!(results[0], Err(StoreFault::Unrecorded));
            assert_eq!(*heads.borrow(), before);
            assert!(shared.is_closed());
        }
    }

    #[test]
    fn many_groups_are_answered_in_order_and_every_head_covers_its_answers() {
        let folder = tempfile::tempdir().unwrap();
        let (connection, log) = open::writer(&folder.path().join("store.db")).unwrap();
        let shared = Shared::new(999, 3, head::protected(&connection).unwrap());
        let pending: Vec<_> = (0..100).map(|_| shared.submit(note())).collect();
        shared.stop();
        let tree = Tree::load(&connection, crate::testing::make::signer()).unwrap();
        let heads = tree.watch();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (index, pending) in pending.into_iter().enumerate() {
                    assert!(matches!(pending.wait(), Ok(Committed::Done(_))));
                    let size = heads.borrow().as_ref().map_or(0, |head| head.size);
                    assert!(size > index as u64, "line {index} under a head of {size}");
                }
            });
            run(&shared, &connection, tree, &log);
        });
        assert_eq!(shared.load().transactions, 100);
    }
}
