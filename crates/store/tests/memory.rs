//! The model in memory passes the suite itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lychgate_store::testing::MemoryStore;

lychgate_store::conformance!(Box::new(MemoryStore::new()));
