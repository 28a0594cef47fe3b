//! The gate: what owns store, keys and the current configuration, and what every step of an act goes through.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use lychgate_core::act::CandidateAct;
use lychgate_core::authority::FinalityAuthority;
use lychgate_core::code::Code;
use lychgate_core::id::{ActId, EffectId, GateId, HolderId};
use lychgate_core::outside::{Clock, Entropy, ten};
use lychgate_core::receipt::{Approver, Isolation, Salt};
use lychgate_core::signed::{KeyId, Mark, Signed};
use lychgate_core::{Digest, Timestamp};
use lychgate_keys::{KeyRing, Role, Sealer, TrustBundle};
use lychgate_policy::Paths;
use lychgate_store::{ActRow, Rejected, Store, StoreFault, TicketState, Which};
use tokio::sync::watch;

use crate::approval::Approvals;
use crate::challenge::Challenges;
use crate::current::Current;
use crate::delegation::{Worker, code_of_budget};
use crate::delivery::Deliveries;
use crate::envelope::Envelopes;
use crate::log;
use crate::observe::Observer;
use crate::receipts::Standing;
use crate::reconcile::DoubtsHeld;
use crate::rotate::NewKeys;
use crate::session::{Peer, Session};
use crate::throttle::Throttles;
use crate::twins::Twins;

/// The gate. One per state folder; everything that decides or permits goes through it.
pub struct Gate {
    standing: Standing,
    store: Arc<dyn Store>,
    ring: KeyRing,
    trust: RwLock<TrustBundle>,
    sealer: Sealer,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    paths: Arc<dyn Paths + Send + Sync>,
    current: RwLock<Arc<Current>>,
    twins: Twins,
    approvals: Approvals,
    envelopes: Envelopes,
    challenges: Challenges,
    new_keys: NewKeys,
    /// One change of the rules at a time: the view that decisions are made by is read back after each.
    control: tokio::sync::Mutex<()>,
    /// What a retry may name: acts that reconciliation found without effect, and rounds that wait for input.
    predecessors: Mutex<Predecessors>,
    doubts: DoubtsHeld,
    throttles: Throttles,
    observer: Observer,
    deliveries: Deliveries,
    closing: watch::Sender<bool>,
    broken: AtomicBool,
}

/// Acts that a new act may name as the one it repeats or continues, by what identifies them.
#[derive(Debug, Default)]
pub(crate) struct Predecessors {
    pub(crate) reconciled: HashMap<Digest, ActId>,
    pub(crate) rounds: HashMap<Digest, ActId>,
}

/// What a gate is made of.
pub struct Parts {
    /// Durable state.
    pub store: Arc<dyn Store>,
    /// PED, sink and ledger key.
    pub ring: KeyRing,
    /// Every key that is or was trusted.
    pub trust: TrustBundle,
    /// Seals what must not lie about in the clear.
    pub sealer: Sealer,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Where paths lead.
    pub paths: Arc<dyn Paths + Send + Sync>,
    /// Whether gate and agent share a user.
    pub isolation: Isolation,
    /// The applied configuration and its protected state.
    pub current: Current,
}

impl Gate {
    /// Puts the parts together. Nothing is decided before [`Gate::recover`] has settled what a predecessor left open.
    ///
    /// # Errors
    /// EF-080 when there is no randomness.
    pub fn assemble(parts: Parts) -> Result<Arc<Self>, Code> {
        let at = parts.clock.now();
        let gate_id = GateId::new(
            at,
            ten(parts.entropy.as_ref()).map_err(|_| Code::FailClosed)?,
        );
        let approver = if parts.trust.current(Role::Approver).is_some() {
            Approver::Key
        } else {
            Approver::None
        };
        Ok(Arc::new(Self {
            standing: Standing {
                gate_id,
                isolation: parts.isolation,
                approver,
            },
            store: parts.store,
            ring: parts.ring,
            trust: RwLock::new(parts.trust),
            sealer: parts.sealer,
            clock: parts.clock,
            entropy: parts.entropy,
            paths: parts.paths,
            current: RwLock::new(Arc::new(parts.current)),
            twins: Twins::default(),
            approvals: Approvals::default(),
            envelopes: Envelopes::default(),
            challenges: Challenges::default(),
            new_keys: NewKeys::default(),
            control: tokio::sync::Mutex::default(),
            predecessors: Mutex::default(),
            doubts: DoubtsHeld::default(),
            throttles: Throttles::default(),
            observer: Observer::default(),
            deliveries: Deliveries::default(),
            closing: watch::Sender::new(false),
            broken: AtomicBool::new(false),
        }))
    }

    /// The running gate's id (the acts' `runtime_id`).
    pub fn id(&self) -> GateId {
        self.standing.gate_id
    }

