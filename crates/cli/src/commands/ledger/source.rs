//! Where the record is read from: the gate that runs, or its folder when none runs. An audit starts no gate: one that
//! refuses to start is exactly when it is wanted.

use lychgate_keys::TrustBundle;
use lychgate_ledger::proof::ledger_keys;
use lychgate_ledger::{LeafHash, SignedCheckpoint, VerifiedCheckpoint};
use lychgate_server::client::ClientFault;
use lychgate_server::protocol::{LedgerView, MOST_HEADS, MOST_RECORDS};
use lychgate_server::{Request, Response};
use lychgate_store::{HeadRow, RecordRow, SqliteStore, Store as _, StoreFault};

use crate::commands::Context;
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::places::state_fault;

/// One of the two.
pub(super) enum Source {
    /// The running gate.
    Gate(Connection),
    /// The folder of a gate that does not run; the log's name beside it.
    Folder(Box<SqliteStore>, String),
}

/// One record as it is kept.
pub(super) struct Kept {
    /// Its number.
    pub(super) index: u64,
    /// Its bytes, unless they were archived.
    pub(super) bytes: Option<Vec<u8>>,
    /// Its leaf hash as kept.
    pub(super) leaf: LeafHash,
}

impl Source {
    /// The gate when one runs, else its folder.
    pub(super) fn open(context: &Context<'_>) -> Outcome<Self> {
        match Connection::to_running(context) {
            Ok(connection) => return Ok(Self::Gate(connection)),
            Err(fault @ ClientFault::Refused(_)) => return Err(crate::connection::stop(fault)),
            Err(_) => {}
        }
        let folder = context.places.folder()?;
        folder.check().map_err(state_fault)?;
        let origin = folder.read_log_name().map_err(state_fault)?;
        let store = SqliteStore::open_reading(&folder.database()).map_err(unreadable)?;
        Ok(Self::Folder(Box::new(store), origin.to_string()))
    }

    /// How the log stands.
    pub(super) fn view(&mut self) -> Outcome<LedgerView> {
        match self {
            Self::Gate(connection) => {
                answer!(connection.ask(&Request::Ledger)?, Response::Ledger { ledger } => ledger)
            }
            Self::Folder(store, origin) => Ok(LedgerView {
                origin: origin.clone(),
                size: store.record_len().map_err(unreadable)?,
                head: store
                    .newest_head()
                    .map_err(unreadable)?
                    .map(|head| String::from_utf8_lossy(&head.note).into_owned()),
            }),
        }
    }

    /// A page of records; empty after the last one.
    pub(super) fn records(&mut self, from: u64, limit: u32) -> Outcome<Vec<Kept>> {
        match self {
            Self::Gate(connection) => from_gate(from, limit, connection),
            Self::Folder(store, _) => {
                let limit = usize::try_from(limit.min(MOST_RECORDS)).unwrap_or(0);
                let rows = store.record(from, limit).map_err(unreadable)?;
                Ok(rows.into_iter().map(kept).collect())
            }
        }
    }

    /// A page of kept heads of at least `from` records; empty after the last one.
    fn heads_page(&mut self, from: u64) -> Outcome<Vec<Vec<u8>>> {
        let limit = MOST_HEADS;
        match self {
            Self::Gate(connection) => {
                let asked = connection.ask(&Request::Heads { from, limit })?;
                let heads = answer!(asked, Response::Heads { heads } => heads)?;
                Ok(heads.into_iter().map(|head| head.0).collect())
            }
            Self::Folder(store, _) => {
                let limit = usize::try_from(limit).unwrap_or(0);
                let rows = store.heads(from, limit).map_err(unreadable)?;
                Ok(rows.into_iter().map(|HeadRow { note, .. }| note).collect())
            }
        }
    }

    /// Every kept head, believed, and the note of the largest.
    pub(super) fn heads(
        &mut self,
        trust: &TrustBundle,
    ) -> Outcome<(Vec<VerifiedCheckpoint>, Option<Vec<u8>>)> {
        let mut heads: Vec<VerifiedCheckpoint> = Vec::new();
        let (mut from, mut newest) = (0, None);
        loop {
            let page = self.heads_page(from)?;
            if page.is_empty() {
                return Ok((heads, newest));
            }
            for note in page {
                let head = believed(&note, trust).map_err(|why| {
                    Stop::refused(format!(
                        "one of the log's own heads is not to be believed: {why}"
                    ))
                })?;
                from = head.checkpoint().size() + 1;
                heads.push(head);
                newest = Some(note);
            }
        }
    }
}

/// A page of records from the gate; empty after the last one.
pub(super) fn from_gate(from: u64, limit: u32, connection: &mut Connection) -> Outcome<Vec<Kept>> {
    let limit = limit.min(MOST_RECORDS);
    let asked = connection.ask(&Request::Records { from, limit })?;
    let records = answer!(asked, Response::Records { records, .. } => records)?;
    let kept = records.into_iter().map(|line| {
        Ok(Kept {
            index: line.index,
            bytes: line.bytes.map(|bytes| bytes.0),
            leaf: leaf(&line.leaf.0)?,
        })
    });
    kept.collect()
}

/// A signed head that one of the log's keys stands behind.
pub(super) fn believed(note: &[u8], trust: &TrustBundle) -> Result<VerifiedCheckpoint, String> {
    let signed = SignedCheckpoint::parse(note).map_err(|fault| fault.to_string())?;
    let keys = ledger_keys(trust, signed.checkpoint().origin());
    signed.verify(&keys, &[]).map_err(|fault| fault.to_string())
}

fn kept(row: RecordRow) -> Kept {
    Kept {
        index: row.index,
        bytes: row.bytes,
        leaf: row.leaf,
    }
}

fn leaf(bytes: &[u8]) -> Outcome<LeafHash> {
    let hash = bytes
        .try_into()
        .map_err(|_| Stop::fault("the gate gave a hash that is none"))?;
    Ok(LeafHash(hash))
}

fn unreadable(fault: StoreFault) -> Stop {
    Stop::fault(format!("the record cannot be read: {fault}"))
}
