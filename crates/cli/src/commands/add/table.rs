//! The one table: what each tool is taken for, what that means, and where it goes.

use std::collections::BTreeSet;

use lychgate_core::ConsequenceClass;
use lychgate_core::display::{escape, escape_within};
use lychgate_policy::{Proposed, Role};

use super::launch::{Planned, pinned_file};
use super::tools_of;
use crate::places::shown;
use crate::terminal::{Span, Style, Terminal, bold, dim, styled, text};

/// Shows it.
pub(crate) fn show(server: &str, planned: &Planned, tools: &[Proposed], terminal: &mut Terminal) {
    terminal.gap();
    terminal.line(&[bold(server), text(format!("  {}", tools_of(tools)))]);
    let command = planned
        .launch
        .command
        .iter()
        .map(|word| escape(word))
        .collect::<Vec<_>>()
        .join(" ");
    terminal.wrapped(&[dim("  runs     ")], &text(command));
    let pinned = match pinned_file(&planned.launch.command) {
        Some(file) => format!("{} (other content is another server)", shown(&file)),
        None => "no file (a module or package name): its code may change unseen, its tools not"
            .to_owned(),
    };
    terminal.wrapped(&[dim("  pinned   ")], &text(pinned));
    for given in &planned.roots {
        let recoverable = match (given.new, given.root.recoverable) {
            (false, _) => "already declared",
            (true, true) => "recoverable: writes in there pass",
            (true, false) => "not recoverable: writes in there ask",
        };
        terminal.line(&[
            dim("  folder   "),
            text(shown(&given.root.path)),
            dim(format!("  {recoverable}")),
        ]);
    }
    terminal.gap();
    let mut rows = vec![
        ["", "tool", "class", "which means", "where to"]
            .map(dim)
            .to_vec(),
    ];
    rows.extend(tools.iter().map(row));
    terminal.table(&rows);
    terminal.gap();
    if tools.iter().any(|tool| tool.reviewed) {
        let means = "reviewed for exactly this definition";
        terminal.line(&[styled(Style::Green, "  ✓  "), dim(means)]);
    }
    let notes = tools
        .iter()
        .filter(|tool| !tool.reviewed)
        .map(|tool| tool.note.as_str());
    for note in notes.collect::<BTreeSet<_>>() {
        terminal.line(&[styled(Style::Yellow, "  ?  "), dim(escape(note))]);
    }
    terminal.gap();
}

fn row(tool: &Proposed) -> Vec<Span> {
    let (style, means) = means(tool);
    vec![
        if tool.reviewed {
            styled(Style::Green, "✓")
        } else {
            styled(Style::Yellow, "?")
        },
        text(escape_within(&tool.function, 40)),
        text(tool.class.name()),
        styled(style, means),
        text(escape_within(&reach(tool), 48)),
    ]
}

/// The class in words, as the `balanced` table has it.
fn means(tool: &Proposed) -> (Style, &'static str) {
    let in_files = tool.file.is_some()
        || tool
            .destination
            .keys()
            .any(|kind| *kind == lychgate_policy::Kind::Path);
    let program = tool
        .roles
        .values()
        .any(|role| matches!(role, Role::Program | Role::Command));
    match (tool.class, in_files) {
        _ if program => (Style::Yellow, "runs a program: asks"),
        (ConsequenceClass::Informational, true) => (Style::Green, "reads: passes in folders"),
        (ConsequenceClass::Informational, false) => (Style::Green, "reads: passes"),
        (ConsequenceClass::PersistentStateChange, _) if tool.irreversible => {
            (Style::Yellow, "cannot be undone: asks")
        }
        (ConsequenceClass::PersistentStateChange, true) => {
            (Style::Plain, "writes: passes if recoverable")
        }
        (ConsequenceClass::PersistentStateChange, false) => {
            (Style::Yellow, "changes something: asks")
        }
        (ConsequenceClass::DataDisclosure, _) => (Style::Yellow, "sends data out: asks"),
        (ConsequenceClass::Communication, _) => (Style::Yellow, "writes to someone: asks"),
        (ConsequenceClass::Financial, _) => (Style::Yellow, "moves value: asks"),
        (ConsequenceClass::NetworkControl, _) => (Style::Yellow, "changes access: asks"),
        (ConsequenceClass::Physical, _) => (Style::Yellow, "moves things: asks"),
        (ConsequenceClass::Other, _) => (Style::Yellow, "unknown: asks"),
    }
}

fn reach(tool: &Proposed) -> String {
    let pointers = tool
        .destination
        .values()
        .flatten()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    let file = tool.file.as_ref().map(|file| format!("file {file}"));
    file.or_else(|| tool.fixed.clone())
        .filter(|_| pointers.is_empty())
        .unwrap_or(pointers)
}
