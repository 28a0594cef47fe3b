//! The `[servers.*]` tables and their catalogue entries.

use std::collections::BTreeMap;

use lychgate_core::act::ActType;
use lychgate_core::digest::Algorithm;
use lychgate_core::{ConsequenceClass, Digest};

use super::read::{Reader, Section};
use super::read_back::read_back;
use crate::model::{ErrorMeaning, Idempotency, Kind, Role, Rule, ServerModel, ToolModel};

pub(super) fn servers(
    reader: &mut Reader<'_>,
    top: &Section<'_, '_>,
) -> BTreeMap<String, ServerModel> {
    let sections = reader.tables(top, "servers", &SERVER_KEYS);
    sections
        .into_iter()
        .map(|section| (section.name().to_owned(), server(reader, &section)))
        .collect()
}

/// The literal variables of a server.
pub(super) fn variables(
    reader: &mut Reader<'_>,
    section: &Section<'_, '_>,
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    if let Some(variables) = reader.open(section, "env") {
        for name in variables.keys().collect::<Vec<_>>() {
            if let Some(value) = reader.text(&variables, name) {
                env.insert(name.to_owned(), value);
            }
        }
    }
    env
}

fn server(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> ServerModel {
    let command = reader.list(section, "command").unwrap_or_default();
    let env = variables(reader, section);
    ServerModel {
        command,
        cwd: reader.text(section, "cwd"),
        env,
        pass_env: reader.list(section, "pass_env").unwrap_or_default(),
        entry: digest(reader, section, "entry"),
        roots: reader.list(section, "roots").unwrap_or_default(),
        timeout: reader.duration(section, "timeout").unwrap_or(60_000),
        errors: reader
            .word(section, "errors", &ERRORS)
            .unwrap_or(ErrorMeaning::Unknown),
        sampling: reader.flag(section, "sampling").unwrap_or(false),
        elicitation: reader.flag(section, "elicitation").unwrap_or(true),
        tools: entries(reader, section, "tools"),
        methods: entries(reader, section, "methods"),
        definitions: BTreeMap::new(),
    }
}

pub(super) fn entries(
    reader: &mut Reader<'_>,
    section: &Section<'_, '_>,
    key: &str,
) -> BTreeMap<String, ToolModel> {
    let sections = reader.tables(section, key, &TOOL_KEYS);
    sections
        .into_iter()
        .map(|section| (section.name().to_owned(), entry(reader, &section)))
        .collect()
}

fn entry(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> ToolModel {
    let classes = ConsequenceClass::ALL.map(|class| (class.name(), class));
    let class = match reader.required(section, "class") {
        Some(_) => reader
            .word(section, "class", &classes)
            .unwrap_or(ConsequenceClass::Other),
        None => ConsequenceClass::Other,
    };
    let mut roles = BTreeMap::new();
    if let Some(pointers) = reader.open(section, "roles") {
        for pointer in pointers.keys().collect::<Vec<_>>() {
            if let Some(role) = reader.word(&pointers, pointer, &ROLES) {
                roles.insert(pointer.to_owned(), role);
            }
        }
    }
    ToolModel {
        definition: digest(reader, section, "definition"),
        class,
        act_type: reader
            .word(section, "act_type", &ACT_TYPES)
            .unwrap_or(ActType::ToolCall),
        destination: rule(reader, section, "destination"),
        recipient: rule(reader, section, "recipient"),
        roles,
        unit: reader.text(section, "unit"),
        envelope: super::delegation::envelope(reader, section),
        purposes: reader.list(section, "purposes").unwrap_or_default(),
        aliases: reader.list(section, "aliases").unwrap_or_default(),
        irreversible: reader.flag(section, "irreversible").unwrap_or(false),
        recursive: reader.flag(section, "recursive").unwrap_or(true),
        errors: reader.word(section, "errors", &ERRORS),
        timeout: reader.duration(section, "timeout"),
        idempotency: reader
            .word(section, "idempotency", &IDEMPOTENCY)
            .unwrap_or(Idempotency::None),
        read_back: read_back(reader, section),
        case_variants: reader.flag(section, "case_variants").unwrap_or(false),
        enabled: reader.flag(section, "enabled").unwrap_or(true),
    }
}

fn rule(reader: &mut Reader<'_>, section: &Section<'_, '_>, key: &str) -> Option<Rule> {
    let keys = ["fixed", "file"]
        .into_iter()
        .chain(Kind::ALL.map(Kind::name))
        .collect::<Vec<_>>();
    let table = reader.table(section, key, &keys)?;
    let mut pointers = BTreeMap::new();
    for kind in Kind::ALL {
        if let Some(list) = reader.list(&table, kind.name()) {
            pointers.insert(kind, list);
        }
    }
    Some(Rule {
        fixed: reader.text(&table, "fixed"),
        file: reader.text(&table, "file"),
        pointers,
    })
}

fn digest(reader: &mut Reader<'_>, section: &Section<'_, '_>, key: &str) -> Option<Digest> {
    let text = reader.text(section, key)?;
    let digest = Digest::from_base64url(Algorithm::Sha256, &text);
    if digest.is_err() {
        reader.at_key(
            section,
            key,
            format!("`{key}` is not a SHA-256 digest in base64url"),
        );
    }
    digest.ok()
}

const SERVER_KEYS: [&str; 12] = [
    "command",
    "cwd",
    "env",
    "pass_env",
    "entry",
    "roots",
    "timeout",
    "errors",
    "sampling",
    "elicitation",
    "tools",
    "methods",
];

const TOOL_KEYS: [&str; 18] = [
    "definition",
    "class",
    "act_type",
    "destination",
    "recipient",
    "roles",
    "unit",
    "envelope",
    "purposes",
    "aliases",
    "irreversible",
    "recursive",
    "errors",
    "timeout",
    "idempotency",
    "read_back",
    "case_variants",
    "enabled",
];

const ERRORS: [(&str, ErrorMeaning); 2] = [
    ("unknown", ErrorMeaning::Unknown),
    ("no-effect", ErrorMeaning::NoEffect),
];

const IDEMPOTENCY: [(&str, Idempotency); 2] =
    [("none", Idempotency::None), ("meta", Idempotency::Meta)];

const ROLES: [(&str, Role); 8] = [
    ("target", Role::Target),
    ("selector", Role::Selector),
    ("amount", Role::Amount),
    ("command", Role::Command),
    ("credential", Role::Credential),
    ("control", Role::Control),
    ("content", Role::Content),
    ("program", Role::Program),
];

const ACT_TYPES: [(&str, ActType); 11] = [
    ("TOOL_CALL", ActType::ToolCall),
    ("FUNCTION_CALL", ActType::FunctionCall),
    ("API_REQUEST", ActType::ApiRequest),
    ("BROWSER_ACTION", ActType::BrowserAction),
    ("SHELL_ACTION", ActType::ShellAction),
    ("MESSAGE_SEND", ActType::MessageSend),
    ("FILE_WRITE", ActType::FileWrite),
    ("MEMORY_WRITE", ActType::MemoryWrite),
    ("AGENT_DELEGATION", ActType::AgentDelegation),
    ("PAYMENT_REQUEST", ActType::PaymentRequest),
    ("OTHER", ActType::Other),
];
