//! The `[telemetry]` table: off unless asked for, on this machine unless said, and nothing an agent may change alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use lychgate_policy::{Applied, Effect, changes};
use support::{pins, read};

fn load(table: &str) -> Result<Applied, String> {
    let text = format!("version = 1\n{table}\n");
    read(&text, &pins(&[])).map_err(|problems| problems.to_string())
}

#[test]
fn each_mistake_has_its_line_and_what_was_meant() {
    let near = "127.0.0.1";
    for (line, said) in [
        (
            "prometheus = \"localhost:9464\"",
            format!(
                "`prometheus` must be an address and a port, not `localhost:9464` (did you mean `{near}:9464`?)"
            ),
        ),
        (
            "prometheus = \"9100\"",
            format!(
                "`prometheus` must be an address and a port, not `9100` (did you mean `{near}:9100`?)"
            ),
        ),
        (
            "prometheus = \"127.0.0.1\"",
            format!(
                "`prometheus` must be an address and a port, not `127.0.0.1` (did you mean `{near}:9464`?)"
            ),
        ),
        (
            "prometheus = \"0.0.0.0:9464\"",
            format!(
                "`0.0.0.0:9464` is not on this machine alone: write `beyond_loopback = true` as well when it is to be so (did you mean `{near}:9464`?)"
            ),
        ),
        (
            "prometheus = \"127.0.0.1:0\"",
            format!(
                "`127.0.0.1:0` has no port that anybody could find (did you mean `{near}:9464`?)"
            ),
        ),
        (
            "otlp = \"http://192.0.2.7:4318\"",
            format!(
                "`http://192.0.2.7:4318` is not on this machine alone: write `beyond_loopback = true` as well when it is to be so (did you mean `http://{near}:4318`?)"
            ),
        ),
        (
            "otlp = \"https://collector.example\"",
            format!(
                "`otlp` must be `http://`, an address and a port, without a path: names are not looked up and `https` is not spoken, so run a collector nearby, not `https://collector.example` (did you mean `http://{near}:4318`?)"
            ),
        ),
        (
            "every = \"1ms\"",
            "`every` must be from 200 ms to 600000 ms".to_owned(),
        ),
        (
            "promethius = \"x\"",
            "unknown key `promethius` (did you mean `prometheus`?)".to_owned(),
        ),
        (
            "otlp = 4318",
            "`otlp` must be a text, not a whole number".to_owned(),
        ),
    ] {
        let found = load(&format!("[telemetry]\n{line}")).unwrap_err();
        assert_eq!(found, format!("lychgate.toml:3: {said}"), "{line}");
    }
}

#[test]
fn what_is_right_is_taken_and_comes_back_from_the_snapshot() {
    let table = "[telemetry]\nprometheus = \"[::1]:9464\"\notlp = \"http://192.0.2.7:4318/\"\nevery = \"1s\"\nbeyond_loopback = true";
    let applied = load(table).unwrap();
    let back = Applied::from_snapshot(&applied.snapshot()).unwrap();
    let telemetry = back.telemetry();
    assert_eq!(telemetry.prometheus().unwrap().to_string(), "[::1]:9464");
    assert_eq!(telemetry.otlp().unwrap().to_string(), "192.0.2.7:4318");
    assert_eq!(telemetry.every(), 1_000);
}

#[test]
fn without_the_table_nothing_is_told_and_the_digest_stays_as_it_was() {
    let applied = load("").unwrap();
    assert!(applied.telemetry().prometheus().is_none() && applied.telemetry().otlp().is_none());
    let text = String::from_utf8(applied.snapshot()).unwrap();
    assert!(!text.contains("telemetry"), "{text}");
}

/// An agent that could switch the lights off, or point them elsewhere, would do so first.
#[test]
fn every_change_of_a_place_wants_the_approver() {
    let none = load("").unwrap();
    let one =
        load("[telemetry]\nprometheus = \"127.0.0.1:9464\"\notlp = \"http://127.0.0.1:4318\"")
            .unwrap();
    let two =
        load("[telemetry]\nprometheus = \"127.0.0.1:9465\"\notlp = \"http://127.0.0.2:4318\"")
            .unwrap();
    for (old, new) in [(&none, &one), (&one, &two), (&two, &none)] {
        let effects: Vec<_> = changes(Some(old), new)
            .into_iter()
            .map(|one| one.effect)
            .collect();
        assert_eq!(effects, [Effect::Widens, Effect::Widens]);
    }
    let slower = load("[telemetry]\nprometheus = \"127.0.0.1:9464\"\notlp = \"http://127.0.0.1:4318\"\nevery = \"1m\"").unwrap();
    let effects: Vec<_> = changes(Some(&one), &slower)
        .into_iter()
        .map(|one| one.effect)
        .collect();
    assert_eq!(effects, [Effect::Neutral]);
}
