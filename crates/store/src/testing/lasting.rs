//! What was answered as done is there when the store is opened again.

use lychgate_core::State;

use super::Place;
use super::make::*;
use super::model::dump;
use crate::Rejected;
use crate::txn::{Dispatch, Note, Rotate, Txn};

type Make<'m> = &'m mut dyn FnMut() -> Box<dyn Place>;

pub fn reopening_finds_everything(make: Make<'_>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    done(&*store, boxed(dispatch(1)));
    done(&*store, Txn::Settle(settle(1, State::Effected)));
    done(&*store, boxed(dispatch(2)));
    done(&*store, Txn::Escalate(escalate(3, "s")));
    done(&*store, Txn::Issue(issue(4)));
    done(&*store, Txn::Revoke(revoke(&["server:x"], &[])));
    done(&*store, Txn::Consent(consent(1)));
    done(&*store, Txn::Consent(consent(2)));
    done(&*store, Txn::WithdrawConsent(withdraw_consent(&[2])));
    done(
        &*store,
        Txn::Rotate(Rotate {
            now: at(7),
            receipts: vec![entry("rotated")],
        }),
    );
    let before = dump(&*store);
    drop(store);
    let store = place.open();
    assert_eq!(dump(&*store), before);
    assert_eq!(store.protected_state().unwrap().last_time, at(7));
}

pub fn reopening_revives_nothing(make: Make<'_>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    done(&*store, boxed(dispatch(1)));
    done(&*store, Txn::Issue(issue(2)));
    done(
        &*store,
        Txn::Note(Note {
            now: at(10_000),
            receipts: vec![],
        }),
    );
    done(&*store, Txn::Escalate(escalate(3, "s")));
    let mut yes = decide(3, true);
    yes.now = at(10_001);
    done(&*store, Txn::Decide(yes));
    let licensed = |n| {
        let (mut first, mut txn) = (issue(n), consume(n));
        first.grant.expires_at = at(20_000);
        txn.approval = Some(approval(3, "s"));
        boxed(Dispatch {
            issue: Some(first),
            ..txn
        })
    };
    done(&*store, licensed(5));
    drop(store);
    let store = place.open();
    assert_eq!(rejected(&*store, boxed(consume(1))), Rejected::AlreadyUsed);
    assert_eq!(rejected(&*store, Txn::Issue(issue(1))), Rejected::SeenAct);
    assert_eq!(
        rejected(&*store, boxed(consume(2))),
        Rejected::Expired,
        "the clock stepped back"
    );
    assert_eq!(rejected(&*store, licensed(6)), Rejected::TicketConsumed);
    let mut replayed = issue(7);
    replayed.grant.nonce = grant(1).nonce;
    assert_eq!(rejected(&*store, Txn::Issue(replayed)), Rejected::SeenNonce);
}

pub fn dropping_writes_what_is_queued(make: Make<'_>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    let pending: Vec<_> = (1..=50).map(|n| store.commit(boxed(dispatch(n)))).collect();
    drop(store);
    assert!(
        pending
            .into_iter()
            .all(|pending| pending.wait().unwrap().done().is_ok())
    );
    assert_eq!(place.open().counts().unwrap().of(State::Dispatched), 50);
}
