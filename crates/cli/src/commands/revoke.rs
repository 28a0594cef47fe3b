//! `revoke`: what is named runs no more; with `--undo` it may again (PROFILE §6 EF-062).

use lychgate_core::Subject;
use lychgate_core::act::Version;
use lychgate_core::display::escape;
use lychgate_core::receipt::Approver;
use lychgate_keys::verdict::{Reason, RestorationVerdict};
use lychgate_server::protocol::{ControlAnswer, ControlRequest};
use lychgate_server::{Request, Response};
use serde_json::json;

use super::Context;
use crate::approver;
use crate::args::Revoke;
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::places::now;
use crate::terminal::{Style, dim, styled, text};

/// Revokes, or takes it back.
pub(crate) fn run(args: &Revoke, context: &mut Context<'_>) -> Outcome {
    let subjects = args.subjects().map_err(|named| {
        Stop::usage(format!(
            "{} names nothing that could be revoked",
            escape(&named)
        ))
    })?;
    let reason = args.reason.as_deref().map(Reason::try_from).transpose();
    let reason = reason.map_err(|fault| Stop::usage(format!("--reason: {fault}")))?;
    let mut connection = Connection::open(context)?;
    let shown: Vec<String> = subjects.iter().map(ToString::to_string).collect();
    let (number, withdrawn) = if args.undo {
        let request = restoration(args, subjects, reason, &mut connection, context)?;
        let number =
            answer!(ask(&mut connection, request)?, ControlAnswer::Restored { number } => number)?;
        (number, 0)
    } else {
        let request = ControlRequest::Revoke {
            subjects,
            reason,
            force: args.force,
        };
        answer!(ask(&mut connection, request)?, ControlAnswer::Revoked { number, withdrawn } => (number, withdrawn))?
    };
    if args.output.json {
        context.terminal.document(&json!({
            "control": number, "undone": args.undo, "subjects": shown, "tickets_withdrawn": withdrawn,
        }));
        return Ok(());
    }
    let word = if args.undo {
        "may run again"
    } else {
        "is revoked"
    };
    for subject in shown {
        context.terminal.line(&[
            styled(Style::Green, "✓ "),
            text(format!("{} {word}", escape(&subject))),
        ]);
    }
    if withdrawn > 0 {
        context
            .terminal
            .line(&[text(format!("  {withdrawn} waiting for you withdrawn"))]);
    }
    context.terminal.line(&[dim(format!(
        "  control {number}; who has taken note: lychgate epochs"
    ))]);
    Ok(())
}

/// Asks one thing of the rules.
pub(super) fn ask(connection: &mut Connection, control: ControlRequest) -> Outcome<ControlAnswer> {
    answer!(connection.ask(&Request::Control { control })?, Response::Control { answer } => answer)
}

fn restoration(
    args: &Revoke,
    subjects: Vec<Subject>,
    reason: Option<Reason>,
    connection: &mut Connection,
    context: &Context<'_>,
) -> Outcome<ControlRequest> {
    let reason = reason.ok_or_else(|| Stop::usage("`--undo` wants a `--reason`"))?;
    let status = answer!(connection.ask(&Request::Status)?, Response::Status { status } => status)?;
    if status.approver == Approver::None {
        return Ok(ControlRequest::RestoreUnsigned { subjects, reason });
    }
    let source = args.passphrase.passphrase_fd.into();
    let key = approver::open(&context.places.approver()?, source)?;
    let challenge = answer!(connection.ask(&Request::Challenge)?, Response::Challenge { challenge } => challenge)?;
    let verdict = approver::sign(&key, |mark| RestorationVerdict {
        version: Version::V1,
        object_type: Default::default(),
        subjects,
        reason,
        at: now(),
        challenge,
        mark,
    })?;
    Ok(ControlRequest::Restore { verdict })
}
