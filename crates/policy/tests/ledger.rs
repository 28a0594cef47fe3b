//! The `[ledger]` table: a second anchor and witnesses, and nothing an agent may change alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use lychgate_policy::{Applied, Effect, Pins, changes, template};

fn load(table: &str) -> Result<Applied, String> {
    let text = format!("{}\n{table}\n", template("user:test", &[]));
    let loaded = lychgate_policy::load(&text, Path::new("lychgate.toml"), &Pins::new());
    loaded.map_err(|found| found.to_string())
}

const ONE: &str = "[ledger]\nanchor_file = \"/srv/anchor\"\n[ledger.witness.near]\nurl = \"http://127.0.0.1:8123\"\nkey = \"near+00000000+BAAA\"";

#[test]
fn what_is_right_comes_back_from_the_snapshot() {
    let applied = load(ONE).unwrap();
    let back = Applied::from_snapshot(&applied.snapshot()).unwrap();
    let ledger = back.ledger();
    assert_eq!(ledger.anchor_file(), Some(Path::new("/srv/anchor")));
    let (name, witness) = ledger.witnesses().next().unwrap();
    assert_eq!((name, witness.key()), ("near", "near+00000000+BAAA"));
    assert_eq!(witness.address().unwrap().to_string(), "127.0.0.1:8123");
    let none = String::from_utf8(load("").unwrap().snapshot()).unwrap();
    assert!(!none.contains("ledger"), "the digest stays as it was");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (table, said) in [
        ("[ledger]\nanchor_file = \"x\"", "must be an absolute path"),
        ("[ledger]\nanchors = \"x\"", "unknown key `anchors`"),
        ("[ledger.witness.a]\nurl = \"http://127.0.0.1:1\"", "`key`"),
        (
            "[ledger.witness.a]\nurl = \"http://192.0.2.1:1\"\nkey = \"a+b+c\"",
            "loopback",
        ),
        (
            "[ledger.witness.a]\nurl = \"https://example.com/\"\nkey = \"a+b+c\"",
            "loopback",
        ),
        (
            "[ledger.witness.a]\nurl = \"http://127.0.0.1:1\"\nkey = \"a\"",
            "verifier key",
        ),
    ] {
        let found = load(table).unwrap_err();
        assert!(found.contains(said), "{table}: {found}");
    }
}

#[test]
fn every_change_wants_the_approver() {
    let (none, one) = (load("").unwrap(), load(ONE).unwrap());
    for (old, new) in [(&none, &one), (&one, &none)] {
        let effects: Vec<_> = changes(Some(old), new)
            .into_iter()
            .map(|one| one.effect)
            .collect();
        assert_eq!(effects, [Effect::Widens, Effect::Widens]);
    }
}
