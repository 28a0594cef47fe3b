use lychgate_core::id::{ActId, EffectId};
use lychgate_gate::{Attempt, Begun, End, Late};

fn attempt(act: ActId, effect: EffectId) -> Attempt {
    Attempt { act, effect, end: End::Effected }
}

fn begun(act: ActId, effect: EffectId) -> Begun {
    Begun { act, effect }
}

fn late(act: ActId, effect: EffectId) -> Late {
    Late { act, effect }
}

fn main() {}
