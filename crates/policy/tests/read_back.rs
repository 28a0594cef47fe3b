//! Read-backs as they are written: what is taken, and the exact words for what is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use lychgate_policy::{Applied, Definition, Diagnostics, Effect, changes};
use support::{pins, read, value};

const PAY: &str = r#"{"name":"pay","inputSchema":{"type":"object","properties":{"ref":{"type":"string"},"amount":{"type":"integer"}}}}"#;
const FIND: &str = r#"{"name":"find","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"key":{"type":"string"}},"required":["id"]},"outputSchema":{"type":"object","properties":{"status":{"type":"string"}}}}"#;
const GOOD: &str = "tool = \"find\"\narguments = { id = \"/ref\" }\n\
    effect_when = { pointer = \"/structuredContent/status\", equals = \"booked\" }\n";

/// Reads a server with `pay`, of this class and with this table, and `find`; `ls` is pinned and has no entry.
fn loaded(class: &str, find: &str, table: &str) -> Result<Applied, Diagnostics> {
    let one = |text: &str| Definition::parse(value(text)).unwrap();
    let (pay, find_definition) = (one(PAY), one(FIND));
    let ls = one(r#"{"name":"ls","inputSchema":{"type":"object"}}"#);
    let text = format!(
        "version = 1\n[servers.s]\ncommand = [\"/bin/s\"]\n[servers.s.tools.find]\ndefinition = \"{}\"\nclass = \"{find}\"\n\
         [servers.s.tools.pay]\ndefinition = \"{}\"\nclass = \"{class}\"\n[servers.s.tools.pay.read_back]\n{table}\n",
        find_definition.digest.to_base64url(),
        pay.digest.to_base64url(),
    );
    read(&text, &pins(&[("s", &[pay, find_definition, ls])]))
}

fn said(class: &str, find: &str, table: &str) -> String {
    loaded(class, find, table).map_or_else(|problems| problems.to_string(), |_| "fine".to_owned())
}

#[test]
fn a_rule_is_read_kept_and_comes_back_from_the_snapshot() {
    let table = format!(
        "{GOOD}no_effect_when = {{ pointer = \"/content/0/text\", equals = \"none\", error = true }}\ntrust_no_effect = true\n"
    );
    let applied = loaded("OTHER", "INFORMATIONAL", &table).unwrap();
    let server = applied.server("s").unwrap();
    assert!(server.reads_back("find") && !server.reads_back("pay"));
    let rule = server.tool("pay").unwrap().read_back.clone().unwrap();
    assert!(rule.trust_no_effect && rule.no_effect_when.as_ref().unwrap().error);
    let again = Applied::from_snapshot(&applied.snapshot()).unwrap();
    assert_eq!(
        again.server("s").unwrap().tool("pay").unwrap().read_back,
        Some(rule)
    );
    // Who trusts more, or looks elsewhere, widens.
    let before = loaded("OTHER", "INFORMATIONAL", GOOD).unwrap();
    let widened = changes(Some(&before), &applied);
    assert!(
        widened.iter().any(|change| change.effect == Effect::Widens),
        "{widened:?}"
    );
}

#[test]
fn when_it_is_asked_is_bounded_and_a_snapshot_of_before_stays_as_it_was() {
    let usual = read("version = 1\n", &pins(&[])).unwrap();
    assert!(
        !String::from_utf8(usual.snapshot())
            .unwrap()
            .contains("reconcile")
    );
    let text = "version = 1\n[reconcile]\nfirst = \"100ms\"\nmost = \"1s\"\ndeadline = \"3s\"\n";
    let quick = read(text, &pins(&[])).unwrap();
    assert_eq!(
        (quick.reconcile().first, quick.reconcile().deadline),
        (100, 3000)
    );
    Applied::from_snapshot(&quick.snapshot()).unwrap();
    let own = read(
        "version = 1\n[agent]\nid = \"lychgate-reconciler\"\n",
        &pins(&[]),
    );
    let words = "lychgate.toml:3: agent id `lychgate-reconciler` is the gate's own";
    assert_eq!(own.unwrap_err().to_string(), words);
    for (body, words) in [
        (
            "first = \"1ms\"",
            ":3: `first` must be from 100 ms to 3600000 ms",
        ),
        (
            "most = \"1s\"",
            ":3: `most` must be from 2000 ms to 86400000 ms",
        ),
        (
            "dead_line = \"1s\"",
            ":3: unknown key `dead_line` (did you mean `deadline`?)",
        ),
    ] {
        let problems = read(&format!("version = 1\n[reconcile]\n{body}\n"), &pins(&[]));
        assert_eq!(
            problems.unwrap_err().to_string(),
            format!("lychgate.toml{words}")
        );
    }
}

#[test]
fn each_mistake_has_its_line_and_what_was_meant() {
    let with = |line: &str| GOOD.replace("arguments = { id = \"/ref\" }", line);
    let when = |inner: &str| {
        format!("tool = \"find\"\narguments = {{ id = \"/ref\" }}\neffect_when = {{ {inner} }}\n")
    };
    let at_pointer = |pointer: &str| when(&format!("pointer = \"{pointer}\", equals = 1"));
    let trusts = "no_effect_when = { pointer = \"/structuredContent/status\", equals = \"no\" }\ntrust_no_effect = true\n";
    let other = [
        (
            GOOD.replace("tool =", "tol ="),
            "10: `read_back` has no `tool`",
        ),
        (
            GOOD.replace("\"find\"", "\"fnd\""),
            "11: server `s` has no pinned tool `fnd` to read back with (did you mean `find`?)",
        ),
        (
            GOOD.replace("\"find\"", "\"ls\""),
            "11: tool `ls` has no entry: only an INFORMATIONAL one reads back",
        ),
        (
            with("arguments = { idd = \"/ref\", id = \"/ref\" }"),
            "12: `find` has no argument `idd` (did you mean `id`?)",
        ),
        (with("arguments = {}"), "12: `find` needs the argument `id`"),
        (
            with("arguments = { id = \"ref\" }"),
            "12: `ref` is not a json pointer to an argument (did you mean `/ref`?)",
        ),
        (
            with("arguments = { id = \"/reff\" }"),
            "12: `pay` has no argument `/reff` (did you mean `/ref`?)",
        ),
        (
            with("arguments = { id = { valu = 1 } }"),
            "12: unknown key `valu` (did you mean `value`?)",
        ),
        (
            with("arguments = { id = \"/ref\", key = { idempotency_key = true } }"),
            "12: no key goes out with `pay`: write `idempotency = \"meta\"`",
        ),
        (
            at_pointer("status"),
            "13: `status` is not a json pointer into a result (did you mean `/status`?)",
        ),
        (
            at_pointer("/structuredContents/status"),
            "13: a result has no `/structuredContents` (did you mean `/structuredContent/status`?)",
        ),
        (
            at_pointer("/structuredContent/statuss"),
            "13: a result of `find` has no `/structuredContent/statuss` (did you mean `/structuredContent/status`?)",
        ),
        (
            when("pointer = \"/content/0/text\""),
            "13: `effect_when` must have exactly one of `equals`, `equals_argument`, `digest_of_argument`, `idempotency_key`, `absent`",
        ),
        (
            when("pointer = \"/content/0/text\", equals_argument = \"/amout\""),
            "13: `pay` has no argument `/amout` (did you mean `/amount`?)",
        ),
        (
            when("pointer = \"/content/0/text\", equals = 1, error = true"),
            "13: an error says nothing of an effect: `error` stands in `no_effect_when` only",
        ),
        (
            when("pointer = \"/content/0/text\", equals = 1.5"),
            "13: `equals` must be a text, a whole number or a truth value, not a number with a fraction",
        ),
        (
            format!("{GOOD}trust_no_effect = true\n"),
            "14: `trust_no_effect` has no `no_effect_when` to trust",
        ),
        (
            format!("{GOOD}trust_noeffect = true\n"),
            "14: unknown key `trust_noeffect` (did you mean `trust_no_effect`?)",
        ),
        (
            "tool = \"find\"\narguments = { id = \"/ref\" }\n".to_owned(),
            "10: `read_back` has neither `effect_when` nor `no_effect_when`",
        ),
    ];
    for (table, words) in other {
        let told = said("OTHER", "INFORMATIONAL", &table);
        assert!(
            told.contains(&format!("lychgate.toml:{words}")),
            "{table}\n{told}\nwanted {words}"
        );
    }
    assert_eq!(said("FINANCIAL", "INFORMATIONAL", GOOD), "fine");
    assert_eq!(
        said("FINANCIAL", "INFORMATIONAL", &format!("{GOOD}{trusts}")),
        "lychgate.toml:15: `no effect` is never trusted for a FINANCIAL function: a person must say"
    );
    assert_eq!(
        said("OTHER", "OTHER", GOOD),
        "lychgate.toml:11: tool `find` is OTHER: only an INFORMATIONAL one reads back"
    );
    assert!(said("INFORMATIONAL", "INFORMATIONAL", GOOD).contains("has no effect to look up"));
}
