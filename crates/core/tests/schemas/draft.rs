//! The draft's own samples, as printed and mended (PROFILE §2).

use serde_json::{Value, json};

use crate::contract::{contract, value, with};
use crate::objects;

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
