//! Heads that the record does not go on from, and that a person has decided to go on in spite of. An anchor's file is moved
//! away then; a witness forgets nothing, so its head is remembered here, with the approver's signature: a copy of this file
//! in an older folder, or one that somebody else made, covers nothing.

use std::fs;
use std::io;
use std::path::PathBuf;

use lychgate_core::Digest;
use lychgate_core::json::{self, Limits};
use lychgate_gate::ledger::contradicts;
use lychgate_keys::verdict::AnchorVerdict;
use lychgate_keys::{Role, TrustBundle};
use lychgate_ledger::{KeyName, SignedCheckpoint};
use lychgate_store::Store;
use serde::{Deserialize, Serialize};

use crate::anchor::replace;
use crate::state::{StateFault, StateFolder, sync_folder};

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Accepted(Vec<AcceptedHead>);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedHead {
    /// The head that the record does not go on from: a signed note.
    head: String,
    /// The record's own newest head when the person decided: a signed note.
    record: String,
    /// Absent where there is no approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    verdict: Option<AnchorVerdict>,
}

impl Accepted {
    /// As kept. A file that cannot be read covers nothing: then the question is asked again.
    pub(crate) fn read(state: &StateFolder) -> Result<Self, StateFault> {
        let path = file(state);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(fault) => return Err(StateFault::io("read", &path)(fault)),
        };
        let read = json::parse(&bytes, &Limits::OBJECT)
            .ok()
            .and_then(|value| json::from_value(&value).ok());
        Ok(Self(read.unwrap_or_default()))
    }

    /// Adds one; on stable storage when this returns. Gives the file.
    pub(crate) fn add(
        mut self,
        state: &StateFolder,
        head: &[u8],
        record: &[u8],
        verdict: Option<AnchorVerdict>,
    ) -> Result<PathBuf, StateFault> {
        let path = file(state);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push(AcceptedHead {
            head: text(head),
            record: text(record),
            verdict,
        });
        let bytes = json::to_canonical(&self.0)?;
        replace(&path, &bytes).map_err(StateFault::io("write", &path))?;
        sync_folder(state.path())?;
        Ok(path)
    }

    /// Whether a person has decided about this head, for a record that this one goes on from. Cosignatures added since
    /// do not matter; the head itself does.
    pub(crate) fn covers(
        &self,
        note: &[u8],
        store: &dyn Store,
        trust: &TrustBundle,
        log: &KeyName,
    ) -> Result<bool, StateFault> {
        for one in &self.0 {
            if same_head(note, one.head.as_bytes())
                && one.decided(trust)
                && contradicts(store, trust, log, one.record.as_bytes())?.is_none()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl AcceptedHead {
    /// Whether the decision is that of whoever decides here.
    fn decided(&self, trust: &TrustBundle) -> bool {
        match &self.verdict {
            None => trust.current(Role::Approver).is_none(),
            Some(verdict) => {
                let signed = trust.verify_at(Role::Approver, verdict, verdict.at);
                let digests =
                    [&self.head, &self.record].map(|note| Digest::sha256(note.as_bytes()));
                signed.is_ok() && [verdict.anchor, verdict.head] == digests
            }
        }
    }
}

fn same_head(one: &[u8], other: &[u8]) -> bool {
    match (SignedCheckpoint::parse(one), SignedCheckpoint::parse(other)) {
        (Ok(one), Ok(other)) => one.checkpoint() == other.checkpoint(),
        _ => false,
    }
}

fn file(state: &StateFolder) -> PathBuf {
    state.path().join("accepted-heads.json")
}
