//! How the gate writes receipts: each step's, hashed by the worker that takes the step.

use std::num::NonZeroU32;

use lychgate_core::act::{CandidateAct, Destination, SourceType};
use lychgate_core::control::ControlPart;
use lychgate_core::evidence::Predicates;
use lychgate_core::id::{ActId, AuthorityId, DelegationId, EffectId, EvidenceId, GateId, TicketId};
use lychgate_core::json::ShapeFault;
use lychgate_core::receipt::{
    ActPart, Approver, Commitment, Enforcement, Isolation, Receipt, ReceiptKind, Salt,
};
use lychgate_core::signed::KeyId;
use lychgate_core::{Code, ConsequenceClass, Digest, Epochs, State, Timestamp, jcs, json};
use lychgate_store::{ActRow, Entry, Refund};

use crate::current::Current;
use crate::gate::Gate;
use crate::log;
use crate::session::Session;

/// What every receipt of this gate says.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The running gate.
    pub gate_id: GateId,
    /// Whether it shares the agent's user.
    pub isolation: Isolation,
    /// Whether there is an approver.
    pub approver: Approver,
}

/// What every receipt of a dispatched act says of it. Whoever holds leave to act, or has acted, carries it along, so that
/// the outcome is recorded without asking the store first.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) part: ActPart,
    pub(crate) authority: Option<AuthorityId>,
    pub(crate) effect: Option<EffectId>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) retry_of: Option<ActId>,
    /// Of a dispatched act.
    pub(crate) attempt: Option<NonZeroU32>,
    pub(crate) ticket: Option<TicketId>,
    /// Equal calls are held against it (PROFILE §5).
    pub(crate) watched: bool,
    /// What it drew on budgets: given back when it certainly had no effect. After a restart nobody knows, and nothing is.
    pub(crate) refund: Vec<Refund>,
}

impl Facts {
    pub(crate) fn act(&self) -> ActId {
        self.part.candidate_act_id
    }

    /// As far as the store's row knows the act; `destination` is the row's, opened.
    fn of_row(row: &ActRow, destination: Option<&str>) -> Self {
        let commit =
            |label: &str, value: &[u8]| Commitment::to(&row.salt.of_field(label), label, value);
        let part = ActPart {
            candidate_act_id: row.id,
            candidate_act_digest: row.act_digest,
            agent_id: row.agent.clone(),
            delegation_depth: row.depth,
            delegation_id: row.delegation,
            tool_id: row.tool.clone(),
            function_id: row.function.clone(),
            consequence_class: row.class,
            arguments_commitment: row
                .arguments_digest
                .map(|digest| commit(ARGUMENTS, digest.bytes())),
            destination_commitment: destination.map(|text| commit(DESTINATION, text.as_bytes())),
            source_type: row.source,
            vouched: row.vouched,
        };
        Self {
            part,
            authority: row.grant.map(|grant| grant.authority),
            effect: row.effect,
            idempotency_key: row.idempotency_key.clone(),
            retry_of: row.retry_of,
            attempt: None,
            ticket: row.ticket,
            watched: row.twin.is_some(),
            refund: Vec::new(),
        }
    }
}

/// A receipt in the making.
#[derive(Debug)]
pub(crate) struct Draft(Receipt);

impl Draft {
    pub(crate) fn new(
        standing: Standing,
        kind: ReceiptKind,
        at: Timestamp,
        epochs: Epochs,
    ) -> Self {
        Self(Receipt {
            version: Default::default(),
            object_type: Default::default(),
            kind,
            at,
            gate_id: standing.gate_id,
            act: None,
            state: None,
            code: None,
            predicates: None,
            epochs,
            policy_digest: None,
            evidence_id: None,
            evidence_digest: None,
            authority_id: None,
            authority_digest: None,
            verification_digest: None,
            effect_id: None,
            idempotency_key: None,
            retry_of: None,
            attempt: None,
            ticket_id: None,
            approver_key: None,
            control: None,
            enforcement: Enforcement::Finality,
            isolation: standing.isolation,
            approver: standing.approver,
            detail: None,
        })
    }

    pub(crate) fn act(mut self, part: ActPart, state: State) -> Self {
        self.0.act = Some(part);
        self.0.state = Some(state);
        self
    }

    /// What is known of an act since its dispatch.
    pub(crate) fn facts(self, facts: &Facts, state: State) -> Self {
        let mut draft = self.act(facts.part.clone(), state);
        draft.0.authority_id = facts.authority;
        draft.0.effect_id = facts.effect;
        draft.0.idempotency_key.clone_from(&facts.idempotency_key);
        draft.0.retry_of = facts.retry_of;
        draft.0.attempt = facts.attempt;
        draft.0.ticket_id = facts.ticket;
        draft
    }

    pub(crate) fn code(mut self, code: Option<Code>) -> Self {
        self.0.code = code;
        self
    }

    pub(crate) fn predicates(mut self, predicates: Predicates) -> Self {
        self.0.predicates = Some(predicates);
        self
    }

    pub(crate) fn policy(mut self, digest: Digest) -> Self {
        self.0.policy_digest = Some(digest);
        self
    }

    pub(crate) fn evidence(mut self, evidence: EvidenceId, digest: Digest) -> Self {
        self.0.evidence_id = Some(evidence);
        self.0.evidence_digest = Some(digest);
        self
    }

    /// What was signed beside the evidence.
    pub(crate) fn signed(mut self, authority: Digest, verification: Digest) -> Self {
        self.0.authority_digest = Some(authority);
        self.0.verification_digest = Some(verification);
        self
    }

    pub(crate) fn retry_of(mut self, act: Option<ActId>) -> Self {
        self.0.retry_of = act;
        self
    }

