//! What an end says of a control, and what is recorded of an end that says nothing more.

use std::sync::Arc;

use lychgate_core::control::{ControlEnd, ControlFinding, ControlStage};
use lychgate_core::receipt::ReceiptKind;
use lychgate_store as store;

use super::End;
use crate::gate::Gate;
use crate::log;
use crate::session::Session;

/// A step at one end, to be recorded before it is believed.
struct Seen {
    number: u64,
    end: End,
    stage: ControlStage,
    finding: Option<ControlFinding>,
}

impl Gate {
    /// An end says how far it has come: `number` is the newest control it has taken, so it stands for the older ones too.
    /// Recorded first, then believed. A number that was never told to anybody is a conflict, and stays one.
    pub async fn acknowledge(
        self: &Arc<Self>,
        session: &Session,
        end: ControlEnd,
        stage: ControlStage,
        number: u64,
    ) {
        let newest = *self.deliveries().newest.borrow();
        let told = number <= newest;
        let mut seen = Vec::new();
        for control in &self.deliveries().table().controls {
            let here = |one: &&End| one.end == end && one.holder == session.holder();
            let Some(found) = control.ends.iter().find(here) else {
                continue;
            };
            let conflicts = !told && control.number == newest && found.finding.is_none();
            let arrives = told && control.number <= number && !found.has(stage);
            if conflicts || arrives {
                seen.push(Seen {
                    number: control.number,
                    end: found.clone(),
                    stage,
                    finding: conflicts.then_some(ControlFinding::Conflict),
                });
            }
        }
        if !told {
            log::warn(
                "an end acknowledged a control it was never told of",
                &[("holder", session.holder().into())],
            );
        }
        self.record(seen).await;
    }

    /// The connection has ended. What was not seen at its ends by now is missing, and is never seen.
    pub async fn detach(self: &Arc<Self>, session: &Session) {
        let mut seen = Vec::new();
        {
            let mut table = self.deliveries().table();
            table.connections.remove(&session.holder());
            for control in &table.controls {
                let here = |end: &&End| end.holder == session.holder() && end.finding.is_none();
                for end in control.ends.iter().filter(here) {
                    seen.extend(end.lacks().map(|stage| Seen {
                        number: control.number,
                        end: end.clone(),
                        stage,
                        finding: Some(ControlFinding::Missing),
                    }));
                }
            }
        }
        self.record(seen).await;
    }

    /// What ends that are long gone left unsaid.
    pub(super) async fn record_missing(self: &Arc<Self>) {
        let mut seen = Vec::new();
        for control in &self.deliveries().table().controls {
            for end in control.ends.iter().filter(|end| end.finding.is_none()) {
                seen.extend(end.lacks().map(|stage| Seen {
                    number: control.number,
                    end: end.clone(),
                    stage,
                    finding: Some(ControlFinding::Missing),
                }));
            }
        }
        self.record(seen).await;
    }

    async fn record(self: &Arc<Self>, seen: Vec<Seen>) {
        for some in seen.chunks(AT_ONCE) {
            let current = self.current();
            let lines = some.iter().map(|one| {
                let draft = self.draft(ReceiptKind::ControlDelivered, &current);
                let draft = draft.control(one.end.part(one.number, one.stage, one.finding));
                match one.finding {
                    Some(ControlFinding::Missing) => {
                        draft.detail("the end went away before this was seen")
                    }
                    Some(ControlFinding::Conflict) => {
                        draft.detail("the end named a control it was never told of")
                    }
                    None => draft,
                }
                .entry()
            });
            let Ok(receipts) = lines.collect::<Result<Vec<_>, _>>() else {
                return log::error("how far a control has come cannot be written", &[]);
            };
            let now = self.now();
            // What could not be recorded was not seen.
            if self
                .must(store::Txn::Note(store::Note { now, receipts }))
                .await
                .is_err()
            {
                return;
            }
            let mut table = self.deliveries().table();
            for one in some {
                let control = table
                    .controls
                    .iter_mut()
                    .find(|control| control.number == one.number);
                let ends = control.into_iter().flat_map(|control| &mut control.ends);
                let same = |end: &&mut End| end.end == one.end.end && end.holder == one.end.holder;
                for end in ends.filter(same) {
                    match one.finding {
                        Some(finding) => end.finding = end.finding.or(Some((one.stage, finding))),
                        None => end.see(one.stage, now),
                    }
                }
            }
        }
    }
}

/// Lines of one transaction.
const AT_ONCE: usize = 256;
