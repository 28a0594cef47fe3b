//! Broken configurations and the exact words they are answered with.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use proptest::prelude::*;
use support::{definition, pins, read, single};

const SERVER: &str = "version = 1\n[servers.s]\ncommand = [\"/bin/s\"]\n";

/// Reads `text` beside a server `s` with the function `f(path, content)`; `D` in the text is its digest.
fn said(text: &str) -> String {
    let function = definition("f", &["path", "content"]);
    let text = text.replace("$D", &function.digest.to_base64url());
    let pins = pins(&[
        ("s", &[function, definition("g", &[])]),
        ("s_f", &[definition("g", &[])]),
    ]);
    read(&text, &pins).map_or_else(|problems| problems.to_string(), |_| "fine".to_owned())
}

#[test]
fn each_mistake_has_its_line_and_what_was_meant() {
    let entry = |body: &str| format!("{SERVER}[servers.s.tools.f]\ndefinition = \"$D\"\n{body}\n");
    let cases = [
        (
            "",
            "lychgate.toml: `version` is missing: write `version = 1`",
        ),
        (
            "version = 2",
            "lychgate.toml:1: version 2 is not known: this build reads version 1",
        ),
        (
            "version = 1\nprofil = \"strict\"",
            "lychgate.toml:2: unknown key `profil` (did you mean `profile`?)",
        ),
        (
            "version = 1\nprofile = \"balance\"",
            "lychgate.toml:2: `profile` must be one of `balanced`, `strict`, not `balance` (did you mean `balanced`?)",
        ),
        (
            "version = 1\nunattended = \"yes\"",
            "lychgate.toml:2: `unattended` must be `true` or `false`, not a text",
        ),
        (
            "version = 1\n[principal]\nid = \"\"",
            "lychgate.toml:3: `id` must have 1 to 256 bytes and no control characters",
        ),
        (
            "version = 1\n[provenance]\nvouch = \"tool\"",
            "lychgate.toml:3: `vouch` must be one of `user`, `developer`, `system`, not `tool`",
        ),
        (
            "version = 1\n[limits]\nauthority = \"10\"",
            "lychgate.toml:3: `10` is not a duration such as `500ms`, `10s`, `15m` or `1h`",
        ),
        (
            "version = 1\n[limits]\nauthority = \"2h\"",
            "lychgate.toml:3: `authority` must be from 100 ms to 300000 ms",
        ),
        (
            "version = 1\n[limits]\nin_flight = -1",
            "lychgate.toml:3: `in_flight` must be a whole number from 0, not a whole number",
        ),
        (
            "version = 1\n[roots.work]\npath = \"src\"",
            "lychgate.toml:3: path `src` is not absolute",
        ),
        (
            "version = 1\n[roots.work]\npath = \"/a/../b\"",
            "lychgate.toml:3: path `/a/../b` has `..` or control characters",
        ),
        (
            "version = 1\n[roots.work]\nrecoverable = true",
            "lychgate.toml:2: `work` has no `path`",
        ),
        (
            "version = 1\n[destinations.\"a.example\"]\njurisdiction = \"Germany\"",
            "lychgate.toml:3: jurisdiction `Germany` is not a code such as `DE` or `US-CA`",
        ),
        (
            "version = 1\n[agent]\nallow = [\"z\"]",
            "lychgate.toml:3: allowed server `z` is not in the catalogue",
        ),
        (
            "version = 1\n[agent]\nallow = [\"*\"]",
            "lychgate.toml:3: `*` has a `*`: name a server, or server/function",
        ),
        (
            "version = 1\n[jurisdictions]",
            "lychgate.toml:2: `jurisdictions` has no `allow`",
        ),
        ("version = 1\nversion = 1", "lychgate.toml:2: duplicate key"),
        (
            "version = ",
            "lychgate.toml:1: string values must be quoted, expected literal string",
        ),
        (
            "version = 1\n[servers.t]\ncommand = [\"/bin/t\"]",
            "lychgate.toml:2: server `t` has no pinned definitions: run `lychgate pin t`",
        ),
        (
            "version = 1\n[servers.s]\ncommand = [\"s\"]",
            "lychgate.toml:3: path `s` is not absolute",
        ),
        (
            "version = 1\n[servers.s]\ncommand = []",
            "lychgate.toml:3: `command` is empty",
        ),
        (
            "version = 1\n[servers.s]\ncommand = [\"/bin/s\", 1]",
            "lychgate.toml:3: `command` must be a list of texts, not of a whole number",
        ),
        (
            &format!("{SERVER}roots = [\"wrk\"]\n[roots.work]\npath = \"/w\""),
            "lychgate.toml:4: root `wrk` is not declared (did you mean `work`?)",
        ),
        (
            &format!("{SERVER}env = {{ \"A B\" = \"x\" }}"),
            "lychgate.toml:4: `A B` cannot be set in an environment",
        ),
        (
            &format!("{SERVER}env = {{ A = \"x\" }}\npass_env = [\"A\"]"),
            "lychgate.toml:5: `A` is also set in `env`",
        ),
        (
            &format!("{SERVER}entry = \"abc\""),
            "lychgate.toml:4: `entry` is not a SHA-256 digest in base64url",
        ),
        (
            &format!("{SERVER}[agent]\nallow = [\n  \"s\",\n  \"s/ff\",\n]"),
            "lychgate.toml:7: allowed function `s/ff` does not exist (did you mean `s/f`?)",
        ),
        (
            &format!("{SERVER}[agent]\nallow = [\"s\", \"s\"]"),
            "lychgate.toml:5: `s` is allowed twice",
        ),
        (
            &format!("{SERVER}[servers.s.tools.ff]\nclass = \"OTHER\""),
            "lychgate.toml:4: server `s` has no pinned tool `ff` (did you mean `f`?)",
        ),
        (
            &format!("{SERVER}[servers.s.tools.f]\nclass = \"OTHER\""),
            "lychgate.toml:4: tool `f` has no pinned `definition`: run `lychgate pin s`",
        ),
        (
            &format!("{SERVER}[servers.s.tools.g]\ndefinition = \"$D\"\nclass = \"OTHER\""),
            "lychgate.toml:5: `definition` of `g` is not the pinned one: run `lychgate pin s`",
        ),
        (
            &entry("clas = \"OTHER\""),
            "lychgate.toml:4: `f` has no `class`\n\nlychgate.toml:6: unknown key `clas` (did you mean `class`?)",
        ),
        (
            &entry("class = \"INFORMATIVE\""),
            "lychgate.toml:6: `class` must be one of `INFORMATIONAL`, `DATA_DISCLOSURE`, `PERSISTENT_STATE_CHANGE`, `FINANCIAL`, `NETWORK_CONTROL`, `PHYSICAL`, `COMMUNICATION`, `OTHER`, not `INFORMATIVE` (did you mean `INFORMATIONAL`?)",
        ),
        (
            &entry("class = \"OTHER\"\ndestination = { path = [\"/pth\"] }"),
            "lychgate.toml:7: `f` has no argument `/pth` (did you mean `/path`?)",
        ),
        (
            &entry("class = \"OTHER\"\ndestination = { path = [\"path\"] }"),
            "lychgate.toml:7: `path` is not a json pointer to an argument (did you mean `/path`?)",
        ),
        (
            &entry("class = \"OTHER\"\ndestination = { path = \"/path\" }"),
            "lychgate.toml:7: `destination` must have either `fixed`, or `file`, or lists of pointers\n\nlychgate.toml:7: `path` must be a list of texts, not a text",
        ),
        (
            &entry("class = \"OTHER\"\ndestination = { fixed = \"a\", path = [\"/path\"] }"),
            "lychgate.toml:7: `destination` must have either `fixed`, or `file`, or lists of pointers",
        ),
        (
            &entry("class = \"OTHER\"\nrecipient = { path = [\"/path\"] }"),
            "lychgate.toml:7: a path cannot name a recipient",
        ),
        (
            &entry("class = \"INFORMATIONAL\"\ndestination = { url = [\"/path\"] }"),
            "lychgate.toml:6: a function with a `url` destination discloses its arguments: it cannot be INFORMATIONAL (did you mean `DATA_DISCLOSURE`?)",
        ),
        (
            &entry("class = \"OTHER\"\nroles = { \"/contents\" = \"content\" }"),
            "lychgate.toml:7: `f` has no argument `/contents` (did you mean `/content`?)",
        ),
        (
            &entry("class = \"OTHER\"\nroles = { \"/content\" = \"contents\" }"),
            "lychgate.toml:7: `/content` must be one of `target`, `selector`, `amount`, `command`, `credential`, `control`, `content`, `program`, not `contents` (did you mean `content`?)",
        ),
        (
            &entry("class = \"OTHER\"\npurposes = [\"generl\"]"),
            "lychgate.toml:7: purpose `generl` is not declared (did you mean `general`?)",
        ),
        (
            &entry("class = \"OTHER\"\naliases = [\"g\"]"),
            "lychgate.toml:7: alias `g` is also a function of `s`",
        ),
        (
            &entry("class = \"OTHER\"\naliases = [\"F\", \"F\"]"),
            "lychgate.toml:7: alias `F` stands for both `f` and `f`",
        ),
        (
            &entry("class = \"OTHER\"\naliases = [\"fаke\"]"),
            "lychgate.toml:7: alias `fаke` is refused: only ASCII letters, digits and `_ - . /`",
        ),
        (
            &entry("class = \"OTHER\"\nenabled = false\n[agent]\nallow = [\"s/f\"]"),
            "lychgate.toml:9: allowed function `s/f` is not enabled",
        ),
        (
            &format!("{SERVER}[servers.s.methods.\"tools/list\"]\nclass = \"OTHER\""),
            "lychgate.toml:4: method `tools/list` is the gate's own business",
        ),
        (
            &format!(
                "{SERVER}[servers.s.methods.\"resources/read\"]\ndefinition = \"$D\"\nclass = \"OTHER\""
            ),
            "lychgate.toml:5: a method has no `definition`: only tools are pinned",
        ),
        (
            &format!(
                "{SERVER}[servers.s_f]\ncommand = [\"/bin/s\"]\n[servers.s.tools.f]\ndefinition = \"$D\"\nclass = \"OTHER\"\naliases = [\"f_g\"]"
            ),
            "lychgate.toml:4: `s_f/g` and `s/f_g` are both `s_f_g` once a client joins the names: rename a server or disable one",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(said(text), expected, "for\n{text}");
    }
}

#[test]
fn a_server_name_that_could_be_a_path_or_another_name_is_refused() {
    for name in ["\"../x\"", "S", "\"a b\"", "-a", "\"sервer\"", "\"a.b\""] {
        let text = format!("version = 1\n[servers.{name}]\ncommand = [\"/bin/s\"]\n");
        assert!(
            said(&text).contains("is refused"),
            "{name}: {}",
            said(&text)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_is_refused_or_read_but_never_a_crash(at in 0_usize..400, length in 0_usize..12, put in "\\PC{0,6}") {
        let function = definition("f", &["path", "content"]);
        let text = format!(
            "{SERVER}roots = [\"work\"]\ntimeout = \"5s\"\n[servers.s.tools.f]\ndefinition = \"{}\"\nclass = \"OTHER\"\n\
             destination = {{ path = [\"/path\"] }}\nroles = {{ \"/content\" = \"content\" }}\naliases = [\"F\"]\n\
             [roots.work]\npath = \"/work\"\n[agent]\nallow = [\"s/f\"]\n[limits]\nhold = \"1m\"\n",
            function.digest.to_base64url()
        );
        let kept = text.chars().take(at).chain(put.chars()).chain(text.chars().skip(at + length));
        let damaged = kept.collect::<String>();
        if let Err(problems) = read(&damaged, &pins(&[("s", &[function])])) {
            prop_assert!(problems.iter().len() > 0);
            let lines = damaged.lines().count() + 1;
            prop_assert!(problems.iter().all(|problem| problem.line.is_none_or(|line| (1..=lines).contains(&line))));
        }
    }
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_file() {
    let text = "version = 1\nprofil = 1\n[roots.a]\npath = \"x\"\n[agent]\nallow = [\"q\"]\n";
    let function = definition("f", &[]);
    let problems = read(text, &pins(&[("s", &[function])])).unwrap_err();
    assert_eq!(
        problems
            .iter()
            .map(|one| one.line.unwrap())
            .collect::<Vec<_>>(),
        [2, 4, 6]
    );
}

#[test]
fn pins_are_read_strictly() {
    let text = "version = 1\n[servers.s]\ncommand = [\"/bin/s\"]\n";
    for (bytes, expected) in [
        (&b"{}"[..], "s.json: `version` is not 1"),
        (
            br#"{"version":1,"server":"t","tools":[]}"#,
            "s.json: `server` is not `s`",
        ),
        (
            br#"{"version":1,"server":"s","tools":[],"x":1}"#,
            "s.json: unknown member `x`",
        ),
        (
            br#"{"version":1,"version":1,"server":"s","tools":[]}"#,
            "s.json: duplicate key at `/version`, byte 13",
        ),
        (
            br#"{"version":1,"server":"s","tools":[{"name":"a b"}]}"#,
            "s.json: tool name `a b` is refused: only ASCII letters, digits and `_ - . /`",
        ),
        (
            br#"{"version":1,"server":"s","tools":[{"name":"a"},{"name":"a"}]}"#,
            "s.json: tool `a` is pinned twice",
        ),
    ] {
        let pins = [("s".to_owned(), bytes.to_vec())].into();
        assert_eq!(read(text, &pins).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_schema_that_fetches_or_needs_backtracking_is_a_load_error() {
    for schema in [
        r#"{"$ref":"https://evil.example/s.json"}"#,
        r#"{"properties":{"a":{"pattern":"(?=x)x"}}}"#,
        r#"{"type":"nonsense"}"#,
    ] {
        let text = format!(
            r#"{{"version":1,"server":"s","tools":[{{"name":"a","inputSchema":{schema}}}]}}"#
        );
        let pins = [("s".to_owned(), text.into_bytes())].into();
        let said = read("version = 1\n[servers.s]\ncommand = [\"/bin/s\"]\n", &pins)
            .unwrap_err()
            .to_string();
        assert!(
            said.starts_with("lychgate.toml:2: input schema of `a` cannot be used: "),
            "{said}"
        );
    }
}

#[test]
fn an_entry_that_says_everything_is_read() {
    let entry = "class = \"COMMUNICATION\"\nact_type = \"MESSAGE_SEND\"\ndestination = { email = [\"/to\"] }\n\
        recipient = { email = [\"/to\"] }\nroles = { \"/text\" = \"content\" }\npurposes = [\"general\"]\naliases = [\"Send\"]\n\
        irreversible = true\nerrors = \"no-effect\"\ntimeout = \"30s\"\nidempotency = \"meta\"\ncase_variants = true\n";
    let applied = single("", &["to", "text"], entry).unwrap();
    let tool = applied.server("s").unwrap().tool("f").unwrap();
    assert_eq!(tool.timeout.as_secs(), 30);
    assert!(tool.catalogued && tool.irreversible && tool.case_variants);
}
