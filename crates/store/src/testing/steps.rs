//! The steps of an act and of the gate's own state.

use lychgate_core::State;

use super::Place;
use super::make::*;
use crate::row::TicketState;
use crate::txn::{Deliver, Lapse, Lapsed, Note, Rotate, Txn};
use crate::{Committed, Rejected, Store};

type Make<'m> = &'m mut dyn FnMut() -> Box<dyn Place>;

fn ready_store(make: Make<'_>) -> (Box<dyn Place>, Box<dyn Store>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    (place, store)
}

const OUTCOMES: [State; 6] = [
    State::Effected,
    State::Failed,
    State::InputRequired,
    State::Indeterminate,
    State::ReconciledEffect,
    State::ReconciledNoEffect,
];

pub fn settling_follows_the_table(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let mut n = 0;
    // From dispatched, and from what dispatched may become.
    for between in std::iter::once(None).chain(OUTCOMES.map(Some)) {
        for to in State::ALL {
            n += 1;
            done(&*store, boxed(dispatch(n)));
            let mut from = State::Dispatched;
            if let Some(between) = between.filter(|between| from.may_become(*between)) {
                done(&*store, Txn::Settle(settle(n, between)));
                from = between;
            }
            let txn = Txn::Settle(settle(n, to));
            if OUTCOMES.contains(&to) && from.may_become(to) {
                done(&*store, txn);
                assert_eq!(state(&*store, n), to);
            } else {
                assert_eq!(rejected(&*store, txn), Rejected::WrongState { from, to });
                assert_eq!(state(&*store, n), from);
            }
        }
    }
    assert_eq!(
        rejected(&*store, Txn::Settle(settle(0, State::Effected))),
        Rejected::UnknownAct
    );
    done(&*store, Txn::Issue(issue(1000)));
    for to in State::ALL {
        let why = rejected(&*store, Txn::Settle(settle(1000, to)));
        assert_eq!(
            why,
            Rejected::WrongState {
                from: State::Allowed,
                to
            }
        );
    }
}

pub fn only_a_persons_verdict_is_contradicted(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    assert_eq!(
        rejected(&*store, Txn::Contradict(contradict(1))),
        Rejected::UnknownAct
    );
    done(&*store, boxed(dispatch(1)));
    done(&*store, Txn::Settle(settle(1, State::Indeterminate)));
    let from = State::Indeterminate;
    assert_eq!(
        rejected(&*store, Txn::Contradict(contradict(1))),
        Rejected::WrongState { from, to: from }
    );
    done(&*store, Txn::Settle(settle(1, State::ReconciledNoEffect)));
    done(&*store, Txn::Contradict(contradict(1)));
    let row = store.act(act(1)).unwrap().unwrap();
    assert_eq!(
        (row.state, row.contradicted),
        (State::ReconciledNoEffect, true)
    );
}

pub fn a_rejected_transaction_changes_nothing(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Escalate(escalate(1, "s")));
    done(&*store, boxed(dispatch(2)));
    done(&*store, Txn::Issue(issue(3)));
    let before = super::model::dump(&*store);
    let mut late = consume(3);
    late.now = at(50_000);
    let mut stale = dispatch(4);
    stale.expected_epochs.policy_epoch = 9;
    let mut unapproved = dispatch(4);
    unapproved.approval = Some(approval(1, "s"));
    let bad = [
        boxed(consume(2)),
        boxed(late),
        boxed(stale),
        boxed(unapproved),
        Txn::Issue(issue(2)),
        Txn::Settle(settle(1, State::Effected)),
        Txn::Refuse(refuse_existing(2, State::Withdrawn)),
        Txn::Refuse(refuse(9, State::Effected)),
        Txn::Escalate(escalate(1, "s")),
        Txn::Decide(decide(9, true)),
        Txn::Apply(apply(None, "other")),
        Txn::Revoke(revoke(&["a"], &["a"])),
        Txn::Deliver(Deliver {
            act: act(99),
            now: at(9_000),
            receipts: vec![entry("x")],
        }),
    ];
    for txn in bad {
        let why = rejected(&*store, txn.clone());
        assert_eq!(super::model::dump(&*store), before, "{why}: {txn:?}");
    }
}

