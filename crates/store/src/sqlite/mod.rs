//! The store on one SQLite file: WAL, one writer thread, group commit, one `fdatasync` of the log a group.
//!
//! The writer blocks for one transaction, drains the queue, and commits the group; nobody waits for a group to fill.
//! While the disk has one group the next is worked on (`sync`); nobody is answered before his group is on the disk. Reads go over connections of their own that cannot write. The gate's lock keeps a second process
//! away; should one come nevertheless, each group reads the head anew and takes SQLite's write lock, so the rules hold.

mod accounts;
mod acts;
mod apply;
mod column;
mod dispatch;
mod head;
mod open;
mod read;
mod said;
mod schema;
mod sync;
mod tickets;
mod tree;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use lychgate_core::id::{ActId, DelegationId, TicketId};
use lychgate_core::{Digest, Timestamp};
use lychgate_ledger::{Frontier, Hash};
use rusqlite::Connection;
use tokio::sync::watch;

use self::column::Fault;
use self::read::Readers;
use self::tree::Tree;
use self::writer::Shared;
use crate::budget::{Account, Drawn};
use crate::contract::{Pending, Store};
use crate::ledger::GroupSigner;
use crate::meter::Load;
use crate::outcome::StoreFault;
use crate::row::{
    ActQuery, ActRow, AppliedRow, Counts, DelegationRow, HeadRow, ProtectedState, RecordRow,
    Revocation, SaidRow, TicketQuery, TicketRow, VerdictRow,
};
use crate::txn::Txn;

/// How to open the store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database file; its folder exists.
    pub path: PathBuf,
    /// How many transactions may wait; a further one is answered `Busy`.
    pub queue: usize,
    /// How many transactions are made durable together at most.
    pub group: usize,
}

impl Options {
    /// The usual bounds for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            queue: 1024,
            group: 256,
        }
    }
}

/// The store on one SQLite file. Dropping it writes what is still queued, then closes the file.
#[derive(Debug)]
pub struct SqliteStore {
    shared: Arc<Shared>,
    readers: Readers,
    heads: watch::Receiver<Option<HeadRow>>,
    writer: Option<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens the file (mode 0600), making it when there is none. From then on `signer` signs the record's heads, one for
    /// each commit group that appends.
    ///
    /// # Errors
    /// `Open` when it cannot be opened, made, or put into durable mode, or is another program's; `Version` when another
    /// version of this one wrote it; `Record` when record, tree and newest head do not agree (O(log n) reads, whatever
    /// the size); `Corrupt`.
    pub fn open(options: &Options, signer: Arc<dyn GroupSigner>) -> Result<Self, StoreFault> {
        let (connection, log) = open::writer(&options.path)?;
        let protected = head::protected(&connection)?;
        let tree = Tree::load(&connection, signer)?;
        let heads = tree.watch();
        let shared = Arc::new(Shared::new(options.queue, options.group, protected));
        let theirs = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writer::run(&theirs, &connection, tree, &log))
            .map_err(|error| StoreFault::Unavailable(error.to_string()))?;
        let readers = Readers::new(options.path.clone());
        Ok(Self {
            shared,
            readers,
            heads,
            writer: Some(writer),
        })
    }

    /// Opens an existing file for reading alone, beside a gate or after one: every commit is answered `Closed`, and
    /// nothing is checked that reading does not touch. So a damaged record can be looked at.
    ///
    /// # Errors
    /// As [`SqliteStore::open`], without `Record`; `Open` when there is no file.
    pub fn open_reading(path: &Path) -> Result<Self, StoreFault> {
        let readers = Readers::new(path.to_owned());
        let connection = open::reading(path)?;
        let protected = head::protected(&connection)?;
        let newest = read::newest_head(&connection)?;
        let shared = Arc::new(Shared::new(1, 1, protected));
        shared.stop();
        Ok(Self {
            shared,
            readers,
            heads: watch::Sender::new(newest).subscribe(),
            writer: None,
        })
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, StoreFault> {
        if self.shared.is_closed() {
            return Err(StoreFault::Closed);
        }
        Ok(self.readers.with(read)?)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has closed the queue on its way out; there is nobody to tell.
            let _ = writer.join();
        }
    }
}

