//! Groups of approvers: what is a load error, which acts they are for, and what a change of them does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use lychgate_core::ConsequenceClass;
use lychgate_policy::{Applied, Effect, changes};
use support::single;

const ENTRY: &str = "class = \"PERSISTENT_STATE_CHANGE\"\ndestination = { path = [\"/path\"] }";
const ONE: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
const TWO: &str = "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o";

fn group(body: &str) -> Result<Applied, String> {
    let head = format!("[approvers.g]\n{body}\n");
    single(&head, &["path", "content"], ENTRY).map_err(|found| found.to_string())
}

#[test]
fn a_group_that_could_decide_nothing_or_never_is_a_load_error() {
    let keys = format!("keys = [\"{ONE}\", \"{TWO}\"]");
    for (body, problem) in [
        (
            "quorum = 1\nclasses = [\"FINANCIAL\"]".to_owned(),
            "`keys` must name",
        ),
        (
            format!("{keys}\nquorum = 3\nclasses = [\"FINANCIAL\"]"),
            "`quorum` must be",
        ),
        (
            format!("{keys}\nquorum = 0\nclasses = [\"FINANCIAL\"]"),
            "`quorum` must be",
        ),
        (format!("{keys}\nquorum = 2"), "is for nothing"),
        (
            format!("{keys}\nclasses = [\"MONEY\"]"),
            "no consequence class",
        ),
        (format!("{keys}\ntools = [\"elsewhere\"]"), "no server"),
        (format!("{keys}\ntools = [\"s/nothing\"]"), "no pinned tool"),
        (format!("{keys}\ntols = [\"s\"]"), "unknown key"),
        (
            format!("keys = [\"{ONE}\", \"{ONE}\"]\ntools = [\"s\"]"),
            "named twice",
        ),
        (
            "keys = [\"alice\"]\ntools = [\"s\"]".to_owned(),
            "no key id",
        ),
    ] {
        let found = group(&body)
            .err()
            .unwrap_or_else(|| panic!("taken: {body}"));
        assert!(found.contains(problem), "{body}: {found}");
    }
}

#[test]
fn a_group_is_for_its_classes_and_tools_and_nothing_else() {
    let group = group(&format!(
        "keys = [\"{ONE}\"]\nclasses = [\"FINANCIAL\"]\ntools = [\"s/f\"]"
    ));
    let applied = group.unwrap();
    let asked = |class, server: &'static str, function: &'static str| {
        applied.approvers_for(class, server, function).count()
    };
    assert_eq!(asked(ConsequenceClass::Financial, "any", "thing"), 1);
    assert_eq!(asked(ConsequenceClass::Other, "s", "f"), 1);
    for (server, function) in [("s", "g"), ("s2", "f"), ("S", "f"), ("s", "f/x")] {
        assert_eq!(asked(ConsequenceClass::Other, server, function), 0);
    }
    let again = Applied::from_snapshot(&applied.snapshot()).unwrap();
    assert_eq!(again.digest(), applied.digest());
}

#[test]
fn whatever_lets_fewer_or_others_say_yes_widens() {
    let none = single("", &["path", "content"], ENTRY).unwrap();
    let with = |keys: &[&str], quorum: u64, scope: &str| {
        let keys = keys
            .iter()
            .map(|key| format!("\"{key}\""))
            .collect::<Vec<_>>();
        group(&format!(
            "keys = [{}]\nquorum = {quorum}\n{scope}",
            keys.join(", ")
        ))
        .unwrap()
    };
    let base = with(&[ONE, TWO], 2, "classes = [\"FINANCIAL\"]");
    for (what, other) in [
        ("no group", &none),
        (
            "a lower quorum",
            &with(&[ONE, TWO], 1, "classes = [\"FINANCIAL\"]"),
        ),
        ("other acts", &with(&[ONE, TWO], 2, "tools = [\"s\"]")),
    ] {
        let widens = changes(Some(&base), other);
        assert!(
            widens.iter().any(|one| one.effect == Effect::Widens),
            "{what}"
        );
    }
    let narrows = changes(Some(&none), &base);
    assert!(narrows.iter().all(|one| one.effect == Effect::Narrows));
    let one = with(&[ONE], 1, "tools = [\"s\"]");
    let more = with(&[ONE, TWO], 1, "tools = [\"s\"]");
    assert_eq!(changes(Some(&one), &more)[0].effect, Effect::Widens);
    assert_eq!(changes(Some(&more), &one)[0].effect, Effect::Narrows);
}