    pub(crate) fn ticket(mut self, ticket: Option<TicketId>) -> Self {
        self.0.ticket_id = ticket;
        self
    }

    pub(crate) fn approver(mut self, key: Option<KeyId>) -> Self {
        self.0.approver_key = key;
        self
    }

    pub(crate) fn control(mut self, part: ControlPart) -> Self {
        self.0.control = Some(part);
        self
    }

    /// `phrase` comes from our own closed set of phrases, never from arguments or a tool.
    pub(crate) fn detail(mut self, phrase: impl Into<String>) -> Self {
        self.0.detail = Some(phrase.into());
        self
    }

    /// The canonical bytes with their leaf hash.
    ///
    /// # Errors
    /// When the receipt is longer than an entry of the ledger can be; then nothing is done that it would record.
    pub(crate) fn entry(self) -> Result<Entry, ShapeFault> {
        let bytes = self.0.to_bytes()?;
        if bytes.len() > LONGEST {
            return Err(ShapeFault {
                pointer: String::new(),
                reason: "receipt is too long".to_owned(),
            });
        }
        let leaf = lychgate_ledger::leaf_hash(&bytes);
        Ok(Entry { bytes, leaf })
    }
}

impl Gate {
    pub(crate) fn draft(&self, kind: ReceiptKind, current: &Current) -> Draft {
        Draft::new(self.standing(), kind, self.now(), current.epochs)
    }

    /// A receipt of an act that is in the store.
    pub(crate) fn draft_of(
        &self,
        kind: ReceiptKind,
        current: &Current,
        row: &ActRow,
        to: State,
    ) -> Draft {
        self.draft(kind, current).facts(&self.facts_of(row), to)
    }

    /// What the store knows of an act.
    pub(crate) fn facts_of(&self, row: &ActRow) -> Facts {
        let destination = self.destination_of(row);
        let mut facts = Facts::of_row(row, destination.as_deref());
        if row.effect.is_some() {
            let chain = self.chain(row.id, row.retry_of);
            facts.attempt = chain.ok().map(|chain| chain.attempt);
        }
        facts
    }

    /// Where an act goes or went: its canonical `destination` object. `None` when none was resolved, or the row's
    /// sealed bytes are not this gate's.
    pub fn destination_of(&self, row: &ActRow) -> Option<String> {
        let sealed = row.destination.as_ref()?;
        match self.sealer().open(&destination_label(row.id), sealed) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(_) => {
                log::error("a destination cannot be opened", &[("act", row.id.into())]);
                None
            }
        }
    }

    /// Seals a destination for the store: it is text of the arguments.
    pub(crate) fn seal_destination(
        &self,
        act: ActId,
        destination: &Destination,
    ) -> Result<Vec<u8>, Code> {
        let text = destination_text(destination);
        self.sealer()
            .seal(&destination_label(act), text.as_bytes())
            .map_err(|_| Code::FailClosed)
    }
}

/// What a sealed destination is bound to.
fn destination_label(act: ActId) -> Vec<u8> {
    format!("destination:{act}").into_bytes()
}

/// What a receipt says of an act in hand.
pub(crate) fn part_of(
    act: &CandidateAct,
    digest: Digest,
    salt: &Salt,
    resolved: bool,
    vouched: bool,
    delegation_id: Option<DelegationId>,
) -> ActPart {
    let destination = act.destination.as_ref().map(destination_text);
    ActPart {
        candidate_act_id: act.candidate_act_id,
        candidate_act_digest: Some(digest),
        agent_id: act.agent.agent_id.clone(),
        delegation_depth: act.agent.delegation_depth.unwrap_or(0),
        delegation_id,
        // A name that resolved to nothing is the model's own text and stays out of the record.
        tool_id: resolved.then(|| act.tool.tool_id.clone()),
        function_id: resolved.then(|| act.tool.function_id.clone()),
        consequence_class: Some(act.consequence_class),
        arguments_commitment: Some(Commitment::to(
            &salt.of_field(ARGUMENTS),
            ARGUMENTS,
            &lychgate_core::digest::b64::decode(&act.arguments_digest.value).unwrap_or_default(),
        )),
        destination_commitment: destination
            .map(|text| Commitment::to(&salt.of_field(DESTINATION), DESTINATION, text.as_bytes())),
        source_type: source_of(act),
        vouched,
    }
}

/// Who asked; `None` is UNKNOWN.
pub(crate) fn source_of(act: &CandidateAct) -> Option<SourceType> {
    act.instruction_provenance.as_ref()?.source_type
}

/// What a receipt says of a request that never became an act.
pub(crate) fn part_of_nothing(act: ActId, agent_id: &str, session: &Session) -> ActPart {
    ActPart {
        candidate_act_id: act,
        candidate_act_digest: None,
        agent_id: agent_id.to_owned(),
        delegation_depth: session.depth(),
        delegation_id: session.delegation(),
        tool_id: None,
        function_id: None,
        consequence_class: None::<ConsequenceClass>,
        arguments_commitment: None,
        destination_commitment: None,
        source_type: None,
        vouched: false,
    }
}

/// The one text a destination is committed as: its canonical object.
fn destination_text(destination: &Destination) -> String {
    json::to_value(destination)
        .map(|value| String::from_utf8_lossy(&jcs::to_bytes(&value)).into_owned())
        .unwrap_or_default()
}

/// The longest entry of the ledger, in bytes (tlog-tiles: a 16-bit length).
const LONGEST: usize = 65_535;
/// Labels of the commitments.
const ARGUMENTS: &str = "arguments_digest";
const DESTINATION: &str = "destination";
