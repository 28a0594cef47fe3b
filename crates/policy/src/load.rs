//! From the text of `lychgate.toml` and the pinned definitions to an [`Applied`].

mod approvers;
mod consent;
mod delegation;
mod ledger;
mod read;
mod read_back;
mod server;
mod telemetry;

use std::collections::BTreeMap;
use std::path::Path;

use lychgate_core::act::{PrincipalType, SourceType};
use lychgate_core::json::{self, CaseRule, Value};

use self::read::{Reader, Section};
use crate::applied::Applied;
use crate::definition::Definition;
use crate::diagnostics::{Diagnostic, Diagnostics, Problem};
use crate::model::{
    Agent, Limits, Model, ObjectType, Principal, Profile, Purpose, Reconcile, RootModel, ToolModel,
};

/// The raw bytes of `pins/<server>.json`, by server name.
pub type Pins = BTreeMap<String, Vec<u8>>;

/// Reads, checks and compiles a configuration. `file` only names the text in diagnostics.
///
/// # Errors
/// Every problem found, in the order of the file: syntax alone when the text is not TOML, else shape and meaning.
pub fn load(text: &str, file: &Path, pins: &Pins) -> Result<Applied, Diagnostics> {
    let mut reader = Reader::new(text, file);
    let Some(table) = reader.parse() else {
        return Err(reader.into_diagnostics(Vec::new()));
    };
    let mut model = root(&mut reader, &Section::root(table.get_ref()));
    let mut problems = Vec::new();
    for (name, server) in &mut model.servers {
        match pins.get(name) {
            Some(bytes) => match definitions(name, bytes) {
                Ok(definitions) => server.definitions = definitions,
                Err(message) => {
                    let file = Path::new("pins").join(format!("{name}.json"));
                    reader.problems.push(Diagnostic::of_file(&file, message));
                }
            },
            None => {
                let message =
                    format!("server `{name}` has no pinned definitions: run `lychgate pin {name}`");
                problems.push(Problem::new(&["servers", name], message));
            }
        }
    }
    let unpinned = problems.len()
        + reader
            .problems
            .iter()
            .filter(|one| one.line.is_none())
            .count();
    match Applied::compile(model) {
        Ok(applied) if problems.is_empty() && reader.problems.is_empty() => Ok(applied),
        Ok(_) => Err(reader.into_diagnostics(problems)),
        Err(found) => {
            // Without the pins nothing can be said of tools; saying so once per server is enough.
            problems.extend(
                found
                    .into_iter()
                    .filter(|problem| unpinned == 0 || !needs_pins(&problem.message)),
            );
            Err(reader.into_diagnostics(problems))
        }
    }
}

fn needs_pins(message: &str) -> bool {
    message.contains(" has no pinned tool ") || message.starts_with("allowed function ")
}

/// One file of the library of reviewed entries.
#[derive(Clone, Debug)]
pub(crate) struct LibraryFile {
    /// Names under which the package is started.
    pub(crate) packages: Vec<String>,
    /// The variable that names the one file the server writes.
    pub(crate) file_env: Option<String>,
    /// Variables the reviewed classes rely on: the server must run with them.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) tools: BTreeMap<String, ToolModel>,
}

/// Reads a file of the library: catalogue entries as in a configuration, and which package they are for.
pub(crate) fn library_file(text: &str) -> Result<LibraryFile, Diagnostics> {
    let mut reader = Reader::new(text, Path::new("library"));
    let Some(table) = reader.parse() else {
        return Err(reader.into_diagnostics(Vec::new()));
    };
    let top = Section::root(table.get_ref());
    reader.known(&top, &["packages", "version", "file_env", "env", "tools"]);
    let file = LibraryFile {
        packages: reader.list(&top, "packages").unwrap_or_default(),
        file_env: reader.text(&top, "file_env"),
        env: server::variables(&mut reader, &top),
        tools: server::entries(&mut reader, &top, "tools"),
    };
    if reader.problems.is_empty() {
        Ok(file)
    } else {
        Err(reader.into_diagnostics(Vec::new()))
    }
}

