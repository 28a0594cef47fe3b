//! A worker's connection: who comes with which chain, and whether it stands.

use std::sync::Arc;

use lychgate_core::delegation::{Chain, DelegationFile};
use lychgate_core::{Code, Timestamp, json};
use lychgate_keys::{NotBelieved, Unbelieved, verify_chain_live};

use super::Worker;
use crate::current::Current;
use crate::gate::Gate;
use crate::ped::Denied;
use crate::session::{Peer, Session};

/// Why a chain does not stand.
pub(super) type Fallen = (Code, &'static str);

impl Gate {
    //= draft §10: discovery of a worker, or of its file, confers nothing
    /// A worker's connection to `server`. What it may ask for is what every link of the chain grants, for as long as all of
    /// them stand; each of its acts is judged by it again.
    ///
    /// # Errors
    /// A denial, recorded: EF-051 when the chain does not hold together, is over, or was never made here; EF-003 when a
    /// signature does not hold; EF-050 when another user comes with it, or without its secret; EF-032 when the authority
    /// epoch has moved; EF-062 when one of its links, or an agent of it, is revoked; EF-017 for another principal.
    pub async fn connect_delegated(
        self: &Arc<Self>,
        server: &str,
        peer: Peer,
        file: &DelegationFile,
    ) -> Result<Arc<Session>, Denied> {
        match self.verified(peer, file) {
            Ok(worker) => self
                .session(server, Some(peer), Some(worker), None)
                .map_err(no_session),
            Err((code, why)) => {
                let session = self.session(server, Some(peer), None, None);
                let session = session.map_err(no_session)?;
                Err(self.deny_request(&session, code, why).await)
            }
        }
    }

    fn verified(&self, peer: Peer, file: &DelegationFile) -> Result<Worker, Fallen> {
        let chain = file.chain().map_err(|_| {
            let why = "a link of the chain is more than the one above it";
            (Code::DelegationExceeded, why)
        })?;
        verify_chain_live(&self.trust(), &chain, self.now()).map_err(unbelieved)?;
        let admitted = chain
            .holder()
            .is_some_and(|holder| holder.admits(peer.uid, file.secret.as_ref()));
        if !admitted {
            let why = "the delegation was given to somebody else";
            return Err((Code::HolderMismatch, why));
        }
        self.made_here(&chain)?;
        stands(&chain, &self.current(), self.now())?;
        Worker::new(chain).ok_or((Code::FailClosed, "the chain has no digest"))
    }

    //= PROFILE §4: it requires that what is presented is what the store issued
    /// Whether the store holds every link exactly so: a signature whose commit failed is worth nothing.
    fn made_here(&self, chain: &Chain) -> Result<(), Fallen> {
        for link in chain.links() {
            let row = self.store().delegation(link.delegation_id);
            let row = row.map_err(|fault| (self.store_fault(&fault), "the store cannot answer"))?;
            let body = json::to_canonical(link).ok();
            if row.map(|row| row.body) != body {
                let why = "the delegation was never made by this gate";
                return Err((Code::DelegationExceeded, why));
            }
        }
        Ok(())
    }
}

/// Whether a verified chain stands at this moment.
pub(super) fn stands(chain: &Chain, current: &Current, now: Timestamp) -> Result<(), Fallen> {
    let applied = &current.applied;
    for link in chain.links() {
        let principal = &link.initiating_principal;
        if principal.principal_id != applied.principal().id
            || principal.principal_type != applied.principal().kind
        {
            let why = "the delegation is of another principal";
            return Err((Code::PrincipalNotAuthorized, why));
        }
        if link.epochs.authority_epoch != current.epochs.authority_epoch {
            let why = "the authority epoch moved since the delegation";
            return Err((Code::AuthorityEpochMismatch, why));
        }
        if now < link.issued_at || now >= link.expires_at {
            let why = "the delegation is over";
            return Err((Code::DelegationExceeded, why));
        }
    }
    let top = chain.links().first();
    if top.is_none_or(|link| link.parent_agent_id.as_str() != applied.agent().id) {
        let why = "the chain does not begin at the configured agent";
        return Err((Code::DelegationExceeded, why));
    }
    if chain.depth() > applied.agent().max_depth {
        let why = "the delegation is deeper than allowed";
        return Err((Code::DelegationExceeded, why));
    }
    Ok(())
}

fn unbelieved(not: NotBelieved) -> Fallen {
    match not.why {
        Unbelieved::Invalid(_) => (
            Code::InvalidAuthority,
            "a link of the chain is not signed by the PED",
        ),
        Unbelieved::NotYet(_) | Unbelieved::Over(_) => {
            (Code::DelegationExceeded, "the delegation is over")
        }
    }
}

fn no_session(code: Code) -> Denied {
    Denied {
        code,
        pointer: None,
        act: None,
        ticket: None,
        state: lychgate_core::State::Refused,
    }
}
