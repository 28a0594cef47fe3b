//! Acts in doubt are looked up at their destination: when, what is believed, and what a repeated call gets meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kit;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::{Kit, denied, dispatched};
use lychgate_core::id::ActId;
use lychgate_core::receipt::{Receipt, ReceiptKind};
use lychgate_core::{Code, State};
use lychgate_gate::{Asked, Destination, End, Gate, Late, Question, Reconciler, Unknown};
use lychgate_store::Store;

const LOST: End = End::Unknown(Unknown::AnswerLost);
const HAS: &str = r#"{"structuredContent":{"text":"x"}}"#;
const HAS_NOT: &str = r#"{"structuredContent":{"text":"none"}}"#;

/// Says what it is told to, and remembers what it was asked.
#[derive(Default)]
struct Says {
    answer: Mutex<Option<String>>,
    asked: Mutex<Vec<Question>>,
}

impl Says {
    fn now(&self, answer: &str) {
        *self.answer.lock().unwrap() = Some(answer.to_owned());
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Destination for Says {
    fn ask<'a>(
        &'a self,
        _: &'a Arc<Gate>,
        question: Question,
    ) -> Pin<Box<dyn Future<Output = Asked> + Send + 'a>> {
        self.asked.lock().unwrap().push(question);
        let answer = self.answer.lock().unwrap().clone();
        Box::pin(async move {
            match answer {
                Some(answer) => Asked::Answered {
                    read_back: ActId::from_bytes([9; 16]),
                    result: answer.into_bytes(),
                },
                None => Asked::Refused {
                    read_back: None,
                    why: "nobody answers",
                },
            }
        })
    }
}

/// A gate whose `function` is read back with `read_note`.
async fn kit_with(function: &str, trust: bool) -> Kit {
    Kit::with(|text| {
        let path = if function == "write_note" { "\"/path\"" } else { "\"/to\"" };
        let content = if function == "write_note" { "/text" } else { "/body" };
        format!(
            "{text}[servers.box.tools.{function}.read_back]\ntool = \"read_note\"\narguments = {{ path = {path} }}\n\
             effect_when = {{ pointer = \"/structuredContent/text\", equals_argument = \"{content}\" }}\n\
             no_effect_when = {{ pointer = \"/structuredContent/text\", equals = \"none\" }}\ntrust_no_effect = {trust}\n"
        )
    })
    .await
}

struct World {
    kit: Kit,
    says: Arc<Says>,
    reconciler: Reconciler,
}

impl World {
    async fn new(trust: bool) -> Self {
        Self::round(kit_with("write_note", trust).await)
    }

    fn round(kit: Kit) -> Self {
        let says = Arc::new(Says::default());
        let reconciler = Reconciler::new(
            Arc::clone(&kit.gate),
            Arc::clone(&says) as Arc<dyn Destination>,
        );
        Self {
            kit,
            says,
            reconciler,
        }
    }

    /// Time passes, and the reconciler looks.
    async fn after(&mut self, seconds: u64) {
        self.kit.clock.advance(Duration::from_secs(seconds));
        self.reconciler.beat().await;
        self.reconciler.settled().await;
        self.reconciler.beat().await;
    }

    fn note(&self) -> String {
        self.kit.note("work", "a", "x")
    }

    /// A call whose answer is lost.
    async fn lose(&self) -> (ActId, Option<Late>) {
        let session = self.kit.session();
        let passed = self.kit.pass(&session, "write_note", &self.note()).await;
        let (_, done) = dispatched(passed);
        let begun = self.kit.effects.begin(done).unwrap();
        let settled = self.kit.gate.settle(begun.end(LOST), None).await;
        assert_eq!(settled.state, State::Indeterminate);
        (settled.act, settled.late)
    }

    async fn repeat(&self) -> kit::Went {
        let session = self.kit.session();
        self.kit
            .run(&session, "write_note", &self.note(), End::Effected)
            .await
    }

    async fn assert_held_back(&self, act: ActId) {
        let effects = self.kit.effects.count();
        let session = self.kit.session();
        let told = denied(self.kit.pass(&session, "write_note", &self.note()).await);
        assert_eq!((told.code, told.act), (Code::TwinUnresolved, Some(act)));
        assert_eq!(self.kit.effects.count(), effects);
    }

