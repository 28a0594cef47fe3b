//! A schema and its type, side by side.

use jsonschema::Validator;
use lychgate_core::json::{self, Limits};
use serde_json::Value;

use crate::objects;

/// A schema, its type and samples of it.
pub(crate) struct Contract {
    pub(crate) name: &'static str,
    pub(crate) schema: Value,
    pub(crate) validator: Validator,
    pub(crate) read: fn(&Value) -> Result<(), String>,
    pub(crate) full: Value,
    pub(crate) minimal: Value,
}

impl Contract {
    pub(crate) fn new<T: serde::Serialize + serde::de::DeserializeOwned>(
        name: &'static str,
        schema: &str,
        full: &T,
        minimal: &T,
    ) -> Self {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        Self {
            name,
            schema,
            validator,
            read: read::<T>,
            full: value(full),
            minimal: value(minimal),
        }
    }

    pub(crate) fn both_refuse(&self, object: &Value, why: &str) {
        let name = self.name;
        assert!(!self.validator.is_valid(object), "{name} schema took {why}");
        assert!((self.read)(object).is_err(), "{name} type took {why}");
    }

    pub(crate) fn both_take(&self, object: &Value, why: &str) {
        let name = self.name;
        if let Err(fault) = self.validator.validate(object) {
            panic!("{name} schema refused {why}: {fault}");
        }
        if let Err(fault) = (self.read)(object) {
            panic!("{name} type refused {why}: {fault}");
        }
    }

    /// The schema of the place a pointer into a sample names.
    pub(crate) fn schema_at(&self, pointer: &str) -> &Value {
        let resolve = |node: &'_ Value| match node.get("$ref") {
            Some(reference) => reference.as_str().unwrap()[1..].to_owned(),
            None => String::new(),
        };
        let mut node = &self.schema;
        for token in pointer.split('/').skip(1) {
            node = match token.parse::<usize>() {
                Ok(_) => &node["items"],
                Err(_) => &node["properties"][token],
            };
            let reference = resolve(node);
            if !reference.is_empty() {
                node = self.schema.pointer(&reference).unwrap();
            }
        }
        node
    }
}

pub(crate) fn contracts() -> Vec<Contract> {
    vec![
        Contract::new(
            "candidate-act",
            include_str!("../../../../schemas/candidate-act.schema.json"),
            &objects::act(),
            &objects::minimal_act(),
        ),
        Contract::new(
            "validation-evidence",
            include_str!("../../../../schemas/validation-evidence.schema.json"),
            &objects::evidence(),
            &objects::minimal_evidence(),
        ),
        Contract::new(
            "finality-authority",
            include_str!("../../../../schemas/finality-authority.schema.json"),
            &objects::authority(),
            &objects::minimal_authority(),
        ),
        Contract::new(
            "agent-delegation",
            include_str!("../../../../schemas/agent-delegation.schema.json"),
            &objects::delegation(),
            &objects::minimal_delegation(),
        ),
        Contract::new(
            "sink-verification",
            include_str!("../../../../schemas/sink-verification.schema.json"),
            &objects::verification(),
            &objects::minimal_verification(),
        ),
        Contract::new(
            "receipt",
            include_str!("../../../../schemas/receipt.schema.json"),
            &objects::receipt(),
            &objects::minimal_receipt(),
        ),
    ]
}

pub(crate) fn contract(name: &str) -> Contract {
    contracts()
        .into_iter()
        .find(|contract| contract.name == name)
        .unwrap()
}

/// Reads strictly and requires that what was read is written back the same: one object, one text.
pub(crate) fn read<T: serde::Serialize + serde::de::DeserializeOwned>(
    object: &Value,
) -> Result<(), String> {
    let parsed = json::parse(object.to_string().as_bytes(), &Limits::OBJECT)
        .map_err(|fault| fault.to_string())?;
    let typed: T = json::from_value(&parsed).map_err(|fault| fault.to_string())?;
    assert_eq!(json::to_value(&typed).unwrap(), parsed, "not written back");
    Ok(())
}

pub(crate) fn value<T: serde::Serialize>(object: &T) -> Value {
    serde_json::from_slice(&json::to_canonical(object).unwrap()).unwrap()
}

/// Pointers to every place of a value, the root first. No member name here needs escaping.
pub(crate) fn places(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let below: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| (key.clone(), member))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, item)| (at.to_string(), item))
            .collect(),
        _ => Vec::new(),
    };
    for (token, value) in below {
        found.extend(
            places(value)
                .into_iter()
                .map(|pointer| format!("/{token}{pointer}")),
        );
    }
    found
}

pub(crate) fn with(sample: &Value, pointer: &str, put: Value) -> Value {
    let mut changed = sample.clone();
    *changed.pointer_mut(pointer).unwrap() = put;
    changed
}
