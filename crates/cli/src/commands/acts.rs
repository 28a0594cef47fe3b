//! `acts`: what was asked, what became of it, and how often a person was asked.

use std::collections::BTreeSet;
use std::time::Duration;

use lychgate_core::display::escape;
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::{State, Timestamp};
use lychgate_server::protocol::{ActView, MOST_ACTS};
use lychgate_server::{Request, Response};
use serde_json::{Value, json};

mod one;

pub(crate) use self::one::{find, unknown};

use super::Context;
use crate::args::Acts;
use crate::connection::{Connection, answer};
use crate::outcome::Outcome;
use crate::places::now;
use crate::terminal::{Span, Style, ago, bold, count, dim, styled, text};

/// Lists, and goes on when asked to.
pub(crate) fn run(args: &Acts, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    if let Some(named) = &args.act {
        return one::run(named, args.output, &mut connection, context);
    }
    let status = answer!(connection.ask(&Request::Status)?, Response::Status { status } => status)?;
    // Asked for whole, so that the questions of the hour are counted over all states.
    let recent = fetch(&mut connection, None, MOST_ACTS, false)?;
    let questions = questions(&recent, now());
    let acts = fetch(&mut connection, args.state, args.limit, args.follow)?;
    match (args.output.json, args.follow) {
        (true, false) => {
            let list = acts.iter().rev().map(document).collect::<Vec<_>>();
            context.terminal.document(&json!({
                "counts": status.acts, "questions_last_hour": questions, "acts": list,
            }));
        }
        (true, true) => acts
            .iter()
            .rev()
            .for_each(|act| context.terminal.json_line(&document(act))),
        (false, _) => {
            let total = status.acts.values().sum::<u64>();
            let total = count(usize::try_from(total).unwrap_or(usize::MAX), "act", "acts");
            let states = status
                .acts
                .iter()
                .map(|(state, number)| format!("{number} {state}"));
            let states = states.collect::<Vec<_>>().join(" · ");
            context
                .terminal
                .line(&[bold(total), text("  "), dim(states)]);
            context
                .terminal
                .line(&[dim(format!("questions in the last hour: {questions}"))]);
            if !acts.is_empty() {
                context.terminal.gap();
                let mut rows = vec![HEAD.map(dim).to_vec()];
                rows.extend(acts.iter().rev().map(row));
                context.terminal.table(&rows);
            }
            hint(&acts, context);
        }
    }
    while args.follow && !context.terminal.is_gone() {
        let changed = answer!(connection.hear()?, Response::Acts { acts } => acts)?;
        for act in changed.iter().rev() {
            if args.output.json {
                context.terminal.json_line(&document(act));
            } else {
                context.terminal.line(&followed(act));
                let _ = context.terminal.flush();
            }
        }
    }
    Ok(())
}

pub(crate) fn fetch(
    connection: &mut Connection,
    state: Option<State>,
    limit: u32,
    follow: bool,
) -> Outcome<Vec<ActView>> {
    let request = Request::Acts {
        state,
        limit,
        follow,
    };
    answer!(connection.ask(&request)?, Response::Acts { acts } => acts)
}

/// How many questions a person was asked in the hour before `now`: tickets, not the acts that shared them.
fn questions(acts: &[ActView], now: Timestamp) -> usize {
    let asked = acts
        .iter()
        .filter_map(|act| act.ticket)
        .collect::<BTreeSet<_>>();
    asked
        .into_iter()
        .filter(|ticket| now.since(made(*ticket)) < HOUR)
        .count()
}

/// When a ticket was made: its id begins with the time (UUIDv7).
fn made(ticket: TicketId) -> Timestamp {
    let millis = ticket
        .as_bytes()
        .iter()
        .take(6)
        .fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
    Timestamp::from_millis(millis)
}

fn row(act: &ActView) -> Vec<Span> {
    vec![
        styled(style(act.state), act.state.name()),
        text(ago(now().since(act.updated_at))),
        text(name(act)),
        text(act.class.map_or("-", |class| class.name())),
        text(act.code.map_or("-", |code| code.number())),
        dim(act
            .ticket
            .map_or_else(|| "-".to_owned(), |ticket| tail(&ticket.to_string()))),
        dim(handle(&act.id)),
        styled(Style::Yellow, remark(act)),
    ]
}

/// Columns of fixed width: what comes later is not known yet.
fn followed(act: &ActView) -> Vec<Span> {
    vec![
        text("  "),
        styled(style(act.state), format!("{:<20}", act.state.name())),
        text(format!("{:<36}", name(act))),
        text(format!(
            "{:<24}",
            act.class.map_or("-", |class| class.name())
        )),
        text(format!("{:<7}", act.code.map_or("-", |code| code.number()))),
        dim(act.id.to_string()),
        styled(Style::Yellow, format!("  {}", remark(act))),
    ]
}

