//! The person with the approver's key.

use lychgate_core::State;
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::outside::Clock;
use lychgate_core::signed::Mark;
use lychgate_keys::verdict::{
    ApprovalVerdict, ConfigurationChange, ReconciliationVerdict, Verdict as Ruling,
};

use super::{Kit, catalogue};

impl Kit {
    pub fn verdict(&self, ticket: TicketId, ruling: Ruling) -> ApprovalVerdict {
        let row = self.ticket(ticket);
        let mut verdict = ApprovalVerdict {
            version: Default::default(),
            object_type: Default::default(),
            ticket_id: ticket,
            subject: row.subject,
            expires_at: row.expires_at,
            verdict: ruling,
            at: self.clock.now(),
            mark: self.mark(),
        };
        self.approver.sign(&mut verdict).unwrap();
        verdict
    }

    pub fn mark(&self) -> Mark {
        Mark::unsigned(self.approver.key_id().clone())
    }

    pub async fn approve(&self, ticket: TicketId) {
        let verdict = self.verdict(ticket, Ruling::Approve);
        self.gate.rule(&verdict).await.unwrap();
    }

    pub async fn deny(&self, ticket: TicketId) {
        let verdict = self.verdict(ticket, Ruling::Deny);
        self.gate.rule(&verdict).await.unwrap();
    }

    pub async fn reconcile(&self, act: ActId, effect: bool) -> Result<State, String> {
        let mut verdict = ReconciliationVerdict {
            version: Default::default(),
            object_type: Default::default(),
            candidate_act_id: act,
            effect,
            reason: "I looked".try_into().unwrap(),
            at: self.clock.now(),
            challenge: self.gate.challenge().unwrap(),
            mark: self.mark(),
        };
        self.approver.sign(&mut verdict).unwrap();
        let done = self.gate.reconcile(&verdict).await;
        done.map_err(|refused| refused.to_string())
    }

    /// Applies the usual configuration, edited, with the approver's yes.
    pub async fn apply(&self, edit: impl Fn(String) -> String) -> Result<(), String> {
        let new = catalogue::applied(&self.folder, edit);
        let mut yes = ConfigurationChange {
            version: Default::default(),
            object_type: Default::default(),
            from: Some(self.gate.current().policy_digest),
            to: new.digest(),
            at: self.clock.now(),
            challenge: self.gate.challenge().unwrap(),
            mark: self.mark(),
        };
        self.approver.sign(&mut yes).unwrap();
        let done = self.gate.apply(new, Some(&yes)).await;
        done.map(drop).map_err(|refused| refused.to_string())
    }
}
