//! The binary from outside: exit statuses, passphrases, files left as they were. A gate that a test starts is stopped by
//! the test's own folder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

const PASSPHRASE: &str = "four bells at the gate";

/// A home of its own; the gate in it ends with it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with_init() -> Self {
        let home = Self::new();
        home.run(&["init", "--passphrase-fd", "0"], PASSPHRASE)
            .succeeds();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.path(".config/lychgate/lychgate.toml")
    }

    fn run(&self, arguments: &[&str], stdin: &str) -> Ran {
        self.run_in(self.0.path(), arguments, stdin.as_bytes())
    }

    fn run_in(&self, folder: &Path, arguments: &[&str], stdin: &[u8]) -> Ran {
        #[allow(clippy::disallowed_methods, reason = "the binary under test")]
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_lychgate"))
            .args(arguments)
            .env_clear()
            .env("HOME", self.0.path())
            .env("USER", "alice")
            .env("PATH", "/usr/bin:/bin")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads nothing has closed the pipe by then.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        Ran {
            what: format!("{arguments:?}"),
            status: status.code(),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.run(&["gate", "stop"], "");
    }
}

struct Ran {
    what: String,
    status: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    #[track_caller]
    fn ends(self, status: i32, says: &str) -> Self {
        let Self { what, out, err, .. } = &self;
        assert_eq!(
            self.status,
            Some(status),
            "{what}\n--- out\n{out}\n--- err\n{err}"
        );
        assert!(
            out.contains(says) || err.contains(says),
            "{what}: no {says:?}\n--- out\n{out}\n--- err\n{err}"
        );
        self
    }

    #[track_caller]
    fn succeeds(self) -> Self {
        self.ends(0, "")
    }
}

fn server() -> [&'static str; 2] {
    [env!("CARGO_BIN_EXE_lychgate"), "tour-server"]
}

#[test]
fn canon_and_digest_refuse_what_the_strict_parser_refuses() {
    let home = Home::new();
    for (text, says) in [
        (&b"{\"a\":1,\"a\":2}"[..], "duplicate key at `/a`"),
        (b"{\"a\":9007199254740993}", "number"),
        (b"{\"a\":\"\\ud800\"}", "surrogate"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"{} {}", "more text"),
        (b"", "empty"),
        (b"\"\xff\"", "utf-8"),
        (b"[NaN]", "json"),
    ] {
        for command in ["canon", "digest"] {
            let ran = home.run_in(home.0.path(), &[command], text).ends(1, says);
            assert_eq!(ran.out, "", "nothing is printed of what was refused");
        }
    }
    let ran = home
        .run(&["canon"], "{\"b\":1.0, \"a\":\"\u{202e}\"}\n")
        .succeeds();
    assert_eq!(ran.out, "{\"a\":\"\u{202e}\",\"b\":1}", "exactly the bytes");
    home.run(&["digest"], "{}")
        .ends(0, "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o\n");
}

