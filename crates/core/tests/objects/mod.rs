//! A full and a minimal sample of every object on the wire, built from its type.

use lychgate_core::act::*;
use lychgate_core::authority::*;
use lychgate_core::control::*;
use lychgate_core::delegation::*;
use lychgate_core::evidence::*;
use lychgate_core::id::*;
use lychgate_core::receipt::*;
use lychgate_core::signed::{BatchPath, BatchPlace, KeyId, Mark, SignatureAlgorithm};
use lychgate_core::verification::*;
use lychgate_core::{Code, ConsequenceClass, Digest, Epochs, State, Timestamp};

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn digest(of: &str) -> Digest {
    Digest::sha256(of.as_bytes())
}

fn act_id() -> ActId {
    ActId::new(Timestamp::from_millis(1_787_766_001_000), [7; 10])
}

fn holder() -> HolderId {
    HolderId::new(Timestamp::from_millis(1_787_766_000_000), [8; 10])
}

fn nonce() -> Nonce {
    Nonce {
        holder: holder(),
        count: 42,
    }
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(1_787_766_001_000 + second * 1000)
}

fn mark() -> Mark {
    Mark {
        key_id: KeyId(digest("key").to_base64url()),
        algorithm: SignatureAlgorithm::Ed25519,
        signature: Some(lychgate_core::digest::b64::encode(&[9; 64])),
        batch: None,
    }
}

/// A mark with every member.
fn batched() -> Mark {
    Mark {
        batch: Some(BatchPlace {
            index: 1,
            size: 3,
            path: BatchPath(vec![[1; 32], [2; 32]]),
        }),
        ..mark()
    }
}

fn destination() -> Destination {
    Destination {
        destination_id: text("tool.example"),
        endpoint: text("https://tool.example/mcp"),
        jurisdiction: text("IN"),
        recipient_id: text("mailto:a@tool.example"),
    }
}

/// An act with every member.
pub(crate) fn act() -> CandidateAct {
    CandidateAct {
        version: Version::V1,
        object_type: ActObject::AgentCandidateAct,
        candidate_act_id: act_id(),
        act_type: ActType::ToolCall,
        created_at: at(0),
        expires_at: at(10),
        initiating_principal: Principal {
            principal_id: "user-1000".into(),
            principal_type: PrincipalType::User,
            authorization_context_id: text("consent-1"),
        },
        agent: Agent {
            agent_id: "assistant-23".into(),
            runtime_id: GateId::from_bytes([3; 16]),
            model_id: text("model-X"),
            model_version: text("2026-08"),
            alf_digest: text("alf"),
            delegation_depth: Some(1),
            parent_agent_id: text("assistant-22"),
        },
        tool: Tool {
            tool_id: "maps.search".into(),
            function_id: "nearby".into(),
            tool_endpoint: text("https://tool.example/mcp"),
            tool_protocol: Some(ToolProtocol::Mcp),
        },
        purpose: Purpose {
            purpose_id: "nearby-service-discovery".into(),
            declared_purpose: "Find nearby pharmacies".into(),
            user_intent_reference: text("intent"),
            purpose_epoch: Some(2),
        },
        arguments_digest: ArgumentsDigest::new(&digest("{}")),
        destination: Some(destination()),
        consequence_class: ConsequenceClass::DataDisclosure,
        policy_state: PolicyState {
            policy_epoch: 42,
            authority_epoch: 3,
            revocation_epoch: 7,
            policy_profile_id: text("strict"),
        },
        freshness: Freshness {
            nonce: nonce(),
            sequence: Some(5),
            session_id: text("session-1"),
        },
        instruction_provenance: Some(InstructionProvenance {
            instruction_digest: text("instruction"),
            source_type: Some(SourceType::User),
            trusted_chain_digest: text("chain"),
        }),
        finality_sink: FinalitySink {
            sink_id: "dispatch-sink-01".into(),
            sink_type: SinkType::ToolDispatch,
        },
    }
}

/// An act with required members only.
pub(crate) fn minimal_act() -> CandidateAct {
    let mut act = act();
    act.initiating_principal.authorization_context_id = None;
    act.agent.model_id = None;
    act.agent.model_version = None;
    act.agent.alf_digest = None;
    act.agent.delegation_depth = None;
    act.agent.parent_agent_id = None;
    act.tool.tool_endpoint = None;
    act.tool.tool_protocol = None;
    act.purpose.user_intent_reference = None;
    act.purpose.purpose_epoch = None;
    act.destination = None;
    act.policy_state.policy_profile_id = None;
    act.freshness.sequence = None;
    act.freshness.session_id = None;
    act.instruction_provenance = None;
    act
}

