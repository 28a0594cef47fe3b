//! Delegation: what a worker may ask for is what every link above it grants, for as long as all of them stand.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod budgets;
mod chains;
#[path = "../kit/mod.rs"]
mod kit;
mod laws;

use std::time::Duration;

use kit::workers::{CHANGE, INFORMATIONAL, deeper, request, to};
use kit::{Kit, MAIL, denied};
use lychgate_core::act::{ActType, ToolProtocol};
use lychgate_core::delegation::{AgentName, DelegationFile, Secret};
use lychgate_core::id::DelegationId;
use lychgate_core::{Code, ConsequenceClass, State};
use lychgate_gate::{End, Peer};
use lychgate_store::{Rotate, Store, Txn};

const READER: &[&str] = &["read_note"];

fn read(kit: &Kit) -> String {
    format!(r#"{{"path":"{}"}}"#, kit.path("work", "a"))
}

//= draft §5.9: a planner that may call search must not, by delegation, confer shell or payout tools on a worker
#[tokio::test(flavor = "multi_thread")]
async fn a_planner_that_may_search_cannot_hand_a_worker_shell_or_payout() {
    let kit = Kit::delegating().await;
    let all = ConsequenceClass::ALL;
    let planner = deeper(request("planner", &["read_note", "search"], &all[..2]), 1);
    let planner = kit.delegate(None, planner).await.unwrap();
    for (tool, class) in [
        ("run", CHANGE),
        ("pay", ConsequenceClass::Financial),
        ("run", INFORMATIONAL),
        ("pay", INFORMATIONAL),
    ] {
        let wanted = request("worker", &[tool], &[class]);
        let refused = kit.try_delegate(Some(&planner), wanted).await.unwrap_err();
        assert_eq!(refused.code, Code::DelegationExceeded, "{tool}");
        assert!(
            kit.gate.pending().unwrap().is_empty(),
            "nobody is asked in vain"
        );
    }
    // What it may hand on, the worker may do, and nothing else, whatever it names.
    let worker = kit
        .delegate(Some(&planner), request("worker", READER, &[INFORMATIONAL]))
        .await
        .unwrap();
    let session = kit.worker(&worker).await.unwrap();
    kit.run(&session, "read_note", &read(&kit), End::Effected)
        .await
        .ran();
    for (tool, arguments) in [
        (
            "run",
            format!(r#"{{"path":"{}","script":"id"}}"#, kit.path("work", "a")),
        ),
        ("pay", r#"{"to":"bob","amount":1}"#.to_owned()),
        ("search", r#"{"url":"https://search.example/q"}"#.to_owned()),
    ] {
        let no = denied(kit.pass(&session, tool, &arguments).await);
        assert_eq!(no.code, Code::ToolNotAuthorized, "{tool}");
    }
    assert_eq!(kit.effects.count(), 1);
}

//= draft §5.5: delegation from a triage agent to an enrichment agent must not inherit containment-tool authority
#[tokio::test(flavor = "multi_thread")]
async fn a_triage_agents_containment_tools_do_not_pass_to_an_enrichment_agent() {
    let kit = Kit::delegating_with(|text| {
        text.replace(
            "class = \"PERSISTENT_STATE_CHANGE\"\ndestination = { path = [\"/path\"] }\nirreversible = true",
            "class = \"NETWORK_CONTROL\"\ndestination = { path = [\"/path\"] }",
        )
    })
    .await;
    let classes = [INFORMATIONAL, ConsequenceClass::NetworkControl];
    let triage = deeper(request("triage", &["read_note", "erase_note"], &classes), 1);
    let triage = kit.delegate(None, triage).await.unwrap();
    // The enrichment agent is handed what it needs; containment is neither in it nor comes along.
    let enrichment = request("enrichment", READER, &[INFORMATIONAL]);
    let enrichment = kit.delegate(Some(&triage), enrichment).await.unwrap();
    let session = kit.worker(&enrichment).await.unwrap();
    let no = denied(kit.pass(&session, "erase_note", &read(&kit)).await);
    assert_eq!(no.code, Code::ToolNotAuthorized);
    // Nor by a tool that is granted while its class is not.
    let sly = request("sly", &["erase_note"], &[INFORMATIONAL]);
    let sly = kit.delegate(Some(&triage), sly).await.unwrap();
    let session = kit.worker(&sly).await.unwrap();
    let no = denied(kit.pass(&session, "erase_note", &read(&kit)).await);
    assert_eq!(no.code, Code::DelegationExceeded);
    assert_eq!(kit.effects.count(), 0);
}

//= PROFILE §11: depth and parent from the verified delegation chain
#[tokio::test(flavor = "multi_thread")]
async fn depth_and_parent_are_the_chains() {
    let kit = Kit::delegating().await;
    let planner = deeper(request("planner", READER, &[INFORMATIONAL]), 1);
    let planner = kit.delegate(None, planner).await.unwrap();
    let worker = request("worker", READER, &[INFORMATIONAL]);
    let worker = kit.delegate(Some(&planner), worker).await.unwrap();
    let session = kit.worker(&worker).await.unwrap();
    let held = kit.held(&session, "read_note", &read(&kit));
    let agent = &held.act().agent;
    assert_eq!(
        (
            agent.agent_id.as_str(),
            agent.delegation_depth,
            agent.parent_agent_id.as_deref()
        ),
        ("worker", Some(2), Some("planner"))
    );
    let act = held.act().candidate_act_id;
    let (_here, caller) = lychgate_gate::CallerGone::new();
    let passed = kit.pass_held(held, &caller).await;
    kit.finish(passed, End::Effected).await.ran();
    let receipts = kit.receipts();
    let of_act = receipts.iter().filter_map(|receipt| receipt.act.as_ref());
    let of_act = of_act
        .filter(|part| part.candidate_act_id == act)
        .collect::<Vec<_>>();
    assert_eq!(of_act.len(), 2);
    for part in of_act {
        assert_eq!(
            (part.agent_id.as_str(), part.delegation_depth),
            ("worker", 2)
        );
        assert_eq!(
            part.delegation_id,
            worker.chain.last().map(|link| link.delegation_id)
        );
    }
    // What the evidence was signed over names the chain.
    let objects = kit.gate.objects(act).unwrap().unwrap();
    assert!(objects.evidence.get("delegation_digest").is_some());
    let row = kit.store.act(act).unwrap().unwrap();
    assert_eq!((row.depth, row.agent.as_str()), (2, "worker"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_is_an_act_and_one_that_has_consequences_asks() {
    let kit = Kit::delegating().await;
    let wanted = request("worker", &["write_note"], &[CHANGE]);
    // Nobody says yes: nothing is made.
    let refused = kit.try_delegate(None, wanted.clone()).await.unwrap_err();
    assert_eq!(refused.code, Code::EscalationRequired);
    assert!(kit.gate.delegations(9).unwrap().is_empty());
    let file = kit.delegate(None, wanted).await.unwrap();
    let [row] = &kit.gate.delegations(9).unwrap()[..] else {
        panic!("one is made")
    };
    assert_eq!(kit.state(row.act), Some(State::Effected));
    let kept = kit.store.act(row.act).unwrap().unwrap();
    assert_eq!(
        (kept.tool.as_deref(), kept.class, kept.agent.as_str()),
        (Some("lychgate.delegation"), Some(CHANGE), "agent-1")
    );
    assert_eq!(file.chain[0].candidate_act_id, row.act);
    // Reading alone passes without a person, and is recorded all the same.
    let reader = request("reader", READER, &[INFORMATIONAL]);
    let made = kit.try_delegate(None, reader).await.unwrap();
    assert!(kit.receipts().iter().any(|receipt| {
        let part = receipt.act.as_ref();
        receipt.state == Some(State::Effected)
            && part.is_some_and(|part| part.candidate_act_id == made.act)
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_sees_what_is_granted_and_a_no_makes_nothing() {
    let kit = Kit::delegating().await;
    let wanted = to(
        request("worker", &["send_mail"], &[ConsequenceClass::Communication]),
        &["mail"],
    );
    let (here, caller) = lychgate_gate::CallerGone::new();
    let gate = kit.gate.clone();
    let peer = kit.peer();
    let task = tokio::spawn(async move {
        gate.delegate(peer, None, wanted, &caller, &|_| {})
            .await
            .unwrap_err()
    });
    let ticket = loop {
        if let Some(one) = kit.gate.pending().unwrap().pop() {
            break one.id;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let shown = kit.gate.pending_ticket(ticket).unwrap().unwrap().display;
    let text = |key: &str| shown.get(key).unwrap().as_str().unwrap().to_owned();
    assert_eq!(text("tool_id"), "lychgate.delegation");
    assert_eq!(text("consequence_class"), "COMMUNICATION");
    for granted in [
        "worker",
        "box/send_mail",
        "COMMUNICATION",
        "\"mail\"",
        "1800000",
    ] {
        assert!(text("arguments").contains(granted), "{granted}");
    }
    kit.deny(ticket).await;
    assert_eq!(task.await.unwrap().code, Code::ApprovalDenied);
    assert!(kit.gate.delegations(9).unwrap().is_empty());
    drop(here);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_is_of_the_right_type_and_protocol() {
    let kit = Kit::delegating().await;
    let file = kit
        .delegate(None, request("worker", READER, &[INFORMATIONAL]))
        .await
        .unwrap();
    let objects = kit
        .gate
        .objects(file.chain[0].candidate_act_id)
        .unwrap()
        .unwrap();
    let scope = objects.authority.get("scope").unwrap();
    let said = |key: &str| scope.get(key).unwrap().as_str().unwrap().to_owned();
    assert_eq!(said("act_type"), "AGENT_DELEGATION");
    assert_eq!(said("function_id"), "delegate");
    assert_eq!(ActType::AgentDelegation as u8, 8);
    assert_eq!(ToolProtocol::A2a as u8, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_forged_or_unknown_delegation_is_no_way_in() {
    let kit = Kit::delegating().await;
    let file = kit
        .delegate(None, request("worker", READER, &[INFORMATIONAL]))
        .await
        .unwrap();
    let code = async |file: &DelegationFile, uid| {
        let peer = Peer { uid, pid: None };
        let denied = kit
            .gate
            .connect_delegated("box", peer, file)
            .await
            .unwrap_err();
        assert!(kit.denied_in_record(denied.act.unwrap(), denied.code));
        denied.code
    };
    // A copy in another user's hands, without the secret, with another one.
    assert_eq!(code(&file, 1001).await, Code::HolderMismatch);
    let bare = DelegationFile {
        secret: None,
        ..file.clone()
    };
    assert_eq!(code(&bare, 1000).await, Code::HolderMismatch);
    let guessed = DelegationFile {
        secret: Some(Secret::new([0; 32])),
        ..file.clone()
    };
    assert_eq!(code(&guessed, 1000).await, Code::HolderMismatch);
    // Changed after it was signed.
    let mut more = file.clone();
    more.chain[0].grant.further_depth = 2;
    assert_eq!(code(&more, 1000).await, Code::InvalidAuthority);
    // Signed by the PED's own key, but never made durable.
    let mut ghost = file.clone();
    ghost.chain[0].delegation_id = DelegationId::from_bytes([9; 16]);
    kit.sign_as_ped(&mut ghost.chain[0]);
    assert_eq!(code(&ghost, 1000).await, Code::DelegationExceeded);
    // Links that do not hang together.
    let mut torn = file.clone();
    torn.chain.push(file.chain[0].clone());
    assert_eq!(code(&torn, 1000).await, Code::DelegationExceeded);
    kit.worker(&file).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_falls_with_its_time_its_epoch_and_any_of_its_links() {
    let kit = Kit::delegating().await;
    let planner = deeper(request("planner", READER, &[INFORMATIONAL]), 1);
    let planner = kit.delegate(None, planner).await.unwrap();
    let worker = request("worker", READER, &[INFORMATIONAL]);
    let worker = kit.delegate(Some(&planner), worker).await.unwrap();
    let id = |file: &DelegationFile| file.chain.last().unwrap().delegation_id;
    let session = kit.worker(&worker).await.unwrap();
    let planning = kit.worker(&planner).await.unwrap();
    let code = async |session| {
        let passed = kit.pass(session, "read_note", &read(&kit)).await;
        match passed {
            lychgate_gate::Passed::Denied(denied) => Some(denied.code),
            passed => {
                kit.finish(passed, End::Effected).await.ran();
                None
            }
        }
    };
    assert_eq!(code(&session).await, None);
    for subject in [
        format!("delegation:{}", id(&worker)),
        format!("delegation:{}", id(&planner)),
        "agent:worker".to_owned(),
        "agent:planner".to_owned(),
        "agent:agent-1".to_owned(),
    ] {
        kit.revoke(&subject).await;
        assert_eq!(
            code(&session).await,
            Some(Code::RevocationActive),
            "{subject}"
        );
        let planners = !subject.ends_with("worker") && !subject.ends_with(&id(&worker).to_string());
        assert_eq!(code(&planning).await.is_some(), planners, "{subject}");
        kit.gate.revoke(Vec::new(), vec![subject]).await.unwrap();
    }
    assert_eq!(code(&session).await, None);
    // A rotated key or a withdrawn consent voids every delegation.
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
    kit.gate
        .revoke(vec!["server:none".to_owned()], Vec::new())
        .await
        .unwrap();
    assert_eq!(code(&session).await, Some(Code::AuthorityEpochMismatch));
    let stale = kit.worker(&worker).await.unwrap_err();
    assert_eq!(stale.code, Code::AuthorityEpochMismatch);
    // Time.
    let short = kit
        .delegate(None, request("short", READER, &[INFORMATIONAL]))
        .await
        .unwrap();
    let session = kit.worker(&short).await.unwrap();
    kit.clock.advance(Duration::from_millis(1_800_000));
    assert_eq!(code(&session).await, Some(Code::DelegationExceeded));
    assert_eq!(
        kit.worker(&short).await.unwrap_err().code,
        Code::DelegationExceeded
    );
}

//= PROFILE §4: revocation is compared again inside the consuming transaction
#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_while_an_authority_is_unused_is_never_dispatched() {
    let kit = Kit::delegating().await;
    let planner = deeper(request("planner", READER, &[INFORMATIONAL]), 1);
    let planner = kit.delegate(None, planner).await.unwrap();
    let worker = request("worker", READER, &[INFORMATIONAL]);
    let worker = kit.delegate(Some(&planner), worker).await.unwrap();
    let session = kit.worker(&worker).await.unwrap();
    let prepared = kit.prepared(&session, "read_note", &read(&kit)).await;
    // Behind the gate's back, so that only the transaction can notice, and only by the subject.
    let subject = format!("delegation:{}", planner.chain[0].delegation_id);
    let epochs = kit.store.protected_state().unwrap().epochs;
    kit.store
        .commit(Txn::Revoke(lychgate_store::Revoke {
            add: vec![subject],
            remove: Vec::new(),
            now: kit.gate.now(),
            receipts: Vec::new(),
        }))
        .await
        .unwrap()
        .done()
        .unwrap();
    assert_ne!(kit.store.protected_state().unwrap().epochs, epochs);
    let live = prepared.live.clone();
    let refused = kit
        .gate
        .present(&kit.sink(), &live.view(), prepared.presented)
        .await
        .unwrap_err();
    assert!(matches!(
        refused.code,
        Code::RevocationActive | Code::RevocationStateMismatch
    ));
    assert_eq!(kit.effects.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_cannot_pose_as_the_agent_itself() {
    let kit =
        Kit::delegating_with(|text| text.replace("[purpose]", "uids = [\"1000\"]\n[purpose]"))
            .await;
    let other = Peer {
        uid: 1001,
        pid: None,
    };
    let session = kit.gate.connect("box", other).unwrap();
    let no = denied(kit.pass(&session, "read_note", &read(&kit)).await);
    assert_eq!(no.code, Code::DelegationExceeded);
    let (_here, caller) = lychgate_gate::CallerGone::new();
    let wanted = request("worker", READER, &[INFORMATIONAL]);
    let refused = kit
        .gate
        .delegate(other, None, wanted.clone(), &caller, &|_| {})
        .await;
    assert_eq!(refused.unwrap_err().code, Code::DelegationExceeded);
    // With what it was handed it comes in.
    let mut wanted = wanted;
    wanted.uid = 1001;
    let file = kit.delegate(None, wanted).await.unwrap();
    let session = kit
        .gate
        .connect_delegated("box", other, &file)
        .await
        .unwrap();
    kit.run(&session, "read_note", &read(&kit), End::Effected)
        .await
        .ran();
    // Nobody can be handed the agent's own name.
    let same = request("agent-1", READER, &[INFORMATIONAL]);
    let refused = kit.try_delegate(None, same).await.unwrap_err();
    assert_eq!(refused.code, Code::DelegationExceeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_for_one_agent_is_no_approval_for_another() {
    let kit = Kit::delegating().await;
    let mail = |name| request(name, &["send_mail"], &[ConsequenceClass::Communication]);
    let one = kit.delegate(None, mail("one")).await.unwrap();
    let other = kit.delegate(None, mail("one")).await.unwrap();
    let (one, other) = (
        kit.worker(&one).await.unwrap(),
        kit.worker(&other).await.unwrap(),
    );
    let asked = kit.ask(&one, "send_mail", MAIL).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.approve(ticket).await;
    // The same words, the same name, another chain: another question.
    let again = kit.ask(&other, "send_mail", MAIL).await;
    assert_ne!(again.ticket, ticket);
    again.give_up().await;
    let went = kit.run(&one, "send_mail", MAIL, End::Effected).await;
    went.ran();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_names_only_what_its_agent_has() {
    let kit = Kit::delegating().await;
    for tool in ["nothing", "unlisted", "withheld", "ReadNote"] {
        let refused = kit
            .try_delegate(None, request("worker", &[tool], &[INFORMATIONAL]))
            .await
            .unwrap_err();
        assert_eq!(refused.code, Code::ToolNotAuthorized, "{tool}");
    }
    let mut everything = request("worker", READER, &[INFORMATIONAL]);
    everything.grant.tools = lychgate_core::delegation::ToolSet::of(["box".to_owned()]).unwrap();
    let refused = kit.try_delegate(None, everything).await.unwrap_err();
    assert_eq!(
        refused.code,
        Code::ToolNotAuthorized,
        "one of its tools is not the agent's"
    );
    let mut forever = request("worker", READER, &[INFORMATIONAL]);
    forever.lifetime_ms = Some(u64::MAX >> 12);
    assert!(kit.try_delegate(None, forever).await.is_err());
    assert!(AgentName::try_from("a b".to_owned()).is_err());
}
