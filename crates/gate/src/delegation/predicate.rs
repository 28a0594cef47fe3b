//! What a chain says of an act. Each link is asked, so what the last one grants counts only as far as all above it do.

use lychgate_core::Code;
use lychgate_policy::{Finding, Scope, Target, judge_delegation};

use super::Worker;
use super::connect::stands;
use crate::gate::Gate;
use crate::hold::{Found, HeldAct};
use crate::receipts::source_of;

const fn deny(code: Code, why: &'static str) -> Finding {
    Finding::Deny { code, why }
}

/// PROFILE §7, allowlist: what a delegated worker may name is also what its chain names. EF-015: the tool is not there for
/// it.
pub(crate) fn names_tool(held: &HeldAct) -> bool {
    match (held.session.worker(), held.found) {
        // Whether it may delegate on is a question of depth.
        (None, _) | (Some(_), Found::Delegation) => true,
        (Some(worker), _) => {
            let tool = &held.act.tool;
            worker.chain.permits_tool(&tool.tool_id, &tool.function_id)
        }
    }
}

impl Gate {
    //= draft §8.2: delegation_depth > policy.max_depth -> DELEGATION_EXCEEDED; PROFILE §7: depth, attenuation, budgets
    /// Depth, attenuation, cumulative budgets.
    pub(crate) fn judge_chain(&self, held: &HeldAct) -> Finding {
        let applied = &held.current.applied;
        let depth = held.act.agent.delegation_depth.unwrap_or(0);
        if depth > applied.agent().max_depth {
            let why = "the delegation is deeper than allowed";
            return deny(Code::DelegationExceeded, why);
        }
        match held.session.worker() {
            Some(worker) => {
                if let Some(no) = self.outside(held, worker) {
                    return no;
                }
            }
            None if !held.session.speaks_for_itself(applied.agent()) => {
                let why = "this user must come with a delegation";
                return deny(Code::DelegationExceeded, why);
            }
            None => {}
        }
        if let Some(no) = self.unfit_delegation(held) {
            return no;
        }
        self.over_budget(held).unwrap_or(Finding::Pass)
    }

    /// Why the chain does not reach the act.
    fn outside(&self, held: &HeldAct, worker: &Worker) -> Option<Finding> {
        let chain = &worker.chain;
        if let Err((code, why)) = stands(chain, &self.current(), self.now()) {
            return Some(deny(code, why));
        }
        let exceeded = |why| Some(deny(Code::DelegationExceeded, why));
        if !chain.permits_class(held.act.consequence_class) {
            return exceeded("the delegation does not grant the consequence class");
        }
        if !chain.permits_purpose(&held.act.purpose.purpose_id) {
            return exceeded("the delegation does not grant the purpose");
        }
        let reach = held.reach.as_ref().ok()?;
        let places = reach.targets.iter().map(names_of);
        let people = reach.recipients.iter().map(|one| vec![one.clone()]);
        let granted = |names: Vec<String>| {
            let names = names.iter().map(String::as_str).collect::<Vec<_>>();
            chain.permits_destination(&names)
        };
        if held.found != Found::Delegation && !places.chain(people).all(granted) {
            return exceeded("the delegation does not grant the destination");
        }
        None
    }
}

/// What a grant may call a target: its canonical name, its host, its root.
fn names_of(target: &Target) -> Vec<String> {
    let mut names = vec![target.canonical.clone()];
    match &target.scope {
        Scope::External { host, .. } => names.push(host.clone()),
        Scope::InRoot { root, .. } => names.push(format!("root:{root}")),
        Scope::OutsideRoots | Scope::Forbidden | Scope::Fixed | Scope::LocalOther => {}
    }
    names
}

/// The policy's word on a delegation: never silent where it hands on acts with consequences.
pub(super) fn judge_grant(held: &HeldAct) -> Option<Finding> {
    let grant = &held.delegation.as_ref()?.grant;
    let classes = &grant.consequence_classes;
    let profile = held.current.applied.profile();
    Some(judge_delegation(profile, classes, source_of(&held.act)))
}
