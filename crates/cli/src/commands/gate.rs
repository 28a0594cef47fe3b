//! `gate`: in the foreground, `gate stop`, `gate status`.

use std::time::Duration;

use lychgate_core::receipt::{Approver, Isolation};
use lychgate_server::client::ClientFault;
use lychgate_server::protocol::Status;
use lychgate_server::{Exit, Request, Response, RunOptions};
use serde_json::json;

use super::Context;
use crate::args::{Gate, GateCommand, Output};
use crate::connection::{self, Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::places::{anchors, home, shown, state_fault};
use crate::terminal::{Span, Style, ago, dim, styled, text};

/// Runs one of them.
pub(crate) fn run(args: &Gate, context: &mut Context<'_>) -> Outcome {
    match &args.what {
        None => serve(args.background, context),
        Some(GateCommand::Stop) => stop(context),
        Some(GateCommand::Status(output)) => status(*output, context),
    }
}

fn serve(background: bool, context: &mut Context<'_>) -> Outcome {
    let state = context.places.folder()?;
    state.check().map_err(state_fault)?;
    if !background {
        let place = shown(&context.places.state);
        context.terminal.note(&[text(format!(
            "gate on {place}; Ctrl-C or `lychgate gate stop` ends it"
        ))]);
        context
            .terminal
            .note(&[dim(format!("log: {}", shown(&state.log())))]);
    }
    let options = RunOptions {
        background,
        config_file: Some(context.places.config.clone()),
        home: home(),
        anchors: anchors(),
        ..RunOptions::default()
    };
    match lychgate_server::run(&state, &options) {
        Ok(Exit::Stopped) => Ok(()),
        Ok(Exit::Broken) => Err(Stop::fault(
            "the store could no longer be believed, so the gate ended; nothing was permitted after that",
        )),
        Err(fault) => Err(connection::with_status(fault.status(), &fault)),
    }
}

fn stop(context: &mut Context<'_>) -> Outcome {
    let mut connection = match Connection::to_running(context) {
        Ok(connection) => connection,
        Err(ClientFault::NotRunning { .. }) => {
            context.terminal.line(&[text("No gate runs.")]);
            return Ok(());
        }
        Err(fault) => return Err(connection::stop(fault)),
    };
    let status = answer!(connection.ask(&Request::Status)?, Response::Status { status } => status)?;
    answer!(connection.ask(&Request::Stop)?, Response::Stopping => ())?;
    if !ends(status.pid) {
        return Err(Stop::fault(format!(
            "the gate (process {}) was told to end and has not yet",
            status.pid
        )));
    }
    context
        .terminal
        .line(&[styled(Style::Green, "✓ "), text("the gate has ended")]);
    Ok(())
}

/// Waits until a process has ended; `false` when it still has not after a while.
fn ends(pid: u32) -> bool {
    for _ in 0..LOOKS {
        // A process that nobody has waited for yet stays in the list as `Z`.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        if matches!(state, None | Some('Z' | 'X')) {
            return true;
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "another process's end is no event of ours; the wait is bounded"
        )]
        std::thread::sleep(PAUSE);
    }
    false
}

fn status(output: Output, context: &mut Context<'_>) -> Outcome {
    let mut connection = match Connection::to_running(context) {
        Ok(connection) => connection,
        Err(ClientFault::NotRunning { .. }) if output.json => {
            context.terminal.document(&json!({ "running": false }));
            return Err(Stop::refused(""));
        }
        Err(ClientFault::NotRunning { .. }) => {
            return Err(Stop::refused(
                "no gate runs; the next command that needs one starts it",
            ));
        }
        Err(fault) => return Err(connection::stop(fault)),
    };
    let status = answer!(connection.ask(&Request::Status)?, Response::Status { status } => status)?;
    if output.json {
        context.terminal.document(&document(&status));
    } else {
        show(&status, context);
    }
    Ok(())
}

fn show(status: &Status, context: &mut Context<'_>) {
    let epochs = &status.epochs;
    let acts = status
        .acts
        .iter()
        .map(|(state, number)| format!("{number} {state}"))
        .collect::<Vec<_>>();
    let (isolation, approver) = standing(status);
    let joined = |words: &[String], none: &str| {
        if words.is_empty() {
            none.to_owned()
        } else {
            words.join(", ")
        }
    };
    let pending = match status.pending {
        0 => text("0"),
        number => styled(Style::Yellow, format!("{number}   lychgate pending")),
    };
    let row = |label: &str, value: Span| vec![dim(label), value];
    context.terminal.line(&[
        styled(Style::Green, "● "),
        text(format!(
            "running for {}, process {}",
            ago(status.now.since(status.started_at)),
            status.pid
        )),
    ]);
    context.terminal.table(&[
        row("gate", text(status.gate_id)),
        row("state", text(shown(&context.places.state))),
        row("profile", text(&status.profile)),
        row("policy digest", text(status.policy_digest.to_base64url())),
        row(
            "epochs",
            text(format!(
                "policy {} · authority {} · revocation {}",
                epochs.policy_epoch, epochs.authority_epoch, epochs.revocation_epoch
            )),
        ),
        row("servers", text(joined(&status.servers, "none yet"))),
        row("clients", text(status.clients)),
        row("acts", text(joined(&acts, "none yet"))),
        row("waiting for you", pending),
        row("receipts", text(status.receipts)),
        row("isolation", text(isolation)),
        row("approver", text(approver)),
    ]);
}

fn standing(status: &Status) -> (&'static str, &'static str) {
    let isolation = match status.isolation {
        Isolation::SameUser => "same-user: tampering with the gate's files is detected at best",
        Isolation::SeparateUser => "separate-user",
    };
    let approver = match status.approver {
        Approver::Key => "key under a passphrase",
        Approver::None => "none: what would ask is denied",
    };
    (isolation, approver)
}

fn document(status: &Status) -> serde_json::Value {
    let epochs = &status.epochs;
    json!({
        "running": true, "gate_id": status.gate_id.to_string(), "pid": status.pid, "program": status.program,
        "started_at": status.started_at.to_string(),
        "uptime_seconds": status.now.since(status.started_at).as_secs(),
        "epochs": {
            "policy": epochs.policy_epoch, "authority": epochs.authority_epoch, "revocation": epochs.revocation_epoch,
        },
        "policy_digest": status.policy_digest.to_base64url(), "profile": status.profile, "servers": status.servers,
        "isolation": status.isolation, "approver": status.approver, "clients": status.clients,
        "pending": status.pending, "acts": status.acts, "receipts": status.receipts,
    })
}

/// Together ten seconds: children of the gate get their time to end.
const LOOKS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);
