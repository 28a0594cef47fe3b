use lychgate_gate::Permit;

fn two_of_it(permit: Permit) -> (Permit, Permit) {
    (permit.clone(), permit)
}

fn main() {}
