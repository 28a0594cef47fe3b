//! Envelopes (draft §13, PROFILE §9): which functions may go by one decision for a while, and within which limits.

use lychgate_core::ConsequenceClass;
use lychgate_core::delegation::{Budget, Rate, Spend};
use serde::{Deserialize, Serialize};

use crate::diagnostics::Problem;
use crate::model::{Role, ToolModel};
use crate::tool::ToolEntry;

/// The limits of an envelope. Within them a decision on one act holds for others of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeLimits {
    /// Acts.
    pub acts: u64,
    /// How long it is open, in milliseconds.
    pub lasts: u64,
    /// Acts in a stretch of time; faster than that is an anomaly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Value, by unit; where there is a list, other units may not be spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Vec<Spend>>,
}

impl EnvelopeLimits {
    /// What acts under it are counted against.
    #[must_use]
    pub fn budget(&self) -> Budget {
        Budget {
            acts: Some(self.acts),
            high_risk_acts: None,
            rate: self.rate,
            spend: self.spend.clone(),
        }
    }

    /// What is wrong with them, if anything.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        if !(1..=1_000_000).contains(&self.acts) {
            return Some("`acts` of an envelope must be from 1 to 1000000");
        }
        if !(1_000..=86_400_000).contains(&self.lasts) {
            return Some("`lasts` of an envelope must be from 1 s to 24 h");
        }
        None
    }
}

//= PROFILE §9: never on the hot path
/// Why acts of a function never go by an envelope; `None` where they may.
#[must_use]
pub fn never_enveloped(entry: &ToolEntry) -> Option<&'static str> {
    if !entry.catalogued {
        return Some("a new tool is never on the hot path");
    }
    never(entry.class, entry.irreversible, entry.roles.values())
}

fn never<'r>(
    class: ConsequenceClass,
    irreversible: bool,
    mut roles: impl Iterator<Item = &'r Role>,
) -> Option<&'static str> {
    match class {
        ConsequenceClass::Financial
        | ConsequenceClass::Physical
        | ConsequenceClass::NetworkControl => Some("its class is never on the hot path"),
        ConsequenceClass::Other => Some("what nobody classified is never on the hot path"),
        ConsequenceClass::Informational
        | ConsequenceClass::DataDisclosure
        | ConsequenceClass::PersistentStateChange
        | ConsequenceClass::Communication => {
            let programs = roles.any(|role| matches!(role, Role::Program | Role::Command));
            if irreversible {
                Some("what cannot be undone is never on the hot path")
            } else if programs {
                Some("a program is never on the hot path")
            } else {
                None
            }
        }
    }
}

/// Every problem of an entry's envelope.
pub(crate) fn check(
    tool: &ToolModel,
    problem: impl Fn(&[&str], String) -> Problem,
    found: &mut Vec<Problem>,
) {
    let Some(limits) = &tool.envelope else {
        return;
    };
    if let Some(why) = limits.fault() {
        found.push(problem(&["envelope"], why.to_owned()));
    }
    if let Some(why) = never(tool.class, tool.irreversible, tool.roles.values()) {
        found.push(problem(
            &["envelope"],
            format!("there can be no envelope: {why}"),
        ));
    }
}
