//! The `[approvers]` tables.

use lychgate_core::ConsequenceClass;
use lychgate_core::signed::KeyId;

use super::read::{Reader, Section};
use crate::approvers::{ApproverGroup, Groups};
use crate::diagnostics::quoted;

pub(super) fn approvers(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Groups {
    let mut groups = Groups::new();
    for section in reader.tables(top, "approvers", &["keys", "quorum", "classes", "tools"]) {
        let mut group = ApproverGroup {
            keys: Default::default(),
            quorum: reader.whole(&section, "quorum").unwrap_or(1),
            classes: Vec::new(),
            tools: Default::default(),
        };
        for text in reader.list(&section, "keys").unwrap_or_default() {
            match KeyId::try_from(text.clone()) {
                Ok(key) if group.keys.contains(&key) => {
                    reader.at_key(
                        &section,
                        "keys",
                        format!("key {} is named twice", quoted(&text)),
                    );
                }
                Ok(key) => drop(group.keys.insert(key)),
                Err(_) => {
                    let message = format!(
                        "{} is no key id: `lychgate keys list` shows them",
                        quoted(&text)
                    );
                    reader.at_key(&section, "keys", message);
                }
            }
        }
        for text in reader.list(&section, "classes").unwrap_or_default() {
            match ConsequenceClass::ALL
                .iter()
                .find(|class| class.name() == text)
            {
                Some(class) if group.classes.contains(class) => {}
                Some(class) => group.classes.push(*class),
                None => {
                    let message = format!("{} is no consequence class", quoted(&text));
                    reader.at_key(&section, "classes", message);
                }
            }
        }
        group.classes.sort_unstable();
        group
            .tools
            .extend(reader.list(&section, "tools").unwrap_or_default());
        groups.insert(section.name().to_owned(), group);
    }
    groups
}
