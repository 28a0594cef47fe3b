//! Budgets are drawn on in the transaction that consumes, and never past their limits.

use std::sync::Arc;

use lychgate_core::State;
use lychgate_core::delegation::{Budget, Name, Rate, Spend, Window};

use super::Place;
use super::make::*;
use super::model::dump;
use super::once::race;
use crate::budget::{Account, Charge, Drawn, Over, Refund};
use crate::txn::{Dispatch, Settle, Txn};
use crate::{Rejected, Store};

type Make<'m> = &'m mut dyn FnMut() -> Box<dyn Place>;

fn ready_store(make: Make<'_>) -> (Box<dyn Place>, Box<dyn Store>) {
    let place = make();
    let store = place.open();
    ready(&*store);
    (place, store)
}

fn acts(most: u64) -> Budget {
    Budget {
        acts: Some(most),
        ..Budget::default()
    }
}

/// Act `n`, drawing.
fn drawing(n: u64, charges: &[Charge]) -> Txn {
    boxed(Dispatch {
        charges: charges.to_vec(),
        ..dispatch(n)
    })
}

fn over(account: Account, over: Over) -> Rejected {
    Rejected::OverBudget { account, over }
}

fn drawn(store: &dyn Store, account: Account) -> Drawn {
    store.account(account).unwrap().expect("an account")
}

const AGENT: Account = Account::Agent;

pub fn an_act_draws_on_every_account_or_on_none(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let link = Account::Delegation(delegation(1));
    let charges = [charge(AGENT, acts(9)), charge(link, acts(1))];
    done(&*store, drawing(1, &charges));
    let before = dump(&*store);
    // The ancestor has room, the child has none; and the other way round.
    assert_eq!(
        rejected(&*store, drawing(2, &charges)),
        over(link, Over::Acts)
    );
    let other = [charge(AGENT, acts(1)), charge(link, acts(9))];
    assert_eq!(
        rejected(&*store, drawing(2, &other)),
        over(AGENT, Over::Acts)
    );
    let twice = [charge(AGENT, acts(9)), charge(AGENT, acts(9))];
    assert!(matches!(
        rejected(&*store, drawing(2, &twice)),
        Rejected::Malformed(_)
    ));
    assert_eq!(dump(&*store), before);
    assert_eq!(
        (drawn(&*store, AGENT).acts, drawn(&*store, link).acts),
        (1, 1)
    );
    // Without a budget an act costs nothing here.
    done(&*store, drawing(2, &[]));
    assert_eq!(drawn(&*store, AGENT).acts, 1);
}

pub fn sixty_four_race_for_one_budget(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let store: Arc<dyn Store> = Arc::from(store);
    let link = |n| Account::Delegation(delegation(n));
    // Eight children of one parent, each with room for all of them.
    let results = race(&store, 64, |n| {
        drawing(
            n,
            &[charge(link(100), acts(10)), charge(link(n % 8), acts(64))],
        )
    });
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 10);
    let lost = results.iter().flat_map(|result| result.as_ref().err());
    assert!(
        lost.into_iter()
            .all(|why| *why == over(link(100), Over::Acts))
    );
    let below: u64 = (0..8)
        .filter_map(|n| store.account(link(n)).unwrap())
        .map(|drawn| drawn.acts)
        .sum();
    assert_eq!((drawn(&*store, link(100)).acts, below), (10, 10));
}

pub fn what_had_no_effect_is_given_back_and_nothing_else(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let one = charge(AGENT, acts(2));
    for n in 1..=2 {
        done(&*store, drawing(n, std::slice::from_ref(&one)));
    }
    let back = |n, to| {
        Txn::Settle(Settle {
            refund: vec![Refund {
                charge: one.clone(),
                drawn_at: at(2),
            }],
            ..settle(n, to)
        })
    };
    for to in [State::Effected, State::Indeterminate] {
        assert!(matches!(
            rejected(&*store, back(1, to)),
            Rejected::Malformed(_)
        ));
    }
    done(&*store, Txn::Settle(settle(1, State::Indeterminate)));
    assert_eq!(
        rejected(&*store, drawing(3, std::slice::from_ref(&one))),
        over(AGENT, Over::Acts)
    );
    done(&*store, back(2, State::Failed));
    // An act ends once, so what it drew comes back once.
    assert!(matches!(
        rejected(&*store, back(2, State::Failed)),
        Rejected::WrongState { .. }
    ));
    done(&*store, drawing(3, std::slice::from_ref(&one)));
    assert_eq!(
        rejected(&*store, drawing(4, &[one])),
        over(AGENT, Over::Acts)
    );
    let drawn = drawn(&*store, AGENT);
    assert_eq!((drawn.acts, drawn.high_risk), (2, 2));
    assert_eq!(drawn.spent["EUR"].to_string(), "0.2");
}

