//! What makes the record a ledger that others can check: who signs its heads.
//!
//! - `sign`: the ledger key behind the store's writer

mod sign;

pub use sign::{LedgerSigner, log_name};
