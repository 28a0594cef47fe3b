use lychgate_core::act::CandidateAct;
use lychgate_gate::HeldAct;

fn edited(mut held: HeldAct, act: CandidateAct) -> HeldAct {
    held.act = act;
    held
}

fn again(held: &HeldAct) -> HeldAct {
    HeldAct::clone(held)
}

fn main() {}
