//! What a client sends, parsed once and strictly: duplicate keys, case variants in the envelope, unknown members and
//! anything contradictory are refused (CASES "Parsing").

use lychgate_core::jcs;
use lychgate_core::json::{self, CaseRule, FaultKind, Object, Value};

use crate::envelope::{self, items, scan};
use crate::fault::{LONGEST_METHOD, Place, bare, place_of, recover};
use crate::id::RequestId;
use crate::meta::{Era, era_of};
use crate::method::{ActingMethod, MethodKind, kind};
use crate::proposal::{Proposal, propose};

pub use crate::fault::ClientFault;

/// What is taken from a client at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest message, in bytes.
    pub message_bytes: usize,
    /// The longest arguments, in bytes: as emitted, and in canonical form.
    pub arguments_bytes: usize,
}

impl Default for Limits {
    /// 16 MiB and 1 MiB.
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            arguments_bytes: 1 << 20,
        }
    }
}

/// One message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// Wants an answer.
    Request {
        /// The client's own id; what goes to the server carries the gate's.
        id: RequestId,
        /// What is asked.
        body: Body,
        /// How the request speaks MCP.
        era: Era,
    },
    /// Wants none.
    Notification(ClientNotification),
    /// Answers a request of the server.
    Response {
        /// The id of the server's request: another space than the client's own ids.
        id: RequestId,
        /// `result` or `error`.
        outcome: Result<Value, Value>,
    },
    /// A batch (2025-03-26), split: every element is handled as if it had been sent alone, in this order. Never nested.
    Batch(Vec<Result<FromClient, ClientFault>>),
}

/// What a request asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A known method without effect.
    Passes {
        /// One of the known methods, exactly.
        method: String,
        /// An object, when present.
        params: Option<Value>,
    },
    /// An act.
    Acts(Box<Proposal>),
    /// Not known. When the catalogue lists the method for this server, [`propose`] it as
    /// [`ActingMethod::Listed`]; otherwise refuse it.
    Refused {
        /// As the client spelled it; escape it before showing.
        method: String,
        /// An object, when present.
        params: Option<Value>,
    },
}

/// A notification of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientNotification {
    /// `notifications/initialized`
    Initialized,
    /// `notifications/cancelled`: the request is named by the client's id, which the gate translates.
    Cancelled {
        /// The request the client has given up.
        request: RequestId,
        /// Why, in the client's words.
        reason: Option<String>,
    },
    /// `notifications/progress` about a server's request: passes.
    Progress {
        /// An object.
        params: Option<Value>,
    },
    /// `notifications/roots/list_changed`: never passes, for roots come from the configuration (PROFILE §4).
    RootsListChanged,
    /// Not known: dropped.
    Unknown {
        /// As the client spelled it; escape it before showing.
        method: String,
    },
}

/// Reads one message.
///
/// # Errors
/// Why it is not taken. A batch that is empty or has more than [`LARGEST_BATCH`] elements is refused as a whole;
/// otherwise each element has its own fault.
pub fn from_client(bytes: &[u8], limits: &Limits) -> Result<FromClient, ClientFault> {
    if bytes.len() > limits.message_bytes {
        return Err(bare("", FaultKind::TooLarge));
    }
    if envelope::first(bytes) != Some(b'[') {
        return single(bytes, limits);
    }
    let elements = items(bytes, DEPTH + 1, LARGEST_BATCH).map_err(|fault| bare("", fault.kind))?;
    if elements.is_empty() {
        return Err(bare("", "a batch must not be empty"));
    }
    let split = elements.into_iter().map(|element| single(element, limits));
    Ok(FromClient::Batch(split.collect()))
}

fn single(bytes: &[u8], limits: &Limits) -> Result<FromClient, ClientFault> {
    let (value, variants) = strict(bytes, limits).map_err(|fault| recover(bytes, fault))?;
    let Value::Object(message) = value else {
        return Err(bare("", "a message must be an object"));
    };
    if let Some((key, _)) = message.iter().find(|(key, _)| !MEMBERS.contains(key)) {
        let place = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        return Err(recover(
            bytes,
            place_of(&place, "this member of a message is not known"),
        ));
    }
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(recover(bytes, place_of("/jsonrpc", "must be `2.0`")));
    }
    let read = if message.contains_key("method") {
        call(message, variants, limits)
    } else {
        response(message)
    };
    let read = read.map_err(|fault| recover(bytes, fault))?;
    if let FromClient::Request {
        body: Body::Acts(_),
        ..
    } = &read
    {
        raw_size(bytes, limits).map_err(|fault| recover(bytes, fault))?;
    }
    Ok(read)
}

