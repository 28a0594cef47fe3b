//! The Cedar schema that the rules are validated against: what a policy may name, and nothing else.

use std::str::FromStr as _;

use cedar_policy::{EntityId, EntityTypeName, EntityUid, Schema};
use lychgate_core::ConsequenceClass;
use lychgate_core::act::SourceType;
use serde_json::{Value, json};

use crate::reach::Scope;

/// The schema: classes as actions, destinations as resources, and what the gate knows of an act as context. Provenance
/// and places are enumerated, so that a policy cannot misspell one and match nothing.
pub(super) fn schema() -> Result<Schema, String> {
    let applies = json!({
        "principalTypes": ["Principal"],
        "resourceTypes": ["Destination"],
        "context": record(&[
            ("source", entity("Source")),
            ("vouched", truth()),
            ("irreversible", truth()),
            ("program", truth()),
            ("recipient_known", truth()),
        ]),
    });
    let actions = ConsequenceClass::ALL
        .iter()
        .map(|class| (class.name().to_owned(), json!({ "appliesTo": applies })));
    let sources = SourceType::ALL.map(|source| source_word(Some(source)));
    let sources = sources.iter().copied().chain([source_word(None)]);
    let whole = json!({ "": {
        "entityTypes": {
            "Principal": {},
            "Source": { "enum": sources.collect::<Vec<_>>() },
            "Scope": { "enum": SCOPES },
            "Destination": { "shape": record(&[
                ("scope", entity("Scope")),
                ("recoverable", truth()),
                ("metadata", truth()),
            ]) },
        },
        "actions": actions.collect::<serde_json::Map<_, _>>(),
    } });
    Schema::from_json_value(whole).map_err(|fault| fault.to_string())
}

/// An entity by its type and id.
pub(super) fn uid(kind: &str, id: &str) -> Result<EntityUid, String> {
    let kind = EntityTypeName::from_str(kind).map_err(|fault| fault.to_string())?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

/// Where an instruction came from, as policies name it.
pub(super) const fn source_word(source: Option<SourceType>) -> &'static str {
    match source {
        //= PROFILE §2: an absent provenance is UNKNOWN
        None => "unknown",
        Some(SourceType::User) => "user",
        Some(SourceType::System) => "system",
        Some(SourceType::Developer) => "developer",
        Some(SourceType::Tool) => "tool",
        Some(SourceType::Retrieval) => "retrieval",
        Some(SourceType::Memory) => "memory",
        Some(SourceType::Agent) => "agent",
    }
}

/// Where an act leads, as policies name it.
pub(super) const fn scope_word(scope: &Scope) -> &'static str {
    match scope {
        Scope::InRoot { .. } => "root",
        Scope::OutsideRoots => "outside",
        Scope::Forbidden => "forbidden",
        Scope::External { .. } => "external",
        Scope::Fixed => "fixed",
        Scope::LocalOther => "local",
    }
}

fn record(attributes: &[(&str, Value)]) -> Value {
    let attributes = attributes
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), kind.clone()));
    json!({ "type": "Record", "attributes": attributes.collect::<serde_json::Map<_, _>>() })
}

fn entity(name: &str) -> Value {
    json!({ "type": "Entity", "name": name })
}

fn truth() -> Value {
    json!({ "type": "Boolean" })
}

/// Every word of [`scope_word`].
const SCOPES: [&str; 6] = ["root", "outside", "forbidden", "external", "fixed", "local"];