/// Reads a pin file: `{"version": 1, "server": NAME, "tools": [definition, ...]}`.
fn definitions(server: &str, bytes: &[u8]) -> Result<BTreeMap<String, Value>, String> {
    let limits = json::Limits {
        max_bytes: PIN_BYTES,
        max_depth: 70,
        case: CaseRule::Allow,
    };
    let pinned = json::parse(bytes, &limits).map_err(|fault| fault.to_string())?;
    let members = pinned.as_object().ok_or("it is not an object")?;
    if let Some((key, _)) = members
        .iter()
        .find(|(key, _)| !["version", "server", "tools"].contains(key))
    {
        return Err(format!(
            "unknown member {}",
            crate::diagnostics::quoted(key)
        ));
    }
    if pinned.get("version").and_then(Value::as_u64) != Some(1) {
        return Err("`version` is not 1".to_owned());
    }
    if pinned.get("server").and_then(Value::as_str) != Some(server) {
        return Err(format!("`server` is not `{server}`"));
    }
    let tools = pinned
        .get("tools")
        .and_then(Value::as_array)
        .ok_or("`tools` is not a list")?;
    let mut found = BTreeMap::new();
    for tool in tools {
        let definition = Definition::parse(tool.clone()).map_err(|fault| fault.to_string())?;
        if found
            .insert(definition.name.clone(), definition.value)
            .is_some()
        {
            return Err(format!("tool `{}` is pinned twice", definition.name));
        }
    }
    Ok(found)
}

