//! `pending`: what waits for a person, and how to look at it.

use lychgate_core::ConsequenceClass;
use lychgate_core::display::{escape, escape_within};
use lychgate_core::id::TicketId;
use lychgate_server::protocol::{MOST_TICKETS, TicketSummary, Wanted};
use lychgate_server::{Request, Response};
use serde_json::json;

use super::Context;
use crate::args::Pending;
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::places::now;
use crate::terminal::{Span, Style, ago, bold, count, dim, styled, text};

/// Lists.
pub(crate) fn run(args: &Pending, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    let wanted = wanted(args, &mut connection)?;
    let all = if args.output.json {
        u64::MAX
    } else {
        MOST_ROWS
    };
    let page = fetch(&mut connection, wanted, args.limit.unwrap_or(all))?;
    if args.output.json {
        let list = page.tickets.iter().map(document).collect::<Vec<_>>();
        context.terminal.document(&json!({
            "pending": list, "more": page.more, "waiting": page.waiting,
        }));
        return Ok(());
    }
    show(args, &page, context);
    Ok(())
}

/// What a list shows.
struct Page {
    tickets: Vec<TicketSummary>,
    more: bool,
    waiting: u64,
}

fn wanted(args: &Pending, connection: &mut Connection) -> Outcome<Wanted> {
    let (tool, function) = match args.tool.as_deref().map(|tool| tool.split_once('/')) {
        None => (None, None),
        Some(Some((tool, function))) => (Some(tool.to_owned()), Some(function.to_owned())),
        Some(None) => (args.tool.clone(), None),
    };
    let class = match args.class.as_deref() {
        None => None,
        Some(word) => Some(
            ConsequenceClass::from_name(&word.to_uppercase()).ok_or_else(|| {
                Stop::usage(format!("`{}` is no consequence class", escape(word)))
            })?,
        ),
    };
    let after = match args.after.as_deref() {
        None => None,
        // A ticket that has been decided meanwhile is still a place in the list.
        Some(id) => Some(
            id.parse()
                .or_else(|_| super::decide::named(connection, id))?,
        ),
    };
    Ok(Wanted {
        after,
        newest_first: !args.oldest,
        tool,
        function,
        class,
        limit: 0,
    })
}

/// At most `most` tickets, page by page.
fn fetch(connection: &mut Connection, mut wanted: Wanted, most: u64) -> Outcome<Page> {
    let mut page = Page {
        tickets: Vec::new(),
        more: true,
        waiting: 0,
    };
    let mut left = most.max(1);
    while page.more && left > 0 {
        wanted.limit = left.min(MOST_TICKETS as u64);
        let request = Request::Pending {
            wanted: wanted.clone(),
        };
        let (tickets, more) = answer!(connection.ask(&request)?, Response::Pending { tickets, more, waiting } => {
            page.waiting = waiting;
            (tickets, more)
        })?;
        wanted.after = tickets.last().map(|ticket| ticket.id);
        left = left.saturating_sub(tickets.len() as u64);
        // A gate that gives nothing new has nothing more to give.
        page.more = more && !tickets.is_empty();
        page.tickets.extend(tickets);
    }
    Ok(page)
}

fn show(args: &Pending, page: &Page, context: &mut Context<'_>) {
    let terminal = &mut *context.terminal;
    let filtered = args.tool.is_some() || args.class.is_some() || args.after.is_some();
    let Some(last) = page.tickets.last() else {
        terminal.line(&[text(match (filtered, page.waiting) {
            (true, 1..) => "Nothing of that kind waits for you.",
            _ => "Nothing waits for you.",
        })]);
        return;
    };
    let waiting = usize::try_from(page.waiting).unwrap_or(usize::MAX);
    let order = if args.oldest { "oldest" } else { "newest" };
    let shown = page.tickets.len();
    let part = if shown < waiting {
        format!("   {shown} shown, the {order} first")
    } else {
        String::new()
    };
    terminal.line(&[
        bold(count(waiting, "call waits for you", "calls wait for you")),
        dim(part),
    ]);
    terminal.gap();
    let ids = page
        .tickets
        .iter()
        .map(|ticket| ticket.id)
        .collect::<Vec<_>>();
    let handles = handles(&ids);
    let mut rows = vec![
        ["ticket", "age", "left", "tool", "class", "where to"]
            .map(dim)
            .to_vec(),
    ];
    let listed = page.tickets.iter().zip(&handles);
    rows.extend(listed.map(|(ticket, handle)| row(ticket, handle)));
    terminal.table(&rows);
    terminal.gap();
    if page.more {
        terminal.line(&[
            dim("There are more:                   "),
            text(format!("lychgate pending --after {}", last.id)),
        ]);
    }
    let first = handles.first().map(String::as_str).unwrap_or_default();
    terminal.line(&[
        dim("Look at one, then say yes or no:  "),
        text(format!("lychgate approve {first}")),
    ]);
    terminal.line(&[
        dim("                                  "),
        text(format!("lychgate deny {first}")),
    ]);
}

