use lychgate_gate::{Attempt, Begun, End, Late};

fn attempt() -> Attempt {
    Attempt { facts: unreachable!(), end: End::Effected, permitted_at: None }
}

fn begun() -> Begun {
    Begun { facts: unreachable!(), permitted_at: unreachable!() }
}

fn late() -> Late {
    Late { facts: unreachable!() }
}

fn main() {}
