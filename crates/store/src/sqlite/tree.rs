//! What happens once a commit group: the tree over the record grows by what the group appended, and the new head is
//! signed and kept, all in the group's own transaction.

use std::sync::Arc;

use lychgate_ledger::tiles::{ReadFault, TileKind};
use lychgate_ledger::tree::{ProveFault, root_at};
use lychgate_ledger::{Frontier, Hash, SignedCheckpoint, Tile, TileReader, TileSource};
use rusqlite::{Connection, params};
use tokio::sync::watch;

use super::column::{Columns, Fault};
use super::head::{self, Head, stored};
use super::read;
use crate::ledger::GroupSigner;
use crate::outcome::StoreFault;
use crate::row::HeadRow;

/// The tree as of the last commit.
pub(super) struct Tree {
    signer: Arc<dyn GroupSigner>,
    frontier: Frontier,
    /// Where in the ring the newest head stands.
    slot: i64,
    heads: watch::Sender<Option<HeadRow>>,
}

/// The tree as it is when the group's commit succeeds.
pub(super) struct Grown {
    pub(super) frontier: Frontier,
    slot: i64,
    head: HeadRow,
}

impl Tree {
    /// As kept, after checking that tree, record and newest head agree. O(log n).
    pub(super) fn load(
        connection: &Connection,
        signer: Arc<dyn GroupSigner>,
    ) -> Result<Self, StoreFault> {
        let frontier = frontier(connection)?;
        let newest = read::newest_head(connection)?;
        agree(connection, &frontier, newest.as_ref())?;
        let slot = newest_slot(connection)?;
        Ok(Self {
            signer,
            frontier,
            slot,
            heads: watch::Sender::new(newest),
        })
    }