#[test]
fn init_closes_its_files_and_never_overwrites() {
    let home = Home::with_init();
    let before = std::fs::read(home.config()).unwrap();
    home.run(&["init", "--passphrase-fd", "0"], PASSPHRASE)
        .ends(2, "never overwritten");
    std::fs::remove_file(home.config()).unwrap();
    home.run(&["init", "--passphrase-fd", "0"], PASSPHRASE)
        .ends(2, "never overwritten");
    assert!(!home.config().exists());
    std::fs::write(home.config(), before).unwrap();
    for name in [
        ".local/state/lychgate/trust.json",
        ".local/state/lychgate/keys/approver.key",
    ] {
        let mode = std::fs::metadata(home.path(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    home.run(&["check"], "").ends(0, "is sound");
    home.run(&["keys", "list"], "").ends(0, "approver");
    home.run(&["keys", "export"], "").ends(0, "trust_bundle");
}

#[test]
fn a_passphrase_that_is_too_short_makes_nothing() {
    let home = Home::new();
    home.run(&["init", "--passphrase-fd", "0"], "short")
        .ends(2, "at least 8");
    home.run(&["init", "--passphrase-fd", "0"], "")
        .ends(2, "descriptor 0");
    home.run(&["init", "--passphrase-fd", "93"], "")
        .ends(2, "descriptor 93");
    assert_eq!(std::fs::read_dir(home.0.path()).unwrap().count(), 0);
}

#[test]
fn places_come_from_flags_or_the_users_folders_never_from_the_working_folder() {
    let home = Home::with_init();
    let elsewhere = home.path("project");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("lychgate.toml"), "nonsense").unwrap();
    home.run_in(&elsewhere, &["check"], b"").ends(0, "is sound");
    home.run_in(&elsewhere, &["check", "--config", "lychgate.toml"], b"")
        .ends(2, "lychgate.toml:1");
}

#[test]
fn the_applied_configuration_changes_with_the_approver_only() {
    let home = Home::with_init();
    home.run(&["apply"], "").ends(0, "Nothing changed");
    let text = std::fs::read_to_string(home.config()).unwrap();
    let strict = text.replace("profile = \"balanced\"", "profile = \"strict\"");
    std::fs::write(home.config(), &strict).unwrap();
    // Narrowing wants nobody; widening does.
    home.run(&["apply"], "").ends(0, "policy epoch 2");
    std::fs::write(home.config(), &text).unwrap();
    home.run(&["apply", "--passphrase-fd", "0"], "not the passphrase")
        .ends(1, "does not open");
    home.run(&["gate", "status", "--json"], "")
        .ends(0, "\"profile\": \"strict\"");
    let ran = home
        .run(&["apply", "--passphrase-fd", "0"], PASSPHRASE)
        .ends(0, "policy epoch 3");
    assert!(ran.out.contains("Widens"), "{}", ran.out);
    std::fs::write(home.config(), text + "\n[limit]\n").unwrap();
    home.run(&["apply"], "").ends(2, "limits");
}

#[test]
fn add_is_whole_or_not_at_all() {
    let home = Home::with_init();
    let [program, argument] = server();
    let before = std::fs::read_to_string(home.config()).unwrap();
    let add = |more: &[&str], passphrase: &str| {
        let mut arguments = vec!["add", "desk", "--accept-proposed", "--passphrase-fd", "0"];
        arguments.extend(more);
        arguments.extend(["--", program, argument]);
        home.run(&arguments, passphrase)
    };
    let untouched = || {
        assert_eq!(std::fs::read_to_string(home.config()).unwrap(), before);
        assert!(!home.path(".config/lychgate/pins/desk.json").exists());
    };
    add(&[], "not the passphrase").ends(1, "does not open");
    untouched();
    add(&["--class", "nothing_like_it=OTHER"], PASSPHRASE).ends(2, "there is no tool");
    untouched();
    home.run(&["add", "desk", "--", "/no/such/program"], "")
        .ends(2, "not a program");
    home.run(&["add", "desk", "--", "/bin/true"], "")
        .ends(2, "MCP server");
    home.run(&["add", "Desk", "--", program, argument], "")
        .ends(2, "small letters");
    untouched();
    home.run(&["mcp", "desk"], "").ends(2, "desk");

    add(&[], PASSPHRASE).ends(0, "claude mcp add desk -- ");
    let text = std::fs::read_to_string(home.config()).unwrap();
    assert!(
        text.contains("[servers.desk]") && text.contains("# On whose behalf"),
        "{text}"
    );
    assert!(home.path(".config/lychgate/pins/desk.json").exists());
    home.run(&["check"], "").ends(0, "1 server");
    home.run(&["pin", "desk"], "").ends(0, "Nothing changed");
    home.run(&["pin", "nobody"], "").ends(2, "there are: desk");
    add(&[], PASSPHRASE).ends(2, "already in the configuration");
}

#[test]
fn add_warns_of_what_it_cannot_pin_of_folders_too_wide_and_of_values_it_has_not() {
    let home = Home::with_init();
    let [program, argument] = server();
    let script = home.path("server.sh");
    std::fs::write(&script, format!("exec {program} {argument}\n")).unwrap();
    let text = std::fs::read_to_string(home.config()).unwrap();
    let strict = text
        .replace("profile = \"balanced\"", "profile = \"strict\"")
        .replace("unattended = false", "unattended = true");
    std::fs::write(home.config(), strict).unwrap();
    home.run(&["apply"], "").succeeds();
    let everything = home.0.path().to_str().unwrap();
    let ran = home.run(
        &[
            "add",
            "desk",
            "--accept-proposed",
            "--passphrase-fd",
            "0",
            "--root",
            everything,
            "--pass-env",
            "A_TOKEN",
            "--",
            "/bin/sh",
            "-e",
            script.to_str().unwrap(),
        ],
        PASSPHRASE,
    );
    let ran = ran.ends(0, "could be found to pin");
    assert!(
        ran.err.contains("holds the gate's own files"),
        "{}",
        ran.err
    );
    for words in [
        "profile strict: reads outside",
        "unattended: nobody is asked",
        "denied",
        "the gate does not have A_TOKEN",
        "lychgate gate stop",
    ] {
        let plain = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(words), "{words}: {}", ran.out);
    }
    assert!(!ran.out.contains(": asks"), "{}", ran.out);
}

#[test]
fn one_act_is_named_by_its_id() {
    let home = Home::with_init();
    let act = "act-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f";
    home.run(&["acts", act], "").ends(1, "there is no act");
    home.run(&["acts", "12345"], "").ends(2, "too short");
    home.run(&["acts", act, "--follow"], "")
        .ends(2, "cannot be used with");
}

#[test]
fn another_program_in_the_same_place_is_pinned_by_the_approver_only() {
    let home = Home::with_init();
    let [program, argument] = server();
    let script = home.path("server.sh");
    let write = |text: &str| {
        std::fs::write(
            &script,
            format!("#!/bin/sh\n{text}\nexec {program} {argument}\n"),
        )
        .unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    };
    write("# one");
    let name = script.to_str().unwrap();
    let add = [
        "add",
        "desk",
        "--accept-proposed",
        "--passphrase-fd",
        "0",
        "--",
        name,
    ];
    home.run(&add, PASSPHRASE).ends(0, "pinned");
    write("# two");
    home.run(
        &["pin", "desk", "--yes", "--passphrase-fd", "0"],
        "not the passphrase",
    )
    .ends(1, "the program itself");
    home.run(&["apply"], "").ends(0, "Nothing changed");
    home.run(
        &["pin", "desk", "--yes", "--passphrase-fd", "0"],
        PASSPHRASE,
    )
    .ends(0, "policy epoch 3");
    home.run(&["pin", "desk"], "").ends(0, "Nothing changed");
}

#[test]
fn deciding_wants_a_ticket_and_the_right_passphrase() {
    let home = Home::with_init();
    home.run(&["pending"], "").ends(0, "Nothing waits");
    home.run(&["approve", "12345678", "--passphrase-fd", "0"], PASSPHRASE)
        .ends(1, "waits");
    home.run(&["deny", "123", "--passphrase-fd", "0"], PASSPHRASE)
        .ends(2, "too short");
    let act = "act-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f";
    home.run(&["reconcile", act, "--effect", "--reason", "seen"], "")
        .ends(1, "there is no act");
    home.run(&["reconcile", act, "--effect", "--reason", ""], "")
        .ends(2, "--reason");
}

#[test]
fn the_passphrase_changes_and_the_old_one_is_worth_nothing() {
    let home = Home::with_init();
    let both = [
        "keys",
        "passphrase",
        "--passphrase-fd",
        "0",
        "--new-passphrase-fd",
        "0",
    ];
    home.run(&both, "wrong passphrase\nsomething else\n")
        .ends(1, "does not open");
    home.run(&both, &format!("{PASSPHRASE}\nfive\n"))
        .ends(2, "at least 8");
    home.run(&both, &format!("{PASSPHRASE}\nfive bells at the gate\n"))
        .ends(0, "changed");
    home.run(
        &["keys", "rotate", "ped", "--passphrase-fd", "0"],
        PASSPHRASE,
    )
    .ends(1, "does not open");
    home.run(
        &["keys", "rotate", "ped", "--passphrase-fd", "0"],
        "five bells at the gate",
    )
    .ends(0, "ped signs with");
    home.run(&["keys", "list"], "").ends(0, "retired");
    home.run(&["pending"], "").ends(0, "Nothing waits");
}

#[test]
fn a_gate_is_started_when_it_is_needed_and_only_then() {
    let home = Home::with_init();
    home.run(&["gate", "status"], "").ends(1, "no gate runs");
    home.run(&["pending", "--no-start"], "")
        .ends(1, "no gate runs");
    home.run(&["gate", "stop"], "").ends(0, "No gate runs");
    home.run(&["acts"], "")
        .ends(0, "questions in the last hour: 0");
    home.run(&["gate", "status", "--json"], "")
        .ends(0, "\"running\": true");
    home.run(&["gate"], "").ends(1, "already runs");
    home.run(&["gate", "stop"], "").ends(0, "has ended");
    home.run(&["gate", "status", "--json"], "")
        .ends(1, "\"running\": false");
}

#[test]
fn without_init_the_way_out_is_named() {
    let home = Home::new();
    for command in ["check", "apply", "pending", "acts", "gate"] {
        home.run(&[command], "").ends(2, "lychgate init");
    }
}

#[test]
fn completions_and_manual_pages_come_from_the_flags() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        home.run(&["completions", shell], "")
            .ends(0, "passphrase-fd");
    }
    home.run(&["man"], "").ends(0, ".TH lychgate");
    home.run(&["man", "pages"], "").ends(0, "pages");
    assert!(home.path("pages/lychgate-approve.1").exists());
}
