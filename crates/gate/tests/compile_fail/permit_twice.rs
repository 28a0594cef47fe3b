use lychgate_gate::Permit;

fn twice(permit: Permit) {
    let _first = permit.begin();
    let _second = permit.begin();
}

fn main() {}
