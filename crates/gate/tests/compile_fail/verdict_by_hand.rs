use lychgate_core::evidence::ValidationEvidence;
use lychgate_core::id::TicketId;
use lychgate_gate::{Allowed, Escalated, HeldAct, Presented};

fn allowed(held: HeldAct, presented: Presented, evidence: ValidationEvidence) -> Allowed {
    Allowed { held, presented, evidence }
}

fn escalated(held: HeldAct, ticket: TicketId) -> Escalated {
    Escalated { held, ticket }
}

fn main() {}
