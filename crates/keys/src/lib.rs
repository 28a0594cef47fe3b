//! Keys: who signs, who is believed, and what lies sealed at rest (PROFILE §3, §10).
//!
//! aws-lc-rs signs, encrypts and verifies what is live; ed25519-dalek's strict check verifies old objects offline and
//! counter-checks what an approver signed. Private keys never leave this crate as bytes.
//!
//! - [`signing`]: an Ed25519 key and its RFC 7638 id
//! - [`trust`]: the public keys, each in its one role, and the checks of signed objects
//! - [`ring`]: the gate's three file keys, and rotation
//! - [`approver`]: the key under a passphrase
//! - [`chain`]: who stands behind a chain of delegations
//! - [`lone`]: a key in a file of its own, for what is no gate
//! - [`seal`]: encryption of what must not lie in clear text
//! - [`verdict`]: the objects an approver signs
//! - [`fault`]: what goes wrong, and the way out

pub mod approver;
pub mod chain;
pub mod fault;
mod files;
pub mod lone;
pub mod ring;
mod role;
pub mod seal;
pub mod signing;
pub mod trust;
mod trusted;
pub mod verdict;

pub use approver::ApproverKey;
pub use chain::{NotBelieved, Unbelieved, verify_chain_at, verify_chain_live};
pub use fault::{Invalid, KeyFault, TrustFault};
pub use lone::lone_key;
pub use ring::{KeyRing, NewKey, rotate};
pub use role::{NotARole, Role};
pub use seal::Sealer;
pub use signing::{DrawnEntropy, SigningKey, SystemEntropy, thumbprint};
pub use trust::TrustBundle;
pub use trusted::{TrustedKey, is_sound, verify_raw};
