//! What a client is told: denials and markers of our own, and a server's results spliced in byte-true.

use std::borrow::Cow;

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{Number, Object, Value};
use lychgate_core::{Code, State, display, jcs};

use crate::client::ClientFault;
use crate::envelope::{self, Envelope, scan};
use crate::id::RequestId;
use crate::meta::Era;
use crate::method::ActingMethod;
use crate::server::DEPTH;

/// Our `_meta` key: it holds the decision object. A server's own use of it is cut out ([`without_decision`]).
pub const DECISION_KEY: &str = "dev.lychgate/decision";

/// A denial as a client may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The decision code.
    pub code: Code,
    /// The JSON pointer at fault; shown only where the code may name one.
    pub pointer: Option<String>,
    /// The act, once it has an id.
    pub act: Option<ActId>,
    /// The ticket it waits on.
    pub ticket: Option<TicketId>,
    /// Where the act stands.
    pub state: Option<State>,
}

impl Denial {
    /// A denial with nothing but its code.
    #[must_use]
    pub const fn new(code: Code) -> Self {
        Self {
            code,
            pointer: None,
            act: None,
            ticket: None,
            state: None,
        }
    }

    fn pointer(&self) -> Option<String> {
        let pointer = self.pointer.as_deref()?;
        //= PROFILE §6: only EF-001 and EF-012 may name the JSON pointer at fault
        (self.code.may_name_pointer() && !pointer.is_empty())
            .then(|| display::escape_within(pointer, LONGEST_POINTER))
    }

    /// The decision object of `_meta`.
    #[must_use]
    pub fn decision(&self) -> Value {
        let mut object = Object::new();
        let mut put = |key: &str, text: Option<String>| {
            if let Some(text) = text {
                object.insert(key.to_owned(), Value::String(text));
            }
        };
        put("code", Some(self.code.number().to_owned()));
        put("name", Some(self.code.name().to_owned()));
        put("act_id", self.act.map(|act| act.to_string()));
        put("ticket_id", self.ticket.map(|ticket| ticket.to_string()));
        put("state", self.state.map(|state| state.name().to_owned()));
        put("pointer", self.pointer());
        object.insert("retryable".to_owned(), Value::Bool(self.code.retryable()));
        Value::Object(object)
    }

    //= PROFILE §6: constant per code; a pointer for EF-001 and EF-012; an open outcome names its act
    /// The constant sentence of the code; every id beside it is in the decision object.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}", self.code, self.code.text());
        if let Some(pointer) = self.pointer() {
            text.push_str(&format!(" (at {pointer})"));
        }
        if let (Code::TwinUnresolved, Some(act)) = (self.code, self.act) {
            text.push_str(&format!(" ({act})"));
        }
        text
    }
}

//= PROFILE §6: on MCP, a denial is a tool result with isError, a constant text and the decision object in _meta
/// The answer that denies a `tools/call`.
#[must_use]
pub fn denial_result(id: &RequestId, denial: &Denial, era: Era) -> Vec<u8> {
    tool_result(id, &denial.text(), denial.decision(), era)
}

/// The answer that denies an act of any method: a tool result for `tools/call`, else an error.
#[must_use]
pub fn denial_answer(id: &RequestId, method: &ActingMethod, denial: &Denial, era: Era) -> Vec<u8> {
    if method.answers_with_tool_result() {
        denial_result(id, denial, era)
    } else {
        denial_error(Some(id), denial)
    }
}

/// The JSON-RPC error line that denies a request, without a line end. Without an id (`null`) only what cannot be read
/// is answered.
#[must_use]
pub fn denial_error(id: Option<&RequestId>, denial: &Denial) -> Vec<u8> {
    let id = id.map_or_else(|| b"null".to_vec(), RequestId::to_json);
    line(&id, Err(&jcs::to_bytes(&error_object(denial))))
}

/// The JSON-RPC error object of a denial: the constant sentence of its code, and the decision object as `data`.
#[must_use]
pub fn error_object(denial: &Denial) -> Value {
    error(denial.code, &denial.text(), denial.decision())
}

/// The answer to a message that is not taken, with the denial that was recorded for it; `None` when nobody can be
/// answered. The place at fault is named as long as the denial is for that fault.
#[must_use]
pub fn fault_answer(fault: &ClientFault, denial: &Denial) -> Option<Vec<u8>> {
    let id = fault.id.as_ref()?;
    let mut denial = denial.clone();
    if denial.code == fault.code {
        denial.pointer = Some(fault.pointer.clone());
    }
    Some(match &fault.method {
        Some(method) => denial_answer(id, method, &denial, fault.era),
        None => denial_error(Some(id), &denial),
    })
}

