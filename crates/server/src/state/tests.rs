#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use lychgate_policy::Pins;

fn first() -> Applied {
    let text = lychgate_policy::template("user:test", &[]);
    lychgate_policy::load(&text, Path::new("lychgate.toml"), &Pins::new()).unwrap()
}

const AT: fn() -> Timestamp = || Timestamp::from_millis(1_700_000_000_000);

#[test]
fn the_defaults_follow_xdg_and_ignore_what_is_relative() {
    let home = Some(Path::new("/h"));
    let relative = Some(Path::new("x"));
    let given = Some(Path::new("/x"));
    let state = |xdg| default_state_dir(xdg, home).unwrap();
    assert_eq!(state(given), Path::new("/x/lychgate"));
    assert_eq!(state(relative), Path::new("/h/.local/state/lychgate"));
    let config = |xdg| default_config_file(xdg, home).unwrap();
    assert_eq!(config(None), Path::new("/h/.config/lychgate/lychgate.toml"));
    assert_eq!(default_state_dir(None, None), None);
}

#[test]
fn a_folder_is_made_whole_and_never_over_another() {
    let outer = tempfile::tempdir().unwrap();
    let path = outer.path().join("a/state");
    let state = StateFolder::create(&path, None, &first(), AT()).unwrap();
    state.check().unwrap();
    let opened = state.open(&crate::OpenOptions::default()).unwrap();
    assert_eq!(opened.parts.current.policy_digest, first().digest());
    assert_eq!(approver_of(&opened.parts.trust), Approver::None);
    assert_eq!(
        opened.parts.store.record_len().unwrap(),
        4,
        "three keys, one configuration"
    );
    drop(opened);
    let again = StateFolder::create(&path, None, &first(), AT());
    assert!(matches!(again, Err(StateFault::Exists(_))));
    let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(names, 1, "nothing is left behind");
}

#[test]
fn a_refused_passphrase_leaves_nothing_behind() {
    let outer = tempfile::tempdir().unwrap();
    let path = outer.path().join("state");
    let made = StateFolder::create(&path, Some(b"short"), &first(), AT());
    assert!(matches!(made, Err(StateFault::Key(_))));
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
}

#[test]
fn a_path_that_is_relative_or_too_long_for_a_socket_is_refused() {
    let long = format!("/{}", "x".repeat(MOST_PATH));
    assert!(matches!(
        StateFolder::at(Path::new(&long)),
        Err(StateFault::TooLong(_))
    ));
    assert!(matches!(
        StateFolder::at(Path::new("x")),
        Err(StateFault::Relative(_))
    ));
}
