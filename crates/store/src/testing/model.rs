//! Random histories: whatever is tried in whatever order, a store answers and ends up as [`MemoryStore`] does.

use lychgate_core::{Epochs, State, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::make::*;
use super::{MemoryStore, Place};
use crate::row::*;
use crate::txn::*;
use crate::{ActQuery, Store};

/// Everything that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    held: ProtectedState,
    acts: Vec<ActRow>,
    bare: Vec<ActRow>,
    open: Vec<ActRow>,
    counts: Counts,
    tickets: Vec<TicketRow>,
    applied: Option<AppliedRow>,
    revoked: Vec<Revocation>,
    record: Vec<RecordRow>,
}

/// Reads everything.
pub fn dump(store: &dyn Store) -> Dump {
    let query = ActQuery {
        state: None,
        after: None,
        newest_first: false,
        limit: usize::MAX,
    };
    let bare = store.acts(&query).unwrap();
    Dump {
        held: store.protected_state().unwrap(),
        acts: bare
            .iter()
            .map(|row| store.act(row.id).unwrap().unwrap())
            .collect(),
        bare,
        open: store.open_acts().unwrap(),
        counts: store.counts().unwrap(),
        tickets: store.tickets(None, usize::MAX).unwrap(),
        applied: store.applied().unwrap(),
        revoked: store.revocations().unwrap(),
        record: store.record(0, usize::MAX).unwrap(),
    }
}

pub fn any_history_is_as_the_model_says(make: &mut dyn FnMut() -> Box<dyn Place>) {
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let history = prop::collection::vec((step(), any::<bool>()), 1..60);
    let make = std::cell::RefCell::new(make);
    TestRunner::new(config)
        .run(&history, |steps| {
            let place = (make.borrow_mut())();
            let (store, model) = (place.open(), MemoryStore::new());
            ready(&*store);
            ready(&model);
            let mut waiting = Vec::new();
            for (at, (step, waits)) in steps.iter().enumerate() {
                let txn = step.txn(at as u64, &model);
                let expected = model.commit(txn.clone()).wait();
                waiting.push((store.commit(txn), expected));
                // Now and then several are under way at once and share a group.
                if *waits {
                    compare(&mut waiting)?;
                }
            }
            compare(&mut waiting)?;
            prop_assert_eq!(dump(&*store), dump(&model));
            drop(store);
            prop_assert_eq!(dump(&*place.open()), dump(&model));
            Ok(())
        })
        .unwrap();
}

type Expected = (crate::Pending, Result<crate::Committed, crate::StoreFault>);

fn compare(waiting: &mut Vec<Expected>) -> Result<(), TestCaseError> {
    for (pending, expected) in waiting.drain(..) {
        prop_assert_eq!(pending.wait(), expected);
    }
    Ok(())
}

/// A transaction in small numbers, so that histories collide.
#[derive(Clone, Debug)]
struct Step {
    kind: Kind,
    act: u64,
    ticket: u64,
    nonce: u64,
    holder: u64,
    subject: u8,
    to: State,
    flag: bool,
    fresh: bool,
    time: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Issue,
    Consume,
    Dispatch,
    Settle,
    Refuse,
    RefuseExisting,
    Escalate,
    Join,
    Decide,
    Lapse,
    Forget,
    Deliver,
    Apply,
    Revoke,
    Rotate,
    Note,
}

const KINDS: [Kind; 28] = [
    Kind::Issue,
    Kind::Issue,
    Kind::Issue,
    Kind::Consume,
    Kind::Consume,
    Kind::Consume,
    Kind::Dispatch,
    Kind::Dispatch,
    Kind::Dispatch,
    Kind::Dispatch,
    Kind::Settle,
    Kind::Settle,
    Kind::Settle,
    Kind::Settle,
    Kind::Refuse,
    Kind::RefuseExisting,
    Kind::Escalate,
    Kind::Escalate,
    Kind::Join,
    Kind::Decide,
    Kind::Decide,
    Kind::Lapse,
    Kind::Forget,
    Kind::Deliver,
    Kind::Apply,
    Kind::Revoke,
    Kind::Rotate,
    Kind::Note,
];

fn step() -> impl Strategy<Value = Step> {
    let what = (
        select(&KINDS[..]),
        0..6_u64,
        0..4_u64,
        0..8_u64,
        select(&[1, 1, 1, 1, 2_u64][..]),
    );
    let how = (
        0..2_u8,
        select(&State::ALL[..]),
        any::<bool>(),
        prop::bool::weighted(0.9),
        0..40_u64,
    );
    (what, how).prop_map(
        |((kind, act, ticket, nonce, holder), (subject, to, flag, fresh, time))| Step {
            kind,
            act,
            ticket,
            nonce,
            holder,
            subject,
            to,
            flag,
            fresh,
            time,
        },
    )
}

