//! The tests' one server, `box`, and its tools.

use std::path::Path;

use lychgate_core::jcs;
use lychgate_core::json::{self, Value};
use lychgate_policy::{Applied, Definition, Pins, load};

use super::{Folder, value_of};

/// Name, properties of the input schema, and the body of the catalogue entry; no body: no entry.
const TOOLS: [(&str, &str, Option<&str>); 11] = [
    (
        "read_note",
        PATH,
        Some(
            "class = \"INFORMATIONAL\"\ndestination = { path = [\"/path\"] }\naliases = [\"ReadNote\"]",
        ),
    ),
    (
        "write_note",
        NOTE,
        Some(
            "class = \"PERSISTENT_STATE_CHANGE\"\nact_type = \"FILE_WRITE\"\ndestination = { path = [\"/path\"] }\n\
             roles = { \"/path\" = \"target\", \"/text\" = \"content\" }\naliases = [\"WriteNote\"]\nidempotency = \"meta\"",
        ),
    ),
    (
        "erase_note",
        PATH,
        Some(
            "class = \"PERSISTENT_STATE_CHANGE\"\ndestination = { path = [\"/path\"] }\nirreversible = true",
        ),
    ),
    (
        "send_mail",
        MAIL,
        Some(
            "class = \"COMMUNICATION\"\nact_type = \"MESSAGE_SEND\"\ndestination = { fixed = \"mail\" }\n\
             recipient = { email = [\"/to\"] }\nidempotency = \"meta\"",
        ),
    ),
    (
        "pay",
        PAY,
        Some(
            "class = \"FINANCIAL\"\nact_type = \"PAYMENT_REQUEST\"\ndestination = { fixed = \"bank\" }\n\
             recipient = { text = [\"/to\"] }\nroles = { \"/amount\" = \"amount\" }",
        ),
    ),
    ("wipe", "", None),
    (
        "search",
        URL,
        Some("class = \"DATA_DISCLOSURE\"\ndestination = { url = [\"/url\"] }"),
    ),
    (
        "run",
        RUN,
        Some(
            "class = \"PERSISTENT_STATE_CHANGE\"\ndestination = { path = [\"/path\"] }\nroles = { \"/script\" = \"program\" }",
        ),
    ),
    (
        "purposed",
        "",
        Some(
            "class = \"INFORMATIONAL\"\ndestination = { fixed = \"ledger\" }\npurposes = [\"billing\"]",
        ),
    ),
    (
        "withheld",
        "",
        Some("class = \"INFORMATIONAL\"\ndestination = { fixed = \"x\" }\nenabled = false"),
    ),
    (
        "unlisted",
        "",
        Some("class = \"INFORMATIONAL\"\ndestination = { fixed = \"x\" }"),
    ),
];

const PATH: &str = r#""path":{"type":"string"}"#;
const NOTE: &str = r#""path":{"type":"string"},"text":{"type":"string"},"size":{"type":"number"}"#;
const MAIL: &str = r#""to":{"type":"string"},"body":{"type":"string"}"#;
const PAY: &str = r#""to":{"type":"string"},"amount":{"type":"number"}"#;
const URL: &str = r#""url":{"type":"string"}"#;
const RUN: &str = r#""path":{"type":"string"},"script":{"type":"string"}"#;

fn definition(name: &str, properties: &str) -> Definition {
    let text = format!(
        r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{{properties}}},"additionalProperties":false}}}}"#
    );
    Definition::parse(value_of(text.as_bytes())).unwrap()
}

/// The text of the configuration.
pub fn text(folder: &Folder) -> String {
    let (work, plain) = (folder.path("work"), folder.path("plain"));
    let allowed = TOOLS
        .iter()
        .filter(|(name, ..)| !["unlisted", "withheld"].contains(name));
    let allow = allowed
        .map(|(name, ..)| format!("\"box/{name}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let mut text = format!(
        "version = 1\nunattended = false\n[principal]\nid = \"user:alice\"\n[agent]\nid = \"agent-1\"\nallow = [{allow}]\n\
         [purpose]\nid = \"general\"\ndeclared = \"Tests\"\n[purposes.billing]\ndeclared = \"Billing\"\n\
         [limits]\nhold = \"120s\"\n[roots.work]\npath = \"{}\"\nrecoverable = true\n[roots.plain]\npath = \"{}\"\n\
         [destinations.\"search.example\"]\njurisdiction = \"DE\"\n\
         [servers.box]\ncommand = [\"/bin/box\"]\nroots = [\"work\", \"plain\"]\n",
        work.display(),
        plain.display(),
    );
    for (name, properties, entry) in TOOLS {
        if let Some(entry) = entry {
            let digest = definition(name, properties).digest.to_base64url();
            text += &format!("[servers.box.tools.{name}]\ndefinition = \"{digest}\"\n{entry}\n");
        }
    }
    text
}

pub fn applied(folder: &Folder, edit: impl Fn(String) -> String) -> Applied {
    let tools = TOOLS
        .iter()
        .map(|(name, properties, _)| definition(name, properties).value)
        .collect::<Vec<_>>();
    let mut file = json::Object::new();
    file.insert("version".to_owned(), value_of(b"1"));
    file.insert("server".to_owned(), Value::from("box"));
    file.insert("tools".to_owned(), Value::from(tools));
    let pins = Pins::from([("box".to_owned(), jcs::to_bytes(&Value::Object(file)))]);
    match load(&edit(text(folder)), Path::new("lychgate.toml"), &pins) {
        Ok(applied) => applied,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}
