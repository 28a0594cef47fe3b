//! `add`'s whole way: propose, write, load, judge. That the library's digests are those of what the servers really say
//! is proved with the servers themselves, in `tests/e2e/test_library.py`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use lychgate_core::ConsequenceClass as Class;
use lychgate_policy::{Applied, Definition, Library, edit, propose, template};
use support::{decide, definition, no_env, pins, read, value};

/// A server whose package was reviewed; its definitions here are made up, so none of them is.
fn filesystem() -> Vec<String> {
    [
        "/usr/bin/node",
        "/n/@modelcontextprotocol/server-filesystem/dist/index.js",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn made_up() -> Vec<Definition> {
    vec![
        definition("read_text_file", &["path"]),
        definition("write_file", &["path", "content"]),
    ]
}

fn added() -> Applied {
    let definitions = made_up();
    let roots = [lychgate_policy::InitRoot {
        name: "work".to_owned(),
        path: "/work".to_owned(),
        recoverable: true,
    }];
    let new = edit::NewServer {
        name: "s".to_owned(),
        command: filesystem(),
        cwd: Some("/work".to_owned()),
        roots: vec!["work".to_owned()],
        tools: propose(
            "s",
            &filesystem(),
            &no_env(),
            &definitions,
            &Library::embedded(),
        ),
        ..edit::NewServer::default()
    };
    let text = edit::add_server(&template("user:alice", &roots), &new).unwrap();
    read(&text, &pins(&[("s", &definitions)]))
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

#[test]
fn what_was_proposed_is_judged_by_where_it_leads() {
    let applied = added();
    for (name, args, expected) in [
        ("read_text_file", r#"{"path":"/work/a"}"#, 0),
        ("read_text_file", r#"{"path":"/etc/passwd"}"#, 1),
        ("write_file", r#"{"path":"/work/a","content":"x"}"#, 0),
        (
            "write_file",
            r#"{"path":"/work/.git/hooks/pre-commit","content":"x"}"#,
            1,
        ),
        (
            "write_file",
            r#"{"path":"/home/alice/.config/lychgate/lychgate.toml","content":"x"}"#,
            2,
        ),
        ("write_file", r#"{"path":"/work/a","mode":"x"}"#, 2),
    ] {
        assert_eq!(
            decide(&applied, name, &value(args)),
            expected,
            "{name} {args}"
        );
    }
}

#[test]
fn another_definition_is_never_called_reviewed() {
    let proposed = propose(
        "s",
        &filesystem(),
        &no_env(),
        &made_up(),
        &Library::embedded(),
    );
    for tool in &proposed {
        assert!(!tool.reviewed);
        assert_eq!(tool.note, "not the reviewed definition");
        assert_eq!(tool.errors, None, "what errors mean is not carried over");
        assert!(tool.recursive, "nor that it stays at the path it names");
    }
}

#[test]
fn annotations_never_make_a_proposal_weaker() {
    let hinted = |name: &str, properties: &[&str], annotations: &str| {
        let mut tool = definition(name, properties).value;
        tool.as_object_mut()
            .unwrap()
            .insert("annotations".to_owned(), value(annotations));
        let tool = Definition::parse(tool).unwrap();
        propose(
            "s",
            &["/bin/x".to_owned()],
            &no_env(),
            &[tool],
            &Library::embedded(),
        )
        .remove(0)
    };
    for (name, properties, annotations, class) in [
        (
            "frobnicate",
            &["path"][..],
            r#"{"readOnlyHint":true}"#,
            Class::Other,
        ),
        ("get_env", &[], r#"{"readOnlyHint":true}"#, Class::Other),
        ("read_file", &["path"], "{}", Class::Informational),
        (
            "read_file",
            &["path"],
            r#"{"readOnlyHint":false}"#,
            Class::Other,
        ),
        (
            "read_file",
            &["path"],
            r#"{"openWorldHint":true}"#,
            Class::Other,
        ),
        (
            "write_file",
            &["path", "content"],
            r#"{"readOnlyHint":true}"#,
            Class::PersistentStateChange,
        ),
        (
            "read_and_delete",
            &["path"],
            r#"{"readOnlyHint":true,"destructiveHint":false}"#,
            Class::PersistentStateChange,
        ),
        (
            "get_page",
            &["url"],
            r#"{"readOnlyHint":true,"openWorldHint":false}"#,
            Class::DataDisclosure,
        ),
        ("send_mail", &["to", "text"], "{}", Class::Communication),
        (
            "run",
            &["command"],
            r#"{"readOnlyHint":true}"#,
            Class::Other,
        ),
        ("readFile", &["path", "script"], "{}", Class::Other),
    ] {
        let proposed = hinted(name, properties, annotations);
        assert_eq!(proposed.class, class, "{name} {annotations}");
        assert!(!proposed.reviewed && !proposed.note.is_empty());
    }
    assert!(hinted("delete_file", &["path"], "{}").irreversible);
    assert!(hinted("write_file", &["path"], r#"{"destructiveHint":true}"#).irreversible);
}

#[test]
fn a_tool_whose_arguments_cannot_be_checked_is_withheld() {
    let text = r#"{"name":"f","inputSchema":{"type":"object","properties":{"a":{"type":"string","pattern":"(?=x)x"}}}}"#;
    let tool = Definition::parse(value(text)).unwrap();
    let proposed = propose(
        "s",
        &[],
        &no_env(),
        std::slice::from_ref(&tool),
        &Library::embedded(),
    );
    assert!(!proposed[0].enabled);
    let new = edit::NewServer {
        name: "s".to_owned(),
        command: vec!["/bin/s".to_owned()],
        tools: proposed,
        ..edit::NewServer::default()
    };
    let text = edit::add_server(&template("user:alice", &[]), &new).unwrap();
    let applied =
        read(&text, &pins(&[("s", &[tool])])).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(decide(&applied, "f", &value("{}")), 2);
}

#[test]
fn edits_keep_comments_and_order_and_the_template_loads() {
    let text = template("user:\"alice\"", &[]);
    let applied = read(&text, &pins(&[])).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    assert_eq!(applied.principal().id, "user:\"alice\"");
    let function = definition("f", &["path"]);
    let other = definition("f", &["path", "content"]);
    let new = edit::NewServer {
        name: "s".to_owned(),
        command: vec!["/bin/s".to_owned()],
        tools: propose(
            "s",
            &[],
            &no_env(),
            std::slice::from_ref(&function),
            &Library::embedded(),
        ),
        ..edit::NewServer::default()
    };
    let first = edit::add_server(&text, &new).unwrap();
    assert!(
        first.starts_with(text.split("allow = ").next().unwrap()),
        "what was there stays"
    );
    assert!(first.contains("allow = [\"s\"]"));
    assert!(read(&first, &pins(&[("s", &[function])])).is_ok());
    assert_eq!(
        edit::add_server(&first, &new),
        Err(edit::EditFault::Exists("s".to_owned()))
    );
    let commented = first.replace("definition = ", "# looked at on Monday\ndefinition = ");
    let second = edit::set_pin(&commented, "s", "f", &other.digest).unwrap();
    assert!(second.contains("# looked at on Monday"));
    assert!(read(&second, &pins(&[("s", std::slice::from_ref(&other))])).is_ok());
    assert!(edit::set_pin(&second, "t", "f", &other.digest).is_err());
    let alone = second.replace("allow = [\"s\"]", "allow = [\"s/f\", \"s/g\"]");
    let gone = edit::remove_tool(&alone, "s", "f").unwrap();
    assert!(
        gone.contains("allow = [ \"s/g\"]") || gone.contains("allow = [\"s/g\"]"),
        "{gone}"
    );
    assert!(read(&gone, &pins(&[("s", &[definition("g", &[])])])).is_ok());
    let third = edit::remove_tool(&second, "s", "f").unwrap();
    assert!(
        third.contains("allow = [\"s\"]"),
        "a whole server stays allowed"
    );
    assert!(read(&third, &pins(&[("s", &[definition("g", &[])])])).is_ok());
}

#[test]
fn roots_and_the_entry_pin_are_edited_and_comments_stay() {
    let text =
        "version = 1 # one\n\n[roots.work]\npath = \"/w\"\n\n[servers.s]\nentry = \"A\" # seen\n";
    let rooted = edit::with_root(text, "src", "/home/a/src", true).unwrap();
    assert!(rooted.contains("# one"));
    assert!(rooted.contains("[roots.src]\npath = \"/home/a/src\"\nrecoverable = true"));
    let pinned = edit::with_entry_pin(text, "s", Some("B")).unwrap();
    assert!(pinned.contains("entry = \"B\" # seen"));
    let bare = edit::with_entry_pin(text, "s", None).unwrap();
    assert!(!bare.contains("entry"));
    assert!(edit::with_entry_pin(text, "t", None).is_err());
    assert!(edit::with_root("roots = 1", "a", "/a", false).is_err());
}

#[test]
fn the_names_passed_on_are_read_from_a_snapshot_alone() {
    let text = "version = 1\n[servers.s]\ncommand = [\"/bin/s\"]\npass_env = [\"TOKEN\", \"HOME\"]\n\
                [servers.t]\ncommand = [\"/bin/t\"]\npass_env = [\"TOKEN\"]\n";
    let applied = read(text, &pins(&[("s", &[]), ("t", &[])])).unwrap();
    let names = lychgate_policy::passed_names(&applied.snapshot()).unwrap();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["HOME", "TOKEN"]);
    assert!(lychgate_policy::passed_names(b"{}").is_err());
}

#[test]
fn a_damaged_snapshot_is_refused() {
    let applied = added();
    let snapshot = applied.snapshot();
    assert!(Applied::from_snapshot(&snapshot).is_ok());
    let text = String::from_utf8(snapshot.clone()).unwrap();
    for damaged in [
        format!(" {text}"),
        text.replacen("{\"agent\"", "{\"a\":1,\"agent\"", 1),
        text.replacen("\"profile\":\"balanced\"", "\"profile\":\"lax\"", 1),
        text.replacen("\"allow\":[\"s\"]", "\"allow\":[\"s\",\"t\"]", 1),
        text.replacen(
            "\"additionalProperties\":false",
            "\"additionalProperties\":true",
            1,
        ),
        text[..text.len() - 1].to_owned(),
    ] {
        assert_ne!(damaged, text);
        assert!(Applied::from_snapshot(damaged.as_bytes()).is_err());
    }
}

#[test]
#[ignore = "measures: run it by name, in release"]
#[allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "it measures and tells"
)]
fn a_small_call_is_judged_in_under_fifty_microseconds() {
    let applied = added();
    let args = value(r#"{"path":"/work/a/b/c.txt","content":"hello"}"#);
    let start = std::time::Instant::now();
    for _ in 0..10_000 {
        assert_eq!(decide(&applied, "write_file", &args), 0);
    }
    let each = start.elapsed() / 10_000;
    eprintln!("{each:?} for each call");
    assert!(each.as_micros() < 50, "{each:?}");
}
