//! What the gate's tests share: a gate on a real store in a folder of its own, a clock that tests move, a person with the
//! approver's key, and a log of the effects that really began.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod catalogue;
mod live;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Value};
use lychgate_core::outside::{Clock, Entropy, NoEntropy};
use lychgate_core::receipt::{Isolation, Receipt};
use lychgate_core::signed::{Mark, Signed};
use lychgate_core::{Code, State, Timestamp};
use lychgate_gate::{
    Begun, Caller, CallerGone, Connected, Current, Denied, Dispatched, End, FinalitySink, Gate,
    HeldAct, NotSent, Parts, Passed, Peer, RealPaths, Session,
};
use lychgate_intake::{ActingMethod, Limits, Proposal, propose};
use lychgate_keys::verdict::{
    ApprovalVerdict, ConfigurationChange, ReconciliationVerdict, Verdict as Ruling,
};
use lychgate_keys::{KeyRing, Role, Sealer, SigningKey, SystemEntropy, TrustBundle};
use lychgate_policy::Applied;
use lychgate_store::testing::FaultyStore;
use lychgate_store::{Apply, Options, SqliteStore, Store, TicketRow, TicketState, Txn};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use self::live::{Live, Prepared};

/// Where a test's time begins.
pub const START: u64 = 1_787_766_000_000;

/// A clock that tests move, in both directions.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    pub fn step_back(&self, by: Duration) {
        self.0.fetch_sub(by.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Randomness that can run dry.
#[derive(Debug, Default)]
pub struct Dry(AtomicBool);

impl Dry {
    pub fn set(&self, dry: bool) {
        self.0.store(dry, Ordering::SeqCst);
    }
}

impl Entropy for Dry {
    fn fill(&self, out: &mut [u8]) -> Result<(), NoEntropy> {
        if self.0.load(Ordering::SeqCst) {
            return Err(NoEntropy);
        }
        SystemEntropy.fill(out)
    }
}

/// The effects that really began, in order.
#[derive(Clone, Debug, Default)]
pub struct Effects(Arc<Mutex<Vec<ActId>>>);

impl Effects {
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn of(&self, act: ActId) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|one| **one == act)
            .count()
    }

    pub fn begin(&self, dispatched: Dispatched) -> Result<Begun, NotSent> {
        let begun = dispatched.permit.begin()?;
        self.0.lock().unwrap().push(begun.act());
        Ok(begun)
    }
}

/// The folders of one test.
#[derive(Debug)]
pub struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["work", "plain", "config"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }
}

/// A gate and everything round it.
pub struct Kit {
    pub gate: Arc<Gate>,
    pub store: Arc<FaultyStore<SqliteStore>>,
    pub clock: Arc<ManualClock>,
    pub dry: Arc<Dry>,
    pub effects: Effects,
    pub folder: Folder,
    pub approver: SigningKey,
    trust: TrustBundle,
}

/// How a call went, its effect performed.
#[derive(Debug)]
pub enum Went {
    Ran(ActId, State),
    Recorded(ActId, Vec<u8>),
    Denied(Denied),
}

impl Went {
    pub fn denied(self) -> Denied {
        match self {
            Self::Denied(denied) => denied,
            other => panic!("not denied but {other:?}"),
        }
    }

    pub fn ran(self) -> ActId {
        match self {
            Self::Ran(act, _) => act,
            other => panic!("did not run but {other:?}"),
        }
    }
}

impl Kit {
    /// The usual configuration.
    pub async fn new() -> Self {
        Self::with(|text| text).await
    }

    /// The usual configuration, edited.
    pub async fn with(edit: impl Fn(String) -> String) -> Self {
        Self::make(edit, true).await
    }

    /// Without an approver.
    pub async fn without_approver() -> Self {
        Self::make(|text| text, false).await
    }

