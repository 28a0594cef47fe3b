//! The published schemas and the types agree: what one refuses, the other refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod objects;

use std::collections::BTreeSet;

use jsonschema::Validator;
use lychgate_core::Code;
use lychgate_core::json::{self, Limits};
use serde_json::{Value, json};

/// A schema, its type and samples of it.
struct Contract {
    name: &'static str,
    schema: Value,
    validator: Validator,
    read: fn(&Value) -> Result<(), String>,
    full: Value,
    minimal: Value,
}

impl Contract {
    fn new<T: serde::Serialize + serde::de::DeserializeOwned>(
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

    fn both_refuse(&self, object: &Value, why: &str) {
        let name = self.name;
        assert!(!self.validator.is_valid(object), "{name} schema took {why}");
        assert!((self.read)(object).is_err(), "{name} type took {why}");
    }

    fn both_take(&self, object: &Value, why: &str) {
        let name = self.name;
        if let Err(fault) = self.validator.validate(object) {
            panic!("{name} schema refused {why}: {fault}");
        }
        if let Err(fault) = (self.read)(object) {
            panic!("{name} type refused {why}: {fault}");
        }
    }

    /// The schema of the place a pointer into a sample names.
    fn schema_at(&self, pointer: &str) -> &Value {
        let resolve = |node: &'_ Value| match node.get("$ref") {
            Some(reference) => reference.as_str().unwrap()[1..].to_owned(),
            None => String::new(),
        };
        let mut node = &self.schema;
        for token in pointer.split('/').skip(1) {
            node = &node["properties"][token];
            let reference = resolve(node);
            if !reference.is_empty() {
                node = self.schema.pointer(&reference).unwrap();
            }
        }
        node
    }
}

fn contracts() -> Vec<Contract> {
    vec![
        Contract::new(
            "candidate-act",
            include_str!("../../../schemas/candidate-act.schema.json"),
            &objects::act(),
            &objects::minimal_act(),
        ),
        Contract::new(
            "validation-evidence",
            include_str!("../../../schemas/validation-evidence.schema.json"),
            &objects::evidence(),
            &objects::minimal_evidence(),
        ),
        Contract::new(
            "finality-authority",
            include_str!("../../../schemas/finality-authority.schema.json"),
            &objects::authority(),
            &objects::minimal_authority(),
        ),
        Contract::new(
            "sink-verification",
            include_str!("../../../schemas/sink-verification.schema.json"),
            &objects::verification(),
            &objects::minimal_verification(),
        ),
        Contract::new(
            "receipt",
            include_str!("../../../schemas/receipt.schema.json"),
            &objects::receipt(),
            &objects::minimal_receipt(),
        ),
    ]
}

fn contract(name: &str) -> Contract {
    contracts()
        .into_iter()
        .find(|contract| contract.name == name)
        .unwrap()
}

/// Reads strictly and requires that what was read is written back the same: one object, one text.
fn read<T: serde::Serialize + serde::de::DeserializeOwned>(object: &Value) -> Result<(), String> {
    let parsed = json::parse(object.to_string().as_bytes(), &Limits::OBJECT)
        .map_err(|fault| fault.to_string())?;
    let typed: T = json::from_value(&parsed).map_err(|fault| fault.to_string())?;
    assert_eq!(json::to_value(&typed).unwrap(), parsed, "not written back");
    Ok(())
}

fn value<T: serde::Serialize>(object: &T) -> Value {
    serde_json::from_slice(&json::to_canonical(object).unwrap()).unwrap()
}

/// Pointers to every place of a value, the root first. No member name here needs escaping.
fn places(value: &Value) -> Vec<String> {
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

fn with(sample: &Value, pointer: &str, put: Value) -> Value {
    let mut changed = sample.clone();
    *changed.pointer_mut(pointer).unwrap() = put;
    changed
}

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
            holder.as_object_mut().unwrap().remove(key);
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
                assert!(
                    by_schema || !by_type || laxer_type(&pointer),
                    "type: {place}"
                );
                // The act's schema is the draft's; the profile's stricter forms are the type's.
                assert!(
                    by_type || !by_schema || stricter_type(&contract),
                    "schema: {place}"
                );
            }
        }
    }
}

