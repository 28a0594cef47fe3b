//! `envelopes`: which kinds of acts go by one decision now, and closing one (draft §13).

use lychgate_core::display::escape;
use lychgate_server::protocol::EnvelopeView;
use lychgate_server::{Request, Response};
use serde_json::{Value, json};

use super::Context;
use crate::args::Envelopes;
use crate::connection::{Connection, answer};
use crate::outcome::Outcome;
use crate::terminal::{bold, dim, text};

/// Lists the open ones; closes one first where that is asked.
pub(crate) fn run(args: &Envelopes, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    let request = match args.close {
        Some(id) => Request::CloseEnvelope { id },
        None => Request::Envelopes,
    };
    let response = connection.ask(&request)?;
    let open = answer!(response, Response::Envelopes { envelopes } => envelopes)?;
    if args.output.json {
        let all = open.iter().map(document).collect::<Vec<_>>();
        context.terminal.document(&json!({ "envelopes": all }));
        return Ok(());
    }
    let terminal = &mut *context.terminal;
    if open.is_empty() {
        terminal.line(&[text(
            "No envelope is open: every act is decided on by itself.",
        )]);
    }
    for one in &open {
        let what = format!("{}/{}", escape(&one.tool), escape(&one.function));
        terminal.line(&[bold(what), dim(format!("  {}", one.id))]);
        let destination = one.destination.as_deref().unwrap_or("?");
        terminal.line(&[text(format!("  to     {}", escape(destination)))]);
        terminal.line(&[text(format!("  agent  {}", escape(&one.agent)))]);
        let by = if one.granted {
            "a person"
        } else {
            "the configuration"
        };
        terminal.line(&[text(format!(
            "  used   {} of {}, until {}; granted by {by}",
            one.used, one.acts, one.until
        ))]);
    }
    Ok(())
}

fn document(one: &EnvelopeView) -> Value {
    json!({
        "id": one.id.to_string(), "act": one.act.to_string(), "agent": one.agent, "tool": one.tool,
        "function": one.function, "destination": one.destination, "class": one.class.name(),
        "source": one.source, "granted": one.granted, "used": one.used, "acts": one.acts,
        "until": one.until.to_string(),
    })
}
