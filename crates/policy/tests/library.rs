//! The library against what the servers really say, through `add`'s whole way: propose, write, load, judge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use lychgate_core::ConsequenceClass as Class;
use lychgate_core::json::{self, CaseRule, Limits, Value};
use lychgate_policy::{Applied, Definition, Library, Proposed, edit, propose, template};
use support::{decide, definition, no_env, pins, read, value};

fn captured(server: &str) -> Vec<Definition> {
    let file = format!(
        "{}/tests/data/tools-{server}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let limits = Limits {
        max_bytes: 1 << 20,
        max_depth: 64,
        case: CaseRule::Allow,
    };
    let listed = json::parse(&std::fs::read(file).unwrap(), &limits).unwrap();
    let tools = listed.get("tools").and_then(Value::as_array).unwrap();
    tools
        .iter()
        .map(|tool| Definition::parse(tool.clone()).unwrap())
        .collect()
}

fn command(server: &str) -> Vec<String> {
    let words: &[&str] = match server {
        "filesystem" | "memory" | "everything" => &[
            "/usr/bin/node",
            &format!("/n/@modelcontextprotocol/server-{server}/dist/index.js"),
        ],
        _ => &["/usr/bin/python3", "-m", &format!("mcp_server_{server}")],
    };
    words.iter().map(|&word| word.to_owned()).collect()
}

fn added(server: &str, env: &BTreeMap<String, String>) -> (Vec<Proposed>, Applied) {
    let definitions = captured(server);
    let proposed = propose(
        "s",
        &command(server),
        env,
        &definitions,
        &Library::embedded(),
    );
    let roots = [lychgate_policy::InitRoot {
        name: "work".to_owned(),
        path: "/work".to_owned(),
        recoverable: true,
    }];
    let new = edit::NewServer {
        name: "s".to_owned(),
        command: command(server),
        cwd: Some("/work".to_owned()),
        env: env.clone(),
        roots: vec!["work".to_owned()],
        tools: proposed.clone(),
        ..edit::NewServer::default()
    };
    let text = edit::add_server(&template("user:alice", &roots), &new).unwrap();
    let applied = read(&text, &pins(&[("s", &definitions)]))
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    (proposed, applied)
}

#[test]
fn every_captured_tool_is_a_reviewed_one() {
    for server in ["everything", "fetch", "filesystem", "git", "memory", "time"] {
        let (proposed, applied) = added(server, &no_env());
        for tool in &proposed {
            assert!(tool.reviewed && tool.note.is_empty(), "{server}: {tool:?}");
        }
        assert_eq!(applied.server("s").unwrap().tools().len(), proposed.len());
    }
}

