//! Catalogue entries proposed to a person by `add`: reviewed ones where the library knows the very definition, else
//! hints from name and schema. A server's annotations only ever make a proposal stricter (PROFILE §8).

use std::collections::BTreeMap;

use lychgate_core::act::ActType;
use lychgate_core::json::Value;
use lychgate_core::{ConsequenceClass, Digest};

use crate::definition::Definition;
use crate::library::Library;
use crate::load::LibraryFile;
use crate::model::{ErrorMeaning, Idempotency, Kind, Role, ToolModel};
use crate::schema::{self, Place};

/// A proposed catalogue entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The function.
    pub function: String,
    /// The definition's digest.
    pub definition: Digest,
    /// What kind of consequence.
    pub class: ConsequenceClass,
    /// The act's type.
    pub act_type: ActType,
    /// A constant destination, when no pointer names one.
    pub fixed: Option<String>,
    /// A constant local file as destination, when the server works on one.
    pub file: Option<String>,
    /// Pointers that name the destination.
    pub destination: BTreeMap<Kind, Vec<String>>,
    /// Pointers that name who receives.
    pub recipient: BTreeMap<Kind, Vec<String>>,
    /// Roles of arguments.
    pub roles: BTreeMap<String, Role>,
    /// Asks even inside a recoverable root.
    pub irreversible: bool,
    /// Reaches into what lies beneath a path it names.
    pub recursive: bool,
    /// What error results mean, when it is not the server's default.
    pub errors: Option<ErrorMeaning>,
    /// Whether the server takes an idempotency key.
    pub idempotency: Idempotency,
    /// False: withheld, because the input schema cannot be checked against.
    pub enabled: bool,
    /// The definition is the one that the library's entry was reviewed for.
    pub reviewed: bool,
    /// For the person, empty for a reviewed entry.
    pub note: String,
}

/// Proposes one entry for each definition, in their order. `command` and `env` are the server's own: they show which
/// package it is and which file it works on.
#[must_use]
pub fn propose(
    server: &str,
    command: &[String],
    env: &BTreeMap<String, String>,
    definitions: &[Definition],
    library: &Library,
) -> Vec<Proposed> {
    let file = library.package(command);
    definitions
        .iter()
        .map(
            |definition| match schema::compile(&definition.input_schema) {
                Ok(_) => one(server, file, env, definition),
                // A schema that is broken, fetches, or needs backtracking: its arguments could not be checked.
                Err(fault) => Proposed {
                    enabled: false,
                    note: format!("withheld, its input schema cannot be used: {fault}"),
                    ..unplaced(server, definition)
                },
            },
        )
        .collect()
}

fn one(
    server: &str,
    file: Option<&LibraryFile>,
    env: &BTreeMap<String, String>,
    definition: &Definition,
) -> Proposed {
    match file.and_then(|file| Some((file, file.entry(&definition.name)?))) {
        Some((_, entry))
            if entry.definition != Some(definition.digest) && !fits(entry, definition) =>
        {
            let mut guess = hint(server, definition);
            guess.note =
                "not the reviewed definition; proposed from its name and schema".to_owned();
            guess
        }
        Some((file, entry)) => known(server, file, entry, env, definition),
        None => hint(server, definition),
    }
}

/// Whether everything the entry points at is still in the schema.
fn fits(entry: &ToolModel, definition: &Definition) -> bool {
    let rules = [&entry.destination, &entry.recipient].into_iter().flatten();
    let pointed = rules.flat_map(|rule| rule.pointers.values().flatten());
    pointed
        .chain(entry.roles.keys())
        .all(|pointer| schema::place(&definition.input_schema, pointer) == Place::Known)
}

fn known(
    server: &str,
    file: &LibraryFile,
    entry: &ToolModel,
    env: &BTreeMap<String, String>,
    definition: &Definition,
) -> Proposed {
    let reviewed = entry.definition == Some(definition.digest);
    let destination = entry.destination.clone().unwrap_or_default();
    let changes = entry.class == ConsequenceClass::PersistentStateChange;
    let own = if changes && destination.pointers.is_empty() {
        file.own_file(env)
    } else {
        None
    };
    let fixed = destination
        .fixed
        .map(|fixed| fixed.replace("{server}", server));
    Proposed {
        function: definition.name.clone(),
        definition: definition.digest,
        class: entry.class,
        act_type: entry.act_type,
        fixed: if own.is_some() { None } else { fixed },
        file: own,
        destination: destination.pointers,
        recipient: entry.recipient.clone().unwrap_or_default().pointers,
        roles: entry.roles.clone(),
        irreversible: entry.irreversible,
        // That a function stays at the path it names was reviewed for one definition only.
        recursive: entry.recursive || !reviewed,
        // What errors mean was reviewed for one definition only.
        errors: entry.errors.filter(|_| reviewed),
        idempotency: entry.idempotency,
        enabled: true,
        reviewed,
        note: if reviewed {
            String::new()
        } else {
            "not the reviewed definition".to_owned()
        },
    }
}

