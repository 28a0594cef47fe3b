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

mod calls;
pub mod catalogue;
mod live;
mod outside;
mod person;
pub mod workers;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lychgate_core::id::{ActId, GateId, TicketId};
use lychgate_core::json::{self, Value};
use lychgate_core::outside::{Clock, Entropy};
use lychgate_core::receipt::{Isolation, Receipt};
use lychgate_core::signed::Signed;
use lychgate_core::{Code, State, Timestamp};
use lychgate_gate::{Current, Gate, Parts, RealPaths, RingSigner, log_name};
use lychgate_keys::{KeyRing, Role, Sealer, SigningKey, TrustBundle};
use lychgate_policy::Applied;
use lychgate_store::testing::FaultyStore;
use lychgate_store::{Apply, Options, SqliteStore, Store, TicketRow, TicketState, Txn};

pub use self::calls::{ANSWER, Asked, MAIL, Went, denied, dispatched, proposal};
pub use self::live::{Live, Prepared};
pub use self::outside::{Dry, Effects, Folder, ManualClock, START};

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
        let clock = Arc::new(ManualClock(AtomicU64::new(START), AtomicU64::new(0)));
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
        let ring = KeyRing::open(&folder.path("keys"), &trust).unwrap();
        let log = log_name(GateId::from_bytes([1; 16])).unwrap();
        let signer = Arc::new(RingSigner::new(log, &ring, &trust).unwrap());
        let store = SqliteStore::open(&Options::new(folder.path("store.db")), signer).unwrap();
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
        let dry = Arc::new(Dry::default());
        let gate = Gate::assemble(Parts {
            store: Arc::clone(&store) as Arc<dyn Store>,
            ring,
            trust: trust.clone(),
            sealer: Sealer::from_secret(&[9; 32]).unwrap(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            entropy: Arc::clone(&dry) as Arc<dyn Entropy>,
            paths: Arc::new(RealPaths::new([folder.path("config"), folder.path("keys")])),
            isolation: Isolation::SameUser,
            current: Current::read(
                store.as_ref(),
                Arc::new(Applied::from_snapshot(&applied.snapshot).unwrap()),
                &trust,
                clock.now(),
            )
            .unwrap(),
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

    /// As the trust bundle's file would have it at the next start.
    pub fn trust_what_the_gate_trusts(&mut self) {
        self.trust = self.gate.trust();
    }

    /// Ends this gate, whatever it has in hand, and starts the next one on the same folder.
    pub async fn restart(self) -> Self {
        let kit = self.reopen().await;
        kit.gate.recover().await.unwrap();
        kit
    }

    /// As [`Kit::restart`], with something done to the store's file in between.
    pub async fn reopened(self, meanwhile: impl FnOnce(&std::path::Path)) -> Self {
        let kit = self.reopen_after(meanwhile).await;
        kit.gate.recover().await.unwrap();
        kit
    }

    /// As [`Kit::restart`], before the next gate has settled what this one left.
    pub async fn reopen(self) -> Self {
        self.reopen_after(|_| {}).await
    }

    async fn reopen_after(self, meanwhile: impl FnOnce(&std::path::Path)) -> Self {
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
        meanwhile(&folder.path("store.db"));
        Self::open(folder, trust, clock, effects, None).await
    }

    pub fn state(&self, act: ActId) -> Option<State> {
        self.store.inner().act(act).unwrap().map(|row| row.state)
    }

    /// Waits until every delivery is noted: this many acts are open then.
    pub async fn all_noted(&self, open: usize) {
        for _ in 0..1000 {
            if self.store.inner().open_acts().unwrap().len() == open {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not {open} acts are open");
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
        rows.iter()
            .map(|row| read(row.bytes.as_ref().unwrap()))
            .collect()
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

/// A value of strict JSON.
pub fn value_of(bytes: &[u8]) -> Value {
    json::parse(bytes, &json::Limits::CANON).unwrap()
}
