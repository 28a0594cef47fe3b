//! Heads of the record that others have, and that its anchors may not be: what witnesses cosigned, kept beside the anchor,
//! and what a witness of the configuration says it cosigned last. They are nobody's word before a ledger key of this folder
//! is found to have signed them; then a record that does not go on from there is not the one that was shown.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;

use lychgate_gate::ledger::{Difference, contradicts};
use lychgate_keys::TrustBundle;
use lychgate_ledger::KeyName;
use lychgate_policy::Applied;
use lychgate_store::Store;

use crate::accepted::Accepted;
use crate::anchor::Anchors;
use crate::outward::Outward;
use crate::state::StateFault;
use crate::witness::latest_path;

/// Where a head is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An anchor: a file that the gate writes.
    Anchor(PathBuf),
    /// A head that a witness cosigned, in a file beside the anchor.
    Cosigned(PathBuf),
    /// A witness of the applied configuration, by its name there.
    Witness(String),
}

impl Place {
    /// The one word for it in receipts.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Anchor(_) => "anchor",
            Self::Cosigned(_) => "cosigned",
            Self::Witness(_) => "witness",
        }
    }

    /// The file, when it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Anchor(path) | Self::Cosigned(path) => Some(path),
            Self::Witness(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anchor(path) => write!(out, "anchor `{}`", path.display()),
            Self::Cosigned(path) => write!(out, "cosigned head `{}`", path.display()),
            Self::Witness(name) => write!(out, "witness `{name}`"),
        }
    }
}

/// A head, not yet believed.
pub(crate) struct Kept {
    pub(crate) place: Place,
    pub(crate) note: Vec<u8>,
}

/// How a record stands to the heads others have of it.
pub(crate) enum Found {
    /// It goes on from each that is proven, and from each that a person has decided about.
    Agrees,
    /// Something is shown that is not proven to be of this log: worth a line, and no refusal.
    Unproven,
    /// A ledger key of this folder signed a head that this record does not go on from.
    Differs(Box<Difference>, Kept),
}

/// Everything that is kept of a log elsewhere. Blocks for as long as a witness may take, and asks all of them at once; one
/// that does not answer says nothing here.
pub(crate) fn gather(anchors: &Anchors, applied: &Applied, log: &KeyName) -> Vec<Kept> {
    let mut found = Vec::new();
    for file in anchors.cosigned() {
        // What cannot be read proves nothing.
        if let Ok(Some(note)) = file.read() {
            let place = Place::Cosigned(file.path().to_owned());
            found.push(Kept { place, note });
        }
    }
    let path = latest_path(log.as_str());
    let path = path.as_str();
    let witnesses = applied.ledger().witnesses();
    let witnesses = witnesses.filter_map(|(name, one)| Some((name, one.address()?)));
    thread::scope(|scope| {
        let asked: Vec<_> = witnesses
            .map(|(name, to)| (name, scope.spawn(move || ask(to, path))))
            .collect();
        for (name, asked) in asked {
            if let Ok(Some(note)) = asked.join() {
                let place = Place::Witness(name.to_owned());
                found.push(Kept { place, note });
            }
        }
    });
    found
}

/// What a witness cosigned last, when it tells; only ours do.
fn ask(to: SocketAddr, path: &str) -> Option<Vec<u8>> {
    let (status, body) = Outward::new(vec![to]).get_blocking(to, path).ok()?;
    (status == 200).then_some(body)
}

//= PROFILE §10: a process that rewrites the gate's own files is detected against what is kept elsewhere
/// Compares the record with the heads of it that others have. `kept` was gathered before: the record only grows.
pub(crate) fn compare(
    store: &dyn Store,
    trust: &TrustBundle,
    log: &KeyName,
    kept: Vec<Kept>,
    accepted: &Accepted,
) -> Result<Found, StateFault> {
    let mut all = Found::Agrees;
    for one in kept {
        let Some(difference) = contradicts(store, trust, log, &one.note)? else {
            continue;
        };
        if accepted.covers(&one.note, store, trust, log)? {
            continue;
        }
        if matches!(difference, Difference::Record(_)) {
            return Ok(Found::Differs(Box::new(difference), one));
        }
        all = Found::Unproven;
    }
    Ok(all)
}
