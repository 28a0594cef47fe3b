//! Random histories of calls, answers, cancellations, verdicts, restarts and changes of the rules, against a simple model:
//! never two effects for one authority, no equal call's effect before a lost answer is reconciled, none that asks without
//! a person's yes, and every dispatched act in a state that tells the truth.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod check;
#[path = "../kit/mod.rs"]
mod kit;
mod steps;

use std::time::Duration;

use kit::{ANSWER, Asked, Kit, MAIL};
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::{Code, State};
use lychgate_gate::{Begun, End, Late, NotSent, Passed, Unknown};
use lychgate_store::Store;
use proptest::prelude::*;
use proptest::sample::Index;
use steps::{Step, step};

/// Which call: two equal ones have one number.
type Call = u8;

/// Where the model has an act that an equal call must be held against.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    Indeterminate,
    /// Since when.
    Undelivered(u64),
}

struct Running {
    kit: Option<Kit>,
    flying: Vec<(Call, ActId, Begun)>,
    lost: Vec<(Call, ActId, Option<Late>)>,
    open: Vec<(Call, ActId, Open)>,
    waiting: Vec<Asked>,
    approvals: usize,
    not_sent: usize,
    rules: usize,
}

const MAILS: Call = 2;

impl Running {
    fn kit(&self) -> &Kit {
        self.kit.as_ref().unwrap()
    }

    fn now(&self) -> u64 {
        self.kit().gate.now().as_millis()
    }

    /// What the model says to an equal call.
    fn expected(&self, call: Call) -> Expected {
        let equal = self.open.iter().filter(|(other, ..)| *other == call);
        let mut recorded = false;
        for (_, _, open) in equal {
            match open {
                Open::Undelivered(since) if self.now() - since < 600_000 => recorded = true,
                Open::Indeterminate | Open::Undelivered(_) => return Expected::Refused,
            }
        }
        if recorded {
            Expected::Recorded
        } else {
            Expected::Runs
        }
    }

    fn note(&self, call: Call) -> (&'static str, String) {
        if call == MAILS {
            ("send_mail", MAIL.to_owned())
        } else {
            (
                "write_note",
                self.kit().note("work", &format!("n{call}"), "x"),
            )
        }
    }

    async fn write(&mut self, call: Call) {
        let (function, arguments) = self.note(call);
        let expected = self.expected(call);
        let passed = self
            .kit()
            .pass(&self.kit().session(), function, &arguments)
            .await;
        self.came(call, passed, expected);
    }

    /// A call came through the doors, or did not; compares with what the model says.
    fn came(&mut self, call: Call, passed: Passed, expected: Expected) {
        match passed {
            Passed::Dispatched { dispatched, .. } => {
                assert_eq!(expected, Expected::Runs, "an effect that the model forbids");
                let begun = self.kit().effects.begin(dispatched).unwrap();
                self.flying.push((call, begun.act(), begun));
            }
            Passed::Recorded { act, .. } => {
                assert_eq!(expected, Expected::Recorded);
                let open = self.open.iter().find(|(_, other, _)| *other == act);
                assert!(matches!(open, Some((_, _, Open::Undelivered(_)))));
                self.deliver(act);
            }
            Passed::Denied(denied) if denied.code == Code::TwinUnresolved => {
                assert_eq!(expected, Expected::Refused);
            }
            Passed::Denied(denied) => {
                let persons = [
                    Code::ApprovalDenied,
                    Code::PolicyEpochMismatch,
                    Code::StaleAuthority,
                    Code::ApprovalExpired,
                ];
                assert!(
                    call == MAILS && persons.contains(&denied.code),
                    "{denied:?}"
                );
            }
        }
    }

    fn deliver(&mut self, act: ActId) {
        self.kit().gate.delivered(act);
        self.open
            .retain(|(_, other, open)| *other != act || *open == Open::Indeterminate);
    }

