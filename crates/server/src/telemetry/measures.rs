//! Everything that is measured, as it stands now: one list for every way of telling it.
//!
//! A label is a pair of constant texts, so neither an argument nor any other free text fits into one, and their number
//! is bounded by the words in this program.

use std::sync::atomic::Ordering;

use lychgate_core::State;
use lychgate_gate::observe::{Answer, BOUNDS, Reading, Step};
use lychgate_store::meter::GROUP_BOUNDS;
use lychgate_store::{Load, StoreFault, TicketQuery, TicketState};

use super::Teller;

/// One kind of measure.
pub(super) struct Family {
    /// Without a unit and without `_total`.
    pub(super) name: &'static str,
    /// A sentence without its full stop.
    pub(super) help: &'static str,
    /// `seconds`, where it is a time.
    pub(super) seconds: bool,
    pub(super) samples: Samples,
}

/// Labels of one sample.
pub(super) type Labels = Vec<(&'static str, &'static str)>;

/// The samples of a family.
pub(super) enum Samples {
    /// Only grows while the gate runs.
    Counter(Vec<(Labels, u64)>),
    /// Goes up and down.
    Gauge(Vec<(Labels, f64)>),
    /// Times or sizes by bucket.
    Histogram(Vec<(Labels, Distribution)>),
}

/// How often something was how large.
pub(super) struct Distribution {
    pub(super) sum: f64,
    pub(super) count: u64,
    /// Upper bound and count, not cumulative; the last bound is infinite.
    pub(super) buckets: Vec<(f64, u64)>,
}

/// Reads every measure. Blocks briefly, for the store's reads.
///
/// # Errors
/// When the store cannot be read.
pub(super) fn read(teller: &Teller) -> Result<Vec<Family>, StoreFault> {
    let mut families = Vec::from(doors(teller));
    families.extend(store(teller)?);
    families.extend(telling(teller));
    Ok(families)
}

fn doors(teller: &Teller) -> [Family; 5] {
    let observer = teller.door.gate().observer();
    let code = |answer: Answer| answer.code().map_or("none", |code| code.number());
    let decisions = observer.decisions().map(|(answer, class, count)| {
        let labels = vec![
            ("verdict", answer.name()),
            ("code", code(answer)),
            ("class", class.name()),
        ];
        (labels, count)
    });
    let refusals = observer.refusals().map(|(door, code, count)| {
        let labels = vec![
            ("door", door.name()),
            ("code", code.number()),
            ("reason", code.name()),
        ];
        (labels, count)
    });
    let outcomes = observer
        .outcomes()
        .map(|(state, reason, count)| (vec![("state", state.name()), ("reason", reason)], count));
    let steps = Step::ALL.into_iter().map(|step| {
        let took = seconds(&observer.step(step));
        (vec![("step", step.name())], took)
    });
    [
        Family {
            name: "lychgate_decisions",
            help: "Answers of the PED, by verdict, code and consequence class",
            seconds: false,
            samples: Samples::Counter(decisions.collect()),
        },
        Family {
            name: "lychgate_refusals",
            help: "Acts and requests that ended without an effect, by where and why",
            seconds: false,
            samples: Samples::Counter(refusals.collect()),
        },
        Family {
            name: "lychgate_outcomes",
            help: "Attempts at an effect that ended, by what became of the act and why; a late answer counts again",
            seconds: false,
            samples: Samples::Counter(outcomes.collect()),
        },
        counter(
            "lychgate_outcomes_unrecorded",
            "Outcomes that could not be recorded; the gate ends after the first",
            observer.unrecorded(),
        ),
        Family {
            name: "lychgate_step_duration",
            help: "How long each step of an act took",
            seconds: true,
            samples: Samples::Histogram(steps.collect()),
        },
    ]
}

