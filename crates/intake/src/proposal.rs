//! A call as exactly what was emitted: method, function, canonical arguments and their digest. Everything else of the
//! request is taken from an allowlist or refused (PROFILE §3), so nothing unhashed reaches a tool.

use lychgate_core::json::{Object, Value};
use lychgate_core::name;
use lychgate_core::{Digest, jcs};

use crate::client::Limits;
use crate::meta::{Era, KnownMeta};
use crate::method::ActingMethod;

/// A call that a client emitted and nobody has judged yet. It has no effect and no authority.
///
/// `Debug` prints the arguments, which may be secret: it is for tests, never for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The method that acts.
    pub method: ActingMethod,
    /// The function named: a tool's name; for other methods the method's own name.
    pub function: String,
    /// The arguments, an object; absent ones are `{}`. For `resources/read` `{"uri"}`, for `prompts/get`
    /// `{"name", "arguments"}`, for tasks `{"taskId", …}`, for a listed method its params without `_meta`.
    pub arguments: Value,
    /// JCS of the arguments: what is digested and what is sent.
    pub canonical: Vec<u8>,
    /// SHA-256 over `canonical` (`arguments_digest`).
    pub digest: Digest,
    /// Whether keys inside the arguments differ only in case: EF-001 unless the catalogue entry allows it.
    pub arguments_case_variants: bool,
    /// Set when this is the retry of a multi-round call: a new act that names its predecessor (PROFILE §5).
    pub continuation: Option<Continuation>,
    /// The known `_meta` keys.
    pub meta: KnownMeta,
}

/// What the retry of a multi-round call brings with it. It goes to the server as it was emitted, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// `inputResponses`, an object.
    pub input_responses: Option<Value>,
    /// `requestState`, opaque; exactly as the server gave it.
    pub request_state: Option<String>,
    /// SHA-256 over JCS of `{"inputResponses", "requestState"}` with the members that are present.
    pub digest: Digest,
}

/// Why params make no proposal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ProposalFault {
    /// RFC 6901 pointer into the message.
    pub pointer: String,
    /// What is wrong, constant; it never repeats a value.
    pub reason: &'static str,
}

impl Proposal {
    /// The era the request marks.
    #[must_use]
    pub const fn era(&self) -> Era {
        self.meta.era()
    }
}

//= PROFILE §3: any other member of params is refused
/// Makes a proposal of the params of an acting method.
///
/// # Errors
/// A member of params that is not known for this method (a task augmentation, `task`, included), a wrong kind of
/// value, a name outside PROFILE §8, or arguments longer than `limits.arguments_bytes` in canonical form.
pub fn propose(
    method: ActingMethod,
    params: Option<Value>,
    limits: &Limits,
) -> Result<Proposal, ProposalFault> {
    let mut params = match params {
        None => Object::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(fault("/params", "params must be an object")),
    };
    let meta = KnownMeta::read(params.remove("_meta")).map_err(|found| ProposalFault {
        pointer: format!("/params/_meta{}", found.pointer),
        reason: found.reason,
    })?;
    let continues = matches!(
        method,
        ActingMethod::ToolsCall | ActingMethod::ResourcesRead | ActingMethod::PromptsGet
    );
    let continuation = if continues {
        Continuation::take(&mut params)?
    } else {
        None
    };
    let (function, arguments) = subject(&method, &mut params)?;
    if let Some((member, _)) = params.iter().next() {
        return Err(ProposalFault {
            pointer: format!("/params/{}", member.replace('~', "~0").replace('/', "~1")),
            reason: "this member of params is not known",
        });
    }
    let arguments = Value::Object(arguments);
    let canonical = jcs::to_bytes(&arguments);
    if canonical.len() > limits.arguments_bytes {
        return Err(fault(
            "/params/arguments",
            "arguments are longer than allowed",
        ));
    }
    let digest = Digest::sha256(&canonical);
    Ok(Proposal {
        method,
        function,
        arguments,
        canonical,
        digest,
        arguments_case_variants: false,
        continuation,
        meta,
    })
}