/// The strict value, and whether the arguments of a call hold keys that differ only in case: there, and nowhere else,
/// that is for the catalogue to allow.
fn strict(bytes: &[u8], limits: &Limits) -> Result<(Value, bool), Place> {
    let told = |fault: json::Fault| place_of(&fault.pointer, fault.kind);
    let mut rule = json::Limits {
        max_bytes: limits.message_bytes,
        max_depth: DEPTH,
        case: CaseRule::Refuse,
    };
    match json::parse(bytes, &rule) {
        Ok(value) => return Ok((value, false)),
        Err(fault) if fault.kind != FaultKind::CaseDuplicateKey => return Err(told(fault)),
        Err(_) => {}
    }
    rule.case = CaseRule::Allow;
    let mut value = json::parse(bytes, &rule).map_err(told)?;
    let acting = value
        .get("method")
        .and_then(Value::as_str)
        .and_then(ActingMethod::from_name);
    let arguments = match acting {
        Some(ActingMethod::ToolsCall | ActingMethod::PromptsGet) => value
            .as_object_mut()
            .and_then(|message| message.get_mut("params"))
            .and_then(Value::as_object_mut)
            .and_then(|params| params.remove("arguments")),
        _ => None,
    };
    // Everything but the arguments once more, now without leave to differ only in case.
    rule.case = CaseRule::Refuse;
    rule.max_bytes = usize::MAX;
    json::parse(&jcs::to_bytes(&value), &rule).map_err(told)?;
    if let (Some(arguments), Some(params)) = (
        arguments,
        value
            .as_object_mut()
            .and_then(|message| message.get_mut("params"))
            .and_then(Value::as_object_mut),
    ) {
        params.insert("arguments".to_owned(), arguments);
    }
    Ok((value, true))
}

fn call(mut message: Object, variants: bool, limits: &Limits) -> Result<FromClient, Place> {
    for member in ["result", "error"] {
        if message.contains_key(member) {
            return Err(place_of(
                &format!("/{member}"),
                "a request has no answer in it",
            ));
        }
    }
    let Some(Value::String(method)) = message.remove("method") else {
        return Err(place_of("/method", "must be a text"));
    };
    if method.is_empty() || method.len() > LONGEST_METHOD {
        return Err(place_of("/method", "must have 1 to 128 bytes"));
    }
    let params = message.remove("params");
    if params
        .as_ref()
        .is_some_and(|params| params.as_object().is_none())
    {
        return Err(place_of("/params", "params must be an object"));
    }
    let notifies = method.starts_with("notifications/");
    match (message.remove("id"), notifies) {
        (None, true) => notification(method, params).map(FromClient::Notification),
        (None, false) => Err(place_of("/id", "a request must have an id")),
        (Some(_), true) => Err(place_of("/id", "a notification has no id")),
        (Some(id), false) => {
            let id = RequestId::from_value(&id).ok_or_else(|| {
                place_of(
                    "/id",
                    "must be a whole number or a text of at most 256 bytes",
                )
            })?;
            let era = era_of(params.as_ref());
            let body = body(method, params, variants, limits)?;
            Ok(FromClient::Request { id, body, era })
        }
    }
}

fn body(
    method: String,
    params: Option<Value>,
    variants: bool,
    limits: &Limits,
) -> Result<Body, Place> {
    match kind(&method) {
        MethodKind::Passes => Ok(Body::Passes { method, params }),
        MethodKind::Refused => Ok(Body::Refused { method, params }),
        MethodKind::Acts(acting) => {
            let mut proposal = propose(acting, params, limits)
                .map_err(|fault| (fault.pointer, fault.reason.to_owned()))?;
            proposal.arguments_case_variants = variants;
            Ok(Body::Acts(Box::new(proposal)))
        }
    }
}

fn notification(method: String, params: Option<Value>) -> Result<ClientNotification, Place> {
    Ok(match method.as_str() {
        "notifications/initialized" => ClientNotification::Initialized,
        "notifications/roots/list_changed" => ClientNotification::RootsListChanged,
        "notifications/progress" => ClientNotification::Progress { params },
        "notifications/cancelled" => {
            let member = |key| params.as_ref().and_then(|params| params.get(key));
            let request = member("requestId").and_then(RequestId::from_value);
            let request =
                request.ok_or_else(|| place_of("/params/requestId", "must name a request"))?;
            let reason = member("reason").and_then(Value::as_str).map(str::to_owned);
            ClientNotification::Cancelled { request, reason }
        }
        _ => ClientNotification::Unknown { method },
    })
}

fn response(mut message: Object) -> Result<FromClient, Place> {
    let id = message.get("id").and_then(RequestId::from_value);
    let id = id.ok_or_else(|| {
        place_of(
            "/id",
            "must be a whole number or a text of at most 256 bytes",
        )
    })?;
    if message.contains_key("params") {
        return Err(place_of("/params", "an answer has no params"));
    }
    match (message.remove("result"), message.remove("error")) {
        (Some(result), None) => Ok(FromClient::Response {
            id,
            outcome: Ok(result),
        }),
        (None, Some(error)) => Ok(FromClient::Response {
            id,
            outcome: Err(error),
        }),
        _ => Err(place_of(
            "",
            "must have exactly one of `method`, `result` and `error`",
        )),
    }
}

/// The arguments as they were emitted, spaces and escapes included, are bounded too.
fn raw_size(bytes: &[u8], limits: &Limits) -> Result<(), Place> {
    if bytes.len() <= limits.arguments_bytes {
        return Ok(());
    }
    let params = scan(bytes, DEPTH)
        .ok()
        .and_then(|message| message.get("params"));
    let arguments = params
        .and_then(|params| scan(params, DEPTH).ok())
        .and_then(|params| params.get("arguments"));
    match arguments {
        Some(arguments) if arguments.len() > limits.arguments_bytes => Err(place_of(
            "/params/arguments",
            "arguments are longer than allowed",
        )),
        _ => Ok(()),
    }
}

/// The most elements of a batch.
pub const LARGEST_BATCH: usize = 64;
/// Arguments may be 64 deep; message and params lie round them.
const DEPTH: usize = 66;
/// What a JSON-RPC message may hold.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
