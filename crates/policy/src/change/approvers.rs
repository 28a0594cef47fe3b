//! What a change of the `[approvers]` tables does: whatever lets fewer or other people say yes widens.

use lychgate_core::display::escape;

use super::List;
use crate::approvers::{ApproverGroup, Groups};

pub(super) fn changes(old: &Groups, new: &Groups, list: &mut List) {
    for (name, group) in old {
        match new.get(name) {
            Some(now) => one(name, group, now, list),
            None => list.widens(format!("approvers {}: no longer asked", escape(name))),
        }
    }
    for (name, group) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        list.narrows(format!(
            "approvers {}: {} of {} keys must say yes",
            escape(name),
            group.quorum,
            group.keys.len()
        ));
    }
}

fn one(name: &str, old: &ApproverGroup, new: &ApproverGroup, list: &mut List) {
    let name = escape(name);
    if new.quorum < old.quorum {
        list.widens(format!(
            "approvers {name} quorum: {} -> {}",
            old.quorum, new.quorum
        ));
    } else if new.quorum > old.quorum {
        list.narrows(format!(
            "approvers {name} quorum: {} -> {}",
            old.quorum, new.quorum
        ));
    }
    for key in new.keys.difference(&old.keys) {
        list.widens(format!("approvers {name}: key {} is added", escape(&key.0)));
    }
    for key in old.keys.difference(&new.keys) {
        list.narrows(format!("approvers {name}: key {} is gone", escape(&key.0)));
    }
    let lost = old.classes.iter().any(|class| !new.classes.contains(class))
        || !old.tools.is_subset(&new.tools);
    let won = new.classes.iter().any(|class| !old.classes.contains(class))
        || !new.tools.is_subset(&old.tools);
    if lost {
        list.widens(format!("approvers {name}: no longer asked about some acts"));
    }
    if won {
        list.narrows(format!("approvers {name}: asked about more acts"));
    }
}
