//! What makes two acts of one kind (draft §13): agent, tool, function, destination, class and provenance class, and whatever
//! else policy's word may rest on but the arguments' values.

use std::collections::BTreeSet;

use lychgate_core::act::SourceType;
use lychgate_core::id::DelegationId;
use lychgate_core::json::Value;
use lychgate_core::{ConsequenceClass, Digest};
use lychgate_policy::{Scope, never_enveloped};

use crate::hold::{Found, HeldAct};
use crate::receipts::source_of;

/// A kind of acts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) agent: String,
    /// The chain it acts under: a deeper agent of the same name is another.
    pub(crate) delegation: Option<DelegationId>,
    pub(crate) tool: String,
    pub(crate) function: String,
    definition: Option<Digest>,
    endpoint: String,
    pub(crate) destination: Option<String>,
    recipient: Option<String>,
    pub(crate) class: ConsequenceClass,
    pub(crate) source: Option<SourceType>,
    vouched: bool,
    purpose: String,
}

impl Kind {
    pub(crate) fn of(held: &HeldAct) -> Self {
        let act = &held.act;
        let destination = act.destination.as_ref();
        Self {
            agent: act.agent.agent_id.clone(),
            delegation: held.session.delegation(),
            tool: act.tool.tool_id.clone(),
            function: act.tool.function_id.clone(),
            definition: held.connected.definition,
            endpoint: held.connected.endpoint.clone(),
            destination: destination.and_then(|there| there.destination_id.clone()),
            recipient: destination.and_then(|there| there.recipient_id.clone()),
            class: act.consequence_class,
            source: source_of(act),
            vouched: held.vouched,
            purpose: act.purpose.purpose_id.clone(),
        }
    }
}

//= PROFILE §9: never on the hot path: PERSISTENT_STATE_CHANGE outside a recoverable root, a new tool, an unknown destination, a depth
//= increase, UNKNOWN provenance
/// Why an act never goes by an envelope; `None` where it may.
pub(crate) fn why_not(held: &HeldAct) -> Option<&'static str> {
    let (Found::Tool, Some(entry)) = (held.found, held.entry()) else {
        return Some("only a known tool's acts go by an envelope");
    };
    if let Some(why) = never_enveloped(entry) {
        return Some(why);
    }
    if held.has_program || held.continues() || held.session.is_own() {
        return Some("such an act is decided on by itself");
    }
    let class = held.act.consequence_class;
    match source_of(&held.act) {
        None => return Some("UNKNOWN provenance is never on the hot path"),
        Some(source) if class.high_risk() && !source.trusted() => {
            return Some("an untrusted instruction is never on the hot path");
        }
        //= PROFILE §10: vouching never covers external or irreversible acts
        Some(_) if held.vouched && !vouching_covers(class) => {
            return Some("what is only vouched for is UNKNOWN beyond this machine");
        }
        Some(_) => {}
    }
    let Ok(reach) = &held.reach else {
        return Some("an unknown destination is never on the hot path");
    };
    let fits = |scope: &Scope| match scope {
        Scope::InRoot { recoverable, .. } => {
            *recoverable || class != ConsequenceClass::PersistentStateChange
        }
        Scope::External { metadata, .. } => !metadata,
        Scope::Fixed | Scope::LocalOther => class != ConsequenceClass::PersistentStateChange,
        Scope::OutsideRoots | Scope::Forbidden => false,
    };
    if reach.targets.iter().all(|target| fits(&target.scope)) {
        None
    } else {
        Some("this destination is never on the hot path")
    }
}

/// Whether an operator's word for a channel counts for a class at all.
fn vouching_covers(class: ConsequenceClass) -> bool {
    matches!(
        class,
        ConsequenceClass::Informational | ConsequenceClass::PersistentStateChange
    )
}

/// The shape of arguments: which members there are, and of what kind their values are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape(BTreeSet<String>);

impl Shape {
    pub(crate) fn of(arguments: &Value) -> Self {
        let mut found = BTreeSet::new();
        walk(arguments, String::new(), &mut found);
        Self(found)
    }
}

fn walk(value: &Value, at: String, found: &mut BTreeSet<String>) {
    if found.len() >= MOST_PLACES {
        return;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "truth",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(items) => {
            items
                .iter()
                .for_each(|item| walk(item, format!("{at}/*"), found));
            "list"
        }
        Value::Object(members) => {
            for (key, member) in members.iter() {
                walk(member, format!("{at}/{}", key.replace('/', "~1")), found);
            }
            "object"
        }
    };
    found.insert(format!("{at} {kind}"));
}

/// Places of a shape that are told apart.
const MOST_PLACES: usize = 1024;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use lychgate_core::json::{Limits, parse};

    use super::*;

    #[test]
    fn a_shape_is_members_and_kinds_and_no_values() {
        let shape = |text: &str| Shape::of(&parse(text.as_bytes(), &Limits::CANON).unwrap());
        assert_eq!(
            shape(r#"{"a":"x","b":[1,2]}"#),
            shape(r#"{"b":[7],"a":"another"}"#)
        );
        for other in [
            r#"{"a":1,"b":[1]}"#,
            r#"{"a":"x"}"#,
            r#"{"a":"x","b":[1,"2"]}"#,
            r#"{"a":"x","b":[1],"c":null}"#,
        ] {
            assert_ne!(shape(other), shape(r#"{"a":"x","b":[1]}"#), "{other}");
        }
    }
}
