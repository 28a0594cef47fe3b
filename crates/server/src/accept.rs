//! A record that its anchor contradicts: what a person is shown, and going on with it (PROFILE §10).

use std::path::PathBuf;
use std::sync::Arc;

use lychgate_core::id::GateId;
use lychgate_core::outside::{Clock as _, ten};
use lychgate_core::signed::KeyId;
use lychgate_core::{Digest, Timestamp};
use lychgate_gate::ledger::{Acceptance, Difference, Examined, acceptance_receipt, examine};
use lychgate_gate::receipts::Standing;
use lychgate_gate::{RingSigner, SteadyClock};
use lychgate_keys::verdict::{AnchorVerdict, Reason};
use lychgate_keys::{KeyRing, Role, SystemEntropy, TrustBundle};
use lychgate_store::{
    self as store, Committed, HeadRow, Lapse, Rotate, SqliteStore, Store, TicketQuery, TicketState,
    Txn,
};

use crate::accepted::Accepted;
use crate::anchor::{AnchorFile, Anchors};
use crate::elsewhere::{self, Found, Place};
use crate::open::{OpenOptions, read_current};
use crate::state::{StateFault, StateFolder, approver_of};

/// A record and an anchor that cannot both be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// How they differ.
    pub difference: Difference,
    /// What keeps the head that the record contradicts.
    pub place: Place,
    /// That head's bytes, a signed note.
    pub anchor: Vec<u8>,
    /// The record's newest signed head; size 0 and no note when the record is empty.
    pub head: HeadRow,
    /// Whether an approver's key must say yes; without one (`init --no-approver`) whoever owns the folder decides.
    pub needs_approver: bool,
}

impl Contradiction {
    /// What an approver signs over: digests of anchor and head.
    pub fn digests(&self) -> (Digest, Digest) {
        (
            Digest::sha256(&self.anchor),
            Digest::sha256(&self.head.note),
        )
    }
}

/// A person's decision to go on.
#[derive(Clone, Debug)]
pub enum Decision {
    /// With the approver's signature.
    Signed(Box<AnchorVerdict>),
    /// Where there is no approver.
    Unsigned(Reason),
}

impl StateFolder {
    /// How the record contradicts its anchors or what witnesses have of it, the first of them; `None` when it does not.
    /// Takes no lock and changes nothing: a gate that runs has compared already. Blocks while witnesses are asked.
    ///
    /// # Errors
    /// When the folder is not fit, or anything in it cannot be read.
    pub fn contradiction(
        &self,
        options: &OpenOptions,
    ) -> Result<Option<Contradiction>, StateFault> {
        self.check()?;
        let trust = TrustBundle::read(&self.trust())?;
        let database = SqliteStore::open_reading(&self.database())?;
        self.compare(&database, &trust, options)
    }

    pub(crate) fn compare(
        &self,
        database: &dyn Store,
        trust: &TrustBundle,
        options: &OpenOptions,
    ) -> Result<Option<Contradiction>, StateFault> {
        let log = self.read_log_name()?;
        let (current, _) = read_current(database, trust)?;
        let anchors = options.anchors_of(&log, &current.applied);
        let mut found = None;
        for file in anchors.files() {
            let read = file.read().map_err(StateFault::io("read", file.path()))?;
            let Some(anchor) = read else { continue };
            if let Examined::Differs(difference) = examine(database, trust, &log, Some(&anchor))? {
                let place = Place::Anchor(file.path().to_owned());
                found = Some((difference, place, anchor));
                break;
            }
        }
        if found.is_none() {
            let kept = elsewhere::gather(&anchors, &current.applied, &log);
            let accepted = Accepted::read(self)?;
            let compared = elsewhere::compare(database, trust, &log, kept, &accepted)?;
            if let Found::Differs(difference, kept) = compared {
                found = Some((*difference, kept.place, kept.note));
            }
        }
        let Some((difference, place, anchor)) = found else {
            return Ok(None);
        };
        let head = database.newest_head()?.unwrap_or(HeadRow {
            size: 0,
            note: Vec::new(),
        });
        Ok(Some(Contradiction {
            difference,
            place,
            anchor,
            head,
            needs_approver: trust.current(Role::Approver).is_some(),
        }))
    }

