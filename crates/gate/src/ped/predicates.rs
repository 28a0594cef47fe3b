//! The PED's predicates, in the order of PROFILE §7. Every one is evaluated; the first DENY gives the code.

use lychgate_core::Code;
use lychgate_core::evidence::Predicates;
use lychgate_policy::{Finding, Situation, allowlisted, judge, strictest};

use super::Judgement;
use crate::delegation::{is_connected, names_tool};
use crate::envelope::Hot;
use crate::gate::Gate;
use crate::hold::{Found, HeldAct};
use crate::receipts::source_of;

/// Which of the draft's predicates a finding speaks of.
type Place = fn(&mut Predicates) -> &mut bool;

struct Judging {
    predicates: Predicates,
    finding: Finding,
}

impl Judging {
    /// A predicate that either holds or denies.
    fn require(&mut self, holds: bool, place: Place, code: Code, why: &'static str) {
        if !holds {
            self.note(Finding::Deny { code, why }, place);
        }
    }

    /// The first finding of the highest rank stands.
    fn note(&mut self, finding: Finding, place: Place) {
        if matches!(finding, Finding::Deny { .. }) {
            *place(&mut self.predicates) = false;
        }
        if finding.rank() > self.finding.rank() {
            self.finding = finding;
        }
    }
}

impl Gate {
    pub(crate) fn judge(&self, held: &HeldAct) -> Judgement {
        let mut judging = Judging {
            predicates: Predicates::HOLD,
            finding: Finding::Pass,
        };
        self.judge_request(held, &mut judging);
        self.judge_state(held, &mut judging);
        self.judge_tool(held, &mut judging);
        judge_reach(held, &mut judging);
        judging.note(self.judge_chain(held), |p| &mut p.agent_identity_valid);
        judge_standing(held, &mut judging);
        judge_policy(held, &mut judging);
        let limit = std::time::Duration::from_millis(held.current.applied.limits().decision);
        //= draft §13: timeout is not ALLOW
        judging.require(
            held.escalated.is_some() || held.began.elapsed() <= limit,
            |p| &mut p.freshness_valid,
            Code::ValidationTimeout,
            "the decision took too long",
        );
        let pointer = held
            .schema
            .as_ref()
            .map(|fault| format!("/params/arguments{}", fault.pointer));
        Judgement {
            predicates: judging.predicates,
            finding: judging.finding,
            pointer,
        }
    }

    /// Form, holder, freshness.
    fn judge_request(&self, held: &HeldAct, judging: &mut Judging) {
        let act = &held.act;
        let variants_allowed = held.entry().is_some_and(|entry| entry.case_variants);
        judging.require(
            !held.proposal.arguments_case_variants || variants_allowed,
            |p| &mut p.tool_scope_valid,
            Code::MalformedAct,
            "argument keys differ only in case",
        );
        judging.require(
            !held.continues_unknown_round(),
            |p| &mut p.freshness_valid,
            Code::MalformedAct,
            "it continues a round nobody knows",
        );
        judging.require(
            act.freshness.nonce.holder == held.session.holder() && !held.session.is_gone(),
            |p| &mut p.agent_identity_valid,
            Code::HolderMismatch,
            "the holder is not this connection, or is gone",
        );
        judging.require(
            !held.spent,
            |p| &mut p.freshness_valid,
            Code::ReplayDetected,
            "the act was decided before",
        );
        judging.require(
            self.now() < act.expires_at,
            |p| &mut p.freshness_valid,
            Code::StaleAuthority,
            "the act has expired",
        );
    }

    /// Epochs, revocations, principal: what was minted against what holds now.
    fn judge_state(&self, held: &HeldAct, judging: &mut Judging) {
        let act = &held.act;
        let now = self.current();
        let minted = act.policy_state.epochs();
        judging.require(
            minted.policy_epoch == now.epochs.policy_epoch
                && held.current.policy_digest == now.policy_digest,
            |p| &mut p.policy_epoch_valid,
            Code::PolicyEpochMismatch,
            "the policy epoch moved",
        );
        judging.require(
            minted.authority_epoch == now.epochs.authority_epoch,
            |p| &mut p.policy_epoch_valid,
            Code::AuthorityEpochMismatch,
            "the authority epoch moved",
        );
        judging.require(
            minted.revocation_epoch == now.epochs.revocation_epoch,
            |p| &mut p.revocation_state_valid,
            Code::RevocationStateMismatch,
            "the revocation epoch moved",
        );
        judging.require(
            // Nearly always nothing is, and then an act's subjects need not be spelled.
            now.revoked.is_empty()
                || !held
                    .revocation_subjects()
                    .iter()
                    .any(|subject| now.revoked.contains(subject)),
            |p| &mut p.revocation_state_valid,
            Code::RevocationActive,
            "something the act needs is revoked",
        );
        judging.require(
            act.initiating_principal.principal_id == now.applied.principal().id
                && act.initiating_principal.principal_type == now.applied.principal().kind,
            |p| &mut p.principal_authorized,
            Code::PrincipalNotAuthorized,
            "the principal is not the configured one",
        );
    }

