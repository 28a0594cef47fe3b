//! What a gate asks of its record before it starts: that it is the one its anchor saw (PROFILE §10). A handful of reads
//! for any size, and the lines since the anchor; every line ever is `lychgate ledger verify`'s to read.

use lychgate_keys::TrustBundle;
use lychgate_ledger::audit::against_anchor;
use lychgate_ledger::proof::ledger_keys;
use lychgate_ledger::{
    Checkpoint, Finding, KeyName, SignedCheckpoint, TileReader, VerifiedCheckpoint, leaf_hash,
};
use lychgate_store::{HeadRow, Store, StoreFault, StoreTiles};

/// How the record stands to its anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Examined {
    /// It goes on from where the anchor is.
    Agrees,
    /// There is no anchor, and no gate has run on this record yet.
    First,
    /// There is no anchor, and there should be one.
    Missing,
    /// It is not the record the anchor saw. No gate starts on it before a person has decided.
    Differs(Difference),
}

/// Why a record and its anchor, or a record and itself, cannot both be right. Nothing is repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// The record is not what was anchored, or not what its own heads say.
    #[error(transparent)]
    Record(#[from] Finding),
    /// The record's own newest head is not signed by a ledger key that is believed here, or is another log's.
    #[error("newest head of the record is not signed by a ledger key of this state folder")]
    HeadNotOurs,
    /// The anchor is of another log.
    #[error("anchor is of the log `{0}`")]
    OtherLog(String),
    /// The anchor is signed by a key this folder does not know: made after this copy of the folder, or by somebody else.
    #[error(
        "anchor is signed by a ledger key that this state folder does not know: the folder is older than its anchor, or the anchor is not its own"
    )]
    UnknownKey,
    /// The anchor is no signed checkpoint.
    #[error("anchor is not a signed checkpoint: {0}")]
    Unreadable(String),
}

