//! Another approver, or one less: said by an approver, kept in the trust bundle, recorded (PROFILE §10).

use std::sync::Arc;

use lychgate_core::receipt::ReceiptKind;
use lychgate_core::signed::KeyId;
use lychgate_keys::verdict::{ApproverChange, Membership};
use lychgate_keys::{Role, TrustBundle, thumbprint};
use lychgate_policy::Applied;
use lychgate_store as store;

use crate::control::ControlRefused;
use crate::gate::Gate;

fn refused(why: impl ToString) -> ControlRefused {
    ControlRefused(why.to_string())
}

impl Gate {
    //= PROFILE §10: nobody widens who may say yes without the approver key
    /// Takes an approver's yes to another approver, or to one less. `put` writes the trust bundle. The authority epoch
    /// moves: what a retired key approved and nobody has used is worth nothing.
    ///
    /// # Errors
    /// A sentence: the signature does not hold, the key is known or unknown, it is the last one, or a file cannot be
    /// written.
    pub async fn change_approver(
        self: &Arc<Self>,
        change: &ApproverChange,
        put: impl FnOnce(&TrustBundle) -> Result<(), String>,
    ) -> Result<KeyId, ControlRefused> {
        let _alone = self.one_control().await;
        if !self.verify_live(Role::Approver, change) {
            return Err(refused(
                "the change is not signed by an approver key of this gate",
            ));
        }
        let now = self.now();
        if !self.challenges().take(&change.challenge, now) {
            return Err(refused(
                "the approver's signature is too old or was used before",
            ));
        }
        let mut next = self.trust();
        let key = thumbprint(&change.public.0);
        match change.change {
            Membership::Add => {
                next.add(Role::Approver, change.public.0, now)
                    .map_err(refused)?;
                // Recorded first: nobody is believed of whom the record does not tell.
                self.record_approver(change, &key).await?;
                put(&next).map_err(refused)?;
                self.believe(next);
            }
            Membership::Retire => {
                if next.approvers().all(|one| one.key_id() != &key) {
                    return Err(refused("that key is no approver's"));
                }
                if next.approvers().count() == 1 {
                    return Err(refused(
                        "that is the last approver: nobody could ever say yes again",
                    ));
                }
                next.retire(&key, now).map_err(refused)?;
                put(&next).map_err(refused)?;
                self.believe(next);
                self.record_approver(change, &key).await?;
            }
        }
        self.refresh(Arc::clone(&self.current().applied))?;
        Ok(key)
    }

    async fn record_approver(
        self: &Arc<Self>,
        change: &ApproverChange,
        key: &KeyId,
    ) -> Result<(), ControlRefused> {
        let current = self.current();
        let what = match change.change {
            Membership::Add => "added",
            Membership::Retire => "retired",
        };
        let receipt = self
            .draft(ReceiptKind::KeyChanged, &current)
            .policy(current.policy_digest)
            .approver(Some(change.mark.key_id.clone()))
            .detail(format!("key:{}:{}:{what}", Role::Approver, key.0))
            .entry()
            .map_err(refused)?;
        let txn = store::Rotate {
            now: self.now(),
            receipts: vec![receipt],
        };
        match self.store().commit(store::Txn::Rotate(txn)).await {
            Ok(store::Committed::Done(_)) => Ok(()),
            Ok(store::Committed::Rejected(why)) => Err(refused(why)),
            Err(fault) => {
                self.store_fault(&fault);
                Err(refused(fault))
            }
        }
    }

    /// Whether each group of a configuration has as many believed keys as it wants yeses: else nobody could ever approve
    /// what it is for.
    pub(crate) fn groups_can_decide(&self, applied: &Applied) -> Result<(), ControlRefused> {
        let trust = self.trust();
        for (name, group) in applied.approvers() {
            let believed = trust.approvers().filter(|key| group.has(key.key_id()));
            let believed = u64::try_from(believed.count()).unwrap_or(u64::MAX);
            if believed < group.quorum() {
                return Err(refused(format!(
                    "approvers `{name}` wants {} of its keys, and {believed} of them are believed here: see `lychgate keys list`",
                    group.quorum()
                )));
            }
        }
        Ok(())
    }
}