impl Step {
    fn txn(&self, n: u64, model: &MemoryStore) -> Txn {
        let held = model.protected_state().unwrap();
        let now = at(self.time);
        let receipts = vec![entry(&format!("{n}")); usize::from(self.flag)];
        let subject = format!("subject {}", self.subject);
        let ticket_id = ticket(self.ticket);
        match self.kind {
            Kind::Issue => Txn::Issue(Issue {
                receipts,
                now,
                ..self.issue(&held)
            }),
            Kind::Consume => boxed(self.consume(&held, model, now, receipts)),
            Kind::Dispatch => {
                let issue = Some(self.issue(&held));
                boxed(Dispatch {
                    issue,
                    ..self.consume(&held, model, now, receipts)
                })
            }
            Kind::Settle => {
                let txn = settle(self.act, self.to);
                Txn::Settle(Settle {
                    undelivered: self.flag,
                    now,
                    receipts,
                    ..txn
                })
            }
            Kind::Refuse => Txn::Refuse(Refuse {
                now,
                receipts,
                ..refuse(self.act, self.to)
            }),
            Kind::RefuseExisting => Txn::Refuse(Refuse {
                now,
                receipts,
                ..refuse_existing(self.act, self.to)
            }),
            Kind::Escalate => {
                let expires_at = at(20 + self.time);
                let display = b"shown".to_vec();
                let new = NewTicket {
                    id: ticket_id,
                    subject: digest(&subject),
                    display,
                    expires_at,
                };
                let act = new_act(self.act);
                Txn::Escalate(Escalate {
                    act,
                    ticket: Awaited::New(new),
                    now,
                    receipts,
                })
            }
            Kind::Join => {
                let awaited = Awaited::Pending(approval(self.ticket, &subject));
                let act = new_act(self.act);
                Txn::Escalate(Escalate {
                    act,
                    ticket: awaited,
                    now,
                    receipts,
                })
            }
            Kind::Decide => Txn::Decide(Decide {
                now,
                receipts,
                ..decide(self.ticket, self.flag)
            }),
            Kind::Lapse => Txn::Lapse(Lapse {
                tickets: vec![ticket_id; usize::from(self.flag)],
                acts: vec![Lapsed {
                    act: act(self.act),
                    to: self.to,
                    code: None,
                }],
                receipts,
                ..Lapse::at(now)
            }),
            Kind::Forget => {
                let forget_answers = vec![act(self.act)];
                Txn::Lapse(Lapse {
                    forget_answers,
                    receipts,
                    ..Lapse::at(now)
                })
            }
            Kind::Deliver => Txn::Deliver(Deliver {
                act: act(self.act),
                now,
                receipts,
            }),
            Kind::Apply => {
                let expected = held.policy_digest.filter(|_| self.fresh);
                Txn::Apply(Apply {
                    purposes_moved: self.flag,
                    now,
                    ..apply(expected, &subject)
                })
            }
            Kind::Revoke => {
                let (add, remove): (&[&str], &[&str]) = if self.flag {
                    (&[&subject], &[])
                } else {
                    (&[], &[&subject])
                };
                Txn::Revoke(Revoke {
                    now,
                    receipts,
                    ..revoke(add, remove)
                })
            }
            Kind::Rotate => Txn::Rotate(Rotate { now, receipts }),
            Kind::Note => Txn::Note(Note { now, receipts }),
        }
    }

    fn issue(&self, held: &ProtectedState) -> Issue {
        let mut issue = issue(self.act);
        issue.grant.holder = holder(self.holder);
        issue.grant.nonce.holder = holder(1);
        issue.grant.nonce.count = self.nonce;
        issue.grant.epochs = self.epochs(held);
        issue.grant.policy_digest = held.policy_digest.unwrap();
        issue.grant.expires_at = at(10 + self.time);
        issue
    }

    fn consume(
        &self,
        held: &ProtectedState,
        model: &MemoryStore,
        now: Timestamp,
        receipts: Vec<Entry>,
    ) -> Dispatch {
        let mut txn = consume(self.act);
        // Mostly what was issued, or what is being issued.
        let row = model.act(act(self.act)).unwrap();
        let issued = row.and_then(|row| row.grant).map(|grant| grant.nonce.count);
        txn.nonce.count = issued.filter(|_| self.fresh).unwrap_or(self.nonce);
        txn.holder = holder(self.holder);
        txn.expected_epochs = self.epochs(held);
        txn.policy_digest = held.policy_digest.unwrap();
        txn.revocation_subjects = vec![format!("subject {}", self.subject)];
        let subject = format!("subject {}", self.subject);
        txn.approval = self.flag.then(|| approval(self.ticket, &subject));
        Dispatch {
            now,
            receipts,
            ..txn
        }
    }

    fn epochs(&self, held: &ProtectedState) -> Epochs {
        if self.fresh { held.epochs } else { EPOCHS }
    }
}
