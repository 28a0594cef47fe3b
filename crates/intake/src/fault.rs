//! Why a client's message is not taken, with whatever is needed to answer it all the same.

use lychgate_core::Code;
use lychgate_core::json::{self, CaseRule, Value};

use crate::envelope::scan;
use crate::id::RequestId;
use crate::meta::{Era, PROTOCOL_VERSION};
use crate::method::ActingMethod;

/// A message that is not taken. It holds what is needed to answer it, as far as that could be read safely.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at `{pointer}`")]
pub struct ClientFault {
    /// The request's id, when the message is a request and its id could be read without doubt.
    pub id: Option<RequestId>,
    /// The id of the server's request, when the message is an answer to one: the server waits for it in vain.
    pub answers: Option<RequestId>,
    /// The acting method, when the request names one.
    pub method: Option<ActingMethod>,
    /// The era, as far as it could be read.
    pub era: Era,
    /// EF-001.
    pub code: Code,
    /// RFC 6901 pointer into the message; it may repeat a key the client wrote.
    pub pointer: String,
    /// What is wrong; it repeats no value.
    pub reason: Box<str>,
}

/// A place and what is wrong there.
pub(crate) type Place = (String, String);

pub(crate) fn place_of(pointer: &str, reason: impl ToString) -> Place {
    (pointer.to_owned(), reason.to_string())
}

/// A fault of a message whose envelope may still tell whom to answer. The lenient scan refuses doubled and
/// case-variant envelope keys, so an id found is the only one there is.
pub(crate) fn recover(bytes: &[u8], (pointer, reason): Place) -> ClientFault {
    let mut fault = bare(&pointer, reason);
    let Ok(message) = scan(bytes, usize::MAX) else {
        return fault;
    };
    let id = message.get("id").and_then(RequestId::from_raw);
    let Some(method) = message.get("method") else {
        fault.answers = id;
        return fault;
    };
    fault.id = id;
    let limits = json::Limits {
        max_bytes: LONGEST_METHOD * 6 + 2,
        max_depth: 1,
        case: CaseRule::Refuse,
    };
    fault.method = json::parse(method, &limits)
        .ok()
        .as_ref()
        .and_then(Value::as_str)
        .and_then(ActingMethod::from_name);
    let meta = message
        .get("params")
        .and_then(|params| scan(params, usize::MAX).ok())
        .and_then(|params| params.get("_meta"))
        .and_then(|meta| scan(meta, usize::MAX).ok());
    if meta.is_some_and(|meta| meta.get(PROTOCOL_VERSION).is_some()) {
        fault.era = Era::Modern;
    }
    fault
}

pub(crate) fn bare(pointer: &str, reason: impl ToString) -> ClientFault {
    ClientFault {
        id: None,
        answers: None,
        method: None,
        era: Era::Legacy,
        code: Code::MalformedAct,
        pointer: pointer.to_owned(),
        reason: reason.to_string().into_boxed_str(),
    }
}

/// The longest method name, in bytes.
pub(crate) const LONGEST_METHOD: usize = 128;
