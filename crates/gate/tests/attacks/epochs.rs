//! Between ALLOW and consume something moves.

use lychgate_core::{Code, State};
use lychgate_store::{Apply, Revoke, Rotate, Store, Txn};

use crate::kit::{Kit, catalogue};

/// What moves, and what the sink says then.
#[derive(Clone, Copy, Debug)]
enum Moves {
    Policy,
    Authority,
    Revocation,
    Revoked,
}

impl Moves {
    async fn at_the_gate(self, kit: &Kit) {
        match self {
            Self::Policy => kit.apply(bills).await.unwrap(),
            Self::Authority => unreachable!("the gate ends when a key is rotated"),
            Self::Revocation => kit.revoke("server:x").await,
            Self::Revoked => kit.revoke("server:box").await,
        }
    }

    /// Behind the gate's back: only the consuming transaction can notice.
    async fn in_the_store(self, kit: &Kit) {
        let now = kit.gate.now();
        let receipts = Vec::new();
        let revoke = |subject: &str| {
            Txn::Revoke(Revoke {
                add: vec![subject.to_owned()],
                remove: Vec::new(),
                now,
                receipts: Vec::new(),
            })
        };
        let txn = match self {
            Self::Policy => {
                let new = catalogue::applied(&kit.folder, bills);
                Txn::Apply(Apply {
                    expected: Some(kit.gate.current().policy_digest),
                    digest: new.digest(),
                    snapshot: new.snapshot(),
                    purposes_moved: false,
                    authority_moved: false,
                    now,
                    receipts,
                })
            }
            Self::Authority => Txn::Rotate(Rotate { now, receipts }),
            Self::Revocation => revoke("server:x"),
            Self::Revoked => revoke("server:box"),
        };
        kit.store.commit(txn).await.unwrap().done().unwrap();
    }

    fn code(self) -> Code {
        match self {
            Self::Policy => Code::PolicyEpochMismatch,
            Self::Authority => Code::AuthorityEpochMismatch,
            Self::Revocation | Self::Revoked => Code::RevocationStateMismatch,
        }
    }
}

fn bills(text: String) -> String {
    text.replace("declared = \"Billing\"", "declared = \"Bills\"")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epoch_move_between_allow_and_consume() {
    for moves in [
        Moves::Policy,
        Moves::Authority,
        Moves::Revocation,
        Moves::Revoked,
    ] {
        for hidden in [false, true] {
            if !hidden && matches!(moves, Moves::Authority) {
                continue;
            }
            let kit = Kit::new().await;
            let session = kit.session();
            let note = kit.note("work", "a", "x");
            let prepared = kit.prepared(&session, "write_note", &note).await;
            let act = prepared.act.candidate_act_id;
            if hidden {
                moves.in_the_store(&kit).await;
            } else {
                moves.at_the_gate(&kit).await;
            }
            let live = prepared.live;
            let done = kit
                .gate
                .present(&kit.sink(), &live.view(), prepared.presented)
                .await;
            let code = done.unwrap_err().code;
            assert_eq!(code, moves.code(), "{moves:?} {hidden}");
            assert!(kit.denied_in_record(act, code), "{moves:?} {hidden}");
            assert_eq!(kit.state(act), Some(State::Refused));
            assert_eq!(kit.effects.count(), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revocation_active() {
    let kit = Kit::new().await;
    let session = kit.session();
    let note = kit.note("work", "a", "x");
    let subjects = [
        "all".to_owned(),
        "agent:agent-1".to_owned(),
        "principal:user:alice".to_owned(),
        "server:box".to_owned(),
        "tool:box/write_note".to_owned(),
        format!("session:{}", session.holder()),
        format!("destination:{}", kit.path("work", "a")),
    ];
    for subject in subjects {
        kit.revoke(&subject).await;
        let denied = crate::kit::denied(kit.pass(&session, "write_note", &note).await);
        assert_eq!(denied.code, Code::RevocationActive, "{subject}");
        kit.restore(&subject).await;
    }
    kit.run(&session, "write_note", &note, lychgate_gate::End::Effected)
        .await
        .ran();
    assert_eq!(kit.effects.count(), 1);
}

/// The hazard: a revocation that reads the rules before another change and writes them after it would go on deciding by
/// the old rules under the new digest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_the_rules_is_never_undone_by_one_beside_it() {
    let kit = Kit::new().await;
    for round in 0..20 {
        let declared = format!("declared = \"Bills {round}\"");
        let edit = |text: String| text.replace("declared = \"Billing\"", &declared);
        let subject = format!("server:{round}").parse().unwrap();
        let revoke = kit.gate.revoke(vec![subject], None);
        let (applied, revoked) = tokio::join!(kit.apply(edit), revoke);
        applied.unwrap();
        revoked.unwrap();
        let (current, stored) = (kit.gate.current(), kit.store.protected_state().unwrap());
        assert_eq!(Some(current.applied.digest()), stored.policy_digest);
        assert_eq!(current.policy_digest, current.applied.digest());
        assert_eq!(current.epochs, stored.epochs);
        assert!(current.revoked.contains(&format!("server:{round}")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_widens_wants_the_approver_and_a_yes_is_for_one_change_once() {
    use lychgate_keys::verdict::ConfigurationChange;
    let kit = Kit::new().await;
    let widen = |text: String| text.replace("allow = [", "allow = [\"box/unlisted\", ");
    let new = || catalogue::applied(&kit.folder, widen);
    assert!(kit.gate.apply(new(), None).await.is_err());
    let mut yes = ConfigurationChange {
        version: Default::default(),
        object_type: Default::default(),
        from: Some(kit.gate.current().policy_digest),
        to: new().digest(),
        at: kit.gate.now(),
        challenge: kit.gate.challenge().unwrap(),
        mark: kit.mark(),
    };
    // The agent's own key, and a key of the gate's.
    lychgate_keys::SigningKey::generate()
        .unwrap()
        .sign(&mut yes)
        .unwrap();
    assert!(kit.gate.apply(new(), Some(&yes)).await.is_err());
    kit.sign_as_ped(&mut yes);
    assert!(kit.gate.apply(new(), Some(&yes)).await.is_err());
    kit.approver.sign(&mut yes).unwrap();
    kit.gate.apply(new(), Some(&yes)).await.unwrap();
    // Back, which narrows, and the same yes again.
    kit.apply(|text| text).await.unwrap();
    assert!(kit.gate.apply(new(), Some(&yes)).await.is_err());
}
