//! The applied configuration: closed, canonical, compiled. The gate runs from this and from nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use lychgate_core::act::SourceType;
use lychgate_core::json::{self, CaseRule};
use lychgate_core::{ConsequenceClass, Digest};

use crate::approvers::ApproverGroup;
use crate::check;
use crate::diagnostics::Problem;
use crate::ledger::Ledger;
use crate::model::{Agent, Limits, Model, Principal, Profile, Purpose, Reconcile};
use crate::rules;
use crate::server::{Registry, Server};
use crate::telemetry::Telemetry;

/// A configuration as it was applied, with every pinned definition in it.
pub struct Applied {
    pub(crate) model: Model,
    snapshot: Vec<u8>,
    digest: Digest,
    servers: BTreeMap<String, Server>,
}

/// A snapshot that the gate does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored configuration is not usable: {0}")]
pub struct SnapshotFault(String);

impl Applied {
    /// Checks and compiles; all problems are reported.
    pub(crate) fn compile(model: Model) -> Result<Self, Vec<Problem>> {
        let mut problems = check::check(&model);
        // Compiled here, so that no decision waits for it.
        if let Err(fault) = rules::of(model.profile) {
            let message = format!("the profile's policies cannot be used: {fault}");
            problems.push(Problem::new(&["profile"], message));
        }
        let snapshot = match json::to_canonical(&model) {
            Ok(snapshot) => snapshot,
            Err(fault) => {
                problems.push(Problem::new(
                    &[],
                    format!("configuration has no canonical form: {fault}"),
                ));
                Vec::new()
            }
        };
        let registry = Arc::new(Registry {
            destinations: model.destinations.clone(),
            allowed: model.jurisdictions.clone(),
        });
        let mut servers = BTreeMap::new();
        for (name, server) in &model.servers {
            match Server::compile(name, server, &model, &registry) {
                Ok(server) => drop(servers.insert(name.clone(), server)),
                Err(faults) => problems.extend(faults.into_iter().map(|fault| {
                    let path = ["servers", name.as_str(), fault.0, fault.1.as_str()];
                    Problem::new(&path, format!("input schema of `{}` cannot be used: {}; `enabled = false` in its entry withholds it", fault.1, fault.2))
                })),
            }
        }
        if snapshot.len() > SNAPSHOT_BYTES {
            problems.push(Problem::new(
                &[],
                "configuration and pinned definitions are larger than 64 MiB",
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let digest = Digest::sha256(&snapshot);
        Ok(Self {
            model,
            snapshot,
            digest,
            servers,
        })
    }

    /// The canonical bytes, pinned definitions included: what the store keeps and the digest is over.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        self.snapshot.clone()
    }

    /// Reads a snapshot back, strictly: only the bytes that [`Applied::snapshot`] gives are taken.
    ///
    /// # Errors
    /// When the bytes are not canonical, not closed, or no longer hold together.
    pub fn from_snapshot(bytes: &[u8]) -> Result<Self, SnapshotFault> {
        let applied = Self::compile(model_of(bytes)?).map_err(|problems| {
            SnapshotFault(
                problems
                    .into_iter()
                    .next()
                    .map_or_else(String::new, |problem| problem.message),
            )
        })?;
        if applied.snapshot == bytes {
            Ok(applied)
        } else {
            Err(SnapshotFault("it is not in canonical form".to_owned()))
        }
    }

    /// SHA-256 over the snapshot: the policy digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Which table of rules holds.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.model.profile
    }

    /// True: what would ask is denied.
    #[must_use]
    pub fn unattended(&self) -> bool {
        self.model.unattended
    }

    /// On whose behalf.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.model.principal
    }

