//! Keys on the disk: made closed, refused when open, never overwritten, rotated without a gap.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use lychgate_core::Timestamp;
use lychgate_core::signed::KeyId;
use lychgate_keys::{ApproverKey, KeyFault, KeyRing, NewKey, Role, Sealer, TrustBundle, rotate};
use tempfile::TempDir;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + seconds * 1000)
}

struct State {
    _folder: TempDir,
    keys: PathBuf,
    trust: PathBuf,
    ring: KeyRing,
    bundle: TrustBundle,
}

fn state() -> State {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("state/keys");
    let trust = folder.path().join("state/trust.json");
    let (ring, bundle) = KeyRing::create(&keys, at(0)).unwrap();
    bundle.write(&trust).unwrap();
    State {
        _folder: folder,
        keys,
        trust,
        ring,
        bundle,
    }
}

impl State {
    fn file(&self, role: Role, id: &KeyId) -> PathBuf {
        self.keys.join(format!("{role}-{}.key", id.0))
    }

    fn ped(&self) -> PathBuf {
        self.file(Role::Ped, self.ring.ped.key_id())
    }

    fn open(&self) -> Result<KeyRing, KeyFault> {
        KeyRing::open(&self.keys, &TrustBundle::read(&self.trust)?)
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn keys_are_made_closed_and_open_again() {
    let state = state();
    assert_eq!(mode(&state.keys), 0o700);
    assert_eq!(mode(&state.trust), 0o600);
    assert_eq!(names(&state.keys).len(), 3, "no temporary file is left");
    for name in names(&state.keys) {
        assert_eq!(mode(&state.keys.join(name)), 0o600);
    }
    let again = state.open().unwrap();
    assert_eq!(again.ped.public(), state.ring.ped.public());
    assert_eq!(again.sink.public(), state.ring.sink.public());
    assert_eq!(again.ledger.public(), state.ring.ledger.public());
    assert_ne!(again.ped.public(), again.sink.public());
    assert_eq!(TrustBundle::read(&state.trust).unwrap(), state.bundle);
}

#[test]
fn keys_are_never_overwritten() {
    let state = state();
    let before = names(&state.keys);
    assert!(matches!(
        KeyRing::create(&state.keys, at(1)),
        Err(KeyFault::Exists { .. })
    ));
    assert_eq!(names(&state.keys), before);
}

#[test]
fn an_open_file_is_refused_with_the_way_out() {
    let state = state();
    for open in [0o640, 0o604, 0o620, 0o610, 0o601] {
        set_mode(&state.ped(), open);
        let told = state.open().unwrap_err().to_string();
        assert!(
            told.contains(&format!("chmod 600 {}", state.ped().display())),
            "{told}"
        );
    }
    set_mode(&state.ped(), 0o600);
    state.open().unwrap();
    set_mode(&state.keys, 0o750);
    let told = state.open().unwrap_err().to_string();
    assert!(
        told.contains("(mode 0750)") && told.contains("chmod 700"),
        "{told}"
    );
    set_mode(&state.keys, 0o700);
    set_mode(&state.trust, 0o644);
    assert!(matches!(state.open(), Err(KeyFault::Mode { .. })));
}

#[test]
fn links_folders_and_pipes_are_no_key_files() {
    let state = state();
    let aside = state.keys.join("aside");
    fs::rename(state.ped(), &aside).unwrap();
    assert!(matches!(state.open(), Err(KeyFault::Missing { .. })));
    symlink(&aside, state.ped()).unwrap();
    assert!(matches!(state.open(), Err(KeyFault::SymbolicLink { .. })));
    fs::remove_file(state.ped()).unwrap();
    fs::create_dir(state.ped()).unwrap();
    assert!(matches!(state.open(), Err(KeyFault::WrongType { .. })));
    fs::remove_dir(state.ped()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        state.ped(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(
        matches!(state.open(), Err(KeyFault::WrongType { .. })),
        "and it does not hang"
    );
    let link = state.keys.with_file_name("link");
    symlink(&state.keys, &link).unwrap();
    assert!(matches!(
        KeyRing::open(&link, &state.bundle),
        Err(KeyFault::SymbolicLink { .. })
    ));
}

#[test]
fn another_user_s_file_is_refused() {
    let state = state();
    // Only a privileged user can give a file away; elsewhere there is nothing to try.
    if std::os::unix::fs::chown(state.ped(), Some(65_534), None).is_ok() {
        assert!(matches!(
            state.open(),
            Err(KeyFault::Owner { owner: 65_534, .. })
        ));
    }
}

#[test]
fn a_file_with_another_key_is_refused() {
    let state = state();
    let ped = fs::read_to_string(state.ped()).unwrap();
    let sink = fs::read_to_string(state.file(Role::Sink, state.ring.sink.key_id())).unwrap();
    fs::write(state.ped(), &sink).unwrap();
    assert!(matches!(state.open(), Err(KeyFault::Format { .. })));
    let (head, _) = ped.trim_end().rsplit_once(' ').unwrap();
    let (_, secret) = sink.trim_end().rsplit_once(' ').unwrap();
    fs::write(state.ped(), format!("{head} {secret}\n")).unwrap();
    assert!(matches!(state.open(), Err(KeyFault::Mismatch { .. })));
    for text in [
        String::new(),
        ped.trim_end().to_owned(),
        format!("{ped}\n"),
        "x".repeat(5000),
        ped.replace(' ', "  "),
    ] {
        fs::write(state.ped(), text).unwrap();
        assert!(matches!(state.open(), Err(KeyFault::Format { .. })));
    }
    fs::write(state.ped(), ped).unwrap();
    state.open().unwrap();
}

#[test]
fn rotation_puts_a_new_key_in_place_and_removes_the_old_one() {
    let mut state = state();
    let old = state.ring.ped.key_id().clone();
    let made = NewKey::generate(Role::Ped).unwrap();
    let public = made.public();
    assert_eq!(made.role(), Role::Ped);
    let new = rotate(&state.keys, &state.trust, &mut state.bundle, made, at(60)).unwrap();
    assert_eq!(new.public(), public, "the very key that was made");
    assert!(!state.ped().exists());
    assert_eq!(TrustBundle::read(&state.trust).unwrap(), state.bundle);
    assert_eq!(
        state.bundle.current(Role::Ped).unwrap().key_id(),
        new.key_id()
    );
    let kept = state
        .bundle
        .keys()
        .iter()
        .find(|key| *key.key_id() == old)
        .unwrap();
    assert_eq!(
        kept.retired_at(),
        Some(at(60)),
        "old objects can still be verified"
    );
    assert_eq!(state.open().unwrap().ped.public(), new.public());
    let refused = NewKey::generate(Role::Approver);
    assert!(matches!(refused, Err(KeyFault::NotAFileKey { .. })));
}

#[test]
fn an_interrupted_rotation_leaves_a_ring_that_opens() {
    // Cut between the bundle and the removal: the old private file is still there.
    let mut state = state();
    let old = state.ped();
    let secret = fs::read(&old).unwrap();
    rotate(
        &state.keys,
        &state.trust,
        &mut state.bundle,
        NewKey::generate(Role::Ped).unwrap(),
        at(60),
    )
    .unwrap();
    fs::write(&old, secret).unwrap();
    set_mode(&old, 0o600);
    state.open().unwrap();
    assert!(!old.exists(), "opening finished the rotation");
}

#[test]
fn a_rotation_that_cannot_be_written_changes_nothing() {
    let mut state = state();
    let before = (names(&state.keys), state.bundle.clone());
    let nowhere = state.keys.join("missing/trust.json");
    let new = NewKey::generate(Role::Sink).unwrap();
    assert!(rotate(&state.keys, &nowhere, &mut state.bundle, new, at(60)).is_err());
    assert_eq!((names(&state.keys), state.bundle.clone()), before);
    state.open().unwrap();
}

#[test]
fn the_approver_s_key_opens_with_its_passphrase_only() {
    let state = state();
    let path = state.keys.join("approver.key");
    let (id, public) = ApproverKey::create(&path, "pässwörd".as_bytes(), at(0)).unwrap();
    assert_eq!(mode(&path), 0o600);
    let key = ApproverKey::open(&path, "pässwörd".as_bytes()).unwrap();
    assert_eq!((key.key_id(), key.public()), (&id, public));
    assert!(matches!(
        ApproverKey::open(&path, b"password"),
        Err(KeyFault::WrongPassphrase { .. })
    ));
    assert!(matches!(
        ApproverKey::open(&path, b""),
        Err(KeyFault::WrongPassphrase { .. })
    ));
    let again = ApproverKey::create(&path, b"another passphrase", at(1));
    assert!(matches!(again, Err(KeyFault::Exists { .. })));

    let text = fs::read_to_string(&path).unwrap();
    let wrong = ApproverKey::change_passphrase(&path, b"wrong old", b"the new one");
    assert!(matches!(wrong, Err(KeyFault::WrongPassphrase { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    ApproverKey::change_passphrase(&path, "pässwörd".as_bytes(), b"the new one").unwrap();
    assert_eq!(mode(&path), 0o600);
    assert!(ApproverKey::open(&path, "pässwörd".as_bytes()).is_err());
    assert_eq!(
        ApproverKey::open(&path, b"the new one").unwrap().public(),
        public
    );
}

#[test]
fn a_short_or_endless_passphrase_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("approver.key");
    let told = ApproverKey::create(&path, "äöüäöüä".as_bytes(), at(0))
        .unwrap_err()
        .to_string();
    assert_eq!(told, "passphrase must have at least 8 characters");
    let endless = ApproverKey::create(&path, &[b'x'; 2000], at(0));
    assert!(matches!(endless, Err(KeyFault::PassphraseTooLong { .. })));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_changed_approver_file_does_not_open_nor_cost_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("approver.key");
    ApproverKey::create(&path, b"long enough", at(0)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let with = |from: &str, to: &str| {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text, "{from}");
        fs::write(&path, other).unwrap();
        ApproverKey::open(&path, b"long enough").unwrap_err()
    };
    for (from, to) in [
        (r#""memory_kib":65536"#, r#""memory_kib":4294967295"#),
        (r#""memory_kib":65536"#, r#""memory_kib":8"#),
        (r#""passes":3"#, r#""passes":4000000"#),
        (r#""lanes":1"#, r#""lanes":0"#),
        (r#""salt":""#, r#""salt":"A"#),
        ("argon2id", "argon2i"),
        (r#""version":"1.0""#, r#""version":"1.0","note":"x""#),
    ] {
        let fault = with(from, to);
        assert!(matches!(fault, KeyFault::Format { .. }), "{from}: {fault}");
    }
    // Well-formed, but not what was sealed: the header is authenticated.
    for (from, to) in [
        (r#""passes":3"#, r#""passes":2"#),
        (r#""created_at":"2027"#, r#""created_at":"2026"#),
    ] {
        let fault = with(from, to);
        assert!(
            matches!(fault, KeyFault::WrongPassphrase { .. }),
            "{from}: {fault}"
        );
    }
}

#[test]
fn a_seal_key_is_no_signing_key_and_the_other_way_round() {
    let state = state();
    assert!(matches!(
        Sealer::open_file(&state.ped()),
        Err(KeyFault::Format { .. })
    ));
    let seal = state.keys.join("seal.key");
    Sealer::create(&seal).unwrap();
    fs::copy(&seal, state.ped()).unwrap();
    assert!(matches!(state.open(), Err(KeyFault::Format { .. })));
}