/// Evidence with every member.
pub(crate) fn evidence() -> ValidationEvidence {
    ValidationEvidence {
        version: Version::V1,
        object_type: EvidenceObject::ProtectedValidationEvidence,
        evidence_id: EvidenceId::from_bytes([4; 16]),
        candidate_act_id: act_id(),
        candidate_act_digest: digest("act"),
        decision: Allow::Allow,
        validated_predicates: Predicates::HOLD,
        protected_state: ProtectedState {
            state_reference: "ped-state-901".into(),
            monotonic_counter: 8481,
        },
        tool_definition_digest: digest("definition"),
        retry_of: Some(ActId::from_bytes([5; 16])),
        continuation_digest: Some(digest("continuation")),
        approval_digest: Some(digest("approval")),
        delegation_digest: Some(digest("chain")),
        issued_at: at(1),
        protector: Protector {
            protector_type: ProtectorType::SoftwareSignature,
            mark: batched(),
        },
    }
}

/// Evidence with required members only.
pub(crate) fn minimal_evidence() -> ValidationEvidence {
    ValidationEvidence {
        retry_of: None,
        continuation_digest: None,
        approval_digest: None,
        delegation_digest: None,
        protector: Protector {
            mark: mark(),
            ..evidence().protector
        },
        ..evidence()
    }
}

fn texts<T: TryFrom<Vec<String>>>(texts: &[&str]) -> T
where
    T::Error: std::fmt::Debug,
{
    T::try_from(texts.iter().map(|text| (*text).to_owned()).collect()).unwrap()
}

fn agent(name: &str) -> AgentName {
    AgentName::try_from(name.to_owned()).unwrap()
}

/// A delegation with every member.
pub(crate) fn delegation() -> Delegation {
    let spend = |unit: &str, amount: &str| Spend {
        unit: Name::try_from(unit.to_owned()).unwrap(),
        amount: amount.parse().unwrap(),
    };
    Delegation {
        version: Version::V1,
        object_type: DelegationObject::AgentDelegation,
        delegation_id: DelegationId::from_bytes([10; 16]),
        parent_delegation_id: Some(DelegationId::from_bytes([9; 16])),
        candidate_act_id: act_id(),
        initiating_principal: act().initiating_principal,
        parent_agent_id: agent("planner"),
        child_agent_id: agent("worker"),
        delegation_depth: 2,
        grant: Grant {
            tools: texts(&["maps", "search/web.find"]),
            consequence_classes: ClassSet::of([
                ConsequenceClass::Informational,
                ConsequenceClass::DataDisclosure,
            ])
            .unwrap(),
            destinations: Some(texts(&["root:work", "tool.example"])),
            purposes: Some(texts(&["general"])),
            further_depth: 1,
            budget: Budget {
                acts: Some(20),
                high_risk_acts: Some(3),
                rate: Some(Rate {
                    acts: 10,
                    window_ms: Window::try_from(60_000).unwrap(),
                }),
                spend: Some(vec![spend("EUR", "12.5"), spend("USD", "1000")]),
            },
        },
        holder: HolderBinding {
            uid: 1000,
            secret_digest: digest("secret"),
        },
        policy_digest: digest("policy"),
        epochs: Epochs {
            policy_epoch: 3,
            authority_epoch: 2,
            revocation_epoch: 1,
        },
        issued_at: at(1),
        expires_at: at(1800),
        mark: mark(),
    }
}

/// A delegation with required members only.
pub(crate) fn minimal_delegation() -> Delegation {
    Delegation {
        parent_delegation_id: None,
        initiating_principal: minimal_act().initiating_principal,
        grant: Grant {
            destinations: None,
            purposes: None,
            budget: Budget::default(),
            ..delegation().grant
        },
        ..delegation()
    }
}

/// An authority with every member.
pub(crate) fn authority() -> FinalityAuthority {
    FinalityAuthority {
        version: Version::V1,
        object_type: AuthorityObject::AgentFinalityAuthority,
        authority_id: AuthorityId::from_bytes([6; 16]),
        candidate_act_id: act_id(),
        evidence_id: EvidenceId::from_bytes([4; 16]),
        scope: Scope {
            act_type: ActType::ToolCall,
            tool_id: "maps.search".into(),
            function_id: "nearby".into(),
            tool_endpoint: "https://tool.example/mcp".into(),
            tool_definition_digest: digest("definition"),
            permitted_destination: destination(),
            permitted_consequence_class: ConsequenceClass::DataDisclosure,
        },
        binding: Binding {
            candidate_act_digest: digest("act"),
            arguments_digest: digest("{}"),
            continuation_digest: Some(digest("continuation")),
            holder_id: holder(),
            nonce: nonce(),
            policy_epoch: 42,
            authority_epoch: 3,
            revocation_epoch: 7,
            policy_digest: digest("policy"),
            finality_sink_id: "dispatch-sink-01".into(),
        },
        lifetime: Lifetime {
            issued_at: at(1),
            expires_at: at(10),
            single_use: True,
        },
        issuer: Issuer {
            ped_id: "ped-runtime-01".into(),
            mark: batched(),
        },
    }
}

