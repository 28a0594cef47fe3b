//! Opening a state folder for the one gate that may run on it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use lychgate_core::receipt::Isolation;
use lychgate_gate::{Current, LedgerSigner, Parts, SteadyClock};
use lychgate_keys::{KeyRing, Sealer, SystemEntropy, TrustBundle};
use lychgate_policy::Applied;
use lychgate_store::{self as store, SqliteStore, Store};

use crate::reserved::{LivePaths, Places};
use crate::state::{Lock, StateFault, StateFolder};

/// What a gate must know beside its state folder.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The configuration file, which no sink may touch.
    pub config_file: Option<PathBuf>,
    /// The client user's home, whose clients' configuration files no sink may touch.
    pub home: Option<PathBuf>,
    /// The user the clients run as, when the operator says that it is not the gate's own. Only then, and only when it
    /// is true, do receipts say `isolation: separate-user`.
    pub client_uid: Option<u32>,
}

/// Everything a gate is made of, and the lock that makes it the only one. Keep the lock as long as the gate.
pub struct Opened {
    /// For `lychgate_gate::Gate::assemble`.
    pub parts: Parts,
    /// The lock.
    pub lock: Lock,
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
        let signer = LedgerSigner::new(self.read_log_name()?, Arc::clone(&ring.ledger));
        let database = SqliteStore::open(&store::Options::new(self.database()), Arc::new(signer))?;
        let (current, clock) = read_current(&database)?;
        let places = Places {
            state: self.path().to_owned(),
            config_file: options.config_file.clone(),
            home: options.home.clone(),
        };
        let own = rustix::process::geteuid().as_raw();
        let isolation = match options.client_uid {
            Some(uid) if uid != own => Isolation::SeparateUser,
            _ => Isolation::SameUser,
        };
        let parts = Parts {
            store: Arc::new(database),
            ring,
            trust,
            sealer,
            clock: Arc::new(clock),
            entropy: Arc::new(SystemEntropy),
            paths: Arc::new(LivePaths::new(&places)),
            isolation,
            current,
        };
        Ok(Opened { parts, lock })
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

fn read_current(database: &SqliteStore) -> Result<(Current, SteadyClock), StateFault> {
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
    let revoked = database.revocations()?;
    let current = Current {
        epochs: state.epochs,
        purpose_epoch: state.purpose_epoch,
        policy_digest: row.digest,
        applied: Arc::new(applied),
        revoked: revoked
            .into_iter()
            .map(|revocation| revocation.subject)
            .collect(),
    };
    Ok((current, clock))
}
