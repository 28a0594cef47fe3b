//! A fresh key in the place of a role's current one (PROFILE §10).

use std::sync::Arc;

use lychgate_core::Timestamp;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::signed::KeyId;
use lychgate_keys::Role;
use lychgate_keys::verdict::KeyChange;
use lychgate_store as store;

use crate::control::ControlRefused;
use crate::gate::Gate;

impl Gate {
    //= PROFILE §10: nobody rotates without the approver key
    /// Takes an approver's yes to a new key: `make` puts it in place (key file and trust bundle) and gives its id, the
    /// authority epoch moves, and the gate ends, because it signs with the keys it started with.
    ///
    /// # Errors
    /// A sentence: the signature does not hold, or the key could not be put in place.
    pub async fn rotate(
        self: &Arc<Self>,
        change: &KeyChange,
        make: impl FnOnce(Role, Timestamp) -> Result<KeyId, String>,
    ) -> Result<KeyId, ControlRefused> {
        let _alone = self.one_control().await;
        if !self.verify_live(Role::Approver, change) {
            return Err(ControlRefused(
                "the change is not signed by the approver key of this gate".to_owned(),
            ));
        }
        if !self.challenges().take(&change.challenge, self.now()) {
            return Err(ControlRefused(
                "the approver's signature is too old or was used before".to_owned(),
            ));
        }
        let current = self.current();
        let new = make(change.role, self.now()).map_err(ControlRefused)?;
        // From here on a fresh start believes the new key; this gate's own no longer counts, so it ends in any case.
        self.close();
        let receipt = self
            .draft(ReceiptKind::KeyChanged, &current)
            .policy(current.policy_digest)
            .approver(Some(change.mark.key_id.clone()))
            .detail(format!("key:{}:{}", change.role, new.0))
            .entry()
            .map_err(|fault| ControlRefused(fault.to_string()))?;
        let txn = store::Rotate {
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Rotate(txn)).await {
            Ok(store::Committed::Done(_)) => Ok(new),
            Ok(store::Committed::Rejected(why)) => Err(ControlRefused(why.to_string())),
            Err(fault) => {
                self.store_fault(&fault);
                Err(ControlRefused(fault.to_string()))
            }
        }
    }
}