    fn steps(&self, act: ActId) -> Vec<Receipt> {
        let of = |receipt: &Receipt| {
            receipt.kind == ReceiptKind::Reconciled
                && receipt.act.as_ref().unwrap().candidate_act_id == act
        };
        self.kit.receipts().into_iter().filter(of).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_is_found_settles_the_act_and_what_it_needed_is_deleted() {
    let mut world = World::new(true).await;
    let (act, _) = world.lose().await;
    let row = world.kit.store.act(act).unwrap().unwrap();
    let sealed = row.read_back.expect("a plan is sealed");
    let path = world.kit.path("work", "a");
    assert!(
        !sealed
            .windows(path.len())
            .any(|part| part == path.as_bytes())
    );
    world.after(1).await;
    assert_eq!(world.says.count(), 0, "not before its time");
    world.assert_held_back(act).await;
    world.says.now(HAS);
    world.after(1).await;
    assert_eq!(world.kit.state(act), Some(State::ReconciledEffect));
    assert_eq!(world.kit.store.act(act).unwrap().unwrap().read_back, None);
    let asked = world.says.asked.lock().unwrap().clone();
    let [question] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(question.function, "read_note");
    assert_eq!(
        question.arguments.get("path").unwrap().as_str(),
        Some(path.as_str())
    );
    let steps = world.steps(act);
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].state, Some(State::ReconciledEffect));
    let told = world.kit.gate.doubts();
    assert_eq!(
        (told.in_doubt, told.found_effect, told.looked_up),
        (0, 1, 1)
    );
    // Whoever calls again is told, by this gate or the next, and nothing runs twice.
    let World {
        kit, reconciler, ..
    } = world;
    drop(reconciler);
    let world = World::round(kit.restart().await);
    for _ in 0..2 {
        let kit::Went::Recorded(told, answer) = world.repeat().await else {
            panic!("it was not told");
        };
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(told, act);
        assert!(answer.contains("took effect") && answer.contains("\"isError\":false"));
    }
    assert_eq!(world.kit.effects.count(), 1);
    // It has heard of it: an equal call is an act of its own, not its retry.
    world.kit.gate.delivered(act);
    let again = world.repeat().await.ran();
    let again = world.kit.store.act(again).unwrap().unwrap();
    assert_eq!(again.retry_of, None);
    assert_ne!(again.idempotency_key, row.idempotency_key);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trusted_no_effect_releases_one_retry_with_the_same_key_and_not_too_early() {
    let mut world = World::new(true).await;
    let (act, _) = world.lose().await;
    let first = world.kit.store.act(act).unwrap().unwrap();
    world.says.now(HAS_NOT);
    // Within the time an answer may take, and while the server that got it runs, it may still happen.
    world.after(2).await;
    assert_eq!(world.kit.state(act), Some(State::Indeterminate));
    world.assert_held_back(act).await;
    let at_work = world.kit.gate.at_work(act);
    world.after(100).await;
    assert_eq!(world.kit.state(act), Some(State::Indeterminate));
    drop(at_work);
    world.after(100).await;
    assert_eq!(world.kit.state(act), Some(State::ReconciledNoEffect));
    assert_eq!(world.kit.gate.doubts().found_no_effect, 1);
    let details = world
        .steps(act)
        .into_iter()
        .map(|step| step.detail.unwrap());
    let details = details.collect::<Vec<_>>();
    assert!(details[0].contains("within the time"), "{details:?}");
    assert!(details[1].contains("still runs"), "{details:?}");
    assert!(details[2].contains("has no effect"), "{details:?}");
    let retry = world.repeat().await.ran();
    world.kit.gate.delivered(retry);
    let retry = world.kit.store.act(retry).unwrap().unwrap();
    assert_eq!(retry.retry_of, Some(act));
    assert!(first.idempotency_key.is_some());
    assert_eq!(retry.idempotency_key, first.idempotency_key);
    // And no second one.
    let third = world.repeat().await.ran();
    assert_eq!(world.kit.store.act(third).unwrap().unwrap().retry_of, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_effect_that_is_not_trusted_releases_nothing_and_a_person_is_told_at_the_deadline() {
    let mut world = World::new(false).await;
    let (act, _) = world.lose().await;
    world.says.now(HAS_NOT);
    for _ in 0..12 {
        world.after(290).await;
        assert_eq!(world.kit.state(act), Some(State::Indeterminate));
        world.assert_held_back(act).await;
    }
    let before = world.says.count();
    world.after(3_600).await;
    world.after(3_600).await;
    assert_eq!(world.says.count(), before + 1, "once more, then nothing");
    let told = world.kit.gate.doubts();
    assert_eq!((told.in_doubt, told.surfaced), (1, 1));
    assert!(told.oldest.is_some());
    let steps = world.steps(act);
    let last = steps.last().unwrap();
    assert_eq!(last.state, Some(State::Indeterminate));
    assert!(
        last.detail
            .as_deref()
            .unwrap()
            .contains("a person must say")
    );
    assert!(
        steps
            .iter()
            .all(|step| step.code == Some(Code::TwinUnresolved))
    );
    world.kit.reconcile(act, false).await.unwrap();
    assert_eq!(
        world.kit.store.act(act).unwrap().unwrap().read_back,
        None,
        "what the look-up needed goes with the doubt"
    );
    let retry = world.repeat().await.ran();
    assert_eq!(
        world.kit.store.act(retry).unwrap().unwrap().retry_of,
        Some(act)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trust_that_is_taken_back_after_the_dispatch_is_no_trust() {
    let world = World::new(true).await;
    let (act, _) = world.lose().await;
    let trusted = world.kit.gate.current().applied.snapshot();
    let text = String::from_utf8(trusted).unwrap();
    let text = text.replace("\"trust_no_effect\":true", "\"trust_no_effect\":false");
    let applied = lychgate_policy::Applied::from_snapshot(text.as_bytes()).unwrap();
    let change = lychgate_store::Apply {
        expected: Some(world.kit.gate.current().policy_digest),
        digest: applied.digest(),
        snapshot: applied.snapshot(),
        purposes_moved: false,
        authority_moved: false,
        now: world.kit.gate.now(),
        receipts: Vec::new(),
    };
    let txn = lychgate_store::Txn::Apply(change);
    world.kit.store.commit(txn).await.unwrap().done().unwrap();
    let World {
        kit, reconciler, ..
    } = world;
    drop(reconciler);
    let mut world = World::round(kit.restart().await);
    world.says.now(HAS_NOT);
    world.after(1_000).await;
    world.after(1_000).await;
    assert!(world.says.count() >= 2);
    assert_eq!(world.kit.state(act), Some(State::Indeterminate));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_answer_settles_first_or_is_kept_beside_what_was_found() {
    let mut world = World::new(true).await;
    let (act, late) = world.lose().await;
    let attempt = late.unwrap().answered(End::Effected);
    world.kit.gate.settle(attempt, Some(kit::ANSWER)).await;
    assert_eq!(world.kit.state(act), Some(State::Effected));
    world.after(10).await;
    assert_eq!(world.says.count(), 0, "nothing is in doubt");
    world.kit.gate.delivered(act);

    let (second, late) = world.lose().await;
    world.says.now(HAS_NOT);
    world.after(200).await;
    assert_eq!(world.kit.state(second), Some(State::ReconciledNoEffect));
    let attempt = late.unwrap().answered(End::Effected);
    world.kit.gate.settle(attempt, Some(kit::ANSWER)).await;
    let row = world.kit.store.act(second).unwrap().unwrap();
    assert_eq!(row.state, State::ReconciledNoEffect);
    assert!(
        row.contradicted,
        "the destination lied, and the record says so"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_gate_goes_on_where_this_one_ended() {
    let world = World::new(true).await;
    let session = world.kit.session();
    let passed = world.kit.pass(&session, "write_note", &world.note()).await;
    let (held, done) = dispatched(passed);
    let act = held.act().candidate_act_id;
    drop((world.kit.effects.begin(done).unwrap(), held, session));
    let World {
        kit, reconciler, ..
    } = world;
    drop(reconciler);
    let mut world = World::round(kit.restart().await);
    world.assert_held_back(act).await;
    world.after(3).await;
    assert_eq!(world.says.count(), 1);
    assert_eq!(world.kit.state(act), Some(State::Indeterminate));
    let World {
        kit, reconciler, ..
    } = world;
    drop(reconciler);
    let mut world = World::round(kit.restart().await);
    world.says.now(HAS);
    world.after(10).await;
    assert_eq!(world.kit.state(act), Some(State::ReconciledEffect));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_without_a_rule_waits_for_a_late_answer_or_a_person() {
    let mut world = World::round(Kit::new().await);
    let (act, _) = world.lose().await;
    assert_eq!(world.kit.store.act(act).unwrap().unwrap().read_back, None);
    world.after(3_000).await;
    assert_eq!(world.kit.gate.doubts().surfaced, 0);
    world.after(3_000).await;
    assert_eq!(world.says.count(), 0);
    assert_eq!(world.kit.gate.doubts().surfaced, 1);
    world.assert_held_back(act).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gates_own_agent_may_look_up_and_nothing_else() {
    let kit = kit_with("write_note", true).await;
    let session = kit.gate.connect_own("box").unwrap();
    let path = kit.path("work", "a");
    let read = format!(r#"{{"path":"{path}"}}"#);
    let (held, done) = dispatched(kit.pass(&session, "read_note", &read).await);
    assert_eq!(held.act().agent.agent_id, "lychgate-reconciler");
    let act = held.act().candidate_act_id;
    let begun = kit.effects.begin(done).unwrap();
    kit.gate.settle(begun.end(LOST), None).await;
    assert_eq!(kit.state(act), Some(State::Indeterminate));
    for (function, arguments) in [
        ("write_note", kit.note("work", "a", "x")),
        ("erase_note", read.clone()),
        ("send_mail", kit::MAIL.to_owned()),
    ] {
        let told = denied(kit.pass(&session, function, &arguments).await);
        assert_eq!(told.code, Code::ToolNotAuthorized, "{function}");
    }
    // Outside the roots a client's read asks a person; nobody is asked for the gate.
    let outside = denied(
        kit.pass(&session, "read_note", r#"{"path":"/etc/hosts"}"#)
            .await,
    );
    assert_eq!(outside.ticket, None);
    // And it can be revoked like any agent.
    kit.revoke("agent:lychgate-reconciler").await;
    let told = denied(kit.pass(&session, "read_note", &read).await);
    assert_eq!(told.code, Code::RevocationActive);
}
