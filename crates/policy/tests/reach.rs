//! Where acts reach: paths, hosts, sets, recipients, jurisdictions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use lychgate_core::Code;
use lychgate_policy::{Applied, Reach, Resolution, Scope, Unresolved};
use support::{Lexical, single, value};

fn reach(applied: &Applied, args: &str) -> Result<Reach, Unresolved> {
    let server = applied.server("s").unwrap();
    server
        .tool("f")
        .unwrap()
        .destinations(&value(args), &Lexical, server)
}

fn scope(applied: &Applied, path: &str) -> Option<Scope> {
    let path = String::from_utf8(lychgate_core::jcs::to_bytes(&path.into())).unwrap();
    reach(applied, &format!("{{\"path\":{path}}}"))
        .ok()
        .map(|reach| reach.targets[0].scope.clone())
}

#[test]
fn files_are_placed_by_whole_components_after_links_and_dots() {
    let read = single(
        "",
        &["path"],
        "class = \"INFORMATIONAL\"\nrecursive = false\ndestination = { path = [\"/path\"] }",
    )
    .unwrap();
    let write = single(
        "",
        &["path"],
        "class = \"PERSISTENT_STATE_CHANGE\"\ndestination = { path = [\"/path\"] }",
    )
    .unwrap();
    let root = |root: &str, recoverable| {
        Some(Scope::InRoot {
            root: root.to_owned(),
            recoverable,
        })
    };
    for (path, expected) in [
        ("/work", root("work", true)),
        ("/work/a/b", root("work", true)),
        ("notes.txt", root("work", true)),
        ("/work/../work/a", root("work", true)),
        ("/work2/a", Some(Scope::OutsideRoots)),
        ("/work/../etc/passwd", Some(Scope::OutsideRoots)),
        ("/work/links/out/passwd", Some(Scope::OutsideRoots)),
        ("../etc/passwd", Some(Scope::OutsideRoots)),
        ("/WORK/a", Some(Scope::OutsideRoots)),
        ("/plain/a", root("plain", false)),
        ("/work/.git/hooks/pre-commit", root("work", false)),
        ("/work/sub/.GIT/config", root("work", false)),
        ("/work/a.git/x", root("work", true)),
        (
            "/home/alice/.config/lychgate/lychgate.toml",
            Some(Scope::Forbidden),
        ),
        (
            "/work/../home/alice/.config/lychgate",
            Some(Scope::Forbidden),
        ),
        ("~/x", None),
        ("file:///work/a", None),
        ("/work/a\0b", None),
        ("", None),
        (" /work/a", None),
    ] {
        assert_eq!(scope(&write, path), expected, "{path:?}");
    }
    assert_eq!(
        scope(&read, "/home/alice/.config/lychgate/keys"),
        Some(Scope::Forbidden),
        "reads too"
    );
    assert_eq!(
        scope(&read, "/home/alice"),
        Some(Scope::OutsideRoots),
        "a folder above may be listed"
    );
    assert_eq!(
        scope(&write, "/home/alice"),
        Some(Scope::Forbidden),
        "but not moved away"
    );
}

#[test]
fn what_reaches_beneath_a_folder_reaches_no_file_of_the_gate() {
    for (class, recursive, expected) in [
        ("INFORMATIONAL", "", Scope::Forbidden),
        ("INFORMATIONAL", "recursive = true", Scope::Forbidden),
        ("INFORMATIONAL", "recursive = false", Scope::OutsideRoots),
        ("PERSISTENT_STATE_CHANGE", "", Scope::Forbidden),
        (
            "PERSISTENT_STATE_CHANGE",
            "recursive = false",
            Scope::Forbidden,
        ),
    ] {
        let entry =
            format!("class = \"{class}\"\n{recursive}\ndestination = {{ path = [\"/path\"] }}");
        let applied = single("", &["path"], &entry).unwrap();
        let found = scope(&applied, "/home/alice/.config");
        assert_eq!(found, Some(expected), "{class} {recursive}");
        let beside = scope(&applied, "/home/alice/.cache");
        assert_eq!(beside, Some(Scope::OutsideRoots), "{class} {recursive}");
    }
}

