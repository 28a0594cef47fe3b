//! Attacks by name: each is tried at the gate's own interface, and the effect does not run, or runs once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../kit/mod.rs"]
mod kit;

mod approval;
mod authority;
mod calls;
mod control;
mod epochs;
mod flood;
mod forged;
mod kept;
mod lost;
mod prune;
mod quorum;
mod storage;
mod subject;
mod tickets;
