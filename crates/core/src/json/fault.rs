//! What the strict parser says about bytes it does not take.

use std::fmt;

use super::pointer;

/// Why bytes are not taken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// RFC 6901 pointer to the innermost value the fault is in or about; empty for the whole text.
    pub pointer: String,
    /// Byte offset of the fault in the text.
    pub offset: usize,
    /// What is wrong.
    pub kind: FaultKind,
}

impl Fault {
    pub(super) fn new(offset: usize, kind: FaultKind) -> Self {
        Self {
            pointer: String::new(),
            offset,
            kind,
        }
    }

    pub(super) fn under(mut self, token: &str) -> Self {
        pointer::prepend(&mut self.pointer, token);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}{}, byte {}",
            self.kind,
            pointer::at(&self.pointer),
            self.offset
        )
    }
}

impl std::error::Error for Fault {}

/// The ways a text can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FaultKind {
    /// Nothing but white space.
    #[error("text is empty")]
    Empty,
    /// More bytes than the limit.
    #[error("text is longer than allowed")]
    TooLarge,
    /// More arrays and objects inside each other than the limit.
    #[error("nested deeper than allowed")]
    TooDeep,
    /// A byte order mark at the start.
    #[error("byte order mark")]
    Bom,
    /// Bytes that are not UTF-8.
    #[error("invalid utf-8")]
    InvalidUtf8,
    /// The text ends inside a value.
    #[error("text ends too early")]
    Truncated,
    /// Something follows the value.
    #[error("more text after the value")]
    Trailing,
    /// A key that occurs twice in one object, as written or through escapes.
    #[error("duplicate key")]
    DuplicateKey,
    /// Two keys of one object that differ only in case.
    #[error("keys differ only in case")]
    CaseDuplicateKey,
    /// Half of a surrogate pair, which no UTF-8 can carry.
    #[error("unpaired surrogate")]
    UnpairedSurrogate,
    /// A backslash that starts no JSON escape.
    #[error("unknown escape")]
    Escape,
    /// A control character that is not escaped.
    #[error("unescaped control character")]
    ControlCharacter,
    /// Not a JSON number: `NaN`, `Infinity`, `+1`, `01`, `.5`, `1.`, `0x1`.
    #[error("not a json number")]
    NumberSyntax,
    /// A number that no IEEE double denotes as written.
    #[error("number cannot be kept exactly")]
    NumberNotExact,
    /// Anything else that JSON does not have.
    #[error("not json")]
    Syntax,
}
