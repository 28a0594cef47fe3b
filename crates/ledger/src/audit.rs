//! The whole record against every head that was ever signed over it: recomputed leaf by leaf, and the first difference
//! named. Nothing is repaired.
//!
//! Two sets of heads are compared: the log's own, which lie beside the record, and the anchored ones, which lie where
//! whoever could rewrite the record could not. Without anchored heads, only mistakes and partial rewriting show.

use std::cmp::Ordering;

use crate::checkpoint::{Checkpoint, VerifiedCheckpoint};
use crate::hash::{Hash, LeafHash, leaf_hash};
use crate::tree::{Frontier, HashReader, ProveFault, root_at};

/// One line of the record, in the order it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The number it is kept under.
    pub index: u64,
    /// Its exact bytes; `None` when they were archived and dropped.
    pub bytes: Option<&'a [u8]>,
    /// The leaf hash kept with it.
    pub leaf: LeafHash,
}

/// Reads the record once, start to end. Memory: 40 bytes a head.
#[derive(Clone, Debug)]
pub struct Auditor {
    frontier: Frontier,
    // Sorted by size, one a size.
    own: Heads,
    anchored: Heads,
    // The size up to which the record is what some head says, and what an anchored one says.
    sealed: u64,
    as_anchored: u64,
    // An anchored head, (from, to), that the record disagrees with: the log's own next head tells who rewrote it.
    pending: Option<(u64, u64)>,
    without_bytes: u64,
}

/// A record without a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clean {
    /// How many records.
    pub size: u64,
    /// The root over them.
    pub root: Hash,
    /// How many of them the largest head covers; those after it are not proved by anything yet.
    pub sealed: u64,
    /// The size of the largest anchored head; `None` without one.
    pub anchored: Option<u64>,
    /// How many records were checked by their leaf hash alone, their bytes being archived.
    pub without_bytes: u64,
}

/// The first difference found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// A head of another log is among the heads.
    #[error("heads are of two logs, `{0}` and `{1}`")]
    TwoLogs(String, String),
    /// Two signed heads of one size have different roots: the log told two stories.
    #[error("log is forked: two signed heads of {size} records have different roots")]
    Forked {
        /// The size.
        size: u64,
        /// One root.
        one: Hash,
        /// The other.
        other: Hash,
    },
    /// A record's bytes are not those its leaf hash was made of.
    #[error("record {index} was edited: its bytes do not have its leaf hash")]
    Edited {
        /// The record.
        index: u64,
    },
    /// A record is not there, and a later one is.
    #[error("record {index} is missing: {found} follows in its place")]
    Missing {
        /// The first record missing.
        index: u64,
        /// The number found in its place.
        found: u64,
    },
    /// A record stands after one of a higher or the same number.
    #[error("record {found} is out of order or there twice, where {index} should stand")]
    Reordered {
        /// The number that should stand there.
        index: u64,
        /// The number found.
        found: u64,
    },
    /// The record ends before what the log itself signed.
    #[error("record was truncated: it has {size} entries, the log signed {sealed}")]
    Truncated {
        /// Records found.
        size: u64,
        /// The size of the log's own largest head.
        sealed: u64,
    },
    /// Between two heads a record was edited with its leaf hash, dropped, put in or moved.
    /// [`first_difference`] names it.
    #[error("records {from} to {to} are not those the log signed at {to}")]
    Rewritten {
        /// The size up to which the record is as signed.
        from: u64,
        /// The size of the first head it disagrees with.
        to: u64,
    },
    /// The record agrees with the log's own heads and not with an anchored one: it was rewritten and signed anew.
    #[error("log was sealed anew: records {from} to {to} are not those anchored at {to}")]
    Resealed {
        /// The size up to which the record is as anchored.
        from: u64,
        /// The size of the first anchored head it disagrees with.
        to: u64,
    },
    /// The record agrees with every head up to its end, and ends before an anchored one: an older copy was restored, or
    /// the end was cut off together with the log's own heads over it.
    #[error("record is an older state: it has {size} entries, {anchored} were anchored")]
    RolledBack {
        /// Records found.
        size: u64,
        /// The size of the largest anchored head.
        anchored: u64,
    },
}

