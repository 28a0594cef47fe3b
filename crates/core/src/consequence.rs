//! What kind of consequence an act has (draft §12.1, PROFILE §9).

use serde::{Deserialize, Serialize};

/// The consequence class of a function; it comes from the catalogue, never from the server (PROFILE §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConsequenceClass {
    /// Reads that disclose nothing outside.
    Informational,
    /// Something leaves towards a party that did not have it.
    DataDisclosure,
    /// State that outlives the session changes.
    PersistentStateChange,
    /// Value moves.
    Financial,
    /// Reachability, identity or containment changes.
    NetworkControl,
    /// Something moves or switches in the physical world.
    Physical,
    /// A message reaches someone.
    Communication,
    /// Nobody said what it is.
    Other,
}

impl ConsequenceClass {
    /// Every class, in the draft's order.
    pub const ALL: [Self; 8] = [
        Self::Informational,
        Self::DataDisclosure,
        Self::PersistentStateChange,
        Self::Financial,
        Self::NetworkControl,
        Self::Physical,
        Self::Communication,
        Self::Other,
    ];

    /// The draft's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Informational => "INFORMATIONAL",
            Self::DataDisclosure => "DATA_DISCLOSURE",
            Self::PersistentStateChange => "PERSISTENT_STATE_CHANGE",
            Self::Financial => "FINANCIAL",
            Self::NetworkControl => "NETWORK_CONTROL",
            Self::Physical => "PHYSICAL",
            Self::Communication => "COMMUNICATION",
            Self::Other => "OTHER",
        }
    }

    /// From the draft's spelling, exactly.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    //= PROFILE §9: HIGH_RISK when the provenance is untrusted
    /// Whether an act of this class needs a trusted instruction behind it.
    pub fn high_risk(self) -> bool {
        self != Self::Informational
    }

    //= PROFILE §2: a FINANCIAL or COMMUNICATION act without `recipient_id` has no resolved destination
    /// Whether an act of this class must name who receives.
    pub fn needs_recipient(self) -> bool {
        matches!(self, Self::Financial | Self::Communication)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_exactly() {
        for class in ConsequenceClass::ALL {
            assert_eq!(ConsequenceClass::from_name(class.name()), Some(class));
            assert_eq!(
                ConsequenceClass::from_name(&class.name().to_lowercase()),
                None
            );
        }
    }
}
