//! What narrows and what widens; and: nothing that lets more through is ever called anything but widening.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use lychgate_policy::{Applied, Effect, changes};
use proptest::prelude::*;
use support::{decide, definition, pins, read, single, value};

fn effects(old: &Applied, new: &Applied) -> Vec<Effect> {
    changes(Some(old), new)
        .into_iter()
        .map(|change| change.effect)
        .collect()
}

const ENTRY: &str = "class = \"PERSISTENT_STATE_CHANGE\"\ndestination = { path = [\"/path\"] }";

#[test]
fn each_change_goes_the_way_it_says() {
    let one = |head: &str, entry: &str| single(head, &["path", "content"], entry).unwrap();
    let base = one("", ENTRY);
    assert_eq!(effects(&base, &base), []);
    let with = |more: &str| one("", &format!("{ENTRY}\n{more}"));
    let class = |class: &str| one("", &ENTRY.replace("PERSISTENT_STATE_CHANGE", class));
    for (what, old, new, there, back) in [
        (
            "profile",
            &one("profile = \"strict\"", ENTRY),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "unattended",
            &one("unattended = true", ENTRY),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "allow",
            &base,
            &one("[agent]\nallow = [\"s/f\"]", ENTRY),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "vouch",
            &base,
            &one("[provenance]\nvouch = \"user\"", ENTRY),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "ttl",
            &base,
            &one("[limits]\nauthority = \"20s\"", ENTRY),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "depth",
            &base,
            &one("[agent]\nmax_depth = 1", ENTRY),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "jurisdictions",
            &one("[jurisdictions]\nallow = []", ENTRY),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "recursive",
            &base,
            &with("recursive = false"),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "irreversible",
            &with("irreversible = true"),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "errors",
            &base,
            &with("errors = \"no-effect\""),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "timeout",
            &base,
            &with("timeout = \"2m\""),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "alias",
            &base,
            &with("aliases = [\"F\"]"),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "case",
            &base,
            &with("case_variants = true"),
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "enabled",
            &with("enabled = false"),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "program",
            &with("roles = { \"/content\" = \"program\" }"),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "content",
            &base,
            &with("roles = { \"/content\" = \"content\" }"),
            Effect::Neutral,
            Effect::Neutral,
        ),
        (
            "purposes",
            &with("purposes = [\"general\"]"),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "to OTHER",
            &class("OTHER"),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
        (
            "class",
            &class("INFORMATIONAL"),
            &base,
            Effect::Widens,
            Effect::Widens,
        ),
        (
            "money to OTHER",
            &class("FINANCIAL"),
            &class("OTHER"),
            Effect::Widens,
            Effect::Widens,
        ),
        (
            "purpose",
            &base,
            &one("[purpose]\nid = \"p\"", ENTRY),
            Effect::Widens,
            Effect::Widens,
        ),
        (
            "principal",
            &base,
            &one("[principal]\nid = \"user:bob\"", ENTRY),
            Effect::Widens,
            Effect::Widens,
        ),
        (
            "destination",
            &base,
            &one("", &ENTRY.replace("/path\"]", "/content\"]")),
            Effect::Widens,
            Effect::Widens,
        ),
        (
            "no destination",
            &one("", "class = \"PERSISTENT_STATE_CHANGE\""),
            &base,
            Effect::Widens,
            Effect::Narrows,
        ),
    ] {
        assert_eq!(effects(old, new), [there], "{what}");
        assert_eq!(effects(new, old), [back], "{what}, back");
    }
}

#[test]
fn a_changed_server_or_definition_widens() {
    let text = |function: &lychgate_policy::Definition, command: &str, more: &str| {
        format!(
            "version = 1\n[roots.a]\npath = \"/a\"\nrecoverable = true\n[roots.b]\npath = \"/a/b\"\n[servers.s]\n\
             command = [\"{command}\"]\n{more}\n[servers.s.tools.f]\ndefinition = \"{}\"\nclass = \"OTHER\"\n",
            function.digest.to_base64url()
        )
    };
    let build = |properties: &[&str], command: &str, more: &str| {
        let function = definition("f", properties);
        read(
            &text(&function, command, more),
            &pins(&[("s", &[function])]),
        )
        .unwrap()
    };
    let base = build(&["a"], "/bin/s", "roots = [\"a\"]");
    for (what, new, expected) in [
        (
            "command",
            build(&["a"], "/bin/t", "roots = [\"a\"]"),
            vec![Effect::Widens],
        ),
        (
            "definition",
            build(&["b"], "/bin/s", "roots = [\"a\"]"),
            vec![Effect::Widens],
        ),
        (
            "environment",
            build(
                &["a"],
                "/bin/s",
                "roots = [\"a\"]\nenv = { KEY = \"hunter2\" }",
            ),
            vec![Effect::Widens],
        ),
        (
            "passed",
            build(&["a"], "/bin/s", "roots = [\"a\"]\npass_env = [\"HOME\"]"),
            vec![Effect::Widens],
        ),
        (
            "folder",
            build(&["a"], "/bin/s", "roots = [\"a\"]\ncwd = \"/x\""),
            vec![Effect::Widens],
        ),
        (
            "sampling",
            build(&["a"], "/bin/s", "roots = [\"a\"]\nsampling = true"),
            vec![Effect::Widens],
        ),
        (
            "elicitation",
            build(&["a"], "/bin/s", "roots = [\"a\"]\nelicitation = false"),
            vec![Effect::Narrows],
        ),
        (
            "root",
            build(&["a"], "/bin/s", "roots = []"),
            vec![Effect::Narrows],
        ),
        (
            "inner root",
            build(&["a"], "/bin/s", "roots = [\"a\", \"b\"]"),
            vec![Effect::Widens],
        ),
    ] {
        assert_eq!(effects(&base, &new), expected, "{what}");
        let told = changes(Some(&base), &new)
            .into_iter()
            .map(|change| change.text)
            .collect::<String>();
        assert!(
            !told.contains("hunter2"),
            "values of the environment are not shown"
        );
    }
    let inner = build(&["a"], "/bin/s", "roots = [\"a\", \"b\"]");
    assert_eq!(
        effects(&inner, &base),
        [Effect::Widens],
        "what the inner root covered is now recoverable"
    );
}

#[test]
fn the_first_configuration_widens_by_what_it_allows_alone() {
    let empty = read("version = 1\n[roots.a]\npath = \"/a\"\n", &pins(&[])).unwrap();
    let first = changes(None, &empty);
    assert!(
        first.iter().all(|change| change.effect == Effect::Neutral),
        "{first:?}"
    );
    let full = single("[agent]\nallow = [\"s\"]", &["path"], ENTRY).unwrap();
    assert!(
        changes(None, &full)
            .iter()
            .any(|change| change.effect == Effect::Widens)
    );
}

#[test]
fn what_is_shown_cannot_steer_a_terminal() {
    let function = definition("f", &[]);
    let text = "version = 1\n[servers.s]\ncommand = [\"/bin/s\", \"\\u001b[2K\\u202e\"]\n";
    let evil = read(text, &pins(&[("s", &[function])])).unwrap();
    let told = changes(None, &evil)
        .into_iter()
        .map(|change| change.text)
        .collect::<String>();
    assert!(told.contains("\\u{1b}[2K\\u{202e}"), "{told}");
}

/// Everything that bears on a decision, each with what it may say; the first of each is the likeliest.
const KNOBS: [&[&str]; 19] = [
    &["profile = \"balanced\"\n", "profile = \"strict\"\n"],
    &["unattended = false\n", "unattended = true\n"],
    &[
        "[agent]\nallow = [\"s\"]\n",
        "[agent]\nallow = [\"s/f\"]\n",
        "[agent]\nallow = []\n",
    ],
    &["", "[provenance]\nvouch = \"user\"\n"],
    &[
        "",
        "[jurisdictions]\nallow = [\"DE\"]\n",
        "[jurisdictions]\nallow = [\"US\"]\n",
    ],
    &[
        "[destinations.\"root:work\"]\njurisdiction = \"DE\"\n",
        "[destinations.x]\njurisdiction = \"US\"\n",
        "[destinations.\"root:inner\"]\njurisdiction = \"DE\"\n",
    ],
    &["[purposes.p]\ndeclared = \"p\"\n[roots.work]\npath = \"/work\"\n"],
    &["recoverable = true\n", "recoverable = false\n"],
    &[
        "[roots.inner]\npath = \"/work/in\"\nrecoverable = false\n",
        "[roots.inner]\npath = \"/work/in\"\nrecoverable = true\n",
    ],
    &[
        "[roots.other]\npath = \"/other\"\nrecoverable = true\n",
        "[roots.other]\npath = \"/etc\"\nrecoverable = true\n",
    ],
    &[
        "[servers.s]\ncommand = [\"/bin/s\"]\nroots = [\"work\"]\n",
        "[servers.s]\ncommand = [\"/bin/s\"]\nroots = [\"work\", \"inner\"]\n",
        "[servers.s]\ncommand = [\"/bin/s\"]\nroots = [\"inner\", \"other\"]\n",
        "[servers.s]\ncommand = [\"/bin/s\"]\nroots = []\n",
    ],
    &["[servers.s.tools.f]\ndefinition = \"$D\"\n"],
    &[
        "class = \"PERSISTENT_STATE_CHANGE\"\n",
        "class = \"INFORMATIONAL\"\n",
        "class = \"COMMUNICATION\"\n",
        "class = \"OTHER\"\n",
        "class = \"FINANCIAL\"\n",
        "class = \"DATA_DISCLOSURE\"\n",
        "class = \"PHYSICAL\"\n",
        "class = \"NETWORK_CONTROL\"\n",
    ],
    &[
        "destination = { path = [\"/path\"] }\n",
        "destination = { fixed = \"x\" }\n",
        "",
        "destination = { file = \"/work/x\" }\n",
        "destination = { text = [\"/path\"] }\n",
        "destination = { path = [\"/path\", \"/content\"] }\n",
    ],
    &[
        "",
        "recipient = { text = [\"/content\"] }\n",
        "recipient = { fixed = \"r\" }\n",
    ],
    &[
        "",
        "roles = { \"/content\" = \"program\" }\n",
        "roles = { \"/path\" = \"command\", \"/content\" = \"content\" }\n",
    ],
    &[
        "",
        "purposes = [\"general\"]\n",
        "purposes = [\"p\"]\n",
        "purposes = [\"general\", \"p\"]\n",
    ],
    &["", "aliases = [\"F\"]\n", "irreversible = true\n"],
    &["", "enabled = false\n"],
];

/// A choice for every knob, the first one in more than half of the cases.
fn drawn() -> impl Strategy<Value = Vec<usize>> {
    KNOBS
        .iter()
        .map(|says| (0..2 * says.len()).prop_map(|at| at.saturating_sub(says.len())))
        .collect::<Vec<_>>()
}

fn built(choices: &[usize]) -> Option<Applied> {
    let function = definition("f", &["path", "content"]);
    let text = KNOBS
        .iter()
        .zip(choices)
        .map(|(says, at)| says[*at])
        .collect::<String>();
    let text = format!(
        "version = 1\n{}",
        text.replace("$D", &function.digest.to_base64url())
    );
    read(&text, &pins(&[("s", &[function])])).ok()
}

/// What becomes of a range of calls.
fn decided(applied: &Applied) -> Vec<u8> {
    let mut decisions = Vec::new();
    for name in ["f", "F"] {
        for path in [
            "/work/a",
            "/work/in/a",
            "/other/a",
            "/etc/a",
            "/home/alice",
            "/work/.git/x",
        ] {
            for content in [r#","content":"/work/a""#, r#","content":"c""#, ""] {
                let args = value(&format!("{{\"path\":\"{path}\"{content}}}"));
                decisions.push(decide(applied, name, &args));
            }
        }
    }
    decisions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_lets_more_through_is_called_widening(base in drawn(), other in drawn()) {
        let Some(old) = built(&base) else { return Ok(()) };
        let before = decided(&old);
        // Every edit of one thing, and one of many things.
        let mut edits = vec![other];
        for (knob, says) in KNOBS.iter().enumerate() {
            for at in 0..says.len() {
                let mut edit = base.clone();
                edit[knob] = at;
                edits.push(edit);
            }
        }
        for edit in edits {
            let Some(new) = built(&edit) else { continue };
            let weaker = before.iter().zip(decided(&new)).any(|(before, after)| after < *before);
            let effects = effects(&old, &new);
            prop_assert!(!weaker || effects.contains(&Effect::Widens), "{edit:?}: {effects:?}");
        }
    }

    #[test]
    fn a_snapshot_reads_back_to_itself(choices in drawn()) {
        let Some(applied) = built(&choices) else { return Ok(()) };
        let again = Applied::from_snapshot(&applied.snapshot()).unwrap();
        prop_assert_eq!(again.digest(), applied.digest());
        prop_assert_eq!(again.snapshot(), applied.snapshot());
        prop_assert!(changes(Some(&applied), &again).is_empty());
    }
}

/// Found by the law above: a root that goes takes the lack of a jurisdiction with it.
#[test]
fn an_inner_root_without_a_jurisdiction_that_goes_widens() {
    let mut with = vec![0; KNOBS.len()];
    // The jurisdiction is that of `work`; `inner` promises as much as it.
    (with[4], with[8], with[10]) = (1, 1, 1);
    let mut without = with.clone();
    without[10] = 0;
    let (old, new) = (built(&with).unwrap(), built(&without).unwrap());
    assert!(
        decided(&old)
            .iter()
            .zip(decided(&new))
            .any(|(old, new)| new < *old)
    );
    assert!(effects(&old, &new).contains(&Effect::Widens));
}

#[test]
fn comments_and_order_do_not_move_the_digest() {
    let one = single("unattended = true\nprofile = \"strict\"", &["path"], ENTRY).unwrap();
    let other = single(
        "# why\nprofile = 'strict'   # really\n\nunattended = true",
        &["path"],
        ENTRY,
    )
    .unwrap();
    assert_eq!(one.digest(), other.digest());
}
