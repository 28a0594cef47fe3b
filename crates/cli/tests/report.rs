//! `lychgate report` from outside, over exported records that are written and signed here: a clean one, one with a
//! violation of each kind, one that was tampered with. `REPORT=overwrite cargo test -p lychgate --test report` takes a
//! change of the text over; `REPORT_PAGES=DIR` keeps the pages, to be looked at.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs
)]

#[path = "report/record.rs"]
mod record;

use std::path::{Path, PathBuf};
use std::process::Command;

use lychgate_server::{OpenOptions, StateFolder};
use lychgate_store::{Note, Txn};
use record::{Record, at, month};
use serde_json::Value;

/// Status, standard output, standard error.
fn report(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_lychgate"))
        .env_clear()
        .env("HOME", folder)
        .env("COLUMNS", "100")
        .args(["report", "--dir"])
        .arg(folder.join("record"))
        .arg("--trust")
        .arg(folder.join("trust.json"))
        .args(words)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        ran.status.code().unwrap(),
        text(&ran.stdout),
        text(&ran.stderr),
    )
}

fn json(folder: &Path, words: &[&str]) -> (i32, Value) {
    let (status, out, _) = report(folder, &[words, &["--json"]].concat());
    (status, serde_json::from_str(&out).unwrap())
}

/// The page, also kept where `REPORT_PAGES` says.
fn page(folder: &Path, name: &str) -> String {
    let file = folder.join(name);
    report(folder, &["--html", file.to_str().unwrap()]);
    let page = std::fs::read_to_string(&file).unwrap();
    if let Some(kept) = std::env::var_os("REPORT_PAGES") {
        std::fs::write(PathBuf::from(kept).join(name), &page).unwrap();
    }
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for never in [
        "<script", "http:", "https:", "url(//", "src=", "@import", "<img", "<link", "onload",
    ] {
        assert!(!page.contains(never), "{name}: {never}");
    }
    page
}

fn golden(name: &str, out: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/report")
        .join(name);
    if std::env::var("REPORT").is_ok_and(|word| word == "overwrite") {
        std::fs::write(&path, out).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(out, kept, "{name}: REPORT=overwrite takes it over");
}

fn clean() -> Record {
    let mut record = Record::default();
    record.push("started", 0, "");
    for n in 1..=4 {
        record.whole(n);
    }
    record.denied(5, "EF-011");
    record.push("stopped", 60, "");
    record
}

/// One violation of each kind, and an act that was only advised.
fn broken() -> Record {
    let mut record = Record::default();
    record.push("started", 0, "");
    record.whole(1);
    record.dispatched_without(2, "evidence_id", 0);
    record.outcome(2, "effected");
    record.dispatched_without(3, "authority_id authority_digest", 0);
    record.dispatched(1);
    record.outcome(4, "effected");
    record.whole(5);
    record.outcome(5, "failed");
    record.denied(6, "EF-011");
    record.dispatched(6);
    record.denied(7, "EF-016");
    record.dispatched_without(8, "verification_digest", 0);
    record.dispatched_without(9, "", 3);
    record.line("{\"kind\":\"dispatched\"}");
    record.advised(10);
    record
}

#[test]
fn a_clean_record_is_reported_as_one() {
    let folder = tempfile::tempdir().unwrap();
    clean().export(folder.path());
    let (status, out, _) = report(folder.path(), &[]);
    assert_eq!(status, 0, "{out}");
    golden("clean.txt", &out);
    let (status, said) = json(folder.path(), &[]);
    assert_eq!((status, said["clean"].as_bool()), (0, Some(true)));
    assert_eq!(said["tests"][3]["verdict"], "not_measured");
    assert_eq!(said["record"]["size"], 11);
    let page = page(folder.path(), "clean.html");
    assert!(page.contains("No violation of what was measured") && page.contains("not measured"));
    assert!(page.contains(said["record"]["root"].as_str().unwrap()));
}

#[test]
fn every_violation_is_named_with_its_receipts() {
    let folder = tempfile::tempdir().unwrap();
    broken().export(folder.path());
    let (status, out, err) = report(folder.path(), &["--max-depth", "2"]);
    assert_eq!(status, 1);
    golden("broken.txt", &out);
    assert!(
        err.contains("violations") && err.contains("advised"),
        "{err}"
    );
    let (_, said) = json(folder.path(), &["--max-depth", "2"]);
    let breaches = said["violations"].as_array().unwrap().iter();
    let breaches = breaches
        .map(|one| one["breach"].as_str().unwrap())
        .collect::<Vec<_>>();
    for wanted in [
        "no_evidence",
        "no_authority",
        "act_twice",
        "outcome_without_dispatch",
        "outcome_twice",
        "dispatched_after_mismatch",
        "sink_skipped",
        "too_deep",
        "not_a_receipt",
    ] {
        assert!(breaches.contains(&wanted), "{wanted}: {breaches:?}");
    }
    assert_eq!(said["advisory"]["number"], 1);
    // What is named is there: each receipt is the one of its act.
    for one in said["violations"].as_array().unwrap() {
        assert!(!one["records"].as_array().unwrap().is_empty(), "{one}");
    }
    let (_, said) = json(folder.path(), &[]);
    assert_ne!(said["tests"][2]["verdict"], "held", "no limit is known");
}

#[test]
fn only_the_time_asked_for_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    broken().export(folder.path());
    let since = at(9).to_string();
    let (_, said) = json(folder.path(), &["--since", &since, "--max-depth", "2"]);
    let violations = said["violations"].as_array().unwrap();
    assert!(
        violations
            .iter()
            .all(|one| one["at"].is_null() || one["at"].as_str() >= Some(&since))
    );
    let (status, _, err) = report(
        folder.path(),
        &["--since", "2026-11-30", "--until", "2026-11-01"],
    );
    assert_eq!(status, 2, "{err}");
    let (status, _, _) = report(folder.path(), &["--since", "some day"]);
    assert_eq!(status, 2);
}

