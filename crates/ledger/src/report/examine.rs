//! Reading a record once, start to end.

use std::collections::HashMap;

use lychgate_core::id::{ActId, GateId};
use lychgate_core::json::{self, Limits};
use lychgate_core::receipt::{ActPart, Receipt, ReceiptKind};
use lychgate_core::{Code, Digest, State, Timestamp};

use super::acts::{Acts, Known, Name, Names};
use super::counts::{Accepted, Counts, Doubt, Doubts, Starts};
use super::people::{Ended, Tickets};
use super::timeline::{Gap, Timeline};
use super::violation::{Breach, Test, Violation};
use super::{MAX_DEPTH, MOST_LISTED, Question, Report, Verdict, Verdicts};

/// Takes the records one after another. Whether they are the log's is [`crate::Auditor`]'s to say.
#[derive(Clone, Debug)]
pub struct Examiner {
    pub(super) question: Question,
    pub(super) acts: Acts,
    pub(super) names: Names,
    pub(super) tickets: Tickets,
    pub(super) counts: Counts,
    pub(super) doubts: Doubts,
    pub(super) in_doubt: HashMap<ActId, Doubt>,
    pub(super) timeline: Timeline,
    // The deepest delegation that each configuration permits, as the record says.
    pub(super) depths: HashMap<Digest, u32>,
    // The newest denial for a mismatch, by agent and function.
    pub(super) mismatched: HashMap<(Name, Name), u64>,
    violations: Vec<Violation>,
    violated: [u64; 3],
    accepted: Vec<Accepted>,
    starts: Starts,
    // The gate that started last, and the last thing that it recorded; whether it has stopped.
    running: Option<(GateId, Timestamp)>,
    stopped: Option<Timestamp>,
    last: Option<Timestamp>,
    // Records without bytes came before; since when there are bytes again.
    blind: bool,
    sight: Option<Timestamp>,
}

/// Where a receipt stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) index: u64,
    pub(super) at: Timestamp,
    /// In the time asked for.
    pub(super) inside: bool,
}

impl Examiner {
    /// Nothing read yet.
    #[must_use]
    pub fn new(question: Question) -> Self {
        Self {
            question,
            acts: Acts::default(),
            names: Names::default(),
            tickets: Tickets::default(),
            counts: Counts::default(),
            doubts: Doubts::default(),
            in_doubt: HashMap::new(),
            timeline: Timeline::default(),
            depths: HashMap::new(),
            mismatched: HashMap::new(),
            violations: Vec::new(),
            violated: [0; 3],
            accepted: Vec::new(),
            starts: Starts::default(),
            running: None,
            stopped: None,
            last: None,
            blind: false,
            sight: None,
        }
    }

    /// Takes the next record; `None` for one whose bytes are not here.
    pub fn record(&mut self, index: u64, bytes: Option<&[u8]>) {
        self.counts.records += 1;
        let Some(bytes) = bytes else {
            self.counts.without_bytes += 1;
            self.blind = true;
            return;
        };
        let receipt = json::parse(bytes, &Limits::OBJECT)
            .ok()
            .and_then(|value| json::from_value::<Receipt>(&value).ok());
        match receipt {
            Some(receipt) => self.receipt(index, &receipt),
            None => self.list(Violation {
                breach: Breach::NotAReceipt,
                act: None,
                function: None,
                class: None,
                at: None,
                records: vec![index],
            }),
        }
    }

    fn receipt(&mut self, index: u64, receipt: &Receipt) {
        let at = receipt.at;
        if self.question.until.is_some_and(|until| at > until) {
            return;
        }
        let inside = self.question.since.is_none_or(|since| at >= since);
        let place = Place { index, at, inside };
        if std::mem::take(&mut self.blind) {
            self.sight = Some(at);
        }
        self.acts.at(at);
        self.last = self.last.max(Some(at));
        if inside {
            self.counts.receipts += 1;
            self.timeline.seen(at);
        }
        match self.running.as_mut() {
            Some((gate, last)) if *gate == receipt.gate_id => *last = at.max(*last),
            _ => {}
        }
        match (&receipt.act, receipt.kind) {
            (Some(part), _) => self.step(place, receipt, part),
            (None, ReceiptKind::Started) => self.started(place, receipt.gate_id),
            (None, ReceiptKind::Stopped) => {
                self.starts.stopped += u64::from(inside);
                self.stopped = Some(at);
            }
            (None, ReceiptKind::Applied) => self.applied(receipt),
            (None, ReceiptKind::AnchorAccepted) => self.accept(place, receipt),
            (None, ReceiptKind::Approved) => self.decided(place, receipt, Ended::Approved),
            (None, ReceiptKind::Disapproved) => self.decided(place, receipt, Ended::Denied),
            (None, ReceiptKind::Lapsed) => self.decided(place, receipt, Ended::Lapsed),
            (None, ReceiptKind::Dispatched | ReceiptKind::Outcome | ReceiptKind::Allowed) => {
                self.list_inside(place, Breach::NotAReceipt, None, &[index]);
            }
            (None, _) => {}
        }
    }

