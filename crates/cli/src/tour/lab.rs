//! A whole gate in a throw-away folder: real keys, a real store, an embedded configuration. The tour walks through one,
//! the bench measures one; neither touches the user's own state.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lychgate_core::id::GateId;
use lychgate_core::json::Value;
use lychgate_core::outside::{Clock, ten};
use lychgate_core::receipt::{Approver, Isolation};
use lychgate_core::{Timestamp, jcs, json};
use lychgate_gate::first::first_receipts;
use lychgate_gate::receipts::Standing;
use lychgate_gate::{Current, Gate, Parts, RealPaths, RingSigner, SteadyClock, log_name};
use lychgate_keys::{ApproverKey, DrawnEntropy, KeyRing, Role, Sealer, SigningKey, SystemEntropy};
use lychgate_policy::{Applied, Definition, Pins, load};
use lychgate_server::StateFolder;
use lychgate_store::{self as store, Committed, SqliteStore, Store, Txn};

/// A gate with nothing in it yet, and what its owner holds.
pub(crate) struct Lab {
    /// The gate.
    pub(crate) gate: Arc<Gate>,
    /// The approver's key, opened; `None` when the lab was made without one.
    pub(crate) approver: Option<SigningKey>,
    /// What the gate takes for the time.
    pub(crate) clock: Arc<LabClock>,
}

/// Why a lab could not be set up, or a step in it failed outright.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Fault(pub(crate) String);

/// Gives a failure its place.
pub(crate) fn at<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Fault {
    move |error| Fault(format!("{what}: {error}"))
}

/// The gate's clock, which the tour may move forward instead of waiting.
#[derive(Debug)]
pub(crate) struct LabClock {
    steady: SteadyClock,
    ahead: AtomicU64,
}

impl LabClock {
    fn start() -> Arc<Self> {
        Arc::new(Self {
            steady: SteadyClock::start(Timestamp::from_millis(0)),
            ahead: AtomicU64::new(0),
        })
    }

    /// Moves the gate's time forward.
    pub(crate) fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.ahead.fetch_add(by, Ordering::AcqRel);
    }
}

impl Clock for LabClock {
    fn now(&self) -> Timestamp {
        let ahead = Duration::from_millis(self.ahead.load(Ordering::Acquire));
        self.steady.now().after(ahead)
    }
}

/// What a lab is made of.
pub(crate) struct Plan<'a> {
    /// The state folder; it exists, and is empty.
    pub(crate) state: &'a Path,
    /// `lychgate.toml`.
    pub(crate) config: &'a str,
    /// The pinned definitions.
    pub(crate) pins: &'a Pins,
    /// Makes an approver's key under this passphrase.
    pub(crate) passphrase: Option<&'a [u8]>,
}

impl Lab {
    /// Makes keys, store and gate, applies the configuration, and lets the gate start as any gate does.
    pub(crate) async fn open(plan: &Plan<'_>) -> Result<Self, Fault> {
        let clock = LabClock::start();
        let now = clock.now();
        let keys = plan.state.join("keys");
        let (ring, mut trust) = KeyRing::create(&keys, now).map_err(at("keys"))?;
        let sealer = Sealer::create(&keys.join("seal.key")).map_err(at("seal key"))?;
        let approver = match plan.passphrase {
            Some(passphrase) => Some(approver(&keys, passphrase, &mut trust, now)?),
            None => None,
        };
        trust
            .write(&plan.state.join("trust.json"))
            .map_err(at("trust bundle"))?;
        let applied = Arc::new(read_config(plan.config, plan.pins)?);
        let random = ten(&SystemEntropy).map_err(at("log name"))?;
        let log = log_name(GateId::new(now, random)).map_err(at("log name"))?;
        let state = StateFolder::at(plan.state).map_err(at("state folder"))?;
        state.write_log_name(&log).map_err(at("log name"))?;
        let signer = RingSigner::new(log, &ring, &trust)
            .map(Arc::new)
            .map_err(at("signer"))?;
        let store = SqliteStore::open(&store::Options::new(plan.state.join("store.db")), signer)
            .map_err(at("store"))?;
        let store: Arc<dyn Store> = Arc::new(store);
        let first = Applying {
            applied: &applied,
            trust: &trust,
            now,
            epochs: store.protected_state().map_err(at("store"))?.epochs,
        };
        let current = first.apply(&store).await?;
        let gate = Gate::assemble(Parts {
            store,
            ring,
            trust,
            sealer,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            entropy: Arc::new(DrawnEntropy::default()),
            paths: Arc::new(RealPaths::new([plan.state.to_owned()])),
            isolation: Isolation::SameUser,
            current,
        })
        .map_err(at("gate"))?;
        gate.recover().await.map_err(at("start"))?;
        Ok(Self {
            gate,
            approver,
            clock,
        })
    }
}