fn store(teller: &Teller) -> Result<[Family; 9], StoreFault> {
    let gate = teller.door.gate();
    let store = gate.store();
    let counts = store.counts()?;
    let acts = State::ALL
        .into_iter()
        .map(|state| (vec![("state", state.name())], float(counts.of(state))));
    let now = gate.now();
    let oldest = if counts.of(State::Indeterminate) == 0 {
        None
    } else {
        let open = store.open_acts()?;
        let lost = open.iter().filter(|row| row.state == State::Indeterminate);
        lost.map(|row| row.created_at).min()
    };
    let age = oldest.map_or(0.0, |made| now.since(made).as_secs_f64());
    let mut pending = store.tickets(&TicketQuery::newest(
        Some(TicketState::Pending),
        MOST_TICKETS,
    ))?;
    pending.retain(|ticket| now < ticket.expires_at);
    // The head first: a record that grows in between is a lag that was there.
    let head = store.newest_head()?.map_or(0, |head| head.size);
    let records = store.record_len()?;
    let Load {
        queued,
        capacity,
        groups,
        transactions,
        busy,
        // For the bench; what a commit costs an act is in the steps' histogram.
        worked: _,
    } = store.load();
    Ok([
        Family {
            name: "lychgate_acts",
            help: "Acts in the store, by where they stand",
            seconds: false,
            samples: Samples::Gauge(acts.collect()),
        },
        Family {
            name: "lychgate_indeterminate_oldest_age",
            help: "Age of the oldest act whose outcome is unknown; 0 when there is none",
            seconds: true,
            samples: Samples::Gauge(vec![(Vec::new(), age)]),
        },
        gauge(
            "lychgate_pending_approvals",
            "Tickets that wait for a person",
            size(pending.len()),
        ),
        gauge("lychgate_ledger_records", "Receipts in the record", records),
        gauge(
            "lychgate_ledger_head_lag_records",
            "Receipts after the newest signed head",
            records.saturating_sub(head),
        ),
        gauge(
            "lychgate_store_queue_depth",
            "Transactions that wait for their commit",
            size(queued),
        ),
        gauge(
            "lychgate_store_queue_capacity",
            "Transactions that may wait",
            size(capacity),
        ),
        counter(
            "lychgate_store_busy",
            "Transactions turned away because the queue was full",
            busy,
        ),
        Family {
            name: "lychgate_commit_group_size",
            help: "Transactions made durable together",
            seconds: false,
            samples: Samples::Histogram(vec![(Vec::new(), grouped(&groups, transactions))]),
        },
    ])
}

fn telling(teller: &Teller) -> [Family; 4] {
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    let traces = teller.door.gate().observer().traces();
    [
        gauge(
            "lychgate_clients",
            "Clients of servers that are connected",
            teller.door.clients.load(Ordering::Relaxed),
        ),
        counter(
            "lychgate_telemetry_failures",
            "Exports that did not reach their collector",
            teller.failed.load(Ordering::Relaxed),
        ),
        counter(
            "lychgate_traces_lost",
            "Traces of acts that were dropped because nobody took them in time",
            traces.lost(),
        ),
        Family {
            name: "lychgate_build",
            help: "The running program; always 1",
            seconds: false,
            samples: Samples::Gauge(vec![(version, 1.0)]),
        },
    ]
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Family {
    Family {
        name,
        help,
        seconds: false,
        samples: Samples::Counter(vec![(Vec::new(), value)]),
    }
}

fn gauge(name: &'static str, help: &'static str, value: u64) -> Family {
    Family {
        name,
        help,
        seconds: false,
        samples: Samples::Gauge(vec![(Vec::new(), float(value))]),
    }
}

fn seconds(reading: &Reading) -> Distribution {
    let bounds = BOUNDS.iter().map(|nanos| float(*nanos) / NANOS);
    Distribution {
        sum: float(reading.sum) / NANOS,
        count: reading.count,
        buckets: buckets(bounds, &reading.buckets),
    }
}

fn grouped(groups: &[u64], transactions: u64) -> Distribution {
    let bounds = GROUP_BOUNDS.iter().map(|bound| float(*bound));
    Distribution {
        sum: float(transactions),
        count: groups.iter().sum(),
        buckets: buckets(bounds, groups),
    }
}

fn buckets(bounds: impl Iterator<Item = f64>, counts: &[u64]) -> Vec<(f64, u64)> {
    let infinite = std::iter::once(f64::INFINITY);
    bounds.chain(infinite).zip(counts.iter().copied()).collect()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a measure of more than 2^53 may be a little off"
)]
fn float(value: u64) -> f64 {
    value as f64
}

fn size(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

const NANOS: f64 = 1e9;
/// More tickets than may wait.
const MOST_TICKETS: usize = 100_000;
