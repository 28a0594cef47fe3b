//! The objects of the keys: the same samples are read by the types in `crates/keys/tests/schemas.rs`.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::contract::{places, with};

macro_rules! sample {
    ($($name:literal),*) => { [$((
        $name,
        include_str!(concat!("../../../../schemas/", $name, ".schema.json")),
        include_str!(concat!("../../../../schemas/samples/", $name, ".json")),
    )),*] };
}

fn samples() -> Vec<(Validator, Value)> {
    let files = sample![
        "approval-verdict",
        "configuration-change",
        "reconciliation-verdict",
        "key-change",
        "anchor-verdict",
        "prune-verdict",
        "approver-change",
        "consent-grant",
        "restoration-verdict",
        "trust-bundle"
    ];
    let pair = |(name, schema, sample): (&str, &str, &str)| {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let id = format!("urn:lychgate:schema:{name}:1");
        assert_eq!(schema["$id"], json!(id));
        let sample: Value = serde_json::from_str(sample).unwrap();
        assert_eq!(sample["object_type"], json!(name.replace('-', "_")));
        let options = jsonschema::options();
        (
            options
                .should_validate_formats(true)
                .build(&schema)
                .unwrap(),
            sample,
        )
    };
    files.into_iter().map(pair).collect()
}

#[test]
fn a_sample_passes_and_an_unknown_or_missing_member_does_not() {
    for (validator, sample) in samples() {
        validator.validate(&sample).unwrap();
        for pointer in places(&sample) {
            let mut more = sample.clone();
            if let Value::Object(members) = more.pointer_mut(&pointer).unwrap() {
                members.insert("x".to_owned(), json!(1));
                assert!(!validator.is_valid(&more), "{pointer}/x");
            }
            let Some((parent, key)) = pointer.rsplit_once('/') else {
                continue;
            };
            let mut less = sample.clone();
            if let Value::Object(members) = less.pointer_mut(parent).unwrap() {
                members.remove(key);
                let optional = ["from", "retired_at"].contains(&key);
                assert_eq!(validator.is_valid(&less), optional, "no {pointer}");
            }
        }
    }
}

#[test]
fn no_other_value_of_another_kind_passes() {
    for (validator, sample) in samples() {
        for pointer in places(&sample) {
            for put in [
                json!(null),
                json!(1),
                json!(""),
                json!("x"),
                json!({}),
                json!([[]]),
            ] {
                let free = [
                    "/challenge",
                    "/reason",
                    "/terms/principal_id",
                    "/terms/agent_id",
                ]
                .contains(&pointer.as_str());
                let passes = free && put == json!("x");
                let changed = with(&sample, &pointer, put);
                assert_eq!(validator.is_valid(&changed), passes, "{pointer}");
            }
        }
    }
}