/// The decision object of an act whose outcome is unknown: for [`mark_result`] and [`indeterminate_result`].
#[must_use]
pub fn indeterminate_decision(act: &ActId) -> Value {
    let mut object = Object::new();
    object.insert("act_id".to_owned(), Value::String(act.to_string()));
    object.insert("retryable".to_owned(), Value::Bool(false));
    object.insert("state".to_owned(), Value::from(State::Indeterminate.name()));
    object.insert("text".to_owned(), Value::String(indeterminate_text(act)));
    Value::Object(object)
}

/// The answer to a `tools/call` whose outcome is unknown and which left no text of the tool's to pass on.
#[must_use]
pub fn indeterminate_result(id: &RequestId, act: &ActId, era: Era) -> Vec<u8> {
    tool_result(
        id,
        &indeterminate_text(act),
        indeterminate_decision(act),
        era,
    )
}

/// The same for an act of any method.
#[must_use]
pub fn indeterminate_answer(
    id: &RequestId,
    method: &ActingMethod,
    act: &ActId,
    era: Era,
) -> Vec<u8> {
    if method.answers_with_tool_result() {
        indeterminate_result(id, act, era)
    } else {
        let body = error(
            Code::TwinUnresolved,
            &indeterminate_text(act),
            indeterminate_decision(act),
        );
        response_bytes(id, Err(&jcs::to_bytes(&body)))
    }
}

//= PROFILE §6: an indeterminate outcome tells: unknown, do not repeat, reconciliation is under way, act id
fn indeterminate_text(act: &ActId) -> String {
    format!(
        "The outcome of this act is unknown. Do not repeat it; reconciliation is under way. ({act})"
    )
}

/// The raw result for a call that repeats one whose answer was lost and which was found to have taken effect: it is not
/// made a second time. `is_error` where a client would miss the tool's structured content in any other result.
#[must_use]
pub fn found_result(act: &ActId, is_error: bool) -> Vec<u8> {
    let text = format!(
        "This call was not made again: an equal one took effect before, and its answer is lost. Call again only if it is to happen once more. ({act})"
    );
    let mut decision = Object::new();
    decision.insert("act_id".to_owned(), Value::String(act.to_string()));
    decision.insert("retryable".to_owned(), Value::Bool(false));
    let state = State::ReconciledEffect.name();
    decision.insert("state".to_owned(), Value::from(state));
    decision.insert("text".to_owned(), Value::from(text.as_str()));
    jcs::to_bytes(&result_of(&text, Value::Object(decision), is_error))
}

/// The JSON-RPC error number of a code: 1000 and the number, outside the reserved range (PROFILE §6).
#[must_use]
pub fn error_code(code: Code) -> i32 {
    let number = code.number().trim_start_matches("EF-").parse::<i32>();
    1000 + number.unwrap_or_default()
}

fn error(code: Code, message: &str, data: Value) -> Value {
    let mut body = Object::new();
    body.insert(
        "code".to_owned(),
        Number::from_i64(i64::from(error_code(code))).map_or(Value::Null, Value::Number),
    );
    body.insert("message".to_owned(), Value::from(message));
    body.insert("data".to_owned(), data);
    Value::Object(body)
}

fn tool_result(id: &RequestId, text: &str, decision: Value, era: Era) -> Vec<u8> {
    let mut result = result_of(text, decision, true);
    if let (Era::Modern, Some(result)) = (era, result.as_object_mut()) {
        result.insert("resultType".to_owned(), Value::from("complete"));
    }
    response_bytes(id, Ok(&jcs::to_bytes(&result)))
}

fn result_of(text: &str, decision: Value, is_error: bool) -> Value {
    let mut part = Object::new();
    part.insert("type".to_owned(), Value::from("text"));
    part.insert("text".to_owned(), Value::from(text));
    let mut meta = Object::new();
    meta.insert(DECISION_KEY.to_owned(), decision);
    let mut result = Object::new();
    result.insert("_meta".to_owned(), Value::Object(meta));
    result.insert(
        "content".to_owned(),
        Value::Array(vec![Value::Object(part)]),
    );
    result.insert("isError".to_owned(), Value::Bool(is_error));
    Value::Object(result)
}

/// A response line to a client: its own id, and a raw result or error exactly as given, without a line end.
#[must_use]
pub fn response_bytes(id: &RequestId, raw: Result<&[u8], &[u8]>) -> Vec<u8> {
    line(&id.to_json(), raw)
}

fn line(id: &[u8], raw: Result<&[u8], &[u8]>) -> Vec<u8> {
    let (member, raw) = match raw {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let mut out = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    out.reserve(raw.len().saturating_add(300));
    out.extend_from_slice(id);
    out.extend_from_slice(b",\"");
    out.extend_from_slice(member.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(raw);
    out.push(b'}');
    out
}

/// A message of the server that passes to the client under the same id or none: request or notification.
#[must_use]
pub fn forward_bytes(id: Option<&RequestId>, method: &str, raw_params: Option<&[u8]>) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\"".to_vec();
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(&id.to_json());
    }
    out.extend_from_slice(b",\"method\":");
    jcs::write(&Value::from(method), &mut out);
    if let Some(params) = raw_params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out
}