impl Auditor {
    /// Takes the heads: the log's own, and the anchored.
    ///
    /// # Errors
    /// When they are of two logs, or two of them show a fork.
    pub fn new<'h>(
        own: impl IntoIterator<Item = &'h VerifiedCheckpoint>,
        anchored: impl IntoIterator<Item = &'h VerifiedCheckpoint>,
    ) -> Result<Self, Finding> {
        let mut origin = None;
        let own = Heads::new(
            own.into_iter().map(VerifiedCheckpoint::checkpoint),
            &mut origin,
        )?;
        let anchored = anchored.into_iter().map(VerifiedCheckpoint::checkpoint);
        let anchored = Heads::new(anchored, &mut origin)?;
        own.check_fork(&anchored)?;
        Ok(Self {
            frontier: Frontier::new(),
            own,
            anchored,
            sealed: 0,
            as_anchored: 0,
            pending: None,
            without_bytes: 0,
        })
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// The first difference; nothing after it is worth reading.
    pub fn record(&mut self, record: Record<'_>) -> Result<(), Finding> {
        let (index, found) = (self.frontier.size(), record.index);
        match found.cmp(&index) {
            Ordering::Less => return Err(Finding::Reordered { index, found }),
            Ordering::Greater => return Err(Finding::Missing { index, found }),
            Ordering::Equal => {}
        }
        match record.bytes {
            Some(bytes) if leaf_hash(bytes) != record.leaf => {
                return Err(Finding::Edited { index });
            }
            Some(_) => {}
            None => self.without_bytes += 1,
        }
        self.frontier.append(record.leaf);
        self.compare()
    }

    /// Ends the record.
    ///
    /// # Errors
    /// When it ends too early.
    pub fn finish(self) -> Result<Clean, Finding> {
        if let Some((from, to)) = self.pending {
            return Err(Finding::Rewritten { from, to });
        }
        let size = self.frontier.size();
        let anchored = self.anchored.largest();
        match (self.own.largest(), anchored) {
            (Some(sealed), _) if sealed > size => Err(Finding::Truncated { size, sealed }),
            (_, Some(anchored)) if anchored > size => Err(Finding::RolledBack { size, anchored }),
            _ => Ok(Clean {
                size,
                root: self.frontier.root(),
                sealed: self.sealed,
                anchored,
                without_bytes: self.without_bytes,
            }),
        }
    }

    /// Holds the record so far against the heads of its size.
    fn compare(&mut self) -> Result<(), Finding> {
        let (from, to) = (self.sealed, self.frontier.size());
        let (own, anchored) = (self.own.at(to), self.anchored.at(to));
        if own.is_none() && anchored.is_none() {
            return Ok(());
        }
        let root = self.frontier.root();
        let agrees = |head: Option<Hash>| head.is_none_or(|head| head == root);
        let (own_agrees, anchored_agrees) = (agrees(own), agrees(anchored));
        if let Some((from, to)) = self.pending {
            return match own {
                None => Ok(()),
                Some(_) if own_agrees => Err(Finding::Resealed { from, to }),
                Some(_) => Err(Finding::Rewritten { from, to }),
            };
        }
        if !own_agrees {
            return Err(Finding::Rewritten { from, to });
        }
        if !anchored_agrees {
            self.pending = Some((self.as_anchored, to));
            return Ok(());
        }
        if anchored.is_some() {
            self.as_anchored = to;
        }
        self.sealed = to;
        Ok(())
    }
}

/// Heads by size, read in order as the record grows.
#[derive(Clone, Debug, Default)]
struct Heads {
    // Sorted by size, sizes unique, none of size 0.
    heads: Vec<(u64, Hash)>,
    next: usize,
}

