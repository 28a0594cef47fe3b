//! The objects and rules of the drafts: what an agent selected, what was decided of it, and what became of it.
//!
//! Nothing here performs I/O, reads a clock or draws randomness. A type that exists is a type that holds: a parsed
//! [`act::CandidateAct`] is closed and complete, a [`digest::Digest`] has the length of its algorithm, a
//! [`lifecycle::State`] moves only along [`lifecycle::State::may_become`].
//!
//! - [`json`], [`jcs`], [`digest`]: the one strict parser, the canonical form and what is hashed (PROFILE §3)
//! - [`act`]: the candidate act, exactly the draft's fields (draft §12.1)
//! - [`evidence`], [`authority`], [`verification`]: the two doors' objects (draft §12.2)
//! - [`delegation`]: a bounded part of one agent's standing, handed to another (draft §5.9); [`amount`]: value, counted exactly
//! - [`receipt`]: what the sequenced record keeps of every step (PROFILE §5, §10)
//! - [`code`]: the decision codes and the constant text a model may see (PROFILE §6)
//! - [`lifecycle`]: the states of an act (PROFILE §5)
//! - [`merkle`]: the hashes of a Merkle tree (RFC 9162)
//! - [`label`]: how far a value is the user's own (draft §3)
//! - [`name`]: which names there can be (PROFILE §8)
//! - [`signed`]: which objects are signed, and over which bytes (PROFILE §3)
//! - [`display`]: how a text reaches a person's eyes (CASES "Display")

pub mod act;
pub mod amount;
pub mod authority;
pub mod code;
pub mod consequence;
pub mod delegation;
pub mod digest;
pub mod display;
pub mod epoch;
pub mod evidence;
pub mod id;
pub mod jcs;
pub mod json;
pub mod label;
pub mod lifecycle;
pub mod merkle;
pub mod name;
pub mod outside;
pub mod receipt;
pub mod signed;
pub mod time;
pub mod verification;

pub use code::Code;
pub use consequence::ConsequenceClass;
pub use digest::Digest;
pub use epoch::Epochs;
pub use label::Label;
pub use lifecycle::State;
pub use time::Timestamp;
