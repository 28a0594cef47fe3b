//! A step of the tour: what was tried, what the gate said, what the server really did.

use lychgate_core::Code;
use lychgate_core::json::{self, Limits};
use lychgate_store::RecordRow;
use serde_json::{Value, json};

use super::desk::World;
use super::lab::{Fault, at};

/// What a step is about.
pub(super) struct Plot {
    /// A word for `--json`.
    pub(super) name: &'static str,
    /// For a person.
    pub(super) title: &'static str,
    /// What is tried.
    pub(super) tried: &'static str,
    /// What happens, and why.
    pub(super) answer: &'static str,
    /// The code it must end with.
    pub(super) code: Option<Code>,
    /// How it stands at the end, where there is no code.
    pub(super) end: &'static str,
    /// How many effects the server must have performed meanwhile.
    pub(super) effects: usize,
}

/// A step that was taken.
pub(super) struct Step {
    pub(super) plot: Plot,
    /// The code it ended with.
    pub(super) code: Option<String>,
    /// The server's own count before and after.
    pub(super) performed: (usize, usize),
    /// The receipts it left.
    pub(super) receipts: Vec<Receipt>,
    /// Objects and remarks: a label and a line.
    pub(super) lines: Vec<(&'static str, String)>,
    /// What did not go as it must.
    pub(super) failures: Vec<String>,
}

/// A line of the record.
pub(super) struct Receipt {
    pub(super) index: u64,
    pub(super) kind: String,
    pub(super) leaf: String,
}

/// A step being taken.
pub(super) struct Taking<'a> {
    world: &'a World,
    from: u64,
    before: usize,
    lines: Vec<(&'static str, String)>,
    failures: Vec<String>,
}

impl<'a> Taking<'a> {
    /// From here on what is recorded and performed belongs to the step.
    pub(super) fn begin(world: &'a World) -> Result<Self, Fault> {
        let from = world.lab.gate.store().record_len().map_err(at("record"))?;
        let before = world.performed();
        Ok(Self {
            world,
            from,
            before,
            lines: Vec::new(),
            failures: Vec::new(),
        })
    }

    /// Shows something.
    pub(super) fn line(&mut self, label: &'static str, text: impl Into<String>) {
        self.lines.push((label, text.into()));
    }

    /// Something that must hold beside the code and the effects.
    pub(super) fn expect(&mut self, holds: bool, what: impl Into<String>) {
        if !holds {
            self.failures.push(what.into());
        }
    }

    /// Ends the step and judges it.
    pub(super) fn end(mut self, plot: Plot, code: Option<String>) -> Result<Step, Fault> {
        let performed = (self.before, self.world.performed());
        let wanted = plot.code.map(Code::number);
        if code.as_deref() != wanted {
            let said = code.as_deref().unwrap_or("no code").to_owned();
            self.failures.push(format!(
                "expected {}, got {said}",
                wanted.unwrap_or("no code")
            ));
        }
        let done = performed.1.saturating_sub(performed.0);
        if done != plot.effects {
            self.failures.push(format!(
                "expected {} effects, the server did {done}",
                plot.effects
            ));
        }
        let rows = self
            .world
            .lab
            .gate
            .store()
            .record(self.from, 64)
            .map_err(at("record"))?;
        let receipts = rows.iter().map(receipt).collect::<Vec<_>>();
        if receipts.is_empty() {
            self.failures.push("it left no receipt".to_owned());
        }
        Ok(Step {
            plot,
            code,
            performed,
            receipts,
            lines: self.lines,
            failures: self.failures,
        })
    }
}

fn receipt(row: &RecordRow) -> Receipt {
    let parsed = row
        .bytes
        .as_ref()
        .and_then(|bytes| json::parse(bytes, &Limits::OBJECT).ok());
    let kind = parsed
        .as_ref()
        .and_then(|receipt| receipt.get("kind")?.as_str());
    Receipt {
        index: row.index,
        kind: kind.unwrap_or("unreadable").to_owned(),
        leaf: lychgate_core::digest::b64::encode(&row.leaf.0),
    }
}

impl Step {
    /// How many effects the server performed.
    pub(super) fn effects(&self) -> usize {
        self.performed.1.saturating_sub(self.performed.0)
    }

    /// Whether everything went as it must.
    pub(super) fn holds(&self) -> bool {
        self.failures.is_empty()
    }

    /// For `--json`.
    pub(super) fn to_json(&self) -> Value {
        let receipts = self.receipts.iter().map(
            |receipt| json!({"index": receipt.index, "kind": receipt.kind, "leaf": receipt.leaf}),
        );
        let name = Code::ALL
            .iter()
            .find(|code| Some(code.number()) == self.code.as_deref());
        json!({
            "step": self.plot.name,
            "title": self.plot.title,
            "tried": self.plot.tried,
            "code": self.code,
            "name": name.map(|code| code.name()),
            "effects": self.effects(),
            "receipts": receipts.collect::<Vec<_>>(),
            "shown": self.lines.iter().map(|(label, text)| json!([label, text])).collect::<Vec<_>>(),
            "holds": self.holds(),
            "failures": self.failures,
        })
    }
}
