//! The applied configuration as data: closed, complete, in one canonical form. [`crate::Applied`] is this, compiled.

use std::collections::BTreeMap;

use lychgate_core::act::{ActType, PrincipalType, SourceType};
use lychgate_core::json::Value;
use lychgate_core::{ConsequenceClass, Digest};
use serde::{Deserialize, Serialize};

use crate::approvers::Groups;
use crate::consent::ConsentRule;
use crate::delegation::AgentBudget;
use crate::envelope::EnvelopeLimits;
use crate::ledger::Ledger;
use crate::read_back::ReadBack;
use crate::telemetry::Telemetry;

/// Which table of provenance and consequence rules holds (PROFILE §2, §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The drafts' SHOULDs are kept.
    Strict,
    /// What people keep switched on; each softening is a line in `docs/decisions/`.
    Balanced,
}

impl Profile {
    /// The name, also the act's `policy_profile_id`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Balanced => "balanced",
        }
    }
}

/// What a tool's own error result means (PROFILE §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorMeaning {
    /// An error may hide an effect: the outcome is indeterminate.
    Unknown,
    /// An error means that nothing happened.
    NoEffect,
}

/// Whether the server understands an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Idempotency {
    /// No key is sent.
    None,
    /// The gate passes a key in `_meta`.
    Meta,
}

/// What an argument is for (issue A, point 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What is acted on.
    Target,
    /// What picks among things.
    Selector,
    /// How much of something of value.
    Amount,
    /// A command to run; treated like a program.
    Command,
    /// A secret.
    Credential,
    /// Steers how the function works.
    Control,
    /// Text or data that is carried.
    Content,
    /// A program: shell, SQL, code, a template (PROFILE §8).
    Program,
}

impl Role {
    /// The word in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Selector => "selector",
            Self::Amount => "amount",
            Self::Command => "command",
            Self::Credential => "credential",
            Self::Control => "control",
            Self::Content => "content",
            Self::Program => "program",
        }
    }
}

/// How a destination or recipient is written, and so which canonicaliser reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A path of the local file system.
    Path,
    /// An `http` or `https` URL.
    Url,
    /// A host name or address, with or without a port.
    Host,
    /// A bare mail address.
    Email,
    /// An international bank account number.
    Iban,
    /// A git URL or `owner/name`.
    Repository,
    /// Any text, taken exactly.
    Text,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Path,
        Self::Url,
        Self::Host,
        Self::Email,
        Self::Iban,
        Self::Repository,
        Self::Text,
    ];

    /// The word in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Url => "url",
            Self::Host => "host",
            Self::Email => "email",
            Self::Iban => "iban",
            Self::Repository => "repository",
            Self::Text => "text",
        }
    }
}

/// Where a destination or a recipient comes from (PROFILE §11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// A constant id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fixed: Option<String>,
    /// A constant local file: judged like a path argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// JSON pointers into the arguments, by canonicaliser.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) pointers: BTreeMap<Kind, Vec<String>>,
}

/// The whole configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    pub(crate) version: u32,
    pub(crate) object_type: ObjectType,
    pub(crate) profile: Profile,
    pub(crate) unattended: bool,
    pub(crate) principal: Principal,
    pub(crate) agent: Agent,
    pub(crate) purpose: Purpose,
    pub(crate) purposes: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) vouch: Option<SourceType>,
    pub(crate) limits: Limits,
    #[serde(default, skip_serializing_if = "Reconcile::is_usual")]
    pub(crate) reconcile: Reconcile,
    pub(crate) roots: BTreeMap<String, RootModel>,
    pub(crate) destinations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) jurisdictions: Option<Vec<String>>,
    /// A digest of the time before the table stays as it was.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) ledger: Ledger,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) consent: ConsentRule,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) telemetry: Telemetry,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) approvers: Groups,
    pub(crate) servers: BTreeMap<String, ServerModel>,
}

/// The snapshot's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ObjectType {
    #[serde(rename = "lychgate_applied_configuration")]
    Applied,
}

/// On whose behalf the agent acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    /// The act's `principal_id`, e.g. `user:alice`.
    pub id: String,
    /// The act's `principal_type`.
    #[serde(rename = "type")]
    pub kind: PrincipalType,
}

