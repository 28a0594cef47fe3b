//! Strict JSON: one value model, one parser for everything that crosses a trust boundary, and the way to and from
//! typed objects.
//!
//! The parser never repairs (PROFILE §3). A [`Value`] that exists has unique keys in canonical order, no unpaired
//! surrogate and only finite numbers, so its canonical bytes are one walk away ([`crate::jcs`]).

mod de;
mod direct;
mod fault;
mod number;
mod parse;
mod pointer;
mod ser;
mod tree;
mod value;

pub use self::de::{from_value, present};
pub use self::fault::{Fault, FaultKind};
pub use self::parse::{CaseRule, Limits, parse};
pub use self::ser::to_value;
pub use self::value::{Number, Object, Value};

/// A typed object and a JSON value do not fit each other.
///
/// The reason never repeats the value found, only its kind: it may end in a log (PROFILE §10).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", pointer::at(.pointer))]
pub struct ShapeFault {
    /// RFC 6901 pointer to the place, empty for the whole value.
    pub pointer: String,
    /// What is wrong there, in lowercase.
    pub reason: String,
}

/// The RFC 8785 bytes of a typed object: what is digested and signed (PROFILE §3).
///
/// # Errors
/// When the object has a part JSON cannot carry exactly; see [`to_value`].
pub fn to_canonical<T: serde::Serialize>(object: &T) -> Result<Vec<u8>, ShapeFault> {
    let long_way = || to_value(object).map(|value| crate::jcs::to_bytes(&value));
    match direct::write(object) {
        Some(bytes) => {
            debug_assert_eq!(Ok(&bytes), long_way().as_ref());
            Ok(bytes)
        }
        None => long_way(),
    }
}
