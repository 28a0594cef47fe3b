//! The store on one SQLite file.

use std::path::PathBuf;

use crate::outcome::StoreFault;

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

/// The store on one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {}

impl SqliteStore {
    /// Opens the file, making it when there is none.
    ///
    /// # Errors
    /// `Open`, `Version`, `Corrupt`.
    pub fn open(options: &Options) -> Result<Self, StoreFault> {
        Err(StoreFault::Open {
            path: options.path.display().to_string(),
            reason: "not built yet".to_owned(),
        })
    }
}
