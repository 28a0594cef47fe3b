//! What a client is told while a person is asked: that the call waits, and where the person decides. Constant texts of
//! ours and the ticket's id; never a secret, and nothing here approves anything.

use lychgate_core::id::TicketId;
use lychgate_core::jcs;
use lychgate_core::json::{Number, Object, Value};

use crate::answer::{forward_bytes, response_bytes};
use crate::id::RequestId;

/// The sentence for the person.
#[must_use]
pub fn notice(ticket: TicketId) -> String {
    format!(
        "This call waits for a person. Decide in a terminal: lychgate approve {ticket} (or: lychgate deny {ticket}). Nothing that is clicked here approves it."
    )
}

/// A progress notification; `step` counts from 1.
///
/// Progress must grow with each notification and the server's own comes after ours, so a step is a millionth.
#[must_use]
pub fn progress_bytes(token: &RequestId, step: u32, ticket: TicketId) -> Vec<u8> {
    let mut params = Object::new();
    params.insert("progressToken".to_owned(), token.to_value());
    let progress = Number::from_f64(f64::from(step) / 1_000_000.0);
    params.insert(
        "progress".to_owned(),
        progress.map_or(Value::Null, Value::Number),
    );
    params.insert("message".to_owned(), Value::String(notice(ticket)));
    let params = jcs::to_bytes(&Value::Object(params));
    forward_bytes(None, "notifications/progress", Some(&params))
}

/// The question of 2025-11-25 that shows a person a place: `elicitation/create` in URL mode.
#[must_use]
pub fn elicitation_bytes(id: &RequestId, ticket: TicketId) -> Vec<u8> {
    let params = jcs::to_bytes(&place(ticket));
    forward_bytes(Some(id), ELICIT, Some(&params))
}

/// The ticket is decided, or waits for nobody any longer.
#[must_use]
pub fn elicitation_over_bytes(ticket: TicketId) -> Vec<u8> {
    let mut params = Object::new();
    params.insert(
        "elicitationId".to_owned(),
        Value::String(ticket.to_string()),
    );
    let params = jcs::to_bytes(&Value::Object(params));
    forward_bytes(None, "notifications/elicitation/complete", Some(&params))
}

/// The answer of 2026-07-28 that asks for a person first. Whoever has the state sends the same call again with it.
#[must_use]
pub fn input_required_bytes(id: &RequestId, ticket: TicketId) -> Vec<u8> {
    let mut request = Object::new();
    request.insert("method".to_owned(), Value::from(ELICIT));
    request.insert("params".to_owned(), place(ticket));
    let mut requests = Object::new();
    requests.insert("approval".to_owned(), Value::Object(request));
    let mut result = Object::new();
    result.insert("resultType".to_owned(), Value::from("input_required"));
    result.insert("inputRequests".to_owned(), Value::Object(requests));
    result.insert(
        "requestState".to_owned(),
        Value::String(format!("{STATE}{ticket}")),
    );
    response_bytes(id, Ok(&jcs::to_bytes(&Value::Object(result))))
}

/// Whether a request state is one of [`input_required_bytes`]. It licenses nothing: the call it comes with is a call like
/// any other, so it does not matter who made it.
#[must_use]
pub fn is_our_state(state: Option<&str>) -> bool {
    state
        .and_then(|state| state.strip_prefix(STATE))
        .is_some_and(|ticket| ticket.parse::<TicketId>().is_ok())
}

/// Whether a client's capabilities say that it shows URLs to a person.
#[must_use]
pub fn shows_urls(capabilities: &Value) -> bool {
    let url = capabilities
        .get("elicitation")
        .and_then(|elicitation| elicitation.get("url"));
    url.is_some_and(|url| url.as_object().is_some())
}

fn place(ticket: TicketId) -> Value {
    let mut params = Object::new();
    params.insert("mode".to_owned(), Value::from("url"));
    params.insert("message".to_owned(), Value::String(notice(ticket)));
    params.insert(
        "url".to_owned(),
        Value::String(format!("lychgate:approve?ticket={ticket}")),
    );
    params.insert(
        "elicitationId".to_owned(),
        Value::String(ticket.to_string()),
    );
    Value::Object(params)
}

const ELICIT: &str = "elicitation/create";
/// How a request state of ours begins.
const STATE: &str = "lychgate-waits:";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use lychgate_core::json::{Limits, parse};

    use super::*;

    fn ticket() -> TicketId {
        TicketId::from_bytes([7; 16])
    }

    #[test]
    fn progress_grows_and_leaves_room_for_the_servers_own() {
        let token = RequestId::String("t".to_owned());
        let at = |step| {
            let line = progress_bytes(&token, step, ticket());
            let line = parse(&line, &Limits::OBJECT).unwrap();
            let params = line.get("params").unwrap().clone();
            assert_eq!(params.get("progressToken"), Some(&Value::from("t")));
            match params.get("progress") {
                Some(Value::Number(number)) => number.get(),
                other => panic!("{other:?}"),
            }
        };
        assert!(at(1) > 0.0 && at(2) > at(1) && at(10_000) < 0.1);
    }

    #[test]
    fn what_a_person_is_told_names_the_ticket_and_a_command() {
        for line in [
            elicitation_bytes(&RequestId::Number(1), ticket()),
            input_required_bytes(&RequestId::Number(1), ticket()),
        ] {
            let text = String::from_utf8(line).unwrap();
            assert!(text.contains(&format!("lychgate approve {}", ticket())));
            assert!(text.contains("\"mode\":\"url\""), "{text}");
        }
    }

    #[test]
    fn only_a_state_of_ours_is_ours() {
        assert!(is_our_state(Some(&format!("{STATE}{}", ticket()))));
        for other in [
            None,
            Some(""),
            Some(STATE),
            Some("lychgate-waits:tkt-1"),
            Some("x"),
        ] {
            assert!(!is_our_state(other), "{other:?}");
        }
    }

    #[test]
    fn a_client_shows_urls_when_it_says_so() {
        for (text, shows) in [
            (r#"{"elicitation":{"url":{}}}"#, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true),
            (r#"{"elicitation":{}}"#, false),
            (r#"{"elicitation":{"url":true}}"#, false),
            (r#"{"url":{}}"#, false),
        ] {
            let capabilities = parse(text.as_bytes(), &Limits::OBJECT).unwrap();
            assert_eq!(shows_urls(&capabilities), shows, "{text}");
        }
    }
}
