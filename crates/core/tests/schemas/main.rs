//! The published schemas and the types agree: what one refuses, the other refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod draft;
#[path = "../objects/mod.rs"]
mod objects;
mod samples;

use std::collections::BTreeSet;

use lychgate_core::Code;
use serde_json::{Value, json};

use contract::{Contract, contract, contracts, places, with};

fn words(node: &Value) -> Option<BTreeSet<String>> {
    let listed = match (node.get("enum"), node.get("const")) {
        (Some(Value::Array(words)), _) => words.clone(),
        (_, Some(Value::String(word))) => vec![Value::String(word.clone())],
        _ => return None,
    };
    let word = |word: &Value| word.as_str().unwrap().to_owned();
    Some(listed.iter().map(word).collect())
}

#[test]
fn every_schema_is_one_and_every_sample_passes() {
    for contract in contracts() {
        assert!(jsonschema::meta::is_valid(&contract.schema));
        contract.both_take(&contract.full, "its full sample");
        contract.both_take(&contract.minimal, "its minimal sample");
    }
    for contract in contracts().iter().skip(1) {
        let id = format!("urn:lychgate:schema:{}:1", contract.name);
        assert_eq!(contract.schema["$id"], json!(id));
    }
}

#[test]
fn the_full_sample_has_every_member_of_the_schema_and_every_object_is_closed() {
    for contract in contracts() {
        for pointer in places(&contract.full) {
            let (node, part) = (
                contract.schema_at(&pointer),
                &contract.full.pointer(&pointer).unwrap(),
            );
            let Value::Object(members) = part else {
                continue;
            };
            let place = format!("{}{pointer}", contract.name);
            assert_eq!(node["additionalProperties"], json!(false), "{place}");
            let known: BTreeSet<_> = node["properties"].as_object().unwrap().keys().collect();
            assert_eq!(known, members.keys().collect(), "{place}");
        }
    }
}

#[test]
fn an_unknown_member_anywhere_is_refused() {
    for contract in contracts() {
        for sample in [&contract.full, &contract.minimal] {
            for pointer in places(sample) {
                let mut changed = sample.clone();
                if let Value::Object(members) = changed.pointer_mut(&pointer).unwrap() {
                    members.insert("x".to_owned(), json!(1));
                    contract.both_refuse(&changed, &format!("{pointer}/x"));
                }
            }
        }
    }
}

#[test]
fn a_required_member_is_required_and_an_optional_one_is_optional() {
    for contract in contracts() {
        for pointer in places(&contract.full).iter().skip(1) {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let mut changed = contract.full.clone();
            let holder = changed.pointer_mut(parent).unwrap();
            let Some(members) = holder.as_object_mut() else {
                continue;
            };
            members.remove(key);
            let required = contract.schema_at(parent)["required"].as_array();
            if required.is_some_and(|required| required.contains(&json!(key))) {
                contract.both_refuse(&changed, &format!("no {pointer}"));
            } else {
                contract.both_take(&changed, &format!("no {pointer}"));
            }
        }
    }
}

#[test]
fn another_spelling_of_a_word_is_refused() {
    for contract in contracts() {
        let mut tried = 0;
        for pointer in places(&contract.full) {
            let Some(words) = words(contract.schema_at(&pointer)) else {
                continue;
            };
            for word in words {
                let spellings = [
                    word.to_lowercase(),
                    word.to_uppercase(),
                    format!("{word} "),
                    word.replace('_', "-"),
                ];
                for spelling in spellings.into_iter().filter(|other| *other != word) {
                    let changed = with(&contract.full, &pointer, json!(spelling));
                    contract.both_refuse(&changed, &format!("{spelling} at {pointer}"));
                    tried += 1;
                }
            }
        }
        assert!(tried > 10, "{}: only {tried} spellings", contract.name);
    }
}

#[test]
fn schema_and_type_list_the_same_words() {
    for contract in contracts() {
        for pointer in places(&contract.full) {
            let Some(mut listed) = words(contract.schema_at(&pointer)) else {
                continue;
            };
            let changed = with(&contract.full, &pointer, json!("no such word"));
            let reason = (contract.read)(&changed).unwrap_err();
            let read: BTreeSet<String> = if reason.contains("not a decision code") {
                let numbers = Code::ALL.iter().map(|code| code.number().to_owned());
                numbers.collect()
            } else {
                let said = reason.split(" at ").next().unwrap();
                let quoted = said.split('`').skip(1).step_by(2);
                quoted.map(str::to_owned).collect()
            };
            if pointer == "/arguments_digest/canonicalization" {
                // Deliberate: the draft's schema allows what the profile does not (PROFILE §3).
                assert!(listed.remove("implementation-defined"));
            }
            assert_eq!(listed, read, "{}{pointer}: {reason}", contract.name);
        }
    }
}

#[test]
fn another_value_anywhere_is_judged_alike() {
    for contract in contracts() {
        for pointer in places(&contract.full) {
            for put in other_values(contract.full.pointer(&pointer).unwrap()) {
                let changed = with(&contract.full, &pointer, put.clone());
                let by_schema = contract.validator.is_valid(&changed);
                let by_type = (contract.read)(&changed).is_ok();
                let place = format!("{}{pointer} = {put}", contract.name);
                assert!(by_schema || !by_type, "type: {place}");
                // The act's schema is the draft's; the profile's stricter forms are the type's.
                assert!(
                    by_type || !by_schema || stricter_type(&contract, &pointer),
                    "schema: {place}"
                );
            }
        }
    }
}

fn stricter_type(contract: &Contract, pointer: &str) -> bool {
    // A schema cannot say that a list is sorted.
    let in_a_list = pointer
        .split('/')
        .any(|token| token.parse::<usize>().is_ok());
    contract.name == "candidate-act" || (contract.name == "agent-delegation" && in_a_list)
}

fn other_values(found: &Value) -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(4_294_967_296_u64),
        json!(9_007_199_254_740_992_u64),
        json!(9_007_199_254_740_994_u64),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!([found]),
        json!({ "x": found }),
    ];
    match found {
        Value::Object(members) => {
            values.push(members.values().cloned().collect());
            values.extend(members.keys().map(|key| json!({ key: null })));
        }
        Value::String(text) => {
            values.push(json!(text.to_uppercase()));
            values.push(json!(format!("{text}=")));
            values.push(json!(format!("{text}\n")));
            values.push(json!(format!(" {text}")));
            values.push(json!({ text: null }));
            // The last character of base64url has stray bits when it is moved by one.
            values.push(json!(format!("{}B", &text[..text.len() - 1])));
            values.push(json!(text.replace(".000Z", "Z")));
            values.push(json!(text.replace(".000Z", ".000+00:00")));
            values.push(json!(text.replace("00000000", "0000000")));
        }
        _ => {}
    }
    values
}

#[test]
fn an_authority_for_more_than_one_use_cannot_be_said() {
    let contract = contract("finality-authority");
    let changed = with(&contract.full, "/lifetime/single_use", json!(false));
    contract.both_refuse(&changed, "single_use: false");
}

#[test]
fn evidence_shows_only_predicates_that_hold() {
    let contract = contract("validation-evidence");
    for pointer in places(&contract.full) {
        if pointer.starts_with("/validated_predicates/") {
            contract.both_refuse(&with(&contract.full, &pointer, json!(false)), &pointer);
        }
    }
}

#[test]
fn the_types_are_read_by_no_other_schema() {
    let contracts = contracts();
    for one in &contracts {
        for other in contracts.iter().filter(|other| other.name != one.name) {
            one.both_refuse(&other.full, other.name);
        }
    }
}
