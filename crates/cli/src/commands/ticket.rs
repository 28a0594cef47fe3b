//! What an approver is shown of a ticket: everything that would run, whole, in a form nothing inside it can imitate
//! (CASES "Display"). The digests are worked out again from the text that is shown.

use lychgate_core::display::{escape, has_foreign_letters};
use lychgate_core::json::{self, Limits, Object, Value};
use lychgate_core::{Digest, Timestamp, jcs};
use lychgate_server::protocol::Ticket;

use super::decide::asked_line;
use crate::outcome::{Outcome, Stop};
use crate::terminal::{Style, Terminal, ago, bold, dim, styled, text};

/// A ticket whose shown text and digests belong together.
pub(crate) struct Checked {
    ticket: Ticket,
    display: Value,
    arguments: Value,
}

impl Checked {
    /// Works the arguments' digest out again from the text that will be shown.
    pub(crate) fn new(ticket: Ticket) -> Outcome<Self> {
        let broken = |what: &str| {
            Stop::refused(format!(
                "ticket `{}` is not shown and cannot be decided: {what}",
                ticket.id
            ))
        };
        let display = ticket
            .display()
            .ok_or_else(|| broken("its text cannot be read"))?;
        let canonical =
            member(&display, "arguments").ok_or_else(|| broken("it names no arguments"))?;
        let arguments = json::parse(canonical.as_bytes(), &Limits::CANON)
            .map_err(|_| broken("its arguments cannot be read"))?;
        let named =
            member(&display, "arguments_digest").ok_or_else(|| broken("it names no digest"))?;
        if jcs::to_bytes(&arguments) != canonical.as_bytes() {
            return Err(broken("its arguments are not in canonical form"));
        }
        if Digest::sha256(canonical.as_bytes()).to_base64url() != named {
            return Err(broken(
                "the arguments differ from the digest that would be approved",
            ));
        }
        Ok(Self {
            ticket,
            display,
            arguments,
        })
    }

    /// The ticket.
    pub(crate) fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// `server/function`.
    pub(crate) fn tool(&self) -> String {
        format!("{}/{}", self.of("tool_id"), self.of("function_id"))
    }

    fn of(&self, key: &str) -> String {
        escape(member(&self.display, key).unwrap_or("?"))
    }

    fn list(&self, key: &str) -> Vec<&str> {
        let items = self
            .display
            .get(key)
            .and_then(Value::as_array)
            .unwrap_or_default();
        items.iter().filter_map(Value::as_str).collect()
    }

    /// Shows all of it.
    pub(crate) fn show(&self, now: Timestamp, terminal: &mut Terminal) {
        let ticket = &self.ticket;
        let age = ago(now.since(ticket.created_at));
        let left = ago(ticket.expires_at.since(now));
        terminal.line(&[
            bold(self.tool()),
            text("   "),
            styled(Style::Yellow, self.of("consequence_class")),
        ]);
        let waits = if ticket.waiting {
            "the caller waits"
        } else {
            "the caller has gone; an equal call may come"
        };
        terminal.line(&[dim(format!("asked {age} ago · {left} left · {waits}"))]);
        terminal.gap();
        field(
            terminal,
            "why asked",
            &format!("{} ({})", self.of("why"), self.of("code")),
        );
        for one in ticket.asked.iter().filter(|one| !one.group.is_empty()) {
            field(terminal, "who decides", &asked_line(one));
        }
        field(terminal, "agent", &self.of("agent_id"));
        field(terminal, "for", &self.of("principal_id"));
        field(terminal, "purpose", &self.of("purpose"));
        field(terminal, "provenance", &self.provenance());
        field(terminal, "endpoint", &self.of("endpoint"));
        self.show_destination(terminal);
        terminal.gap();
        let rows = leaves(&self.arguments);
        if rows.is_empty() {
            field(terminal, "arguments", "none");
        } else {
            terminal.line(&[dim("  arguments")]);
            let width = rows
                .iter()
                .map(|(pointer, _)| pointer.chars().count())
                .max()
                .unwrap_or(0)
                .min(MOST_POINTER);
            for (pointer, value) in &rows {
                argument(terminal, pointer, width, value);
            }
        }
        terminal.gap();
        for warning in self.warnings() {
            terminal.line(&[styled(Style::Yellow, format!("  look closely: {warning}"))]);
        }
        field(terminal, "arguments digest", &self.of("arguments_digest"));
        field(terminal, "subject", &ticket.subject.to_base64url());
        field(terminal, "ticket", &ticket.id.to_string());
    }