    //= PROFILE §10: consumed, spent and denied do not come back after a restore, and the decision is a receipt
    /// Goes on with a record that its anchor contradicts. The record gets a receipt of it for ever, every live ticket
    /// lapses, the authority epoch moves, the contradicted anchor is kept beside a new one; of a witness, which forgets
    /// nothing, what it showed is kept with the decision. Returns where it is kept.
    ///
    /// What the lost lines said cannot be brought back: revocations, and acts whose effects they recorded.
    ///
    /// # Errors
    /// When another gate has the folder, record and anchor do not differ, the decision is not the approver's or for
    /// another pair, or anything cannot be written; nothing is then decided.
    pub fn accept_anchor(
        &self,
        options: &OpenOptions,
        decision: &Decision,
    ) -> Result<PathBuf, StateFault> {
        let _lock = self.lock()?;
        let trust = TrustBundle::read(&self.trust())?;
        let ring = KeyRing::open(&self.keys(), &trust)?;
        let log = self.read_log_name()?;
        let signer = RingSigner::new(log.clone(), &ring, &trust)?;
        let database = self.open_store(signer)?;
        let found = self
            .compare(&database, &trust, options)?
            .ok_or(StateFault::NothingToAccept)?;
        let state = database.protected_state()?;
        let now = SteadyClock::start(state.last_time).now();
        let (approver, reason) = check(&found, decision, &trust, now)?;
        let standing = Standing {
            gate_id: GateId::new(now, ten(&SystemEntropy)?),
            isolation: options.isolation(),
            approver: approver_of(&trust),
        };
        let what = Acceptance {
            difference: &found.difference,
            place: found.place.word(),
            anchor: &found.anchor,
            head: &found.head.note,
            size: found.head.size,
            approver: approver.as_ref(),
            reason: &reason,
        };
        let receipt = acceptance_receipt(standing, now, state.epochs, &what)?;
        // First, so that an interruption leaves less to license, never more.
        commit(&database, Txn::Lapse(live_tickets(&database, now)?))?;
        let receipts = vec![receipt];
        commit(&database, Txn::Rotate(Rotate { now, receipts }))?;
        self.put_away(&found, decision, &database, now)
    }

    /// Keeps the contradicted head where it contradicts no more.
    fn put_away(
        &self,
        found: &Contradiction,
        decision: &Decision,
        database: &SqliteStore,
        now: Timestamp,
    ) -> Result<PathBuf, StateFault> {
        let Some(path) = found.place.file() else {
            let verdict = match decision {
                Decision::Signed(verdict) => Some(verdict.as_ref().clone()),
                Decision::Unsigned(_) => None,
            };
            let accepted = Accepted::read(self)?;
            return accepted.add(self, &found.anchor, &found.head.note, verdict);
        };
        let file = AnchorFile::at(path.to_owned());
        let aside = file
            .set_aside(now)
            .map_err(StateFault::io("move", file.path()))?;
        if matches!(found.place, Place::Anchor(_))
            && let Some(head) = database.newest_head()?
        {
            let written = file.write(&head);
            written.map_err(StateFault::io("write", file.path()))?;
        }
        Ok(aside)
    }

    /// The anchors of the applied configuration, for whoever reads them. Takes no lock and changes nothing.
    ///
    /// # Errors
    /// When the folder is not fit, or its configuration cannot be read.
    pub fn anchors(&self, options: &OpenOptions) -> Result<Anchors, StateFault> {
        self.check()?;
        let database = SqliteStore::open_reading(&self.database())?;
        let (current, _) = read_current(&database, &TrustBundle::read(&self.trust())?)?;
        Ok(options.anchors_of(&self.read_log_name()?, &current.applied))
    }

    pub(crate) fn open_store(&self, signer: RingSigner) -> Result<SqliteStore, StateFault> {
        let opened = SqliteStore::open(&store::Options::new(self.database()), Arc::new(signer));
        opened.map_err(|fault| match fault {
            store::StoreFault::Record(what) => StateFault::Damaged {
                path: self.database(),
                what,
            },
            other => other.into(),
        })
    }
}

/// Whether the decision is for what was found, and by whom it may be made.
fn check(
    found: &Contradiction,
    decision: &Decision,
    trust: &TrustBundle,
    now: Timestamp,
) -> Result<(Option<KeyId>, Reason), StateFault> {
    match decision {
        Decision::Signed(verdict) => {
            let signed = trust.verify_live(Role::Approver, verdict.as_ref(), now);
            if signed.is_err() || (verdict.anchor, verdict.head) != found.digests() {
                return Err(StateFault::NotAccepted);
            }
            Ok((Some(verdict.mark.key_id.clone()), verdict.reason.clone()))
        }
        Decision::Unsigned(_) if found.needs_approver => Err(StateFault::NotAccepted),
        Decision::Unsigned(reason) => Ok((None, reason.clone())),
    }
}

fn live_tickets(database: &dyn Store, now: Timestamp) -> Result<Lapse, StateFault> {
    let mut lapse = Lapse::at(now);
    for state in [TicketState::Pending, TicketState::Approved] {
        let rows = database.tickets(&TicketQuery::newest(Some(state), usize::MAX))?;
        let unused = rows.into_iter().filter(|row| row.consumed_by.is_none());
        lapse.tickets.extend(unused.map(|row| row.id));
    }
    Ok(lapse)
}

fn commit(database: &dyn Store, txn: Txn) -> Result<(), StateFault> {
    match database.commit(txn).wait()? {
        Committed::Done(_) => Ok(()),
        Committed::Rejected(why) => Err(StateFault::Rejected(why)),
    }
}