    async fn mail(&mut self) {
        let expected = self.expected(MAILS);
        let session = self.kit().session();
        let held = self.kit().held(&session, "send_mail", MAIL);
        let act = held.act().candidate_act_id;
        let (gone, caller) = lychgate_gate::CallerGone::new();
        let (tell, told) = tokio::sync::oneshot::channel::<TicketId>();
        let tell = std::sync::Mutex::new(Some(tell));
        let kit = self.kit();
        let (gate, sink, connected) = (kit.gate.clone(), kit.sink(), kit.connected("send_mail"));
        let mut task = tokio::spawn(async move {
            let waiting = |ticket| {
                if let Some(tell) = tell.lock().unwrap().take() {
                    tell.send(ticket).unwrap();
                }
            };
            gate.pass(held, &sink, &caller, &|| connected.clone(), &waiting)
                .await
        });
        tokio::select! {
            Ok(ticket) = told => {
                assert_eq!(expected, Expected::Runs, "a person is asked in vain");
                self.waiting.push(Asked { act, ticket, gone, task });
            }
            passed = &mut task => {
                self.came(MAILS, passed.unwrap(), expected);
            }
        }
    }

    async fn settle(&mut self, at: &Index, end: End, delivered: bool) {
        if self.flying.is_empty() {
            return;
        }
        let (call, act, begun) = self.flying.remove(at.index(self.flying.len()));
        let settled = self.kit().gate.settle(begun.end(end), Some(ANSWER)).await;
        assert!(settled.recorded);
        assert_eq!(settled.state, end.state());
        self.settled(call, act, settled.state, settled.late);
        if delivered {
            self.deliver(act);
        }
    }

    fn settled(&mut self, call: Call, act: ActId, state: State, late: Option<Late>) {
        self.open.retain(|(_, other, _)| *other != act);
        match state {
            State::Indeterminate => {
                self.lost.push((call, act, late));
                self.open.push((call, act, Open::Indeterminate));
            }
            State::Effected => self.open.push((call, act, Open::Undelivered(self.now()))),
            _ => {}
        }
    }

    async fn late_answer(&mut self, at: &Index) {
        if self.lost.is_empty() {
            return;
        }
        let at = at.index(self.lost.len());
        let (call, act, late) = self.lost.remove(at);
        let Some(late) = late else { return };
        let settled = self
            .kit()
            .gate
            .settle(late.answered(End::Effected), Some(ANSWER))
            .await;
        let open = self.open.contains(&(call, act, Open::Indeterminate));
        assert!(settled.recorded);
        if open {
            self.settled(call, act, State::Effected, None);
            return;
        }
        // A person was faster: the verdict stands, and what came says whether it is contradicted.
        let row = self.kit().store.act(act).unwrap().unwrap();
        assert_eq!(
            settled.state, row.state,
            "a settled act is not settled again"
        );
        let denied_it = row.state == State::ReconciledNoEffect;
        assert_eq!(row.contradicted, denied_it);
    }

    async fn rule(&mut self, at: &Index, approve: bool) {
        if self.waiting.is_empty() {
            return;
        }
        let asked = self.waiting.remove(at.index(self.waiting.len()));
        let ticket = asked.ticket;
        if approve {
            self.approvals += 1;
            self.kit().approve(ticket).await;
        } else {
            self.kit().deny(ticket).await;
        }
        let expected = self.expected(MAILS);
        let act = asked.act;
        let passed = asked.done().await;
        let ran = matches!(passed, Passed::Dispatched { .. });
        self.came(MAILS, passed, expected);
        let row = self.kit().ticket(ticket);
        assert_eq!(row.consumed_by, ran.then_some(act));
        assert!(approve || !ran);
    }

    async fn reconcile(&mut self, at: &Index, effect: bool) {
        if self.open.is_empty() {
            return;
        }
        let (_, act, open) = self.open[at.index(self.open.len())];
        let done = self.kit().reconcile(act, effect).await;
        match (open, effect) {
            (Open::Undelivered(_), false) => assert!(done.is_err(), "an effect is known"),
            _ => {
                done.unwrap();
                self.open.retain(|(_, other, _)| *other != act);
            }
        }
    }