/// The agent behind the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The act's `agent_id`.
    pub id: String,
    /// The deepest delegation allowed; 0 = none.
    pub max_depth: u32,
    /// The allowlist, sorted: `server` or `server/function`.
    pub allow: Vec<String>,
    /// The users whose connections may speak as this agent; all others must come with a delegation. Absent: every user
    /// that the gate lets in. A digest of the time before the keys stays as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uids: Option<Vec<u32>>,
    /// What the agent and all below it may use up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<AgentBudget>,
}

/// What the agent is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purpose {
    /// The act's `purpose_id`.
    pub id: String,
    /// The act's `declared_purpose`.
    pub declared: String,
}

/// Bounds. Times in milliseconds, sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// How long an authority lives.
    pub authority: u64,
    /// How long a permit may wait for its first byte.
    pub permit: u64,
    /// How long a ticket waits for a person.
    pub ticket: u64,
    /// How long a call is held while a person decides.
    pub hold: u64,
    /// How long a decision may take.
    pub decision: u64,
    /// The largest arguments.
    pub arguments_bytes: u64,
    /// The largest message of the transport.
    pub message_bytes: u64,
    /// Acts of one connection at a time.
    pub in_flight: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            authority: 10_000,
            permit: 1_000,
            ticket: 900_000,
            // Most clients give up after 60 s: held longer, a call would be approved after its caller has gone.
            hold: 45_000,
            decision: 5_000,
            arguments_bytes: 1 << 20,
            message_bytes: 1 << 24,
            in_flight: 1024,
        }
    }
}

/// When an act in doubt is looked up at its destination (PROFILE §5). Milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconcile {
    /// How long after the answer was lost it is first asked for. Each further wait is twice the one before.
    pub first: u64,
    /// The longest wait between two questions.
    pub most: u64,
    /// From here on nothing more is asked and a person must say.
    pub deadline: u64,
}

impl Reconcile {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Reconcile {
    fn default() -> Self {
        Self {
            first: 2_000,
            most: 300_000,
            deadline: 3_600_000,
        }
    }
}

/// A declared part of the file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RootModel {
    pub(crate) path: String,
    pub(crate) recoverable: bool,
}

/// One server, as written, with its pinned definitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerModel {
    pub(crate) command: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) pass_env: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<Digest>,
    pub(crate) roots: Vec<String>,
    /// Milliseconds.
    pub(crate) timeout: u64,
    pub(crate) errors: ErrorMeaning,
    pub(crate) sampling: bool,
    pub(crate) elicitation: bool,
    pub(crate) tools: BTreeMap<String, ToolModel>,
    pub(crate) methods: BTreeMap<String, ToolModel>,
    /// The pinned definitions, whole.
    pub(crate) definitions: BTreeMap<String, Value>,
}

/// One catalogue entry, as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<Digest>,
    pub(crate) class: ConsequenceClass,
    pub(crate) act_type: ActType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) destination: Option<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recipient: Option<Rule>,
    pub(crate) roles: BTreeMap<String, Role>,
    /// What amounts are counted in: a name, or a pointer to the argument that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<String>,
    /// How far one decision goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) envelope: Option<EnvelopeLimits>,
    pub(crate) purposes: Vec<String>,
    pub(crate) aliases: Vec<String>,
    pub(crate) irreversible: bool,
    /// Whether it reaches into what lies beneath a path it names. A digest of the time before the key stays as it was.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(crate) recursive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<ErrorMeaning>,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<u64>,
    pub(crate) idempotency: Idempotency,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read_back: Option<ReadBack>,
    pub(crate) case_variants: bool,
    pub(crate) enabled: bool,
}

impl ToolModel {
    //= PROFILE §8: a tool without an entry is OTHER, and OTHER escalates
    /// What holds for a function nobody wrote an entry for.
    pub(crate) fn unlisted(server: &str, definition: Option<Digest>) -> Self {
        Self {
            definition,
            class: ConsequenceClass::Other,
            act_type: ActType::ToolCall,
            destination: Some(Rule {
                fixed: Some(format!("server:{server}")),
                ..Rule::default()
            }),
            recipient: None,
            roles: BTreeMap::new(),
            unit: None,
            envelope: None,
            purposes: Vec::new(),
            aliases: Vec::new(),
            irreversible: false,
            recursive: true,
            errors: None,
            timeout: None,
            idempotency: Idempotency::None,
            read_back: None,
            case_variants: false,
            enabled: true,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn yes() -> bool {
    true
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
const fn is_yes(value: &bool) -> bool {
    *value
}