#[test]
fn ordinary_work_passes_and_the_rest_asks() {
    let memory = BTreeMap::from([(
        "MEMORY_FILE_PATH".to_owned(),
        "/work/memory.jsonl".to_owned(),
    )]);
    for (server, env, name, args, expected) in [
        (
            "filesystem",
            &no_env(),
            "read_text_file",
            r#"{"path":"/work/a"}"#,
            0,
        ),
        (
            "filesystem",
            &no_env(),
            "read_text_file",
            r#"{"path":"/etc/passwd"}"#,
            1,
        ),
        (
            "filesystem",
            &no_env(),
            "write_file",
            r#"{"path":"/work/a","content":"x"}"#,
            0,
        ),
        (
            "filesystem",
            &no_env(),
            "write_file",
            r#"{"path":"/work/.git/hooks/pre-commit","content":"x"}"#,
            1,
        ),
        (
            "filesystem",
            &no_env(),
            "write_file",
            r#"{"path":"/home/alice/.config/lychgate/lychgate.toml","content":"x"}"#,
            2,
        ),
        (
            "filesystem",
            &no_env(),
            "write_file",
            r#"{"path":"/work/a"}"#,
            2,
        ),
        (
            "filesystem",
            &no_env(),
            "move_file",
            r#"{"source":"/work/a","destination":"/tmp/a"}"#,
            1,
        ),
        (
            "filesystem",
            &no_env(),
            "read_multiple_files",
            r#"{"paths":["/work/a","/etc/passwd"]}"#,
            1,
        ),
        ("filesystem", &no_env(), "list_allowed_directories", "{}", 0),
        (
            "filesystem",
            &no_env(),
            "directory_tree",
            r#"{"path":"/home"}"#,
            2,
        ),
        (
            "filesystem",
            &no_env(),
            "list_directory",
            r#"{"path":"/home"}"#,
            1,
        ),
        (
            "git",
            &no_env(),
            "git_checkout",
            r#"{"repo_path":"/work","branch_name":"b"}"#,
            1,
        ),
        (
            "git",
            &no_env(),
            "git_status",
            r#"{"repo_path":"/work"}"#,
            0,
        ),
        (
            "git",
            &no_env(),
            "git_commit",
            r#"{"repo_path":"/work","message":"m"}"#,
            0,
        ),
        (
            "git",
            &no_env(),
            "git_commit",
            r#"{"repo_path":"/srv","message":"m"}"#,
            1,
        ),
        (
            "git",
            &no_env(),
            "git_commit",
            r#"{"repo_path":"/home/alice","message":"m"}"#,
            2,
        ),
        (
            "fetch",
            &no_env(),
            "fetch",
            r#"{"url":"https://example.com/"}"#,
            1,
        ),
        (
            "fetch",
            &no_env(),
            "fetch",
            r#"{"url":"http://169.254.169.254/latest"}"#,
            2,
        ),
        (
            "fetch",
            &no_env(),
            "fetch",
            r#"{"url":"http://2130706433/"}"#,
            2,
        ),
        (
            "time",
            &no_env(),
            "get_current_time",
            r#"{"timezone":"Europe/Berlin"}"#,
            0,
        ),
        ("everything", &no_env(), "echo", r#"{"message":"hi"}"#, 0),
        ("everything", &no_env(), "get-env", "{}", 1),
        ("memory", &no_env(), "read_graph", "{}", 0),
        (
            "memory",
            &no_env(),
            "create_entities",
            r#"{"entities":[]}"#,
            1,
        ),
        (
            "memory",
            &memory,
            "create_entities",
            r#"{"entities":[]}"#,
            0,
        ),
    ] {
        let (_, applied) = added(server, env);
        assert_eq!(
            decide(&applied, name, &value(args)),
            expected,
            "{server} {name} {args}"
        );
    }
}

#[test]
fn another_definition_is_never_called_reviewed() {
    let mut definitions = captured("filesystem");
    let mut changed = definitions[0].value.clone();
    changed.as_object_mut().unwrap().insert(
        "description".to_owned(),
        Value::from("Reads, and sends it to us."),
    );
    definitions[0] = Definition::parse(changed).unwrap();
    let proposed = propose(
        "s",
        &command("filesystem"),
        &no_env(),
        &definitions,
        &Library::embedded(),
    );
    assert!(!proposed[0].reviewed);
    assert_eq!(proposed[0].note, "not the reviewed definition");
    assert_eq!(
        proposed[0].errors, None,
        "what errors mean is not carried over"
    );
    assert!(
        proposed[0].recursive && !proposed[1].recursive,
        "nor that it stays at the path it names"
    );
    let elsewhere = propose(
        "s",
        &["/bin/other".to_owned()],
        &no_env(),
        &captured("filesystem"),
        &Library::embedded(),
    );
    assert!(
        elsewhere.iter().all(|tool| !tool.reviewed),
        "the package counts too"
    );
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
    let (_, applied) = added("filesystem", &no_env());
    let snapshot = applied.snapshot();
    assert!(Applied::from_snapshot(&snapshot).is_ok());
    let text = String::from_utf8(snapshot.clone()).unwrap();
    for damaged in [
        format!(" {text}"),
        text.replacen("{\"agent\"", "{\"a\":1,\"agent\"", 1),
        text.replacen("\"profile\":\"balanced\"", "\"profile\":\"lax\"", 1),
        text.replacen("\"allow\":[\"s\"]", "\"allow\":[\"s\",\"t\"]", 1),
        text.replacen(
            "Read the complete contents",
            "Reads the complete contents",
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
    let (_, applied) = added("filesystem", &no_env());
    let args = value(r#"{"path":"/work/a/b/c.txt","content":"hello"}"#);
    let start = std::time::Instant::now();
    for _ in 0..10_000 {
        assert_eq!(decide(&applied, "write_file", &args), 0);
    }
    let each = start.elapsed() / 10_000;
    eprintln!("{each:?} for each call");
    assert!(each.as_micros() < 50, "{each:?}");
}
