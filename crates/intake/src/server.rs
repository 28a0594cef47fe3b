//! What a server sends, by raw spans: a `result` travels on byte-true (PROFILE §3).

use lychgate_core::json::{CaseRule, Limits, Value, parse};

use crate::envelope::{self, Envelope, Fault, FaultKind, items, scan};
use crate::id::RequestId;

/// One message of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromServer<'a> {
    /// Answers a request of the gate.
    Response {
        /// The gate's id; `None` only on an error whose server could not read the id.
        id: Option<RequestId>,
        /// The raw `result`, or the raw `error`; whatever JSON the server wrote there.
        result: Result<&'a [u8], &'a [u8]>,
    },
    /// Asks the client something (before 2026-07-28); see [`crate::method::from_server_kind`].
    Request {
        /// The server's id: another space than the gate's.
        id: RequestId,
        /// As the server spelled it.
        method: String,
        /// The raw params, an object.
        params: Option<&'a [u8]>,
    },
    /// Tells something.
    Notification {
        /// As the server spelled it.
        method: String,
        /// The raw params, an object.
        params: Option<&'a [u8]>,
    },
    /// A batch, split; never nested.
    Batch(Vec<Result<FromServer<'a>, Fault>>),
}

/// Reads one message. Members the specification does not know are ignored; what is contradictory is refused.
///
/// # Errors
/// Not well-formed, deeper than [`DEPTH`], doubled envelope keys, not JSON-RPC 2.0, both or neither of `result` and
/// `error`, an id that is none; a batch that is empty or has more than [`LARGEST_BATCH`] elements.
pub fn from_server(bytes: &[u8]) -> Result<FromServer<'_>, Fault> {
    if envelope::first(bytes) != Some(b'[') {
        return single(bytes);
    }
    let elements = items(bytes, DEPTH + 1, LARGEST_BATCH)?;
    if elements.is_empty() {
        return Err(Fault::shape("empty batch"));
    }
    Ok(FromServer::Batch(
        elements.into_iter().map(single).collect(),
    ))
}

fn single(bytes: &[u8]) -> Result<FromServer<'_>, Fault> {
    // Only white space can hold a raw CR. A client that ends lines at CR would read one message as several, and a
    // server could speak to it as the gate.
    if let Some(offset) = bytes.iter().position(|byte| *byte == b'\r') {
        let kind = FaultKind::Shape("carriage return inside a line");
        return Err(Fault { offset, kind });
    }
    let message = scan(bytes, DEPTH)?;
    if text(message.get("jsonrpc")).as_deref() != Some("2.0") {
        return Err(Fault::shape("not json-rpc 2.0"));
    }
    if message.get("method").is_some() {
        call(&message)
    } else {
        response(&message)
    }
}

fn call<'a>(message: &Envelope<'a>) -> Result<FromServer<'a>, Fault> {
    if message.get("result").is_some() || message.get("error").is_some() {
        return Err(Fault::shape("both a request and an answer"));
    }
    let method = text(message.get("method"))
        .filter(|method| !method.is_empty())
        .ok_or(Fault::shape("method is no short text"))?;
    let params = message.get("params");
    if params.is_some_and(|params| params.first() != Some(&b'{')) {
        return Err(Fault::shape("params are no object"));
    }
    match message.get("id") {
        None => Ok(FromServer::Notification { method, params }),
        Some(raw) => {
            let id = RequestId::from_raw(raw).ok_or(Fault::shape("id is none"))?;
            Ok(FromServer::Request { id, method, params })
        }
    }
}

fn response<'a>(message: &Envelope<'a>) -> Result<FromServer<'a>, Fault> {
    let result = match (message.get("result"), message.get("error")) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(error),
        _ => return Err(Fault::shape("not exactly one of result and error")),
    };
    let id = match message.get("id") {
        None | Some(b"null") if result.is_err() => None,
        Some(raw) => Some(RequestId::from_raw(raw).ok_or(Fault::shape("id is none"))?),
        None => return Err(Fault::shape("id is missing")),
    };
    Ok(FromServer::Response { id, result })
}

/// What a result says of itself. Claims of the server: they choose how its bytes are told on, and decide nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultFacts {
    /// `isError: true`
    pub is_error: bool,
    /// `resultType`
    pub kind: ResultKind,
}

/// `resultType`; absent means complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// The call is over.
    Complete,
    /// A multi-round call that has not acted yet.
    InputRequired,
    /// A task was made: dispatched, not complete.
    Task,
    /// An extension's word, or no word at all: not known to be complete.
    Other,
}

/// Reads the facts of a raw result.
///
/// # Errors
/// When the result is no object with unique keys, or `isError` is no truth value.
pub fn result_facts(raw_result: &[u8]) -> Result<ResultFacts, Fault> {
    let result = scan(raw_result, DEPTH)?;
    let is_error = match result.get("isError") {
        None | Some(b"false") => false,
        Some(b"true") => true,
        Some(_) => return Err(Fault::shape("`isError` is no truth value")),
    };
    let kind = match result.get("resultType") {
        // The task extension of 2025-11-25 has no `resultType`, but a `task` in place of content.
        None if result.get("task").is_some() && result.get("content").is_none() => ResultKind::Task,
        None => ResultKind::Complete,
        Some(raw) => match text(Some(raw)).as_deref() {
            Some("complete") => ResultKind::Complete,
            Some("input_required") => ResultKind::InputRequired,
            Some("task") => ResultKind::Task,
            _ => ResultKind::Other,
        },
    };
    Ok(ResultFacts { is_error, kind })
}

/// A short text out of raw JSON.
fn text(raw: Option<&[u8]>) -> Option<String> {
    let limits = Limits {
        max_bytes: 1024,
        max_depth: 1,
        case: CaseRule::Refuse,
    };
    match parse(raw?, &limits) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// How deep a server's message may be nested.
pub const DEPTH: usize = 256;
/// The most elements of a batch.
pub const LARGEST_BATCH: usize = 64;
