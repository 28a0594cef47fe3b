//! Between our types and SQLite's: ids and digests are BLOBs, times and counters INTEGERs. What does not read back as
//! one of ours is corruption, never a default.

use lychgate_core::act::SourceType;
use lychgate_core::code::Code;
use lychgate_core::digest::Algorithm;
use lychgate_core::{ConsequenceClass, Digest, State, Timestamp};
use rusqlite::Row;
use rusqlite::types::FromSql;

use crate::outcome::{Rejected, StoreFault};
use crate::row::TicketState;
use crate::txn::LeafHash;

/// A failure below the rules: SQLite's, or a value that nobody here wrote.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error("column `{0}`")]
    Corrupt(String),
}

impl From<Fault> for StoreFault {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Sql(error) => Self::Unavailable(error.to_string()),
            Fault::Corrupt(column) => Self::Corrupt(format!("column `{column}`")),
        }
    }
}

/// Why a transaction did not go through.
#[derive(Debug)]
pub(super) enum Stop {
    /// The rules; nothing was written.
    Rejected(Rejected),
    /// Something below them; the group is rolled back.
    Fault(Fault),
}

impl From<Rejected> for Stop {
    fn from(why: Rejected) -> Self {
        Self::Rejected(why)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// A number as SQLite keeps it.
pub(super) fn int(number: u64) -> Result<i64, Rejected> {
    i64::try_from(number).map_err(|_| Rejected::Malformed("a number is too large"))
}

/// A time as SQLite keeps it.
pub(super) fn millis(time: Timestamp) -> i64 {
    // A `Timestamp` ends with the year 9999, far below the limit.
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Reads columns by name, and says which one is not ours.
pub(super) struct Columns<'r, 's>(pub(super) &'r Row<'s>);

impl Columns<'_, '_> {
    pub(super) fn get<T: FromSql>(&self, name: &str) -> Result<T, Fault> {
        Ok(self.0.get(name)?)
    }

    fn map<S: FromSql, T>(&self, name: &str, read: impl Fn(S) -> Option<T>) -> Result<T, Fault> {
        read(self.get(name)?).ok_or_else(|| Fault::Corrupt(name.to_owned()))
    }

    fn map_some<S: FromSql, T>(
        &self,
        name: &str,
        read: impl Fn(S) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(stored) = self.get::<Option<S>>(name)? else {
            return Ok(None);
        };
        read(stored)
            .map(Some)
            .ok_or_else(|| Fault::Corrupt(name.to_owned()))
    }

    pub(super) fn number(&self, name: &str) -> Result<u64, Fault> {
        self.map(name, |stored: i64| u64::try_from(stored).ok())
    }

    pub(super) fn number_some(&self, name: &str) -> Result<Option<u64>, Fault> {
        self.map_some(name, |stored: i64| u64::try_from(stored).ok())
    }

    pub(super) fn time(&self, name: &str) -> Result<Timestamp, Fault> {
        self.number(name).map(Timestamp::from_millis)
    }

    pub(super) fn time_some(&self, name: &str) -> Result<Option<Timestamp>, Fault> {
        Ok(self.number_some(name)?.map(Timestamp::from_millis))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Fault> {
        self.map(name, |stored: i64| match stored {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })
    }

    pub(super) fn id<T>(&self, name: &str, make: fn([u8; 16]) -> T) -> Result<T, Fault> {
        Ok(make(self.get::<[u8; 16]>(name)?))
    }

    pub(super) fn id_some<T>(
        &self,
        name: &str,
        make: fn([u8; 16]) -> T,
    ) -> Result<Option<T>, Fault> {
        Ok(self.get::<Option<[u8; 16]>>(name)?.map(make))
    }

    pub(super) fn digest(&self, name: &str) -> Result<Digest, Fault> {
        self.map(name, |stored: Vec<u8>| digest(&stored))
    }

    pub(super) fn digest_some(&self, name: &str) -> Result<Option<Digest>, Fault> {
        self.map_some(name, |stored: Vec<u8>| digest(&stored))
    }

    pub(super) fn state(&self, name: &str) -> Result<State, Fault> {
        self.map(name, |stored: i64| {
            u8::try_from(stored).ok().and_then(State::from_number)
        })
    }

    pub(super) fn ticket_state(&self, name: &str) -> Result<TicketState, Fault> {
        self.map(name, |stored: i64| {
            u8::try_from(stored).ok().and_then(TicketState::from_number)
        })
    }

    pub(super) fn class_some(&self, name: &str) -> Result<Option<ConsequenceClass>, Fault> {
        self.map_some(name, |stored: i64| {
            usize::try_from(stored)
                .ok()
                .and_then(|at| ConsequenceClass::ALL.get(at))
                .copied()
        })
    }

    pub(super) fn source_some(&self, name: &str) -> Result<Option<SourceType>, Fault> {
        self.map_some(name, |stored: i64| {
            u8::try_from(stored).ok().and_then(SourceType::from_number)
        })
    }

    pub(super) fn code_some(&self, name: &str) -> Result<Option<Code>, Fault> {
        self.map_some(name, |stored: String| stored.parse().ok())
    }

    pub(super) fn leaf(&self, name: &str) -> Result<LeafHash, Fault> {
        Ok(LeafHash(self.get(name)?))
    }
}

/// The class as the number that [`Columns::class_some`] reads.
pub(super) fn class_number(class: ConsequenceClass) -> Option<i64> {
    let at = ConsequenceClass::ALL
        .iter()
        .position(|known| *known == class)?;
    i64::try_from(at).ok()
}

/// A digest is its bytes alone; their number names the algorithm.
fn digest(bytes: &[u8]) -> Option<Digest> {
    let algorithm = [Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512]
        .into_iter()
        .find(|algorithm| algorithm.length() == bytes.len())?;
    Digest::from_bytes(algorithm, bytes).ok()
}