/// The raw params of a server's notification with the subscription it belongs to told in the client's id: on stdio a
/// server tags them with the id of the `subscriptions/listen` request, which was the gate's (2026-07-28). Every other
/// byte of the members stays; params without a tag come back as they are.
///
/// `None` when the params or their `_meta` are no objects with unique keys, or no open subscription has that id.
#[must_use]
pub fn retag_subscription<'p>(
    raw_params: &'p [u8],
    client_id: impl Fn(&RequestId) -> Option<RequestId>,
) -> Option<Cow<'p, [u8]>> {
    let params = scan(raw_params, DEPTH).ok()?;
    let Some(raw_meta) = params.get("_meta") else {
        return Some(Cow::Borrowed(raw_params));
    };
    let meta = scan(raw_meta, DEPTH).ok()?;
    let Some(tag) = meta.get(SUBSCRIPTION_ID) else {
        return Some(Cow::Borrowed(raw_params));
    };
    let tag = client_id(&RequestId::from_raw(tag)?)?.to_json();
    let meta = replace(&meta, SUBSCRIPTION_ID, &tag);
    Some(Cow::Owned(replace(&params, "_meta", &meta)))
}

/// The members as they were, one of them with another value.
fn replace(object: &Envelope<'_>, key: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = vec![b'{'];
    for member in object.members() {
        put_member(
            &mut out,
            member.raw_key,
            if member.key == key { raw } else { member.raw },
        );
    }
    out.push(b'}');
    out
}

/// Adds our decision object to a result that is passed on; every other byte of the result's members stays. What the
/// server itself wrote under our key is replaced.
///
/// `None` when the result is no object with unique keys, or its `_meta` is none: then answer without it.
#[must_use]
pub fn mark_result(raw_result: &[u8], decision: &Value) -> Option<Vec<u8>> {
    let result = scan(raw_result, DEPTH).ok()?;
    let mut decision_bytes = Vec::new();
    jcs::write(&Value::from(DECISION_KEY), &mut decision_bytes);
    decision_bytes.push(b':');
    jcs::write(decision, &mut decision_bytes);
    rewrite(&result, Some(&decision_bytes))
}

/// The result without anything under our key: a server must not be able to speak as the gate. Borrowed, and so
/// byte-true, when there is nothing to cut.
///
/// `None` as for [`mark_result`], except that a result without `_meta` is always passed.
#[must_use]
pub fn without_decision(raw_result: &[u8]) -> Option<Cow<'_, [u8]>> {
    if envelope::first(raw_result) != Some(b'{') {
        // Not an object: nothing in it is `_meta`.
        return Some(Cow::Borrowed(raw_result));
    }
    let result = scan(raw_result, DEPTH).ok()?;
    let Some(meta) = result.get("_meta") else {
        return Some(Cow::Borrowed(raw_result));
    };
    let meta = scan(meta, DEPTH).ok()?;
    if meta.members().iter().all(|member| !is_ours(&member.key)) {
        return Some(Cow::Borrowed(raw_result));
    }
    rewrite(&result, None).map(Cow::Owned)
}

/// The result's members as they were, `_meta` without our key and with `addition` first.
fn rewrite(result: &Envelope<'_>, addition: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut meta = vec![b'{'];
    meta.extend_from_slice(addition.unwrap_or_default());
    if let Some(raw) = result.get("_meta") {
        for member in scan(raw, DEPTH).ok()?.members() {
            if !is_ours(&member.key) {
                put_member(&mut meta, member.raw_key, member.raw);
            }
        }
    }
    meta.push(b'}');
    let mut out = vec![b'{'];
    put_member(&mut out, b"\"_meta\"", &meta);
    for member in result
        .members()
        .iter()
        .filter(|member| member.key != "_meta")
    {
        put_member(&mut out, member.raw_key, member.raw);
    }
    out.push(b'}');
    Some(out)
}

fn is_ours(key: &str) -> bool {
    key.eq_ignore_ascii_case(DECISION_KEY)
}

pub(crate) fn put_member(out: &mut Vec<u8>, raw_key: &[u8], raw: &[u8]) {
    if out.len() > 1 {
        out.push(b',');
    }
    out.extend_from_slice(raw_key);
    out.push(b':');
    out.extend_from_slice(raw);
}

/// Which subscription a notification belongs to.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// How many characters of a pointer a client is told.
const LONGEST_POINTER: usize = 160;
