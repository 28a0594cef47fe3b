//! The tour's world: one gate, a folder of notes, and two servers, of which one loses its answers.

use std::path::{Path, PathBuf};

use lychgate_core::Digest;
use lychgate_policy::Pins;

use super::lab::{Fault, Folder, Lab, Plan, at, definition, pins};
use super::server::DEFINITIONS;

/// The server that behaves.
pub(super) const DESK: &str = "desk";
/// The server that performs a call and dies before it answers.
pub(super) const FRAGILE: &str = "fragile";

/// Everything the tour plays with.
pub(super) struct World {
    pub(super) lab: Lab,
    pub(super) notes: PathBuf,
    pub(super) effects: PathBuf,
    pub(super) config: String,
    pub(super) pins: Pins,
}

impl World {
    /// Sets it up in `folder`.
    pub(super) async fn make(folder: &Folder) -> Result<Self, Fault> {
        let state = folder.inside("state")?;
        let notes = folder.inside("notes")?;
        let effects = folder.path().join("effects.jsonl");
        let config = config(&notes, &effects)?;
        let definitions = DEFINITIONS.iter().map(|text| definition(text));
        let definitions = definitions.collect::<Result<Vec<_>, _>>()?;
        let mut pinned = pins(DESK, &definitions)?;
        pinned.extend(pins(FRAGILE, &definitions)?);
        let plan = Plan {
            state: &state,
            config: &config,
            pins: &pinned,
            passphrase: Some(b"a passphrase only a person knows"),
        };
        let lab = Lab::open(&plan).await?;
        Ok(Self {
            lab,
            notes,
            effects,
            config,
            pins: pinned,
        })
    }

    /// How many effects the servers themselves say they performed.
    pub(super) fn performed(&self) -> usize {
        let log = std::fs::read_to_string(&self.effects).unwrap_or_default();
        log.lines().count()
    }

    /// The path of a note.
    pub(super) fn note(&self, name: &str) -> String {
        self.notes.join(name).display().to_string()
    }

    /// The pinned definition of a tool.
    pub(super) fn definition(&self, function: &str) -> Option<Digest> {
        let current = self.lab.gate.current();
        let entry = current.applied.server(DESK)?.tool(function)?;
        Some(entry.definition)
    }
}

/// The embedded `lychgate.toml`.
fn config(notes: &Path, effects: &Path) -> Result<String, Fault> {
    let program = std::env::current_exe().map_err(at("this program's own path"))?;
    let mut text = HEAD.replace("@NOTES@", &quoted(notes)?);
    for (server, switches) in [(DESK, ""), (FRAGILE, ", \"--die-after-call\"")] {
        let mut table = SERVER
            .replace("@SERVER@", server)
            .replace("@SWITCHES@", switches)
            .replace("@PROGRAM@", &quoted(&program)?)
            .replace("@EFFECTS@", &quoted(effects)?);
        for text in DEFINITIONS {
            let definition = definition(text)?;
            let mark = format!("@{}@", definition.name);
            table = table.replace(&mark, &definition.digest.to_base64url());
        }
        text.push_str(&table);
    }
    Ok(text)
}

fn quoted(path: &Path) -> Result<String, Fault> {
    let text = path
        .to_str()
        .ok_or_else(|| Fault(format!("`{}` is not UTF-8", path.display())))?;
    Ok(toml_edit::Value::from(text).to_string().trim().to_owned())
}

const HEAD: &str = r#"version = 1
unattended = false
[agent]
id = "tour-agent"
allow = ["desk", "fragile"]
[limits]
hold = "1s"
[roots.notes]
path = @NOTES@
recoverable = true
"#;

const SERVER: &str = r#"
[servers.@SERVER@]
command = [@PROGRAM@, "tour-server", "--effects", @EFFECTS@@SWITCHES@]
roots = ["notes"]
timeout = "10s"
[servers.@SERVER@.tools.write_note]
definition = "@write_note@"
class = "PERSISTENT_STATE_CHANGE"
act_type = "FILE_WRITE"
destination = { path = ["/path"] }
roles = { "/path" = "target", "/content" = "content" }
[servers.@SERVER@.tools.read_note]
definition = "@read_note@"
class = "INFORMATIONAL"
destination = { path = ["/path"] }
roles = { "/path" = "target" }
[servers.@SERVER@.tools.look_up]
definition = "@look_up@"
class = "DATA_DISCLOSURE"
destination = { url = ["/url"] }
roles = { "/url" = "target" }
[servers.@SERVER@.tools.send_message]
definition = "@send_message@"
class = "COMMUNICATION"
act_type = "MESSAGE_SEND"
destination = { email = ["/to"] }
recipient = { email = ["/to"] }
roles = { "/to" = "target", "/text" = "content" }
"#;
