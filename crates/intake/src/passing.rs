//! What goes on of a request that passes: its known members, and nothing else of the client's (PROFILE §3).
//!
//! Nobody decides on these requests, so nothing may travel in them that the specification gives no meaning.

use lychgate_core::json::{Object, Value};

use crate::meta::KnownMeta;

/// The params of a passing request or notification with only the members that are known for its method; `_meta` keeps
/// its known keys. A `_meta` that is not taken is left out, like every other member that is not known.
#[must_use]
pub fn known_params(method: &str, params: Option<Value>) -> Option<Value> {
    let Some(Value::Object(params)) = params else {
        return None;
    };
    let known = members(method);
    let mut kept = Object::new();
    for (key, value) in params {
        if key == "_meta" {
            if let Ok(meta) = KnownMeta::read(Some(value)) {
                let meta = meta.to_object();
                if !meta.is_empty() {
                    kept.insert(key, Value::Object(meta));
                }
            }
        } else if known.contains(&key.as_str()) {
            kept.insert(key, value);
        }
    }
    (!kept.is_empty()).then_some(Value::Object(kept))
}

fn members(method: &str) -> &'static [&'static str] {
    match method {
        "initialize" => &["protocolVersion", "capabilities", "clientInfo"],
        "tools/list"
        | "resources/list"
        | "resources/templates/list"
        | "prompts/list"
        | "tasks/list" => &["cursor"],
        "logging/setLevel" => &["level"],
        "resources/subscribe" | "resources/unsubscribe" => &["uri"],
        "completion/complete" => &["ref", "argument", "context"],
        "subscriptions/listen" => &["notifications"],
        "tasks/get" | "tasks/result" => &["taskId"],
        "notifications/progress" => &["progressToken", "progress", "total", "message"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use lychgate_core::jcs;
    use lychgate_core::json::{Limits, parse};

    use super::*;
    use crate::method::{MethodKind, kind};

    fn kept(method: &str, params: &str) -> Option<String> {
        let params = parse(params.as_bytes(), &Limits::OBJECT).unwrap();
        known_params(method, Some(params))
            .map(|kept| String::from_utf8(jcs::to_bytes(&kept)).unwrap())
    }

    #[test]
    fn nothing_unknown_travels_in_a_request_that_nobody_decides_on() {
        assert_eq!(
            kept("ping", r#"{"exfil":"secret","_meta":{"x/y":"secret"}}"#),
            None
        );
        assert_eq!(
            kept("tools/list", r#"{"cursor":"c","foo":"secret"}"#).unwrap(),
            r#"{"cursor":"c"}"#
        );
        assert_eq!(
            kept(
                "logging/setLevel",
                r#"{"level":"info","_meta":{"progressToken":7,"z":"secret"}}"#
            )
            .unwrap(),
            r#"{"_meta":{"progressToken":7},"level":"info"}"#
        );
        assert_eq!(kept("server/discover", r#"{"anything":1}"#), None);
        assert_eq!(known_params("ping", None), None);
    }

    #[test]
    fn what_a_method_needs_is_kept() {
        for (method, params) in [
            (
                "initialize",
                r#"{"capabilities":{},"clientInfo":{"name":"c","version":"1"},"protocolVersion":"2025-11-25"}"#,
            ),
            (
                "completion/complete",
                r#"{"argument":{"name":"a","value":"v"},"ref":{"name":"p","type":"ref/prompt"}}"#,
            ),
            ("resources/subscribe", r#"{"uri":"file:///a"}"#),
            ("tasks/get", r#"{"taskId":"t"}"#),
        ] {
            assert_eq!(kind(method), MethodKind::Passes, "{method}");
            assert_eq!(kept(method, params).unwrap(), params);
        }
    }
}