/// A key id and a signature are any text to the type; the key that verifies decides.
fn laxer_type(pointer: &str) -> bool {
    ["/key_id", "/signature", "/approver_key"]
        .iter()
        .any(|end| pointer.ends_with(end))
}

fn stricter_type(contract: &Contract) -> bool {
    contract.name == "candidate-act"
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

/// The draft's own samples, as printed and mended (PROFILE §2).
mod the_drafts_samples {
    use super::*;

    /// §12.3's act as printed, with what it omits filled in; the id is the draft's, of twelve characters.
    fn act() -> Value {
        let runtime = value(&objects::act())["agent"]["runtime_id"].clone();
        let nonce = value(&objects::act())["freshness"]["nonce"].clone();
        let mut act = printed_act();
        let added = json!({
            "version": "1.0",
            "object_type": "agent_candidate_act",
            "created_at": "2026-08-26T17:40:00.000Z",
            "expires_at": "2026-08-26T17:40:10.000Z",
            "initiating_principal": { "principal_id": "user-1", "principal_type": "user" },
            "policy_state": { "policy_epoch": 42, "authority_epoch": 3, "revocation_epoch": 7 },
            "freshness": { "nonce": nonce },
        });
        let members = act.as_object_mut().unwrap();
        members.extend(added.as_object().unwrap().clone());
        act["agent"]["runtime_id"] = runtime;
        act
    }

    fn printed_act() -> Value {
        json!({
            "candidate_act_id": "act-7f39b8b8",
            "act_type": "TOOL_CALL",
            "agent": { "agent_id": "assistant-23", "model_id": "model-X", "delegation_depth": 0 },
            "tool": { "tool_id": "maps.search", "function_id": "nearby", "tool_protocol": "MCP" },
            "purpose": {
                "purpose_id": "nearby-service-discovery",
                "declared_purpose": "Find nearby pharmacies",
            },
            "arguments_digest": {
                "algorithm": "SHA-256",
                "value": "base64url-args-digest",
                "canonicalization": "JCS",
            },
            "destination": { "destination_id": "tool.example", "jurisdiction": "IN" },
            "consequence_class": "DATA_DISCLOSURE",
            "instruction_provenance": { "source_type": "user" },
            "finality_sink": { "sink_id": "dispatch-sink-01", "sink_type": "TOOL_DISPATCH" },
        })
    }

    #[test]
    fn an_act_that_omits_required_fields_is_refused() {
        let contract = contract("candidate-act");
        let mut printed = printed_act();
        contract.both_refuse(&printed, "the draft's act as printed");
        printed["candidate_act_id"] = contract.full["candidate_act_id"].clone();
        contract.both_refuse(&printed, "the draft's act with our id");
    }

    #[test]
    fn an_id_of_twelve_characters_is_the_one_fault_left_in_the_filled_in_act() {
        let contract = contract("candidate-act");
        let act = act();
        contract.both_refuse(&act, "an id of twelve characters");
        let faults: Vec<_> = contract
            .validator
            .iter_errors(&act)
            .map(|fault| fault.instance_path().to_string())
            .collect();
        assert_eq!(faults, ["/candidate_act_id"]);
    }

    #[test]
    fn the_mended_act_passes_and_unknown_provenance_is_absence() {
        let contract = contract("candidate-act");
        let mut act = act();
        act["candidate_act_id"] = contract.full["candidate_act_id"].clone();
        contract.both_take(&act, "the mended act");
        act["instruction_provenance"]["source_type"] = json!("UNKNOWN");
        contract.both_refuse(&act, "provenance UNKNOWN");
        act.as_object_mut()
            .unwrap()
            .remove("instruction_provenance");
        contract.both_take(&act, "no provenance");
    }

    #[test]
    fn delegation_depth_stands_under_agent_alone() {
        let contract = contract("candidate-act");
        let mut act = contract.full.clone();
        act["delegation_depth"] = json!(0);
        contract.both_refuse(&act, "delegation_depth at the top");
    }

    #[test]
    fn evidence_as_printed_lacks_what_we_sign_and_passes_once_it_has_it() {
        let contract = contract("validation-evidence");
        let mut evidence = json!({
            "version": "1.0",
            "object_type": "protected_validation_evidence",
            "evidence_id": "pve-6d6ddc91",
            "candidate_act_id": "act-7f39b8b8",
            "decision": "ALLOW",
            "validated_predicates": {
                "principal_authorized": true,
                "agent_identity_valid": true,
                "tool_scope_valid": true,
                "purpose_valid": true,
                "instruction_provenance_valid": true,
                "destination_valid": true,
                "policy_epoch_valid": true,
                "revocation_state_valid": true,
                "freshness_valid": true,
                "sink_binding_valid": true,
            },
            "protected_state": { "state_reference": "ped-state-901", "monotonic_counter": 8481 },
            "issued_at": "2026-08-26T17:40:01Z",
            "protector": {
                "type": "TEE_SIGNATURE",
                "key_id": "ped-key-12",
                "signature": "base64url-signature",
            },
        });
        contract.both_refuse(&evidence, "the draft's evidence as printed");
        let copied = ["evidence_id", "candidate_act_id", "candidate_act_digest"];
        for member in copied
            .iter()
            .chain(&["tool_definition_digest", "issued_at"])
        {
            evidence[member] = contract.full[member].clone();
        }
        for member in ["key_id", "algorithm", "signature"] {
            evidence["protector"][member] = contract.full["protector"][member].clone();
        }
        contract.both_take(&evidence, "the mended evidence");
    }

    #[test]
    fn an_authority_without_its_authority_epoch_is_refused() {
        let contract = contract("finality-authority");
        let mut authority = contract.full.clone();
        let binding = authority["binding"].as_object_mut().unwrap();
        binding.remove("authority_epoch");
        contract.both_refuse(&authority, "no authority_epoch");
        authority["binding"]["authority_epoch"] = json!(3);
        contract.both_take(&authority, "the mended authority");
    }

    #[test]
    fn the_sinks_words_are_the_drafts() {
        let contract = contract("sink-verification");
        let printed = json!({
            "authority_signature": "VALID",
            "candidate_act_binding": "MATCH",
            "tool_scope": "MATCH",
            "args_digest": "MATCH",
            "destination": "MATCH",
            "nonce": "FRESH",
            "policy_epoch": "CURRENT",
            "revocation_epoch": "CURRENT",
            "consumption_state": "UNUSED",
            "sink_binding": "MATCH",
        });
        let ours = contract.full["verification"].as_object().unwrap();
        for (check, word) in printed.as_object().unwrap() {
            assert_eq!(&ours[check], word, "{check}");
        }
        let changed = with(&contract.full, "/error/code", json!("EF_SCOPE_MISMATCH"));
        contract.both_refuse(&changed, "the draft's third form of an error's name");
    }
}

/// The objects of the keys: the same samples are read by the types in `crates/keys/tests/schemas.rs`.
mod samples {
    use super::*;

    macro_rules! sample {
        ($($name:literal),*) => { [$((
            $name,
            include_str!(concat!("../../../schemas/", $name, ".schema.json")),
            include_str!(concat!("../../../schemas/samples/", $name, ".json")),
        )),*] };
    }

    fn samples() -> Vec<(Validator, Value)> {
        let files = sample![
            "approval-verdict",
            "configuration-change",
            "reconciliation-verdict",
            "key-change",
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
                    let free = ["/challenge", "/reason"].contains(&pointer.as_str());
                    let passes = free && put == json!("x");
                    let changed = with(&sample, &pointer, put);
                    assert_eq!(validator.is_valid(&changed), passes, "{pointer}");
                }
            }
        }
    }
}