/// An authority with required members only.
pub(crate) fn minimal_authority() -> FinalityAuthority {
    let mut authority = authority();
    authority.scope.permitted_destination = Destination::default();
    authority.binding.continuation_digest = None;
    authority.issuer.mark = mark();
    authority
}

/// A verification with every member, though no sink says yes and no at once.
pub(crate) fn verification() -> SinkVerification {
    SinkVerification {
        operation: Operation::DispatchSinkVerify,
        request_id: EffectId::from_bytes([10; 16]),
        decision: SinkDecision::Allow,
        verification: checks(Check::Held),
        consumption: Some(Consumption {
            authority_id: AuthorityId::from_bytes([6; 16]),
            status: Consumed::Consumed,
        }),
        error: Some(Code::ScopeMismatch.into()),
        effectuation: Effectuation {
            permitted: true,
            effect_id: Some(EffectId::from_bytes([10; 16])),
        },
        mark: batched(),
    }
}

/// A verification with required members only.
pub(crate) fn minimal_verification() -> SinkVerification {
    SinkVerification {
        decision: SinkDecision::Deny,
        verification: Checks {
            authority_signature: Check::Failed,
            ..checks(Check::NotReached)
        },
        consumption: None,
        error: None,
        effectuation: Effectuation {
            permitted: false,
            effect_id: None,
        },
        mark: mark(),
        ..verification()
    }
}

fn checks(all: Check) -> Checks {
    Checks {
        authority_signature: all,
        candidate_act_binding: all,
        tool_scope: all,
        args_digest: all,
        destination: all,
        consequence_class: all,
        holder: all,
        nonce: all,
        policy_epoch: all,
        authority_epoch: all,
        revocation_epoch: all,
        expiry: all,
        consumption_state: all,
        sink_binding: all,
    }
}

/// A receipt with every member.
pub(crate) fn receipt() -> Receipt {
    let salt = Salt([1; 16]);
    Receipt {
        version: Version::V1,
        object_type: ReceiptObject::ValidationReceipt,
        kind: ReceiptKind::Dispatched,
        at: at(2),
        gate_id: GateId::from_bytes([3; 16]),
        act: Some(ActPart {
            candidate_act_id: act_id(),
            candidate_act_digest: Some(digest("act")),
            agent_id: "assistant-23".into(),
            delegation_depth: 1,
            delegation_id: Some(DelegationId::from_bytes([10; 16])),
            tool_id: text("maps.search"),
            function_id: text("nearby"),
            consequence_class: Some(ConsequenceClass::DataDisclosure),
            arguments_commitment: Some(Commitment::to(&salt, "arguments", b"{}")),
            destination_commitment: Some(Commitment::to(&salt, "destination", b"tool.example")),
            source_type: Some(SourceType::User),
            vouched: false,
        }),
        state: Some(State::Dispatched),
        code: Some(Code::ScopeMismatch),
        predicates: Some(Predicates {
            tool_scope_valid: false,
            ..Predicates::HOLD
        }),
        epochs: Epochs {
            policy_epoch: 42,
            authority_epoch: 3,
            revocation_epoch: 7,
        },
        policy_digest: Some(digest("policy")),
        evidence_id: Some(EvidenceId::from_bytes([4; 16])),
        evidence_digest: Some(digest("evidence")),
        authority_id: Some(AuthorityId::from_bytes([6; 16])),
        authority_digest: Some(digest("authority")),
        verification_digest: Some(digest("verification")),
        effect_id: Some(EffectId::from_bytes([10; 16])),
        idempotency_key: text("idempotency-1"),
        retry_of: Some(ActId::from_bytes([5; 16])),
        attempt: std::num::NonZeroU32::new(2),
        ticket_id: Some(TicketId::from_bytes([11; 16])),
        approver_key: Some(mark().key_id),
        control: Some(ControlPart {
            number: 52,
            stage: ControlStage::Enforced,
            end: Some(ControlEnd::Sink),
            holder_id: Some(holder()),
            sink_id: text("mcp:maps"),
            finding: Some(ControlFinding::Missing),
        }),
        enforcement: Enforcement::Finality,
        isolation: Isolation::SameUser,
        approver: Approver::Key,
        detail: text("late answer"),
    }
}

/// A receipt with required members only.
pub(crate) fn minimal_receipt() -> Receipt {
    Receipt {
        kind: ReceiptKind::Started,
        act: None,
        state: None,
        code: None,
        predicates: None,
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
        detail: None,
        ..receipt()
    }
}
