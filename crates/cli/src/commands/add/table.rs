//! The one table: what each tool is taken for, what that means, and where it goes.

use std::collections::BTreeSet;

use lychgate_core::ConsequenceClass;
use lychgate_core::display::{escape, escape_within};
use lychgate_policy::{Applied, Profile, Proposed, Role};

use super::launch::{Planned, pinned_file};
use super::tools_of;
use crate::places::shown;
use crate::terminal::{Span, Style, Terminal, bold, dim, styled, text};

/// What the rules of the configuration make of a class.
struct Rules {
    strict: bool,
    /// What would ask is denied.
    unattended: bool,
    /// The operator says who asks.
    vouched: bool,
}

impl Rules {
    fn of(applied: &Applied) -> Self {
        Self {
            strict: applied.profile() == Profile::Strict,
            unattended: applied.unattended(),
            vouched: applied.vouch().is_some(),
        }
    }

    fn asks(&self) -> &'static str {
        if self.unattended { "denied" } else { "asks" }
    }

    /// The same of several.
    fn asked(&self) -> &'static str {
        if self.unattended { "are denied" } else { "ask" }
    }

    /// Whether an ordinary write in a recoverable folder passes.
    fn writes_pass(&self) -> bool {
        !self.strict || self.vouched
    }
}

/// Shows it.
pub(crate) fn show(
    server: &str,
    planned: &Planned,
    tools: &[Proposed],
    applied: &Applied,
    terminal: &mut Terminal,
) {
    let rules = &Rules::of(applied);
    head(server, planned, tools, rules, terminal);
    let mut rows = vec![
        ["", "tool", "class", "which means", "where to"]
            .map(dim)
            .to_vec(),
    ];
    rows.extend(tools.iter().map(|tool| row(tool, rules)));
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
    if rules.strict {
        let means = "profile strict: reads outside your folders are denied";
        terminal.line(&[styled(Style::Yellow, "  !  "), dim(means)]);
    }
    if rules.unattended {
        let means = "unattended: nobody is asked, so what would ask is denied";
        terminal.line(&[styled(Style::Yellow, "  !  "), dim(means)]);
    }
    if !planned.launch.pass_env.is_empty() {
        let means = "variables passed on have the values that the gate was started with, whoever started it";
        terminal.line(&[styled(Style::Yellow, "  !  "), dim(means)]);
    }
    terminal.gap();
}

/// What runs, what is pinned of it, and which folders it is given.
fn head(
    server: &str,
    planned: &Planned,
    tools: &[Proposed],
    rules: &Rules,
    terminal: &mut Terminal,
) {
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
        let recoverable = match (given.new, given.root.recoverable, rules.writes_pass()) {
            (false, _, _) => "already declared".to_owned(),
            (true, true, true) => "recoverable: writes in there pass".to_owned(),
            (true, true, false) => {
                format!("recoverable; strict: writes in there {}", rules.asked())
            }
            (true, false, _) => format!("not recoverable: writes in there {}", rules.asked()),
        };
        terminal.line(&[
            dim("  folder   "),
            text(shown(&given.root.path)),
            dim(format!("  {recoverable}")),
        ]);
    }
    terminal.gap();
}

fn row(tool: &Proposed, rules: &Rules) -> Vec<Span> {
    let (style, means) = means(tool, rules);
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

/// The class in words, as the profile's table has it.
fn means(tool: &Proposed, rules: &Rules) -> (Style, String) {
    let in_files = tool.file.is_some()
        || tool
            .destination
            .keys()
            .any(|kind| *kind == lychgate_policy::Kind::Path);
    let program = tool
        .roles
        .values()
        .any(|role| matches!(role, Role::Program | Role::Command));
    let what = match (tool.class, in_files) {
        _ if program => "runs a program",
        (ConsequenceClass::Informational, true) => {
            return (Style::Green, "reads: passes in folders".to_owned());
        }
        (ConsequenceClass::Informational, false) => {
            return (Style::Green, "reads: passes".to_owned());
        }
        (ConsequenceClass::PersistentStateChange, _) if tool.irreversible => "cannot be undone",
        (ConsequenceClass::PersistentStateChange, true) if rules.writes_pass() => {
            return (Style::Plain, "writes: passes if recoverable".to_owned());
        }
        (ConsequenceClass::PersistentStateChange, true) => "writes, nobody knows for whom",
        (ConsequenceClass::PersistentStateChange, false) => "changes something",
        (ConsequenceClass::DataDisclosure, _) => "sends data out",
        (ConsequenceClass::Communication, _) => "writes to someone",
        (ConsequenceClass::Financial, _) => "moves value",
        (ConsequenceClass::NetworkControl, _) => "changes access",
        (ConsequenceClass::Physical, _) => "moves things",
        (ConsequenceClass::Other, _) => "unknown",
    };
    (Style::Yellow, format!("{what}: {}", rules.asks()))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_words_are_those_of_the_profile_and_of_whether_somebody_is_there() {
        let definition = |name: &str, key: &str| {
            let text = format!(
                r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{"{key}":{{"type":"string"}}}}}}}}"#
            );
            let limits = lychgate_core::json::Limits::ARGUMENTS;
            let value = lychgate_core::json::parse(text.as_bytes(), &limits).unwrap();
            lychgate_policy::Definition::parse(value).unwrap()
        };
        let definitions = [
            definition("write_file", "path"),
            definition("read_file", "path"),
            definition("fetch_it", "url"),
        ];
        let library = lychgate_policy::Library::embedded();
        let environment = std::collections::BTreeMap::new();
        let tools = lychgate_policy::propose("s", &[], &environment, &definitions, &library);
        let words = |strict, unattended, vouched| {
            let rules = Rules {
                strict,
                unattended,
                vouched,
            };
            let means = tools.iter().map(|tool| means(tool, &rules).1);
            means.collect::<Vec<_>>().join(" | ")
        };
        let (write, read) = ("writes: passes if recoverable", "reads: passes in folders");
        let disclosed = "sends data out";
        assert_eq!(
            words(false, false, false),
            format!("{write} | {read} | {disclosed}: asks")
        );
        assert_eq!(
            words(false, true, false),
            format!("{write} | {read} | {disclosed}: denied")
        );
        let nobody = "writes, nobody knows for whom";
        assert_eq!(
            words(true, false, false),
            format!("{nobody}: asks | {read} | {disclosed}: asks")
        );
        assert_eq!(
            words(true, true, false),
            format!("{nobody}: denied | {read} | {disclosed}: denied")
        );
        assert_eq!(
            words(true, false, true),
            format!("{write} | {read} | {disclosed}: asks")
        );
    }
}
