//! Random histories: whatever is tried in whatever order, a store answers and ends up as [`MemoryStore`] does.

use lychgate_core::id::ActId;
use lychgate_core::{Digest, Epochs, State, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::make::*;
use super::{MemoryStore, Place};
use lychgate_core::delegation::{Budget, Name, Rate, Spend, Window};

use crate::budget::{Account, Charge, Drawn, Refund};
use crate::row::*;
use crate::txn::*;
use crate::{ActQuery, Store};

/// Everything that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    held: ProtectedState,
    acts: Vec<ActRow>,
    objects: Vec<Option<Vec<u8>>>,
    kept: Vec<ActId>,
    bare: Vec<ActRow>,
    open: Vec<ActRow>,
    counts: Counts,
    tickets: Vec<TicketRow>,
    verdicts: Vec<Vec<VerdictRow>>,
    applied: Option<AppliedRow>,
    revoked: Vec<Revocation>,
    consents: Vec<ConsentRow>,
    live: Vec<ConsentRow>,
    record: Vec<RecordRow>,
    accounts: Vec<Option<Drawn>>,
    delegations: Vec<DelegationRow>,
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
    let tickets = TicketQuery::newest(None, usize::MAX);
    let tickets = store.tickets(&tickets).unwrap();
    Dump {
        held: store.protected_state().unwrap(),
        acts: bare
            .iter()
            .map(|row| store.act(row.id).unwrap().unwrap())
            .collect(),
        objects: bare
            .iter()
            .map(|row| store.said(row.id).unwrap().map(|said| said.objects))
            .collect(),
        kept: store.kept_answers(at(u64::from(u32::MAX))).unwrap(),
        bare,
        open: store.open_acts().unwrap(),
        counts: store.counts().unwrap(),
        verdicts: tickets
            .iter()
            .map(|row| store.verdicts(row.id).unwrap())
            .collect(),
        tickets,
        applied: store.applied().unwrap(),
        revoked: store.revocations().unwrap(),
        consents: store.consents(None, usize::MAX).unwrap(),
        live: store.consents(Some(at(20)), usize::MAX).unwrap(),
        record: store.record(0, usize::MAX).unwrap(),
        accounts: ACCOUNTS
            .map(|account| store.account(account()).unwrap())
            .to_vec(),
        delegations: store.delegations(usize::MAX).unwrap(),
    }
}