    /// The agent behind the clients.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.model.agent
    }

    /// What the agent is for.
    #[must_use]
    pub fn purpose(&self) -> &Purpose {
        &self.model.purpose
    }

    /// A purpose that a session may choose, by its id: what it is declared as.
    #[must_use]
    pub fn declared(&self, purpose: &str) -> Option<&str> {
        if self.model.purpose.id == purpose {
            return Some(&self.model.purpose.declared);
        }
        self.model.purposes.get(purpose).map(String::as_str)
    }

    /// The ids of the purposes that a session may choose, the usual one first.
    pub fn purposes(&self) -> impl Iterator<Item = &str> {
        let usual = std::iter::once(self.model.purpose.id.as_str());
        usual.chain(self.model.purposes.keys().map(String::as_str))
    }

    /// Whether any purpose, usual or further, differs from another configuration's.
    #[must_use]
    pub fn purposes_differ(&self, other: &Self) -> bool {
        self.model.purpose != other.model.purpose || self.model.purposes != other.model.purposes
    }

    /// Destinations that the registry names.
    #[must_use]
    pub fn destination_names(&self) -> Vec<String> {
        self.model.destinations.keys().cloned().collect()
    }

    /// Whether acts need a consent record.
    #[must_use]
    pub fn consent_required(&self) -> bool {
        self.model.consent.required
    }

    /// The bounds.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.model.limits
    }

    /// When an act in doubt is looked up at its destination.
    #[must_use]
    pub fn reconcile(&self) -> &Reconcile {
        &self.model.reconcile
    }

    /// Every group of approvers, by name.
    pub fn approvers(&self) -> impl Iterator<Item = (&str, &ApproverGroup)> {
        let groups = self.model.approvers.iter();
        groups.map(|(name, group)| (name.as_str(), group))
    }

    /// The groups of approvers that an act of this class and tool is for, by name; each of them must say yes.
    pub fn approvers_for<'a>(
        &'a self,
        class: ConsequenceClass,
        server: &'a str,
        function: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a ApproverGroup)> {
        let groups = self.model.approvers.iter();
        groups
            .filter(move |(_, group)| group.is_for(class, server, function))
            .map(|(name, group)| (name.as_str(), group))
    }

    /// Who keeps the ledger's heads besides the gate.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.model.ledger
    }

    /// What the gate tells of itself, and to whom.
    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.model.telemetry
    }

    /// What the operator vouches for; `None` leaves provenance UNKNOWN.
    #[must_use]
    pub fn vouch(&self) -> Option<SourceType> {
        self.model.vouch
    }

    /// A server by its name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.get(name)
    }

    /// Every server, by name.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &Server> {
        self.servers.values()
    }
}

/// Every name in any server's `pass_env`, from a snapshot that is not compiled: for whoever starts the gate.
///
/// # Errors
/// When the bytes are no snapshot.
pub fn passed_names(snapshot: &[u8]) -> Result<BTreeSet<String>, SnapshotFault> {
    let servers = model_of(snapshot)?.servers;
    Ok(servers
        .into_values()
        .flat_map(|server| server.pass_env)
        .collect())
}

fn model_of(snapshot: &[u8]) -> Result<Model, SnapshotFault> {
    let limits = json::Limits {
        max_bytes: SNAPSHOT_BYTES,
        max_depth: 80,
        case: CaseRule::Allow,
    };
    let value = json::parse(snapshot, &limits).map_err(|fault| SnapshotFault(fault.to_string()))?;
    json::from_value::<Model>(&value).map_err(|fault| SnapshotFault(fault.to_string()))
}

impl fmt::Debug for Applied {
    /// Without the content, which may hold secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Applied")
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// Whether the agent's allowlist names the function, or its server as a whole.
#[must_use]
pub fn allowlisted(applied: &Applied, server: &str, function: &str) -> bool {
    let named = |rule: &String| {
        rule == server
            || rule
                .split_once('/')
                .is_some_and(|(one, other)| one == server && other == function)
    };
    applied.model.agent.allow.iter().any(named)
}

/// The largest snapshot, in bytes.
const SNAPSHOT_BYTES: usize = 64 << 20;