impl Store for SqliteStore {
    fn commit(&self, txn: Txn) -> Pending {
        self.shared.submit(txn)
    }

    fn note_delivered(&self, act: ActId) {
        self.shared.deliver(act);
    }

    fn protected_state(&self) -> Result<ProtectedState, StoreFault> {
        if self.shared.is_closed() {
            Err(StoreFault::Closed)
        } else {
            Ok(self.shared.protected())
        }
    }

    fn act(&self, id: ActId) -> Result<Option<ActRow>, StoreFault> {
        self.read(|connection| read::act(connection, id))
    }

    fn acts(&self, query: &ActQuery) -> Result<Vec<ActRow>, StoreFault> {
        self.read(|connection| read::acts(connection, query))
    }

    fn counts(&self) -> Result<Counts, StoreFault> {
        self.read(read::counts)
    }

    fn open_acts(&self) -> Result<Vec<ActRow>, StoreFault> {
        self.read(read::open_acts)
    }

    fn said(&self, id: ActId) -> Result<Option<SaidRow>, StoreFault> {
        self.read(|connection| said::read(connection, id))
    }

    fn kept_answers(&self, until: Timestamp) -> Result<Vec<ActId>, StoreFault> {
        self.read(|connection| read::kept_answers(connection, until))
    }

    fn ticket(&self, id: TicketId) -> Result<Option<TicketRow>, StoreFault> {
        self.read(|connection| read::ticket(connection, id))
    }

    fn verdicts(&self, id: TicketId) -> Result<Vec<VerdictRow>, StoreFault> {
        self.read(|connection| read::verdicts(connection, id))
    }

    fn tickets(&self, query: &TicketQuery) -> Result<Vec<TicketRow>, StoreFault> {
        self.read(|connection| read::tickets(connection, query))
    }

    fn tickets_of(&self, subject: &Digest, limit: usize) -> Result<Vec<TicketRow>, StoreFault> {
        self.read(|connection| read::tickets_of(connection, subject, limit))
    }

    fn applied(&self) -> Result<Option<AppliedRow>, StoreFault> {
        self.read(read::applied)
    }

    fn revocations(&self) -> Result<Vec<Revocation>, StoreFault> {
        self.read(read::revocations)
    }

    fn account(&self, account: Account) -> Result<Option<Drawn>, StoreFault> {
        self.read(|connection| accounts::read_whole(connection, account))
    }

    fn delegation(&self, id: DelegationId) -> Result<Option<DelegationRow>, StoreFault> {
        self.read(|connection| accounts::delegation(connection, id))
    }

    fn delegations(&self, limit: usize) -> Result<Vec<DelegationRow>, StoreFault> {
        self.read(|connection| accounts::delegations(connection, limit))
    }

    fn record(&self, from: u64, limit: usize) -> Result<Vec<RecordRow>, StoreFault> {
        self.read(|connection| read::record(connection, from, limit))
    }

    fn newest_head(&self) -> Result<Option<HeadRow>, StoreFault> {
        self.read(read::newest_head)
    }

    fn heads(&self, from: u64, limit: usize) -> Result<Vec<HeadRow>, StoreFault> {
        self.read(|connection| read::heads(connection, from, limit))
    }

    fn watch_heads(&self) -> watch::Receiver<Option<HeadRow>> {
        self.heads.clone()
    }

    fn load(&self) -> Load {
        self.shared.load()
    }

    fn frontier(&self) -> Result<Frontier, StoreFault> {
        self.read(tree::frontier)
    }

    fn tree_hashes(&self, level: u8, from: u64, count: u16) -> Result<Vec<Hash>, StoreFault> {
        self.read(|connection| tree::hashes(connection, level, from, count))
    }

    fn record_len(&self) -> Result<u64, StoreFault> {
        self.read(head::record_len)
    }
}