    /// What every receipt of this gate says.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// The view decisions are made by now.
    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace_current(&self, current: Current) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How far the wall clock stood behind the record when the gate started.
    pub(crate) fn clock_behind(&self) -> std::time::Duration {
        self.clock.behind()
    }

    /// Durable state; for reading.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Where paths lead.
    pub fn paths(&self) -> &(dyn Paths + Send + Sync) {
        self.paths.as_ref()
    }

    /// The trust bundle as it is now.
    pub fn trust(&self) -> TrustBundle {
        self.trust
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn believe(&self, trust: TrustBundle) {
        *self.trust.write().unwrap_or_else(PoisonError::into_inner) = trust;
    }

    /// The acts whose outcome or answer is open.
    pub fn twins(&self) -> &Twins {
        &self.twins
    }

    /// What is counted of all this.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    pub(crate) fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// The ids of the keys this gate signs with.
    pub(crate) fn own_keys(&self) -> impl Iterator<Item = &KeyId> {
        let ring = &self.ring;
        [&ring.ped, &ring.sink, &ring.ledger]
            .into_iter()
            .map(|key| key.key_id())
    }

    pub(crate) fn doubts_held(&self) -> &DoubtsHeld {
        &self.doubts
    }

    pub(crate) fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    pub(crate) fn envelopes(&self) -> &Envelopes {
        &self.envelopes
    }

    pub(crate) fn challenges(&self) -> &Challenges {
        &self.challenges
    }

    pub(crate) fn new_keys(&self) -> &NewKeys {
        &self.new_keys
    }

    pub(crate) async fn one_control(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.control.lock().await
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        self.entropy.as_ref()
    }

    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// As for [`Twins`]: every change is a map operation, so a poisoned lock is still good.
    pub(crate) fn predecessors(&self) -> MutexGuard<'_, Predecessors> {
        self.predecessors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A new client connection to `server`.
    ///
    /// # Errors
    /// EF-080 when there is no randomness.
    pub fn connect(&self, server: &str, peer: Peer) -> Result<Arc<Session>, Code> {
        self.session(server, Some(peer), None, None)
    }

    //= PROFILE §11: the session's configured purpose, never free text
    /// As [`Gate::connect`], for one of the configured purposes; `None` when it is not one.
    ///
    /// # Errors
    /// EF-080 when there is no randomness.
    pub fn connect_for(
        &self,
        server: &str,
        peer: Peer,
        purpose: &str,
    ) -> Result<Option<Arc<Session>>, Code> {
        if self.current().applied.declared(purpose).is_none() {
            return Ok(None);
        }
        let session = self.session(server, Some(peer), None, Some(purpose.to_owned()))?;
        Ok(Some(session))
    }

    pub(crate) fn session(
        &self,
        server: &str,
        peer: Option<Peer>,
        worker: Option<Worker>,
        purpose: Option<String>,
    ) -> Result<Arc<Session>, Code> {
        let now = self.now();
        let random = ten(self.entropy()).map_err(|_| Code::FailClosed)?;
        let holder = HolderId::new(now, random);
        let denials = self.throttles.of(peer.map(|peer| peer.uid), server, now);
        Ok(Session::new(
            holder,
            server.to_owned(),
            peer,
            worker,
            purpose,
            denials,
        ))
    }

    /// A connection of the gate's own agent to `server`, for look-ups: what it may call is what the catalogue reads back
    /// with, and nobody is asked about it.
    ///
    /// # Errors
    /// EF-080 when there is no randomness.
    pub fn connect_own(&self, server: &str) -> Result<Arc<Session>, Code> {
        self.session(server, None, None, None)
    }

    /// Resolves when the gate must end: it was asked to, or its store can no longer be believed.
    pub async fn closing(&self) {
        let mut closing = self.closing.subscribe();
        // The sender lives in `self`, so this cannot fail.
        drop(closing.wait_for(|closing| *closing).await);
    }

    /// Asks the gate to end.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Whether the store can no longer be believed, or does not hold what happened; the process must exit with a fault.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// What happened and what is recorded are no longer the same: the gate must end.
    pub(crate) fn give_up(&self) {
        self.broken.store(true, Ordering::Release);
        self.close();
    }

    /// The code for a store that cannot do its work. A store that is closed ends the gate (PROFILE §5).
    pub(crate) fn store_fault(&self, fault: &StoreFault) -> Code {
        log::error("the store cannot answer", &[("fault", fault.into())]);
        if matches!(fault, StoreFault::Unrecorded | StoreFault::Closed) {
            self.give_up();
        }
        Code::ConsumeStateUnavailable
    }

    pub(crate) fn row(&self, act: ActId) -> Result<ActRow, Code> {
        match self.store.act(act) {
            Ok(Some(row)) => Ok(row),
            Ok(None) => Err(Code::NoFinalityAuthority),
            Err(fault) => Err(self.store_fault(&fault)),
        }
    }

    pub(crate) fn ten(&self) -> Result<[u8; 10], Code> {
        ten(self.entropy()).map_err(|_| Code::FailClosed)
    }

    pub(crate) fn fresh_effect_id(&self) -> Result<EffectId, Code> {
        Ok(EffectId::new(self.now(), self.ten()?))
    }

    pub(crate) fn fresh_salt(&self) -> Result<Salt, Code> {
        let mut salt = [0; 16];
        self.entropy.fill(&mut salt).map_err(|_| Code::FailClosed)?;
        Ok(Salt(salt))
    }

    pub(crate) fn ped_mark(&self) -> Mark {
        Mark::unsigned(self.ring.ped.key_id().clone())
    }

    pub(crate) fn sink_mark(&self) -> Mark {
        Mark::unsigned(self.ring.sink.key_id().clone())
    }

    pub(crate) fn sign_as_ped<T: Signed>(&self, object: &mut T) -> Result<(), Code> {
        self.ring.ped.sign(object).map_err(|_| Code::FailClosed)
    }

    pub(crate) fn sign_as_sink<T: Signed>(&self, object: &mut T) -> Result<(), Code> {
        self.ring.sink.sign(object).map_err(|_| Code::FailClosed)
    }

    pub(crate) fn verify_authority(&self, authority: &FinalityAuthority) -> bool {
        self.verify_live(Role::Ped, authority)
    }

    pub(crate) fn verify_live<T: Signed>(&self, role: Role, object: &T) -> bool {
        if self.current().is_key_revoked(&object.mark().key_id) {
            return false;
        }
        let trust = self.trust.read().unwrap_or_else(PoisonError::into_inner);
        trust.verify_live(role, object, self.now()).is_ok()
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Gate")
            .field("id", &self.standing.gate_id)
            .finish_non_exhaustive()
    }
}

/// What must not be revoked for an act to run: the gate's one spelling of revocation subjects.
pub fn revocation_subjects(act: &CandidateAct) -> Vec<String> {
    let mut subjects = vec![
        "all".to_owned(),
        format!("agent:{}", act.agent.agent_id),
        format!("principal:{}", act.initiating_principal.principal_id),
        format!("server:{}", act.tool.tool_id),
        format!("tool:{}/{}", act.tool.tool_id, act.tool.function_id),
        format!("act:{}", act.candidate_act_id),
        format!("session:{}", act.freshness.nonce.holder),
    ];
    if let Some(there) = &act.destination {
        let ids = [&there.destination_id, &there.recipient_id];
        let ids = ids.into_iter().flatten();
        subjects.extend(ids.map(|id| format!("destination:{id}")));
    }
    subjects
}

/// The code for a rejection inside a transaction.
pub(crate) fn code_of(why: &Rejected) -> Code {
    match why {
        Rejected::NotIssued | Rejected::UnknownAct => Code::NoFinalityAuthority,
        Rejected::AlreadyUsed | Rejected::TicketConsumed => Code::AuthorityAlreadyUsed,
        Rejected::Expired => Code::StaleAuthority,
        Rejected::SeenNonce
        | Rejected::SeenAct
        | Rejected::SeenTicket
        | Rejected::SeenVerdict
        | Rejected::SeenDelegation => Code::ReplayDetected,
        Rejected::OverBudget { account, over } => code_of_budget(*account, *over),
        Rejected::NonceUnusable => Code::NonceFailure,
        Rejected::HolderMismatch => Code::HolderMismatch,
        Rejected::EpochMismatch {
            which: Which::Policy | Which::PolicyDigest,
        }
        | Rejected::PolicyMoved { .. } => Code::PolicyEpochMismatch,
        Rejected::EpochMismatch {
            which: Which::Authority,
        } => Code::AuthorityEpochMismatch,
        Rejected::EpochMismatch {
            which: Which::Revocation,
        } => Code::RevocationStateMismatch,
        Rejected::Revoked { .. } => Code::RevocationActive,
        Rejected::TicketExpired => Code::ApprovalExpired,
        Rejected::TicketNotApproved {
            state: TicketState::Denied,
        } => Code::ApprovalDenied,
        Rejected::TicketNotPending { .. }
        | Rejected::TicketNotApproved { .. }
        | Rejected::UnknownTicket
        | Rejected::ApprovalMissing => Code::EscalationRequired,
        Rejected::TicketSubject => Code::ActMismatch,
        Rejected::WrongState { .. }
        | Rejected::SeenConsent
        | Rejected::UnknownConsent
        | Rejected::Malformed(_) => Code::FailClosed,
    }
}
