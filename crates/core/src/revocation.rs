//! What can be revoked, and the one spelling of it (PROFILE §6 EF-062).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{ActId, DelegationId, HolderId};
use crate::signed::KeyId;

/// Something that may be revoked. Its text, e.g. `tool:files/write_file`, is what the store keeps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Subject {
    /// Every act.
    All,
    /// Every act of an agent.
    Agent(String),
    /// Every act of a principal.
    Principal(String),
    /// Every act of one client connection.
    Session(HolderId),
    /// Every act at a server.
    Server(String),
    /// Every act of one function.
    Tool {
        /// The server.
        server: String,
        /// The function.
        function: String,
    },
    /// Every act that reaches a destination, a recipient or a host, by its canonical name.
    Destination(String),
    /// What a key signed, and, of a gate's own key, every act of that gate.
    Key(KeyId),
    /// One act.
    Act(ActId),
    /// One link of a chain of delegations, and with it every act below.
    Delegation(DelegationId),
}

/// A text that names nothing that could be revoked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names nothing that could be revoked")]
pub struct NotASubject(String);

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => out.write_str("all"),
            Self::Agent(agent) => write!(out, "agent:{agent}"),
            Self::Principal(principal) => write!(out, "principal:{principal}"),
            Self::Session(holder) => write!(out, "session:{holder}"),
            Self::Server(server) => write!(out, "server:{server}"),
            Self::Tool { server, function } => write!(out, "tool:{server}/{function}"),
            Self::Destination(destination) => write!(out, "destination:{destination}"),
            Self::Key(key) => write!(out, "key:{}", key.0),
            Self::Act(act) => write!(out, "act:{act}"),
            Self::Delegation(link) => write!(out, "delegation:{link}"),
        }
    }
}

impl FromStr for Subject {
    type Err = NotASubject;

    fn from_str(text: &str) -> Result<Self, NotASubject> {
        let refused = || NotASubject(text.chars().take(SHOWN).collect());
        if text == "all" {
            return Ok(Self::All);
        }
        let (kind, name) = text.split_once(':').ok_or_else(refused)?;
        if name.is_empty() || name.len() > MOST_BYTES || name.chars().any(char::is_control) {
            return Err(refused());
        }
        let owned = || name.to_owned();
        Ok(match kind {
            "agent" => Self::Agent(owned()),
            "principal" => Self::Principal(owned()),
            "session" => Self::Session(name.parse().map_err(|_| refused())?),
            "server" => Self::Server(owned()),
            "tool" => {
                let (server, function) = name.split_once('/').ok_or_else(refused)?;
                if server.is_empty() || function.is_empty() {
                    return Err(refused());
                }
                Self::Tool {
                    server: server.to_owned(),
                    function: function.to_owned(),
                }
            }
            "destination" => Self::Destination(owned()),
            "key" => Self::Key(KeyId::try_from(owned()).map_err(|_| refused())?),
            "act" => Self::Act(name.parse().map_err(|_| refused())?),
            "delegation" => Self::Delegation(name.parse().map_err(|_| refused())?),
            _ => return Err(refused()),
        })
    }
}

impl TryFrom<String> for Subject {
    type Error = NotASubject;

    fn try_from(text: String) -> Result<Self, NotASubject> {
        text.parse()
    }
}

impl From<Subject> for String {
    fn from(subject: Subject) -> Self {
        subject.to_string()
    }
}

/// The longest name, in bytes: a path or a URL.
const MOST_BYTES: usize = 4096;
/// Characters of what was refused that are given back.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_subject_reads_back_and_nothing_near_it() {
        for text in [
            "all",
            "agent:a b",
            "principal:user:alice",
            "session:cnx-00000000-0000-7000-8000-000000000001",
            "server:files",
            "tool:files/write/file",
            "destination:/home/x: y",
            "key:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "act:act-00000000-0000-7000-8000-000000000001",
            "delegation:dlg-00000000-0000-7000-8000-000000000001",
        ] {
            assert_eq!(text.parse::<Subject>().unwrap().to_string(), text);
        }
        let long = format!("agent:{}", "x".repeat(MOST_BYTES + 1));
        for text in [
            "",
            "All",
            "agent",
            "agent:",
            "agent:a\nb",
            "session:x",
            "tool:files",
            "tool:/f",
            "tool:f/",
            "key:x",
            "act:tkt-1",
            "nothing:x",
            &long,
        ] {
            assert!(text.parse::<Subject>().is_err(), "{text}");
        }
    }
}
