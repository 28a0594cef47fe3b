//! An approval is for one subject, in time, once.

use std::sync::Arc;

use lychgate_core::{Code, State};

use super::Place;
use super::make::*;
use super::once::race;
use crate::txn::{Awaited, Dispatch, Lapse, Lapsed, Txn};
use crate::{Rejected, Store, TicketQuery, TicketState};

type Make<'m> = &'m mut dyn FnMut() -> Box<dyn Place>;

fn ready_store(make: Make<'_>) -> (Box<dyn Place>, Box<dyn Store>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    (place, store)
}

fn ticket_state(store: &dyn Store, n: u64) -> TicketState {
    store.ticket(ticket(n)).unwrap().unwrap().state
}

/// A new act, licensed by ticket `by`.
fn licensed(n: u64, by: u64, subject: &str) -> Txn {
    boxed(Dispatch {
        approval: Some(approval(by, subject)),
        ..dispatch(n)
    })
}

pub fn an_approval_licenses_one_act(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Escalate(escalate(1, "s")));
    let pending = TicketState::Pending;
    assert_eq!(
        rejected(&*store, licensed(2, 1, "s")),
        Rejected::TicketNotApproved { state: pending }
    );
    assert_eq!(
        rejected(&*store, licensed(2, 9, "s")),
        Rejected::UnknownTicket
    );
    done(&*store, Txn::Decide(decide(1, true)));
    done(&*store, licensed(2, 1, "s"));
    let row = store.ticket(ticket(1)).unwrap().unwrap();
    assert_eq!(
        (row.state, row.consumed_by),
        (TicketState::Consumed, Some(act(2)))
    );
    assert_eq!(store.act(act(2)).unwrap().unwrap().ticket, Some(ticket(1)));
    assert_eq!(
        rejected(&*store, licensed(3, 1, "s")),
        Rejected::TicketConsumed
    );
    // The call that asked is still there, and cannot use it either.
    let own = Dispatch {
        approval: Some(approval(1, "s")),
        ..dispatch(1)
    };
    assert_eq!(rejected(&*store, boxed(own)), Rejected::TicketConsumed);
}

pub fn eight_race_for_one_approval(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let store: Arc<dyn Store> = Arc::from(store);
    done(&*store, Txn::Escalate(escalate(100, "s")));
    done(&*store, Txn::Decide(decide(100, true)));
    let results = race(&store, 8, |n| licensed(n, 100, "s"));
    assert_eq!(results.iter().filter(|won| won.is_ok()).count(), 1);
    let losers = results.iter().flat_map(|won| won.as_ref().err());
    assert!(
        losers
            .into_iter()
            .all(|why| *why == Rejected::TicketConsumed)
    );
    assert_eq!(store.counts().unwrap().of(State::Dispatched), 1);
}

pub fn a_waiting_call_is_dispatched_with_its_own_ticket(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    for n in [1, 2] {
        done(&*store, Txn::Escalate(escalate(n, "s")));
    }
    let pending = TicketState::Pending;
    let early = Rejected::TicketNotApproved { state: pending };
    assert_eq!(rejected(&*store, Txn::Issue(issue(1))), early);
    done(&*store, Txn::Decide(decide(1, true)));
    done(&*store, Txn::Decide(decide(2, true)));
    assert_eq!(
        rejected(&*store, boxed(dispatch(1))),
        Rejected::ApprovalMissing
    );
    assert_eq!(
        rejected(&*store, licensed(1, 2, "s")),
        Rejected::ApprovalMissing
    );
    done(&*store, licensed(1, 1, "s"));
    assert_eq!(state(&*store, 1), State::Dispatched);
    assert_eq!(store.act(act(1)).unwrap().unwrap().grant, Some(grant(1)));

    // In two steps.
    done(&*store, Txn::Issue(issue(2)));
    assert_eq!(state(&*store, 2), State::Allowed);
    assert_eq!(ticket_state(&*store, 2), TicketState::Approved);
    assert_eq!(
        rejected(&*store, boxed(consume(2))),
        Rejected::ApprovalMissing
    );
    let with = Dispatch {
        approval: Some(approval(2, "s")),
        ..consume(2)
    };
    done(&*store, boxed(with));
    assert_eq!(ticket_state(&*store, 2), TicketState::Consumed);

    // Two equal calls, one question, one approval: two acts, one of which may run.
    done(&*store, Txn::Escalate(escalate(5, "t")));
    let mut joins = escalate(6, "t");
    joins.ticket = Awaited::Pending(approval(5, "other"));
    assert_eq!(
        rejected(&*store, Txn::Escalate(joins.clone())),
        Rejected::TicketSubject
    );
    joins.ticket = Awaited::Pending(approval(5, "t"));
    done(&*store, Txn::Escalate(joins));
    done(&*store, Txn::Decide(decide(5, true)));
    done(&*store, licensed(6, 5, "t"));
    assert_eq!(
        rejected(&*store, licensed(5, 5, "t")),
        Rejected::TicketConsumed
    );
}

pub fn an_approval_is_for_one_subject(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Escalate(escalate(1, "s")));
    done(&*store, Txn::Decide(decide(1, true)));
    assert_eq!(
        rejected(&*store, licensed(2, 1, "other")),
        Rejected::TicketSubject
    );
    assert_eq!(ticket_state(&*store, 1), TicketState::Approved);
}

