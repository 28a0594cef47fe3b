//! Identities. Each is a prefix and a UUIDv7, so ids of one kind grow with time and never stand for another kind.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::Timestamp;

/// A text that is not an id of the kind asked for.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not an id of the form `{prefix}<uuid>`")]
pub struct NotAnId {
    text: String,
    prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// What every id of this kind starts with.
            pub const PREFIX: &'static str = $prefix;

            /// A fresh id from the time and ten random bytes (both come in through the gate's traits).
            pub fn new(at: Timestamp, random: [u8; 10]) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(at.as_millis(), &random).into_uuid())
            }

            /// From the sixteen bytes the store keeps.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The sixteen bytes the store keeps.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0.hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let refused = || NotAnId { text: text.to_owned(), prefix: $prefix };
                let rest = text.strip_prefix($prefix).ok_or_else(refused)?;
                let id = Self(Uuid::parse_str(rest).map_err(|_| refused())?);
                // `Uuid` reads several spellings; one id has one.
                if id.to_string() == text { Ok(id) } else { Err(refused()) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// A candidate act (draft §12.1 `candidate_act_id`).
    ActId = "act-";
    /// Protected validation evidence (draft §12.2 `evidence_id`).
    EvidenceId = "pve-";
    /// A finality authority (draft §12.2 `authority_id`).
    AuthorityId = "afa-";
    /// One attempt at an effect (draft §12.2 `effect_id`).
    EffectId = "eff-";
    /// An escalation that waits for a person.
    TicketId = "tkt-";
    /// An envelope.
    EnvelopeId = "env-";
    /// One link of a chain of delegations.
    DelegationId = "dlg-";
    /// A consent record: an act's authorization context (draft §4.5).
    ConsentId = "cns-";
    /// The client connection that holds an authority (PROFILE §4: non-bearer).
    HolderId = "cnx-";
    /// One running gate (the act's `runtime_id`).
    GateId = "gate-";
}

/// A nonce: the holder's id and a counter that only grows, zero-padded (PROFILE §2), e.g. `cnx-….0000000000000042`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce {
    /// Whose counter it is.
    pub holder: HolderId,
    /// The counter's value, from 1.
    pub count: u64,
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:016}", self.holder, self.count)
    }
}

impl FromStr for Nonce {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || NotAnId {
            text: text.to_owned(),
            prefix: HolderId::PREFIX,
        };
        let (holder, count) = text.rsplit_once('.').ok_or_else(refused)?;
        let nonce = Self {
            holder: holder.parse()?,
            count: count.parse().map_err(|_| refused())?,
        };
        if nonce.to_string() == text {
            Ok(nonce)
        } else {
            Err(refused())
        }
    }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_reads_back_and_never_as_another_kind() {
        let id = ActId::new(Timestamp::from_millis(1_787_766_001_000), [7; 10]);
        let text = id.to_string();
        assert!(
            text.len() >= 16,
            "the schema's minimum, which the draft's own sample misses"
        );
        assert_eq!(text.parse::<ActId>().unwrap(), id);
        assert!(text.parse::<TicketId>().is_err());
        assert!(text.to_uppercase().parse::<ActId>().is_err());
    }

    #[test]
    fn ids_grow_with_time_and_nonces_with_their_counter() {
        let at = |ms| ActId::new(Timestamp::from_millis(ms), [0xff; 10]);
        assert!(at(1) < at(2));
        let holder = HolderId::from_bytes([1; 16]);
        let nonce = |count| Nonce { holder, count }.to_string();
        assert!(nonce(9) < nonce(10));
        assert_eq!(nonce(10).parse::<Nonce>().unwrap().count, 10);
        assert!(nonce(10).replace("0010", "10").parse::<Nonce>().is_err());
    }
}
