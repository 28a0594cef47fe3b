//! What makes the record a ledger that others can check, and that its owner cannot quietly exchange for another.
//!
//! - `sign`: the ledger key behind the store's writer
//! - `examine`: the record against its anchor, before a gate starts
//! - `accept`: a person's decision to go on with a record that its anchor contradicts
//! - `prune`: dropping the bytes of lines that were archived
//! - `note`: what is worth a line about the anchor while the gate runs

mod accept;
mod examine;
mod note;
mod prune;
mod sign;

pub use accept::{Acceptance, acceptance_receipt};
pub use examine::{Difference, Examined, contradicts, examine};
pub use note::AnchorNote;
pub use prune::Archived;
pub use sign::{RingSigner, log_name};
