//! The content record of a session, and the atoms in it (draft §3, §10). Unfinished: there is no label for an
//! argument, no rule and no replay here yet, and nothing calls this crate.
//!
//! Deterministic, with no model in the loop and no I/O. What comes in is recorded under the channel it came by, never
//! under what the text claims, with one normalisation for both sides of a comparison.
//!
//! - [`Session`]: the record, append-only and bounded
//! - [`Registries`]: values an administrator vouches for
//! - [`lenient`]: a tool's result as it is, for reading only

mod atom;
mod date;
mod decode;
mod fold;
mod index;
mod number;
mod registry;
mod scan;
mod select;
mod session;
mod structured;
mod words;

pub use number::Decimal;
pub use registry::{Registries, RegistryFault};
pub use session::{Bounds, Origin, Session, Writer};
pub use structured::lenient;
pub use words::{singular, split_name};
