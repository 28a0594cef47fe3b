//! The second half of a commit: what a group wrote to the log reaches the disk, and only then is anybody told.
//!
//! SQLite writes the group's pages to its log and leaves the syncing to us (`synchronous = NORMAL`): so the next group
//! is worked on while the disk has this one. At most one group waits for the disk behind the one it is busy with.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Instant;

use tokio::sync::watch;

use super::writer::Shared;
use crate::contract::Answer;
use crate::outcome::{Committed, StoreFault};
use crate::row::HeadRow;

/// SQLite's log, through a descriptor of our own.
#[derive(Debug)]
pub(super) struct Log(File);

impl Log {
    /// The log beside the database at `path`, which a connection holds open: it stays the same file for as long.
    /// Whatever a process before this one left in it unsynced is synced.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push("-wal");
        let log = File::open(Path::new(&name))?;
        log.sync_all()?;
        Ok(Self(log))
    }

    /// One that cannot be synced: a pipe.
    #[cfg(test)]
    pub(super) fn failing() -> Self {
        let (reader, _) = io::pipe().unwrap_or_else(|error| unreachable!("{error}"));
        Self(File::from(std::os::fd::OwnedFd::from(reader)))
    }
}

/// A group that SQLite has committed and nobody knows of yet.
pub(super) struct Written {
    pub(super) answers: Vec<(Answer, Committed)>,
    /// The record's new head, when the group appended.
    pub(super) head: Option<HeadRow>,
    pub(super) began: Instant,
}

/// The store must not go on.
pub(super) struct MustClose;

/// Makes groups durable, in the order in which they were written.
pub(super) struct Syncer<'s> {
    shared: &'s Shared,
    log: &'s Log,
    heads: watch::Sender<Option<HeadRow>>,
    /// A group is at the disk or on its way there.
    busy: AtomicBool,
}

impl<'s> Syncer<'s> {
    pub(super) fn new(
        shared: &'s Shared,
        log: &'s Log,
        heads: watch::Sender<Option<HeadRow>>,
    ) -> Self {
        Self {
            shared,
            log,
            heads,
            busy: AtomicBool::new(false),
        }
    }

    /// The life of the thread that waits for the disk.
    pub(super) fn run(&self, groups: &Receiver<Written>) {
        while let Ok(written) = groups.recv() {
            // After a failure every further group is refused too: the writer learns of it at its next one.
            let _ = self.finish(written);
            self.busy.store(false, Ordering::Release);
        }
    }

    /// Hands a group over, as soon as the one before it is durable.
    pub(super) fn hand_over(
        &self,
        written: Written,
        hand: &SyncSender<Written>,
    ) -> Result<(), MustClose> {
        self.busy.store(true, Ordering::Release);
        if let Err(unsent) = hand.send(written) {
            self.shared.close();
            refuse(unsent.0);
        }
        if self.shared.is_closed() {
            return Err(MustClose);
        }
        Ok(())
    }

    /// Whether every group before is durable, so that the next may be made so by whoever wrote it.
    pub(super) fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Acquire)
    }

    /// Makes a group durable and tells its callers.
    pub(super) fn finish(&self, written: Written) -> Result<(), MustClose> {
        // After a failed sync nobody knows what the page cache still holds, so no later one may succeed.
        let durable = !self.shared.is_closed() && self.log.0.sync_data().is_ok();
        if !durable {
            // Closed before anybody learns of it, so that no answer is followed by a commit.
            self.shared.close();
            refuse(written);
            return Err(MustClose);
        }
        self.shared
            .durable(written.answers.len(), written.began.elapsed());
        if let Some(head) = written.head {
            self.heads.send_replace(Some(head));
        }
        for (answer, committed) in written.answers {
            answer.give(Ok(committed));
        }
        Ok(())
    }
}

/// It may or may not be there after a restart.
fn refuse(written: Written) {
    for (answer, _) in written.answers {
        answer.give(Err(StoreFault::Unrecorded));
    }
}
