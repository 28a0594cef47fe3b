//! Delegation (draft §5.9, §10): a worker comes with a chain, the gate verifies it link by link, and derives from it who
//! acts, at which depth, and what may be asked for at most. Nothing of that is taken from the caller.
//!
//! - [`connect`]: a worker's connection, and the chain it comes with
//! - `predicate`: what a chain says of each act
//! - `budget`: what each act draws on, along the chain
//! - `act`: AGENT_DELEGATION as a candidate act; `effect`: making the link

mod act;
mod budget;
pub mod connect;
mod effect;
mod predicate;

use std::sync::Arc;

use lychgate_core::Digest;
use lychgate_core::delegation::Chain;
use lychgate_core::id::DelegationId;

pub use self::act::{DelegationRequest, MOST_LIFETIME};
pub(crate) use self::act::{TOOL, is_connected, live_delegation};
pub(crate) use self::budget::{Charges, code_of_budget};
pub use self::effect::Delegated;
pub(crate) use self::predicate::names_tool;
use crate::gate::Gate;
use crate::session::Session;

/// A chain that was verified when its holder connected. Every act under it is held against it again.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) chain: Chain,
    /// What evidence says of it.
    pub(crate) digest: Digest,
    /// What must not be revoked for anything under it to run, beside what every act needs.
    pub(crate) subjects: Vec<String>,
}

impl Worker {
    fn new(chain: Chain) -> Option<Self> {
        let digest = chain.digest().ok()?;
        let links = chain.links().iter();
        let ids = links
            .clone()
            .map(|link| format!("delegation:{}", link.delegation_id));
        // The acting agent itself stands among every act's own subjects.
        let agents = links.map(|link| format!("agent:{}", link.parent_agent_id.as_str()));
        let subjects = ids.chain(agents).collect();
        Some(Self {
            chain,
            digest,
            subjects,
        })
    }
}

impl Session {
    /// Hops from the principal's own agent.
    pub(crate) fn depth(&self) -> u32 {
        self.worker().map_or(0, |worker| worker.chain.depth())
    }

    /// The last link of the chain.
    pub(crate) fn delegation(&self) -> Option<DelegationId> {
        self.worker().and_then(|worker| worker.chain.id())
    }

    /// The agent that delegated to this one.
    pub(crate) fn parent_agent(&self) -> Option<String> {
        let worker = self.worker()?;
        Some(worker.chain.parent().to_owned())
    }
}

impl Gate {
    /// The delegations that were made, newest first, as they are kept: signed objects, canonical.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn delegations(
        self: &Arc<Self>,
        limit: usize,
    ) -> Result<Vec<lychgate_store::DelegationRow>, lychgate_store::StoreFault> {
        self.store().delegations(limit)
    }
}
