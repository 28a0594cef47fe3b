//! The report as a person reads it on a terminal.

use lychgate_core::digest::b64;
use lychgate_core::display::escape;
use lychgate_ledger::report::{Report, Verdict, Violation};

use super::Told;
use super::words::{self, grouped, lines, many, moment, some, span};
use crate::commands::acts::handle;
use crate::terminal::{Span, Style, Terminal, ago, bold, dim, styled, text};

/// Prints it.
pub(super) fn show(told: &Told, terminal: &mut Terminal) {
    let report = &told.report;
    terminal.line(&[
        styled(Style::Green, "✓ "),
        bold(format!(
            "the record is whole: {}",
            many(told.clean.size, "record", "records")
        )),
        text("  "),
        dim(escape(&told.log)),
    ]);
    terminal.line(&[dim(format!("  {}", period(told)))]);
    terminal.gap();
    let rows = lines(report).into_iter().map(|line| {
        let (mark, style) = mark(line.verdict);
        vec![
            dim(line.number),
            styled(style, format!("{mark} {}", words::verdict(line.verdict))),
            text(line.asks),
            dim(line.examined),
        ]
    });
    terminal.table(&rows.collect::<Vec<_>>());
    advisory(report, terminal);
    violations(report, terminal);
    terminal.gap();
    for (label, value) in numbers(report) {
        terminal.wrapped(&[dim(format!("{label:>10}")), text("  ")], &text(value));
    }
    doubts(report, terminal);
    terminal.gap();
    head(told, terminal);
}

/// What the time asked for is, or what the record spans.
pub(super) fn period(told: &Told) -> String {
    let (line, asked) = (&told.report.timeline, &told.question);
    let from = asked.since.or(line.first()).map(moment);
    let to = asked.until.or(line.last()).map(moment);
    let receipts = many(told.report.counts.receipts, "receipt", "receipts");
    match from.zip(to) {
        Some((from, to)) => format!("{receipts} from {from} to {to} (UTC)"),
        None => receipts,
    }
}

/// The sign of a verdict. Only what holds for everything has a tick.
pub(super) fn mark(verdict: Verdict) -> (char, Style) {
    match verdict {
        Verdict::Held => ('✓', Style::Green),
        Verdict::Violated(_) => ('×', Style::Red),
        Verdict::Partly(_) => ('–', Style::Yellow),
        Verdict::Nothing | Verdict::NotMeasured(_) => ('–', Style::Plain),
    }
}

fn advisory(report: &Report, terminal: &mut Terminal) {
    let advised = &report.counts.advisory;
    if advised.number == 0 {
        return;
    }
    terminal.gap();
    let acts = many(advised.number, "act", "acts");
    terminal.line(&[styled(
        Style::Red,
        format!("× {acts} under advisory enforcement: counted nowhere else, and never finality"),
    )]);
    let records = some(&advised.records, advised.number);
    terminal.line(&[dim("  receipts  "), text(records)]);
}

fn violations(report: &Report, terminal: &mut Terminal) {
    if report.violations.is_empty() {
        return;
    }
    terminal.gap();
    terminal.line(&[styled(
        Style::Red,
        many(report.violated, "violation", "violations"),
    )]);
    let mut rows = vec![
        ["test", "act", "function", "receipts", ""]
            .map(dim)
            .to_vec(),
    ];
    rows.extend(report.violations.iter().take(MOST_SHOWN).map(row));
    terminal.table(&rows);
    let left = report.violated.saturating_sub(MOST_SHOWN as u64);
    if left > 0 {
        let left = grouped(left);
        terminal.line(&[dim(format!("  and {left} more: --json names every one"))]);
    }
}

fn row(one: &Violation) -> Vec<Span> {
    let act = one.act.as_ref().map(handle).unwrap_or_default();
    let function = one.function.as_deref().map(escape).unwrap_or_default();
    let records = one.records.iter().map(u64::to_string);
    vec![
        text(one.breach.test().number()),
        text(act),
        text(function),
        text(records.collect::<Vec<_>>().join(", ")),
        text(one.breach.sentence()),
    ]
}