    fn started(&mut self, place: Place, gate: GateId) {
        self.starts.started += u64::from(place.inside);
        let (stopped, before) = (self.stopped.take(), self.running.take());
        let down = match (stopped, before) {
            (Some(stopped), _) => Some((stopped, true)),
            (None, Some((_, last))) => Some((last, false)),
            (None, None) => None,
        };
        if let Some((from, clean)) = down.filter(|_| place.inside) {
            let to = Some(place.at);
            self.timeline.gap(Gap { from, to, clean });
            if !clean {
                self.starts.without_stop.add(place.index);
            }
        }
        self.running = Some((gate, place.at));
        // A gate that starts settles what its predecessor left dispatched, and only then records its start.
        for (act, mut known) in self.acts.open_in(State::Dispatched) {
            if !known.lost {
                known.lost = true;
                self.acts.put(act, known);
                let records = [known.dispatched.unwrap_or(known.last), place.index];
                let function = self.names.text(known.function).map(str::to_owned);
                self.list_of(place, Breach::NeverSettled, act, function, &records);
            }
        }
    }

    fn applied(&mut self, receipt: &Receipt) {
        let detail = receipt.detail.as_deref().unwrap_or_default();
        let depth = detail
            .strip_prefix(MAX_DEPTH)
            .and_then(|depth| depth.parse().ok());
        if let (Some(policy), Some(depth)) = (receipt.policy_digest, depth)
            && self.depths.len() < MOST_LISTED
        {
            self.depths.insert(policy, depth);
        }
    }

    fn accept(&mut self, place: Place, receipt: &Receipt) {
        if !place.inside || self.accepted.len() >= MOST_LISTED {
            return;
        }
        let detail = receipt.detail.as_deref().unwrap_or_default();
        self.accepted.push(Accepted {
            record: place.index,
            at: place.at,
            difference: detail.split(' ').next().unwrap_or_default().to_owned(),
            approver: receipt.approver_key.clone(),
        });
    }

    fn decided(&mut self, place: Place, receipt: &Receipt, how: Ended) {
        let Some(ticket) = receipt.ticket_id else {
            return;
        };
        let waited = self.tickets.end(ticket, how, place.at, place.inside);
        if how != Ended::Denied {
            return;
        }
        // The no moves every act that waits; their own lines follow.
        for act in waited {
            if let Some(mut known) = self
                .acts
                .get(act)
                .filter(|known| known.state == State::Escalated)
            {
                if known.counted {
                    self.counts.moved(known.state, State::Refused);
                }
                known.state = State::Refused;
                known.last = place.index;
                self.acts.put(act, known);
            }
        }
    }

    /// Whether an act that is not known may have begun in records without bytes.
    pub(super) fn began_unseen(&self, made: Timestamp) -> bool {
        let sight = self.sight.map(|sight| sight.after(UNORDERED));
        self.blind || sight.is_some_and(|sight| made <= sight)
    }

    pub(super) fn function(&mut self, part: &ActPart) -> (Name, Name) {
        let function = function_of(part).and_then(|text| self.names.of(&text));
        (self.names.of(&part.agent_id), function)
    }

    pub(super) fn list_inside(
        &mut self,
        place: Place,
        breach: Breach,
        part: Option<&ActPart>,
        records: &[u64],
    ) {
        if !place.inside {
            return;
        }
        self.list(Violation {
            breach,
            act: part.map(|part| part.candidate_act_id),
            function: part.and_then(function_of),
            class: part.and_then(|part| part.consequence_class),
            at: Some(place.at),
            records: records.to_vec(),
        });
    }

    fn list_of(
        &mut self,
        place: Place,
        breach: Breach,
        act: ActId,
        function: Option<String>,
        records: &[u64],
    ) {
        if place.inside {
            self.list(Violation {
                breach,
                act: Some(act),
                function,
                class: None,
                at: Some(place.at),
                records: records.to_vec(),
            });
        }
    }

