//! Answers until they are delivered, and the lists that show what is open.

use lychgate_core::{Code, State};

use super::Place;
use super::make::*;
use crate::txn::{Deliver, Lapse, LeafHash, Note, Txn};
use crate::{ActQuery, BatchSignature, Signatory, Store};

type Make<'m> = &'m mut dyn FnMut() -> Box<dyn Place>;

fn ready_store(make: Make<'_>) -> (Box<dyn Place>, Box<dyn Store>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    (place, store)
}

pub fn a_delivered_answer_is_gone(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let row = |n| store.act(act(n)).unwrap().unwrap();
    for n in 1..=3 {
        done(&*store, boxed(dispatch(n)));
    }
    // Not settled yet: left alone.
    store.note_delivered(act(1));
    store.note_delivered(act(77));
    done(&*store, Txn::Settle(settle(1, State::Effected)));
    assert_eq!(row(1).answer.as_deref(), Some(&b"answer"[..]));
    assert_eq!(row(1).read_back, None, "deleted at settlement");
    assert!(row(1).undelivered);
    store.note_delivered(act(1));
    // Written with the next group.
    done(
        &*store,
        Txn::Note(Note {
            now: at(4),
            receipts: vec![],
        }),
    );
    assert_eq!((row(1).answer, row(1).undelivered), (None, false));

    // Or by itself.
    done(&*store, Txn::Settle(settle(2, State::Failed)));
    store.note_delivered(act(2));
    let mut looks = 0;
    while row(2).undelivered {
        looks += 1;
        assert!(looks < 400, "not written in four seconds");
        wait_ten_milliseconds();
    }

    // Durably.
    done(&*store, Txn::Settle(settle(3, State::Indeterminate)));
    assert!(row(3).read_back.is_some(), "reconciliation will want it");
    let deliver = || {
        Txn::Deliver(Deliver {
            act: act(3),
            now: at(5),
            receipts: vec![entry("d")],
        })
    };
    done(&*store, deliver());
    assert_eq!((row(3).answer, row(3).undelivered), (None, false));
    assert_eq!(
        store.open_acts().unwrap().len(),
        1,
        "indeterminate acts stay open"
    );
    done(&*store, deliver());
    let late = settle(3, State::Effected);
    done(&*store, Txn::Settle(late));
    assert!(row(3).undelivered && row(3).answer.is_some());
}

/// The suite has no clock to wait on; `recv_timeout` is the one wait that the house rules leave.
fn wait_ten_milliseconds() {
    let (_keep, receiver) = std::sync::mpsc::sync_channel::<()>(1);
    let _ = receiver.recv_timeout(std::time::Duration::from_millis(10));
}

pub fn open_acts_are_what_equal_calls_are_held_against(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let open = || -> Vec<_> {
        store
            .open_acts()
            .unwrap()
            .into_iter()
            .map(|row| (row.id, row.state))
            .collect()
    };
    done(&*store, Txn::Issue(issue(1)));
    done(&*store, Txn::Escalate(escalate(2, "s")));
    done(&*store, Txn::Refuse(refuse(3, State::Refused)));
    assert_eq!(open(), []);
    for n in 4..=7 {
        done(&*store, boxed(dispatch(n)));
    }
    done(&*store, Txn::Settle(settle(5, State::Indeterminate)));
    done(&*store, Txn::Settle(settle(6, State::Effected)));
    let mut delivered = settle(7, State::Effected);
    delivered.undelivered = false;
    done(&*store, Txn::Settle(delivered));
    assert_eq!(
        store.act(act(7)).unwrap().unwrap().answer,
        None,
        "kept only while undelivered"
    );
    let expected = [
        (act(4), State::Dispatched),
        (act(5), State::Indeterminate),
        (act(6), State::Effected),
    ];
    assert_eq!(open(), expected);
    assert!(
        store
            .open_acts()
            .unwrap()
            .iter()
            .all(|row| row.answer.is_none())
    );
}

pub fn an_answer_can_be_forgotten_while_the_act_stays_open(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, boxed(dispatch(1)));
    done(&*store, Txn::Settle(settle(1, State::Effected)));
    done(
        &*store,
        Txn::Lapse(Lapse {
            forget_answers: vec![act(1)],
            ..Lapse::at(at(4))
        }),
    );
    let row = store.act(act(1)).unwrap().unwrap();
    assert_eq!((row.answer, row.undelivered), (None, true));
    assert_eq!(store.open_acts().unwrap().len(), 1);
}

pub fn only_answers_that_are_kept_are_forgotten(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    for n in 1..=4 {
        done(&*store, boxed(dispatch(n)));
    }
    for n in 1..=2 {
        done(&*store, Txn::Settle(settle(n, State::Effected)));
    }
    let mut empty = settle(3, State::Effected);
    empty.answer = None;
    done(&*store, Txn::Settle(empty));
    let kept = |until| store.kept_answers(at(until)).unwrap();
    assert_eq!(kept(2), []);
    assert_eq!(kept(3), [act(1), act(2)]);
    done(
        &*store,
        Txn::Lapse(Lapse {
            forget_answers: kept(3),
            ..Lapse::at(at(4))
        }),
    );
    assert_eq!(kept(9), [], "once is enough");
    assert_eq!(store.open_acts().unwrap().len(), 4);
}

