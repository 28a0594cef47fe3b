//! One act: what is known of it, and what was signed on its way.

use lychgate_core::display::escape;
use lychgate_core::id::ActId;
use lychgate_server::protocol::{ActView, MOST_ACTS, SignedObjects};
use lychgate_server::{Request, Response};
use serde_json::{Value, json};

use super::{document, fetch, name, remark, style};
use crate::args::Output;
use crate::commands::Context;
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::terminal::{Style, bold, dim, styled, text};

/// Shows it.
pub(super) fn run(
    named: &str,
    output: Output,
    connection: &mut Connection,
    context: &mut Context<'_>,
) -> Outcome {
    let id = find(named, connection)?;
    let act = answer!(connection.ask(&Request::Act { id })?, Response::Act { act } => act)?
        .ok_or_else(|| unknown(named))?;
    let objects = answer!(connection.ask(&Request::Objects { id })?, Response::Objects { objects } => objects)?;
    if output.json {
        let mut whole = document(&act);
        if let Some(members) = whole.as_object_mut() {
            members.insert("destination".to_owned(), object(act.destination.as_deref()));
            members.insert(
                "effect_id".to_owned(),
                json!(act.effect.map(|effect| effect.to_string())),
            );
            members.insert(
                "signed".to_owned(),
                objects.as_ref().map_or(Value::Null, signed),
            );
        }
        context.terminal.document(&whole);
        return Ok(());
    }
    show(&act, objects.is_some(), context);
    Ok(())
}

fn show(act: &ActView, signed: bool, context: &mut Context<'_>) {
    let terminal = &mut *context.terminal;
    terminal.line(&[
        bold(name(act)),
        text("   "),
        styled(style(act.state), act.state.name()),
    ]);
    let code = act
        .code
        .map(|code| format!("{} {}", code.number(), code.name()));
    for (label, value) in [
        ("act", Some(act.id.to_string())),
        ("made", Some(act.created_at.to_string())),
        ("changed", Some(act.updated_at.to_string())),
        ("agent", Some(act.agent.clone())),
        ("class", act.class.map(|class| class.name().to_owned())),
        ("to", act.destination.clone()),
        (
            "arguments",
            act.arguments_digest.map(|digest| digest.to_base64url()),
        ),
        ("ticket", act.ticket.map(|ticket| ticket.to_string())),
        ("code", code),
        ("repeats", act.retry_of.map(|earlier| earlier.to_string())),
        (
            "remark",
            Some(remark(act)).filter(|remark| !remark.is_empty()),
        ),
    ] {
        if let Some(value) = value {
            terminal.wrapped(
                &[dim(format!("{label:>12}")), text("  ")],
                &text(escape(&value)),
            );
        }
    }
    if signed {
        terminal.line(&[styled(
            Style::Dim,
            "              what was signed on its way: the same with --json",
        )]);
    }
}

/// Text that the gate wrote as JSON, as JSON again.
fn object(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| {
        serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
    })
}

fn signed(objects: &SignedObjects) -> Value {
    json!({
        "evidence": object(Some(&objects.evidence)),
        "authority": object(Some(&objects.authority)),
        "verification": object(Some(&objects.verification)),
    })
}

/// The act that a text names: its whole id, or how the id of a recent one ends.
pub(crate) fn find(named: &str, connection: &mut Connection) -> Outcome<ActId> {
    if let Ok(id) = named.parse() {
        return Ok(id);
    }
    if named.len() < LEAST {
        let named = escape(named);
        return Err(Stop::usage(format!(
            "`{named}` is too short to name an act; give at least {LEAST} characters"
        )));
    }
    let acts = fetch(connection, None, MOST_ACTS, false)?;
    let fitting = acts
        .iter()
        .map(|act| act.id)
        .filter(|id| id.to_string().ends_with(named));
    match fitting.collect::<Vec<_>>().as_slice() {
        [one] => Ok(*one),
        [] => Err(unknown(named)),
        _ => Err(Stop::usage(format!(
            "`{}` names several acts; give more of it",
            escape(named)
        ))),
    }
}

/// There is no such act.
pub(crate) fn unknown(named: &str) -> Stop {
    Stop::refused(format!("there is no act `{}`", escape(named))).try_this("lychgate acts")
}

/// Fewer characters than this name nothing.
const LEAST: usize = 8;
