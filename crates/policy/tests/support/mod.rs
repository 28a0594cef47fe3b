//! What the tests share: paths without a machine, configurations, and a decision from end to end.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use lychgate_core::act::SourceType;
use lychgate_core::json::{self, Limits, Value};
use lychgate_policy::{
    Applied, Definition, Diagnostics, Finding, PathRefused, Paths, Pins, Profile, Resolution,
    Situation, allowlisted, judge, load, strictest,
};

/// Folds `..` by the letters alone; `/links/out` is a link to `/etc`.
pub(crate) struct Lexical;

impl Paths for Lexical {
    fn resolve(&self, path: &str, base: Option<&Path>) -> Result<PathBuf, PathRefused> {
        let path = Path::new(path);
        let whole = match base {
            _ if path.is_absolute() => path.to_owned(),
            Some(base) => base.join(path),
            None => return Err(PathRefused("relative")),
        };
        let mut real = PathBuf::new();
        for part in whole.components() {
            match part {
                Component::ParentDir => drop(real.pop()),
                Component::CurDir => {}
                part => real.push(part),
            }
            if real.ends_with("links/out") {
                real = PathBuf::from("/etc");
            }
        }
        Ok(real)
    }

    fn forbidden(&self, path: &Path) -> bool {
        path.starts_with(GATE)
    }

    fn holds_forbidden(&self, path: &Path) -> bool {
        Path::new(GATE).starts_with(path) && Path::new(GATE) != path
    }
}

const GATE: &str = "/home/alice/.config/lychgate";

pub(crate) fn value(text: &str) -> Value {
    json::parse(text.as_bytes(), &Limits::ARGUMENTS).unwrap()
}

/// A definition with these properties, all texts but `paths`, `to` and `many`, which are lists of texts.
pub(crate) fn definition(name: &str, properties: &[&str]) -> Definition {
    let fields = properties.iter().map(|property| match *property {
        "paths" | "to" | "many" => {
            format!(r#""{property}":{{"type":"array","items":{{"type":"string"}}}}"#)
        }
        _ => format!(r#""{property}":{{"type":"string"}}"#),
    });
    let fields = fields.collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{{fields}}},"additionalProperties":false}}}}"#
    );
    Definition::parse(value(&text)).unwrap()
}

pub(crate) fn pins(servers: &[(&str, &[Definition])]) -> Pins {
    let one = |(name, definitions): &(&str, &[Definition])| {
        let tools = definitions
            .iter()
            .map(|definition| definition.value.clone())
            .collect::<Vec<_>>();
        let mut file = json::Object::new();
        file.insert("version".to_owned(), value("1"));
        file.insert("server".to_owned(), Value::from(*name));
        file.insert("tools".to_owned(), Value::from(tools));
        (
            (*name).to_owned(),
            lychgate_core::jcs::to_bytes(&Value::Object(file)),
        )
    };
    servers.iter().map(one).collect()
}

pub(crate) fn read(text: &str, pins: &Pins) -> Result<Applied, Diagnostics> {
    load(
        text,
        Path::new("/home/alice/.config/lychgate/lychgate.toml"),
        pins,
    )
}

/// One server `s` with one function `f` of the given properties; `entry` is the body of its table.
pub(crate) fn single(head: &str, properties: &[&str], entry: &str) -> Result<Applied, Diagnostics> {
    let definition = definition("f", properties);
    let digest = definition.digest.to_base64url();
    let text = format!(
        "version = 1\n{head}\n[roots.work]\npath = \"/work\"\nrecoverable = true\n[roots.plain]\npath = \"/plain\"\n\
         [servers.s]\ncommand = [\"/bin/s\"]\ncwd = \"/work\"\nroots = [\"work\", \"plain\"]\n[servers.s.tools.f]\n\
         definition = \"{digest}\"\n{entry}\n"
    );
    read(&text, &pins(&[("s", &[definition])]))
}

/// From a call to the strictest finding, as the gate goes about it.
pub(crate) fn decide(applied: &Applied, name: &str, args: &Value) -> u8 {
    let Some(server) = applied.server("s") else {
        return 2;
    };
    let Resolution::Exact(entry) = server.resolve(name) else {
        return 2;
    };
    if !allowlisted(applied, "s", &entry.function)
        || entry.validate(args).is_err()
        || !entry.serves(&applied.purpose().id)
    {
        return 2;
    }
    let Ok(reach) = entry.destinations(args, &Lexical, server) else {
        return 2;
    };
    let findings = judge(&Situation {
        profile: applied.profile(),
        class: entry.class,
        source: applied.vouch(),
        vouched: applied.vouch().is_some(),
        targets: &reach.targets,
        irreversible: entry.irreversible,
        has_program: entry.roles(args).has_program(),
        recipient_present: !reach.recipients.is_empty(),
    });
    match strictest(&findings) {
        Finding::Ask { .. } if applied.unattended() => 2,
        finding => finding.rank(),
    }
}

pub(crate) const PROFILES: [Profile; 2] = [Profile::Balanced, Profile::Strict];

pub(crate) const SOURCES: [Option<SourceType>; 8] = [
    None,
    Some(SourceType::User),
    Some(SourceType::System),
    Some(SourceType::Developer),
    Some(SourceType::Tool),
    Some(SourceType::Retrieval),
    Some(SourceType::Memory),
    Some(SourceType::Agent),
];

pub(crate) fn no_env() -> BTreeMap<String, String> {
    BTreeMap::new()
}
