//! An authority is good once, for one holder, under one state of the world.

use std::sync::Arc;

use lychgate_core::State;
use lychgate_core::id::Nonce;

use super::Place;
use super::make::*;
use crate::txn::{Dispatch, Issue, Rotate, Txn};
use crate::{Committed, Rejected, Store, Which};

type Make<'m> = &'m mut dyn FnMut() -> Box<dyn Place>;

fn ready_store(make: Make<'_>) -> (Box<dyn Place>, Box<dyn Store>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    (place, store)
}

pub fn an_authority_is_issued_and_consumed_once(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Issue(issue(1)));
    assert_eq!(state(&*store, 1), State::Allowed);
    done(&*store, boxed(consume(1)));
    assert_eq!(state(&*store, 1), State::Dispatched);
    assert_eq!(rejected(&*store, boxed(consume(1))), Rejected::AlreadyUsed);
    for to in [State::Indeterminate, State::Effected] {
        done(&*store, Txn::Settle(settle(1, to)));
        assert_eq!(rejected(&*store, boxed(consume(1))), Rejected::AlreadyUsed);
    }

    done(&*store, boxed(dispatch(2)));
    let row = store.act(act(2)).unwrap().unwrap();
    assert_eq!(row.state, State::Dispatched);
    assert_eq!(row.grant, Some(grant(2)));
    assert_eq!(row.idempotency_key.as_deref(), Some("key 2"));
    assert_eq!(row.read_back.as_deref(), Some(&b"read back"[..]));
    assert_eq!(rejected(&*store, boxed(consume(2))), Rejected::AlreadyUsed);
}

pub fn sixty_four_race_for_one_authority(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let store: Arc<dyn Store> = Arc::from(store);
    done(&*store, Txn::Issue(issue(1)));
    let results = race(&store, 64, |_| boxed(consume(1)));
    let winners = results.iter().filter(|won| won.is_ok()).count();
    assert_eq!(winners, 1);
    assert!(
        results
            .iter()
            .flat_map(|won| won.as_ref().err())
            .all(|why| *why == Rejected::AlreadyUsed)
    );
}

pub(super) fn race(
    store: &Arc<dyn Store>,
    many: u64,
    txn: impl Fn(u64) -> Txn,
) -> Vec<Result<crate::outcome::Done, Rejected>> {
    let threads: Vec<_> = (0..many)
        .map(|n| {
            let (store, txn) = (Arc::clone(store), txn(n));
            std::thread::spawn(move || store.commit(txn).wait().expect("no fault").done())
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

pub fn a_replay_is_seen_by_act_and_by_nonce(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, boxed(dispatch(1)));
    assert_eq!(rejected(&*store, Txn::Issue(issue(1))), Rejected::SeenAct);
    assert_eq!(rejected(&*store, boxed(dispatch(1))), Rejected::SeenAct);
    assert_eq!(
        rejected(&*store, Txn::Refuse(refuse(1, State::Refused))),
        Rejected::SeenAct
    );
    assert_eq!(
        rejected(&*store, Txn::Escalate(escalate(1, "s"))),
        Rejected::SeenAct
    );

    let mut again = issue(2);
    again.grant.nonce = grant(1).nonce;
    assert_eq!(
        rejected(&*store, Txn::Issue(again.clone())),
        Rejected::SeenNonce
    );
    let both = Dispatch {
        nonce: again.grant.nonce,
        issue: Some(again),
        ..consume(2)
    };
    assert_eq!(rejected(&*store, boxed(both)), Rejected::SeenNonce);
    // Issued twice under one nonce, only one is ever consumed.
    let mut twin = issue(3);
    twin.grant.nonce = grant(4).nonce;
    done(&*store, Txn::Issue(twin));
    done(&*store, Txn::Issue(issue(4)));
    done(
        &*store,
        boxed(Dispatch {
            nonce: grant(4).nonce,
            ..consume(3)
        }),
    );
    assert_eq!(rejected(&*store, boxed(consume(4))), Rejected::SeenNonce);
}

pub fn an_authority_never_issued_is_refused(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    assert_eq!(rejected(&*store, boxed(consume(1))), Rejected::NotIssued);
    done(&*store, Txn::Issue(issue(1)));
    let other = Dispatch {
        authority: authority(9),
        ..consume(1)
    };
    assert_eq!(rejected(&*store, boxed(other)), Rejected::NotIssued);
    done(&*store, Txn::Refuse(refuse(2, State::Refused)));
    assert_eq!(rejected(&*store, boxed(consume(2))), Rejected::NotIssued);
}

pub fn an_authority_expires_even_when_the_clock_steps_back(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Issue(issue(1)));
    done(&*store, Txn::Issue(issue(2)));
    let late = Dispatch {
        now: at(10_000),
        ..consume(1)
    };
    assert_eq!(rejected(&*store, boxed(late)), Rejected::Expired);
    // A rejected transaction does not move the mark.
    done(
        &*store,
        boxed(Dispatch {
            now: at(9_999),
            ..consume(1)
        }),
    );
    let mut mark = settle(1, State::Effected);
    mark.now = at(10_000);
    done(&*store, Txn::Settle(mark));
    assert_eq!(store.protected_state().unwrap().last_time, at(10_000));
    assert_eq!(rejected(&*store, boxed(consume(2))), Rejected::Expired);
}

pub fn each_epoch_and_the_digest_are_compared(make: Make<'_>) {
    type Change = fn(&mut Issue, &mut Dispatch);
    let cases: [(Which, Change, Change); 4] = [
        (
            Which::Policy,
            |issue, _| issue.grant.epochs.policy_epoch = 0,
            |_, txn| txn.expected_epochs.policy_epoch = 2,
        ),
        (
            Which::Authority,
            |issue, _| issue.grant.epochs.authority_epoch = 7,
            |_, txn| txn.expected_epochs.authority_epoch = 1,
        ),
        (
            Which::Revocation,
            |issue, _| issue.grant.epochs.revocation_epoch = 7,
            |_, txn| txn.expected_epochs.revocation_epoch = 1,
        ),
        (
            Which::PolicyDigest,
            |issue, _| issue.grant.policy_digest = digest("other"),
            |_, txn| txn.policy_digest = digest("other"),
        ),
    ];
    let (_place, store) = ready_store(make);
    for (which, issued, expected) in cases {
        for change in [issued, expected] {
            let (mut first, mut txn) = (issue(1), consume(1));
            change(&mut first, &mut txn);
            txn.issue = Some(first);
            assert_eq!(
                rejected(&*store, boxed(txn)),
                Rejected::EpochMismatch { which }
            );
        }
    }
    // What was current when it was issued is stale after the epoch moved.
    let moves = [
        (
            Which::Revocation,
            Txn::Revoke(revoke(&["server:other"], &[])),
        ),
        (
            Which::Authority,
            Txn::Rotate(Rotate {
                now: at(1),
                receipts: vec![],
            }),
        ),
        (Which::Policy, Txn::Apply(apply(Some(policy()), "policy"))),
    ];
    done(&*store, Txn::Issue(issue(1)));
    for (which, txn) in moves {
        done(&*store, txn);
        assert_eq!(
            rejected(&*store, boxed(consume(1))),
            Rejected::EpochMismatch { which }
        );
    }
}

pub fn another_holder_is_refused(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Issue(issue(1)));
    let thief = Dispatch {
        holder: holder(2),
        ..consume(1)
    };
    assert_eq!(
        rejected(&*store, boxed(thief.clone())),
        Rejected::HolderMismatch
    );
    done(&*store, boxed(consume(1)));
    assert_eq!(rejected(&*store, boxed(thief)), Rejected::HolderMismatch);
}