    async fn make(edit: impl Fn(String) -> String, with_approver: bool) -> Self {
        let folder = Folder::new();
        let at = Timestamp::from_millis(START);
        let (ring, mut trust) = KeyRing::create(&folder.path("keys"), at).unwrap();
        drop(ring);
        let approver = SigningKey::from_seed(&[7; 32]).unwrap();
        if with_approver {
            trust.add(Role::Approver, approver.public(), at).unwrap();
        }
        let applied = catalogue::applied(&folder, edit);
        let clock = Arc::new(ManualClock(AtomicU64::new(START)));
        let kit = Self::open(folder, trust, clock, Effects::default(), Some(applied)).await;
        kit.gate.recover().await.unwrap();
        kit
    }

    async fn open(
        folder: Folder,
        trust: TrustBundle,
        clock: Arc<ManualClock>,
        effects: Effects,
        first: Option<Applied>,
    ) -> Self {
        let store = SqliteStore::open(&Options::new(folder.path("store.db"))).unwrap();
        let store = Arc::new(FaultyStore::new(store));
        if let Some(applied) = &first {
            let apply = Apply {
                expected: None,
                digest: applied.digest(),
                snapshot: applied.snapshot(),
                purposes_moved: false,
                authority_moved: false,
                now: clock.now(),
                receipts: Vec::new(),
            };
            store
                .commit(Txn::Apply(apply))
                .await
                .unwrap()
                .done()
                .unwrap();
        }
        let applied = store.applied().unwrap().unwrap();
        let protected = store.protected_state().unwrap();
        let revoked = store.revocations().unwrap();
        let dry = Arc::new(Dry::default());
        let gate = Gate::assemble(Parts {
            store: Arc::clone(&store) as Arc<dyn Store>,
            ring: KeyRing::open(&folder.path("keys"), &trust).unwrap(),
            trust: trust.clone(),
            sealer: Sealer::from_secret(&[9; 32]).unwrap(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            entropy: Arc::clone(&dry) as Arc<dyn Entropy>,
            paths: Arc::new(RealPaths::new([folder.path("config"), folder.path("keys")])),
            isolation: Isolation::SameUser,
            current: Current {
                epochs: protected.epochs,
                purpose_epoch: protected.purpose_epoch,
                policy_digest: applied.digest,
                applied: Arc::new(Applied::from_snapshot(&applied.snapshot).unwrap()),
                revoked: revoked.into_iter().map(|one| one.subject).collect(),
            },
        })
        .unwrap();
        Self {
            gate,
            store,
            clock,
            dry,
            effects,
            folder,
            approver: SigningKey::from_seed(&[7; 32]).unwrap(),
            trust,
        }
    }

    /// Ends this gate, whatever it has in hand, and starts the next one on the same folder.
    pub async fn restart(self) -> Self {
        let kit = self.reopen().await;
        kit.gate.recover().await.unwrap();
        kit
    }

    /// As [`Kit::restart`], before the next gate has settled what this one left.
    pub async fn reopen(self) -> Self {
        let Self {
            gate,
            store,
            clock,
            effects,
            folder,
            trust,
            ..
        } = self;
        drop(gate);
        // Tasks that were aborted drop their hold on the gate when they are next looked at.
        for _ in 0..500 {
            if Arc::strong_count(&store) == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(
            Arc::strong_count(&store),
            1,
            "somebody still holds the gate"
        );
        drop(store);
        Self::open(folder, trust, clock, effects, None).await
    }

    pub fn session(&self) -> Arc<Session> {
        let peer = Peer {
            uid: 1000,
            pid: None,
        };
        self.gate.connect("box", peer).unwrap()
    }

    pub fn sink(&self) -> FinalitySink {
        FinalitySink::mcp("box")
    }

    pub fn path(&self, root: &str, name: &str) -> String {
        self.folder
            .path(root)
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// Arguments of `write_note` into a root.
    pub fn note(&self, root: &str, name: &str, text: &str) -> String {
        format!(r#"{{"path":"{}","text":"{text}"}}"#, self.path(root, name))
    }

    /// What is really connected: what was pinned.
    pub fn connected(&self, function: &str) -> Connected {
        let current = self.gate.current();
        let server = current.applied.server("box").unwrap();
        let entry = match server.resolve(function) {
            lychgate_policy::Resolution::Exact(entry) => Some(entry.definition),
            _ => None,
        };
        Connected {
            endpoint: server.endpoint().to_owned(),
            definition: entry,
            listed: false,
        }
    }

    pub fn held(&self, session: &Arc<Session>, function: &str, arguments: &str) -> HeldAct {
        let connected = self.connected(function);
        self.gate
            .hold(session, proposal(function, arguments), connected)
            .unwrap()
    }

    pub async fn pass_held(&self, held: HeldAct, caller: &Caller) -> Passed {
        let function = held.act().tool.function_id.clone();
        let connected = self.connected(&function);
        let live = move || connected.clone();
        self.gate
            .pass(held, &self.sink(), caller, &live, &|_| {})
            .await
    }

    pub async fn pass(&self, session: &Arc<Session>, function: &str, arguments: &str) -> Passed {
        let (_here, caller) = CallerGone::new();
        self.pass_held(self.held(session, function, arguments), &caller)
            .await
    }

    /// Passes a call, performs its effect and settles it; the answer is not delivered yet.
    pub async fn run(
        &self,
        session: &Arc<Session>,
        function: &str,
        arguments: &str,
        end: End,
    ) -> Went {
        let passed = self.pass(session, function, arguments).await;
        self.finish(passed, end).await
    }

    pub async fn finish(&self, passed: Passed, end: End) -> Went {
        match passed {
            Passed::Dispatched { dispatched, .. } => {
                let begun = self.effects.begin(dispatched).unwrap();
                let settled = self.gate.settle(begun.end(end), Some(ANSWER)).await;
                Went::Ran(settled.act, settled.state)
            }
            Passed::Recorded { act, answer } => Went::Recorded(act, answer.to_vec()),
            Passed::Denied(denied) => Went::Denied(denied),
        }
    }

    /// Passes a call that must ask, in a task of its own, up to where it waits.
    pub async fn ask(&self, session: &Arc<Session>, function: &str, arguments: &str) -> Asked {
        let held = self.held(session, function, arguments);
        let act = held.act().candidate_act_id;
        let (gone, caller) = CallerGone::new();
        let (tell, told) = oneshot::channel();
        let tell = Mutex::new(Some(tell));
        let (gate, sink, connected) = (
            Arc::clone(&self.gate),
            self.sink(),
            self.connected(function),
        );
        let task = tokio::spawn(async move {
            let live = move || connected.clone();
            let waiting = move |ticket| {
                if let Some(tell) = tell.lock().unwrap().take() {
                    tell.send(ticket).unwrap();
                }
            };
            gate.pass(held, &sink, &caller, &live, &waiting).await
        });
        let ticket = told.await.expect("it was not escalated");
        Asked {
            act,
            ticket,
            gone,
            task,
        }
    }

    pub fn verdict(&self, ticket: TicketId, ruling: Ruling) -> ApprovalVerdict {
        let row = self.ticket(ticket);
        let mut verdict = ApprovalVerdict {
            version: Default::default(),
            object_type: Default::default(),
            ticket_id: ticket,
            subject: row.subject,
            verdict: ruling,
            at: self.clock.now(),
            mark: self.mark(),
        };
        self.approver.sign(&mut verdict).unwrap();
        verdict
    }

    pub fn mark(&self) -> Mark {
        Mark::unsigned(self.approver.key_id().clone())
    }

    pub async fn approve(&self, ticket: TicketId) {
        let verdict = self.verdict(ticket, Ruling::Approve);
        self.gate.rule(&verdict).await.unwrap();
    }

    pub async fn deny(&self, ticket: TicketId) {
        let verdict = self.verdict(ticket, Ruling::Deny);
        self.gate.rule(&verdict).await.unwrap();
    }

    pub async fn reconcile(&self, act: ActId, effect: bool) -> Result<State, String> {
        let mut verdict = ReconciliationVerdict {
            version: Default::default(),
            object_type: Default::default(),
            candidate_act_id: act,
            effect,
            reason: "I looked".try_into().unwrap(),
            at: self.clock.now(),
            challenge: self.gate.challenge().unwrap(),
            mark: self.mark(),
        };
        self.approver.sign(&mut verdict).unwrap();
        let done = self.gate.reconcile(&verdict).await;
        done.map_err(|refused| refused.to_string())
    }

    /// Applies the usual configuration, edited, with the approver's yes.
    pub async fn apply(&self, edit: impl Fn(String) -> String) -> Result<(), String> {
        let new = catalogue::applied(&self.folder, edit);
        let mut yes = ConfigurationChange {
            version: Default::default(),
            object_type: Default::default(),
            from: Some(self.gate.current().policy_digest),
            to: new.digest(),
            at: self.clock.now(),
            challenge: self.gate.challenge().unwrap(),
            mark: self.mark(),
        };
        self.approver.sign(&mut yes).unwrap();
        let done = self.gate.apply(new, Some(&yes)).await;
        done.map(drop).map_err(|refused| refused.to_string())
    }

    pub fn state(&self, act: ActId) -> Option<State> {
        self.store.inner().act(act).unwrap().map(|row| row.state)
    }

    pub fn ticket(&self, ticket: TicketId) -> TicketRow {
        self.store.inner().ticket(ticket).unwrap().unwrap()
    }

    pub fn ticket_state(&self, ticket: TicketId) -> TicketState {
        self.ticket(ticket).state
    }

    pub fn receipts(&self) -> Vec<Receipt> {
        let store = self.store.inner();
        let rows = store.record(0, 1_000_000).unwrap();
        let read = |bytes: &[u8]| json::from_value(&value_of(bytes)).unwrap();
        rows.iter().map(|row| read(&row.bytes)).collect()
    }

    /// Whether the record has a line that says of this act that it was not executed, with this code.
    pub fn denied_in_record(&self, act: ActId, code: Code) -> bool {
        self.receipts().iter().any(|receipt| {
            receipt.code == Some(code)
                && receipt
                    .act
                    .as_ref()
                    .is_some_and(|part| part.candidate_act_id == act)
        })
    }

    /// A second copy of the PED's key: what a broken PED could sign.
    pub fn sign_as_ped<T: Signed>(&self, object: &mut T) {
        let ring = KeyRing::open(&self.folder.path("keys"), &self.trust).unwrap();
        ring.ped.sign(object).unwrap();
    }
}

/// A call that waits for a person.
pub struct Asked {
    pub act: ActId,
    pub ticket: TicketId,
    pub gone: CallerGone,
    pub task: JoinHandle<Passed>,
}

impl Asked {
    pub async fn done(self) -> Passed {
        self.task.await.unwrap()
    }

    pub async fn give_up(self) -> Denied {
        self.gone.say();
        denied(self.task.await.unwrap())
    }

    pub fn abort(self) {
        self.task.abort();
    }
}

pub fn denied(passed: Passed) -> Denied {
    match passed {
        Passed::Denied(denied) => denied,
        other => panic!("not denied but {other:?}"),
    }
}

pub fn dispatched(passed: Passed) -> (HeldAct, Dispatched) {
    match passed {
        Passed::Dispatched { held, dispatched } => (*held, dispatched),
        other => panic!("not dispatched but {other:?}"),
    }
}

pub fn proposal(function: &str, arguments: &str) -> Proposal {
    let mut params = json::Object::new();
    params.insert("name".to_owned(), Value::from(function));
    params.insert("arguments".to_owned(), value_of(arguments.as_bytes()));
    let limits = Limits::default();
    propose(
        ActingMethod::ToolsCall,
        Some(Value::Object(params)),
        &limits,
    )
    .unwrap()
}

pub fn value_of(bytes: &[u8]) -> Value {
    json::parse(bytes, &json::Limits::CANON).unwrap()
}

/// A call that always asks.
pub const MAIL: &str = r#"{"to":"bob@example.com","body":"hello"}"#;
/// What destinations answer here.
pub const ANSWER: &[u8] = br#"{"content":[]}"#;

/// Whether a folder is a test's.
pub fn exists(path: &Path) -> bool {
    path.exists()
}
