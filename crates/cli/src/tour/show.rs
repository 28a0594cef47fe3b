//! What the tour looks like: 72 columns, one block a step, nothing that needs colour to be read.

use std::time::Duration;

use lychgate_core::Code;

use super::step::Step;
use crate::terminal::{Span, Style, Terminal, bold, dim, styled, text};

/// What stands before the first step.
pub(super) fn opening(terminal: &mut Terminal) {
    terminal.gap();
    terminal.line(&[bold("  Lychgate: this exact act, once, or not at all")]);
    terminal.gap();
    for line in [
        "A model's tool call is a candidate, not an act. The gate holds it until two",
        "doors have opened: the PED allows exactly this act, and the sink consumes a",
        "single-use authority for it, durably, right before the effect.",
    ] {
        terminal.line(&[text(format!("  {line}"))]);
    }
    terminal.gap();
    terminal.line(&[dim(
        "  A real gate, a real store and a real server run for this, in a throw-away",
    )]);
    terminal.line(&[dim(
        "  folder. Whether an effect ran is read from the server's own log.",
    )]);
}

/// What stands before a group of steps.
pub(super) fn chapter(terminal: &mut Terminal, title: &str) {
    terminal.gap();
    let rule = "–".repeat(WIDTH.saturating_sub(title.chars().count() + 4));
    terminal.line(&[text("  "), bold(title), text(" "), dim(rule)]);
}

/// One step.
pub(super) fn step(terminal: &mut Terminal, number: usize, step: &Step) {
    terminal.gap();
    let title = format!("{number:>3}  {}", step.plot.title);
    let code = step
        .code
        .clone()
        .unwrap_or_else(|| step.plot.end.to_owned());
    let calm = step.code.is_none() && step.plot.end != "indeterminate";
    let style = if calm { Style::Green } else { Style::Yellow };
    let space = WIDTH
        .saturating_sub(title.chars().count() + code.chars().count())
        .max(1);
    terminal.line(&[bold(title), text(" ".repeat(space)), styled(style, code)]);
    row(terminal, "tried", text(step.plot.tried));
    for (label, line) in &step.lines {
        row(terminal, label, dim(line));
    }
    answer(terminal, step);
    effect(terminal, step);
    receipts(terminal, step);
    for failure in &step.failures {
        row(terminal, "FAILED", styled(Style::Red, failure));
    }
}

fn answer(terminal: &mut Terminal, step: &Step) {
    let Some(name) = step.code.as_deref().and_then(name) else {
        return row(terminal, "answer", text(step.plot.answer));
    };
    let both = format!("{name} · {}", step.plot.answer);
    if both.chars().count() + INDENT <= WIDTH {
        return row(terminal, "answer", text(both));
    }
    row(terminal, "answer", text(name));
    row(terminal, "", text(step.plot.answer));
}

fn effect(terminal: &mut Terminal, step: &Step) {
    let (before, after) = step.performed;
    let lines = format!("   server's log: {before} → {after}");
    let word = match step.effects() {
        0 => styled(Style::Bold, "not run"),
        1 => styled(Style::Green, "ran once"),
        many => styled(Style::Red, format!("ran {many} times")),
    };
    let label = format!("       {:<10}", "effect");
    terminal.line(&[dim(label), word, dim(lines)]);
}

fn receipts(terminal: &mut Terminal, step: &Step) {
    let Some(last) = step.receipts.last() else {
        return;
    };
    let kinds = step
        .receipts
        .iter()
        .map(|receipt| format!("#{} {}", receipt.index, receipt.kind));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let leaf: String = last.leaf.chars().take(8).collect();
    let whole = format!("{kinds} · leaf {leaf}…");
    let line = if whole.chars().count() + INDENT > WIDTH {
        kinds
    } else {
        whole
    };
    row(terminal, "receipt", dim(line));
}

fn row(terminal: &mut Terminal, label: &str, line: Span) {
    terminal.line(&[dim(format!("       {label:<10}")), line]);
}

/// The table at the end, and the next command.
pub(super) fn ending(terminal: &mut Terminal, steps: &[Step], kept: Option<&str>) {
    chapter(terminal, "What happened");
    terminal.gap();
    let rows = steps.iter().map(|step| {
        let mark = if step.holds() {
            styled(Style::Green, "✓")
        } else {
            styled(Style::Red, "×")
        };
        let code = step.code.as_deref();
        vec![
            mark,
            text(step.plot.title),
            text(code.unwrap_or(step.plot.end)),
            text(if step.effects() == 0 {
                "–".to_owned()
            } else {
                step.effects().to_string()
            }),
        ]
    });
    let head = ["", "step", "code", "effects run"].map(dim).to_vec();
    let rows = std::iter::once(head).chain(rows).collect::<Vec<_>>();
    terminal.table(&rows);
    terminal.gap();
    let effects: usize = steps.iter().map(Step::effects).sum();
    let refused = steps
        .iter()
        .filter(|step| step.code.is_some() && step.effects() == 0)
        .count();
    let failed = steps.iter().filter(|step| !step.holds()).count();
    let sum = format!(
        "  {effects} effects, each allowed and run once; {refused} attempts, none of which ran."
    );
    if failed == 0 {
        terminal.line(&[text(sum)]);
    } else {
        terminal.line(&[styled(
            Style::Red,
            format!("  {failed} of these did not go as they must."),
        )]);
    }
    if let Some(kept) = kept {
        terminal.line(&[dim("  Kept in "), dim(kept)]);
    }
    terminal.gap();
    terminal.line(&[text("  Next, your own gate:   "), bold("lychgate init")]);
    terminal.gap();
}

/// How long a person takes to read a step.
pub(super) fn reading_time(step: &Step) -> Duration {
    let lines = u64::try_from(step.lines.len()).unwrap_or(0) + 4;
    Duration::from_millis(lines * 900)
}

fn name(code: &str) -> Option<&'static str> {
    Code::ALL
        .iter()
        .find(|one| one.number() == code)
        .map(|code| code.name())
}

/// Columns used; what is left of 80 is margin.
const WIDTH: usize = 78;
/// Columns before a row's text.
const INDENT: usize = 17;