/// For each ticket the last characters of its id that name no other one; at least eight.
pub(crate) fn handles(ids: &[TicketId]) -> Vec<String> {
    let full = ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    // Read from the end, those that share most of it stand side by side.
    let mut order = (0..full.len()).collect::<Vec<_>>();
    let reversed = full
        .iter()
        .map(|id| id.bytes().rev().collect::<Vec<_>>())
        .collect::<Vec<_>>();
    order.sort_unstable_by_key(|at| reversed.get(*at));
    let shared = |one: usize, other: usize| {
        let (one, other) = (reversed.get(one), reversed.get(other));
        one.zip(other).map_or(0, |(one, other)| {
            one.iter().zip(other).take_while(|(a, b)| a == b).count()
        })
    };
    let mut needed = vec![LEAST_HANDLE; full.len()];
    for pair in order.windows(2) {
        if let [one, other] = *pair {
            let length = shared(one, other) + 1;
            for at in [one, other] {
                if let Some(needed) = needed.get_mut(at) {
                    *needed = (*needed).max(length);
                }
            }
        }
    }
    full.iter()
        .zip(needed)
        .map(|(id, length)| {
            id.get(id.len().saturating_sub(length)..)
                .unwrap_or(id)
                .to_owned()
        })
        .collect()
}

fn row(ticket: &TicketSummary, handle: &str) -> Vec<Span> {
    let now = now();
    let more = match ticket.more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let waits = if ticket.waiting { "" } else { " (caller gone)" };
    vec![
        styled(Style::Bold, handle),
        text(ago(now.since(ticket.created_at))),
        text(ago(ticket.expires_at.since(now))),
        text(format!(
            "{}/{}",
            escape_within(&ticket.tool, 40),
            escape_within(&ticket.function, 40)
        )),
        text(escape(&ticket.class)),
        text(format!("{}{more}{waits}", escape_within(&ticket.reach, 60))),
    ]
}

/// A ticket as JSON. The arguments are for the approver's eyes and stay out of lists.
fn document(ticket: &TicketSummary) -> serde_json::Value {
    json!({
        "id": ticket.id.to_string(), "subject": ticket.subject.to_base64url(),
        "created_at": ticket.created_at.to_string(), "expires_at": ticket.expires_at.to_string(),
        "waiting": ticket.waiting, "act": ticket.act.to_string(), "tool": ticket.tool,
        "function": ticket.function, "class": ticket.class, "reach": ticket.reach, "more_targets": ticket.more,
        "arguments_digest": ticket.arguments_digest, "code": ticket.code, "why": ticket.why,
    })
}

/// A terminal's list ends here, unless more is asked for.
const MOST_ROWS: u64 = 50;
const LEAST_HANDLE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use lychgate_core::Timestamp;

    #[test]
    fn a_handle_names_one_ticket() {
        let at = |ms, last| {
            let mut random = [7; 10];
            random[9] = last;
            TicketId::new(Timestamp::from_millis(ms), random)
        };
        let all = [
            at(1_787_766_001_000, 1),
            at(1_787_766_002_000, 1),
            at(1_787_766_003_000, 2),
        ];
        let handles = handles(&all);
        assert_eq!(handles[2], "07070702");
        assert!(handles[0].len() > 8);
        for (id, handle) in all.iter().zip(&handles) {
            let named = |other: &&TicketId| other.to_string().ends_with(handle);
            assert_eq!(all.iter().filter(named).collect::<Vec<_>>(), [id]);
        }
        assert_eq!(super::handles(&all[..1]), ["07070701"]);
    }

    #[test]
    fn ten_thousand_tickets_are_named_at_once() {
        let ids = (0..10_000_u32)
            .map(|number| {
                let mut random = [7; 10];
                random[2..6].copy_from_slice(&number.to_be_bytes());
                TicketId::new(Timestamp::from_millis(1_787_766_001_000), random)
            })
            .collect::<Vec<_>>();
        let handles = handles(&ids);
        let unique = handles.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(unique.len(), ids.len());
    }
}
