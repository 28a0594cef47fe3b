//! Edits of the configuration's text that keep its comments and order.

use std::collections::BTreeMap;

use lychgate_core::Digest;
use lychgate_core::act::ActType;
use lychgate_core::json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::model::{ErrorMeaning, Idempotency, Kind};
use crate::propose::Proposed;

/// A server to write into the configuration.
#[derive(Clone, Debug, Default)]
pub struct NewServer {
    /// Its name.
    pub name: String,
    /// Program, absolute, and arguments.
    pub command: Vec<String>,
    /// Working folder, absolute.
    pub cwd: Option<String>,
    /// Literal environment.
    pub env: BTreeMap<String, String>,
    /// Names copied from the gate's environment.
    pub pass_env: Vec<String>,
    /// Digest of the entry file.
    pub entry: Option<Digest>,
    /// Names of roots.
    pub roots: Vec<String>,
    /// One entry for each function.
    pub tools: Vec<Proposed>,
}

/// Why the text cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditFault {
    /// The file is not TOML.
    #[error("configuration is not TOML: {0}")]
    Syntax(String),
    /// The name is taken.
    #[error("server `{0}` is already in the configuration")]
    Exists(String),
    /// There is no such server or function.
    #[error("`{0}` is not in the configuration")]
    Missing(String),
    /// A key on the way is not a table, or not a list.
    #[error("`{0}` in the configuration is neither table nor list")]
    Kind(String),
}

/// Adds a server with its entries, and its name to the agent's allowlist.
///
/// # Errors
/// When the text is not TOML, the name is taken, or a key on the way is of another kind.
pub fn add_server(text: &str, server: &NewServer) -> Result<String, EditFault> {
    let mut document = parse(text)?;
    let servers = table(document.as_table_mut(), "servers", true)?;
    if servers.contains_key(&server.name) {
        return Err(EditFault::Exists(server.name.clone()));
    }
    servers.insert(&server.name, Item::Table(written(server)));
    let agent = table(document.as_table_mut(), "agent", false)?;
    let allow = agent
        .entry("allow")
        .or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let allow = allow
        .as_array_mut()
        .ok_or_else(|| EditFault::Kind("agent.allow".to_owned()))?;
    let named = |rule: &Value| rule.as_str() == Some(&server.name);
    if !allow.iter().any(named) {
        allow.push(server.name.as_str());
    }
    Ok(document.to_string())
}

/// Sets the pinned digest of one function; a function without an entry needs none and the text stays as it is.
///
/// # Errors
/// When the text is not TOML or there is no such server.
pub fn set_pin(
    text: &str,
    server: &str,
    function: &str,
    digest: &Digest,
) -> Result<String, EditFault> {
    let mut document = parse(text)?;
    let missing = || EditFault::Missing(server.to_owned());
    let servers = document
        .get_mut("servers")
        .and_then(Item::as_table_like_mut)
        .ok_or_else(missing)?;
    let entry = servers
        .get_mut(server)
        .and_then(Item::as_table_like_mut)
        .ok_or_else(missing)?;
    let tool = entry
        .get_mut("tools")
        .and_then(Item::as_table_like_mut)
        .and_then(|tools| tools.get_mut(function))
        .and_then(Item::as_table_like_mut);
    if let Some(tool) = tool {
        set(tool, "definition", digest.to_base64url().into());
    }
    Ok(document.to_string())
}

/// Adds a root.
///
/// # Errors
/// When the text is not TOML, or `roots` is no table.
pub fn with_root(
    text: &str,
    name: &str,
    path: &str,
    recoverable: bool,
) -> Result<String, EditFault> {
    let mut document = parse(text)?;
    let roots = table(document.as_table_mut(), "roots", true)?;
    let mut root = Table::new();
    root.insert("path", Item::Value(path.into()));
    root.insert("recoverable", Item::Value(recoverable.into()));
    roots.insert(name, Item::Table(root));
    Ok(document.to_string())
}

/// Sets the pinned digest of a server's entry file, or takes it out.
///
/// # Errors
/// When the text is not TOML or there is no such server.
pub fn with_entry_pin(text: &str, server: &str, digest: Option<&str>) -> Result<String, EditFault> {
    let mut document = parse(text)?;
    let table = document
        .get_mut("servers")
        .and_then(|servers| servers.get_mut(server))
        .and_then(Item::as_table_like_mut)
        .ok_or_else(|| EditFault::Missing(server.to_owned()))?;
    match digest {
        Some(digest) => set(table, "entry", digest.into()),
        None => drop(table.remove("entry")),
    }
    Ok(document.to_string())
}