impl Heads {
    fn new<'h>(
        heads: impl Iterator<Item = &'h Checkpoint>,
        origin: &mut Option<&'h str>,
    ) -> Result<Self, Finding> {
        let mut sorted = Vec::new();
        for head in heads {
            let first = *origin.get_or_insert(head.origin());
            if first != head.origin() {
                let (one, other) = (first.to_owned(), head.origin().to_owned());
                return Err(Finding::TwoLogs(one, other));
            }
            if head.size() > 0 {
                sorted.push((head.size(), *head.root()));
            }
        }
        sorted.sort_unstable();
        sorted.dedup();
        let twice = sorted.windows(2).find_map(|pair| match pair {
            [(size, one), (other_size, other)] if size == other_size => {
                Some(forked(*size, *one, *other))
            }
            _ => None,
        });
        match twice {
            Some(finding) => Err(finding),
            None => Ok(Self {
                heads: sorted,
                next: 0,
            }),
        }
    }

    fn check_fork(&self, others: &Self) -> Result<(), Finding> {
        for (size, one) in &self.heads {
            let other = others.heads.binary_search_by_key(size, |(size, _)| *size);
            let other = other.ok().and_then(|at| others.heads.get(at));
            match other {
                Some((_, other)) if other != one => return Err(forked(*size, *one, *other)),
                _ => {}
            }
        }
        Ok(())
    }

    fn largest(&self) -> Option<u64> {
        self.heads.last().map(|(size, _)| *size)
    }

    /// The root of the head of this size, asked for in growing order.
    fn at(&mut self, size: u64) -> Option<Hash> {
        let (head, root) = *self.heads.get(self.next)?;
        if head != size {
            return None;
        }
        self.next += 1;
        Some(root)
    }
}

fn forked(size: u64, one: Hash, other: Hash) -> Finding {
    Finding::Forked { size, one, other }
}

/// Holds a log of `size` records against an anchored head through its kept hashes: what the gate asks before it starts
/// (PROFILE §10, CASES "Replay, timeout, crash"). A handful of reads for any size; the records' bytes are
/// [`Auditor`]'s.
///
/// # Errors
/// When the hashes cannot be read, which is no answer either: the gate does not start.
pub fn against_anchor<R: HashReader>(
    size: u64,
    reader: &R,
    anchored: &Checkpoint,
) -> Result<Option<Finding>, ProveFault<R::Fault>> {
    let to = anchored.size();
    if to > size {
        let anchored = to;
        return Ok(Some(Finding::RolledBack { size, anchored }));
    }
    let same = root_at(to, reader)? == *anchored.root();
    Ok((!same).then_some(Finding::Rewritten { from: 0, to }))
}

/// How a list of leaf hashes differs from the one a head covers: names the record inside a span that
/// [`Finding::Rewritten`] or [`Finding::Resealed`] gave. `sealed` are the leaf hashes of that span from hash tiles
/// whose root is the head's. Reads one leaf past the first difference of either.
#[must_use]
pub fn first_difference(
    from: u64,
    found: impl IntoIterator<Item = LeafHash>,
    sealed: impl IntoIterator<Item = LeafHash>,
) -> Option<Difference> {
    let (mut found, mut sealed) = (found.into_iter(), sealed.into_iter());
    let mut index = from;
    loop {
        let (here, there) = (found.next(), sealed.next());
        let (Some(here), Some(there)) = (here, there) else {
            return match (here, there) {
                (None, None) => None,
                (None, Some(_)) => Some(Difference::Dropped { index }),
                (Some(_), _) => Some(Difference::Inserted { index }),
            };
        };
        if here != there {
            let moved_up = sealed.next() == Some(here);
            let moved_down = found.next() == Some(there);
            return Some(match (moved_up, moved_down) {
                (true, true) => Difference::Swapped { index },
                (true, false) => Difference::Dropped { index },
                (false, true) => Difference::Inserted { index },
                (false, false) => Difference::Replaced { index },
            });
        }
        index += 1;
    }
}

/// What happened at the first record that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It stands here with other bytes, or one from elsewhere does.
    Replaced {
        /// The record.
        index: u64,
    },
    /// It is gone, and the next one stands here.
    Dropped {
        /// The record.
        index: u64,
    },
    /// One that was never sealed stands here, and the sealed one follows it.
    Inserted {
        /// The record.
        index: u64,
    },
    /// It and the next one changed places.
    Swapped {
        /// The first of the two.
        index: u64,
    },
}
