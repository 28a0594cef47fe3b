//! The `_meta` of a client's request: which keys are known, and the era they mark.

use lychgate_core::json::{Object, Value};
use lychgate_core::{Digest, jcs};

use crate::id::RequestId;

/// How a request speaks MCP. The era is chosen per request (MCP "A gate for both eras").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Up to 2025-11-25: sessionful.
    Legacy,
    /// From 2026-07-28: each request carries its protocol version.
    Modern,
}

/// The era of a request, by its params: modern when `_meta` names a protocol version.
#[must_use]
pub fn era_of(params: Option<&Value>) -> Era {
    let marked = params
        .and_then(|params| params.get("_meta"))
        .and_then(|meta| meta.get(PROTOCOL_VERSION));
    if marked.is_some() {
        Era::Modern
    } else {
        Era::Legacy
    }
}

/// The known `_meta` keys of a request. Unknown keys, and trace context that is not well formed, are left out and
/// counted: they never reach a tool (PROFILE §3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownMeta {
    /// `progressToken`
    pub progress_token: Option<RequestId>,
    /// `io.modelcontextprotocol/protocolVersion`
    pub protocol_version: Option<String>,
    /// `io.modelcontextprotocol/clientInfo`, an object
    pub client_info: Option<Value>,
    /// `io.modelcontextprotocol/clientCapabilities`, an object
    pub client_capabilities: Option<Value>,
    /// `io.modelcontextprotocol/logLevel`
    pub log_level: Option<String>,
    /// `traceparent` (W3C Trace Context)
    pub traceparent: Option<String>,
    /// `tracestate`
    pub tracestate: Option<String>,
    /// `baggage`
    pub baggage: Option<String>,
    /// How many keys were left out.
    pub dropped: usize,
}

/// A `_meta` that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct MetaFault {
    /// RFC 6901 pointer below `_meta`; empty for `_meta` itself.
    pub pointer: &'static str,
    /// What is wrong.
    pub reason: &'static str,
}

impl KnownMeta {
    /// Reads `_meta`; absent is empty.
    ///
    /// # Errors
    /// When it is no object, is longer than [`LONGEST`] bytes in canonical form, or a known protocol key has the
    /// wrong kind of value.
    pub fn read(meta: Option<Value>) -> Result<Self, MetaFault> {
        let mut known = Self::default();
        let Some(meta) = meta else { return Ok(known) };
        if jcs::to_bytes(&meta).len() > LONGEST {
            return Err(fault("", "`_meta` is longer than allowed"));
        }
        let Value::Object(members) = meta else {
            return Err(fault("", "`_meta` must be an object"));
        };
        for (key, value) in members {
            known.take(&key, value)?;
        }
        Ok(known)
    }

    fn take(&mut self, key: &str, value: Value) -> Result<(), MetaFault> {
        match key {
            "progressToken" => {
                let token = RequestId::from_value(&value).ok_or(fault(
                    "/progressToken",
                    "progress token must be a whole number or a short text",
                ))?;
                self.progress_token = Some(token);
            }
            PROTOCOL_VERSION => self.protocol_version = Some(word(value, AT_VERSION)?),
            LOG_LEVEL => self.log_level = Some(word(value, AT_LEVEL)?),
            CLIENT_INFO => self.client_info = Some(object(value, AT_INFO)?),
            CLIENT_CAPABILITIES => self.client_capabilities = Some(object(value, AT_CAPABILITIES)?),
            "traceparent" => self.traceparent = self.trace(value, is_traceparent),
            "tracestate" => self.tracestate = self.trace(value, |text| is_plain(text, 512)),
            "baggage" => self.baggage = self.trace(value, |text| is_plain(text, 8192)),
            _ => self.dropped += 1,
        }
        Ok(())
    }

    fn trace(&mut self, value: Value, holds: impl Fn(&str) -> bool) -> Option<String> {
        match value {
            Value::String(text) if holds(&text) => Some(text),
            _ => {
                self.dropped += 1;
                None
            }
        }
    }