    /// Exact name, pinned definition, endpoint, allowlist, schema.
    fn judge_tool(&self, held: &HeldAct, judging: &mut Judging) {
        let server = held.current.applied.server(&held.act.tool.tool_id);
        judging.require(
            !matches!(held.found, Found::Unknown | Found::Disabled),
            |p| &mut p.tool_scope_valid,
            Code::ToolNotAuthorized,
            "the name resolves to nothing that is offered",
        );
        if let Some(entry) = held.entry() {
            judging.require(
                held.connected.definition == Some(entry.definition),
                |p| &mut p.tool_scope_valid,
                Code::ToolSubstitution,
                "the definition is not the pinned one",
            );
        }
        judging.require(
            server.is_some_and(|server| server.endpoint() == held.connected.endpoint)
                || is_connected(held),
            |p| &mut p.tool_scope_valid,
            Code::ToolSubstitution,
            "the endpoint is not the configured one",
        );
        judging.require(
            if held.found == Found::Delegation {
                // What it may hand on is the chain's to say.
                is_connected(held)
            } else if held.session.is_own() {
                // The gate's own agent may call what the catalogue looks acts up with, and nothing else.
                server.is_some_and(|server| server.reads_back(&held.act.tool.function_id))
            } else {
                allowlisted(
                    &held.current.applied,
                    &held.act.tool.tool_id,
                    &held.act.tool.function_id,
                )
            },
            |p| &mut p.tool_scope_valid,
            Code::ToolNotAuthorized,
            "the allowlist does not name it",
        );
        judging.require(
            names_tool(held),
            |p| &mut p.tool_scope_valid,
            Code::ToolNotAuthorized,
            "the delegation does not name it",
        );
        judging.require(
            held.schema.is_none(),
            |p| &mut p.tool_scope_valid,
            Code::ScopeMismatch,
            "the arguments break the pinned schema",
        );
    }
}

/// Destination, recipient, jurisdiction.
fn judge_reach(held: &HeldAct, judging: &mut Judging) {
    if let Err(unresolved) = &held.reach {
        judging.note(
            Finding::Deny {
                code: unresolved.code,
                why: unresolved.why,
            },
            |p| &mut p.destination_valid,
        );
    }
}

/// Purpose.
fn judge_standing(held: &HeldAct, judging: &mut Judging) {
    if let Some(entry) = held.entry() {
        judging.require(
            entry.serves(&held.act.purpose.purpose_id),
            |p| &mut p.purpose_valid,
            Code::PurposeMismatch,
            "the function does not serve the declared purpose",
        );
    }
}

/// Provenance x consequence class, and the rest of the profile's table.
fn judge_policy(held: &HeldAct, judging: &mut Judging) {
    let (Ok(reach), Some(entry)) = (&held.reach, held.entry()) else {
        return;
    };
    //= MCP.md: `tasks/cancel` is receipted, never escalated
    if held.proposal.method == lychgate_intake::ActingMethod::TasksCancel {
        return;
    }
    match held.hot {
        Hot::Cold => {}
        //= draft §13: cached policy inside a fixed envelope
        Hot::Under { .. } => return,
        //= PROFILE §9: an anomaly escalates
        Hot::Strange(why) => {
            let code = Code::EnvelopeExceeded;
            judging.note(Finding::Ask { code, why }, |p| &mut p.destination_valid);
        }
    }
    let source = source_of(&held.act);
    let finding = strictest(&judge(&Situation {
        profile: held.current.applied.profile(),
        class: held.act.consequence_class,
        source,
        vouched: held.vouched,
        targets: &reach.targets,
        irreversible: entry.irreversible,
        has_program: held.has_program,
        recipient_present: !reach.recipients.is_empty(),
    }));
    let place: Place = match finding {
        Finding::Deny {
            code: Code::InstructionProvenanceFailure,
            ..
        } => |p| &mut p.instruction_provenance_valid,
        _ => |p| &mut p.destination_valid,
    };
    judging.note(finding, place);
}
