//! Opening a state folder for the one gate that may run on it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use lychgate_core::outside::Clock as _;
use lychgate_core::receipt::{Isolation, Receipt, ReceiptKind};
use lychgate_core::{Digest, json};
use lychgate_gate::ledger::{AnchorNote, Examined, examine};
use lychgate_gate::{Current, CurrentFault, Parts, RingSigner, SteadyClock};
use lychgate_keys::{DrawnEntropy, KeyRing, Role, Sealer, TrustBundle};
use lychgate_ledger::KeyName;
use lychgate_policy::Applied;
use lychgate_store::{SqliteStore, Store};

use crate::accepted::Accepted;
use crate::anchor::Anchors;
use crate::elsewhere::{self, Found, Place};
use crate::reserved::{LivePaths, Places};
use crate::state::{Lock, StateFault, StateFolder};

/// What a gate must know beside its state folder.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The configuration file, which no sink may touch.
    pub config_file: Option<PathBuf>,
    /// The client user's home, whose clients' configuration files no sink may touch.
    pub home: Option<PathBuf>,
    /// The folder of anchors ([`crate::anchor::default_anchors`]); `None` for no anchor.
    pub anchors: Option<PathBuf>,
    /// The user the clients run as, when the operator says that it is not the gate's own. Only then, and only when it
    /// is true, do receipts say `isolation: separate-user`.
    pub client_uid: Option<u32>,
}

impl OpenOptions {
    /// The anchors of a log, with what its applied configuration says of them.
    pub(crate) fn anchors_of(&self, log: &KeyName, applied: &Applied) -> Anchors {
        Anchors::new(self.anchors.as_deref(), log, applied.ledger().anchor_file())
    }

    pub(crate) fn isolation(&self) -> Isolation {
        let own = rustix::process::geteuid().as_raw();
        match self.client_uid {
            Some(uid) if uid != own => Isolation::SeparateUser,
            _ => Isolation::SameUser,
        }
    }
}

/// Everything a gate is made of, and the lock that makes it the only one. Keep the lock as long as the gate.
pub struct Opened {
    /// For `lychgate_gate::Gate::assemble`.
    pub parts: Parts,
    /// The lock.
    pub lock: Lock,
    /// Where the record's heads are anchored.
    pub anchors: Arc<Anchors>,
    /// What is worth a receipt about the anchor as it was found.
    pub anchor_note: Option<AnchorNote>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Opened")
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}

impl StateFolder {
    /// Takes the lock and opens everything: keys, trust, store, the applied configuration. Blocks; not for a thread that
    /// drives async tasks.
    ///
    /// # Errors
    /// When another gate has the folder, it is not fit, or what is stored cannot be believed.
    pub fn open(&self, options: &OpenOptions) -> Result<Opened, StateFault> {
        let lock = self.lock()?;
        let trust = TrustBundle::read(&self.trust())?;
        let ring = KeyRing::open(&self.keys(), &trust)?;
        let sealer = Sealer::open_file(&self.seal_key())?;
        let log = self.read_log_name()?;
        let signer = RingSigner::new(log.clone(), &ring, &trust)?;
        let database = self.open_store(signer)?;
        let (current, clock) = read_current(&database, &trust)?;
        let anchors = options.anchors_of(&log, &current.applied);
        let anchor_note = self.examine(&database, &trust, &log, &anchors, &current.applied)?;
        as_recorded(&database, &current.policy_digest)?;
        let places = Places {
            state: self.path().to_owned(),
            anchors: anchors
                .files()
                .iter()
                .map(|file| file.path().to_owned())
                .collect(),
            config_file: options.config_file.clone(),
            home: options.home.clone(),
        };
        let parts = Parts {
            store: Arc::new(database),
            ring,
            trust,
            sealer,
            clock: Arc::new(clock),
            entropy: Arc::new(DrawnEntropy::default()),
            paths: Arc::new(LivePaths::new(&places)),
            isolation: options.isolation(),
            current,
        };
        Ok(Opened {
            parts,
            lock,
            anchors: Arc::new(anchors),
            anchor_note,
        })
    }