    async fn restart(&mut self) {
        for asked in self.waiting.drain(..) {
            asked.abort();
        }
        // Deliveries are noted a moment later; a crash in between is another test's.
        let open = self.open.len() + self.flying.len();
        self.kit().all_noted(open).await;
        let kit = self.kit.take().unwrap().restart().await;
        self.kit = Some(kit);
        for (call, act, begun) in std::mem::take(&mut self.flying) {
            drop(begun);
            self.open.push((call, act, Open::Indeterminate));
        }
        for (_, _, late) in &mut self.lost {
            *late = None;
        }
    }

    /// Whoever waits for a ticket that has run out is told so.
    async fn clock(&mut self, seconds: u64) {
        self.kit().clock.advance(Duration::from_secs(seconds));
        let now = self.kit().gate.now();
        let (over, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|asked| self.kit().ticket(asked.ticket).expires_at <= now);
        self.waiting = waiting;
        for asked in over {
            let told = kit::denied(asked.done().await);
            assert_eq!(told.code, Code::ApprovalExpired);
        }
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Write(which) => self.write(u8::from(*which)).await,
            Step::Mail => self.mail().await,
            Step::NotSent(which) => {
                let call = u8::from(*which);
                let (function, arguments) = self.note(call);
                let expected = self.expected(call);
                let passed = self
                    .kit()
                    .pass(&self.kit().session(), function, &arguments)
                    .await;
                if let Passed::Dispatched { dispatched, .. } = passed {
                    assert_eq!(expected, Expected::Runs);
                    let not_sent: NotSent = dispatched.permit.give_up();
                    let settled = self.kit().gate.settle(not_sent.into(), None).await;
                    assert_eq!(settled.state, State::Failed);
                    self.not_sent += 1;
                } else {
                    self.came(call, passed, expected);
                }
            }
            Step::Answer(at) => self.settle(at, End::Effected, true).await,
            Step::AnswerUndelivered(at) => self.settle(at, End::Effected, false).await,
            Step::NoEffect(at) => self.settle(at, End::NoEffect, true).await,
            Step::Lose(at) => {
                self.settle(at, End::Unknown(Unknown::AnswerLost), true)
                    .await
            }
            Step::LateAnswer(at) => self.late_answer(at).await,
            Step::Deliver(at) => {
                if !self.open.is_empty() {
                    let act = self.open[at.index(self.open.len())].1;
                    self.deliver(act);
                }
            }
            Step::Cancel(at) => {
                if !self.waiting.is_empty() {
                    let asked = self.waiting.remove(at.index(self.waiting.len()));
                    let told = asked.give_up().await;
                    assert_eq!(told.state, State::Withdrawn);
                }
            }
            Step::Approve(at) => self.rule(at, true).await,
            Step::Deny(at) => self.rule(at, false).await,
            Step::Reconcile(at, effect) => self.reconcile(at, *effect).await,
            Step::Restart => self.restart().await,
            Step::Clock(seconds) => self.clock(*seconds).await,
            Step::Apply => {
                self.rules += 1;
                let declared = format!("declared = \"Bills {}\"", self.rules);
                let edit = |text: String| text.replace("declared = \"Billing\"", &declared);
                self.kit().apply(edit).await.unwrap();
            }
            Step::Sweep => self.kit().gate.sweep().await.unwrap(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Runs,
    Recorded,
    Refused,
}

async fn history(steps: Vec<Step>) {
    let mut running = Running {
        kit: Some(Kit::new().await),
        flying: Vec::new(),
        lost: Vec::new(),
        open: Vec::new(),
        waiting: Vec::new(),
        approvals: 0,
        not_sent: 0,
        rules: 0,
    };
    for step in &steps {
        running.take(step).await;
        running.check();
    }
    // The end of every history: nothing is left in between.
    running.restart().await;
    running.check();
    let counts = running.kit().store.counts().unwrap();
    for state in [State::Allowed, State::Escalated, State::Dispatched] {
        assert_eq!(counts.of(state), 0, "{}", state.name());
    }
}

#[test]
fn any_history_is_as_the_model_says() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let config = ProptestConfig {
        cases: 24,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&prop::collection::vec(step(), 1..60), |steps| {
            runtime.block_on(history(steps));
            Ok(())
        })
        .unwrap();
}