pub fn a_nonce_must_be_the_one_issued(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let foreign = Nonce {
        holder: holder(2),
        count: 1,
    };
    let zero = Nonce {
        holder: holder(1),
        count: 0,
    };
    let huge = Nonce {
        holder: holder(1),
        count: u64::MAX,
    };
    for nonce in [foreign, zero, huge] {
        let mut txn = issue(1);
        txn.grant.nonce = nonce;
        assert_eq!(rejected(&*store, Txn::Issue(txn)), Rejected::NonceUnusable);
    }
    done(&*store, Txn::Issue(issue(1)));
    for nonce in [foreign, zero, huge, grant(5).nonce] {
        let txn = Dispatch {
            nonce,
            ..consume(1)
        };
        assert_eq!(rejected(&*store, boxed(txn)), Rejected::NonceUnusable);
    }
}

pub fn what_is_revoked_is_refused(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Revoke(revoke(&["server:fs"], &[])));
    let under_it = |n| {
        let (mut first, mut txn) = (issue(n), consume(n));
        first.grant.epochs.revocation_epoch = 1;
        txn.expected_epochs.revocation_epoch = 1;
        boxed(Dispatch {
            issue: Some(first),
            ..txn
        })
    };
    let subject = "server:fs".to_owned();
    assert_eq!(
        rejected(&*store, under_it(1)),
        Rejected::Revoked { subject }
    );
}

pub fn a_withdrawn_act_is_never_dispatched(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    for (n, to) in [
        (1, State::Withdrawn),
        (2, State::Refused),
        (3, State::Expired),
    ] {
        done(&*store, Txn::Issue(issue(n)));
        done(&*store, Txn::Refuse(refuse_existing(n, to)));
        let why = rejected(&*store, boxed(consume(n)));
        match to {
            State::Expired => assert_eq!(why, Rejected::Expired),
            from => assert_eq!(
                why,
                Rejected::WrongState {
                    from,
                    to: State::Dispatched
                }
            ),
        }
    }
    assert!(matches!(
        store.commit(boxed(dispatch(4))).wait(),
        Ok(Committed::Done(_))
    ));
}
