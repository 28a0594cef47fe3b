//! Control requests over a real socket, on a real state folder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod support;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use lychgate_core::act::Version;
use lychgate_core::signed::{KeyId, Mark};
use lychgate_core::{State, Timestamp};
use lychgate_keys::verdict::{
    ApprovalVerdict, ConfigurationChange, KeyChange, ReconciliationVerdict, Verdict,
};
use lychgate_keys::{ApproverKey, Role, SigningKey, TrustBundle};
use lychgate_server::frame::Frame;
use lychgate_server::protocol::{Plan, Ticket, TicketSummary, Wanted};
use lychgate_server::{Client, ClientFault, Request, Response};
use support::{Mcp, PASSPHRASE, World, eventually};

#[test]
#[ignore = "not a test: the gate that the tests start"]
fn child_gate() {
    support::be_a_gate();
}

fn key(world: &World) -> SigningKey {
    ApproverKey::open(&world.state.approver_key(), PASSPHRASE).unwrap()
}

fn unsigned() -> Mark {
    Mark::unsigned(KeyId(String::new()))
}

fn now(world: &World) -> Timestamp {
    world.status().now
}

fn pending(client: &mut Client) -> Vec<TicketSummary> {
    let wanted = Wanted {
        limit: 500,
        ..Wanted::default()
    };
    match client.ask(&Request::Pending { wanted }).unwrap() {
        Response::Pending {
            tickets,
            more: false,
            ..
        } => tickets,
        other => panic!("{other:?}"),
    }
}

fn ticket(client: &mut Client, summary: &TicketSummary) -> Ticket {
    match client.ask(&Request::Ticket { id: summary.id }).unwrap() {
        Response::Ticket {
            ticket: Some(ticket),
        } => ticket,
        other => panic!("{other:?}"),
    }
}

fn plan(world: &World, client: &mut Client, text: &str) -> Plan {
    let configuration = world.configuration(text);
    match client.ask(&Request::Plan { configuration }).unwrap() {
        Response::Plan { plan } => plan,
        other => panic!("{other:?}"),
    }
}

fn yes(world: &World, plan: &Plan) -> ConfigurationChange {
    let mut change = ConfigurationChange {
        version: Version::V1,
        object_type: Default::default(),
        from: Some(plan.from),
        to: plan.to,
        at: now(world),
        challenge: plan.challenge.clone(),
        mark: unsigned(),
    };
    key(world).sign(&mut change).unwrap();
    change
}

#[test]
fn a_held_call_is_shown_approved_and_runs() {
    let world = World::new();
    let mut mcp = Mcp::ready(&world);
    mcp.call(2, "write", &world.root().join("plain/f"), "hello");
    let mut client = world.client();
    eventually("it is held", || !pending(&mut client).is_empty());
    let summary = pending(&mut client).remove(0);
    assert!(summary.waiting && summary.reach.ends_with("/plain/f"));
    assert_eq!((summary.tool.as_str(), summary.more), ("s", 0));
    assert_eq!(summary.act, world.acts()[0].id);
    let wanted = Wanted {
        after: Some(summary.id),
        limit: 500,
        ..Wanted::default()
    };
    let next = client.ask(&Request::Pending { wanted });
    assert!(
        matches!(next, Ok(Response::Pending { tickets, more: false, waiting: 1 }) if tickets.is_empty())
    );
    let id = summary.id.to_string();
    let named = client.ask(&Request::Named {
        part: id[28..].to_owned(),
    });
    let tickets = vec![summary.id];
    assert_eq!(named.unwrap(), Response::Named { tickets });
    let ticket = ticket(&mut client, &summary);
    assert!(ticket.waiting && ticket.subject == summary.subject);
    let display = ticket.display().unwrap();
    assert!(
        display
            .get("arguments")
            .and_then(|text| text.as_str())
            .unwrap()
            .contains("hello")
    );
    let mut verdict = ApprovalVerdict {
        version: Version::V1,
        object_type: Default::default(),
        ticket_id: ticket.id,
        subject: ticket.subject,
        expires_at: ticket.expires_at,
        verdict: Verdict::Approve,
        at: now(&world),
        mark: unsigned(),
    };
    SigningKey::generate().unwrap().sign(&mut verdict).unwrap();
    let request = |verdict: &ApprovalVerdict| Request::Rule {
        verdict: verdict.clone(),
    };
    match client.ask(&request(&verdict)) {
        Err(fault @ ClientFault::Refused(_)) => assert_eq!(fault.status(), 1),
        other => panic!("{other:?}"),
    }
    key(&world).sign(&mut verdict).unwrap();
    let ruled = Response::Ruled { still: Vec::new() };
    assert_eq!(client.ask(&request(&verdict)).unwrap(), ruled);
    assert!(mcp.hear().contains("done"));
    let id = world.acts()[0].id;
    match client.ask(&Request::Act { id }).unwrap() {
        Response::Act { act: Some(act) } => {
            assert_eq!(act.state, State::Effected);
            assert!(act.destination.unwrap().contains("plain"));
        }
        other => panic!("{other:?}"),
    }
    match client.ask(&Request::Objects { id }).unwrap() {
        Response::Objects {
            objects: Some(objects),
        } => {
            for text in [&objects.evidence, &objects.authority] {
                assert!(text.contains(&id.to_string()), "{text}");
            }
        }
        other => panic!("{other:?}"),
    }
    drop(mcp.input.take());
    mcp.relay.join().unwrap().unwrap();
    world.stop();
}

