//! Who must say yes: the `[approvers]` tables (PROFILE §10, §11).

use std::collections::{BTreeMap, BTreeSet};

use lychgate_core::ConsequenceClass;
use lychgate_core::signed::KeyId;
use serde::{Deserialize, Serialize};

use crate::diagnostics::{Problem, nearest, quoted};
use crate::model::Model;

/// Groups by name.
pub(crate) type Groups = BTreeMap<String, ApproverGroup>;

/// Approvers of whom so many must say yes to the acts that the group is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverGroup {
    /// The keys, by their thumbprints.
    pub(crate) keys: BTreeSet<KeyId>,
    /// How many different ones of them must say yes.
    pub(crate) quorum: u64,
    /// Acts of these classes are for this group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) classes: Vec<ConsequenceClass>,
    /// Acts of these tools are: `server` or `server/function`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) tools: BTreeSet<String>,
}

impl ApproverGroup {
    /// The keys, by their thumbprints.
    pub fn keys(&self) -> impl Iterator<Item = &KeyId> {
        self.keys.iter()
    }

    /// Whether a key is one of the group's.
    #[must_use]
    pub fn has(&self, key: &KeyId) -> bool {
        self.keys.contains(key)
    }

    /// How many different ones of the keys must say yes.
    #[must_use]
    pub const fn quorum(&self) -> u64 {
        self.quorum
    }

    /// Whether an act of this class and tool is for this group.
    #[must_use]
    pub fn is_for(&self, class: ConsequenceClass, server: &str, function: &str) -> bool {
        self.classes.contains(&class)
            || self.tools.iter().any(|tool| match tool.split_once('/') {
                Some((one, other)) => one == server && other == function,
                None => tool == server,
            })
    }
}

/// Every problem of meaning.
pub(crate) fn check(model: &Model, found: &mut Vec<Problem>) {
    if model.approvers.len() > MOST_GROUPS {
        let message = format!("at most {MOST_GROUPS} groups of approvers");
        found.push(Problem::new(&["approvers"], message));
    }
    for (name, group) in &model.approvers {
        one(name, group, model, found);
    }
}

fn one(name: &str, group: &ApproverGroup, model: &Model, found: &mut Vec<Problem>) {
    let path = |key| ["approvers", name, key];
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(word) {
        let message = "a group's name has 1 to 64 letters, digits, `-` and `_`";
        found.push(Problem::new(&["approvers", name], message));
    }
    if group.keys.is_empty() || group.keys.len() > MOST_KEYS {
        let message = format!("`keys` must name 1 to {MOST_KEYS} keys");
        found.push(Problem::new(&path("keys"), message));
    }
    let most = u64::try_from(group.keys.len()).unwrap_or(u64::MAX);
    if group.quorum == 0 || group.quorum > most {
        let message = format!("`quorum` must be from 1 to the number of keys, which is {most}");
        found.push(Problem::new(&path("quorum"), message));
    }
    // A rule that matches nothing is an error (PROFILE §8).
    if group.classes.is_empty() && group.tools.is_empty() {
        let message = format!(
            "group {} is for nothing: name `classes` or `tools`",
            quoted(name)
        );
        found.push(Problem::new(&["approvers", name], message));
    }
    for tool in &group.tools {
        let (server, function) = match tool.split_once('/') {
            Some((server, function)) => (server, Some(function)),
            None => (tool.as_str(), None),
        };
        let Some(known) = model.servers.get(server) else {
            let near = nearest(server, model.servers.keys().map(String::as_str));
            let message = format!("there is no server {}", quoted(server));
            found.push(Problem::new(&path("tools"), message).suggesting(near));
            continue;
        };
        let Some(function) = function else { continue };
        let offered =
            known.definitions.contains_key(function) || known.methods.contains_key(function);
        if !offered {
            // Without the pins nothing can be said of tools; they are asked for elsewhere.
            let message = format!(
                "server {} has no pinned tool {}",
                quoted(server),
                quoted(function)
            );
            found.push(Problem::new(&path("tools"), message));
        }
    }
}

/// Groups of one configuration.
const MOST_GROUPS: usize = 64;
/// Keys of one group.
const MOST_KEYS: usize = 64;
