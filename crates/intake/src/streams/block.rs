//! What comes out of a stream: sealed blocks, in the provider's order.

use lychgate_core::json::Value;
use lychgate_core::{Digest, jcs, name};

use super::Limits;
use super::arguments;
use super::reason::Reason;

/// One sealed block of a message. It has no effect and no authority.
///
/// `Debug` prints content, which may be secret: it is for tests, never for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its place among all blocks of the stream, counted from 0 over every kind. With the stream it is the block's
    /// identity; a provider's id is a label.
    pub ordinal: u64,
    /// What it is.
    pub content: Content,
    /// The block in the provider's own shape, as it goes back to the provider when the conversation goes on: with what
    /// is opaque here (signatures, ids). Absent for what was refused.
    pub replay: Option<Value>,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A call that the harness would execute: a candidate act.
    Act(Act),
    /// What the model says, or its refusal in words.
    Text(String),
    /// The model's reasoning, opaque here.
    Reasoning,
    /// A call that the provider itself executes: it passes by every sink.
    ProviderExecuted(ProviderCall),
    /// What came of such a call, or other data of the provider's, opaque here.
    ProviderData,
    /// A block that is no act, whatever it was meant to be.
    Refused(Reason),
}

/// A call as exactly what was emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The kind of block: `function` for a plain call, else the provider's own word (`computer_call` …).
    pub form: &'static str,
    /// The function named.
    pub name: String,
    /// JCS of the arguments, an object. For a form that is not `function`: the members that act, by their own names.
    pub canonical: Vec<u8>,
    /// SHA-256 over `canonical` (`arguments_digest`).
    pub digest: Digest,
    /// The provider's id, a label only.
    pub provider_id: Option<String>,
    /// A call without id came twice: a resend or a twin, nobody can tell. It counts once.
    pub ambiguous: bool,
}

/// A call that the provider executes, as far as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderCall {
    /// The provider's word for the kind: `server_tool_use`, `web_search_call`, `mcp_call` …
    pub form: String,
    /// The tool named, when one is.
    pub name: Option<String>,
    /// The provider's id, a label only.
    pub provider_id: Option<String>,
}

impl Act {
    //= PROFILE §8: names have ASCII letters, digits, `_ - . /`; anything else is refused
    /// Makes an act, or says why there is none.
    pub(super) fn seal(
        form: &'static str,
        name: Option<&str>,
        arguments: &Value,
        provider_id: Option<String>,
        limits: &Limits,
    ) -> Result<Self, Reason> {
        let name = name
            .filter(|name| !name.is_empty())
            .ok_or(Reason::NameMissing)?;
        if !name::is_name(name) {
            return Err(Reason::NameUnusable);
        }
        arguments::admit(arguments)?;
        let canonical = jcs::to_bytes(arguments);
        if canonical.len() > limits.arguments_bytes {
            return Err(Reason::ArgumentsTooLarge);
        }
        Ok(Self {
            form,
            name: name.to_owned(),
            digest: Digest::sha256(&canonical),
            canonical,
            provider_id,
            ambiguous: false,
        })
    }
}

impl Block {
    /// The block as one JSON line of `lychgate normalize`, without the line's end: UTF-8, members in the order of the
    /// command line's contract, arguments in canonical form.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let mut line = Line(Vec::with_capacity(160));
        match &self.content {
            Content::Act(act) => {
                line.open("act", self.ordinal);
                line.text("name", &act.name);
                line.raw("arguments", &act.canonical);
                line.text("arguments_digest", &act.digest.to_base64url());
                line.label("provider_id", act.provider_id.as_deref());
                if act.form != FUNCTION {
                    line.text("type", act.form);
                }
                if act.ambiguous {
                    line.raw("ambiguous", b"true");
                }
            }
            Content::Text(text) => {
                line.open("text", self.ordinal);
                line.text("text", text);
            }
            Content::Reasoning => line.open("reasoning", self.ordinal),
            Content::ProviderExecuted(call) => {
                line.open("provider_executed", self.ordinal);
                line.text("type", &call.form);
                line.label("name", call.name.as_deref());
                line.label("provider_id", call.provider_id.as_deref());
            }
            Content::ProviderData => line.open("provider_data", self.ordinal),
            Content::Refused(reason) => {
                line.open("refused", self.ordinal);
                line.text("reason", reason.name());
            }
        }
        line.close()
    }
}

struct Line(Vec<u8>);

impl Line {
    fn open(&mut self, kind: &str, ordinal: u64) {
        self.0.extend_from_slice(b"{\"kind\":\"");
        self.0.extend_from_slice(kind.as_bytes());
        self.0.extend_from_slice(b"\",\"ordinal\":");
        self.0.extend_from_slice(ordinal.to_string().as_bytes());
    }

    fn key(&mut self, key: &str) {
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn raw(&mut self, key: &str, value: &[u8]) {
        self.key(key);
        self.0.extend_from_slice(value);
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        jcs::write(&Value::from(text), &mut self.0);
    }

    fn label(&mut self, key: &str, text: Option<&str>) {
        match text {
            Some(text) => self.text(key, text),
            None => self.raw(key, b"null"),
        }
    }

    fn close(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// The form of a plain function call.
pub(super) const FUNCTION: &str = "function";
