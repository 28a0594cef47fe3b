//! Verdicts: one a key, as many as are wanted, kept as they were signed.

use super::Place;
use super::make::*;
use crate::txn::{Ruling, Txn};
use crate::{Rejected, TicketQuery, TicketState, VerdictRow};

type Make<'m> = &'m mut dyn FnMut() -> Box<dyn Place>;

fn row(approver: &str) -> VerdictRow {
    let Txn::Decide(txn) = Txn::Decide(ruled(1, Ruling::Counted, approver)) else {
        unreachable!()
    };
    VerdictRow {
        approver: txn.approver,
        bytes: txn.verdict,
    }
}

pub fn a_ticket_takes_one_verdict_of_each_key(make: Make<'_>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    done(&*store, Txn::Escalate(escalate(1, "s")));
    done(&*store, Txn::Decide(ruled(1, Ruling::Counted, "b")));
    for ruling in [Ruling::Counted, Ruling::Approved, Ruling::Denied] {
        let twice = Txn::Decide(ruled(1, ruling, "b"));
        assert_eq!(rejected(&*store, twice), Rejected::SeenVerdict);
    }
    let ticket_row = store.ticket(ticket(1)).unwrap().unwrap();
    assert_eq!(ticket_row.state, TicketState::Pending);
    assert!(
        ticket_row.display.is_some() && ticket_row.decided_at.is_none(),
        "the next approver sees all of it"
    );
    drop(store);
    let store = place.open();
    done(&*store, Txn::Decide(ruled(1, Ruling::Approved, "a")));
    assert_eq!(store.verdicts(ticket(1)).unwrap(), [row("a"), row("b")]);
    let ticket_row = store.ticket(ticket(1)).unwrap().unwrap();
    assert_eq!(ticket_row.state, TicketState::Approved);
    assert_eq!(ticket_row.display, None);
    let late = Rejected::TicketNotPending {
        state: TicketState::Approved,
    };
    let third = Txn::Decide(ruled(1, Ruling::Denied, "c"));
    assert_eq!(rejected(&*store, third), late);
    assert_eq!(store.verdicts(ticket(2)).unwrap(), []);
}

pub fn one_no_ends_what_others_said_yes_to(make: Make<'_>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    done(&*store, Txn::Escalate(escalate(1, "s")));
    done(&*store, Txn::Decide(ruled(1, Ruling::Counted, "a")));
    done(&*store, Txn::Decide(ruled(1, Ruling::Denied, "b")));
    let ended = Rejected::TicketNotPending {
        state: TicketState::Denied,
    };
    let third = Txn::Decide(ruled(1, Ruling::Approved, "c"));
    assert_eq!(rejected(&*store, third), ended);
    assert_eq!(store.verdicts(ticket(1)).unwrap(), [row("a"), row("b")]);
}

pub fn tickets_are_listed_in_pages(make: Make<'_>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    for n in 1..=7 {
        done(&*store, Txn::Escalate(escalate(n, "s")));
    }
    done(&*store, Txn::Decide(decide(4, false)));
    for newest_first in [true, false] {
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = store.tickets(&TicketQuery {
                state: Some(TicketState::Pending),
                after,
                newest_first,
                limit: 2,
            });
            let page: Vec<_> = page.unwrap().iter().map(|row| row.id).collect();
            let Some(last) = page.last() else { break };
            assert!(page.len() <= 2);
            after = Some(*last);
            seen.extend(page);
        }
        let mut all = [1, 2, 3, 5, 6, 7].map(ticket);
        if newest_first {
            all.reverse();
        }
        assert_eq!(seen, all);
    }
}
