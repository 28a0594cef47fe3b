//! The verifiable ledger: everything that proves what the record says, to someone who trusts nobody here.
//!
//! A leaf is a receipt's canonical bytes. The tree over them is RFC 9162's, laid out as C2SP tlog-tiles; its heads are
//! C2SP checkpoints, which are signed notes; witnesses cosign them. Pure: it is handed bytes and gives bytes back.
//!
//! - [`hash`]: leaf, node and root hashes (RFC 9162 §2.1.1)
//! - [`tree`]: growth in O(log n) state, inclusion and consistency proofs (RFC 9162 §2.1.2 to §2.1.4)
//! - [`tiles`]: the tree and the entries as immutable files (tlog-tiles)
//! - [`note`]: texts signed by named keys (signed-note, tlog-cosignature)
//! - [`checkpoint`]: the head of a log as a note (tlog-checkpoint)
//! - [`witness`]: asking for a cosignature, and when to give one (tlog-witness)
//! - [`proof`]: a receipt with all it takes to believe it, in one file
//! - [`audit`]: the whole record against every head that was ever signed
//! - [`report`]: what an operator is to measure, computed from the record (draft §5.10)
//! - [`fuzz`]: what must hold for any bytes whatever

pub mod audit;
pub mod checkpoint;
pub mod fuzz;
pub mod hash;
pub mod note;
pub mod proof;
pub mod report;
pub mod tiles;
pub mod tree;
pub mod witness;

pub use audit::{Auditor, Finding};
pub use checkpoint::{Checkpoint, SignedCheckpoint, VerifiedCheckpoint};
pub use hash::{Hash, LeafHash, empty_root, leaf_hash, node_hash, root};
pub use note::{KeyName, Note, RawSigner, VerifierKey};
pub use proof::{ReceiptProof, Trust};
pub use tiles::{Tile, TileBuilder, TileReader, TileSource};
pub use tree::{Frontier, HashReader, Node, verify_consistency, verify_inclusion};