pub fn a_lapse_is_whole_or_not_at_all(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Escalate(escalate(1, "s")));
    done(&*store, boxed(dispatch(2)));
    let lapsed = |n| Lapsed {
        act: act(n),
        to: State::Withdrawn,
        code: None,
    };
    let mixed = Lapse {
        tickets: vec![ticket(1)],
        acts: vec![lapsed(1), lapsed(2)],
        ..Lapse::at(at(3))
    };
    let before = super::model::dump(&*store);
    let from = State::Dispatched;
    let wrong = Rejected::WrongState {
        from,
        to: State::Withdrawn,
    };
    assert_eq!(rejected(&*store, Txn::Lapse(mixed)), wrong);
    let twice = Lapse {
        acts: vec![lapsed(1), lapsed(1)],
        ..Lapse::at(at(3))
    };
    assert!(matches!(
        rejected(&*store, Txn::Lapse(twice)),
        Rejected::Malformed(_)
    ));
    let unknown = Lapse {
        tickets: vec![ticket(1)],
        forget_answers: vec![act(9)],
        ..Lapse::at(at(3))
    };
    assert_eq!(rejected(&*store, Txn::Lapse(unknown)), Rejected::UnknownAct);
    assert_eq!(super::model::dump(&*store), before);
}

pub fn a_rejected_transaction_leaves_its_neighbours_alone(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    // Handed over without waiting, so that they may share a group.
    let pending: Vec<_> = (1..=100)
        .map(|n| {
            let mut txn = dispatch(n);
            if n % 3 == 0 {
                txn.expected_epochs.authority_epoch = 5;
            }
            store.commit(boxed(txn))
        })
        .collect();
    for (n, pending) in (1..=100).zip(pending) {
        let committed = pending.wait().unwrap();
        assert_eq!(
            matches!(committed, Committed::Rejected(_)),
            n % 3 == 0,
            "{n}"
        );
    }
    assert_eq!(store.counts().unwrap().of(State::Dispatched), 67);
    assert_eq!(store.counts().unwrap().total(), 67);
    assert_eq!(store.record_len().unwrap(), 1 + 2 * 67);
}

pub fn the_record_keeps_order_and_leaves(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let lines: Vec<_> = (0..200).map(|n| entry(&format!("line {n}"))).collect();
    let pending: Vec<_> = lines
        .chunks(4)
        .map(|chunk| {
            store.commit(Txn::Note(Note {
                now: at(1),
                receipts: chunk.to_vec(),
            }))
        })
        .collect();
    for (n, pending) in (0..).zip(pending) {
        let first = pending.wait().unwrap().done().unwrap().first_index;
        assert_eq!(first, 1 + n * 4);
    }
    assert_eq!(store.record_len().unwrap(), 201);
    let read = store.record(1, 1000).unwrap();
    assert_eq!(read.len(), 200);
    for (at, (row, line)) in read.iter().zip(&lines).enumerate() {
        assert_eq!(row.index, 1 + at as u64);
        assert_eq!(row.bytes.as_ref(), Some(&line.bytes));
        assert_eq!(row.leaf, line.leaf);
    }
    assert_eq!(store.record(10, 5).unwrap().len(), 5);
    assert!(store.record(201, 5).unwrap().is_empty());
    assert!(store.record(u64::MAX, 5).unwrap().is_empty());

    let first = store
        .commit(boxed(dispatch(1)))
        .wait()
        .unwrap()
        .done()
        .unwrap()
        .first_index;
    let two: Vec<_> = store
        .record(first, 9)
        .unwrap()
        .into_iter()
        .filter_map(|row| row.bytes)
        .collect();
    assert_eq!(two, [b"allowed 1".to_vec(), b"dispatched 1".to_vec()]);
}