#[test]
fn what_narrows_needs_nobody_and_what_widens_needs_the_approver_once() {
    let world = World::new();
    let mut client = world.client();
    let narrow = world
        .text
        .replace("profile = \"balanced\"", "profile = \"strict\"");
    let applied = client.ask(&Request::Apply {
        configuration: world.configuration(&narrow),
        yes: None,
    });
    assert!(
        matches!(applied, Ok(Response::Applied { .. })),
        "{applied:?}"
    );
    // On one connection, and the plan's challenge on another.
    for other in [false, true] {
        let plan = plan(&world, &mut client, &world.text);
        assert!(plan.wants_approver);
        let bare = client.ask(&Request::Apply {
            configuration: world.configuration(&world.text),
            yes: None,
        });
        assert!(matches!(bare, Err(ClientFault::Refused(_))));
        let request = Request::Apply {
            configuration: world.configuration(&world.text),
            yes: Some(yes(&world, &plan)),
        };
        let mut second = world.client();
        let through = if other { &mut second } else { &mut client };
        let applied = through.ask(&request);
        assert!(matches!(applied, Ok(Response::Applied { digest, .. }) if digest == plan.to));
        let again = through.ask(&Request::Apply {
            configuration: world.configuration(&narrow),
            yes: None,
        });
        assert!(matches!(again, Ok(Response::Applied { .. })));
        let replayed = through.ask(&request);
        assert!(matches!(replayed, Err(ClientFault::Refused(_))));
    }
    assert_eq!(world.status().profile, "strict");
    world.stop();
    assert_eq!(world.status().profile, "strict", "it outlives the gate");
    world.stop();
}

#[test]
fn a_wrong_configuration_comes_back_with_its_lines() {
    let world = World::new();
    let wrong = world.text.replace("allow = [", "alow = [");
    let asked = world.client().ask(&Request::Plan {
        configuration: world.configuration(&wrong),
    });
    match asked {
        Err(ClientFault::Refused(refusal)) => {
            assert_eq!(refusal.class.status(), 2);
            let first = refusal
                .diagnostics
                .iter()
                .find(|one| one.message.contains("alow"))
                .unwrap();
            assert!(first.line.is_some());
            assert_eq!(first.suggestion.as_deref(), Some("allow"));
        }
        other => panic!("{other:?}"),
    }
    world.stop();
}

#[test]
fn an_act_in_doubt_is_reconciled_with_the_approvers_key() {
    let world = World::new();
    let mut mcp = Mcp::ready(&world);
    mcp.call(2, "hang", &world.root().join("work/f"), "x");
    eventually("it is dispatched", || {
        world
            .acts()
            .iter()
            .any(|act| act.state == State::Dispatched)
    });
    world.kill();
    let mut client = world.client();
    let act = world.acts()[0].clone();
    assert_eq!(act.state, State::Indeterminate);
    let Response::Challenge { challenge } = client.ask(&Request::Challenge).unwrap() else {
        panic!("no challenge");
    };
    let mut verdict = ReconciliationVerdict {
        version: Version::V1,
        object_type: Default::default(),
        candidate_act_id: act.id,
        effect: false,
        reason: "looked at the file".try_into().unwrap(),
        at: now(&world),
        challenge,
        mark: unsigned(),
    };
    key(&world).sign(&mut verdict).unwrap();
    let answered = client.ask(&Request::Reconcile { verdict }).unwrap();
    assert_eq!(
        answered,
        Response::Reconciled {
            state: State::ReconciledNoEffect
        }
    );
    world.stop();
}

