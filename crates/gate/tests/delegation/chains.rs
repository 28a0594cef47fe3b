//! Depth and attenuation.

use lychgate_core::delegation::{DelegationFile, TextSet};
use lychgate_core::{Code, ConsequenceClass};
use lychgate_gate::{DelegationRequest, End};

use super::kit::workers::{CHANGE, INFORMATIONAL, deeper, request, to};
use super::kit::{Kit, denied};
use super::{READER, read};

async fn refused(kit: &Kit, from: Option<&DelegationFile>, request: DelegationRequest) -> Code {
    let made = kit.gate.delegations(99).unwrap().len();
    let code = kit.try_delegate(from, request).await.unwrap_err().code;
    assert_eq!(kit.gate.delegations(99).unwrap().len(), made);
    code
}

//= draft §5.10: delegation beyond policy.max_depth never reaches invoke()
#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_deepest_hop_nothing_is_made_and_nothing_invoked() {
    let kit = Kit::delegating().await;
    let mut from = None;
    for (hop, further) in [(1, 2), (2, 1), (3, 0)] {
        let next = deeper(
            request(&format!("agent-at-{hop}"), READER, &[INFORMATIONAL]),
            further,
        );
        from = Some(kit.delegate(from.as_ref(), next).await.unwrap());
    }
    let last = from.unwrap();
    let session = kit.worker(&last).await.unwrap();
    kit.run(&session, "read_note", &read(&kit), End::Effected)
        .await
        .ran();
    let next = request("agent-at-4", READER, &[INFORMATIONAL]);
    assert_eq!(
        refused(&kit, Some(&last), next).await,
        Code::DelegationExceeded
    );
    let deep = deeper(request("deep", READER, &[INFORMATIONAL]), 3);
    assert_eq!(refused(&kit, None, deep).await, Code::DelegationExceeded);
    // The operator takes a hop back: what was handed out so deep is over, at once.
    let shallow =
        |text: String| text.replace("id = \"agent-1\"", "id = \"agent-1\"\nmax_depth = 2");
    kit.apply(shallow).await.unwrap();
    let no = denied(kit.pass(&session, "read_note", &read(&kit)).await);
    assert_eq!(no.code, Code::DelegationExceeded);
    assert_eq!(
        kit.worker(&last).await.unwrap_err().code,
        Code::DelegationExceeded
    );
    assert_eq!(kit.effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_hop_in_the_configuration_nobody_delegates() {
    let kit = Kit::new().await;
    let wanted = request("worker", READER, &[INFORMATIONAL]);
    assert_eq!(refused(&kit, None, wanted).await, Code::DelegationExceeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_dimension_grows_on_the_way_down() {
    let kit = Kit::delegating().await;
    let mut planner = deeper(
        to(
            request(
                "planner",
                &["read_note", "write_note"],
                &[INFORMATIONAL, CHANGE],
            ),
            &["root:work"],
        ),
        1,
    );
    planner.grant.budget.acts = Some(5);
    planner.grant.purposes = Some(TextSet::of(["general".to_owned()]).unwrap());
    let planner = kit.delegate(None, planner).await.unwrap();
    type Widen = fn(&mut DelegationRequest);
    let widenings: [Widen; 6] = [
        |wanted| wanted.grant.further_depth = 1,
        |wanted| wanted.grant.budget.acts = Some(6),
        |wanted| wanted.grant.destinations = Some(TextSet::of(["root:plain".to_owned()]).unwrap()),
        |wanted| wanted.grant.purposes = Some(TextSet::of(["billing".to_owned()]).unwrap()),
        |wanted| {
            let classes = [ConsequenceClass::Financial];
            wanted.grant.consequence_classes =
                lychgate_core::delegation::ClassSet::of(classes).unwrap();
        },
        |wanted| wanted.lifetime_ms = Some(1_800_001),
    ];
    for (at, widen) in widenings.into_iter().enumerate() {
        let mut wanted = request("worker", READER, &[INFORMATIONAL]);
        widen(&mut wanted);
        assert_eq!(
            refused(&kit, Some(&planner), wanted).await,
            Code::DelegationExceeded,
            "{at}"
        );
    }
    // A worker cannot hand on to one above it.
    for name in ["planner", "agent-1", "lychgate-reconciler"] {
        let wanted = request(name, READER, &[INFORMATIONAL]);
        assert_eq!(
            refused(&kit, Some(&planner), wanted).await,
            Code::DelegationExceeded,
            "{name}"
        );
    }
    let worker = request(
        "worker",
        &["read_note", "write_note"],
        &[INFORMATIONAL, CHANGE],
    );
    let worker = kit.delegate(Some(&planner), worker).await.unwrap();
    let session = kit.worker(&worker).await.unwrap();
    kit.run(
        &session,
        "write_note",
        &kit.note("work", "a", "x"),
        End::Effected,
    )
    .await
    .ran();
    // What it left out is as above, not everything.
    let elsewhere = denied(
        kit.pass(&session, "write_note", &kit.note("plain", "a", "x"))
            .await,
    );
    assert_eq!(elsewhere.code, Code::DelegationExceeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_outlives_a_restart_and_a_crash_makes_none() {
    let kit = Kit::delegating().await;
    let file = kit
        .delegate(None, request("worker", READER, &[INFORMATIONAL]))
        .await
        .unwrap();
    let kit = kit.restart().await;
    let session = kit.worker(&file).await.unwrap();
    kit.run(&session, "read_note", &read(&kit), End::Effected)
        .await
        .ran();
    // The commit that would have made it durable fails: nobody is handed anything, and the gate ends.
    kit.store
        .fail_after(1, Some(lychgate_store::testing::Fault::LoseThenUnrecorded));
    let wanted = request("ghost", READER, &[INFORMATIONAL]);
    let refused = kit.try_delegate(None, wanted).await.unwrap_err();
    assert_eq!(refused.code, Code::FailClosed);
    assert!(kit.gate.is_broken());
    let kit = kit.restart().await;
    assert_eq!(kit.gate.delegations(9).unwrap().len(), 1);
    let state = kit.state(refused.act.unwrap());
    assert_eq!(state, Some(lychgate_core::State::Indeterminate));
}
