//! The running gate and the way to it: the state folder, the unix socket, the process that serves it, and the thin
//! clients that relay and ask (PROFILE §4: one gate per state folder).
//!
//! - [`state`]: the state folder: made whole or not at all, opened by one gate at a time
//! - [`anchor`]: the record's newest head, kept elsewhere
//! - `cosign`: showing the record's heads to witnesses
//! - [`elsewhere`]: heads that others have of the record, before the gate starts
//! - `accepted`: those a person has decided about
//! - [`accept`]: going on with a record that its anchor contradicts
//! - [`open`]: everything in it, for the one gate
//! - [`reserved`]: the places no sink may touch (PROFILE §10)
//! - [`frame`]: how bytes are cut on the socket
//! - [`protocol`]: what a client asks, and what the gate answers
//! - [`mod@run`]: the gate's process, from its lock to its last receipt
//! - `listen`: who may connect, and how many
//! - `control`: how the gate answers control requests
//! - `link`: one client of a server, between the socket and the sink
//! - `telemetry`: a metrics endpoint and OTLP; `outward`: the one way out
//! - [`client`]: connecting, and starting the gate where it does not run
//! - [`relay`]: `lychgate mcp`: standard input and output to the gate and back
//! - [`witness`]: `lychgate witness`, which cosigns other people's logs

pub mod accept;
mod accepted;
pub mod anchor;
pub mod client;
mod control;
mod cosign;
pub mod elsewhere;
pub mod frame;
mod link;
mod listen;
mod log;
pub mod open;
mod outward;
pub mod protocol;
pub mod relay;
pub mod reserved;
pub mod run;
pub mod state;
mod telemetry;
pub mod witness;

pub use client::{Client, ClientFault, Start, connect};
pub use open::{OpenOptions, Opened};
pub use protocol::{Request, Response};
pub use relay::{RelayFault, relay_stdio};
pub use run::{Exit, RunFault, RunOptions, run};
pub use state::{StateFault, StateFolder};
