//! What a change of the purposes does. A client may choose any of them, so one more may reach functions that served none
//! before.

use std::collections::BTreeMap;

use super::{List, shown};

pub(super) fn changes(
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
    list: &mut List,
) {
    for (id, declared) in new {
        match old.get(id) {
            None => list.widens(format!("purpose {}: may be chosen", shown(id))),
            Some(before) if before != declared => {
                list.widens(format!("purpose {}: declared otherwise", shown(id)));
            }
            Some(_) => {}
        }
    }
    for id in old.keys().filter(|id| !new.contains_key(*id)) {
        list.narrows(format!("purpose {}: may no longer be chosen", shown(id)));
    }
}