    /// What the act names as its destination, and every target and recipient behind it; nothing is said twice.
    fn show_destination(&self, terminal: &mut Terminal) {
        let empty = Object::new();
        let destination = self
            .display
            .get("destination")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        if destination.is_empty() {
            field(terminal, "destination", "none");
        }
        for (key, value) in destination.iter() {
            let shown = value
                .as_str()
                .map_or_else(|| compact(value), |one| spaced(&escape(one)));
            match key {
                "endpoint" if shown == self.of("endpoint") => {}
                "destination_id" => field(terminal, "destination", &shown),
                other => field(terminal, &escape(other), &shown),
            }
        }
        let named = destination.get("destination_id").and_then(Value::as_str);
        for (label, key) in [("target", "targets"), ("recipient", "recipients")] {
            let all = self.list(key);
            for one in all
                .iter()
                .filter(|one| all.len() > 1 || named != Some(**one))
            {
                field(terminal, label, &spaced(&escape(one)));
            }
        }
    }

    fn provenance(&self) -> String {
        let source = match self.display.get("provenance") {
            Some(Value::String(word)) => escape(word),
            Some(value) => compact(value),
            None => "UNKNOWN".to_owned(),
        };
        let vouched = self.display.get("vouched").and_then(Value::as_bool) == Some(true);
        if vouched {
            format!("{source} (vouched for by the operator, not observed)")
        } else {
            source
        }
    }

    /// Letters that can look like others, in what names something.
    fn warnings(&self) -> Vec<String> {
        let mut places = Vec::new();
        for key in ["tool_id", "function_id", "agent_id", "principal_id"] {
            if member(&self.display, key).is_some_and(has_foreign_letters) {
                places.push(key.to_owned());
            }
        }
        for key in ["targets", "recipients"] {
            if self.list(key).into_iter().any(has_foreign_letters) {
                places.push(key.to_owned());
            }
        }
        foreign_leaves(&self.arguments, "", &mut places);
        if places.is_empty() {
            return Vec::new();
        }
        vec![format!(
            "letters outside ASCII, which can look like others, in {}",
            places.join(", ")
        )]
    }
}

fn member<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

fn field(terminal: &mut Terminal, label: &str, value: &str) {
    terminal.wrapped(&[dim(format!("{label:>16}")), text("  ")], &text(value));
}

fn argument(terminal: &mut Terminal, pointer: &str, width: usize, value: &str) {
    if pointer.chars().count() > width {
        // A pointer too long for the column stands alone, and the value under it.
        terminal.wrapped(&[text("    ")], &text(pointer));
        terminal.wrapped(&[text(" ".repeat(width + 6))], &text(value));
    } else {
        terminal.wrapped(&[text(format!("    {pointer:width$}  "))], &text(value));
    }
}

/// Every scalar and every empty container, by its JSON pointer, as one unambiguous line.
fn leaves(arguments: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    if arguments
        .as_object()
        .is_none_or(|members| !members.is_empty())
    {
        collect(arguments, "", &mut rows);
    }
    rows
}

fn collect(value: &Value, pointer: &str, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, member) in members.iter() {
                collect(member, &format!("{pointer}/{}", token(key)), rows);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &format!("{pointer}/{at}"), rows);
            }
        }
        Value::String(string) => rows.push((
            pointer.to_owned(),
            format!("\"{}\"", spaced(&escape(string))),
        )),
        other => rows.push((pointer.to_owned(), compact(other))),
    }
}

fn foreign_leaves(value: &Value, pointer: &str, places: &mut Vec<String>) {
    let deeper = |key: &str, member: &Value, places: &mut Vec<String>| {
        let pointer = format!("{pointer}/{}", token(key));
        if has_foreign_letters(key) {
            places.push(pointer.clone());
        }
        foreign_leaves(member, &pointer, places);
    };
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(key, member)| deeper(key, member, places)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| deeper(&at.to_string(), item, places));
        }
        // Prose may be in any script; a name, path or address is where a look-alike does harm.
        Value::String(word) if !word.contains(char::is_whitespace) && has_foreign_letters(word) => {
            places.push(pointer.to_owned());
        }
        _ => {}
    }
}

/// A member's name as a token of a pointer, escaped.
fn token(key: &str) -> String {
    spaced(&escape(&key.replace('~', "~0").replace('/', "~1")))
}

fn compact(value: &Value) -> String {
    let canonical = jcs::to_bytes(value);
    // JSON's own backslashes stay as they are; everything that could steer a terminal is escaped.
    spaced(&escape(&String::from_utf8_lossy(&canonical)).replace("\\\\", "\\"))
}

/// Long runs of spaces, which could push a tail out of sight, as their number. A backslash stands for itself only
/// when doubled, so `\u{20}` can have come from nowhere else.
fn spaced(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = rest.find(' ') {
        let (before, from) = rest.split_at(at);
        let run = from.bytes().take_while(|byte| *byte == b' ').count();
        out.push_str(before);
        if run > MOST_SPACES {
            out.push_str(&format!("\\u{{20}}×{run}"));
        } else {
            out.push_str(&" ".repeat(run));
        }
        rest = from.get(run..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Pointers up to this long stand in a column of their own.
const MOST_POINTER: usize = 24;
/// More spaces than this in a row are counted instead of shown.
const MOST_SPACES: usize = 8;

#[cfg(test)]
mod tests;