/// Takes the entry of a function out, and its own line in the agent's allowlist, because its server no longer has it.
///
/// # Errors
/// When the text is not TOML.
pub fn remove_tool(text: &str, server: &str, function: &str) -> Result<String, EditFault> {
    let mut document = parse(text)?;
    let tools = document
        .get_mut("servers")
        .and_then(|servers| servers.get_mut(server))
        .and_then(|server| server.get_mut("tools"))
        .and_then(Item::as_table_like_mut);
    if let Some(tools) = tools {
        tools.remove(function);
    }
    let allow = document
        .get_mut("agent")
        .and_then(|agent| agent.get_mut("allow"))
        .and_then(Item::as_array_mut);
    if let Some(allow) = allow {
        let gone = format!("{server}/{function}");
        allow.retain(|rule| rule.as_str() != Some(gone.as_str()));
    }
    Ok(document.to_string())
}

/// Sets a value and keeps the comments round the one it replaces.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

fn parse(text: &str) -> Result<DocumentMut, EditFault> {
    text.parse::<DocumentMut>().map_err(|fault| {
        EditFault::Syntax(
            fault
                .message()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        )
    })
}

fn table<'a>(
    parent: &'a mut Table,
    key: &str,
    implicit: bool,
) -> Result<&'a mut dyn TableLike, EditFault> {
    let item = parent.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(implicit);
        Item::Table(table)
    });
    item.as_table_like_mut()
        .ok_or_else(|| EditFault::Kind(key.to_owned()))
}

fn written(server: &NewServer) -> Table {
    let mut table = Table::new();
    table.insert("command", list(&server.command));
    if let Some(cwd) = &server.cwd {
        table.insert("cwd", text(cwd));
    }
    if !server.env.is_empty() {
        let env = server
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
        table.insert(
            "env",
            Item::Value(Value::InlineTable(env.collect::<InlineTable>())),
        );
    }
    if !server.pass_env.is_empty() {
        table.insert("pass_env", list(&server.pass_env));
    }
    if let Some(entry) = &server.entry {
        table.insert("entry", text(&entry.to_base64url()));
    }
    table.insert("roots", list(&server.roots));
    let mut tools = Table::new();
    tools.set_implicit(true);
    for tool in &server.tools {
        tools.insert(&tool.function, Item::Table(entry(tool)));
    }
    table.insert("tools", Item::Table(tools));
    table
}

fn entry(tool: &Proposed) -> Table {
    let mut table = Table::new();
    if !tool.note.is_empty() {
        let note = lychgate_core::display::escape(&tool.note);
        table.decor_mut().set_prefix(format!("\n# {note}\n"));
    }
    table.insert("definition", text(&tool.definition.to_base64url()));
    table.insert("class", text(tool.class.name()));
    if tool.act_type != ActType::ToolCall {
        // The draft's own word, as JSON has it too.
        if let Ok(json::Value::String(word)) = json::to_value(&tool.act_type) {
            table.insert("act_type", text(&word));
        }
    }
    if let Some(rule) = rule(
        tool.fixed.as_deref(),
        tool.file.as_deref(),
        &tool.destination,
    ) {
        table.insert("destination", rule);
    }
    if let Some(rule) = rule(None, None, &tool.recipient) {
        table.insert("recipient", rule);
    }
    if !tool.roles.is_empty() {
        let roles = tool
            .roles
            .iter()
            .map(|(pointer, role)| (pointer.as_str(), Value::from(role.name())));
        table.insert(
            "roles",
            Item::Value(Value::InlineTable(roles.collect::<InlineTable>())),
        );
    }
    if tool.irreversible {
        table.insert("irreversible", Item::Value(true.into()));
    }
    if !tool.recursive {
        table.insert("recursive", Item::Value(false.into()));
    }
    if let Some(errors) = tool.errors {
        table.insert(
            "errors",
            text(if errors == ErrorMeaning::NoEffect {
                "no-effect"
            } else {
                "unknown"
            }),
        );
    }
    if tool.idempotency == Idempotency::Meta {
        table.insert("idempotency", text("meta"));
    }
    if !tool.enabled {
        table.insert("enabled", Item::Value(false.into()));
    }
    table
}

fn rule(
    fixed: Option<&str>,
    file: Option<&str>,
    pointers: &BTreeMap<Kind, Vec<String>>,
) -> Option<Item> {
    let mut rule = InlineTable::new();
    if let Some(fixed) = fixed {
        rule.insert("fixed", fixed.into());
    }
    if let Some(file) = file {
        rule.insert("file", file.into());
    }
    for (kind, pointers) in pointers {
        rule.insert(
            kind.name(),
            Value::Array(pointers.iter().map(String::as_str).collect()),
        );
    }
    (!rule.is_empty()).then_some(Item::Value(Value::InlineTable(rule)))
}

fn text(text: &str) -> Item {
    Item::Value(text.into())
}

fn list(texts: &[String]) -> Item {
    Item::Value(Value::Array(texts.iter().map(String::as_str).collect()))
}
