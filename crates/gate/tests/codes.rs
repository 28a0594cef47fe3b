//! Every code of PROFILE §6: reached, and shown that the effect did not run, that the denial stands in the record with
//! that code, and where the act stands.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kit;

use std::sync::Arc;
use std::time::Duration;

use kit::workers::{INFORMATIONAL, request};
use kit::{Kit, MAIL, denied, proposal};
use lychgate_core::id::ActId;
use lychgate_core::{Code, ConsequenceClass, Digest, State};
use lychgate_gate::{CallerGone, Denied, End, FinalitySink, Presented, Session, Unknown, Verdict};
use lychgate_store::testing::Fault;
use lychgate_store::{Rotate, Store, Txn};

/// How one code was reached.
struct Reached {
    kit: Kit,
    code: Code,
    act: ActId,
    state: Option<State>,
    /// How many effects ran on the way, before the denial.
    before: usize,
    /// Whether one of them was the act's own: it was presented a second time.
    again: bool,
}

enum Case {
    Reached(Box<Reached>),
    /// Not in this gate yet, and why.
    NotYet(&'static str),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_code_is_reached_and_its_effect_does_not_run() {
    let mut reached = 0;
    for &code in Code::ALL {
        let case = match case(code).await {
            Case::Reached(case) => case,
            Case::NotYet(why) => {
                assert!(!why.is_empty(), "{code}");
                continue;
            }
        };
        reached += 1;
        let Reached {
            kit,
            code: got,
            act,
            state,
            before,
            again,
        } = *case;
        assert_eq!(got, code);
        assert_eq!(
            kit.effects.of(act),
            usize::from(again),
            "{code}: the effect ran"
        );
        assert_eq!(kit.effects.count(), before, "{code}: some effect ran");
        assert_eq!(kit.state(act), state, "{code}");
        // The one denial that nobody can write down.
        let silent = code == Code::ConsumeStateUnavailable;
        assert_eq!(
            kit.denied_in_record(act, code),
            !silent,
            "{code}: the record"
        );
    }
    assert_eq!(
        reached,
        Code::ALL.len() - 2,
        "a code is neither reached nor listed"
    );
}

/// Exhaustive: a new code does not compile before it is reached or listed.
async fn case(code: Code) -> Case {
    match code {
        Code::DelegationExceeded => beyond_its_delegation().await,
        Code::UnobservedAct => Case::NotYet("needs the observed model stream (issue D)"),
        Code::ConsumeStateUnavailable
        | Code::FailClosed
        | Code::ValidationTimeout
        | Code::RevocationActive
        | Code::TwinUnresolved
        | Code::EnvelopeExceeded
        | Code::EscalationRequired
        | Code::ApprovalDenied
        | Code::ApprovalExpired => standing(code).await,
        Code::NoFinalityAuthority
        | Code::InvalidAuthority
        | Code::StaleAuthority
        | Code::AuthorityAlreadyUsed
        | Code::ReplayDetected
        | Code::NonceFailure
        | Code::ActMismatch
        | Code::ArgsSubstitution
        | Code::ConsequenceClassMismatch
        | Code::AuthorityEpochMismatch
        | Code::SinkMismatch
        | Code::HolderMismatch => at_the_sink(code).await,
        Code::MalformedAct
        | Code::ScopeMismatch
        | Code::PrincipalNotAuthorized
        | Code::PurposeMismatch
        | Code::ToolNotAuthorized
        | Code::ToolSubstitution
        | Code::DestinationMismatch
        | Code::JurisdictionMismatch
        | Code::DestinationUnresolved
        | Code::PolicyEpochMismatch
        | Code::RevocationStateMismatch
        | Code::InstructionProvenanceFailure => at_the_ped(code).await,
    }
}

fn told(kit: Kit, denied: &Denied, act: ActId, state: Option<State>) -> Case {
    Case::Reached(Box::new(Reached {
        code: denied.code,
        kit,
        act,
        state,
        before: 0,
        again: false,
    }))
}

/// What the PED denies.
async fn at_the_ped(code: Code) -> Case {
    let kit = match code {
        Code::JurisdictionMismatch => {
            Kit::with(|text| text + "[jurisdictions]\nallow = [\"FR\"]\n").await
        }
        Code::InstructionProvenanceFailure => {
            Kit::with(|text| text.replace("unattended = false", "unattended = true")).await
        }
        Code::PrincipalNotAuthorized => {
            Kit::with(|text| text + "[consent]\nrequired = true\n").await
        }
        _ => Kit::new().await,
    };
    let session = kit.session();
    let read = format!(r#"{{"path":"{}"}}"#, kit.path("work", "a"));
    let held = match code {
        Code::MalformedAct => {
            let mut proposal = proposal("read_note", &read);
            proposal.arguments_case_variants = true;
            kit.gate
                .hold(&session, proposal, kit.connected("read_note"))
                .unwrap()
        }
        Code::PrincipalNotAuthorized => kit.held(&session, "read_note", &read),
        Code::ScopeMismatch => kit.held(&session, "read_note", r#"{"path":3}"#),
        Code::PurposeMismatch => kit.held(&session, "purposed", "{}"),
        Code::ToolNotAuthorized => kit.held(&session, "unlisted", "{}"),
        Code::ToolSubstitution => {
            let mut connected = kit.connected("read_note");
            connected.definition = Some(Digest::sha256(b"another"));
            kit.gate
                .hold(&session, proposal("read_note", &read), connected)
                .unwrap()
        }
        Code::DestinationMismatch => kit.held(
            &session,
            "write_note",
            &kit.note("config", "lychgate.toml", "x"),
        ),
        Code::JurisdictionMismatch => {
            kit.held(&session, "search", r#"{"url":"https://search.example/q"}"#)
        }
        Code::DestinationUnresolved => kit.held(&session, "search", r#"{"url":"nowhere"}"#),
        Code::InstructionProvenanceFailure => kit.held(&session, "send_mail", MAIL),
        Code::PolicyEpochMismatch => {
            let held = kit.held(&session, "read_note", &read);
            kit.apply(|text| text.replace("declared = \"Billing\"", "declared = \"Bills\""))
                .await
                .unwrap();
            held
        }
        Code::RevocationStateMismatch => {
            let held = kit.held(&session, "read_note", &read);
            kit.revoke("server:other").await;
            held
        }
        _ => unreachable!(),
    };
    let act = held.act().candidate_act_id;
    let (_here, caller) = CallerGone::new();
    let denied = denied(kit.pass_held(held, &caller).await);
    assert_eq!(
        denied.pointer.is_some(),
        code == Code::ScopeMismatch,
        "{code}"
    );
    told(kit, &denied, act, Some(State::Refused))
}

/// What the sink denies.
async fn at_the_sink(code: Code) -> Case {
    let kit = Kit::new().await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let prepared = kit.prepared(&session, "write_note", &note).await;
    let act = prepared.act.candidate_act_id;
    let (mut sink, mut live) = (kit.sink(), prepared.live.clone());
    let (stolen, mut changed) = (prepared.stolen(), prepared.act.clone());
    let mut authority = prepared.authority.clone();
    let mut presented = prepared.presented;
    let mut state = Some(State::Refused);
    let mut before = 0;
    match code {
        Code::NoFinalityAuthority => {
            let refused = kit
                .gate
                .present(&sink, &live.view(), stolen)
                .await
                .unwrap_err();
            assert_eq!(
                refused.code, code,
                "signed by the PED, but never issued by the store"
            );
            presented = Presented::from_outside(changed, None);
            state = None;
        }
        Code::InvalidAuthority => {
            authority.scope.tool_id.push('x');
            presented = Presented::from_outside(changed, Some(authority));
            state = None;
        }
        Code::StaleAuthority => kit.clock.advance(Duration::from_secs(11)),
        Code::AuthorityAlreadyUsed => {
            let first = kit
                .gate
                .present(&sink, &live.view(), presented)
                .await
                .unwrap();
            let begun = kit.effects.begin(first).unwrap();
            kit.gate.settle(begun.end(End::NoEffect), None).await;
            presented = stolen;
            state = Some(State::Failed);
            before = 1;
        }
        Code::ReplayDetected => return decided_twice(kit, prepared.held).await,
        Code::NonceFailure => {
            authority.binding.nonce.count += 1;
            kit.sign_as_ped(&mut authority);
            presented = Presented::from_outside(changed, Some(authority));
            state = None;
        }
        Code::ActMismatch => {
            changed.purpose.declared_purpose = "another".to_owned();
            presented = Presented::from_outside(changed, Some(authority));
            state = None;
        }
        Code::ArgsSubstitution => live.arguments = b"{}".to_vec(),
        Code::ConsequenceClassMismatch => live.class = ConsequenceClass::Informational,
        Code::AuthorityEpochMismatch => {
            let rotate = Rotate {
                now: kit.gate.now(),
                receipts: Vec::new(),
            };
            kit.store
                .commit(Txn::Rotate(rotate))
                .await
                .unwrap()
                .done()
                .unwrap();
        }
        Code::SinkMismatch => sink = FinalitySink::mcp("other"),
        Code::HolderMismatch => live.holder = kit.session().holder(),
        _ => unreachable!(),
    }
    let refused = kit
        .gate
        .present(&sink, &live.view(), presented)
        .await
        .unwrap_err();
    let again = before == 1;
    Case::Reached(Box::new(Reached {
        kit,
        code: refused.code,
        act,
        state,
        before,
        again,
    }))
}

async fn decided_twice(kit: Kit, held: lychgate_gate::HeldAct) -> Case {
    let act = held.act().candidate_act_id;
    let Verdict::Deny(denied) = kit.gate.decide(held).await else {
        panic!()
    };
    told(kit, &denied, act, Some(State::Refused))
}

/// What the gate's and the store's standing denies.
async fn standing(code: Code) -> Case {
    let kit = match code {
        Code::ValidationTimeout => {
            Kit::with(|text| text.replace("hold =", "decision = \"10ms\"\nhold =")).await
        }
        _ => Kit::new().await,
    };
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    match code {
        Code::EscalationRequired | Code::ApprovalDenied | Code::ApprovalExpired => {
            return waited(code, kit, &session).await;
        }
        Code::TwinUnresolved => {
            let first = kit
                .run(
                    &session,
                    "write_note",
                    &note,
                    End::Unknown(Unknown::AnswerLost),
                )
                .await;
            let first = first.ran();
            let held = kit.held(&kit.session(), "write_note", &note);
            let act = held.act().candidate_act_id;
            let (_here, caller) = CallerGone::new();
            let denied = denied(kit.pass_held(held, &caller).await);
            assert_eq!(denied.act, Some(first), "it is told which act is open");
            let mut case = told(kit, &denied, act, Some(State::Refused));
            if let Case::Reached(reached) = &mut case {
                reached.before = 1;
            }
            return case;
        }
        Code::EnvelopeExceeded => return asked_too_often(kit, &session).await,
        Code::RevocationActive => {
            kit.revoke("tool:box/write_note").await;
        }
        _ => {}
    }
    let held = kit.held(&session, "write_note", &note);
    let act = held.act().candidate_act_id;
    let mut state = Some(State::Refused);
    match code {
        Code::ValidationTimeout => tokio::time::sleep(Duration::from_millis(40)).await,
        Code::FailClosed => kit.dry.set(true),
        Code::ConsumeStateUnavailable => {
            kit.store.fail(Some(Fault::Unavailable));
            state = None;
        }
        _ => {}
    }
    let (_here, caller) = CallerGone::new();
    let denied = denied(kit.pass_held(held, &caller).await);
    told(kit, &denied, act, state)
}

/// One connection may have so many calls wait for a person at a time, whether or not it still waits itself.
async fn asked_too_often(kit: Kit, session: &Arc<Session>) -> Case {
    let mail = |n: usize| format!(r#"{{"to":"bob@example.com","body":"{n}"}}"#);
    let mut tickets = Vec::new();
    for n in 0..256 {
        let Verdict::Escalate(escalated) = kit
            .gate
            .decide(kit.held(session, "send_mail", &mail(n)))
            .await
        else {
            panic!("the {n}th is not asked about")
        };
        tickets.push(escalated.ticket());
    }
    let held = kit.held(session, "send_mail", &mail(256));
    let act = held.act().candidate_act_id;
    let (_here, caller) = CallerGone::new();
    let told_no = denied(kit.pass_held(held, &caller).await);
    assert!(told_no.code.retryable(), "a place may be free in a moment");
    assert_eq!(kit.gate.pending().unwrap().len(), 256);
    // Another connection has places of its own, and a decision gives one back.
    drop(kit.ask(&kit.session(), "send_mail", &mail(257)).await);
    kit.deny(tickets[0]).await;
    drop(kit.ask(session, "send_mail", &mail(258)).await);
    told(kit, &told_no, act, Some(State::Refused))
}

/// A worker is handed one class and tries another.
async fn beyond_its_delegation() -> Case {
    let kit = Kit::delegating().await;
    let wanted = request("worker", &["write_note"], &[INFORMATIONAL]);
    let file = kit.delegate(None, wanted).await.unwrap();
    let session = kit.worker(&file).await.unwrap();
    let held = kit.held(&session, "write_note", &kit.note("work", "a", "x"));
    let act = held.act().candidate_act_id;
    let (_here, caller) = CallerGone::new();
    let denied = denied(kit.pass_held(held, &caller).await);
    told(kit, &denied, act, Some(State::Refused))
}

async fn waited(code: Code, kit: Kit, session: &Arc<Session>) -> Case {
    let asked = kit.ask(session, "send_mail", MAIL).await;
    let act = asked.act;
    let (denied, state) = match code {
        Code::EscalationRequired => (asked.give_up().await, State::Withdrawn),
        Code::ApprovalDenied => {
            kit.deny(asked.ticket).await;
            (denied(asked.done().await), State::Refused)
        }
        _ => {
            kit.clock.advance(Duration::from_secs(16 * 60));
            (denied(asked.done().await), State::Expired)
        }
    };
    assert_eq!(denied.state, state);
    told(kit, &denied, act, Some(state))
}
