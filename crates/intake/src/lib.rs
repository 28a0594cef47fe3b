//! What a client emitted, as exact proposals; what a server sent, byte-true. No I/O, no clock.
//!
//! A client's line is parsed once, strictly, and either becomes a [`proposal::Proposal`] (an act, held by the gate), a
//! message that passes, or a [`client::ClientFault`] that can be answered. A server's line is only scanned: its spans
//! travel on unchanged.
//!
//! - [`frame`]: newline-delimited lines out of arbitrary chunks, bounded
//! - [`envelope`]: the lenient scanner that gives raw spans, and [`server`]: a server's message by such spans
//! - [`client`]: a client's message, strictly (PROFILE §3)
//! - [`method`]: the three kinds of methods, by exact name (MCP "A gate for both eras")
//! - [`proposal`]: a call as exactly what was emitted, and [`meta`]: the `_meta` keys that are known
//! - [`rebuild`]: the bytes that go to a server
//! - [`waiting`]: what a client is told while a person is asked
//! - [`answer`]: the bytes that go to a client (PROFILE §6)
//! - [`listing`]: tool definitions out of `tools/list` pages

pub mod answer;
pub mod client;
pub mod envelope;
mod fault;
pub mod frame;
pub mod fuzz;
pub mod id;
pub mod listing;
pub mod meta;
pub mod method;
pub mod passing;
pub mod proposal;
pub mod rebuild;
mod scanner;
pub mod server;
pub mod streams;
pub mod waiting;

pub use answer::{DECISION_KEY, Denial};
pub use client::{Body, ClientFault, ClientNotification, FromClient, Limits, from_client};
pub use frame::{FrameFault, Lines};
pub use id::RequestId;
pub use meta::{Era, KnownMeta, era_of};
pub use method::{ActingMethod, MethodKind};
pub use proposal::{Continuation, Proposal, propose};
pub use rebuild::{passing_bytes, request_bytes};
pub use server::{FromServer, from_server};
