//! The configuration as a command reads it: the file, and the pinned definitions beside it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lychgate_core::json::{self, Object, Value};
use lychgate_core::{display, jcs};
use lychgate_policy::{Applied, Definition, Diagnostics, Pins, Root};
use lychgate_server::protocol::Configuration;
use lychgate_sinks::mcp::Launch;
use toml_edit::{DocumentMut, Item};

use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::{Places, shown};

/// What stands in the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The text of `lychgate.toml`.
    pub(crate) text: String,
    /// The pin files, by server.
    pub(crate) pins: Pins,
}

impl Written {
    /// Reads the files.
    pub(crate) fn read(places: &Places) -> Outcome<Self> {
        let bytes = files::read(&places.config, MOST_TEXT)?.ok_or_else(|| {
            Stop::usage(format!(
                "there is no configuration at `{}`",
                shown(&places.config)
            ))
            .try_this("lychgate init")
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Stop::usage(format!("`{}` is not UTF-8 text", shown(&places.config))))?;
        Ok(Self {
            text,
            pins: pins(places)?,
        })
    }

    /// Checks and compiles it here, without the gate.
    pub(crate) fn compile(&self, places: &Places) -> Result<Applied, Diagnostics> {
        lychgate_policy::load(&self.text, &places.config, &self.pins)
    }

    /// As the gate takes it.
    pub(crate) fn for_gate(&self, places: &Places) -> Configuration {
        Configuration::new(self.text.as_str(), &places.config, &self.pins)
    }
}

/// Every problem on a line of its own, at its place.
pub(crate) fn problems(places: &Places, found: &Diagnostics) -> Stop {
    let lines = found.iter().map(ToString::to_string).collect::<Vec<_>>();
    let count = crate::terminal::count(lines.len(), "problem", "problems");
    let head = format!("{count} in `{}`", shown(&places.config));
    Stop::usage(format!("{head}\n{}", lines.join("\n")))
}

/// The bytes of a pin file.
pub(crate) fn pin_file(server: &str, definitions: &[Definition]) -> Vec<u8> {
    let mut file = Object::new();
    let tools = definitions
        .iter()
        .map(|definition| definition.value.clone())
        .collect();
    file.insert(
        "version".to_owned(),
        json::Number::from_u64(1).map_or(Value::Null, Value::Number),
    );
    file.insert("server".to_owned(), Value::from(server));
    file.insert("tools".to_owned(), Value::Array(tools));
    jcs::to_bytes(&Value::Object(file))
}

/// The roots of the configuration's text, path by name.
pub(crate) fn roots(text: &str) -> Outcome<BTreeMap<String, String>> {
    let document = parse(text)?;
    let roots = document.get("roots").and_then(Item::as_table_like);
    let of = |item: &Item| {
        item.get("path")
            .and_then(Item::as_str)
            .map(ToOwned::to_owned)
    };
    Ok(roots
        .into_iter()
        .flat_map(|roots| roots.iter())
        .filter_map(|(name, item)| Some((name.to_owned(), of(item)?)))
        .collect())
}

/// How a server is started, as the text says, whatever its pins say.
pub(crate) fn launch_of(text: &str, server: &str) -> Outcome<Launch> {
    let document = parse(text)?;
    let servers = document.get("servers").and_then(Item::as_table_like);
    let names = || {
        servers
            .into_iter()
            .flat_map(|servers| servers.iter())
            .map(|(name, _)| name)
    };
    let Some(entry) = servers.and_then(|servers| servers.get(server)) else {
        let known = names().map(display::escape).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() {
            "there is none yet".to_owned()
        } else {
            format!("there are: {known}")
        };
        return Err(Stop::usage(format!(
            "there is no server `{}`; {known}",
            display::escape(server)
        )));
    };
    let texts = |key: &str| {
        let items = entry.get(key).and_then(Item::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(|item| item.as_str())
            .map(ToOwned::to_owned)
            .collect::<Vec<_>>()
    };
    let env = entry.get("env").and_then(Item::as_table_like);
    let env = env.into_iter().flat_map(|env| env.iter());
    let all = roots(text)?;
    let roots = texts("roots").into_iter().filter_map(|name| {
        let path = all.get(&name)?.into();
        Some(Root {
            name,
            path,
            recoverable: false,
        })
    });
    Ok(Launch {
        command: texts("command"),
        cwd: entry.get("cwd").and_then(Item::as_str).map(Into::into),
        env: env
            .filter_map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned())))
            .collect(),
        pass_env: texts("pass_env"),
        roots: roots.collect(),
        timeout: Duration::from_secs(60),
    })
}

/// Whether a function has a catalogue entry.
pub(crate) fn has_entry(text: &str, server: &str, function: &str) -> Outcome<bool> {
    let document = parse(text)?;
    let servers = document
        .get("servers")
        .and_then(|servers| servers.get(server));
    let tools = servers.and_then(|server| server.get("tools"));
    Ok(tools.and_then(|tools| tools.get(function)).is_some())
}

/// The pinned digest of a server's entry file.
pub(crate) fn entry_pin(text: &str, server: &str) -> Outcome<Option<String>> {
    let document = parse(text)?;
    let servers = document
        .get("servers")
        .and_then(|servers| servers.get(server));
    let entry = servers.and_then(|server| server.get("entry"));
    Ok(entry.and_then(Item::as_str).map(ToOwned::to_owned))
}

fn parse(text: &str) -> Outcome<DocumentMut> {
    text.parse::<DocumentMut>().map_err(|fault| {
        let why = fault
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        Stop::usage(format!(
            "the configuration is not TOML: {}",
            display::escape(&why)
        ))
        .try_this("lychgate check")
    })
}

/// A name for a root: its last folder's, in the letters the configuration takes, and not one of `taken`.
pub(crate) fn root_name<'a>(path: &Path, taken: impl Fn(&str) -> bool + 'a) -> String {
    let last = path
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let plain = last
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect::<String>();
    let plain = plain.trim_matches('-').chars().take(40).collect::<String>();
    let base = if plain.is_empty() {
        "root".to_owned()
    } else {
        plain
    };
    let mut name = base.clone();
    let mut number = 2_u32;
    while taken(&name) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

fn pins(places: &Places) -> Outcome<Pins> {
    let folder = places.pins();
    let unreadable =
        |fault: std::io::Error| Stop::usage(format!("cannot read `{}`: {fault}", shown(&folder)));
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(Pins::new()),
        Err(fault) => return Err(unreadable(fault)),
    };
    let mut pins = Pins::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".json"));
        if let Some(name) = name.filter(|name| !name.starts_with('.'))
            && let Some(bytes) = files::read(&path, MOST_PINS)?
        {
            pins.insert(name.to_owned(), bytes);
        }
    }
    Ok(pins)
}

const MOST_TEXT: u64 = 4 << 20;
const MOST_PINS: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn root_names_are_plain_and_their_own() {
        assert_eq!(
            root_name(Path::new("/home/a/My Files!"), |_| false),
            "my-files"
        );
        assert_eq!(root_name(Path::new("/"), |_| false), "root");
        assert_eq!(
            root_name(Path::new("/a/src"), |name| name == "src"),
            "src-2"
        );
    }
}
