//! How far a value is the user's own: the label that provenance gives each argument, and policy judges by.

use crate::act::SourceType;

/// Who stands behind a value. The order is the order of trust; equal trust keeps the order written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// It was found nowhere, or the record could not hold everything.
    Unknown,
    /// What an agent said.
    Agent,
    /// What memory gave back.
    Memory,
    /// What was fetched, or came in a user-role message that no prompt channel delivered.
    Retrieval,
    /// What a tool said.
    Tool,
    /// Read from the one record that the user's words pick, in a field that no attacker writes.
    Bound,
    /// An administrator's entry that the user's words pick.
    Registry,
    /// The user's own words.
    User,
    /// The developer's words.
    Developer,
    /// The system's words.
    System,
}

impl Label {
    /// The word in records and for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Agent => "AGENT",
            Self::Memory => "MEMORY",
            Self::Retrieval => "RETRIEVAL",
            Self::Tool => "TOOL",
            Self::Bound => "BOUND",
            Self::Registry => "REGISTRY",
            Self::User => "USER",
            Self::Developer => "DEVELOPER",
            Self::System => "SYSTEM",
        }
    }

    /// What a source's own words are worth.
    #[must_use]
    pub const fn of(source: SourceType) -> Self {
        match source {
            SourceType::User => Self::User,
            SourceType::System => Self::System,
            SourceType::Developer => Self::Developer,
            SourceType::Tool => Self::Tool,
            SourceType::Retrieval => Self::Retrieval,
            SourceType::Memory => Self::Memory,
            SourceType::Agent => Self::Agent,
        }
    }

    /// A composite is worth its weakest part.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        self.min(other)
    }

    /// Whether it is the user's own, the developer's, the system's, or an entry the user picked.
    #[must_use]
    pub fn endorsed(self) -> bool {
        self >= Self::Registry
    }

    /// Whether it is that, or read from the record the user picked.
    #[must_use]
    pub fn bound(self) -> bool {
        self >= Self::Bound
    }

    /// The act's `instruction_provenance.source_type`; UNKNOWN has none (PROFILE §2).
    #[must_use]
    pub const fn source(self) -> Option<SourceType> {
        match self {
            Self::Unknown => None,
            Self::Agent => Some(SourceType::Agent),
            Self::Memory => Some(SourceType::Memory),
            Self::Retrieval => Some(SourceType::Retrieval),
            Self::Tool => Some(SourceType::Tool),
            // Both stand on the user's words, which picked the entry or the record.
            Self::Bound | Self::Registry | Self::User => Some(SourceType::User),
            Self::Developer => Some(SourceType::Developer),
            Self::System => Some(SourceType::System),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_composite_is_never_worth_more_than_a_part() {
        for source in SourceType::ALL {
            let label = Label::of(source);
            assert_eq!(label.meet(Label::Unknown), Label::Unknown);
            assert_eq!(label.meet(Label::User), label.min(Label::User));
            assert_eq!(label.source(), Some(source));
            assert_eq!(label.endorsed(), source.trusted());
        }
    }
}