/// What the state alone does not say.
fn remark(act: &ActView) -> String {
    match act.answered_by {
        _ if act.contradicted => "a late answer contradicts the reconciliation".to_owned(),
        Some(earlier) => format!("given the kept answer of {}", handle(&earlier)),
        None if act.undelivered => "nobody has read its answer".to_owned(),
        None => String::new(),
    }
}

fn name(act: &ActView) -> String {
    match (&act.tool, &act.function) {
        (Some(tool), Some(function)) => format!("{}/{}", escape(tool), escape(function)),
        (Some(tool), None) => format!("{}/?", escape(tool)),
        _ => "?".to_owned(),
    }
}

fn tail(id: &str) -> String {
    id.rsplit_once('-')
        .map_or(id, |(_, tail)| tail)
        .chars()
        .skip(4)
        .collect()
}

/// The random end of an act's id, which `reconcile` takes too.
pub(crate) fn handle(id: &ActId) -> String {
    id.to_string()
        .rsplit_once('-')
        .map(|(_, tail)| tail.to_owned())
        .unwrap_or_default()
}

/// How a state stands out.
pub(crate) fn style(state: State) -> Style {
    match state {
        State::Effected | State::ReconciledEffect | State::ReconciledNoEffect => Style::Green,
        State::Refused | State::Failed => Style::Red,
        State::Escalated | State::Indeterminate | State::InputRequired => Style::Yellow,
        State::Allowed | State::Dispatched => Style::Bold,
        State::Expired | State::Withdrawn => Style::Dim,
    }
}

fn hint(acts: &[ActView], context: &mut Context<'_>) {
    let doubtful = acts.iter().find(|act| act.state == State::Indeterminate);
    let waiting = acts.iter().any(|act| act.state == State::Escalated);
    if waiting || doubtful.is_some() {
        context.terminal.gap();
    }
    if waiting {
        context
            .terminal
            .line(&[dim("What waits for you:  "), text("lychgate pending")]);
    }
    if let Some(act) = doubtful {
        let command = format!(
            "lychgate reconcile {} --effect|--no-effect --reason \"...\"",
            handle(&act.id)
        );
        context.terminal.line(&[
            dim("Once you have looked at the destination:  "),
            text(command),
        ]);
    }
}

fn document(act: &ActView) -> Value {
    json!({
        "id": act.id.to_string(), "state": act.state.name(), "created_at": act.created_at.to_string(),
        "updated_at": act.updated_at.to_string(), "agent": act.agent, "tool": act.tool, "function": act.function,
        "class": act.class.map(|class| class.name()), "code": act.code.map(|code| code.number()),
        "code_name": act.code.map(|code| code.name()), "ticket": act.ticket.map(|ticket| ticket.to_string()),
        "arguments_digest": act.arguments_digest.map(|digest| digest.to_base64url()),
        "retry_of": act.retry_of.map(|act| act.to_string()), "undelivered": act.undelivered,
        "answered_by": act.answered_by.map(|act| act.to_string()), "contradicted": act.contradicted,
    })
}

const HEAD: [&str; 8] = [
    "state", "age", "function", "class", "code", "ticket", "act", "",
];
const HOUR: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn questions_are_tickets_of_the_last_hour() {
        let now = Timestamp::from_millis(1_787_766_001_000);
        let ticket =
            |ago: u64, one| TicketId::new(Timestamp::from_millis(now.as_millis() - ago), [one; 10]);
        let act = |ticket| ActView {
            id: ActId::new(now, [1; 10]),
            state: State::Effected,
            created_at: now,
            updated_at: now,
            agent: "a".to_owned(),
            tool: None,
            function: None,
            class: None,
            arguments_digest: None,
            destination: None,
            effect: None,
            retry_of: None,
            ticket,
            code: None,
            answered_by: None,
            contradicted: false,
            undelivered: false,
        };
        let shared = ticket(1_000, 1);
        let acts = [
            act(Some(shared)),
            act(Some(shared)),
            act(Some(ticket(3_599_000, 2))),
            act(Some(ticket(3_700_000, 3))),
            act(None),
        ];
        assert_eq!(questions(&acts, now), 2);
        let mut repeat = act(None);
        assert_eq!(remark(&repeat), "");
        repeat.answered_by = Some(ActId::new(now, [0xab; 10]));
        assert_eq!(remark(&repeat), "given the kept answer of abababababab");
    }
}
