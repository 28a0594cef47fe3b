//! Eras, and what a server is told of the client (MCP.md, PROFILE §4).

use std::sync::{Mutex, PoisonError};

use lychgate_core::json::{self, Limits, Object, Value};
use lychgate_intake::Era;
use lychgate_intake::waiting::shows_urls;
use lychgate_policy::Server;

/// How far this connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing was said yet.
    #[default]
    New,
    /// `initialize` was answered.
    Answered,
    /// And the client confirmed it.
    Legacy,
    /// The server answered `server/discover` as a modern one.
    Modern,
}

/// The stage of a connection, and the words to repeat when the gate itself asks the server something.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    stage: Stage,
    modern_meta: Option<Object>,
    /// The client said at `initialize` that it shows URLs to a person.
    shows_urls: bool,
}

impl Handshake {
    pub(crate) fn stage(&self) -> Stage {
        self.inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stage
    }

    pub(crate) fn answered(&self) {
        self.step(Stage::Answered);
    }

    pub(crate) fn initialized(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.stage == Stage::Answered {
            inner.stage = Stage::Legacy;
        }
    }

    /// `server/discover` was answered: a modern answer, and nothing else, makes the server a modern one.
    pub(crate) fn discovered(&self, raw_result: &[u8]) {
        if is_modern(raw_result) {
            self.step(Stage::Modern);
        }
    }

    /// A connection stays in the era it first came to (MCP.md).
    fn step(&self, stage: Stage) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.stage == Stage::New {
            inner.stage = stage;
        }
    }

    /// What the client says of itself at `initialize`, before the server is told its own version of it.
    pub(crate) fn introduced(&self, params: Option<&Value>) {
        let capabilities = params.and_then(|params| params.get("capabilities"));
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.shows_urls = capabilities.is_some_and(shows_urls);
    }

    pub(crate) fn shows_urls(&self) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.shows_urls
    }

    /// Keeps the envelope of a modern request, to speak to the server in the client's own words.
    pub(crate) fn remember(&self, meta: Object) {
        self.inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .modern_meta = Some(meta);
    }

    /// The params of a request of the gate's own, in the connection's era.
    pub(crate) fn own_params(&self, mut params: Object) -> Option<Value> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Stage::Modern | Stage::New, Some(meta)) = (inner.stage, &inner.modern_meta) {
            params.insert("_meta".to_owned(), Value::Object(meta.clone()));
        }
        (!params.is_empty()).then_some(Value::Object(params))
    }

    /// The era the connection is in, once it is in one.
    pub(crate) fn era(&self) -> Option<Era> {
        match self.stage() {
            Stage::Legacy | Stage::Answered => Some(Era::Legacy),
            Stage::Modern => Some(Era::Modern),
            Stage::New => None,
        }
    }
}

/// Whether a result of `server/discover` names a version of the modern era.
fn is_modern(raw_result: &[u8]) -> bool {
    let Ok(result) = json::parse(raw_result, &Limits::CANON) else {
        return false;
    };
    let versions = result.get("supportedVersions").and_then(Value::as_array);
    // Versions are dates, so they are in order as texts.
    versions.is_some_and(|versions| {
        versions
            .iter()
            .filter_map(Value::as_str)
            .any(|version| version.len() == FIRST_MODERN.len() && version >= FIRST_MODERN)
    })
}

//= PROFILE §4: the gate answers a server's `roots/list` from the declared roots, never from the client's
/// What the server is told the client can do: roots exactly when some are declared, sampling and elicitation only where
/// the configuration allows them. So a server's offer depends on the configuration, not on who asks.
pub(crate) fn shape_capabilities(capabilities: &mut Object, server: &Server, era: Era) {
    if !server.sampling || era == Era::Modern {
        capabilities.remove("sampling");
    }
    if !server.elicitation {
        capabilities.remove("elicitation");
    }
    // Work a client would have to poll for is not begun: the gate's acts end with their answer.
    capabilities.remove("tasks");
    capabilities.remove("roots");
    if !server.roots.is_empty() && era == Era::Legacy {
        capabilities.insert("roots".to_owned(), Value::Object(Object::new()));
    }
}

/// Rewrites the capabilities inside `initialize` params.
pub(crate) fn shape_initialize(params: &mut Value, server: &Server) {
    let Value::Object(params) = params else {
        return;
    };
    if !params.contains_key("capabilities") {
        params.insert("capabilities".to_owned(), Value::Object(Object::new()));
    }
    if let Some(Value::Object(capabilities)) = params.get_mut("capabilities") {
        shape_capabilities(capabilities, server, Era::Legacy);
    }
}

/// Rewrites the capabilities inside a modern request's `_meta`.
pub(crate) fn shape_meta(params: Option<&mut Value>, server: &Server) {
    let meta = params
        .and_then(Value::as_object_mut)
        .and_then(|params| params.get_mut("_meta"));
    let capabilities = meta
        .and_then(Value::as_object_mut)
        .and_then(|meta| meta.get_mut(CAPABILITIES));
    if let Some(Value::Object(capabilities)) = capabilities {
        shape_capabilities(capabilities, server, Era::Modern);
    }
}

/// The declared roots as the answer to `roots/list`.
pub(crate) fn roots_list(server: &Server) -> Value {
    roots_value(&server.roots)
}

pub(crate) fn roots_value(roots: &[lychgate_policy::Root]) -> Value {
    let roots = roots.iter().filter_map(|root| {
        let mut one = Object::new();
        one.insert("uri".to_owned(), Value::from(file_uri(root.path.to_str()?)));
        one.insert("name".to_owned(), Value::from(root.name.as_str()));
        Some(Value::Object(one))
    });
    let mut list = Object::new();
    list.insert("roots".to_owned(), Value::Array(roots.collect()));
    Value::Object(list)
}

/// `file://` and the path, percent-encoded (RFC 8089).
fn file_uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

const CAPABILITIES: &str = lychgate_intake::meta::CLIENT_CAPABILITIES;
/// The first version without `initialize`.
const FIRST_MODERN: &str = "2026-07-28";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_names_a_modern_version_makes_a_server_modern() {
        for (answer, modern) in [
            (r#"{"supportedVersions":["2025-11-25","2026-07-28"]}"#, true),
            (r#"{"supportedVersions":["2027-01-01"]}"#, true),
            (r#"{"supportedVersions":["2025-11-25"]}"#, false),
            (r#"{"supportedVersions":"2026-07-28"}"#, false),
            (r#"{"supportedVersions":["zzz"]}"#, false),
            (r#"{"tools":[]}"#, false),
            ("{}", false),
            ("[]", false),
        ] {
            let handshake = Handshake::default();
            handshake.discovered(answer.as_bytes());
            assert_eq!(handshake.stage() == Stage::Modern, modern, "{answer}");
        }
    }

    #[test]
    fn a_connection_stays_in_its_era() {
        let handshake = Handshake::default();
        handshake.answered();
        handshake.discovered(br#"{"supportedVersions":["2026-07-28"]}"#);
        assert_eq!(handshake.stage(), Stage::Answered);
        handshake.initialized();
        handshake.answered();
        assert_eq!(handshake.stage(), Stage::Legacy);
    }
}