pub fn a_denial_ends_the_acts_that_wait(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    for n in [1, 2] {
        done(&*store, Txn::Escalate(escalate(n, "s")));
    }
    let mut joins = escalate(3, "s");
    joins.ticket = Awaited::Pending(approval(1, "s"));
    done(&*store, Txn::Escalate(joins));
    let gone = refuse_existing(3, State::Withdrawn);
    done(&*store, Txn::Decide(decide(1, false)));
    let row = store.act(act(1)).unwrap().unwrap();
    assert_eq!(
        (row.state, row.code),
        (State::Refused, Some(Code::ApprovalDenied))
    );
    assert_eq!(state(&*store, 3), State::Refused);
    assert_eq!(state(&*store, 2), State::Escalated);
    let from = State::Refused;
    let wrong = Rejected::WrongState {
        from,
        to: State::Withdrawn,
    };
    assert_eq!(rejected(&*store, Txn::Refuse(gone)), wrong);
    let denied = Rejected::TicketNotApproved {
        state: TicketState::Denied,
    };
    assert_eq!(rejected(&*store, licensed(4, 1, "s")), denied);
}

pub fn nobody_decides_twice_or_late(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    assert_eq!(
        rejected(&*store, Txn::Decide(decide(1, true))),
        Rejected::UnknownTicket
    );
    done(&*store, Txn::Escalate(escalate(1, "s")));
    assert_eq!(
        rejected(&*store, Txn::Escalate(escalate(1, "s"))),
        Rejected::SeenAct
    );
    done(&*store, Txn::Decide(decide(1, false)));
    let again = Rejected::TicketNotPending {
        state: TicketState::Denied,
    };
    assert_eq!(rejected(&*store, Txn::Decide(decide(1, true))), again);

    done(&*store, Txn::Escalate(escalate(2, "s")));
    let mut late = decide(2, true);
    late.now = at(60_000);
    assert_eq!(
        rejected(&*store, Txn::Decide(late)),
        Rejected::TicketExpired
    );
    done(&*store, Txn::Decide(decide(2, true)));
    // Approved in time, used too late.
    let (mut first, mut txn) = (issue(3), consume(3));
    first.grant.expires_at = at(99_000);
    txn.now = at(60_000);
    txn.approval = Some(approval(2, "s"));
    assert_eq!(
        rejected(
            &*store,
            boxed(Dispatch {
                issue: Some(first),
                ..txn
            })
        ),
        Rejected::TicketExpired
    );
}

pub fn tickets_lapse_and_lose_their_display(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    for n in [1, 2, 3] {
        done(&*store, Txn::Escalate(escalate(n, "s")));
    }
    let display = |n| store.ticket(ticket(n)).unwrap().unwrap().display;
    assert_eq!(display(1).as_deref(), Some(&b"what is shown"[..]));
    done(&*store, Txn::Decide(decide(2, true)));
    assert_eq!(display(2), None);
    done(
        &*store,
        Txn::Lapse(Lapse {
            tickets: vec![ticket(1), ticket(2)],
            acts: vec![Lapsed {
                act: act(1),
                to: State::Expired,
                code: Some(Code::ApprovalExpired),
            }],
            ..Lapse::at(at(5))
        }),
    );
    assert_eq!(display(1), None);
    let row = store.act(act(1)).unwrap().unwrap();
    assert_eq!(
        (row.state, row.code),
        (State::Expired, Some(Code::ApprovalExpired))
    );
    assert_eq!(
        state(&*store, 2),
        State::Escalated,
        "only what is named lapses"
    );
    for n in [1, 2] {
        assert_eq!(ticket_state(&*store, n), TicketState::Expired);
    }
    assert_eq!(
        store
            .tickets(&TicketQuery::newest(Some(TicketState::Expired), 9))
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        store
            .tickets(&TicketQuery::newest(Some(TicketState::Pending), 9))
            .unwrap()
            .len(),
        1
    );
    let all: Vec<_> = store
        .tickets(&TicketQuery::newest(None, 2))
        .unwrap()
        .iter()
        .map(|row| row.id)
        .collect();
    assert_eq!(all, [ticket(3), ticket(2)]);
    assert_eq!(
        rejected(&*store, licensed(7, 2, "s")),
        Rejected::TicketExpired
    );
}

pub fn a_list_of_tickets_comes_without_what_is_shown(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    done(&*store, Txn::Escalate(escalate(1, "s")));
    let whole = store.ticket(ticket(1)).unwrap().unwrap();
    let listed = store
        .tickets(&TicketQuery::newest(None, 9))
        .unwrap()
        .remove(0);
    assert_eq!(listed.display, None);
    assert_eq!(listed.summary.as_deref(), Some(&b"what a list shows"[..]));
    assert_eq!(listed.display_bytes, 13);
    assert_eq!(whole.display.as_ref().map(Vec::len), Some(13));
    assert_eq!((whole.summary, whole.display_bytes), (listed.summary, 13));
    done(&*store, Txn::Decide(decide(1, false)));
    let over = store.ticket(ticket(1)).unwrap().unwrap();
    assert_eq!(
        (over.summary, over.display, over.display_bytes),
        (None, None, 0)
    );
}

pub fn the_live_tickets_of_a_subject_are_found(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let found = || -> Vec<_> {
        let rows = store.tickets_of(&digest("s"), 9).unwrap();
        assert!(rows.iter().all(|row| row.display.is_none()));
        rows.iter().map(|row| row.id).collect()
    };
    assert_eq!(found(), []);
    for (n, subject) in [(1, "s"), (2, "s"), (3, "other")] {
        done(&*store, Txn::Escalate(escalate(n, subject)));
    }
    assert_eq!(found(), [ticket(2), ticket(1)]);
    assert_eq!(store.tickets_of(&digest("s"), 1).unwrap().len(), 1);
    done(&*store, Txn::Decide(decide(2, false)));
    assert_eq!(found(), [ticket(1)]);
    done(&*store, Txn::Decide(decide(1, true)));
    assert_eq!(found(), [ticket(1)], "approved and unused");
    done(&*store, licensed(4, 1, "s"));
    assert_eq!(found(), []);
}
