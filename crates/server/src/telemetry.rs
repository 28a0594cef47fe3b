//! What the gate tells of itself while it runs: a metrics endpoint and OTLP, as the applied configuration says.
//!
//! Telemetry is not part of any decision: nothing waits for it, everything about it is bounded, and a collector that does
//! not answer is a number and a line in the log. Only numbers, ids, closed words and names of the applied configuration
//! leave the gate here (PROFILE §10); the types see to it.

mod endpoint;
mod export;
mod measures;
mod otlp;
mod protobuf;
mod text;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lychgate_policy::Telemetry;
use tokio::task::JoinHandle;

use crate::listen::Door;

/// What the parts share.
pub(crate) struct Teller {
    door: Arc<Door>,
    /// Exports that did not reach their collector.
    failed: AtomicU64,
}

/// Tells as long as the gate runs, and follows the applied configuration.
pub(crate) async fn tell(door: Arc<Door>) {
    let gate = Arc::clone(door.gate());
    let teller = Arc::new(Teller {
        door,
        failed: AtomicU64::new(0),
    });
    let mut told = Telemetry::default();
    let mut parts = Parts::default();
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = beat.tick() => {}
            () = gate.closing() => break,
        }
        let wanted = gate.current().applied.telemetry().clone();
        if wanted != told {
            parts = Parts::begin(&teller, &wanted);
            told = wanted;
        }
    }
    // What is told last is what an operator who looks for the reason of an end needs.
    parts.end().await;
}

/// What runs for one configuration; dropped, it ends at once.
#[derive(Default)]
struct Parts {
    endpoint: Option<JoinHandle<()>>,
    export: Option<JoinHandle<()>>,
}

impl Parts {
    fn begin(teller: &Arc<Teller>, wanted: &Telemetry) -> Self {
        let endpoint = wanted
            .prometheus()
            .map(|address| tokio::spawn(endpoint::serve(Arc::clone(teller), address)));
        let traces = teller.door.gate().observer().traces();
        traces.keep(wanted.otlp().is_some());
        let export = wanted.otlp().map(|address| {
            let every = Duration::from_millis(wanted.every());
            tokio::spawn(export::run(Arc::clone(teller), address, every))
        });
        Self { endpoint, export }
    }

    /// The gate is closing, and the exporter hears of that by itself.
    async fn end(mut self) {
        if let Some(export) = &mut self.export {
            // Whether it was done in time or not, nobody waits longer.
            let _ = tokio::time::timeout(LAST_WORDS, export).await;
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for part in [&self.endpoint, &self.export].into_iter().flatten() {
            part.abort();
        }
    }
}

/// How often the applied configuration is looked at.
const BEAT: Duration = Duration::from_millis(500);
/// How long the last export may take.
const LAST_WORDS: Duration = Duration::from_secs(2);
