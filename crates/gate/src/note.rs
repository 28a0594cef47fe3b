//! What is recorded beside acts.

use std::sync::Arc;

use lychgate_core::Code;
use lychgate_core::digest::b64;
use lychgate_core::receipt::{Commitment, ReceiptKind};
use lychgate_store as store;

use crate::gate::Gate;

impl Gate {
    /// Records a message that passed between a client and a server and is no act. `what` comes from our own closed set
    /// of phrases; of the message there is a salted commitment, and its salt under seal, so that only the gate opens it.
    ///
    /// # Errors
    /// EF-080 when there is no randomness, EF-081 when the store cannot answer: then it must not pass.
    pub async fn note_message(self: &Arc<Self>, what: &str, message: &[u8]) -> Result<(), Code> {
        let salt = self.fresh_salt()?;
        let commitment = String::from(Commitment::to(&salt, MESSAGE, message));
        let label = format!("{MESSAGE}:{commitment}");
        let sealed = self.sealer().seal(label.as_bytes(), &salt.0);
        let sealed = b64::encode(&sealed.map_err(|_| Code::FailClosed)?);
        self.commit_noted(format!("{what} {label} salt:{sealed}"))
            .await
    }

    /// A receipt of something that is no act; `detail` is a phrase of our own.
    pub(crate) async fn commit_noted(self: &Arc<Self>, detail: String) -> Result<(), Code> {
        let current = self.current();
        let receipt = self
            .draft(ReceiptKind::Noted, &current)
            .policy(current.policy_digest)
            .detail(detail)
            .entry()
            .map_err(|_| Code::FailClosed)?;
        let note = store::Note {
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Note(note)).await {
            Ok(store::Committed::Done(_)) => Ok(()),
            Ok(store::Committed::Rejected(_)) => Err(Code::FailClosed),
            Err(fault) => Err(self.store_fault(&fault)),
        }
    }
}

/// Label of the commitment.
const MESSAGE: &str = "message";
