//! What the record says of the newest controls when a gate starts.

use std::sync::Arc;

use lychgate_core::Code;
use lychgate_core::control::ControlStage;
use lychgate_core::json::{self, Limits};
use lychgate_core::receipt::Receipt;

use super::{Control, End};
use crate::gate::Gate;

impl Gate {
    /// Takes up where the last gate left, from the record itself: what was not seen by then is missing now. Nothing that
    /// lies further back than [`MOST_LINES`] is taken up; its lines stay where they are.
    ///
    /// # Errors
    /// EF-081 when the store cannot answer.
    pub(crate) async fn recall_controls(self: &Arc<Self>) -> Result<(), Code> {
        let fault = |fault| self.store_fault(&fault);
        let end = self.store().record_len().map_err(fault)?;
        let mut at = end.saturating_sub(MOST_LINES);
        while at < end {
            let rows = self.store().record(at, PAGE).map_err(fault)?;
            let Some(last) = rows.last() else { break };
            at = last.index.saturating_add(1);
            for bytes in rows.iter().filter_map(|row| row.bytes.as_deref()) {
                if let Some(receipt) = control_in(bytes) {
                    self.recall(receipt);
                }
            }
        }
        let newest = self.current().epochs.control();
        self.deliveries().newest.send_replace(newest);
        self.record_missing().await;
        Ok(())
    }

    fn recall(&self, receipt: Receipt) {
        let (at, kind) = (receipt.at, receipt.kind);
        let Some(part) = receipt.control else { return };
        let (Some(end), Some(holder)) = (part.end, part.holder_id) else {
            return self.deliveries().push(Control {
                number: part.number,
                kind,
                at,
                what: receipt.detail.unwrap_or_default(),
                ends: Vec::new(),
            });
        };
        let mut table = self.deliveries().table();
        let control = table.controls.iter_mut().rev();
        let Some(control) = control
            .into_iter()
            .find(|control| control.number == part.number)
        else {
            return;
        };
        let known = control.ends.iter_mut();
        let known = known
            .into_iter()
            .find(|one| one.end == end && one.holder == holder);
        match (known, part.finding) {
            (None, _) if part.stage == ControlStage::Emitted => {
                let sink = part.sink_id.unwrap_or_default();
                control.ends.push(End::new(end, holder, sink));
            }
            (Some(one), Some(finding)) => one.finding = Some((part.stage, finding)),
            (Some(one), None) => one.see(part.stage, at),
            (None, _) => {}
        }
    }
}

fn control_in(line: &[u8]) -> Option<Receipt> {
    // Canonical bytes: a quote inside a text is escaped, so the member stands nowhere else. Most lines end here.
    line.windows(MEMBER.len())
        .any(|part| part == MEMBER)
        .then(|| json::parse(line, &Limits::OBJECT).ok())?
        .and_then(|value| json::from_value(&value).ok())
}

const MEMBER: &[u8] = br#""control":{"#;
/// Lines looked at, from the end.
const MOST_LINES: u64 = 16_384;
const PAGE: usize = 512;
