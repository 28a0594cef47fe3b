//! `epochs`: where the epochs stand, and how far each control has come, end by end. What nobody saw is said as such.

use lychgate_core::control::ControlEnd;
use lychgate_core::display::escape_within;
use lychgate_server::protocol::{ControlAnswer, ControlRequest, ControlView, EndView, EpochsView};
use serde_json::json;

use super::Context;
use super::revoke::ask;
use crate::args::Epochs;
use crate::connection::{Connection, answer};
use crate::outcome::Outcome;
use crate::terminal::{Span, Style, bold, dim, styled, text};

/// Shows them.
pub(crate) fn run(args: &Epochs, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    let answered = ask(&mut connection, ControlRequest::Epochs)?;
    let view = answer!(answered, ControlAnswer::Epochs { epochs } => epochs)?;
    if args.output.json {
        context.terminal.document(&document(&view));
        return Ok(());
    }
    let terminal = &mut *context.terminal;
    let epochs = &view.epochs;
    terminal.line(&[text(format!(
        "policy {} · authority {} · revocation {} · purpose {}",
        epochs.policy_epoch, epochs.authority_epoch, epochs.revocation_epoch, view.purpose_epoch
    ))]);
    for subject in &view.revoked {
        let subject = escape_within(subject, 200);
        terminal.line(&[styled(Style::Red, "revoked "), text(subject)]);
    }
    for connected in &view.connections {
        terminal.line(&[dim(format!(
            "connected {} to {}",
            connected.holder, connected.server
        ))]);
    }
    for control in &view.controls {
        terminal.gap();
        terminal.line(&[
            bold(format!("control {}", control.number)),
            text(format!(" {} ", word(control))),
            dim(format!("emitted {}", control.emitted)),
        ]);
        terminal.line(&[dim(format!("  {}", escape_within(&control.what, 200)))]);
        if control.ends.is_empty() {
            terminal.line(&[dim("  nobody was connected")]);
        }
        let rows: Vec<_> = control.ends.iter().map(row).collect();
        terminal.table(&rows);
    }
    Ok(())
}

fn word(control: &ControlView) -> String {
    serde_json::to_value(control.kind)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn row(end: &EndView) -> Vec<Span> {
    let (style, state) = state(end);
    vec![
        text(format!("  {}", end.end.name())),
        text(escape_within(&end.sink, 80)),
        dim(end.holder.to_string()),
        styled(style, state),
    ]
}

/// What is known of an end, and how much of a worry that is.
fn state(end: &EndView) -> (Style, String) {
    let stage = end
        .stage
        .map_or("", lychgate_core::control::ControlStage::name);
    match (end.finding, end.stage) {
        (Some(finding), _) => (Style::Red, format!("{} {stage}", finding.name())),
        (None, Some(_)) => (Style::Yellow, format!("not {stage} yet")),
        (None, None) if end.end == ControlEnd::Client => (Style::Green, "observed".to_owned()),
        (None, None) => (Style::Green, "enforced".to_owned()),
    }
}

fn document(view: &EpochsView) -> serde_json::Value {
    let time = |at: Option<lychgate_core::Timestamp>| at.map(|at| at.to_string());
    let end = |end: &EndView| {
        json!({
            "end": end.end.name(), "holder_id": end.holder.to_string(), "sink_id": end.sink,
            "received": time(end.received), "enforced": time(end.enforced), "observed": time(end.observed),
            "acknowledged": end.stage.is_none() && end.finding.is_none(),
            "stage": end.stage.map(lychgate_core::control::ControlStage::name),
            "finding": end.finding.map(lychgate_core::control::ControlFinding::name),
        })
    };
    let controls = view.controls.iter().map(|control| {
        json!({
            "number": control.number, "kind": word(control), "emitted": control.emitted.to_string(),
            "what": control.what, "ends": control.ends.iter().map(end).collect::<Vec<_>>(),
        })
    });
    let connections = view.connections.iter();
    let connections =
        connections.map(|one| json!({ "holder_id": one.holder.to_string(), "server": one.server }));
    json!({
        "epochs": {
            "policy": view.epochs.policy_epoch, "authority": view.epochs.authority_epoch,
            "revocation": view.epochs.revocation_epoch, "purpose": view.purpose_epoch,
        },
        "policy_digest": view.policy_digest.to_base64url(), "revoked": view.revoked,
        "connections": connections.collect::<Vec<_>>(), "controls": controls.collect::<Vec<_>>(),
    })
}