impl Continuation {
    fn take(params: &mut Object) -> Result<Option<Self>, ProposalFault> {
        let input_responses = params.remove("inputResponses");
        let request_state = params.remove("requestState");
        let mut both = Object::new();
        if let Some(responses) = &input_responses {
            if responses.as_object().is_none() {
                return Err(fault(
                    "/params/inputResponses",
                    "input responses must be an object",
                ));
            }
            both.insert("inputResponses".to_owned(), responses.clone());
        }
        let request_state = match request_state {
            None => None,
            Some(Value::String(state)) => Some(state),
            Some(_) => {
                return Err(fault(
                    "/params/requestState",
                    "request state must be a text",
                ));
            }
        };
        if let Some(state) = &request_state {
            both.insert("requestState".to_owned(), Value::String(state.clone()));
        }
        Ok((!both.is_empty()).then(|| Self {
            input_responses,
            request_state,
            digest: Digest::sha256(&jcs::to_bytes(&Value::Object(both))),
        }))
    }

    /// Puts the members where they came from.
    pub(crate) fn write(&self, params: &mut Object) {
        if let Some(responses) = &self.input_responses {
            params.insert("inputResponses".to_owned(), responses.clone());
        }
        if let Some(state) = &self.request_state {
            params.insert("requestState".to_owned(), Value::String(state.clone()));
        }
    }
}

/// The function and the arguments; what is left in `params` is not known.
fn subject(method: &ActingMethod, params: &mut Object) -> Result<(String, Object), ProposalFault> {
    let own = method.name().to_owned();
    match method {
        ActingMethod::ToolsCall => {
            let name = text(params, "name", name::LONGEST)?;
            if !name::is_name(&name) {
                let reason = "a tool's name has ASCII letters, digits and `_ - . /` only";
                return Err(fault("/params/name", reason));
            }
            Ok((name, arguments(params)?))
        }
        ActingMethod::PromptsGet => {
            let name = text(params, "name", LONGEST_TEXT)?;
            let inner = arguments(params)?;
            let mut object = Object::new();
            object.insert("arguments".to_owned(), Value::Object(inner));
            object.insert("name".to_owned(), Value::String(name));
            Ok((own, object))
        }
        ActingMethod::ResourcesRead => {
            let uri = text(params, "uri", LONGEST_TEXT)?;
            Ok((own, single("uri", uri)))
        }
        ActingMethod::TasksCancel => {
            let task = text(params, "taskId", LONGEST_TEXT)?;
            Ok((own, single("taskId", task)))
        }
        ActingMethod::TasksUpdate => {
            let mut object = single("taskId", text(params, "taskId", LONGEST_TEXT)?);
            match params.remove("inputResponses") {
                None => {}
                Some(responses @ Value::Object(_)) => {
                    object.insert("inputResponses".to_owned(), responses);
                }
                Some(_) => {
                    return Err(fault(
                        "/params/inputResponses",
                        "input responses must be an object",
                    ));
                }
            }
            Ok((own, object))
        }
        ActingMethod::Listed(_) => Ok((own, std::mem::take(params))),
    }
}

fn arguments(params: &mut Object) -> Result<Object, ProposalFault> {
    match params.remove("arguments") {
        None => Ok(Object::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(_) => Err(fault("/params/arguments", "arguments must be an object")),
    }
}

fn text(params: &mut Object, member: &str, longest: usize) -> Result<String, ProposalFault> {
    let at = |reason| ProposalFault {
        pointer: format!("/params/{member}"),
        reason,
    };
    match params.remove(member) {
        Some(Value::String(text)) if text.is_empty() => Err(at("must not be empty")),
        Some(Value::String(text)) if text.len() > longest => Err(at("is longer than allowed")),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(at("must be a text")),
        None => Err(at("is missing")),
    }
}

fn single(key: &str, text: String) -> Object {
    let mut object = Object::new();
    object.insert(key.to_owned(), Value::String(text));
    object
}

fn fault(pointer: &str, reason: &'static str) -> ProposalFault {
    ProposalFault {
        pointer: pointer.to_owned(),
        reason,
    }
}

/// The longest URI, prompt name or task id, in bytes.
const LONGEST_TEXT: usize = 8 << 10;