/// A guess for a person to look at. What it cannot place stays OTHER, which asks every time.
fn hint(server: &str, definition: &Definition) -> Proposed {
    let arguments = texts(&definition.input_schema);
    let pick = |words: &[&str]| {
        let named = arguments
            .iter()
            .filter(|name| words.contains(&plain(name).as_str()));
        named
            .map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")))
            .collect::<Vec<_>>()
    };
    let (paths, urls, people) = (pick(&PATHS), pick(&URLS), pick(&PEOPLE));
    let programs = pick(&PROGRAMS);
    let verb = verb(&definition.name);
    let mut proposed = unplaced(server, definition);
    proposed.roles.extend(
        programs
            .iter()
            .map(|pointer| (pointer.clone(), Role::Program)),
    );
    let target = |proposed: &mut Proposed, kind: Kind, pointers: Vec<String>| {
        proposed.roles.extend(
            pointers
                .iter()
                .map(|pointer| (pointer.clone(), Role::Target)),
        );
        proposed.fixed = None;
        proposed.destination = BTreeMap::from([(kind, pointers)]);
    };
    if !programs.is_empty() {
        return proposed;
    }
    if !urls.is_empty() {
        proposed.class = ConsequenceClass::DataDisclosure;
        target(&mut proposed, Kind::Url, urls);
    } else if !people.is_empty() && verb == Verb::Send {
        proposed.class = ConsequenceClass::Communication;
        proposed.act_type = ActType::MessageSend;
        proposed.recipient = BTreeMap::from([(Kind::Email, people.clone())]);
        target(&mut proposed, Kind::Email, people);
    } else if !paths.is_empty() && matches!(verb, Verb::Read | Verb::Write | Verb::Delete) {
        // A server that says that it writes, destroys or reaches out is believed; the opposite never.
        let writes = definition.hint("readOnlyHint") == Some(false)
            || definition.hint("destructiveHint") == Some(true);
        let reads = verb == Verb::Read && !writes && definition.hint("openWorldHint") != Some(true);
        if verb == Verb::Read && !reads {
            return proposed;
        }
        proposed.class = if reads {
            ConsequenceClass::Informational
        } else {
            ConsequenceClass::PersistentStateChange
        };
        proposed.irreversible =
            verb == Verb::Delete || (!reads && definition.hint("destructiveHint") == Some(true));
        target(&mut proposed, Kind::Path, paths);
    } else {
        return proposed;
    }
    proposed.note = "proposed from its name and schema; not reviewed".to_owned();
    proposed
}

fn unplaced(server: &str, definition: &Definition) -> Proposed {
    Proposed {
        function: definition.name.clone(),
        definition: definition.digest,
        class: ConsequenceClass::Other,
        act_type: ActType::ToolCall,
        fixed: Some(format!("server:{server}")),
        file: None,
        destination: BTreeMap::new(),
        recipient: BTreeMap::new(),
        roles: BTreeMap::new(),
        irreversible: false,
        recursive: true,
        errors: None,
        idempotency: Idempotency::None,
        enabled: true,
        reviewed: false,
        note: "nobody reviewed it: it asks every time".to_owned(),
    }
}

/// The arguments that are texts or lists of texts.
fn texts(schema: &Value) -> Vec<&str> {
    let is_text = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("string");
    let fits = |schema: &Value| is_text(schema) || schema.get("items").is_some_and(is_text);
    let properties = schema.get("properties").and_then(Value::as_object);
    let fitting = properties
        .into_iter()
        .flat_map(|all| all.iter().filter(|(_, schema)| fits(schema)));
    fitting.map(|(name, _)| name).collect()
}

/// An argument's name without case and separators.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Read,
    Write,
    Delete,
    Send,
    Unknown,
}

/// What the words of a name say; among several the most severe counts.
fn verb(name: &str) -> Verb {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() || !c.is_ascii_alphanumeric() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    let words = words
        .split(|c: char| !c.is_ascii_alphanumeric())
        .collect::<Vec<_>>();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    if has(&[
        "send", "post", "reply", "forward", "notify", "email", "mail", "message",
    ]) {
        Verb::Send
    } else if has(&[
        "delete", "remove", "rm", "drop", "purge", "clear", "truncate", "destroy", "reset",
    ]) {
        Verb::Delete
    } else if has(&[
        "write", "edit", "create", "move", "rename", "copy", "append", "update", "set", "save",
        "add", "put",
    ]) {
        Verb::Write
    } else if has(&[
        "read", "list", "get", "view", "show", "search", "find", "stat", "info", "tree",
    ]) {
        Verb::Read
    } else {
        Verb::Unknown
    }
}

const PATHS: [&str; 14] = [
    "path",
    "paths",
    "filepath",
    "filename",
    "file",
    "files",
    "directory",
    "dir",
    "folder",
    "source",
    "destination",
    "repopath",
    "oldpath",
    "newpath",
];
const URLS: [&str; 6] = ["url", "urls", "uri", "link", "href", "endpoint"];
const PEOPLE: [&str; 7] = [
    "to",
    "cc",
    "bcc",
    "recipient",
    "recipients",
    "email",
    "emails",
];
const PROGRAMS: [&str; 12] = [
    "command",
    "commands",
    "cmd",
    "code",
    "script",
    "sql",
    "shell",
    "program",
    "expression",
    "eval",
    "javascript",
    "template",
];
