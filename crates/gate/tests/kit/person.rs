//! The person with the approver's key.

use lychgate_core::State;
use lychgate_core::id::{ActId, ConsentId, TicketId};
use lychgate_core::outside::Clock;
use lychgate_core::signed::Mark;
use lychgate_keys::verdict::{
    ApprovalVerdict, ConfigurationChange, ConsentGrant, ConsentTerms, ReconciliationVerdict,
    RestorationVerdict, Verdict as Ruling,
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

    pub async fn revoke(&self, subject: &str) {
        let subjects = vec![subject.parse().unwrap()];
        self.gate.revoke(subjects, None).await.unwrap();
    }

    /// Takes a revocation back, with the approver's yes.
    pub async fn restore(&self, subject: &str) {
        let mut verdict = RestorationVerdict {
            version: Default::default(),
            object_type: Default::default(),
            subjects: vec![subject.parse().unwrap()],
            reason: "it is mended".try_into().unwrap(),
            at: self.clock.now(),
            challenge: self.gate.challenge().unwrap(),
            mark: self.mark(),
        };
        self.approver.sign(&mut verdict).unwrap();
        self.gate.restore(&verdict).await.unwrap();
    }

    /// The approver's consent to everything, for so many seconds.
    pub async fn consent(&self, number: u8, seconds: u64) -> ConsentId {
        let terms = ConsentTerms {
            consent_id: ConsentId::from_bytes([number; 16]),
            principal_id: "user:alice".try_into().unwrap(),
            agent_id: "agent-1".try_into().unwrap(),
            functions: Vec::new(),
            purposes: Vec::new(),
            expires_at: self
                .clock
                .now()
                .after(std::time::Duration::from_secs(seconds)),
        };
        self.consent_to(terms).await.unwrap()
    }

    pub async fn consent_to(&self, terms: ConsentTerms) -> Result<ConsentId, String> {
        let mut grant = ConsentGrant {
            version: Default::default(),
            object_type: Default::default(),
            terms: terms.clone(),
            at: self.clock.now(),
            challenge: self.gate.challenge().unwrap(),
            mark: self.mark(),
        };
        self.approver.sign(&mut grant).unwrap();
        let done = self.gate.consent(terms, Some(&grant)).await;
        done.map_err(|refused| refused.to_string())
    }
}
