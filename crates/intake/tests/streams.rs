//! Every malformation of a provider's stream that was seen in the field, each a file in `data/streams`, and what it
//! becomes. The right answers are written here by hand: `name arguments @id`, `refused reason`, `text words` …, joined by
//! ` | `; the flag says whether the provider ended the message and nothing broke.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use lychgate_intake::streams::Provider;
use support::{blocks, fixture, fixtures, frames, summary};

struct Row {
    provider: &'static str,
    name: &'static str,
    complete: bool,
    becomes: &'static str,
}

const fn row(
    provider: &'static str,
    name: &'static str,
    complete: bool,
    becomes: &'static str,
) -> Row {
    Row {
        provider,
        name,
        complete,
        becomes,
    }
}

#[test]
fn every_malformation_becomes_what_is_written_down() {
    let mut wrong = Vec::new();
    for row in TABLE {
        let provider: Provider = row.provider.parse().unwrap();
        let (found, complete) = blocks(provider, &[&fixture(provider, row.name)]);
        let found = summary(&found);
        if found != row.becomes || complete != row.complete {
            wrong.push(format!(
                "{}/{}\n  is     {found} ({complete})\n  not    {} ({})",
                row.provider, row.name, row.becomes, row.complete
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_has_a_row_and_every_row_a_file() {
    let mut files: Vec<(String, String)> = fixtures()
        .into_iter()
        .map(|(provider, name, _)| (provider.name().to_owned(), name))
        .collect();
    let mut rows: Vec<(String, String)> = TABLE
        .iter()
        .map(|row| (row.provider.to_owned(), row.name.to_owned()))
        .collect();
    files.sort();
    rows.sort();
    assert_eq!(files, rows);
}

#[test]
fn bedrock_says_the_same_in_binary_frames() {
    for row in TABLE.iter().filter(|row| row.provider == "bedrock") {
        let bytes = frames(&fixture(Provider::Bedrock, row.name));
        // One line with two events has no binary form.
        if row.name != "two-events-in-one" {
            let (found, complete) = blocks(Provider::Bedrock, &[&bytes]);
            assert_eq!(
                (summary(&found).as_str(), complete),
                (row.becomes, row.complete),
                "{}",
                row.name
            );
        }
    }
}

#[test]
fn parsing_one_flipped_bit_in_a_frame_ends_the_stream() {
    let good = frames(&fixture(Provider::Bedrock, "good"));
    let (whole, _) = blocks(Provider::Bedrock, &[&good]);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let (found, complete) = blocks(Provider::Bedrock, &[&bytes]);
            assert!(!complete, "byte {at}, bit {bit}");
            let acts = found.iter().filter(|block| support::is_act(block));
            assert!(acts.clone().count() < 2 || at > good.len() / 2);
            assert!(acts.into_iter().all(|act| whole.contains(act)));
        }
    }
}

const TABLE: &[Row] = &[
    row(
        "anthropic",
        "good",
        true,
        r#"text Let me look. | get_weather {"city":"Paris","unit":1} @toolu_1 | get_time {"zone":"Europe/Paris"} @toolu_2"#,
    ),
    row(
        "anthropic",
        "nothing-accumulated",
        true,
        r#"list {} @t1 | list {} @t2"#,
    ),
    row(
        "anthropic",
        "nothing-accumulated-cut-short",
        true,
        r#"refused cut_short"#,
    ),
    row(
        "anthropic",
        "truncated-json",
        true,
        r#"refused arguments_truncated"#,
    ),
    row(
        "anthropic",
        "unsealed",
        false,
        r#"text Hi | read {} @t0 | refused unsealed"#,
    ),
    row("anthropic", "glued", true, r#"refused arguments_trailing"#),
    row(
        "anthropic",
        "full-input-in-start",
        true,
        r#"read {"path":"a"} @t1"#,
    ),
    row(
        "anthropic",
        "placeholder-and-deltas",
        true,
        r#"read {"path":"a"} @t1"#,
    ),
    row(
        "anthropic",
        "start-and-deltas-disagree",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "anthropic",
        "start-and-deltas-agree",
        true,
        r#"read {"path":"a"} @t1"#,
    ),
    row(
        "anthropic",
        "cumulative-snapshots",
        true,
        r#"refused arguments_not_json"#,
    ),
    row(
        "anthropic",
        "duplicate-keys",
        true,
        r#"refused arguments_duplicate_key"#,
    ),
    row(
        "anthropic",
        "case-duplicate-keys",
        true,
        r#"refused arguments_case_duplicate_key"#,
    ),
    row(
        "anthropic",
        "trailing-comma",
        true,
        r#"refused arguments_not_json"#,
    ),
    row(
        "anthropic",
        "double-encoded",
        true,
        r#"refused arguments_not_object"#,
    ),
    row(
        "anthropic",
        "arguments-as-object",
        true,
        r#"refused arguments_not_text"#,
    ),
    row(
        "anthropic",
        "input-as-text-in-start",
        true,
        r#"refused arguments_not_object"#,
    ),
    row(
        "anthropic",
        "not-an-object",
        true,
        r#"refused arguments_not_object"#,
    ),
    row(
        "anthropic",
        "unsafe-integer",
        true,
        r#"refused arguments_number"#,
    ),
    row(
        "anthropic",
        "lone-surrogate",
        true,
        r#"refused arguments_text"#,
    ),
    row(
        "anthropic",
        "ten-thousand-deep",
        true,
        r#"refused arguments_too_deep"#,
    ),
    row(
        "anthropic",
        "index-zero-for-every-call",
        true,
        r#"refused index_repeated | refused index_repeated"#,
    ),
    row(
        "anthropic",
        "block-returned-twice",
        true,
        r#"read {"path":"a"} @t1 | refused index_repeated"#,
    ),
    row(
        "anthropic",
        "duplicate-ids",
        true,
        r#"read {"path":"a"} @t1 | refused id_repeated"#,
    ),
    row(
        "anthropic",
        "duplicate-name-ids",
        true,
        r#"read {"path":"a"} @read:3 | refused id_repeated | read {} @read:4"#,
    ),
    row("anthropic", "index-null", true, r#"refused index_missing"#),
    row(
        "anthropic",
        "index-missing",
        true,
        r#"list {} @t2 | refused index_missing"#,
    ),
    row(
        "anthropic",
        "index-missing-on-deltas",
        true,
        r#"refused index_missing"#,
    ),
    row(
        "anthropic",
        "first-index-1",
        true,
        r#"read {"path":"a"} @t1"#,
    ),
    row(
        "anthropic",
        "index-1-before-0",
        true,
        r#"read {"path":"a"} @t1 | write {"path":"b"} @t2"#,
    ),
    row(
        "anthropic",
        "interleaved",
        true,
        r#"read {"path":"a"} @t1 | write {"path":"b"} @t2"#,
    ),
    row(
        "anthropic",
        "index-changing-mid-call",
        true,
        r#"refused arguments_truncated | refused not_started"#,
    ),
    row(
        "anthropic",
        "delta-after-stop",
        true,
        r#"read {"path":"a"} @t1 | refused after_seal"#,
    ),
    row("anthropic", "name-missing", true, r#"refused name_missing"#),
    row(
        "anthropic",
        "name-unusable",
        true,
        r#"refused name_unusable"#,
    ),
    row("anthropic", "id-missing", true, r#"read {"path":"a"}"#),
    row(
        "anthropic",
        "thinking-signed",
        true,
        r#"reasoning | reasoning | read {} @t1"#,
    ),
    row(
        "anthropic",
        "server-tool-use",
        true,
        r#"provider server_tool_use web_search @srv1 | data | text Found."#,
    ),
    row(
        "anthropic",
        "unknown-block",
        true,
        r#"refused unknown_block"#,
    ),
    row(
        "anthropic",
        "order-text-text-tool-text",
        true,
        r#"text a | text b | read {} @t1 | text c"#,
    ),
    row(
        "anthropic",
        "error-mid-stream",
        false,
        r#"read {} @t1 | refused provider_error"#,
    ),
    row("anthropic", "kind-changed", true, r#"refused kind_changed"#),
    row(
        "anthropic",
        "event-duplicate-key",
        false,
        r#"refused event_duplicate_key"#,
    ),
    row(
        "anthropic",
        "unknown-event",
        false,
        r#"refused event_unknown"#,
    ),
    row(
        "anthropic",
        "event-name-disagrees",
        false,
        r#"refused sources_disagree"#,
    ),
    row("anthropic", "bom", false, r#"refused bom"#),
    row(
        "anthropic",
        "not-an-event-stream",
        false,
        r#"refused framing"#,
    ),
    row(
        "openai-chat",
        "good",
        true,
        r#"text Let me look. | get_weather {"city":"Paris"} @c1 | get_time {"zone":"CET"} @c2"#,
    ),
    row(
        "openai-chat",
        "parallel-interleaved",
        true,
        r#"read {"path":"a"} @c1 | write {"path":"b"} @c2"#,
    ),
    row(
        "openai-chat",
        "glued",
        true,
        r#"refused arguments_trailing"#,
    ),
    row(
        "openai-chat",
        "index-zero-for-every-call",
        true,
        r#"refused id_changed"#,
    ),
    row(
        "openai-chat",
        "names-glued-on-one-index",
        true,
        r#"refused name_changed"#,
    ),
    row(
        "openai-chat",
        "two-entries-one-index-one-chunk",
        true,
        r#"refused index_repeated"#,
    ),
    row(
        "openai-chat",
        "index-null",
        true,
        r#"refused index_missing"#,
    ),
    row(
        "openai-chat",
        "index-missing",
        true,
        r#"refused index_missing | refused index_missing"#,
    ),
    row(
        "openai-chat",
        "id-repeated-on-every-piece",
        true,
        r#"read {"path":"a"} @c1"#,
    ),
    row(
        "openai-chat",
        "empty-labels-on-continuations",
        true,
        r#"read {"path":"a"} @c1"#,
    ),
    row(
        "openai-chat",
        "null-labels-on-continuations",
        true,
        r#"read {"path":"a"} @c1"#,
    ),
    row(
        "openai-chat",
        "name-after-arguments",
        true,
        r#"read {"path":"a"} @c1"#,
    ),
    row(
        "openai-chat",
        "first-index-1",
        true,
        r#"read {"path":"a"} @c1"#,
    ),
    row(
        "openai-chat",
        "index-1-before-0",
        true,
        r#"read {"path":"a"} @c1 | write {"path":"b"} @c2"#,
    ),
    row(
        "openai-chat",
        "index-changing-mid-call",
        true,
        r#"refused arguments_truncated | refused arguments_trailing"#,
    ),
    row(
        "openai-chat",
        "id-on-two-indexes",
        true,
        r#"refused id_repeated | refused id_repeated"#,
    ),
    row(
        "openai-chat",
        "duplicate-ids",
        true,
        r#"refused id_repeated | refused id_repeated | list {} @c3"#,
    ),
    row(
        "openai-chat",
        "duplicate-name-ids",
        true,
        r#"refused id_repeated | refused id_repeated"#,
    ),
    row(
        "openai-chat",
        "several-whole-calls-in-one-delta",
        true,
        r#"read {"path":"a"} @c1 | write {"path":"b"} @c2"#,
    ),
    row(
        "openai-chat",
        "cumulative-snapshots",
        true,
        r#"refused arguments_not_json"#,
    ),
    row(
        "openai-chat",
        "truncated-json",
        true,
        r#"refused arguments_truncated"#,
    ),
    row("openai-chat", "cut-short", true, r#"refused cut_short"#),
    row(
        "openai-chat",
        "unsealed",
        false,
        r#"refused unsealed | refused unsealed"#,
    ),
    row(
        "openai-chat",
        "duplicate-keys",
        true,
        r#"refused arguments_duplicate_key"#,
    ),
    row(
        "openai-chat",
        "trailing-comma",
        true,
        r#"refused arguments_not_json"#,
    ),
    row(
        "openai-chat",
        "arguments-as-object",
        true,
        r#"refused arguments_not_text"#,
    ),
    row(
        "openai-chat",
        "double-encoded",
        true,
        r#"refused arguments_not_object"#,
    ),
    row(
        "openai-chat",
        "arguments-empty",
        true,
        r#"refused arguments_empty"#,
    ),
    row("openai-chat", "arguments-absent", true, r#"list {} @c1"#),
    row("openai-chat", "id-missing", true, r#"read {"path":"a"}"#),
    row(
        "openai-chat",
        "name-missing",
        true,
        r#"refused name_missing"#,
    ),
    row(
        "openai-chat",
        "piece-after-finish",
        false,
        r#"read {"path":"a"} @c1 | refused after_seal"#,
    ),
    row(
        "openai-chat",
        "finish-repeated-on-usage",
        true,
        r#"read {} @c1"#,
    ),
    row(
        "openai-chat",
        "second-choice",
        true,
        r#"read {} @c1 | refused other_candidate"#,
    ),
    row(
        "openai-chat",
        "custom-tool",
        true,
        r#"run {"input":"ls -l"} @c1 custom_tool_call"#,
    ),
    row(
        "openai-chat",
        "deprecated-function-call",
        true,
        r#"read {"path":"a"}"#,
    ),
    row(
        "openai-chat",
        "order-text-after-tool",
        true,
        r#"read {} @c1 | text after"#,
    ),
    row(
        "openai-chat",
        "reasoning-then-text",
        true,
        r#"reasoning | text Hi"#,
    ),
    row(
        "openai-chat",
        "whole-message-in-a-stream",
        false,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-chat",
        "error-mid-stream",
        false,
        r#"refused provider_error"#,
    ),
    row(
        "openai-responses",
        "good",
        true,
        r#"text Let me look. | read {"path":"a"} @call_1 | write {"path":"b"} @call_2"#,
    ),
    row(
        "openai-responses",
        "arguments-only-in-done",
        true,
        r#"read {"path":"a"} @call_1"#,
    ),
    row(
        "openai-responses",
        "arguments-only-in-item-done",
        true,
        r#"read {"path":"a"} @call_1"#,
    ),
    row(
        "openai-responses",
        "deltas-and-done-disagree",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "done-and-item-disagree",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "completed-disagrees",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "completed-has-another-name",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "completed-has-more",
        true,
        r#"read {} @call_1 | refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "completed-has-less",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "completed-without-output",
        true,
        r#"read {} @call_1"#,
    ),
    row(
        "openai-responses",
        "call-id-as-key",
        true,
        r#"read {"path":"a"} @call_1 | refused not_started"#,
    ),
    row(
        "openai-responses",
        "item-id-missing",
        true,
        r#"read {} @call_1 | refused id_missing"#,
    ),
    row(
        "openai-responses",
        "interleaved",
        true,
        r#"read {"path":"a"} @call_1 | write {"path":"b"} @call_2"#,
    ),
    row(
        "openai-responses",
        "index-1-before-0",
        true,
        r#"read {} @call_1 | write {} @call_2"#,
    ),
    row(
        "openai-responses",
        "first-index-1",
        true,
        r#"read {} @call_1"#,
    ),
    row(
        "openai-responses",
        "index-zero-for-every-call",
        true,
        r#"refused index_repeated | refused index_repeated"#,
    ),
    row(
        "openai-responses",
        "index-changing-mid-call",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "duplicate-ids",
        true,
        r#"refused id_repeated | refused id_repeated"#,
    ),
    row(
        "openai-responses",
        "block-returned-twice",
        true,
        r#"read {} @call_1"#,
    ),
    row(
        "openai-responses",
        "truncated-json",
        true,
        r#"refused arguments_truncated"#,
    ),
    row(
        "openai-responses",
        "glued",
        true,
        r#"refused arguments_trailing"#,
    ),
    row(
        "openai-responses",
        "cumulative-snapshots",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "duplicate-keys",
        true,
        r#"refused arguments_duplicate_key"#,
    ),
    row(
        "openai-responses",
        "double-encoded",
        true,
        r#"refused arguments_not_object"#,
    ),
    row(
        "openai-responses",
        "arguments-as-object",
        true,
        r#"refused arguments_not_text"#,
    ),
    row(
        "openai-responses",
        "trailing-comma",
        true,
        r#"refused arguments_not_json"#,
    ),
    row("openai-responses", "unsealed", false, r#"refused unsealed"#),
    row(
        "openai-responses",
        "not-completed",
        false,
        r#"text Hi | refused unsealed"#,
    ),
    row(
        "openai-responses",
        "incomplete",
        true,
        r#"refused cut_short"#,
    ),
    row(
        "openai-responses",
        "item-not-done",
        true,
        r#"refused unsealed"#,
    ),
    row(
        "openai-responses",
        "failed",
        false,
        r#"refused provider_error"#,
    ),
    row(
        "openai-responses",
        "other-acting-blocks",
        true,
        r#"reasoning | computer {"action":{"button":"left","type":"click","x":1,"y":2}} @call_1 computer_call | apply {"input":"*** Begin"} @call_2 custom_tool_call | local_shell {"action":{"command":["ls"],"env":{},"type":"exec"}} @call_3 local_shell_call | provider web_search_call - @ws1 | provider code_interpreter_call - @ci1 | provider mcp_call pay @mc1 | provider file_search_call - @fs1 | refused unknown_block"#,
    ),
    row(
        "openai-responses",
        "custom-input-disagrees",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "openai-responses",
        "order-text-text-tool-text",
        true,
        r#"text a | text b | read {} @call_1 | text c"#,
    ),
    row(
        "gemini",
        "good",
        true,
        r#"text Let me look. | read {"path":"a"} @g1 | write {"path":"b"} @g2"#,
    ),
    row(
        "gemini",
        "json-array",
        true,
        r#"text Hi | read {"path":"a"}"#,
    ),
    row(
        "gemini",
        "parallel-in-separate-events",
        true,
        r#"read {"path":"a"} | read {"path":"b"}"#,
    ),
    row(
        "gemini",
        "a-b-b",
        true,
        r#"read {"path":"a"} | read {"path":"b"} ambiguous"#,
    ),
    row(
        "gemini",
        "twins-without-ids",
        true,
        r#"read {"path":"a"} ambiguous"#,
    ),
    row(
        "gemini",
        "resend-returns-to-its-slot",
        true,
        r#"read {"path":"a"} ambiguous | read {"path":"b"}"#,
    ),
    row(
        "gemini",
        "twins-with-ids",
        true,
        r#"read {"path":"a"} @g1 | read {"path":"a"} @g2"#,
    ),
    row(
        "gemini",
        "block-returned-twice",
        true,
        r#"read {"path":"a"} @g1"#,
    ),
    row(
        "gemini",
        "duplicate-ids",
        true,
        r#"read {"path":"a"} @g1 | refused sources_disagree"#,
    ),
    row(
        "gemini",
        "grows-without-id",
        true,
        r#"read {"path":"a"} | read {"n":2,"path":"a"}"#,
    ),
    row(
        "gemini",
        "only-first-parallel-call-signed",
        true,
        r#"read {"path":"a"} | read {"path":"b"}"#,
    ),
    row("gemini", "args-absent", true, r#"list {}"#),
    row(
        "gemini",
        "args-as-text",
        true,
        r#"refused arguments_not_object"#,
    ),
    row(
        "gemini",
        "args-array",
        true,
        r#"refused arguments_not_object"#,
    ),
    row("gemini", "name-missing", true, r#"refused name_missing"#),
    row(
        "gemini",
        "duplicate-keys",
        false,
        r#"text Hi | refused event_duplicate_key"#,
    ),
    row("gemini", "glued-events", false, r#"refused event_not_json"#),
    row(
        "gemini",
        "order-text-text-tool-text",
        true,
        r#"text ab | read {"path":"a"} | text c"#,
    ),
    row(
        "gemini",
        "thoughts-and-signatures",
        true,
        r#"reasoning | text Hi | reasoning"#,
    ),
    row(
        "gemini",
        "provider-executes",
        true,
        r#"provider executableCode - | data"#,
    ),
    row("gemini", "unknown-part", true, r#"refused unknown_block"#),
    row(
        "gemini",
        "second-candidate",
        true,
        r#"read {"path":"a"} | refused other_candidate | text "#,
    ),
    row(
        "gemini",
        "malformed-function-call",
        true,
        r#"text Hi | refused cut_short"#,
    ),
    row(
        "gemini",
        "error-mid-stream",
        false,
        r#"read {"path":"a"} | refused provider_error"#,
    ),
    row(
        "gemini",
        "partial-args",
        true,
        r#"pay {"lines":[{"amount":5,"n":null}],"ok":true,"to":"bob"}"#,
    ),
    row(
        "gemini",
        "partial-args-unsealed",
        false,
        r#"refused unsealed"#,
    ),
    row(
        "gemini",
        "partial-args-cut-short",
        true,
        r#"refused cut_short"#,
    ),
    row(
        "gemini",
        "partial-args-path-twice",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "gemini",
        "partial-args-text-never-ends",
        true,
        r#"refused arguments_truncated"#,
    ),
    row(
        "gemini",
        "partial-args-wild-path",
        true,
        r#"refused arguments_path"#,
    ),
    row(
        "gemini",
        "partial-args-gap",
        true,
        r#"refused arguments_path"#,
    ),
    row(
        "gemini",
        "partial-args-beside-args",
        true,
        r#"refused sources_disagree"#,
    ),
    row(
        "gemini",
        "partial-args-another-begins",
        true,
        r#"refused unsealed | read {"path":"a"}"#,
    ),
    row(
        "bedrock",
        "good",
        true,
        r#"text Let me look. | read {"path":"a"} @tu1 | write {"path":"b"} @tu2"#,
    ),
    row(
        "bedrock",
        "text-without-start-then-tool-then-text",
        true,
        r#"text a | text b | read {} @tu1 | text c"#,
    ),
    row(
        "bedrock",
        "without-any-index",
        true,
        r#"text a | read {"path":"a"} @tu1 | text c"#,
    ),
    row(
        "bedrock",
        "index-only-on-start",
        true,
        r#"read {"path":"a"} @tu1 | write {} @tu2"#,
    ),
    row(
        "bedrock",
        "interleaved",
        true,
        r#"read {"path":"a"} @tu1 | write {"path":"b"} @tu2"#,
    ),
    row(
        "bedrock",
        "interleaved-without-index",
        true,
        r#"refused index_missing | refused index_missing"#,
    ),
    row(
        "bedrock",
        "text-after-tool-stop-without-index",
        true,
        r#"read {} @tu1 | text c"#,
    ),
    row(
        "bedrock",
        "index-zero-for-every-call",
        true,
        r#"read {} @tu1 | refused index_repeated"#,
    ),
    row("bedrock", "first-index-1", true, r#"read {} @tu1"#),
    row(
        "bedrock",
        "index-1-before-0",
        true,
        r#"read {} @tu1 | write {} @tu2"#,
    ),
    row("bedrock", "index-null", true, r#"read {} @tu1"#),
    row(
        "bedrock",
        "index-changing-mid-call",
        true,
        r#"refused arguments_truncated | refused not_started"#,
    ),
    row("bedrock", "nothing-accumulated", true, r#"list {} @tu1"#),
    row(
        "bedrock",
        "nothing-accumulated-cut-short",
        true,
        r#"refused cut_short"#,
    ),
    row(
        "bedrock",
        "placeholder-and-deltas",
        true,
        r#"read {"path":"a"} @tu1"#,
    ),
    row(
        "bedrock",
        "full-input-in-start",
        true,
        r#"read {"path":"a"} @tu1"#,
    ),
    row(
        "bedrock",
        "truncated-json",
        true,
        r#"refused arguments_truncated"#,
    ),
    row("bedrock", "glued", true, r#"refused arguments_trailing"#),
    row(
        "bedrock",
        "cumulative-snapshots",
        true,
        r#"refused arguments_not_json"#,
    ),
    row(
        "bedrock",
        "duplicate-keys",
        true,
        r#"refused arguments_duplicate_key"#,
    ),
    row(
        "bedrock",
        "trailing-comma",
        true,
        r#"refused arguments_not_json"#,
    ),
    row(
        "bedrock",
        "double-encoded",
        true,
        r#"refused arguments_not_object"#,
    ),
    row(
        "bedrock",
        "arguments-as-object",
        true,
        r#"refused arguments_not_text"#,
    ),
    row(
        "bedrock",
        "duplicate-ids",
        true,
        r#"read {"path":"a"} @tu1 | refused id_repeated"#,
    ),
    row(
        "bedrock",
        "block-returned-twice",
        true,
        r#"read {} @tu1 | refused after_seal"#,
    ),
    row(
        "bedrock",
        "unsealed",
        false,
        r#"text Hi | refused unsealed"#,
    ),
    row("bedrock", "name-missing", true, r#"refused name_missing"#),
    row(
        "bedrock",
        "delta-without-start",
        true,
        r#"refused not_started"#,
    ),
    row(
        "bedrock",
        "reasoning-signed",
        true,
        r#"reasoning | read {} @tu1"#,
    ),
    row(
        "bedrock",
        "server-tool-use",
        true,
        r#"provider server_tool_use web @s1 | data"#,
    ),
    row(
        "bedrock",
        "exception-in-band",
        false,
        r#"refused provider_error"#,
    ),
    row(
        "bedrock",
        "two-events-in-one",
        false,
        r#"refused event_unknown"#,
    ),
];