#[test]
fn the_innermost_root_counts() {
    let function = support::definition("f", &["path"]);
    let text = format!(
        "version = 1\n[roots.outer]\npath = \"/w\"\nrecoverable = true\n[roots.inner]\npath = \"/w/data\"\n\
         [roots.again]\npath = \"/w\"\n[servers.s]\ncommand = [\"/bin/s\"]\nroots = [\"outer\", \"inner\"ROOTS]\n\
         [servers.s.tools.f]\ndefinition = \"{}\"\nclass = \"OTHER\"\ndestination = {{ path = [\"/path\"] }}\n",
        function.digest.to_base64url()
    );
    let pins = support::pins(&[("s", &[function])]);
    let one = support::read(&text.replace("ROOTS", ""), &pins).unwrap();
    assert_eq!(
        scope(&one, "/w/a"),
        Some(Scope::InRoot {
            root: "outer".to_owned(),
            recoverable: true
        })
    );
    assert_eq!(
        scope(&one, "/w/data/a"),
        Some(Scope::InRoot {
            root: "inner".to_owned(),
            recoverable: false
        })
    );
    assert_eq!(
        scope(&one, "a"),
        None,
        "without a working folder a relative path leads nowhere"
    );
    let two = support::read(&text.replace("ROOTS", ", \"again\""), &pins).unwrap();
    let expected = Some(Scope::InRoot {
        root: "again".to_owned(),
        recoverable: false,
    });
    assert_eq!(
        scope(&two, "/w/a"),
        expected,
        "of two names for one place the one that promises less counts"
    );
}

