//! What an administrator vouches for: who the user is, contacts, payees, domains, caps. Membership alone is worth
//! nothing, for it is what attackers reuse; an entry counts when the user's words pick it.

use std::collections::BTreeMap;

use lychgate_core::json::Value;

use crate::atom;
use crate::fold::folded;
use crate::structured::scalar;

/// The registries of one workplace.
#[derive(Clone, Debug, Default)]
pub struct Registries {
    pub(crate) lists: Vec<Vec<Entry>>,
    pub(crate) own: Vec<String>,
    pub(crate) domains: Vec<String>,
}

/// One entry: everything in it names the same thing.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) values: Vec<String>,
}

/// A registry could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryFault {
    /// Which member.
    pub member: String,
    /// What is wrong.
    pub why: &'static str,
}

impl Registries {
    /// Reads one workplace's registries: `own` (who the user is), `org_domain` (one domain or a list), and any other
    /// member as a list of entries; an entry is a text, or an object whose texts all name the same thing.
    ///
    /// # Errors
    /// The first member that is something else, or too much.
    pub fn read(value: &Value) -> Result<Self, RegistryFault> {
        let fault = |member: &str, why| RegistryFault {
            member: member.to_owned(),
            why,
        };
        let members = value.as_object().ok_or(fault("", "it is not an object"))?;
        let mut read = Self::default();
        for (name, member) in members.iter() {
            let items = match member {
                Value::Array(items) => items.as_slice(),
                Value::String(_) => std::slice::from_ref(member),
                _ => return Err(fault(name, "it is neither a text nor a list")),
            };
            if items.len() > MOST {
                return Err(fault(name, "it has too many entries"));
            }
            let entries = items.iter().map(entry).collect::<Option<Vec<_>>>();
            let entries = entries.ok_or(fault(
                name,
                "an entry is neither a text nor an object of texts",
            ))?;
            let texts =
                |entries: Vec<Entry>| entries.into_iter().flat_map(|entry| entry.values).collect();
            match name {
                "own" => read.own = texts(entries),
                "org_domain" | "domains" => {
                    let domains: Vec<String> = texts(entries);
                    read.domains = domains
                        .iter()
                        .filter_map(|domain| atom::host(domain))
                        .collect();
                }
                _ => read.lists.push(entries),
            }
        }
        Ok(read)
    }

    /// Reads a file of several workplaces, by name.
    ///
    /// # Errors
    /// As [`Registries::read`].
    pub fn read_all(value: &Value) -> Result<BTreeMap<String, Self>, RegistryFault> {
        let members = value.as_object().ok_or(RegistryFault {
            member: String::new(),
            why: "it is not an object",
        })?;
        members
            .iter()
            .map(|(name, member)| Ok((name.to_owned(), Self::read(member)?)))
            .collect()
    }

    /// Whether a host is the organisation's own, or lies below it.
    pub(crate) fn ours(&self, host: &str) -> bool {
        self.domains.iter().any(|domain| {
            host == domain
                || host
                    .strip_suffix(domain.as_str())
                    .is_some_and(|rest| rest.ends_with('.'))
        })
    }
}

fn entry(value: &Value) -> Option<Entry> {
    let values = match value {
        Value::Object(members) => members
            .iter()
            .map(|(_, member)| scalar(member))
            .collect::<Option<Vec<_>>>()?,
        other => vec![scalar(other)?],
    };
    let values = values
        .iter()
        .map(|text| folded(text.trim()))
        .collect::<Vec<_>>();
    Some(Entry {
        values: values.into_iter().filter(|text| !text.is_empty()).collect(),
    })
}

const MOST: usize = 10_000;
