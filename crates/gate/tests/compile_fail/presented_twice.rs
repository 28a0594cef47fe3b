use lychgate_gate::{Allowed, FinalitySink, Gate, LiveInvocation};
use std::sync::Arc;

async fn twice(gate: Arc<Gate>, sink: FinalitySink, live: LiveInvocation<'_>, allowed: Allowed) {
    let (_held, presented) = allowed.into_parts();
    let _first = gate.present(&sink, &live, presented).await;
    let _second = gate.present(&sink, &live, presented).await;
}

async fn decided_twice(gate: Arc<Gate>, held: lychgate_gate::HeldAct) {
    let _first = gate.decide(held).await;
    let _second = gate.decide(held).await;
}

fn main() {}
