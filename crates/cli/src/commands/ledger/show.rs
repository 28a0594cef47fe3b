//! `ledger show`: the record, line by line or one receipt whole.

use lychgate_core::digest::b64;
use lychgate_core::receipt::{Receipt, ReceiptKind};
use serde_json::{Value, json};

use super::receipt;
use super::source::{Kept, Source};
use crate::args::LedgerShow;
use crate::commands::Context;
use crate::commands::acts::{handle, style};
use crate::outcome::{Outcome, Stop};
use crate::terminal::{Span, Style, bold, count, dim, styled, text};
use crate::told;

/// Lists, or shows one.
pub(super) fn run(args: &LedgerShow, context: &mut Context<'_>) -> Outcome {
    let mut source = Source::open(context)?;
    let ledger = source.view()?;
    if let Some(index) = args.index {
        let one = source.records(index, 1)?.into_iter().next();
        let one = one.filter(|one| one.index == index);
        let one = one.ok_or_else(|| no_such(index, ledger.size))?;
        return show(&one, args.output.json, context);
    }
    let limit = u64::from(args.limit);
    let from = args
        .from
        .unwrap_or_else(|| ledger.size.saturating_sub(limit));
    let to = from.saturating_add(limit).min(ledger.size);
    let mut at = from;
    let mut lines = Vec::new();
    while at < to {
        let left = u32::try_from(to - at).unwrap_or(u32::MAX);
        let page = source.records(at, left)?;
        if page.is_empty() {
            break;
        }
        at += page.len() as u64;
        lines.extend(page);
    }
    if args.output.json {
        let records = lines.iter().map(document).collect::<Vec<_>>();
        context.terminal.document(&json!({
            "log": ledger.origin, "size": ledger.size, "head": ledger.head, "records": records,
        }));
        return Ok(());
    }
    let size = usize::try_from(ledger.size).unwrap_or(usize::MAX);
    let terminal = &mut *context.terminal;
    terminal.line(&[
        bold(count(size, "record", "records")),
        text("  "),
        dim(&ledger.origin),
    ]);
    if !lines.is_empty() {
        terminal.gap();
        let mut rows = vec![HEAD.map(dim).to_vec()];
        rows.extend(lines.iter().map(row));
        terminal.table(&rows);
        terminal.gap();
        let last = lines.last().map_or(0, |line| line.index);
        terminal.line(&[
            dim("One whole:  "),
            text(format!("lychgate ledger show {last}")),
            dim("    To mail it:  "),
            text(format!("lychgate ledger prove {last} > receipt.json")),
        ]);
    }
    Ok(())
}

fn show(one: &Kept, json: bool, context: &mut Context<'_>) -> Outcome {
    if json {
        context.terminal.document(&document(one));
        return Ok(());
    }
    let terminal = &mut *context.terminal;
    let number = format!("record {}: ", one.index);
    match one.bytes.as_deref().map(receipt) {
        Some(Some(receipt)) => {
            terminal.line(&[text(number), bold(told::sentence(&receipt))]);
            told::show(&receipt, &[], terminal);
        }
        Some(None) => terminal.line(&[text(number), styled(Style::Red, "it is no receipt")]),
        None => terminal.line(&[text(number), dim("archived; only its hash is here")]),
    }
    Ok(())
}

fn row(one: &Kept) -> Vec<Span> {
    let index = text(one.index);
    match one.bytes.as_deref().map(receipt) {
        Some(Some(receipt)) => {
            let act = receipt.act.as_ref();
            let act = act.map(|act| handle(&act.candidate_act_id));
            let code = receipt.code.map(|code| code.number());
            vec![
                index,
                text(moment(&receipt)),
                what(&receipt),
                text(told::function(&receipt).unwrap_or_default()),
                text(code.unwrap_or_default()),
                dim(act.unwrap_or_default()),
            ]
        }
        Some(None) => vec![index, styled(Style::Red, "no receipt")],
        None => vec![index, dim("archived")],
    }
}

/// The step, or what became of the act where that says more.
fn what(receipt: &Receipt) -> Span {
    let style = receipt.state.map(style).unwrap_or_default();
    match (receipt.kind, receipt.state) {
        (ReceiptKind::Outcome | ReceiptKind::Lapsed | ReceiptKind::Reconciled, Some(state)) => {
            styled(style, state.name())
        }
        _ => styled(style, kind(receipt)),
    }
}

/// To the second: `2026-01-01 00:00:05`.
fn moment(receipt: &Receipt) -> String {
    let at = receipt.at.to_string().replacen('T', " ", 1);
    at.split('.').next().unwrap_or_default().to_owned()
}

/// The receipt's kind as it is spelled in it.
pub(super) fn kind(receipt: &Receipt) -> String {
    let word = serde_json::to_value(receipt.kind).ok();
    let word = word.as_ref().and_then(Value::as_str);
    word.unwrap_or_default().to_owned()
}

fn document(one: &Kept) -> Value {
    let receipt = one.bytes.as_deref();
    let receipt = receipt.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    json!({
        "index": one.index, "leaf_hash": b64::encode(&one.leaf.0), "receipt": receipt,
        "archived": one.bytes.is_none(),
    })
}

/// There is no such record.
pub(super) fn no_such(index: u64, size: u64) -> Stop {
    Stop::refused(match size.checked_sub(1) {
        Some(last) => format!("there is no record {index}; the last one is {last}"),
        None => "the record is empty".to_owned(),
    })
}

const HEAD: [&str; 6] = ["record", "when (UTC)", "what", "call", "code", "act"];