    pub(super) fn signer(&self) -> &dyn GroupSigner {
        self.signer.as_ref()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Option<HeadRow>> {
        self.heads.subscribe()
    }

    /// Grows the tree by what the group appended and signs its head; `None` when it appended nothing.
    pub(super) fn grow(
        &self,
        connection: &Connection,
        head: &Head,
    ) -> Result<Option<Grown>, StoreFault> {
        let leaves = head.leaves();
        if leaves.is_empty() {
            return Ok(None);
        }
        let size = head.record_len();
        let mut frontier = self.before(connection, size, leaves.len())?;
        let old = frontier.size();
        let mut nodes: Vec<(i64, Hash)> = Vec::new();
        for leaf in leaves {
            frontier.append_with(*leaf, |node, hash| {
                if node.level() > 0 && node.level() % 8 == 0 {
                    nodes.push((node_key(node.level() / 8, node.index()), *hash));
                }
            });
        }
        let note = self.signer.sign_head(size, frontier.root())?;
        let slot = (self.slot + 1) % RECENT;
        let row = HeadRow { size, note };
        write(connection, &nodes, old, slot, &row)?;
        Ok(Some(Grown {
            frontier,
            slot,
            head: row,
        }))
    }

    /// Where heads are shown once they are durable.
    pub(super) fn heads(&self) -> watch::Sender<Option<HeadRow>> {
        self.heads.clone()
    }

    /// The commit succeeded: what it grew to is the tree. Its head is given back, to be shown when it is durable.
    pub(super) fn keep(&mut self, grown: Grown) -> HeadRow {
        self.frontier = grown.frontier;
        self.slot = grown.slot;
        grown.head
    }

    /// The tree before the group. Read anew when another process appended meanwhile, which the gate's lock forbids.
    fn before(
        &self,
        connection: &Connection,
        size: u64,
        appended: usize,
    ) -> Result<Frontier, StoreFault> {
        let old = size.saturating_sub(appended as u64);
        if self.frontier.size() == old {
            return Ok(self.frontier.clone());
        }
        let kept = frontier(connection)?;
        if kept.size() == old {
            Ok(kept)
        } else {
            Err(disagree(&format!(
                "the record has {old} lines, its tree {}",
                kept.size()
            )))
        }
    }
}

fn write(
    connection: &Connection,
    nodes: &[(i64, Hash)],
    old: u64,
    slot: i64,
    head: &HeadRow,
) -> Result<(), Fault> {
    for (at, hash) in nodes {
        connection
            .prepare_cached("INSERT INTO nodes (at, hash) VALUES (?1, ?2)")?
            .execute(params![at, hash])?;
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO recent (slot, size, note) VALUES (?1, ?2, ?3)")?
        .execute(params![slot, stored(head.size), head.note])?;
    if old / KEPT_EACH != head.size / KEPT_EACH {
        connection
            .prepare_cached("INSERT INTO heads (size, note) VALUES (?1, ?2)")?
            .execute(params![stored(head.size), head.note])?;
    }
    Ok(())
}

/// The kept tree.
pub(super) fn frontier(connection: &Connection) -> Result<Frontier, Fault> {
    let mut select = connection.prepare_cached("SELECT frontier FROM head WHERE id = 1")?;
    let mut rows = select.query([])?;
    let Some(row) = rows.next()? else {
        return Err(Fault::Corrupt("head".to_owned()));
    };
    let bytes: Vec<u8> = Columns(row).get("frontier")?;
    Frontier::from_bytes(&bytes).map_err(|_| Fault::Corrupt("frontier".to_owned()))
}

/// Hashes of a tile level, in order and without a gap from `from` on.
pub(super) fn hashes(
    connection: &Connection,
    level: u8,
    from: u64,
    count: u16,
) -> Result<Vec<Hash>, Fault> {
    let (sql, first) = match level {
        0 => (
            "SELECT idx, leaf AS hash FROM record WHERE idx >= ?1 AND idx < ?2 ORDER BY idx",
            stored(from),
        ),
        1..=7 => (
            "SELECT at AS idx, hash FROM nodes WHERE at >= ?1 AND at < ?2 ORDER BY at",
            node_key(level, from),
        ),
        _ => return Ok(Vec::new()),
    };
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([first, first.saturating_add(i64::from(count))])?;
    let mut found = Vec::with_capacity(usize::from(count));
    for expected in first.. {
        let Some(row) = rows.next()? else { break };
        let columns = Columns(row);
        if columns.get::<i64>("idx")? != expected {
            break;
        }
        found.push(columns.get("hash")?);
    }
    Ok(found)
}

/// Record, tree, kept hashes and newest head must be of one moment: a handful of reads for any size.
fn agree(
    connection: &Connection,
    frontier: &Frontier,
    newest: Option<&HeadRow>,
) -> Result<(), StoreFault> {
    let (lines, size) = (head::record_len(connection)?, frontier.size());
    if lines != size {
        return Err(disagree(&format!(
            "the record has {lines} lines, its tree {size}"
        )));
    }
    let signed = newest.map_or(0, |head| head.size);
    if signed != size {
        return Err(disagree(&format!(
            "the record has {size} lines, its newest signed head {signed}"
        )));
    }
    if let Some(head) = newest {
        let read = SignedCheckpoint::parse(&head.note).map_err(|fault| {
            disagree(&format!("the newest signed head cannot be read: {fault}"))
        })?;
        let head = read.checkpoint();
        if head.size() != size || *head.root() != frontier.root() {
            return Err(disagree(&format!(
                "the tree of {size} lines is not the one the newest head signs"
            )));
        }
    }
    let kept = root_at(size, &TileReader::new(Rows(connection), size)).map_err(|fault| {
        disagree(&match fault {
            ProveFault::Read(ReadFault::Missing(tile)) => {
                format!("lines or hashes under `{tile}` are missing")
            }
            other => other.to_string(),
        })
    })?;
    if kept == frontier.root() {
        Ok(())
    } else {
        Err(disagree(&format!(
            "the kept hashes of {size} lines are not those of the tree"
        )))
    }
}

fn disagree(what: &str) -> StoreFault {
    StoreFault::Record(what.to_owned())
}

/// The tiles behind one connection.
struct Rows<'c>(&'c Connection);

impl TileSource for Rows<'_> {
    type Fault = Fault;

    fn tile(&self, tile: Tile) -> Result<Option<Vec<u8>>, Fault> {
        let TileKind::Hashes(level) = tile.kind() else {
            return Ok(None);
        };
        let hashes = hashes(self.0, level, tile.index() << 8, tile.width())?;
        let whole = hashes.len() == usize::from(tile.width());
        Ok(whole.then(|| hashes.as_flattened().to_vec()))
    }
}

fn newest_slot(connection: &Connection) -> Result<i64, Fault> {
    let sql = "SELECT slot FROM recent ORDER BY size DESC LIMIT 1";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    match rows.next()? {
        Some(row) => Columns(row).get("slot"),
        None => Ok(-1),
    }
}

/// Where a node of a tile level is kept.
fn node_key(level: u8, index: u64) -> i64 {
    i64::from(level) << 56 | stored(index)
}

/// Heads in the ring.
const RECENT: i64 = 1024;
/// Beyond the ring one head is kept for so many lines.
const KEPT_EACH: u64 = 256;
