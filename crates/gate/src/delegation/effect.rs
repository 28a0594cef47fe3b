//! The effect of an AGENT_DELEGATION: the signed link becomes durable, in one transaction with the act's outcome. Before that
//! commit nobody has seen it, so a delegation that failed was never made.

use std::sync::Arc;

use lychgate_core::delegation::{Chain, Delegation, DelegationFile, Secret};
use lychgate_core::id::{ActId, DelegationId, TicketId};
use lychgate_core::{Code, State, json};
use lychgate_store::NewDelegation;

use super::act::{connected, end_of};
use super::{DelegationRequest, TOOL};
use crate::approval::Caller;
use crate::doors::Passed;
use crate::gate::Gate;
use crate::hold::HeldAct;
use crate::ped::Denied;
use crate::session::Peer;
use crate::sink::{Dispatched, End, FinalitySink};

/// A delegation that was made.
#[derive(Debug)]
pub struct Delegated {
    /// The act that made it.
    pub act: ActId,
    /// What its holder is handed, secret and all.
    pub file: DelegationFile,
}

impl Gate {
    //= draft §5.9: AGENT_DELEGATION is a candidate act
    /// Delegates: through both doors, with a person's yes where policy asks for one. `from` is the chain of the agent that
    /// delegates; without one the agent itself does. `waiting` hears of a ticket.
    ///
    /// # Errors
    /// The denial, recorded.
    pub async fn delegate(
        self: &Arc<Self>,
        peer: Peer,
        from: Option<&DelegationFile>,
        request: DelegationRequest,
        caller: &Caller,
        waiting: &(dyn Fn(TicketId) + Send + Sync),
    ) -> Result<Delegated, Denied> {
        let session = match from {
            Some(file) => self.connect_delegated(TOOL, peer, file).await?,
            None => self.connect(TOOL, peer).map_err(bare)?,
        };
        let held = self.hold_delegation(&session, request).map_err(bare)?;
        let sink = FinalitySink::delegation();
        let passed = self.pass(held, &sink, caller, &connected, waiting).await;
        let (held, dispatched) = match passed {
            Passed::Denied(denied) => return Err(denied),
            // No answer of such an act is kept.
            Passed::Recorded { act, .. } => {
                return Err(Denied {
                    act: Some(act),
                    ..bare(Code::TwinUnresolved)
                });
            }
            Passed::Dispatched { held, dispatched } => (held, dispatched),
        };
        self.make(&held, dispatched).await
    }

    async fn make(
        self: &Arc<Self>,
        held: &HeldAct,
        dispatched: Dispatched,
    ) -> Result<Delegated, Denied> {
        let act = held.act.candidate_act_id;
        let failed = |state| Denied {
            act: Some(act),
            state,
            ..bare(Code::FailClosed)
        };
        let begun = match dispatched.permit.begin() {
            Ok(begun) => begun,
            Err(not_sent) => {
                let settled = self.settle(not_sent.into(), None).await;
                return Err(failed(settled.state));
            }
        };
        let Some((link, secret)) = self.signed_link(held) else {
            let settled = self.settle(begun.end(End::NoEffect), None).await;
            return Err(failed(settled.state));
        };
        let (file, new) = match (self.file(held, &link, secret), kept(&link)) {
            (Some(file), Some(new)) => (file, new),
            _ => {
                let settled = self.settle(begun.end(End::NoEffect), None).await;
                return Err(failed(settled.state));
            }
        };
        let settled = self.settle_delegation(begun.end(End::Effected), new).await;
        // What is not durable is not handed out: the next gate would not know it.
        if settled.recorded && settled.state == State::Effected {
            Ok(Delegated { act, file })
        } else {
            Err(failed(settled.state))
        }
    }

    fn signed_link(&self, held: &HeldAct) -> Option<(Delegation, Secret)> {
        let request = held.delegation.as_ref()?;
        let id = DelegationId::new(self.now(), self.ten().ok()?);
        let mut random = [0; 32];
        self.entropy().fill(&mut random).ok()?;
        let secret = Secret::new(random);
        let mut link = self.link(held, request, id, Some(secret.digest()))?;
        let above = held.session.worker().map(|worker| &worker.chain);
        link.expires_at = end_of(link.expires_at, above);
        self.sign_as_ped(&mut link).ok()?;
        Some((link, secret))
    }

    fn file(&self, held: &HeldAct, link: &Delegation, secret: Secret) -> Option<DelegationFile> {
        let above = held.session.worker();
        let links = above.map_or(&[][..], |worker| worker.chain.links());
        let chain = Chain::new(links.iter().cloned().chain([link.clone()]).collect()).ok()?;
        Some(DelegationFile::new(&chain, Some(secret)))
    }
}

fn kept(link: &Delegation) -> Option<NewDelegation> {
    Some(NewDelegation {
        id: link.delegation_id,
        expires_at: link.expires_at,
        body: json::to_canonical(link).ok()?,
    })
}

fn bare(code: Code) -> Denied {
    Denied {
        code,
        pointer: None,
        act: None,
        ticket: None,
        state: State::Refused,
    }
}
