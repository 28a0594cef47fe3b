//! Delegations on the wire.

use std::collections::BTreeMap;

use lychgate_core::amount::Amount;
use lychgate_core::delegation::Delegation;
use serde::{Deserialize, Serialize};

/// A delegation, and what was drawn on its budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegationView {
    /// The signed link.
    pub link: Delegation,
    /// Acts of its holder and of everyone below, where they are counted.
    pub acts: u64,
    /// Value, by unit.
    pub spent: BTreeMap<String, Amount>,
}

/// The most delegations in one answer.
pub const MOST_DELEGATIONS: usize = 1000;
