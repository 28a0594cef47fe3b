//! The sink's side of a test: an authority in hand, and the invocation as it would be made.

use std::sync::Arc;

use lychgate_core::act::{CandidateAct, Destination};
use lychgate_core::authority::FinalityAuthority;
use lychgate_core::id::HolderId;
use lychgate_core::{ConsequenceClass, Digest};
use lychgate_gate::{Allowed, HeldAct, LiveInvocation, Presented, Session, Verdict};

use super::{Kit, value_of};

/// A live invocation that owns what it is made of, so that a test can change each part.
#[derive(Clone, Debug)]
pub struct Live {
    pub holder: HolderId,
    pub tool_id: String,
    pub function_id: String,
    pub endpoint: String,
    pub definition: Digest,
    pub arguments: Vec<u8>,
    pub continuation: Option<Digest>,
    pub destination: Destination,
    pub class: ConsequenceClass,
}

impl Live {
    pub fn view(&self) -> LiveInvocation<'_> {
        LiveInvocation {
            holder: self.holder,
            tool_id: &self.tool_id,
            function_id: &self.function_id,
            endpoint: &self.endpoint,
            definition: self.definition,
            arguments: &self.arguments,
            continuation: self.continuation,
            destination: self.destination.clone(),
            class: self.class,
            idempotent: false,
        }
    }
}

/// An act with its authority, before the sink has seen either.
pub struct Prepared {
    pub act: CandidateAct,
    pub authority: FinalityAuthority,
    pub held: HeldAct,
    pub presented: Presented,
    pub live: Live,
}

impl Prepared {
    /// What somebody who got hold of act and authority would present.
    pub fn stolen(&self) -> Presented {
        Presented::from_outside(self.act.clone(), Some(self.authority.clone()))
    }
}

impl Kit {
    pub async fn allowed(
        &self,
        session: &Arc<Session>,
        function: &str,
        arguments: &str,
    ) -> Allowed {
        match self
            .gate
            .decide(self.held(session, function, arguments))
            .await
        {
            Verdict::Allow(allowed) => *allowed,
            other => panic!("not allowed but {other:?}"),
        }
    }

    pub async fn prepared(
        &self,
        session: &Arc<Session>,
        function: &str,
        arguments: &str,
    ) -> Prepared {
        let allowed = self.allowed(session, function, arguments).await;
        let mut authority = allowed.authority().unwrap().clone();
        self.sign_as_ped(&mut authority);
        let act = allowed.held().act().clone();
        let (held, presented) = allowed.into_parts();
        let live = self.live(session, function, arguments);
        Prepared {
            act,
            authority,
            held,
            presented,
            live,
        }
    }

    /// The invocation that was decided on.
    pub fn live(&self, session: &Arc<Session>, function: &str, arguments: &str) -> Live {
        let current = self.gate.current();
        let server = current.applied.server("box").unwrap();
        let entry = server.tool(function).unwrap();
        let arguments = value_of(arguments.as_bytes());
        let reach = entry
            .destinations(&arguments, self.gate.paths(), server)
            .unwrap();
        Live {
            holder: session.holder(),
            tool_id: "box".to_owned(),
            function_id: function.to_owned(),
            endpoint: server.endpoint().to_owned(),
            definition: entry.definition,
            arguments: lychgate_core::jcs::to_bytes(&arguments),
            continuation: None,
            destination: reach.destination,
            class: entry.class,
        }
    }
}

impl Kit {
    /// Puts an authority into the store without consuming it, as a gate with the two steps apart would.
    pub async fn issue(&self, prepared: &Prepared) {
        use lychgate_store::{Grant, Issue, NewAct, Store, Txn};
        let (act, binding) = (&prepared.act, &prepared.authority.binding);
        let new_act = NewAct {
            id: act.candidate_act_id,
            created_at: act.created_at,
            twin: None,
            act_digest: Some(act.digest().unwrap()),
            arguments_digest: None,
            destination: None,
            salt: lychgate_core::receipt::Salt([1; 16]),
            agent: act.agent.agent_id.clone(),
            depth: 0,
            delegation: None,
            tool: None,
            function: None,
            class: Some(act.consequence_class),
            source: None,
            vouched: false,
            retry_of: None,
        };
        let issue = Issue {
            act: new_act,
            grant: Grant {
                authority: prepared.authority.authority_id,
                holder: binding.holder_id,
                nonce: binding.nonce,
                expires_at: prepared.authority.lifetime.expires_at,
                epochs: binding.epochs(),
                policy_digest: binding.policy_digest,
            },
            now: self.gate.now(),
            receipts: Vec::new(),
        };
        self.store
            .commit(Txn::Issue(issue))
            .await
            .unwrap()
            .done()
            .unwrap();
    }
}