    fn list(&mut self, violation: Violation) {
        let test = violation.breach.test();
        if let Some(count) = self.violated.get_mut(test as usize) {
            *count += 1;
        }
        if self.violations.len() < MOST_LISTED {
            self.violations.push(violation);
        }
    }

    /// Ends the record. `now` is the moment at which ages are told, unless the question ends earlier.
    #[must_use]
    pub fn finish(mut self, now: Option<Timestamp>) -> Report {
        let last = self.last.unwrap_or(Timestamp::from_millis(0));
        let as_of = self.question.until.or(now).unwrap_or(last);
        if let Some(from) = self.stopped {
            let (to, clean) = (None, true);
            self.timeline.gap(Gap { from, to, clean });
        }
        for (_, known) in self.acts.open_in(State::Dispatched) {
            if known.counted {
                self.counts
                    .in_flight
                    .add(known.dispatched.unwrap_or(known.last));
            }
        }
        let mut open = self
            .in_doubt
            .drain()
            .map(|(_, doubt)| doubt)
            .collect::<Vec<_>>();
        open.sort_unstable_by_key(|doubt| doubt.record);
        self.doubts.open_number = u64::try_from(open.len()).unwrap_or(u64::MAX);
        open.truncate(MOST_LISTED);
        self.doubts.open = open;
        Report {
            verdicts: self.verdicts(),
            violated: self.violated.iter().sum(),
            violations: self.violations,
            counts: self.counts,
            people: self.tickets.finish(),
            doubts: self.doubts,
            accepted: self.accepted,
            starts: self.starts,
            timeline: self.timeline,
            as_of,
        }
    }

    fn verdicts(&self) -> Verdicts {
        let counts = &self.counts;
        let violated = |test: Test| self.violated.get(test as usize).copied().unwrap_or(0);
        let unseen = match counts.without_bytes {
            0 => None,
            all if all == counts.records => Some(Verdict::NotMeasured(HASHES)),
            _ => Some(Verdict::Partly(ARCHIVED)),
        };
        let verdict = |test: Test, otherwise: Verdict| match violated(test) {
            0 => unseen.unwrap_or(otherwise),
            number => Verdict::Violated(number),
        };
        let advised = counts.advisory.number > 0;
        let authority = match counts.invoked {
            _ if advised => Verdict::Partly(ADVISED),
            0 => Verdict::Nothing,
            _ => Verdict::Held,
        };
        let mismatch = match counts.mismatches {
            0 => Verdict::Nothing,
            _ => Verdict::Held,
        };
        let depth = match (counts.invoked, counts.depth_unknown) {
            (0, _) => Verdict::Nothing,
            (_, 0) => Verdict::Held,
            (all, unknown) if unknown < all => Verdict::Partly(DEPTH_UNKNOWN),
            _ => Verdict::NotMeasured(DEPTH_UNKNOWN),
        };
        Verdicts {
            authority: verdict(Test::Authority, authority),
            mismatch: verdict(Test::Mismatch, mismatch),
            depth: verdict(Test::Depth, depth),
            //= draft §5.10 (4): only a report of what else can reach the effect could tell
            second_path: Verdict::NotMeasured(NO_CLOSURE),
        }
    }
}

/// `tool/function` as it stands in a receipt.
pub(super) fn function_of(part: &ActPart) -> Option<String> {
    let tool = part.tool_id.as_deref()?;
    let function = part.function_id.as_deref().unwrap_or("?");
    Some(format!("{tool}/{function}"))
}

/// Whether a code says that what was presented is not what was allowed.
pub(super) fn is_mismatch(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidAuthority
            | Code::ActMismatch
            | Code::ArgsSubstitution
            | Code::ConsequenceClassMismatch
            | Code::ToolSubstitution
            | Code::DestinationMismatch
            | Code::SinkMismatch
            | Code::HolderMismatch
    )
}

/// Whether a state leaves an act that was denied as it was: the denial was of a copy of it.
pub(super) fn denial_moves(known: Option<&Known>) -> bool {
    known.is_none_or(|known| known.state == State::Escalated)
}

/// Receipts of one moment are in no order.
const UNORDERED: std::time::Duration = std::time::Duration::from_secs(60);
const HASHES: &str = "only hashes are here";
const ARCHIVED: &str = "some records are archived";
const ADVISED: &str = "not what was only advised";
const DEPTH_UNKNOWN: &str = "limit not known (--max-depth)";
const NO_CLOSURE: &str = "no closure reports yet";
