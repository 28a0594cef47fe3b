//! Why a block is refused: constant names, so that nothing of the stream's content is ever repeated.

use lychgate_core::json::FaultKind;

/// Why a block (or the rest of a stream) became a typed refusal without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The stream ended before the provider sealed the block.
    Unsealed,
    /// The provider says that it stopped in the middle (token limit, filter, failed response).
    CutShort,
    /// Pieces for a block that was sealed already.
    AfterSeal,
    /// Pieces for a block that was never started.
    NotStarted,
    /// The block's place is missing or is no whole number.
    IndexMissing,
    /// Two blocks claim one place.
    IndexRepeated,
    /// Two ids on one place.
    IdChanged,
    /// Two blocks carry one id.
    IdRepeated,
    /// The provider keys its pieces by an id, and there is none.
    IdMissing,
    /// No name came.
    NameMissing,
    /// Two names on one place.
    NameChanged,
    /// Not a name (PROFILE §8).
    NameUnusable,
    /// Two of the provider's own accounts of one block differ.
    SourcesDisagree,
    /// A piece does not fit the kind of its block.
    KindChanged,
    /// A kind of block that is not known here.
    UnknownBlock,
    /// A member has another JSON type than its shape says.
    Shape,
    /// A call of an alternative answer (`n` > 1, a second candidate): it is no act of this message.
    OtherCandidate,
    /// The arguments are a JSON value where the shape has text.
    ArgumentsNotText,
    /// The arguments are JSON, but no object (a doubly encoded text is one such).
    ArgumentsNotObject,
    /// A text of no bytes where JSON belongs.
    ArgumentsEmpty,
    /// Something follows the arguments' object: two calls glued together, or snapshots taken for pieces.
    ArgumentsTrailing,
    /// The arguments end too early.
    ArgumentsTruncated,
    /// A key occurs twice in the arguments.
    ArgumentsDuplicateKey,
    /// Keys of the arguments differ only in case.
    ArgumentsCaseDuplicateKey,
    /// A number that no double denotes as written.
    ArgumentsNumber,
    /// Nested too deeply.
    ArgumentsTooDeep,
    /// Longer than allowed.
    ArgumentsTooLarge,
    /// Invalid UTF-8, an unpaired surrogate or a byte order mark.
    ArgumentsText,
    /// Not JSON for another reason.
    ArgumentsNotJson,
    /// A partial argument (Vertex) whose path or order has no one meaning.
    ArgumentsPath,
    /// The stream's framing is broken: no event can be read from here on.
    Framing,
    /// A frame's checksum is wrong.
    Checksum,
    /// A byte order mark before the stream.
    Bom,
    /// An event's text is not strict JSON.
    EventNotJson,
    /// An event has a duplicate key somewhere.
    EventDuplicateKey,
    /// An event of no known kind, or out of its place.
    EventUnknown,
    /// An event after the provider's own end.
    AfterEnd,
    /// The provider reported an error in band.
    ProviderError,
    /// A bound was reached: events, blocks or bytes.
    TooLarge,
}

impl Reason {
    /// The constant name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unsealed => "unsealed",
            Self::CutShort => "cut_short",
            Self::AfterSeal => "after_seal",
            Self::NotStarted => "not_started",
            Self::IndexMissing => "index_missing",
            Self::IndexRepeated => "index_repeated",
            Self::IdChanged => "id_changed",
            Self::IdRepeated => "id_repeated",
            Self::IdMissing => "id_missing",
            Self::NameMissing => "name_missing",
            Self::NameChanged => "name_changed",
            Self::NameUnusable => "name_unusable",
            Self::SourcesDisagree => "sources_disagree",
            Self::KindChanged => "kind_changed",
            Self::UnknownBlock => "unknown_block",
            Self::Shape => "shape",
            Self::OtherCandidate => "other_candidate",
            Self::ArgumentsNotText => "arguments_not_text",
            Self::ArgumentsNotObject => "arguments_not_object",
            Self::ArgumentsEmpty => "arguments_empty",
            Self::ArgumentsTrailing => "arguments_trailing",
            Self::ArgumentsTruncated => "arguments_truncated",
            Self::ArgumentsDuplicateKey => "arguments_duplicate_key",
            Self::ArgumentsCaseDuplicateKey => "arguments_case_duplicate_key",
            Self::ArgumentsNumber => "arguments_number",
            Self::ArgumentsTooDeep => "arguments_too_deep",
            Self::ArgumentsTooLarge => "arguments_too_large",
            Self::ArgumentsText => "arguments_text",
            Self::ArgumentsNotJson => "arguments_not_json",
            Self::ArgumentsPath => "arguments_path",
            Self::Framing => "framing",
            Self::Checksum => "checksum",
            Self::Bom => "bom",
            Self::EventNotJson => "event_not_json",
            Self::EventDuplicateKey => "event_duplicate_key",
            Self::EventUnknown => "event_unknown",
            Self::AfterEnd => "after_end",
            Self::ProviderError => "provider_error",
            Self::TooLarge => "too_large",
        }
    }

    /// What a strict parser's fault in a text of arguments means.
    pub(super) const fn of_arguments(fault: FaultKind) -> Self {
        match fault {
            FaultKind::Empty => Self::ArgumentsEmpty,
            FaultKind::TooLarge => Self::ArgumentsTooLarge,
            FaultKind::TooDeep => Self::ArgumentsTooDeep,
            FaultKind::Bom | FaultKind::InvalidUtf8 | FaultKind::UnpairedSurrogate => {
                Self::ArgumentsText
            }
            FaultKind::Truncated => Self::ArgumentsTruncated,
            FaultKind::Trailing => Self::ArgumentsTrailing,
            FaultKind::DuplicateKey => Self::ArgumentsDuplicateKey,
            FaultKind::CaseDuplicateKey => Self::ArgumentsCaseDuplicateKey,
            FaultKind::NumberNotExact => Self::ArgumentsNumber,
            FaultKind::Escape
            | FaultKind::ControlCharacter
            | FaultKind::NumberSyntax
            | FaultKind::Syntax => Self::ArgumentsNotJson,
        }
    }

    /// What a strict parser's fault in a whole event means.
    pub(super) const fn of_event(fault: FaultKind) -> Self {
        match fault {
            FaultKind::TooLarge => Self::TooLarge,
            FaultKind::DuplicateKey | FaultKind::CaseDuplicateKey => Self::EventDuplicateKey,
            _ => Self::EventNotJson,
        }
    }
}
