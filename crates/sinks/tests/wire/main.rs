//! One connection through a real gate to a scripted server: what passes, what acts, what is refused, what is kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs
)]

mod client;
#[path = "../../../gate/tests/kit/mod.rs"]
mod kit;

mod acts;
mod passing;
mod refused;
mod server_side;
mod waiting;
