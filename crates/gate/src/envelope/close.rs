//! Closing an envelope by hand, and telling of those that are open.

use std::sync::Arc;

use lychgate_core::act::SourceType;
use lychgate_core::id::{ActId, EnvelopeId};
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{ConsequenceClass, Timestamp};
use lychgate_store as store;

use crate::control::ControlRefused;
use crate::gate::Gate;

/// An open envelope, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEnvelope {
    /// Which.
    pub id: EnvelopeId,
    /// The act it was opened by.
    pub act: ActId,
    /// Whose acts go by it.
    pub agent: String,
    /// At which server.
    pub tool: String,
    /// Of which function.
    pub function: String,
    /// To which destination.
    pub destination: Option<String>,
    /// Of which class.
    pub class: ConsequenceClass,
    /// On whose instruction.
    pub source: Option<SourceType>,
    /// A person granted it, not the configuration.
    pub granted: bool,
    /// Acts that went by it.
    pub used: u64,
    /// Acts it has in all.
    pub acts: u64,
    /// When it ends at the latest.
    pub until: Timestamp,
}

impl Gate {
    /// The open envelopes, oldest first.
    pub fn open_envelopes(&self) -> Vec<OpenEnvelope> {
        let now = self.now();
        let epochs = self.current().epochs;
        let table = self.envelopes().table();
        let open = table.open.iter();
        let open = open.filter(|(_, one)| now < one.until && one.epochs == epochs);
        let mut all = open
            .map(|(kind, envelope)| OpenEnvelope {
                id: envelope.id,
                act: envelope.act,
                agent: kind.agent.clone(),
                tool: kind.tool.clone(),
                function: kind.function.clone(),
                destination: kind.destination.clone(),
                class: kind.class,
                source: kind.source,
                granted: envelope.approval.is_some(),
                used: envelope.drawn.acts,
                acts: envelope.limits.acts,
                until: envelope.until,
            })
            .collect::<Vec<_>>();
        drop(table);
        all.sort_unstable_by_key(|one| one.id);
        all
    }

    /// Closes an envelope. What was decided under it and not dispatched yet never is: its id is revoked, and with every move
    /// of the revocation epoch all other envelopes close too.
    ///
    /// # Errors
    /// When there is no such envelope, or the store cannot answer.
    pub async fn close_envelope(self: &Arc<Self>, id: EnvelopeId) -> Result<(), ControlRefused> {
        let _alone = self.one_control().await;
        if !self.open_envelopes().iter().any(|open| open.id == id) {
            return Err(ControlRefused(format!("there is no open envelope `{id}`")));
        }
        let refused = |why: &dyn ToString| ControlRefused(why.to_string());
        let current = self.current();
        let receipt = self
            .draft(ReceiptKind::EnvelopeClosed, &current)
            .policy(current.policy_digest)
            .detail(format!("envelope:{id} a person closed it"))
            .entry()
            .map_err(|fault| refused(&fault))?;
        let revoke = store::Revoke {
            add: vec![format!("envelope:{id}")],
            remove: Vec::new(),
            now: self.now(),
            receipts: vec![receipt],
        };
        self.must(store::Txn::Revoke(revoke))
            .await
            .map_err(|code| refused(&code))?;
        self.envelopes().clear();
        self.refresh(Arc::clone(&current.applied))
    }

    /// Records that envelopes closed. They are closed whether or not the store can answer.
    pub(super) async fn record_closed(self: &Arc<Self>, closed: &[EnvelopeId], why: &'static str) {
        let current = self.current();
        let line = |id: &EnvelopeId| {
            self.draft(ReceiptKind::EnvelopeClosed, &current)
                .policy(current.policy_digest)
                .detail(format!("envelope:{id} {why}"))
                .entry()
                .ok()
        };
        let receipts = closed.iter().filter_map(line).collect();
        let note = store::Note {
            now: self.now(),
            receipts,
        };
        // The fault is in the log, and the act at hand meets it again.
        let _ = self.must(store::Txn::Note(note)).await;
    }
}
