//! The sink in front of an MCP server over stdio: one child process per client connection, requests rebuilt from what
//! was hashed, answers passed on byte-true (PROFILE §3, §4, MCP.md).
//!
//! - [`serve`]: one client connection from its first line to the end of its child
//! - `connection`: the loop of one connection, and its end
//! - `client_side`: what a client sends: what acts, what is refused; `passing`: what passes
//! - `server_side`: what a server says by itself
//! - `shared`: what the tasks of a connection share
//! - `refusals`: what is refused before it is an act
//! - `call`: one act from proposal to delivered answer; `live`: what is really behind it
//! - `effect`: the write that spends the permit, and the wait for its answer
//! - `listing`: what the server offers now, held against what is pinned
//! - `handshake`: eras, and what the server is told of the client
//! - `withheld`: a server that is not started
//! - `upstream`, `launch`: the child process and its two pipes; `entry`: the file it really runs
//! - [`look_up`]: acts in doubt, asked about over a connection of the gate's own
//! - [`mod@inspect`]: a server's tools, for the person who adds or pins it

mod call;
mod client_side;
mod connection;
mod effect;
mod entry;
mod handshake;
pub mod inspect;
pub mod launch;
mod listing;
mod live;
pub mod look_up;
mod passing;
mod refusals;
mod server_side;
mod shared;
mod upstream;
mod waiting;
mod withheld;

use std::sync::Arc;

use lychgate_core::id::ActId;
use lychgate_gate::{Gate, Session};
use tokio::sync::mpsc;

pub use entry::{entry_digest, entry_file};
pub use inspect::{InspectFault, Inspected, inspect};
pub use launch::Launch;
pub use look_up::LookUps;

/// What comes from the client. The channel's end means that the client sends nothing more.
#[derive(Debug)]
pub enum FromLink {
    /// A line, without its end.
    Line(Vec<u8>),
    /// A line that was longer than allowed and was skipped.
    TooLong,
    /// The answer of this act has reached the client.
    Delivered(ActId),
}

/// What goes to the client. The channel's end on the receiving side means that the client is gone.
#[derive(Debug)]
pub struct ToLink {
    /// A line, without its end.
    pub line: Vec<u8>,
    /// The act whose answer it is; to be named in [`FromLink::Delivered`] once the client has it.
    pub delivery: Option<ActId>,
}

/// Serves one client connection. Returns when everything that was begun for it is over and its child has ended.
pub async fn serve(
    gate: Arc<Gate>,
    session: Arc<Session>,
    from: mpsc::Receiver<FromLink>,
    to: mpsc::Sender<ToLink>,
) {
    connection::serve(gate, session, from, to).await;
}
