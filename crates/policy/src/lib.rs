//! The tool catalogue and the rules: what a configuration says, checked and compiled, and what follows for an act.
//!
//! Nothing here performs I/O or keeps state: the caller reads files, resolves paths and stores snapshots. The way of
//! a configuration: text -> [`load`] -> [`Applied`] -> snapshot bytes in the store -> [`Applied::from_snapshot`] in
//! the gate. The way of an act: [`Server::resolve`] -> [`ToolEntry::validate`] -> [`ToolEntry::destinations`] ->
//! [`judge`].
//!
//! - [`load`], [`Diagnostics`]: the configuration file, with every problem's line and a suggestion
//! - [`Applied`], [`Server`], [`ToolEntry`]: the closed form the gate runs from (PROFILE §8)
//! - [`Reach`], [`Paths`]: where an act would take effect (PROFILE §11)
//! - [`judge`]: the `strict` and `balanced` rules, Cedar policies in `profiles/` (PROFILE §2, §9)
//! - [`changes`]: what a new configuration narrows and widens (PROFILE §10)
//! - [`Definition`], [`propose`], [`Library`]: a server's tools, and the entries proposed for them
//! - [`Telemetry`]: what the gate tells of itself, and to whom
//! - [`edit`], [`template`]: the text of the configuration file, comments kept

mod applied;
mod approvers;
mod canonical;
mod change;
mod check;
mod consent;
mod definition;
mod delegation;
mod diagnostics;
pub mod edit;
mod envelope;
mod init;
mod ledger;
mod library;
mod load;
mod model;
mod profile;
mod propose;
mod reach;
mod read_back;
mod rules;
mod schema;
mod server;
mod telemetry;
mod tool;

pub use applied::{Applied, SnapshotFault, allowlisted, passed_names};
pub use approvers::ApproverGroup;
pub use change::{Change, Effect, changes};
pub use definition::{Definition, DefinitionFault, definition_digest};
pub use delegation::{AgentBudget, PLAIN_UNIT, Uncountable, judge_delegation};
pub use diagnostics::{Diagnostic, Diagnostics, nearest};
pub use envelope::{EnvelopeLimits, never_enveloped};
pub use init::{InitRoot, template};
pub use ledger::{Ledger, Witness};
pub use library::Library;
pub use load::{Pins, load};
pub use model::{
    Agent, ErrorMeaning, Idempotency, Kind, Limits, Principal, Profile, Purpose, Reconcile, Role,
};
pub use profile::{Finding, Situation, judge, strictest};
pub use propose::{Proposed, propose};
pub use reach::{PathRefused, Paths, Reach, Scope, Target, Unresolved};
pub use read_back::{Planned, RECONCILER, ReadBack, Reading};
pub use schema::SchemaFault;
pub use server::{Resolution, Root, Server};
pub use telemetry::Telemetry;
pub use tool::{Roles, ToolEntry};
