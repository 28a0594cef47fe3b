//! `reconcile`: a person's word on an act whose outcome is unknown (PROFILE §5).

use lychgate_core::State;
use lychgate_core::act::Version;
use lychgate_core::display::escape;
use lychgate_core::receipt::Approver;
use lychgate_keys::verdict::{Reason, ReconciliationVerdict};
use lychgate_server::protocol::{ActView, MOST_ACTS};
use lychgate_server::{Request, Response};
use serde_json::json;

use super::{Context, acts};
use crate::approver;
use crate::args::Reconcile;
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::places::now;
use crate::terminal::{Style, ago, bold, dim, styled, text};

/// Signs and sends the verdict.
pub(crate) fn run(args: &Reconcile, context: &mut Context<'_>) -> Outcome {
    let reason = Reason::try_from(args.reason.as_str())
        .map_err(|fault| Stop::usage(format!("--reason: {fault}")))?;
    let mut connection = Connection::open(context)?;
    let act = find(&args.act, &mut connection)?;
    if act.state != State::Indeterminate && !(act.state == State::Effected && act.undelivered) {
        let message = format!("act `{}` is `{}`, not in doubt", act.id, act.state.name());
        return Err(Stop::refused(message).try_this("lychgate acts --state indeterminate"));
    }
    if !args.output.json {
        let word = |part: &Option<String>| escape(part.as_deref().unwrap_or("?"));
        let terminal = &mut *context.terminal;
        terminal.line(&[bold(format!("{}/{}", word(&act.tool), word(&act.function)))]);
        terminal.line(&[dim(format!(
            "{}, since {}",
            act.state.name(),
            ago(now().since(act.updated_at))
        ))]);
        terminal.line(&[text(format!("  to      {}", word(&act.destination)))]);
        let verdict = if args.effect {
            "it had its effect"
        } else {
            "it had no effect; an equal call may be made"
        };
        terminal.line(&[text(format!("  verdict {verdict}"))]);
        terminal.line(&[text(format!("  because {}", escape(&args.reason)))]);
        let _ = terminal.flush();
    }
    let request = verdict(args, reason, &act, &mut connection, context)?;
    let state = answer!(connection.ask(&request)?, Response::Reconciled { state } => state)?;
    if args.output.json {
        context
            .terminal
            .document(&json!({ "id": act.id.to_string(), "state": state.name() }));
    } else {
        context.terminal.line(&[
            styled(Style::Green, "✓ "),
            text(format!("{} is {}", act.id, state.name())),
        ]);
    }
    Ok(())
}

/// The person's word, signed where there is a key to sign it with.
fn verdict(
    args: &Reconcile,
    reason: Reason,
    act: &ActView,
    connection: &mut Connection,
    context: &Context<'_>,
) -> Outcome<Request> {
    let status = answer!(connection.ask(&Request::Status)?, Response::Status { status } => status)?;
    if status.approver == Approver::None {
        return Ok(Request::ReconcileUnsigned {
            id: act.id,
            effect: args.effect,
            reason,
        });
    }
    let key = approver::open(
        &context.places.approver()?,
        args.passphrase.passphrase_fd.into(),
    )?;
    let challenge = answer!(connection.ask(&Request::Challenge)?, Response::Challenge { challenge } => challenge)?;
    let verdict = approver::sign(&key, |mark| ReconciliationVerdict {
        version: Version::V1,
        object_type: Default::default(),
        candidate_act_id: act.id,
        effect: args.effect,
        reason,
        at: now(),
        challenge,
        mark,
    })?;
    Ok(Request::Reconcile { verdict })
}

/// The act that a text names: its whole id, or how the id of one in doubt ends.
fn find(named: &str, connection: &mut Connection) -> Outcome<ActView> {
    let none = || {
        let message = format!("there is no act in doubt `{}`", escape(named));
        Stop::refused(message).try_this("lychgate acts --state indeterminate")
    };
    let id = match named.parse() {
        Ok(id) => id,
        Err(_) if named.len() < LEAST => {
            let message = format!(
                "`{}` is too short to name an act; give at least {LEAST} characters",
                escape(named)
            );
            return Err(Stop::usage(message));
        }
        Err(_) => {
            let mut acts = acts::fetch(connection, Some(State::Indeterminate), MOST_ACTS, false)?;
            acts.extend(acts::fetch(
                connection,
                Some(State::Effected),
                MOST_ACTS,
                false,
            )?);
            let fitting = acts
                .iter()
                .filter(|act| act.id.to_string().ends_with(named))
                .map(|act| act.id);
            match fitting.collect::<Vec<_>>().as_slice() {
                [one] => *one,
                [] => return Err(none()),
                _ => {
                    return Err(Stop::usage(format!(
                        "`{}` names several acts; give more of it",
                        escape(named)
                    )));
                }
            }
        }
    };
    answer!(connection.ask(&Request::Act { id })?, Response::Act { act } => act)?.ok_or_else(none)
}

/// Fewer characters than this name nothing.
const LEAST: usize = 8;