/// Everything that is counted, a line for each thing that there is something to say of.
pub(super) fn numbers(report: &Report) -> Vec<(&'static str, String)> {
    let (counts, people, starts) = (&report.counts, &report.people, &report.starts);
    let joined = |all: Vec<(&'static str, u64)>| {
        let all = all
            .into_iter()
            .map(|(name, number)| format!("{} {name}", grouped(number)));
        all.collect::<Vec<_>>().join(" · ")
    };
    let mut rows = vec![
        ("acts", grouped(counts.acts)),
        ("state", joined(words::states(report))),
        ("class", joined(words::classes(report))),
    ];
    let codes = counts.codes.iter();
    let codes = codes.map(|(code, number)| format!("{} {}", grouped(*number), code.number()));
    rows.push(("code", codes.collect::<Vec<_>>().join(" · ")));
    if people.asked > 0 || people.approved + people.denied > 0 {
        rows.push(("people", asked(report)));
    }
    let doubts = &report.doubts;
    if doubts.number > 0 || doubts.open_number > 0 {
        rows.push(("in doubt", doubted(report)));
    }
    let mut gate = format!(
        "{}, {}",
        many(starts.started, "start", "starts"),
        many(starts.stopped, "stop", "stops")
    );
    let killed = &starts.without_stop;
    if killed.number > 0 {
        let records = some(&killed.records, killed.number);
        gate.push_str(&format!(
            "; {} after no stop: {records}",
            grouped(killed.number)
        ));
    }
    rows.push(("gate", gate));
    for (label, found) in [
        ("in flight", &counts.in_flight),
        ("contradict", &counts.contradicted),
    ] {
        if found.number > 0 {
            let records = some(&found.records, found.number);
            let what = match label {
                "in flight" => many(
                    found.number,
                    "act without an outcome yet",
                    "acts without an outcome yet",
                ),
                _ => many(
                    found.number,
                    "late answer against a verdict",
                    "late answers against verdicts",
                ),
            };
            rows.push((label, format!("{what}: {records}")));
        }
    }
    for one in &report.accepted {
        let what = escape(&one.difference);
        rows.push((
            "anchor",
            format!(
                "accepted although {what}, {}: {}",
                moment(one.at),
                one.record
            ),
        ));
    }
    if counts.without_bytes > 0 {
        let archived = many(counts.without_bytes, "record", "records");
        rows.push(("archived", format!("{archived} by their hash alone")));
    }
    rows.retain(|(_, value)| !value.is_empty());
    rows
}

/// What was asked of people, in a sentence.
pub(super) fn asked(report: &Report) -> String {
    let people = &report.people;
    let mut said = format!(
        "asked {} · yes {} · no {} · lapsed {} · waiting {}",
        grouped(people.asked),
        grouped(people.approved),
        grouped(people.denied),
        grouped(people.lapsed),
        grouped(people.waiting)
    );
    if people.longest_wait.is_some() {
        let (median, longest) = (span(people.median_wait), span(people.longest_wait));
        said.push_str(&format!(
            "; half waited at most {median}, the longest {longest}"
        ));
    }
    said
}

/// What became of acts in doubt, in a sentence.
pub(super) fn doubted(report: &Report) -> String {
    let doubts = &report.doubts;
    let mut said = format!(
        "{} · settled by a late answer {} · by a look-up {} · by a person {} · open {}",
        grouped(doubts.number),
        grouped(doubts.by_answer),
        grouped(doubts.by_look_up),
        grouped(doubts.by_person),
        grouped(doubts.open_number)
    );
    if doubts.longest.is_some() {
        said.push_str(&format!("; settled after at most {}", span(doubts.longest)));
    }
    said
}

fn doubts(report: &Report, terminal: &mut Terminal) {
    let open = &report.doubts.open;
    if open.is_empty() {
        return;
    }
    terminal.gap();
    terminal.line(&[styled(
        Style::Yellow,
        format!(
            "{} in doubt",
            many(report.doubts.open_number, "act is", "acts are")
        ),
    )]);
    let mut rows = vec![
        ["act", "function", "for", "look-ups", "receipt"]
            .map(dim)
            .to_vec(),
    ];
    rows.extend(open.iter().take(MOST_SHOWN).map(|one| {
        vec![
            text(handle(&one.act)),
            text(one.function.as_deref().map(escape).unwrap_or_default()),
            text(ago(report.as_of.since(one.since))),
            text(one.looked_up),
            text(one.record),
        ]
    }));
    terminal.table(&rows);
}

fn head(told: &Told, terminal: &mut Terminal) {
    let clean = &told.clean;
    let row = |label: &str| [dim(format!("{label:>10}")), text("  ")];
    terminal.wrapped(&row("head"), &text(many(clean.size, "record", "records")));
    terminal.wrapped(&row("root"), &text(b64::encode(&clean.root)));
    for warning in warnings(told) {
        terminal.wrapped(&row(""), &styled(Style::Yellow, warning));
    }
    terminal.line(&[
        dim("   to check  "),
        text("lychgate ledger verify --checkpoint FILE"),
        dim("   one receipt  "),
        text("lychgate ledger show N"),
    ]);
}

/// What the audit does not vouch for.
pub(super) fn warnings(told: &Told) -> Vec<String> {
    let clean = &told.clean;
    let mut all = Vec::new();
    if clean.sealed < clean.size {
        let open = clean.size - clean.sealed;
        all.push(format!(
            "{} under no signed head yet",
            many(open, "record is", "records are")
        ));
    }
    match clean.anchored {
        None => all.push("no head kept elsewhere was compared (--checkpoint FILE)".to_owned()),
        Some(anchored) if anchored < clean.size => all.push(format!(
            "{} of them are under heads kept elsewhere",
            grouped(anchored)
        )),
        Some(_) => {}
    }
    all
}

/// The most violations and doubts on a terminal.
const MOST_SHOWN: usize = 50;
