//! Who must say yes to an act, and whether enough have (PROFILE §10, §11).

use lychgate_core::ConsequenceClass;
use lychgate_core::signed::KeyId;
use lychgate_policy::{Applied, ApproverGroup};

use super::proof::Yeses;

/// Who must say yes to an act under one configuration. Without a group of its own it is any approver, once.
///
/// Everything that asks goes through here: an ask that names its group (a policy's annotation) adds it to `groups`.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    groups: Vec<(&'a str, &'a ApproverGroup)>,
}

/// How far the yeses of one group have come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The group in the configuration; empty when any approver may decide alone.
    pub group: String,
    /// How many different keys must say yes.
    pub quorum: u64,
    /// How many have.
    pub yes: u64,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(
        applied: &'a Applied,
        class: ConsequenceClass,
        server: &'a str,
        function: &'a str,
    ) -> Self {
        Self {
            groups: applied.approvers_for(class, server, function).collect(),
        }
    }

    /// Whether a yes of this key counts.
    pub(super) fn counts(&self, key: &KeyId) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|(_, group)| group.has(key))
    }

    /// Whether these are enough: in each group as many different keys as it wants.
    pub(super) fn met_by(&self, yeses: &Yeses) -> bool {
        self.tallies(yeses).iter().all(|one| one.yes >= one.quorum)
    }

    /// How far each group has come.
    pub(super) fn tallies(&self, yeses: &Yeses) -> Vec<Tally> {
        if self.groups.is_empty() {
            return vec![Tally {
                group: String::new(),
                quorum: 1,
                yes: count(yeses.len()),
            }];
        }
        let tally = |(name, group): &(&str, &ApproverGroup)| Tally {
            group: (*name).to_owned(),
            quorum: group.quorum(),
            yes: count(yeses.iter().filter(|key| group.has(key)).count()),
        };
        self.groups.iter().map(tally).collect()
    }

    /// The groups that are asked, for a sentence.
    pub(super) fn names(&self) -> String {
        let names = self.groups.iter().map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