impl Difference {
    /// The one word for it in receipts.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Record(Finding::TwoLogs(..)) | Self::OtherLog(_) => "other_log",
            Self::Record(Finding::Forked { .. }) => "forked",
            Self::Record(Finding::Edited { .. }) => "edited",
            Self::Record(Finding::Missing { .. }) => "missing",
            Self::Record(Finding::Reordered { .. }) => "reordered",
            Self::Record(Finding::Truncated { .. }) => "truncated",
            Self::Record(Finding::Rewritten { .. }) => "rewritten",
            Self::Record(Finding::Resealed { .. }) => "resealed",
            Self::Record(Finding::RolledBack { .. }) => "rolled_back",
            Self::HeadNotOurs => "head_not_ours",
            Self::UnknownKey => "unknown_key",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// Compares a record with its anchor, the bytes of a signed checkpoint. `log` is the record's name.
///
/// # Errors
/// When the store cannot be read, which is no answer either: no gate starts.
pub fn examine(
    store: &dyn Store,
    trust: &TrustBundle,
    log: &KeyName,
    anchor: Option<&[u8]>,
) -> Result<Examined, StoreFault> {
    let ours = believer(trust, log);
    let newest = store.newest_head()?;
    let own = newest.as_ref().map(|head| ours(&head.note));
    if matches!(own, Some(Err(_))) {
        return Ok(Examined::Differs(Difference::HeadNotOurs));
    }
    let Some(anchor) = anchor else {
        let only = store.heads(0, 2)?.len() <= 1;
        return Ok(if only {
            Examined::First
        } else {
            Examined::Missing
        });
    };
    let anchored = match ours(anchor) {
        Ok(anchored) => anchored,
        Err(difference) => return Ok(Examined::Differs(difference)),
    };
    let found = compare(store, anchored.checkpoint(), |head| ours(&head.note).ok())?;
    Ok(found.map_or(Examined::Agrees, |finding| {
        Examined::Differs(finding.into())
    }))
}

/// How a record contradicts one head of it that is kept elsewhere, the bytes of a signed checkpoint: as [`examine`], for
/// that head alone and without reading lines. Only [`Difference::Record`] is proven by a key of this log.
///
/// # Errors
/// When the store cannot be read.
pub fn contradicts(
    store: &dyn Store,
    trust: &TrustBundle,
    log: &KeyName,
    note: &[u8],
) -> Result<Option<Difference>, StoreFault> {
    let ours = believer(trust, log);
    let head = match ours(note) {
        Ok(head) => head,
        Err(difference) => return Ok(Some(difference)),
    };
    let size = store.record_len()?;
    let found = against(store, size, head.checkpoint(), |head| ours(&head.note).ok())?;
    Ok(found.map(Difference::Record))
}

/// Tells a head of this log, signed by a key of its own, from everything else.
fn believer(
    trust: &TrustBundle,
    log: &KeyName,
) -> impl Fn(&[u8]) -> Result<VerifiedCheckpoint, Difference> {
    let keys = ledger_keys(trust, log.as_str());
    let log = log.as_str().to_owned();
    move |note| {
        let signed = SignedCheckpoint::parse(note)
            .map_err(|fault| Difference::Unreadable(fault.to_string()))?;
        let origin = signed.checkpoint().origin();
        if origin != log {
            return Err(Difference::OtherLog(origin.to_owned()));
        }
        signed
            .verify(&keys, &[])
            .map_err(|_| Difference::UnknownKey)
    }
}

fn compare(
    store: &dyn Store,
    anchored: &Checkpoint,
    believed: impl Fn(&HeadRow) -> Option<VerifiedCheckpoint>,
) -> Result<Option<Finding>, StoreFault> {
    let size = store.record_len()?;
    if let Some(found) = against(store, size, anchored, &believed)? {
        return Ok(Some(found));
    }
    if let Some(fork) = two_of_one_size(store, anchored.size(), believed)? {
        return Ok(Some(fork));
    }
    tail(store, anchored.size(), size)
}

/// One head against the tree over the record.
fn against(
    store: &dyn Store,
    size: u64,
    anchored: &Checkpoint,
    believed: impl Fn(&HeadRow) -> Option<VerifiedCheckpoint>,
) -> Result<Option<Finding>, StoreFault> {
    let reader = TileReader::new(StoreTiles(store), size);
    let found = against_anchor(size, &reader, anchored)
        .map_err(|fault| StoreFault::Record(fault.to_string()))?;
    let Some(Finding::Rewritten { from, to }) = found else {
        return Ok(found);
    };
    // The log's own head of that size tells a log that told two stories from lines changed without its key.
    let heads = store.heads(to, 2)?;
    let own = heads.iter().find_map(&believed);
    Ok(Some(
        match own.as_ref().map(VerifiedCheckpoint::checkpoint) {
            Some(own) if own.size() == to && own.root() != anchored.root() => Finding::Forked {
                size: to,
                one: *own.root(),
                other: *anchored.root(),
            },
            Some(_) => Finding::Resealed { from, to },
            None => Finding::Rewritten { from, to },
        },
    ))
}

/// Two heads of one size since the anchor, both signed by the log.
fn two_of_one_size(
    store: &dyn Store,
    from: u64,
    believed: impl Fn(&HeadRow) -> Option<VerifiedCheckpoint>,
) -> Result<Option<Finding>, StoreFault> {
    let heads = store.heads(from, MOST_HEADS)?;
    for pair in heads.windows(2) {
        let [one, other] = pair else { continue };
        if one.size != other.size {
            continue;
        }
        if let (Some(one), Some(other)) = (believed(one), believed(other)) {
            let (one, other) = (one.checkpoint(), other.checkpoint());
            return Ok(Some(Finding::Forked {
                size: one.size(),
                one: *one.root(),
                other: *other.root(),
            }));
        }
    }
    Ok(None)
}

/// The lines since the anchor, and some before it: each has the bytes its leaf hash was made of.
fn tail(store: &dyn Store, anchored: u64, size: u64) -> Result<Option<Finding>, StoreFault> {
    let from = anchored.min(size.saturating_sub(LEAST_LINES));
    let mut index = from.max(size.saturating_sub(MOST_LINES));
    while index < size {
        let rows = store.record(index, PAGE)?;
        if rows.is_empty() {
            return Ok(Some(Finding::Truncated {
                size: index,
                sealed: size,
            }));
        }
        for row in rows {
            if row.index != index {
                let found = row.index;
                return Ok(Some(Finding::Missing { index, found }));
            }
            if row.bytes.is_some_and(|bytes| leaf_hash(&bytes) != row.leaf) {
                return Ok(Some(Finding::Edited { index }));
            }
            index += 1;
        }
    }
    Ok(None)
}

/// Heads looked at since the anchor: more than the store's ring holds.
const MOST_HEADS: usize = 2048;
/// Lines read at least, from the end backwards, and at most.
const LEAST_LINES: u64 = 256;
const MOST_LINES: u64 = 65_536;
const PAGE: usize = 256;
