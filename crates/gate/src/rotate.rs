//! A fresh key in the place of a role's current one (PROFILE §10), in two steps: the gate makes it and tells its public
//! half, the approver signs exactly that one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lychgate_core::Timestamp;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::signed::KeyId;
use lychgate_keys::verdict::{Challenge, KeyChange, PublicKey};
use lychgate_keys::{NewKey, Role};
use lychgate_store as store;

use crate::control::ControlRefused;
use crate::gate::Gate;

/// Keys that were made and that nobody believes yet; bounded in number and time, and gone with the gate.
#[derive(Debug, Default)]
pub(crate) struct NewKeys(Mutex<HashMap<[u8; 32], (NewKey, Timestamp)>>);

impl NewKeys {
    fn keep(&self, key: NewKey, now: Timestamp) {
        let mut kept = self.lock();
        kept.retain(|_, (_, made)| now.since(*made) < LIFETIME);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(key.public(), (key, now));
    }

    fn take(&self, role: Role, public: &PublicKey, now: Timestamp) -> Option<NewKey> {
        let mut kept = self.lock();
        kept.retain(|_, (_, made)| now.since(*made) < LIFETIME);
        if kept.get(&public.0)?.0.role() != role {
            return None;
        }
        kept.remove(&public.0).map(|(key, _)| key)
    }

    /// Every change is a map operation, so a poisoned lock is still good.
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], (NewKey, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key that would be put in the place of a role's current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedKey {
    /// Whose.
    pub role: Role,
    /// The key: what the approver signs.
    pub public: PublicKey,
    /// Its RFC 7638 thumbprint, as it will stand in the trust bundle.
    pub key_id: KeyId,
    /// To be signed with it.
    pub challenge: Challenge,
}

impl Gate {
    /// Makes a key for a role and keeps it, private half and all, in memory for fifteen minutes. Nothing believes it
    /// before [`Gate::rotate`].
    ///
    /// # Errors
    /// A sentence: the role is the approver's, or there is no randomness.
    pub fn prepare_key(&self, role: Role) -> Result<PreparedKey, ControlRefused> {
        let key = NewKey::generate(role).map_err(|fault| ControlRefused(fault.to_string()))?;
        let prepared = PreparedKey {
            role,
            public: PublicKey(key.public()),
            key_id: key.key_id().clone(),
            challenge: self.challenge()?,
        };
        self.new_keys().keep(key, self.now());
        Ok(prepared)
    }

    //= PROFILE §10: nobody rotates without the approver key
    /// Takes an approver's yes to a key of [`Gate::prepare_key`]: `put` puts it in place (key file and trust bundle), the
    /// authority epoch moves, and the gate ends, because it signs with the keys it started with.
    ///
    /// # Errors
    /// A sentence: the signature does not hold, it is for a key this gate did not make, or the key could not be put in
    /// place.
    pub async fn rotate(
        self: &Arc<Self>,
        change: &KeyChange,
        put: impl FnOnce(NewKey, Timestamp) -> Result<(), String>,
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
        let key = self
            .new_keys()
            .take(change.role, &change.public, self.now());
        let key = key.ok_or_else(|| {
            ControlRefused(
                "the approver's signature is for a key this gate did not make".to_owned(),
            )
        })?;
        let current = self.current();
        let new = key.key_id().clone();
        put(key, self.now()).map_err(ControlRefused)?;
        // From here on a fresh start believes the new key; this gate's own no longer counts, so it ends in any case.
        self.close();
        let what = format!("key:{}:{}", change.role, new.0);
        let draft = self
            .draft(ReceiptKind::KeyChanged, &current)
            .policy(current.policy_digest)
            .approver(Some(change.mark.key_id.clone()))
            .detail(what.clone());
        let number = current.epochs.control().saturating_add(1);
        let txn = store::Rotate {
            now: self.now(),
            receipts: self.emission(draft, number, &current)?,
        };
        self.commit_control(store::Txn::Rotate(txn)).await?;
        self.emitted(ReceiptKind::KeyChanged, number, what);
        Ok(new)
    }
}

/// As long as a challenge.
const LIFETIME: Duration = Duration::from_secs(900);
const MOST_KEPT: usize = 64;