    /// The known keys as a `_meta` object, maybe empty.
    #[must_use]
    pub fn to_object(&self) -> Object {
        let text = |text: &Option<String>| text.clone().map(Value::String);
        let members = [
            (
                "progressToken",
                self.progress_token.as_ref().map(RequestId::to_value),
            ),
            (PROTOCOL_VERSION, text(&self.protocol_version)),
            (CLIENT_INFO, self.client_info.clone()),
            (CLIENT_CAPABILITIES, self.client_capabilities.clone()),
            (LOG_LEVEL, text(&self.log_level)),
            ("traceparent", text(&self.traceparent)),
            ("tracestate", text(&self.tracestate)),
            ("baggage", text(&self.baggage)),
        ];
        let mut object = Object::new();
        for (key, value) in members {
            if let Some(value) = value {
                object.insert(key.to_owned(), value);
            }
        }
        object
    }

    /// SHA-256 over JCS of what goes on, for the evidence.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::sha256(&jcs::to_bytes(&Value::Object(self.to_object())))
    }

    /// The era these keys mark.
    #[must_use]
    pub const fn era(&self) -> Era {
        if self.protocol_version.is_some() {
            Era::Modern
        } else {
            Era::Legacy
        }
    }
}

const fn fault(pointer: &'static str, reason: &'static str) -> MetaFault {
    MetaFault { pointer, reason }
}

fn word(value: Value, at: &'static str) -> Result<String, MetaFault> {
    match value {
        Value::String(text) if is_plain(&text, 64) => Ok(text),
        _ => Err(fault(at, "must be a short plain text")),
    }
}

fn object(value: Value, at: &'static str) -> Result<Value, MetaFault> {
    if value.as_object().is_some() {
        Ok(value)
    } else {
        Err(fault(at, "must be an object"))
    }
}

fn is_plain(text: &str, longest: usize) -> bool {
    text.len() <= longest && text.bytes().all(|byte| matches!(byte, 0x20..=0x7E))
}

/// W3C Trace Context, version 00: `00-<32 hex>-<16 hex>-<2 hex>`.
fn is_traceparent(text: &str) -> bool {
    text.len() == 55
        && text.bytes().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// The longest `_meta`, in canonical bytes.
pub const LONGEST: usize = 32 << 10;
/// The key that marks the modern era.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who the client says it is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client says it can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The log level asked for.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

const AT_VERSION: &str = "/io.modelcontextprotocol~1protocolVersion";
const AT_INFO: &str = "/io.modelcontextprotocol~1clientInfo";
const AT_CAPABILITIES: &str = "/io.modelcontextprotocol~1clientCapabilities";
const AT_LEVEL: &str = "/io.modelcontextprotocol~1logLevel";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use lychgate_core::json::{Limits, parse};

    use super::*;

    fn read(text: &str) -> Result<KnownMeta, MetaFault> {
        KnownMeta::read(Some(parse(text.as_bytes(), &Limits::OBJECT).unwrap()))
    }

    #[test]
    fn known_keys_come_back_and_unknown_ones_are_counted() {
        let known = read(
            r#"{"progressToken":5,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","x/y":1,
            "io.modelcontextprotocol/protocolVersion":"2026-07-28","progress_token":"smuggled","tracestate":"a\u0007"}"#,
        )
        .unwrap();
        assert_eq!(known.dropped, 3);
        assert_eq!(known.progress_token, Some(RequestId::Number(5)));
        assert_eq!(known.era(), Era::Modern);
        assert_eq!(known.to_object().len(), 3);
    }

    #[test]
    fn a_known_key_of_the_wrong_kind_is_a_fault_with_its_place() {
        assert_eq!(
            read(r#"{"progressToken":null}"#).unwrap_err().pointer,
            "/progressToken"
        );
        assert_eq!(
            read(r#"{"io.modelcontextprotocol/protocolVersion":7}"#)
                .unwrap_err()
                .pointer,
            AT_VERSION
        );
        assert_eq!(read(r#"[]"#).unwrap_err().pointer, "");
        let long = format!(r#"{{"x":"{}"}}"#, "a".repeat(LONGEST));
        assert!(
            read(&long).is_err(),
            "also what would be dropped is bounded"
        );
    }
}