pub fn any_history_is_as_the_model_says(make: &mut dyn FnMut() -> Box<dyn Place>) {
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let history = prop::collection::vec((step(), any::<bool>()), 1..160);
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

/// The accounts that histories draw on.
const ACCOUNTS: [fn() -> Account; 3] = [
    || Account::Agent,
    || Account::Delegation(delegation(1)),
    || Account::Delegation(delegation(2)),
];

type Expected = (crate::Pending, Result<crate::Committed, crate::StoreFault>);

fn compare(waiting: &mut Vec<Expected>) -> Result<(), TestCaseError> {
    for (pending, expected) in waiting.drain(..) {
        prop_assert_eq!(pending.wait(), expected);
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Issue,
    Consume,
    Dispatch,
    Settle,
    Delegate,
    Refuse,
    RefuseExisting,
    Escalate,
    Join,
    Decide,
    Lapse,
    Forget,
    Deliver,
    Contradict,
    Apply,
    Revoke,
    Rotate,
    Consent,
    WithdrawConsent,
    Note,
}

/// How often each kind comes, of a hundred.
const WEIGHTS: [(u32, Kind); 20] = [
    (9, Kind::Issue),
    (9, Kind::Consume),
    (16, Kind::Dispatch),
    (18, Kind::Settle),
    (3, Kind::Refuse),
    (4, Kind::RefuseExisting),
    (8, Kind::Escalate),
    (3, Kind::Join),
    (7, Kind::Decide),
    (3, Kind::Lapse),
    (2, Kind::Delegate),
    (2, Kind::Forget),
    (4, Kind::Deliver),
    (1, Kind::Contradict),
    (1, Kind::Apply),
    (2, Kind::Revoke),
    (1, Kind::Rotate),
    (2, Kind::Consent),
    (2, Kind::WithdrawConsent),
    (3, Kind::Note),
];

/// Histories per run.
const CASES: u32 = 64;

/// One step in small numbers, so that histories collide. Where it is `apt` it mostly picks what can succeed at that
/// point; else whatever the numbers say.
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
    apt: bool,
    late: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = proptest::sample::select(
        WEIGHTS
            .iter()
            .flat_map(|(weight, kind)| std::iter::repeat_n(*kind, *weight as usize))
            .collect::<Vec<_>>(),
    );
    let what = (
        kind,
        0..12_u64,
        0..6_u64,
        0..8_u64,
        select(&[1, 1, 1, 1, 1, 1, 1, 2_u64][..]),
    );
    let states = select(&State::ALL[..]);
    let how = (
        0..3_u8,
        states,
        any::<bool>(),
        prop::bool::weighted(0.85),
        0..8_u64,
    );
    (what, how).prop_map(
        |((kind, act, ticket, nonce, holder), (subject, to, flag, apt, late))| Step {
            kind,
            act,
            ticket,
            nonce,
            holder,
            subject,
            to,
            flag,
            apt,
            late,
        },
    )
}

impl Step {
    fn txn(&self, n: u64, model: &MemoryStore) -> Txn {
        let world = dump(model);
        let now = at(n / 2 + self.late);
        let receipts = vec![entry(&format!("{n}")); usize::from(self.flag)];
        let subject = format!("subject {}", self.subject);
        match self.kind {
            Kind::Issue => Txn::Issue(Issue {
                receipts,
                now,
                ..self.issue(n, &world)
            }),
            Kind::Consume => boxed(self.consume(&world, now, receipts)),
            Kind::Dispatch => boxed(self.dispatch(n, &world, now, receipts)),
            Kind::Settle => Txn::Settle(self.settle(&world, now, receipts)),
            Kind::Delegate => Txn::Delegate(Box::new(Delegate {
                settle: self.settle(&world, now, receipts),
                new: NewDelegation {
                    id: delegation(if self.apt { 100 + n } else { self.act }),
                    expires_at: at(n),
                    body: b"signed".to_vec(),
                },
            })),
            Kind::Refuse => Txn::Refuse(Refuse {
                now,
                receipts,
                ..refuse(self.unused(&world), self.to)
            }),
            Kind::RefuseExisting => {
                let whose = Whose::Existing(self.waiting(&world));
                let to = if self.apt { State::Withdrawn } else { self.to };
                Txn::Refuse(Refuse {
                    whose,
                    answered_by: self.flag.then(|| act(self.act)),
                    now,
                    receipts,
                    ..refuse(0, to)
                })
            }
            Kind::Escalate | Kind::Join => self.escalate(n, &world, now, receipts),
            Kind::Decide => {
                let ticket = self.ticket_in(&world, TicketState::Pending).id;
                Txn::Decide(Decide {
                    ticket,
                    now,
                    receipts,
                    ..ruled(
                        0,
                        self.ruling(),
                        ['a', 'b'][usize::from(self.flag)].encode_utf8(&mut [0; 4]),
                    )
                })
            }
            Kind::Lapse => {
                let to = if self.apt { State::Expired } else { self.to };
                let live = self.ticket_in(&world, TicketState::Pending).id;
                Txn::Lapse(Lapse {
                    tickets: vec![live; usize::from(self.flag)],
                    withdrawn: vec![live; usize::from(self.act > 8)],
                    acts: vec![Lapsed {
                        act: self.waiting(&world),
                        to,
                        code: None,
                    }],
                    receipts,
                    ..Lapse::at(now)
                })
            }
            Kind::Forget => {
                let forget_answers = vec![self.undelivered(&world)];
                Txn::Lapse(Lapse {
                    forget_answers,
                    receipts,
                    ..Lapse::at(now)
                })
            }
            Kind::Deliver => Txn::Deliver(Deliver {
                act: self.undelivered(&world),
                now,
                receipts,
            }),
            Kind::Contradict => {
                let verdicts = [State::ReconciledEffect, State::ReconciledNoEffect];
                let row = self.row(&world, |row| verdicts.contains(&row.state));
                Txn::Contradict(Contradict {
                    act: row.map_or(act(self.act), |row| row.id),
                    now,
                    receipts,
                })
            }
            Kind::Apply => {
                let expected = world.held.policy_digest.filter(|_| self.apt);
                Txn::Apply(Apply {
                    purposes_moved: self.flag,
                    now,
                    ..apply(expected, &subject)
                })
            }
            Kind::Revoke => {
                let revoked = "server:fs";
                let (add, remove): (&[&str], &[&str]) = if self.act == 0 {
                    (&[revoked], &[])
                } else {
                    (&["server:b"], &[revoked])
                };
                Txn::Revoke(Revoke {
                    now,
                    receipts,
                    ..revoke(add, remove)
                })
            }
            Kind::Rotate => Txn::Rotate(Rotate { now, receipts }),
            Kind::Consent => Txn::Consent(Consent {
                expires_at: at(self.nonce * 8),
                now,
                receipts,
                ..consent(self.ticket)
            }),
            Kind::WithdrawConsent => Txn::WithdrawConsent(WithdrawConsent {
                now,
                receipts,
                ..withdraw_consent(&[self.ticket, self.holder][..1 + usize::from(!self.apt)])
            }),
            Kind::Note => Txn::Note(Note { now, receipts }),
        }
    }

    fn ruling(&self) -> Ruling {
        match self.act {
            0 => Ruling::Counted,
            1 | 2 => Ruling::Denied,
            _ => Ruling::Approved,
        }
    }

    fn dispatch(&self, n: u64, world: &Dump, now: Timestamp, receipts: Vec<Entry>) -> Dispatch {
        let issue = self.issue(n, world);
        let mut txn = self.consume(world, now, receipts);
        (txn.act, txn.authority) = (issue.act.id, issue.grant.authority);
        if self.apt {
            (txn.holder, txn.nonce) = (issue.grant.holder, issue.grant.nonce);
        }
        let row = world.acts.iter().find(|row| row.id == issue.act.id);
        txn.approval = self.approval(world, row.and_then(|row| row.ticket));
        Dispatch {
            issue: Some(issue),
            ..txn
        }
    }

    fn settle(&self, world: &Dump, now: Timestamp, receipts: Vec<Entry>) -> Settle {
        let from = [State::Dispatched, State::Indeterminate];
        let row = self.row(world, |row| from.contains(&row.state));
        let (act, state) = row.map_or((act(self.act), self.to), |row| (row.id, row.state));
        let next = State::ALL
            .into_iter()
            .cycle()
            .skip(usize::from(self.to.number()))
            .take(12);
        let to = next
            .filter(|next| self.apt && state.may_become(*next))
            .last();
        let answer = (self.ticket > 0).then(|| b"answer".to_vec());
        let to = to.unwrap_or(self.to);
        let undelivered = self.flag;
        let certainly_not = [State::Failed, State::InputRequired].contains(&to);
        let back = |charge| Refund {
            charge,
            drawn_at: now,
        };
        let refund = match certainly_not || !self.apt {
            true => self.charges().into_iter().map(back).collect(),
            false => Vec::new(),
        };
        Settle {
            act,
            answer,
            undelivered,
            refund,
            now,
            receipts,
            ..settle(0, to)
        }
    }

    fn escalate(&self, n: u64, world: &Dump, now: Timestamp, receipts: Vec<Entry>) -> Txn {
        let awaited = if matches!(self.kind, Kind::Join) {
            let row = self.ticket_in(world, TicketState::Pending);
            Awaited::Pending(Approval {
                ticket: row.id,
                subject: self.subject_of(&row),
            })
        } else {
            let id = ticket(if self.apt { 100 + n } else { self.ticket });
            let expires_at = at(n / 2 + 4 + self.nonce * 4);
            let subject = digest(&format!("subject {}", self.subject));
            Awaited::New(NewTicket {
                id,
                subject,
                summary: b"listed".to_vec(),
                display: b"shown".to_vec(),
                expires_at,
            })
        };
        let act = new_act(self.unused(world));
        Txn::Escalate(Escalate {
            act,
            ticket: awaited,
            now,
            receipts,
        })
    }

    fn issue(&self, n: u64, world: &Dump) -> Issue {
        // Now and then an act that waits, and whose approval may have come.
        let waits = self.row(world, |row| row.state == State::Escalated);
        let mut issue = issue(self.unused(world));
        if let Some(row) = waits.filter(|_| self.flag) {
            issue.act.id = row.id;
        }
        issue.grant.holder = holder(self.holder);
        issue.grant.nonce.count = if self.apt { 100 + n } else { self.nonce };
        issue.grant.nonce.holder = if self.apt {
            issue.grant.holder
        } else {
            holder(1)
        };
        issue.grant.epochs = self.epochs(&world.held);
        issue.grant.policy_digest = world.held.policy_digest.unwrap();
        issue.grant.expires_at = at(n / 2 + 6 + self.nonce * 4);
        issue
    }

    fn consume(&self, world: &Dump, now: Timestamp, receipts: Vec<Entry>) -> Dispatch {
        let row = self.row(world, |row| row.state == State::Allowed);
        let mut txn = consume(row.map_or(self.act, |_| 0));
        if let Some((row, grant)) = row.and_then(|row| Some((row, row.grant?))) {
            (txn.act, txn.authority) = (row.id, grant.authority);
            (txn.holder, txn.nonce) = (grant.holder, grant.nonce);
        } else {
            (txn.holder, txn.nonce.count) = (holder(self.holder), self.nonce);
        }
        txn.expected_epochs = self.epochs(&world.held);
        txn.policy_digest = world.held.policy_digest.unwrap();
        txn.approval = self.approval(world, row.and_then(|row| row.ticket));
        txn.charges = self.charges();
        Dispatch {
            now,
            receipts,
            ..txn
        }
    }

    /// The act's own ticket, or sometimes one that is approved.
    fn approval(&self, world: &Dump, own: Option<lychgate_core::id::TicketId>) -> Option<Approval> {
        let own = world
            .tickets
            .iter()
            .find(|row| Some(row.id) == own)
            .filter(|_| self.apt);
        let any = || {
            self.flag
                .then(|| self.ticket_in(world, TicketState::Approved))
        };
        let row = own.cloned().or_else(any)?;
        Some(Approval {
            ticket: row.id,
            subject: self.subject_of(&row),
        })
    }

    /// What the step draws: on none, one, two or three accounts, each with limits of its own.
    fn charges(&self) -> Vec<Charge> {
        let budgets = [
            Budget {
                acts: Some(9),
                ..Budget::default()
            },
            Budget {
                high_risk_acts: Some(5),
                rate: Some(Rate {
                    acts: 3,
                    window_ms: Window::try_from(1_000).unwrap(),
                }),
                ..Budget::default()
            },
            Budget {
                spend: Some(vec![Spend {
                    unit: Name::try_from("EUR".to_owned()).unwrap(),
                    amount: "0.5".parse().unwrap(),
                }]),
                ..Budget::default()
            },
        ];
        let charge = |(account, limits): (fn() -> Account, Budget)| Charge {
            every: (account() == Account::Agent).then_some(20),
            high_risk: self.flag,
            ..charge(account(), limits)
        };
        let all = ACCOUNTS.into_iter().zip(budgets).map(charge);
        all.take(usize::from(self.subject) + usize::from(self.flag))
            .collect()
    }

    fn epochs(&self, held: &ProtectedState) -> Epochs {
        if self.apt { held.epochs } else { EPOCHS }
    }

    fn subject_of(&self, row: &TicketRow) -> Digest {
        if self.apt {
            row.subject
        } else {
            digest(&format!("subject {}", self.subject))
        }
    }

    fn unused(&self, world: &Dump) -> u64 {
        if self.apt {
            100 + world.acts.len() as u64
        } else {
            self.act
        }
    }

    fn waiting(&self, world: &Dump) -> ActId {
        let waits = [State::Allowed, State::Escalated];
        self.row(world, |row| waits.contains(&row.state))
            .map_or(act(self.act), |row| row.id)
    }

    fn undelivered(&self, world: &Dump) -> ActId {
        self.row(world, |row| row.undelivered)
            .map_or(act(self.act), |row| row.id)
    }

    fn row<'w>(&self, world: &'w Dump, wanted: impl Fn(&ActRow) -> bool) -> Option<&'w ActRow> {
        let wanted: Vec<_> = world
            .acts
            .iter()
            .filter(|row| !self.apt || wanted(row))
            .collect();
        wanted.get(self.act as usize % wanted.len().max(1)).copied()
    }

    fn ticket_in(&self, world: &Dump, state: TicketState) -> TicketRow {
        let wanted = |row: &&TicketRow| !self.apt || row.state == state;
        let wanted: Vec<_> = world.tickets.iter().filter(wanted).collect();
        let found = wanted
            .get(self.ticket as usize % wanted.len().max(1))
            .copied();
        found.cloned().unwrap_or_else(|| TicketRow {
            id: ticket(self.ticket),
            state,
            subject: digest("nothing"),
            act: act(self.act),
            created_at: at(0),
            expires_at: at(0),
            decided_at: None,
            approver: None,
            consumed_by: None,
            summary: None,
            display: None,
            display_bytes: 0,
        })
    }
}