pub fn no_stretch_of_time_has_more_acts_than_the_rate(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let limits = Budget {
        rate: Some(Rate {
            acts: 5,
            window_ms: Window::try_from(1_000).unwrap(),
        }),
        ..Budget::default()
    };
    let mut times = Vec::new();
    for (n, now) in (0..9_000).step_by(37).enumerate() {
        let mut txn = dispatch(n as u64);
        txn.now = at(now);
        txn.charges = vec![charge(AGENT, limits.clone())];
        match store.commit(boxed(txn)).wait().unwrap().done() {
            Ok(_) => times.push(now),
            Err(why) => assert_eq!(why, over(AGENT, Over::Rate)),
        }
    }
    for from in &times {
        let within = times
            .iter()
            .filter(|time| (*from..from + 1_000).contains(*time));
        assert!(within.count() <= 5);
    }
    assert!(
        times.len() >= 9 * 4,
        "nearly all of the rate is there: {}",
        times.len()
    );
}

pub fn value_is_counted_exactly(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let limits = Budget {
        spend: Some(vec![Spend {
            unit: Name::try_from("EUR".to_owned()).unwrap(),
            amount: "1".parse().unwrap(),
        }]),
        ..Budget::default()
    };
    let spending = |n, unit: &str, amount: &str| {
        let mut one = charge(AGENT, limits.clone());
        one.spend = Some((unit.to_owned(), amount.parse().unwrap()));
        drawing(n, &[one])
    };
    // Ten tenths are one, which no binary fraction says.
    for n in 0..10 {
        done(&*store, spending(n, "EUR", "0.1"));
    }
    let spent = over(AGENT, Over::Spend);
    assert_eq!(
        rejected(&*store, spending(10, "EUR", "0.000000000000000001")),
        spent
    );
    // A unit that the list leaves out may not be spent; what cannot be counted is over.
    assert_eq!(rejected(&*store, spending(10, "USD", "1")), spent);
    let free = |n, amount: &str| {
        let mut one = charge(Account::Delegation(delegation(1)), Budget::default());
        one.spend = Some(("EUR".to_owned(), amount.parse().unwrap()));
        drawing(n, &[one])
    };
    done(&*store, free(10, "99999999999999999999"));
    let full = over(Account::Delegation(delegation(1)), Over::Spend);
    assert_eq!(rejected(&*store, free(11, "1")), full);
    done(&*store, spending(11, "EUR", "0"));
}

pub fn a_period_begins_anew(make: Make<'_>) {
    let (_place, store) = ready_store(make);
    let daily = |n, now| {
        let mut txn = dispatch(n);
        txn.now = at(now);
        txn.charges = vec![Charge {
            every: Some(1_000),
            ..charge(AGENT, acts(1))
        }];
        boxed(txn)
    };
    done(&*store, daily(1, 0));
    assert_eq!(rejected(&*store, daily(2, 999)), over(AGENT, Over::Acts));
    done(&*store, daily(2, 1_000));
    assert_eq!(drawn(&*store, AGENT).began, at(1_000));
    // What was drawn in the period before is not given back to this one.
    let refund = Refund {
        charge: charge(AGENT, acts(1)),
        drawn_at: at(0),
    };
    done(
        &*store,
        Txn::Settle(Settle {
            refund: vec![refund],
            now: at(1_100),
            ..settle(1, State::Failed)
        }),
    );
    assert_eq!(rejected(&*store, daily(3, 1_200)), over(AGENT, Over::Acts));
}

pub fn a_delegation_is_made_with_its_act_and_once(make: Make<'_>) {
    let (place, store) = ready_store(make);
    assert_eq!(rejected(&*store, delegate(1)), Rejected::UnknownAct);
    assert_eq!(store.delegation(delegation(1)).unwrap(), None);
    done(&*store, boxed(dispatch(1)));
    done(&*store, delegate(1));
    assert_eq!(state(&*store, 1), State::Effected);
    let row = store.delegation(delegation(1)).unwrap().unwrap();
    assert_eq!(
        (row.act, row.expires_at, &*row.body),
        (act(1), at(60_000), &b"signed"[..])
    );
    assert_eq!(rejected(&*store, delegate(1)), Rejected::SeenDelegation);
    done(&*store, boxed(dispatch(2)));
    let Txn::Delegate(mut failed) = delegate(2) else {
        panic!()
    };
    failed.settle.to = State::Failed;
    assert!(matches!(
        rejected(&*store, Txn::Delegate(failed)),
        Rejected::Malformed(_)
    ));
    done(&*store, delegate(2));
    drop(store);
    let ids = place
        .open()
        .delegations(9)
        .unwrap()
        .into_iter()
        .map(|row| row.id);
    assert_eq!(ids.collect::<Vec<_>>(), [delegation(2), delegation(1)]);
}
