//! What an act draws on: the agent's own budget, and that of every link of its chain (draft §10). Drawn in the transaction
//! that consumes its authority, all or none; looked at before, so that nobody is asked about an act that would fail anyway.

use lychgate_core::act::CandidateAct;
use lychgate_core::json::Value;
use lychgate_core::{Code, ConsequenceClass, Timestamp};
use lychgate_policy::{Finding, ToolEntry};
use lychgate_store::{Account, Charge, Drawn, Over, Refund};

use crate::current::Current;
use crate::gate::Gate;
use crate::hold::HeldAct;
use crate::session::Session;

/// What an act draws, or why that cannot be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Charges {
    pub(crate) all: Vec<Charge>,
    uncountable: Option<(Code, &'static str)>,
}

impl Charges {
    /// Of an act without a budget: nothing.
    pub(crate) fn of(
        session: &Session,
        current: &Current,
        act: &CandidateAct,
        spending: Option<(&ToolEntry, &Value)>,
    ) -> Self {
        let agent = current.applied.agent();
        let own = agent.budget.as_ref().filter(|_| !session.is_own());
        let links = session.worker().map(|worker| worker.chain.links());
        if own.is_none() && links.is_none() {
            return Self::default();
        }
        let charge = |account, limits: &lychgate_core::delegation::Budget, every| Charge {
            account,
            limits: limits.clone(),
            every,
            high_risk: act.consequence_class.high_risk(),
            spend: None,
        };
        let mut all = Vec::new();
        all.extend(own.map(|own| charge(Account::Agent, &own.budget, Some(own.every))));
        let counted = links.into_iter().flatten();
        let counted = counted.filter(|link| !link.grant.budget.is_unlimited());
        all.extend(counted.map(|link| {
            let account = Account::Delegation(link.delegation_id);
            charge(account, &link.grant.budget, None)
        }));
        let counts_value = |charge: &&mut Charge| charge.limits.spend.is_some();
        let mut valued = all.iter_mut().filter(counts_value).peekable();
        if let (Some((entry, arguments)), Some(first)) = (spending, valued.peek()) {
            match entry.spend(arguments) {
                //= draft §10: what cannot be counted is not within any budget
                Ok(None) if act.consequence_class == ConsequenceClass::Financial => {
                    let code = code_of_budget(first.account, Over::Spend);
                    let why = "nothing says which argument is the amount";
                    return Self {
                        all,
                        uncountable: Some((code, why)),
                    };
                }
                Ok(spend) => valued.for_each(|charge| charge.spend.clone_from(&spend)),
                Err(why) => {
                    let code = code_of_budget(first.account, Over::Spend);
                    return Self {
                        all,
                        uncountable: Some((code, why.0)),
                    };
                }
            }
        }
        Self {
            all,
            uncountable: None,
        }
    }

    /// What comes back when the act certainly had no effect.
    pub(crate) fn refunds(&self, drawn_at: Timestamp) -> Vec<Refund> {
        let back = |charge: &Charge| Refund {
            charge: charge.clone(),
            drawn_at,
        };
        self.all.iter().map(back).collect()
    }
}

impl Gate {
    /// Why the budgets have no room for the act, as far as can be told before it is consumed.
    pub(super) fn over_budget(&self, held: &HeldAct) -> Option<Finding> {
        if let Some((code, why)) = held.charges.uncountable {
            return Some(Finding::Deny { code, why });
        }
        let now = self.now();
        for charge in &held.charges.all {
            let drawn = match self.store().account(charge.account) {
                Ok(drawn) => drawn.unwrap_or_else(|| Drawn::nothing(now)),
                Err(fault) => {
                    let (code, why) = (self.store_fault(&fault), "the budgets cannot be read");
                    return Some(Finding::Deny { code, why });
                }
            };
            if let Err(over) = drawn.with(charge, now) {
                let code = code_of_budget(charge.account, over);
                let why = phrase(over);
                return Some(Finding::Deny { code, why });
            }
        }
        None
    }
}

//= PROFILE §6: EF-043 for limits of count, rate, spend and time; EF-051 for what a delegation grants
/// The code for a budget that has no room: a velocity, and whatever is not a delegation's, is EF-043.
pub(crate) fn code_of_budget(account: Account, over: Over) -> Code {
    match (account, over) {
        (Account::Agent, _) | (_, Over::Rate) => Code::EnvelopeExceeded,
        (Account::Delegation(_), Over::Acts | Over::HighRisk | Over::Spend) => {
            Code::DelegationExceeded
        }
    }
}

fn phrase(over: Over) -> &'static str {
    match over {
        Over::Acts => "the acts of a budget are used up",
        Over::HighRisk => "the high-risk acts of a budget are used up",
        Over::Rate => "the rate of a budget is reached",
        Over::Spend => "the value of a budget is spent",
    }
}