#[test]
fn of_a_record_that_does_not_verify_nothing_is_claimed() {
    let folder = tempfile::tempdir().unwrap();
    clean().export(folder.path());
    let bundle = folder.path().join("record/tile/entries/000.p/11");
    let bytes = std::fs::read(&bundle).unwrap();
    let place = bytes
        .windows(8)
        .position(|eight| eight == b"finality")
        .unwrap();
    let changed = [&bytes[..place], b"advisory", &bytes[place + 8..]].concat();
    std::fs::write(&bundle, changed).unwrap();
    let (status, out, err) = report(folder.path(), &[]);
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    assert!(
        err.contains("does not verify") && err.contains("edited"),
        "{err}"
    );
    let (status, said) = json(folder.path(), &[]);
    assert_eq!(
        (status, &said["finding"], &said["tests"]),
        (1, &"edited".into(), &Value::Null)
    );
    let page = page(folder.path(), "tampered.html");
    assert!(page.contains("does not verify") && !page.contains("held"));
}

#[test]
fn what_is_hostile_is_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = Record::default();
    record.function = "</td><script>alert(1)</script>\\u202e\\u001b[2J".to_owned();
    record.dispatched_without(1, "evidence_id", 0);
    record.export(folder.path());
    let page = page(folder.path(), "hostile.html");
    assert!(page.contains("&lt;script&gt;") && page.contains("\\u{202e}\\u{1b}[2J"));
    let (_, out, _) = report(folder.path(), &[]);
    assert!(!out.contains(['\u{202e}', '\x1b']) && out.contains("\\u{202e}"));
}

#[test]
fn what_was_written_straight_into_a_store_is_named_and_the_depth_is_the_applied_one() {
    let home = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let ran = Command::new(env!("CARGO_BIN_EXE_lychgate"))
            .env_clear()
            .env("HOME", home.path())
            .env("USER", "alice")
            .args(words)
            .output()
            .unwrap();
        (
            ran.status.code().unwrap(),
            String::from_utf8(ran.stdout).unwrap(),
        )
    };
    assert_eq!(run(&["init", "--no-approver"]).0, 0);
    let (status, said) = run(&["report", "--json"]);
    assert_eq!(status, 0, "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["asked"]["applied"][0]["max_depth"], 0);

    let state = StateFolder::at(&home.path().join(".local/state/lychgate")).unwrap();
    let opened = state.open(&OpenOptions::default()).unwrap();
    let store = opened.parts.store.clone();
    let applied = store.applied().unwrap().unwrap();
    let mut record = Record::under(&applied.digest, applied.at);
    record.whole(1);
    record.dispatched_without(2, "", 1);
    record.dispatched_without(3, "evidence_digest", 0);
    let receipts = record.entries();
    let note = Txn::Note(Note {
        now: at(9),
        receipts,
    });
    drop(opened);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(store.commit(note))
        .unwrap()
        .done()
        .unwrap();
    drop(store);

    let (status, said) = run(&["report", "--json"]);
    assert_eq!(status, 1, "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    let violations = said["violations"].as_array().unwrap().iter();
    let breaches = violations.map(|one| one["breach"].as_str().unwrap());
    assert_eq!(breaches.collect::<Vec<_>>(), ["too_deep", "no_evidence"]);
}

#[test]
fn a_month_of_work_is_one_page() {
    let folder = tempfile::tempdir().unwrap();
    month(true).export(folder.path());
    let broken = page(folder.path(), "month.html");
    assert!(broken.contains("class=\"mark\"") && broken.contains("class=\"down killed\""));
    month(false).export(folder.path());
    let (status, said) = json(folder.path(), &[]);
    assert_eq!(status, 0, "{}", said["violations"]);
    let page = page(folder.path(), "month-clean.html");
    assert!(page.len() < 200_000, "{}", page.len());
    assert!(said["people"]["longest_wait_ms"].as_u64() > said["people"]["median_wait_ms"].as_u64());
}