#[test]
fn a_rotated_key_signs_for_the_next_gate() {
    let world = World::new();
    let mut client = world.client();
    let Response::Trust { bundle } = client.ask(&Request::Trust).unwrap() else {
        panic!("no bundle");
    };
    let before = TrustBundle::from_bytes(bundle.as_bytes()).unwrap();
    let prepared = client.ask(&Request::PrepareKey { role: Role::Ped });
    let Ok(Response::KeyPrepared {
        public,
        key_id: promised,
        challenge,
    }) = prepared
    else {
        panic!("{prepared:?}");
    };
    let epochs = world.status().epochs;
    let mut change = KeyChange {
        version: Version::V1,
        object_type: Default::default(),
        role: Role::Ped,
        public,
        at: now(&world),
        challenge,
        mark: unsigned(),
    };
    key(&world).sign(&mut change).unwrap();
    let Response::Rotated { key_id } = client.ask(&Request::Rotate { change }).unwrap() else {
        panic!("not rotated");
    };
    assert_eq!(key_id, promised);
    world.wait_until_ended();
    let after = TrustBundle::read(&world.state.trust()).unwrap();
    assert_ne!(
        before.current(Role::Ped).unwrap().key_id(),
        after.current(Role::Ped).unwrap().key_id()
    );
    assert_eq!(*after.current(Role::Ped).unwrap().key_id(), key_id);
    assert!(world.status().epochs.authority_epoch > epochs.authority_epoch);
    let mut mcp = Mcp::ready(&world);
    mcp.call(2, "write", &world.root().join("work/f"), "x");
    assert!(mcp.hear().contains("done"));
    drop(mcp.input.take());
    mcp.relay.join().unwrap().unwrap();
    world.stop();
}

#[test]
fn a_follower_hears_of_every_change() {
    let world = World::new();
    let mut mcp = Mcp::ready(&world);
    let mut follower = world.client();
    let first = follower.ask(&Request::Acts {
        state: None,
        limit: 10,
        follow: true,
    });
    assert!(matches!(first, Ok(Response::Acts { acts }) if acts.is_empty()));
    mcp.call(2, "write", &world.root().join("work/f"), "x");
    assert!(mcp.hear().contains("done"));
    let mut seen = Vec::new();
    while !seen.iter().any(|act: &lychgate_server::protocol::ActView| {
        !act.undelivered && act.state == State::Effected
    }) {
        match follower.hear().unwrap() {
            Response::Acts { acts } => seen.extend(acts),
            other => panic!("{other:?}"),
        }
    }
    drop(mcp.input.take());
    mcp.relay.join().unwrap().unwrap();
    world.stop();
    assert!(follower.hear().is_err());
}

#[test]
fn garbage_closes_its_own_connection_and_no_other() {
    let world = World::new();
    let mut bystander = world.client();
    bystander.ask(&Request::Status).unwrap();
    let status = Request::Status.to_frame().unwrap().to_bytes().unwrap();
    let mut cases: Vec<Vec<u8>> = vec![
        vec![0xff; 64],
        vec![0, 0, 0, 0, 9],
        [&u32::MAX.to_be_bytes()[..], &[0]].concat(),
        Frame::control(b"{}".to_vec()).to_bytes().unwrap(),
        Frame::control(b"not json".to_vec()).to_bytes().unwrap(),
        Frame::control(br#"{"protocol":1,"request":"status"}"#.to_vec())
            .to_bytes()
            .unwrap(),
        Frame::control(br#"{"protocol":3,"request":"status","request":"stop"}"#.to_vec())
            .to_bytes()
            .unwrap(),
        Frame::control(br#"{"protocol":3,"request":"launch"}"#.to_vec())
            .to_bytes()
            .unwrap(),
        Frame::line(b"{}".to_vec()).to_bytes().unwrap(),
        Frame::delivered(1).to_bytes().unwrap(),
        Frame::end().to_bytes().unwrap(),
    ];
    cases.extend((1..status.len()).map(|cut| status[..cut].to_vec()));
    for case in cases {
        let mut stream = UnixStream::connect(world.state.socket()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.write_all(&case).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // A reset is an end too.
        if let Err(fault) = stream.read_to_end(&mut answer) {
            assert_eq!(fault.kind(), std::io::ErrorKind::ConnectionReset);
        }
        if let Ok(Some(frame)) = Frame::read(&mut answer.as_slice()) {
            let response = Response::from_frame(&frame).unwrap();
            assert!(matches!(response, Response::Refused(_)), "{case:?}");
        }
    }
    // Byte by byte is slow, not wrong.
    let mut stream = UnixStream::connect(world.state.socket()).unwrap();
    for byte in &status {
        stream.write_all(&[*byte]).unwrap();
    }
    let frame = Frame::read(&mut stream).unwrap().unwrap();
    assert!(matches!(
        Response::from_frame(&frame),
        Ok(Response::Status { .. })
    ));
    bystander.ask(&Request::Status).unwrap();
    world.stop();
}