pub fn a_denial_says_whose_answer_was_given(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, boxed(dispatch(1)));
    let mut given = refuse(2, State::Refused);
    given.answered_by = Some(act(1));
    done(&*store, Txn::Refuse(given));
    done(&*store, Txn::Escalate(escalate(3, "s")));
    let mut given = refuse_existing(3, State::Refused);
    given.answered_by = Some(act(1));
    done(&*store, Txn::Refuse(given));
    let row = |n| store.act(act(n)).unwrap().unwrap();
    assert_eq!(row(1).answered_by, None);
    assert_eq!(row(2).answered_by, Some(act(1)));
    assert_eq!(row(3).answered_by, Some(act(1)));
}

/// The place leads the leaf to a root that the signatory signed.
fn believed(by: Signatory, leaf: &LeafHash, signed: &BatchSignature) {
    let root = signed.place.root(leaf).unwrap();
    let again = signer().sign_batch(by, &root, signed.place.size).unwrap();
    assert_eq!(signed.signature, again, "{by:?}");
}

/// Many acts at once share their batches, and each is believed alone.
pub fn a_group_is_signed_together_and_believed_one_by_one(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let acts = 1..40;
    let pending: Vec<_> = acts
        .clone()
        .map(|n| store.commit(boxed(dispatch(n))))
        .collect();
    for pending in pending {
        pending.wait().unwrap().done().unwrap();
    }
    // One that is rejected in the middle of a group takes nobody's place.
    let again = store.commit(boxed(dispatch(1)));
    let after = store.commit(boxed(dispatch(40)));
    assert!(again.wait().unwrap().done().is_err());
    after.wait().unwrap().done().unwrap();
    for n in acts.chain([40]) {
        let (kept, said) = (
            store.said(act(n)).unwrap().unwrap(),
            dispatch(n).said.unwrap(),
        );
        let (kept_ped, said_ped) = (kept.ped.unwrap(), said.ped.unwrap());
        for (signed, leaf) in kept_ped.iter().zip(&said_ped) {
            believed(Signatory::Ped, leaf, signed);
        }
        believed(Signatory::Sink, &said.sink, &kept.sink);
    }
}

pub fn what_was_signed_is_kept(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, boxed(dispatch(1)));
    done(&*store, Txn::Refuse(refuse(2, State::Refused)));
    done(&*store, Txn::Settle(settle(1, State::Effected)));
    let (kept, said) = (
        store.said(act(1)).unwrap().unwrap(),
        dispatch(1).said.unwrap(),
    );
    assert_eq!(kept.objects, said.objects);
    assert_eq!(store.said(act(2)).unwrap(), None);
    let [evidence, authority] = kept.ped.unwrap();
    let [of_evidence, of_authority] = said.ped.unwrap();
    believed(Signatory::Ped, &of_evidence, &evidence);
    believed(Signatory::Ped, &of_authority, &authority);
    believed(Signatory::Sink, &said.sink, &kept.sink);
    let row = store.act(act(1)).unwrap().unwrap();
    assert_eq!((row.source, row.vouched), (new_act(1).source, true));
    assert_eq!(row.destination, new_act(1).destination);
}

pub fn acts_are_listed_by_state_and_in_order(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    for n in 1..=10 {
        if n % 2 == 0 {
            done(&*store, boxed(dispatch(n)));
        } else {
            let mut txn = refuse(n, State::Refused);
            txn.code = Some(Code::FailClosed);
            done(&*store, Txn::Refuse(txn));
        }
    }
    let list = |state, after: Option<u64>, newest_first, limit| -> Vec<_> {
        let query = ActQuery {
            state,
            after: after.map(act),
            newest_first,
            limit,
        };
        store
            .acts(&query)
            .unwrap()
            .into_iter()
            .map(|row| row.id)
            .collect()
    };
    assert_eq!(list(None, None, false, 3), [act(1), act(2), act(3)]);
    assert_eq!(list(None, None, true, 3), [act(10), act(9), act(8)]);
    assert_eq!(list(None, Some(8), false, 9), [act(9), act(10)]);
    assert_eq!(
        list(Some(State::Dispatched), Some(8), true, 2),
        [act(6), act(4)]
    );
    assert_eq!(
        list(Some(State::Dispatched), None, false, 2),
        [act(2), act(4)]
    );
    assert_eq!(
        list(Some(State::Refused), Some(5), false, 9),
        [act(7), act(9)]
    );
    assert!(list(Some(State::Escalated), None, false, 9).is_empty());
    assert_eq!(
        store.act(act(1)).unwrap().unwrap().code,
        Some(Code::FailClosed)
    );
    assert_eq!(store.act(act(99)).unwrap(), None);
    let counts = store.counts().unwrap();
    assert_eq!(
        (counts.of(State::Refused), counts.of(State::Dispatched)),
        (5, 5)
    );
    assert_eq!(counts.total(), 10);
}
