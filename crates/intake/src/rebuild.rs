//! The bytes that go to a server. What is hashed is what is sent: a call is rebuilt from its proposal, with the canonical
//! arguments verbatim, never from the bytes received (PROFILE §3).

use lychgate_core::jcs;
use lychgate_core::json::{Object, Value};

use crate::id::RequestId;
use crate::method::ActingMethod;
use crate::proposal::Proposal;

/// The JSON-RPC line of an act, canonical, without a line end. `id` is the gate's own (at most 2^53 to be safe with
/// every reader); `extra_meta` is one key the gate adds to `_meta`, such as an idempotency key.
#[must_use]
pub fn request_bytes(id: u64, proposal: &Proposal, extra_meta: Option<(&str, Value)>) -> Vec<u8> {
    let mut meta = proposal.meta.to_object();
    if let Some((key, value)) = extra_meta {
        meta.insert(key.to_owned(), value);
    }
    let mut out = head(Some(id), proposal.method.name());
    out.reserve(proposal.canonical.len().saturating_add(512));
    out.extend_from_slice(b",\"params\":");
    if proposal.method == ActingMethod::ToolsCall {
        call_params(proposal, meta, &mut out);
    } else {
        let mut params = proposal.arguments.as_object().cloned().unwrap_or_default();
        if !meta.is_empty() {
            params.insert("_meta".to_owned(), Value::Object(meta));
        }
        if let Some(continuation) = &proposal.continuation {
            continuation.write(&mut params);
        }
        jcs::write(&Value::Object(params), &mut out);
    }
    out.push(b'}');
    out
}

/// `_meta` < `arguments` < `inputResponses` < `name` < `requestState`: canonical order.
fn call_params(proposal: &Proposal, meta: Object, out: &mut Vec<u8>) {
    out.push(b'{');
    if !meta.is_empty() {
        out.extend_from_slice(b"\"_meta\":");
        jcs::write(&Value::Object(meta), out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"arguments\":");
    out.extend_from_slice(&proposal.canonical);
    let continuation = proposal.continuation.as_ref();
    if let Some(responses) = continuation.and_then(|both| both.input_responses.as_ref()) {
        out.extend_from_slice(b",\"inputResponses\":");
        jcs::write(responses, out);
    }
    out.extend_from_slice(b",\"name\":");
    jcs::write(&Value::from(proposal.function.as_str()), out);
    if let Some(state) = continuation.and_then(|both| both.request_state.as_ref()) {
        out.extend_from_slice(b",\"requestState\":");
        jcs::write(&Value::from(state.as_str()), out);
    }
    out.push(b'}');
}

/// The line of a request that passes, re-serialised canonically, without a line end.
#[must_use]
pub fn passing_bytes(id: u64, method: &str, params: Option<&Value>) -> Vec<u8> {
    line(Some(id), method, params)
}

/// The line of a notification to a server, without a line end.
#[must_use]
pub fn notification_bytes(method: &str, params: Option<&Value>) -> Vec<u8> {
    line(None, method, params)
}

fn line(id: Option<u64>, method: &str, params: Option<&Value>) -> Vec<u8> {
    let mut out = head(id, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        jcs::write(params, &mut out);
    }
    out.push(b'}');
    out
}

/// A line up to its params: `id` < `jsonrpc` < `method` < `params`.
fn head(id: Option<u64>, method: &str) -> Vec<u8> {
    let mut out = match id {
        Some(id) => format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",\"method\":").into_bytes(),
        None => b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec(),
    };
    jcs::write(&Value::from(method), &mut out);
    out
}

/// `notifications/cancelled` for a request the gate sent under `id`.
#[must_use]
pub fn cancelled_bytes(id: u64, reason: &str) -> Vec<u8> {
    let reason = String::from_utf8_lossy(&jcs::to_bytes(&Value::from(reason))).into_owned();
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"reason\":{reason},\"requestId\":{id}}}}}"
    )
    .into_bytes()
}

/// The line that answers a server's request, canonical, without a line end.
#[must_use]
pub fn reply_bytes(id: &RequestId, outcome: Result<&Value, &Value>) -> Vec<u8> {
    let (member, value) = match outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let mut message = Object::new();
    message.insert("id".to_owned(), id.to_value());
    message.insert("jsonrpc".to_owned(), Value::from("2.0"));
    message.insert(member.to_owned(), value.clone());
    jcs::to_bytes(&Value::Object(message))
}
