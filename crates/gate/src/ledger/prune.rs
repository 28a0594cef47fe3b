//! Dropping the bytes of lines that were archived. Their leaf hashes and the whole tree stay, so no proof is lost; that
//! the archive is whole whoever drops has verified, and the approver signs over its digest.

use std::sync::Arc;

use lychgate_core::Digest;
use lychgate_core::receipt::{Approver, ReceiptKind};
use lychgate_keys::Role;
use lychgate_keys::verdict::{BundleEdge, PruneVerdict};
use lychgate_store as store;

use crate::control::ControlRefused;
use crate::gate::Gate;

/// What is to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archived {
    /// The first line.
    pub first: BundleEdge,
    /// One past the last line.
    pub below: BundleEdge,
    /// Digest of the archive, as in [`PruneVerdict::archive`].
    pub archive: Digest,
}

impl Gate {
    /// Drops the bytes of archived lines, each stretch with its receipt in the same transaction. One that is interrupted
    /// has dropped some whole stretches, and may be asked for again.
    ///
    /// # Errors
    /// A sentence: there is an approver and this is not its yes to exactly this, or the record has no such lines.
    pub async fn prune(
        self: &Arc<Self>,
        what: Archived,
        yes: Option<&PruneVerdict>,
    ) -> Result<(), ControlRefused> {
        let _one = self.one_control().await;
        self.check_prune(what, yes)?;
        let size = self.store().record_len().map_err(refused)?;
        if what.first >= what.below || what.below.line() > size {
            return Err(refused("the record has no such lines"));
        }
        let approver = yes.map(|verdict| verdict.mark.key_id.clone());
        let mut from = what.first.line();
        while from < what.below.line() {
            let below = what.below.line().min(from.saturating_add(STRETCH));
            let current = self.current();
            let receipt = self
                .draft(ReceiptKind::Pruned, &current)
                .policy(current.policy_digest)
                .approver(approver.clone())
                .detail(format!(
                    "lines:{from}-{} archive:{}",
                    below - 1,
                    what.archive.to_base64url()
                ))
                .entry()
                .map_err(refused)?;
            let txn = store::Prune {
                from,
                below,
                now: self.now(),
                receipts: vec![receipt],
            };
            match self.store().commit(store::Txn::Prune(txn)).await {
                Ok(store::Committed::Done(_)) => from = below,
                Ok(store::Committed::Rejected(why)) => return Err(refused(why)),
                Err(fault) => {
                    self.store_fault(&fault);
                    return Err(refused(fault));
                }
            }
        }
        Ok(())
    }

    //= PROFILE §10: an agent's shell cannot make the record tell less
    fn check_prune(
        &self,
        what: Archived,
        yes: Option<&PruneVerdict>,
    ) -> Result<(), ControlRefused> {
        let Some(verdict) = yes else {
            return match self.standing().approver {
                Approver::None => Ok(()),
                Approver::Key => Err(refused("to drop lines needs the approver's key")),
            };
        };
        if !self.verify_live(Role::Approver, verdict) {
            return Err(refused(
                "the yes is not signed by the approver key of this gate",
            ));
        }
        if (verdict.first, verdict.below, verdict.archive) != (what.first, what.below, what.archive)
        {
            return Err(refused("the yes is for other lines or another archive"));
        }
        if !self.challenges().take(&verdict.challenge, self.now()) {
            return Err(refused("the yes is too old or was used before"));
        }
        Ok(())
    }
}

fn refused(why: impl ToString) -> ControlRefused {
    ControlRefused(why.to_string())
}

/// Lines in one transaction: the writer serves others in between.
const STRETCH: u64 = 16_384;