#[test]
fn several_targets_are_one_sorted_set() {
    let applied = single(
        "",
        &["paths"],
        "class = \"OTHER\"\ndestination = { path = [\"/paths\"] }",
    )
    .unwrap();
    let one = reach(&applied, r#"{"paths":["/work/b","/work/a","/work/a"]}"#).unwrap();
    let other = reach(&applied, r#"{"paths":["/work/a","/work/./b"]}"#).unwrap();
    assert_eq!(one.destination, other.destination);
    let expected = lychgate_core::Digest::sha256(br#"["/work/a","/work/b"]"#).to_base64url();
    assert_eq!(
        one.destination.destination_id.as_deref(),
        Some(format!("set:{expected}").as_str())
    );
    assert_eq!(one.targets.len(), 2);
    let single = reach(&applied, r#"{"paths":["/work/a"]}"#).unwrap();
    assert_eq!(
        single.destination.destination_id.as_deref(),
        Some("/work/a")
    );
    for nothing in [
        "{}",
        r#"{"paths":[]}"#,
        r#"{"paths":null}"#,
        r#"{"paths":[1]}"#,
        r#"{"paths":{"a":"/work"}}"#,
    ] {
        assert_eq!(
            reach(&applied, nothing).unwrap_err().code,
            Code::DestinationUnresolved,
            "{nothing}"
        );
    }
}

#[test]
fn every_path_pointer_must_be_there() {
    let applied = single(
        "",
        &["from", "dest"],
        "class = \"OTHER\"\ndestination = { path = [\"/from\", \"/dest\"] }",
    )
    .unwrap();
    assert!(reach(&applied, r#"{"from":"/work/a","dest":"/work/b"}"#).is_ok());
    assert!(
        reach(&applied, r#"{"from":"/work/a"}"#).is_err(),
        "the other one would be the server's guess"
    );
}

#[test]
fn who_receives_is_named_or_it_does_not_go() {
    let entry = "class = \"COMMUNICATION\"\ndestination = { email = [\"/to\", \"/cc\"] }\nrecipient = { email = [\"/to\", \"/cc\"] }";
    let applied = single("", &["to", "cc"], entry).unwrap();
    let one = reach(&applied, r#"{"to":["A@Example.com"]}"#).unwrap();
    assert_eq!(one.recipients, ["A@example.com"]);
    assert_eq!(
        one.destination.recipient_id.as_deref(),
        Some("A@example.com")
    );
    assert_eq!(
        one.targets[0].scope,
        Scope::External {
            host: "example.com".to_owned(),
            metadata: false
        }
    );
    let two = reach(
        &applied,
        r#"{"to":["a@example.com"],"cc":"b@evil.example"}"#,
    )
    .unwrap();
    assert!(two.destination.recipient_id.unwrap().starts_with("set:"));
    for bad in [
        "{}",
        r#"{"to":[]}"#,
        r#"{"to":["a@example.com, b@evil.example"]}"#,
        r#"{"to":["a@example.com\r\nBcc: b@evil.example"]}"#,
    ] {
        assert_eq!(
            reach(&applied, bad).unwrap_err().code,
            Code::DestinationUnresolved,
            "{bad}"
        );
    }
    let silent = single(
        "",
        &["to"],
        "class = \"FINANCIAL\"\ndestination = { fixed = \"bank\" }",
    )
    .unwrap();
    assert_eq!(
        reach(&silent, "{}").unwrap_err().code,
        Code::DestinationUnresolved
    );
}

#[test]
fn no_rule_is_no_destination() {
    let applied = single("", &["path"], "class = \"INFORMATIONAL\"").unwrap();
    assert_eq!(
        reach(&applied, r#"{"path":"/work/a"}"#).unwrap_err().code,
        Code::DestinationUnresolved
    );
}

#[test]
fn a_jurisdiction_that_policy_asks_for_must_be_known_and_allowed() {
    let head = "[jurisdictions]\nallow = [\"DE\"]\n[destinations.\"api.example\"]\njurisdiction = \"DE\"\n\
                [destinations.\"us.example\"]\njurisdiction = \"US\"\n[destinations.\"root:work\"]\njurisdiction = \"DE\"\n";
    let entry = "class = \"DATA_DISCLOSURE\"\ndestination = { url = [\"/url\"] }";
    let applied = single(head, &["url"], entry).unwrap();
    let code =
        |url: &str| reach(&applied, &format!("{{\"url\":\"{url}\"}}")).map_err(|fault| fault.code);
    assert_eq!(
        code("https://API.example/x")
            .unwrap()
            .destination
            .jurisdiction
            .as_deref(),
        Some("DE")
    );
    assert_eq!(
        code("https://us.example/").unwrap_err(),
        Code::JurisdictionMismatch
    );
    assert_eq!(
        code("https://other.example/").unwrap_err(),
        Code::DestinationUnresolved
    );
    let files = single(
        head,
        &["path"],
        "class = \"OTHER\"\ndestination = { path = [\"/path\"] }",
    )
    .unwrap();
    assert!(reach(&files, r#"{"path":"/work/a"}"#).is_ok());
    assert_eq!(
        reach(&files, r#"{"path":"/plain/a"}"#).unwrap_err().code,
        Code::DestinationUnresolved
    );
}

#[test]
fn a_name_stands_for_exactly_one_function_or_for_nothing() {
    let applied = single("", &["path"], "class = \"OTHER\"\naliases = [\"Write\"]").unwrap();
    let server = applied.server("s").unwrap();
    for name in ["f", "Write"] {
        assert!(
            matches!(server.resolve(name), Resolution::Exact(entry) if entry.function == "f"),
            "{name}"
        );
    }
    for name in ["F", "write", "s_f", "s/f", "f ", "ｆ", "", "f\0", "*", "fs"] {
        assert!(
            matches!(server.resolve(name), Resolution::Unknown),
            "{name:?}"
        );
    }
    let withheld = single("", &[], "class = \"OTHER\"\nenabled = false").unwrap();
    assert!(matches!(
        withheld.server("s").unwrap().resolve("f"),
        Resolution::Disabled
    ));
}

#[test]
fn arguments_are_checked_against_the_pinned_schema_with_the_place_named() {
    let applied = single("", &["path", "many"], "class = \"OTHER\"").unwrap();
    let tool = applied.server("s").unwrap().tool("f").unwrap();
    assert!(
        tool.validate(&value(r#"{"path":"x","many":["a"]}"#))
            .is_ok()
    );
    for (args, pointer) in [
        (r#"{"path":1}"#, "/path"),
        (r#"{"many":["a",2]}"#, "/many/1"),
        (r#"{"z":1}"#, ""),
        ("[]", ""),
        ("\"x\"", ""),
    ] {
        assert_eq!(
            tool.validate(&value(args)).unwrap_err().pointer,
            pointer,
            "{args}"
        );
    }
}

#[test]
fn a_program_among_the_arguments_is_seen() {
    let applied = single(
        "",
        &["path", "content"],
        "class = \"OTHER\"\nroles = { \"/content\" = \"program\" }",
    )
    .unwrap();
    let tool = applied.server("s").unwrap().tool("f").unwrap();
    assert!(
        tool.roles(&value(r#"{"content":"rm -rf /"}"#))
            .has_program()
    );
    assert!(!tool.roles(&value(r#"{"path":"/x"}"#)).has_program());
}
