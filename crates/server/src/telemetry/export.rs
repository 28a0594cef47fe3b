//! Sending traces and measures to the configured collector, over OTLP/HTTP with protobuf.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lychgate_gate::observe::ActTrace;

use super::otlp::{self, Resource};
use super::{Teller, measures};
use crate::outward::{Outward, OutwardFault, Post};
use lychgate_gate::log;

/// Exports from time to time until the gate closes, and once more then.
pub(super) async fn run(teller: Arc<Teller>, to: SocketAddr, every: Duration) {
    let gate = Arc::clone(teller.door.gate());
    let mut exporter = Exporter {
        outward: Outward::new(vec![to]),
        to,
        resource: Resource { gate: gate.id() },
        unsent: Vec::new(),
        was_well: true,
        teller,
    };
    let mut beat = tokio::time::interval(every);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    beat.tick().await;
    loop {
        let closing = tokio::select! {
            _ = beat.tick() => false,
            () = gate.closing() => true,
        };
        exporter.export().await;
        if closing {
            return;
        }
    }
}

struct Exporter {
    teller: Arc<Teller>,
    outward: Outward,
    to: SocketAddr,
    resource: Resource,
    /// Taken and not yet told; at most `MOST_UNSENT`.
    unsent: Vec<ActTrace>,
    was_well: bool,
}

impl Exporter {
    async fn export(&mut self) {
        let sent = self.send().await;
        if let Err(fault) = &sent {
            self.teller.failed.fetch_add(1, Ordering::Relaxed);
            // Said once, not at every beat.
            if self.was_well {
                log::warn(
                    "telemetry does not reach its collector",
                    &[("fault", fault.shown())],
                );
            }
        }
        self.was_well = sent.is_ok();
    }

    async fn send(&mut self) -> Result<(), OutwardFault> {
        let gate = Arc::clone(self.teller.door.gate());
        let traces = gate.observer().traces();
        self.unsent.extend(traces.take());
        let over = self.unsent.len().saturating_sub(MOST_UNSENT);
        traces.lose(self.unsent.drain(..over).count());
        let teller = Arc::clone(&self.teller);
        let read = tokio::task::spawn_blocking(move || measures::read(&teller)).await;
        if let Ok(Ok(families)) = read {
            let since = self.teller.door.started_at;
            let body = otlp::metrics(&self.resource, &families, since, gate.now());
            self.post("/v1/metrics", &body).await?;
        }
        while !self.unsent.is_empty() {
            let many = self.unsent.len().min(BATCH);
            let body = otlp::traces(&self.resource, self.unsent.get(..many).unwrap_or_default());
            self.post("/v1/traces", &body).await?;
            self.unsent.drain(..many);
        }
        Ok(())
    }

    async fn post(&self, path: &'static str, body: &[u8]) -> Result<(), OutwardFault> {
        let post = Post {
            to: self.to,
            path,
            kind: "application/x-protobuf",
            body,
        };
        self.outward.post(&post).await
    }
}

/// Acts in one request.
const BATCH: usize = 256;
/// Acts kept for a collector that does not answer.
const MOST_UNSENT: usize = 8_192;
