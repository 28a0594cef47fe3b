//! Control delivery evidence (the guide): of each control, at each end of each connection there was when it was committed,
//! whether it was received, enforced, observed. What nobody saw stays visible as missing, what does not fit as a conflict;
//! neither is ever inferred. `docs/decisions/2026-12-01-control-delivery.md` says what each word means here.

mod acknowledge;
mod flight;
mod recall;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lychgate_core::Timestamp;
use lychgate_core::control::{ControlEnd, ControlFinding, ControlPart, ControlStage};
use lychgate_core::id::HolderId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_store as store;
use tokio::sync::watch;

pub(crate) use self::flight::{Flight, Flights};
use crate::control::{ControlRefused, refused};
use crate::current::Current;
use crate::gate::Gate;
use crate::receipts::Draft;
use crate::session::Session;
use crate::sink::FinalitySink;

/// A control whose way is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Its number: [`lychgate_core::Epochs::control`] of the epochs it made.
    pub number: u64,
    /// What it was.
    pub kind: ReceiptKind,
    /// When it was committed: from then on nothing older is consumed.
    pub at: Timestamp,
    /// What it is about.
    pub what: String,
    /// Whom it concerns: the ends there were when it was committed.
    pub ends: Vec<End>,
}

/// One end of a connection, and what was seen of the control there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Sink or client.
    pub end: ControlEnd,
    /// The connection.
    pub holder: HolderId,
    /// The sink behind it.
    pub sink: String,
    /// A sink: when it had taken the new epochs.
    pub received: Option<Timestamp>,
    /// A sink: when it had nothing older in flight.
    pub enforced: Option<Timestamp>,
    /// A client: when its process had said that it was told.
    pub observed: Option<Timestamp>,
    /// Why a step that is not there cannot come, or does not fit.
    pub finding: Option<(ControlStage, ControlFinding)>,
}

impl End {
    fn new(end: ControlEnd, holder: HolderId, sink: String) -> Self {
        Self {
            end,
            holder,
            sink,
            received: None,
            enforced: None,
            observed: None,
            finding: None,
        }
    }

    /// The first step that was not seen.
    pub fn lacks(&self) -> Option<ControlStage> {
        match self.end {
            ControlEnd::Sink if self.received.is_none() => Some(ControlStage::Received),
            ControlEnd::Sink if self.enforced.is_none() => Some(ControlStage::Enforced),
            ControlEnd::Client if self.observed.is_none() => Some(ControlStage::Observed),
            ControlEnd::Sink | ControlEnd::Client => None,
        }
    }

    /// Whether everything was seen, and nothing contradicts it.
    pub fn is_acknowledged(&self) -> bool {
        self.lacks().is_none() && self.finding.is_none()
    }

    fn see(&mut self, stage: ControlStage, at: Timestamp) {
        match stage {
            ControlStage::Emitted => {}
            ControlStage::Received => self.received = self.received.or(Some(at)),
            ControlStage::Enforced => self.enforced = self.enforced.or(Some(at)),
            ControlStage::Observed => self.observed = self.observed.or(Some(at)),
        }
    }

    fn has(&self, stage: ControlStage) -> bool {
        match stage {
            ControlStage::Emitted => true,
            ControlStage::Received => self.received.is_some(),
            ControlStage::Enforced => self.enforced.is_some(),
            ControlStage::Observed => self.observed.is_some(),
        }
    }

    fn part(
        &self,
        number: u64,
        stage: ControlStage,
        finding: Option<ControlFinding>,
    ) -> ControlPart {
        ControlPart {
            number,
            stage,
            end: Some(self.end),
            holder_id: Some(self.holder),
            sink_id: Some(self.sink.clone()),
            finding,
        }
    }
}

/// Who is connected, and how far the newest controls have come.
#[derive(Debug)]
pub(crate) struct Deliveries {
    table: Mutex<Table>,
    /// The newest control's number.
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Table {
    connections: BTreeMap<HolderId, Arc<Session>>,
    /// Oldest first, at most [`MOST_CONTROLS`].
    controls: VecDeque<Control>,
}

impl Default for Deliveries {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }
}

impl Deliveries {
    /// Every change is a map operation, so a poisoned lock is still good.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, control: Control) {
        let mut table = self.table();
        table.controls.push_back(control);
        while table.controls.len() > MOST_CONTROLS {
            table.controls.pop_front();
        }
    }
}

impl Table {
    fn ends(&self) -> Vec<End> {
        let mut ends = Vec::new();
        for session in self.connections.values() {
            let sink = FinalitySink::mcp(session.server()).id().to_owned();
            if session.sink_runs() {
                ends.push(End::new(ControlEnd::Sink, session.holder(), sink.clone()));
            }
            ends.push(End::new(ControlEnd::Client, session.holder(), sink));
        }
        ends
    }
}

impl Gate {
    /// A client's connection is there: from now on controls concern it. Waits for a control that is being committed.
    pub async fn attach(&self, session: &Arc<Session>) {
        let _alone = self.one_control().await;
        let mut table = self.deliveries().table();
        table
            .connections
            .insert(session.holder(), Arc::clone(session));
    }

    /// Who is connected.
    pub(crate) fn connected(&self) -> Vec<HolderId> {
        self.deliveries()
            .table()
            .connections
            .keys()
            .copied()
            .collect()
    }

    /// The newest controls, newest first, with what was seen of each.
    pub fn deliveries_seen(&self) -> Vec<Control> {
        let table = self.deliveries().table();
        table.controls.iter().rev().cloned().collect()
    }

    /// Who is connected to which server.
    pub fn connections(&self) -> Vec<(HolderId, String)> {
        let table = self.deliveries().table();
        let sessions = table.connections.values();
        sessions
            .map(|session| (session.holder(), session.server().to_owned()))
            .collect()
    }

    /// Changes with every control, to its number.
    pub fn controls(&self) -> watch::Receiver<u64> {
        self.deliveries().newest.subscribe()
    }

    /// The control's own line, and one for each end it concerns, all in the transaction of the control itself. Under the
    /// lock of controls, so that nobody comes or is missed in between.
    pub(crate) fn emission(
        &self,
        own: Draft,
        number: u64,
        current: &Current,
    ) -> Result<Vec<store::Entry>, ControlRefused> {
        let whole = ControlPart {
            number,
            stage: ControlStage::Emitted,
            end: None,
            holder_id: None,
            sink_id: None,
            finding: None,
        };
        let mut lines = vec![own.control(whole).entry().map_err(refused)?];
        let ends = self.deliveries().table().ends();
        for end in ends {
            let draft = self
                .draft(ReceiptKind::ControlDelivered, current)
                .control(end.part(number, ControlStage::Emitted, None));
            lines.push(draft.entry().map_err(refused)?);
        }
        Ok(lines)
    }

    /// The control is committed and decided by: whoever follows hears of it.
    pub(crate) fn emitted(&self, kind: ReceiptKind, number: u64, what: String) {
        let deliveries = self.deliveries();
        let ends = deliveries.table().ends();
        deliveries.push(Control {
            number,
            kind,
            at: self.now(),
            what,
            ends,
        });
        deliveries.newest.send_replace(number);
    }
}

/// Controls whose way is followed.
const MOST_CONTROLS: usize = 64;