    //= PROFILE §10: nothing starts on a store that its anchor contradicts, and an anchor that is gone is not silent
    /// Compares the record with its anchors, or with itself where there is none, and with the heads that witnesses have.
    fn examine(
        &self,
        database: &SqliteStore,
        trust: &TrustBundle,
        log: &KeyName,
        anchors: &Anchors,
        applied: &Applied,
    ) -> Result<Option<AnchorNote>, StateFault> {
        let contradicted = |difference, place: String| StateFault::Contradicted {
            difference: Box::new(difference),
            record: self.database(),
            place,
            approver: trust.current(Role::Approver).is_some(),
        };
        if let Examined::Differs(difference) = examine(database, trust, log, None)? {
            return Err(contradicted(difference, "its own newest head".to_owned()));
        }
        let mut note = None;
        for anchor in anchors.files() {
            let Ok(bytes) = anchor.read() else {
                note = Some(AnchorNote::Unreadable);
                continue;
            };
            match examine(database, trust, log, bytes.as_deref())? {
                Examined::Differs(difference) => {
                    let place = Place::Anchor(anchor.path().to_owned());
                    return Err(contradicted(difference, place.to_string()));
                }
                Examined::Missing => note = note.or(Some(AnchorNote::Missing)),
                Examined::First | Examined::Agrees => {}
            }
        }
        let kept = elsewhere::gather(anchors, applied, log);
        let accepted = Accepted::read(self)?;
        match elsewhere::compare(database, trust, log, kept, &accepted)? {
            Found::Agrees => Ok(note),
            Found::Unproven => Ok(note.or(Some(AnchorNote::Unproven))),
            Found::Differs(difference, kept) => {
                Err(contradicted(*difference, kept.place.to_string()))
            }
        }
    }
}

impl StateFolder {
    /// Every name in any server's `pass_env` of the applied configuration. Takes no lock: for whoever starts the gate.
    ///
    /// # Errors
    /// When the folder is not fit, or what is stored cannot be read.
    pub fn passed_names(&self) -> Result<BTreeSet<String>, StateFault> {
        self.check()?;
        let database = SqliteStore::open_reading(&self.database())?;
        let Some(row) = database.applied()? else {
            return Ok(BTreeSet::new());
        };
        lychgate_policy::passed_names(&row.snapshot)
            .map_err(|fault| StateFault::Applied(fault.to_string()))
    }
}

/// Whether the applied configuration is the one that the record says was applied last. The row can be rewritten together
/// with its digest; the record cannot, without its heads telling.
fn as_recorded(database: &dyn Store, applied: &Digest) -> Result<(), StateFault> {
    let mut end = database.record_len()?;
    let least = end.saturating_sub(MOST_LINES);
    while end > least {
        let begin = end.saturating_sub(PAGE).max(least);
        let many = usize::try_from(end - begin).unwrap_or(usize::MAX);
        for row in database.record(begin, many)?.iter().rev() {
            let Some(told) = row.bytes.as_deref().and_then(applied_in) else {
                continue;
            };
            if told == *applied {
                return Ok(());
            }
            return Err(StateFault::Applied(format!(
                "record {} says that another one was applied last: the store was changed by something else than a gate",
                row.index
            )));
        }
        end = begin;
    }
    Ok(())
}

/// The configuration that a line says was applied, or was the applied one when a gate started.
fn applied_in(line: &[u8]) -> Option<Digest> {
    // Canonical bytes: a quote inside a text is escaped, so the member stands nowhere else. Most lines end here.
    let told = KINDS
        .iter()
        .any(|kind| line.windows(kind.len()).any(|part| part == *kind));
    let value = told.then(|| json::parse(line, &json::Limits::OBJECT).ok())??;
    let receipt: Receipt = json::from_value(&value).ok()?;
    matches!(receipt.kind, ReceiptKind::Applied | ReceiptKind::Started)
        .then_some(receipt.policy_digest)?
}

const KINDS: [&[u8]; 2] = [br#""kind":"applied""#, br#""kind":"started""#];
/// Lines read at most, from the end backwards: what a busy day between two starts leaves.
const MOST_LINES: u64 = 65_536;
const PAGE: u64 = 512;

pub(crate) fn read_current(
    database: &dyn Store,
    trust: &TrustBundle,
) -> Result<(Current, SteadyClock), StateFault> {
    let unusable = |why: &str| StateFault::Applied(why.to_owned());
    let state = database.protected_state()?;
    let clock = SteadyClock::start(state.last_time);
    let row = database
        .applied()?
        .ok_or_else(|| unusable("there is none"))?;
    let applied = Applied::from_snapshot(&row.snapshot)
        .map_err(|fault| StateFault::Applied(fault.to_string()))?;
    if applied.digest() != row.digest || state.policy_digest != Some(row.digest) {
        return Err(unusable("its digest is another than the one applied"));
    }
    let current = Current::read(database, Arc::new(applied), trust, clock.now());
    let current = current.map_err(|fault| match fault {
        CurrentFault::Store(fault) => StateFault::from(fault),
        fault => unusable(&fault.to_string()),
    })?;
    Ok((current, clock))
}
