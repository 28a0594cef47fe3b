use lychgate_core::id::{ActId, EffectId};
use lychgate_gate::Permit;

fn by_hand(act: ActId, effect: EffectId) -> Permit {
    let deadline = tokio::time::Instant::now();
    Permit { act, effect, facts: unreachable!(), deadline, made_at: unreachable!(), flight: None }
}

fn main() {}
