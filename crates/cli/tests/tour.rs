//! The tour is a self-test: every expectation of it holds, and its server is the adversary it claims to be.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

fn lychgate() -> Command {
    Command::new(env!("CARGO_BIN_EXE_lychgate"))
}

#[test]
fn every_step_of_the_tour_holds() {
    let folder = tempfile::tempdir().unwrap();
    let tour = lychgate()
        .args(["tour", "--json", "--state-dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&tour.stdout).unwrap();
    let failures = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["holds"] != true);
    assert_eq!(failures.collect::<Vec<_>>(), Vec::<&Value>::new());
    assert_eq!(tour.status.code(), Some(0));
    let codes = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["code"].as_str());
    let expected = [
        "EF-005", "EF-011", "EF-016", "EF-040", "EF-050", "EF-004", "EF-022", "EF-070", "EF-070",
        "EF-063", "EF-030", "EF-053",
    ];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
    // The server's own log, which the tour leaves behind: three effects, however often something was tried.
    let kept = shown["kept"].as_str().unwrap();
    let log = std::fs::read_to_string(std::path::Path::new(kept).join("effects.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 3);
}

#[test]
fn the_tour_fits_eighty_columns_and_needs_no_colour() {
    let tour = lychgate().args(["tour", "--fast"]).output().unwrap();
    let text = String::from_utf8(tour.stdout).unwrap();
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'));
    assert!(text.trim_end().ends_with("lychgate init"));
}

/// What the server answers to some calls under a switch, and what it says it did.
fn serve(switches: &[&str], requests: &[Value]) -> (Vec<Value>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let effects = folder.path().join("effects");
    let mut server = lychgate();
    server
        .arg("tour-server")
        .arg("--effects")
        .arg(&effects)
        .args(switches);
    let mut child = server
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for request in requests {
        // A server that died has closed its end.
        let _ = writeln!(input, "{request}");
    }
    drop(input);
    let out = child.wait_with_output().unwrap().stdout;
    let lines = out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let answers = lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let log = std::fs::read_to_string(&effects).unwrap_or_default();
    (answers, log.lines().count())
}

fn call(id: u64) -> Value {
    let arguments = json!({"url": "https://example.com"});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "look_up", "arguments": arguments}})
}

#[test]
fn the_adversary_does_what_its_switches_say() {
    let calls = [call(1), call(2)];
    let (answers, effects) = serve(&[], &calls);
    assert_eq!((answers.len(), effects), (2, 2));
    let (answers, effects) = serve(&["--die-after-call"], &calls);
    assert_eq!((answers.len(), effects), (0, 1));
    let (answers, effects) = serve(&["--no-answer"], &calls);
    assert_eq!((answers.len(), effects), (0, 2));
    let (answers, effects) = serve(&["--error"], &calls);
    assert_eq!(
        (answers[0]["result"]["isError"].as_bool(), effects),
        (Some(true), 0)
    );
    let (answers, effects) = serve(&["--input-required"], &calls);
    assert_eq!(
        (answers[0]["result"]["resultType"].as_str(), effects),
        (Some("input_required"), 0)
    );
    let (answers, _) = serve(&["--big", "100000"], &calls);
    assert_eq!(
        answers[0]["result"]["content"][0]["text"]
            .as_str()
            .map(str::len),
        Some(100_000)
    );
}

#[test]
fn the_bench_measures_and_says_so_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [
        "bench",
        "--json",
        "--single",
        "10",
        "--acts",
        "100",
        "--seconds",
        "1",
        "--rows",
        "100",
        "--dir",
    ];
    let bench = lychgate().args(flags).arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&bench.stderr).into_owned();
    let measured: Value =
        serde_json::from_slice(&bench.stdout).unwrap_or_else(|_| panic!("{said}"));
    for key in [
        "single_to_pair",
        "in_flight_64_acts_per_second",
        "server_added_us",
        "full_slowdown",
    ] {
        assert!(measured[key].is_number(), "{key}: {measured}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "something was left behind"
    );
}