pub fn a_configuration_replaces_the_one_it_was_made_from(make: Make<'_>) {
    let place = make();
    let store = place.open();
    assert_eq!(store.applied().unwrap(), None);
    assert_eq!(store.protected_state().unwrap().policy_digest, None);
    ready(&*store);
    let found = Some(policy());
    assert_eq!(
        rejected(&*store, Txn::Apply(apply(None, "b"))),
        Rejected::PolicyMoved { found }
    );
    let mut wider = apply(found, "b");
    wider.purposes_moved = true;
    wider.authority_moved = true;
    done(&*store, Txn::Apply(wider));
    let held = store.protected_state().unwrap();
    assert_eq!(
        (held.epochs.policy_epoch, held.epochs.authority_epoch),
        (2, 1)
    );
    assert_eq!(
        (held.purpose_epoch, held.policy_digest),
        (1, Some(digest("b")))
    );
    let applied = store.applied().unwrap().unwrap();
    assert_eq!((applied.digest, applied.epoch), (digest("b"), 2));
    assert_eq!(applied.snapshot, b"b");
    let found = Some(digest("b"));
    let stale = Txn::Apply(apply(Some(policy()), "c"));
    assert_eq!(rejected(&*store, stale), Rejected::PolicyMoved { found });
}

pub fn revoking_moves_the_epoch_and_can_be_taken_back(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Revoke(revoke(&["b", "a", "a"], &[])));
    let mut again = revoke(&["a"], &["b", "never"]);
    again.now = at(5);
    done(&*store, Txn::Revoke(again));
    let left = store.revocations().unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].subject.as_str(), left[0].at), ("a", at(1)));
    assert_eq!(store.protected_state().unwrap().epochs.revocation_epoch, 2);
    done(
        &*store,
        Txn::Rotate(Rotate {
            now: at(1),
            receipts: vec![],
        }),
    );
    assert_eq!(store.protected_state().unwrap().epochs.authority_epoch, 1);
    assert_eq!(
        store.protected_state().unwrap().last_time,
        at(5),
        "time never goes back"
    );
}

pub fn a_consent_is_granted_once_and_withdrawn_once(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Consent(consent(1)));
    done(&*store, Txn::Consent(consent(2)));
    assert_eq!(
        rejected(&*store, Txn::Consent(consent(1))),
        Rejected::SeenConsent
    );
    assert_eq!(store.protected_state().unwrap().epochs, EPOCHS);
    let ids = |live_at| -> Vec<_> {
        let rows = store.consents(live_at, 9).unwrap();
        rows.into_iter().map(|row| row.id).collect()
    };
    assert_eq!(ids(Some(at(29_999))), [consent_id(2), consent_id(1)]);
    assert!(ids(Some(at(30_000))).is_empty());
    let before = super::model::dump(&*store);
    for wrong in [&[1, 3][..], &[1, 1]] {
        let txn = Txn::WithdrawConsent(withdraw_consent(wrong));
        assert_eq!(rejected(&*store, txn), Rejected::UnknownConsent);
        assert_eq!(super::model::dump(&*store), before);
    }
    done(&*store, Txn::WithdrawConsent(withdraw_consent(&[1])));
    assert_eq!(ids(Some(at(3))), [consent_id(2)]);
    assert_eq!(ids(None).len(), 2);
    assert_eq!(store.protected_state().unwrap().epochs.authority_epoch, 1);
    let again = Txn::WithdrawConsent(withdraw_consent(&[1]));
    assert_eq!(rejected(&*store, again), Rejected::UnknownConsent);
    assert_eq!(
        rejected(&*store, Txn::Consent(consent(1))),
        Rejected::SeenConsent
    );
    // What was issued before it is worth nothing after it.
    let moved = Rejected::EpochMismatch {
        which: crate::Which::Authority,
    };
    assert_eq!(rejected(&*store, boxed(dispatch(7))), moved);
}

pub fn a_withdrawn_ticket_licenses_nothing(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Escalate(escalate(1, "s")));
    done(&*store, Txn::Escalate(escalate(2, "t")));
    done(&*store, Txn::Decide(decide(2, true)));
    done(
        &*store,
        Txn::Lapse(Lapse {
            withdrawn: vec![ticket(1), ticket(2)],
            ..Lapse::at(at(3))
        }),
    );
    let state = TicketState::Withdrawn;
    for n in [1, 2] {
        let row = store.ticket(ticket(n)).unwrap().unwrap();
        assert_eq!((row.state, row.display), (state, None));
    }
    assert_eq!(
        rejected(&*store, Txn::Decide(decide(1, true))),
        Rejected::TicketNotPending { state }
    );
    let mut licensed = dispatch(3);
    licensed.approval = Some(approval(2, "t"));
    assert_eq!(
        rejected(&*store, boxed(licensed)),
        Rejected::TicketNotApproved { state }
    );
}