fn root(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Model {
    reader.known(top, &TOP_KEYS);
    let version = version(reader, top);
    let profiles = [("balanced", Profile::Balanced), ("strict", Profile::Strict)];
    let profile = reader
        .word(top, "profile", &profiles)
        .unwrap_or(Profile::Balanced);
    let unattended = reader.flag(top, "unattended").unwrap_or(false);
    let sources = [
        ("user", SourceType::User),
        ("developer", SourceType::Developer),
        ("system", SourceType::System),
    ];
    let provenance = reader.table(top, "provenance", &["vouch"]);
    let vouch = provenance.and_then(|section| reader.word(&section, "vouch", &sources));
    let jurisdictions = reader
        .table(top, "jurisdictions", &["allow"])
        .map(|section| {
            if !section.has("allow") {
                reader.at_key(&section, "allow", "`jurisdictions` has no `allow`");
            }
            let mut allow = reader.list(&section, "allow").unwrap_or_default();
            allow.sort();
            allow
        });
    Model {
        version,
        object_type: ObjectType::Applied,
        profile,
        unattended,
        principal: principal(reader, top),
        agent: agent(reader, top),
        purpose: purpose(reader, top),
        purposes: purposes(reader, top),
        vouch,
        limits: limits(reader, top),
        reconcile: reconcile(reader, top),
        roots: roots(reader, top),
        destinations: destinations(reader, top),
        jurisdictions,
        approvers: approvers::approvers(reader, top),
        ledger: ledger::ledger(reader, top),
        consent: consent::consent(reader, top),
        telemetry: telemetry::telemetry(reader, top),
        servers: server::servers(reader, top),
    }
}

fn version(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> u32 {
    match reader.whole(top, "version") {
        None if !top.has("version") => {
            reader.at(&[], "`version` is missing: write `version = 1`");
            1
        }
        None => 1,
        Some(version) => u32::try_from(version).unwrap_or(u32::MAX),
    }
}

fn principal(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Principal {
    let section = reader.table(top, "principal", &["id", "type"]);
    let kinds = [
        ("user", PrincipalType::User),
        ("service", PrincipalType::Service),
        ("enterprise", PrincipalType::Enterprise),
        ("device", PrincipalType::Device),
        ("agent", PrincipalType::Agent),
    ];
    let id = section
        .as_ref()
        .and_then(|section| reader.text(section, "id"));
    let kind = section
        .as_ref()
        .and_then(|section| reader.word(section, "type", &kinds));
    Principal {
        id: id.unwrap_or_else(|| "user:local".to_owned()),
        kind: kind.unwrap_or(PrincipalType::User),
    }
}

fn agent(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Agent {
    let section = reader.table(top, "agent", &AGENT_KEYS);
    let id = section
        .as_ref()
        .and_then(|section| reader.text(section, "id"));
    let depth = section
        .as_ref()
        .and_then(|section| reader.whole(section, "max_depth"));
    let mut allow = section
        .as_ref()
        .and_then(|section| reader.list(section, "allow"))
        .unwrap_or_default();
    // The place of an entry is remembered under its text, for sorting moves it.
    for (index, rule) in allow.iter().enumerate() {
        reader.rename(
            &["agent", "allow", &index.to_string()],
            &["agent", "allow", rule],
        );
    }
    allow.sort();
    let uids = section
        .as_ref()
        .and_then(|section| delegation::uids(reader, section));
    let budget = section
        .as_ref()
        .and_then(|section| delegation::budget(reader, section));
    Agent {
        id: id.unwrap_or_else(|| "local-agent".to_owned()),
        max_depth: depth.map_or(0, |depth| u32::try_from(depth).unwrap_or(u32::MAX)),
        allow,
        uids,
        budget,
    }
}

fn purpose(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Purpose {
    let section = reader.table(top, "purpose", &["id", "declared"]);
    let id = section
        .as_ref()
        .and_then(|section| reader.text(section, "id"));
    let declared = section
        .as_ref()
        .and_then(|section| reader.text(section, "declared"));
    Purpose {
        id: id.unwrap_or_else(|| "general".to_owned()),
        declared: declared.unwrap_or_else(|| "What the user asks of this agent".to_owned()),
    }
}

fn purposes(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for section in reader.tables(top, "purposes", &["declared"]) {
        let declared = reader.required(&section, "declared");
        found.insert(section.name().to_owned(), declared.unwrap_or_default());
    }
    found
}

fn limits(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Limits {
    let mut limits = Limits::default();
    let keys = [
        "authority",
        "permit",
        "ticket",
        "hold",
        "decision",
        "arguments_bytes",
        "message_bytes",
        "in_flight",
    ];
    let Some(section) = reader.table(top, "limits", &keys) else {
        return limits;
    };
    for (key, slot) in [
        ("authority", &mut limits.authority),
        ("permit", &mut limits.permit),
        ("ticket", &mut limits.ticket),
        ("hold", &mut limits.hold),
        ("decision", &mut limits.decision),
    ] {
        *slot = reader.duration(&section, key).unwrap_or(*slot);
    }
    for (key, slot) in [
        ("arguments_bytes", &mut limits.arguments_bytes),
        ("message_bytes", &mut limits.message_bytes),
        ("in_flight", &mut limits.in_flight),
    ] {
        *slot = reader.whole(&section, key).unwrap_or(*slot);
    }
    limits
}

fn reconcile(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Reconcile {
    let mut reconcile = Reconcile::default();
    let Some(section) = reader.table(top, "reconcile", &["first", "most", "deadline"]) else {
        return reconcile;
    };
    for (key, slot) in [
        ("first", &mut reconcile.first),
        ("most", &mut reconcile.most),
        ("deadline", &mut reconcile.deadline),
    ] {
        *slot = reader.duration(&section, key).unwrap_or(*slot);
    }
    reconcile
}

fn roots(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> BTreeMap<String, RootModel> {
    let mut found = BTreeMap::new();
    for section in reader.tables(top, "roots", &["path", "recoverable"]) {
        let Some(path) = reader.required(&section, "path") else {
            continue;
        };
        let recoverable = reader.flag(&section, "recoverable").unwrap_or(false);
        found.insert(section.name().to_owned(), RootModel { path, recoverable });
    }
    found
}

fn destinations(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for section in reader.tables(top, "destinations", &["jurisdiction"]) {
        if let Some(jurisdiction) = reader.required(&section, "jurisdiction") {
            found.insert(section.name().to_owned(), jurisdiction);
        }
    }
    found
}

/// The largest pin file, in bytes.
const PIN_BYTES: usize = 16 << 20;

const AGENT_KEYS: [&str; 5] = ["id", "max_depth", "allow", "uids", "budget"];

const TOP_KEYS: [&str; 18] = [
    "version",
    "profile",
    "unattended",
    "principal",
    "agent",
    "purpose",
    "purposes",
    "provenance",
    "limits",
    "reconcile",
    "roots",
    "destinations",
    "jurisdictions",
    "approvers",
    "ledger",
    "consent",
    "telemetry",
    "servers",
];