/// Reads an embedded configuration.
pub(crate) fn read_config(text: &str, pins: &Pins) -> Result<Applied, Fault> {
    load(text, Path::new("lychgate.toml"), pins).map_err(at("embedded configuration"))
}

fn approver(
    keys: &Path,
    passphrase: &[u8],
    trust: &mut lychgate_keys::TrustBundle,
    now: Timestamp,
) -> Result<SigningKey, Fault> {
    let path = keys.join("approver.key");
    let (_, public) = ApproverKey::create(&path, passphrase, now).map_err(at("approver key"))?;
    trust
        .add(Role::Approver, public, now)
        .map_err(at("approver key"))?;
    ApproverKey::open(&path, passphrase).map_err(at("approver key"))
}

/// The first configuration of a new store.
struct Applying<'a> {
    applied: &'a Arc<Applied>,
    trust: &'a lychgate_keys::TrustBundle,
    now: Timestamp,
    epochs: lychgate_core::Epochs,
}

impl Applying<'_> {
    async fn apply(&self, store: &Arc<dyn Store>) -> Result<Current, Fault> {
        let txn = store::Apply {
            expected: None,
            digest: self.applied.digest(),
            snapshot: self.applied.snapshot(),
            purposes_moved: false,
            authority_moved: false,
            now: self.now,
            receipts: self.receipts()?,
        };
        match store.commit(Txn::Apply(txn)).await {
            Ok(Committed::Done(_)) => {}
            Ok(Committed::Rejected(why)) => return Err(at("apply")(why)),
            Err(fault) => return Err(at("apply")(fault)),
        }
        let applied = Arc::clone(self.applied);
        Current::read(store.as_ref(), applied, self.trust, self.now).map_err(at("store"))
    }

    /// The same first lines that any state folder begins with.
    fn receipts(&self) -> Result<Vec<store::Entry>, Fault> {
        let random = ten(&SystemEntropy).map_err(at("randomness"))?;
        let standing = Standing {
            gate_id: GateId::new(self.now, random),
            isolation: Isolation::SameUser,
            approver: match self.trust.current(Role::Approver) {
                Some(_) => Approver::Key,
                None => Approver::None,
            },
        };
        let digest = self.applied.digest();
        first_receipts(standing, self.now, self.epochs, self.trust, digest).map_err(at("receipts"))
    }
}

/// One tool of an embedded server: its definition, and the digest a catalogue entry names.
pub(crate) fn definition(json_text: &str) -> Result<Definition, Fault> {
    let value = json::parse(json_text.as_bytes(), &json::Limits::CANON)
        .map_err(at("embedded definition"))?;
    Definition::parse(value).map_err(at("embedded definition"))
}

/// The pin file of one embedded server.
pub(crate) fn pins(server: &str, definitions: &[Definition]) -> Result<Pins, Fault> {
    let tools = definitions.iter().map(|one| one.value.clone()).collect();
    let members = vec![
        (
            "version".to_owned(),
            json::to_value(&1_u64).map_err(at("pins"))?,
        ),
        ("server".to_owned(), Value::from(server)),
        ("tools".to_owned(), Value::Array(tools)),
    ];
    let object = json::Object::from_members(members).map_err(at("pins"))?;
    Ok([(server.to_owned(), jcs::to_bytes(&Value::Object(object)))].into())
}

/// A folder that is gone when it is dropped, unless it is to be kept.
pub(crate) struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    /// A fresh folder (mode 0700) under `parent`.
    pub(crate) fn fresh(parent: &Path, name: &str) -> Result<Self, Fault> {
        use std::os::unix::fs::DirBuilderExt as _;
        let random = ten(&SystemEntropy).map_err(at("randomness"))?;
        let suffix = lychgate_core::digest::b64::encode(&random);
        std::fs::create_dir_all(parent).map_err(at("folder"))?;
        let parent = parent.canonicalize().map_err(at("folder"))?;
        let path = parent.join(format!("{name}-{suffix}"));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(at("folder"))?;
        Ok(Self { path, keep: false })
    }

    /// Keeps the folder.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder inside it.
    pub(crate) fn inside(&self, name: &str) -> Result<PathBuf, Fault> {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = self.path.join(name);
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(at("folder"))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed lies in the folder for temporary things.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
