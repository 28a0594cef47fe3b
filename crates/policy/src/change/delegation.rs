//! Who may speak as the agent, and what it may use up, old against new.

use lychgate_core::delegation::Budget;

use super::List;
use crate::model::Model;

pub(super) fn changes(old: &Model, new: &Model, list: &mut List) {
    let (before, after) = (&old.agent.uids, &new.agent.uids);
    if before != after {
        let narrower = match (before, after) {
            (None, Some(_)) => true,
            (Some(before), Some(after)) => after.iter().all(|uid| before.contains(uid)),
            (_, None) => false,
        };
        if narrower {
            list.narrows("fewer users may speak as the agent itself".to_owned());
        } else {
            list.widens("more users may speak as the agent itself".to_owned());
        }
    }
    match (&old.agent.budget, &new.agent.budget) {
        (one, other) if one == other => {}
        (None, Some(_)) => list.narrows("agent budget: there is one now".to_owned()),
        (Some(before), Some(after))
            if after.every >= before.every && less(&after.budget, &before.budget) =>
        {
            list.narrows("agent budget: smaller".to_owned());
        }
        _ => list.widens("agent budget changes".to_owned()),
    }
}

/// Whether a budget counts everything that another counts, and to no higher number.
pub(super) fn less(new: &Budget, old: &Budget) -> bool {
    let under = |new: Option<u64>, old: Option<u64>| match (new, old) {
        (_, None) => true,
        (Some(new), Some(old)) => new <= old,
        (None, Some(_)) => false,
    };
    let rate = match (new.rate, old.rate) {
        (_, None) => true,
        (Some(new), Some(old)) => new.acts <= old.acts && new.window_ms >= old.window_ms,
        (None, Some(_)) => false,
    };
    let spend = match (&new.spend, &old.spend) {
        (_, None) => true,
        (Some(new), Some(_)) => new.iter().all(|spend| {
            old.of_unit(spend.unit.as_str())
                .is_none_or(|most| spend.amount <= most)
        }),
        (None, Some(_)) => false,
    };
    under(new.acts, old.acts) && under(new.high_risk_acts, old.high_risk_acts) && rate && spend
}
