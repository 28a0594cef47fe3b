//! `ledger prove`: one receipt with all it takes to believe it, in a file that can be mailed.

use lychgate_core::Timestamp;
use lychgate_core::display::escape;
use lychgate_core::id::ActId;
use lychgate_core::receipt::Receipt;
use lychgate_server::protocol::Bytes;
use lychgate_server::{Request, Response};

use super::show::{kind, no_such};
use super::source::{Kept, Source};
use super::{anchor, receipt};
use crate::args::LedgerProve;
use crate::commands::{Context, acts};
use crate::connection::{Connection, answer};
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::{absolute, shown};
use crate::terminal::{Style, dim, styled, text};
use crate::told;

/// Writes the file.
pub(super) fn run(args: &LedgerProve, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    let (index, others) = match args.what.parse::<u64>() {
        Ok(index) => (index, Vec::new()),
        Err(_) => of_act(args, &mut connection)?,
    };
    // One that a witness has seen is worth more than the newest.
    let head = anchor::cosigned(index, context)?;
    let request = Request::Proof {
        index,
        open: args.open,
        head: head.map(|head| Bytes(head.into_bytes())),
    };
    let proof = answer!(connection.ask(&request)?, Response::Proof { proof } => proof.0)?;
    let bytes = [&proof[..], b"\n"].concat();
    match &args.out {
        Some(path) => files::write(&absolute(path)?, &bytes)?,
        None => context.terminal.bytes(&bytes),
    }
    told_about(index, &others, args, &mut Source::Gate(connection), context)
}

/// What was written, to standard error: the file may be on standard output.
fn told_about(
    index: u64,
    others: &[(u64, Receipt)],
    args: &LedgerProve,
    source: &mut Source,
    context: &mut Context<'_>,
) -> Outcome {
    let one = source.records(index, 1)?.into_iter().next();
    let said = one.and_then(|one| receipt(&one.bytes?));
    let said = said.map_or("", |receipt| told::sentence(&receipt));
    let terminal = &mut *context.terminal;
    let name = args.out.as_deref().map_or("FILE".to_owned(), shown);
    terminal.note(&[
        styled(Style::Green, "✓ "),
        text(format!("record {index}: {said}")),
    ]);
    for (other, receipt) in others {
        terminal.note(&[dim(format!(
            "  record {other} is of this act too: {}",
            kind(receipt)
        ))]);
    }
    terminal.note(&[
        dim("  its reader:  "),
        text(format!("lychgate verify {name} --trust trust.json")),
    ]);
    if !args.open {
        terminal.note(&[dim(
            "  Where it went and its arguments' digest stay closed; --open shows them to the reader.",
        )]);
    }
    Ok(())
}

/// The last record of an act, and its other ones.
fn of_act(args: &LedgerProve, connection: &mut Connection) -> Outcome<(u64, Vec<(u64, Receipt)>)> {
    let id = acts::find(&args.what, connection)?;
    let act = answer!(connection.ask(&Request::Act { id })?, Response::Act { act } => act)?;
    let act = act.ok_or_else(|| acts::unknown(&args.what))?;
    let mut all = Vec::new();
    let mut at = first_at(act.created_at, connection)?;
    'pages: loop {
        let page = page(at, u32::MAX, connection)?;
        if page.is_empty() {
            break;
        }
        at += page.len() as u64;
        for one in page {
            let Some(receipt) = one.bytes.as_deref().and_then(receipt) else {
                continue;
            };
            if receipt.at.as_millis() > act.updated_at.as_millis() + SLACK {
                break 'pages;
            }
            if is_of(&receipt, id) {
                all.push((one.index, receipt));
            }
        }
    }
    let (last, _) = all.pop().ok_or_else(|| {
        let named = escape(&args.what);
        Stop::refused(format!(
            "no receipt of `{named}` is here; it may be archived"
        ))
    })?;
    Ok((last, all))
}

fn is_of(receipt: &Receipt, id: ActId) -> bool {
    let act = receipt.act.as_ref();
    act.is_some_and(|act| act.candidate_act_id == id)
}

/// The first record that may be as late as this: times in the record grow, but for a moment's disorder.
fn first_at(time: Timestamp, connection: &mut Connection) -> Outcome<u64> {
    let ledger = answer!(connection.ask(&Request::Ledger)?, Response::Ledger { ledger } => ledger)?;
    let early = time.as_millis().saturating_sub(SLACK);
    let (mut low, mut high) = (0, ledger.size);
    while low < high {
        let middle = low + (high - low) / 2;
        let one = page(middle, 1, connection)?.into_iter().next();
        let one = one.ok_or_else(|| no_such(middle, ledger.size))?;
        // Archived ones are the oldest.
        let at = one.bytes.as_deref().and_then(receipt);
        let before = at.is_none_or(|receipt| receipt.at.as_millis() < early);
        if before {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn page(from: u64, limit: u32, connection: &mut Connection) -> Outcome<Vec<Kept>> {
    super::source::from_gate(from, limit, connection)
}

/// How far apart in time two records may stand in the wrong order, in milliseconds.
const SLACK: u64 = 5_000;
