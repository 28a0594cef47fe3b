//! The two doors: nothing takes effect until the Protected Enforcement Domain allowed exactly that act and the finality
//! sink consumed a single-use authority for it (PROFILE §4).
//!
//! The way of a call, each step taking the former step's type by value:
//! [`Gate::hold`] → [`HeldAct`] → [`Gate::decide`] → [`Verdict`] → [`Gate::present`] → [`Permit`] → [`Permit::begin`] at
//! the first byte → [`Attempt`] → [`Gate::settle`]. [`Gate::pass`] walks the middle of it for an adapter.
//!
//! - [`hold`]: a proposal becomes a candidate act, held non-effective
//! - `identity`: what an act is recognised by
//! - [`ped`]: the first door
//! - [`approval`]: tickets, waiting, an approver's verdict
//! - [`sink`]: the second door, and the permit
//! - [`doors`]: both in a row
//! - [`envelope`]: one decision for acts of one kind
//! - [`delegation`]: workers, and what was handed to them
//! - [`outcome`]: what became of it
//! - [`twins`]: equal calls
//! - [`reconcile`]: acts whose answer was lost are looked up at their destination
//! - [`control`]: what changes the rules
//! - [`delivery`]: how far each of them has come, and what was seen of that
//! - [`recover`]: what a gate does when it starts
//! - [`log`]: the one way into the log
//! - [`observe`]: counting all of it, for metrics and traces
//! - [`first`]: the first lines of a record
//! - [`ledger`]: the signed heads of the record

pub mod approval;
mod approvers;
mod challenge;
pub mod clock;
pub mod control;
pub mod current;
pub mod delegation;
pub mod delivery;
pub mod doors;
pub mod envelope;
pub mod first;
pub mod gate;
pub mod hold;
mod identity;
pub mod ledger;
pub mod log;
mod note;
pub mod observe;
pub mod outcome;
pub mod paths;
pub mod ped;
pub mod receipts;
pub mod reconcile;
pub mod recover;
mod rotate;
pub mod session;
pub mod sink;
mod throttle;
pub mod twins;

pub use approval::{
    Caller, CallerGone, PendingQuery, PendingTicket, Ruled, Tally, TicketSummary, Waited,
};
pub use clock::SteadyClock;
pub use control::consent::ConsentRecord;
pub use control::{ControlRefused, Plan, Revoked, UnknownSubject};
pub use current::{Current, CurrentFault};
pub use delegation::{Delegated, DelegationRequest};
pub use doors::Passed;
pub use envelope::EnvelopeGrant;
pub use envelope::close::OpenEnvelope;
pub use gate::{Gate, Parts};
pub use hold::{Connected, HeldAct};
pub use ledger::{RingSigner, log_name};
pub use observe::Observer;
pub use outcome::{Late, Settled};
pub use paths::RealPaths;
pub use ped::{Allowed, Denied, Escalated, Verdict};
pub use reconcile::{Asked, AtWork, Destination, Doubts, Question, Reconciler};
pub use recover::Recovered;
pub use rotate::PreparedKey;
pub use session::{Peer, Session};
pub use sink::{
    Attempt, Begun, Dispatched, Effect, End, FinalitySink, LiveInvocation, NotSent, Objects,
    Permit, Presented, SinkRefusal, Unknown,
};
