//! Attacks on the state folder, by somebody who owns the disk and has the gate's own keys: whatever is done to the
//! record, the anchor tells, no gate starts, and only a person's decision, which stays in the record, goes on.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lychgate_core::Timestamp;
use lychgate_core::act::Version;
use lychgate_core::json::{self, Limits};
use lychgate_core::receipt::{Receipt, ReceiptKind};
use lychgate_core::signed::Mark;
use lychgate_gate::RingSigner;
use lychgate_gate::ledger::{AnchorNote, Difference};
use lychgate_keys::verdict::{AnchorObject, AnchorVerdict, Reason};
use lychgate_keys::{ApproverKey, KeyRing, TrustBundle};
use lychgate_ledger::{Finding, Frontier, LeafHash, leaf_hash};
use lychgate_server::accept::{Contradiction, Decision};
use lychgate_server::elsewhere::Place as Keeper;
use lychgate_server::{OpenOptions, Opened, StateFault, StateFolder};
use lychgate_store::testing::make::{self, boxed, done};
use lychgate_store::{GroupSigner, Rejected, Store, TicketState, Txn, txn};
use rusqlite::{Connection, params};
use support::{PASSPHRASE, World};

/// Lines before any gate ran: four keys and a configuration.
const FIRST: u64 = 5;

/// A world whose gate anchors.
struct Place {
    world: World,
    options: OpenOptions,
}

impl Place {
    fn new() -> Self {
        Self::of(World::new())
    }

    fn of(world: World) -> Self {
        let options = OpenOptions {
            anchors: Some(world.root().join("anchors")),
            ..OpenOptions::default()
        };
        let place = Self { world, options };
        place.session(3, true);
        place
    }

    fn state(&self) -> &StateFolder {
        &self.world.state
    }

    fn open(&self) -> Result<Opened, StateFault> {
        self.state().open(&self.options)
    }

    /// What a gate does: opens, appends, anchors unless it is killed first.
    fn session(&self, lines: u64, anchored: bool) {
        let opened = self.open().unwrap();
        self.append(&opened, lines);
        if anchored {
            self.anchor(&opened);
        }
    }

    fn append(&self, opened: &Opened, lines: u64) {
        let store = &opened.parts.store;
        for _ in 0..lines {
            let size = store.record_len().unwrap();
            let note = txn::Note {
                now: Timestamp::from_millis(1_700_000_000_001),
                receipts: vec![make::entry(&format!("line {size}"))],
            };
            done(store.as_ref(), Txn::Note(note));
        }
    }

    fn anchor(&self, opened: &Opened) {
        let newest = opened.parts.store.newest_head().unwrap().unwrap();
        opened.anchors.write(&newest).unwrap();
    }

    fn copy(&self) -> PathBuf {
        self.copy_to("copy")
    }

    fn copy_to(&self, name: &str) -> PathBuf {
        let to = self.world.root().join(name);
        copy(self.state().path(), &to);
        to
    }

    /// Puts a copy in the place of the folder.
    fn restore(&self, from: &Path) {
        fs::remove_dir_all(self.state().path()).unwrap();
        copy(from, self.state().path());
    }

    fn sql(&self) -> Connection {
        Connection::open(self.state().database()).unwrap()
    }

    fn difference(&self) -> Difference {
        match self.open() {
            Err(StateFault::Contradicted { difference, .. }) => *difference,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it started"),
        }
    }

    fn finding(&self) -> Finding {
        match self.difference() {
            Difference::Record(finding) => finding,
            other => panic!("{other}"),
        }
    }

    fn damage(&self) -> String {
        match self.open() {
            Err(fault @ StateFault::Damaged { .. }) => fault.to_string(),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it started"),
        }
    }

    fn contradiction(&self) -> Option<Contradiction> {
        self.state().contradiction(&self.options).unwrap()
    }

    /// Seals the record as it is anew, with the real key, as the gate itself would have.
    fn reseal(&self, keep_older_heads: bool) {
        let trust = TrustBundle::read(&self.state().trust()).unwrap();
        let ring = KeyRing::open(&self.state().keys(), &trust).unwrap();
        let log = self.state().read_log_name().unwrap();
        let signer = RingSigner::new(log, &ring, &trust).unwrap();
        let sql = self.sql();
        let leaves: Vec<[u8; 32]> = {
            let mut select = sql.prepare("SELECT leaf FROM record ORDER BY idx").unwrap();
            let rows = select.query_map([], |row| row.get(0)).unwrap();
            rows.map(Result::unwrap).collect()
        };
        let frontier: Frontier = leaves.into_iter().map(LeafHash).collect();
        let size = frontier.size() as i64;
        let note = signer.sign_head(frontier.size(), frontier.root()).unwrap();
        let kept = if keep_older_heads { size } else { 0 };
        sql.execute("DELETE FROM recent WHERE size >= ?1", [kept])
            .unwrap();
        sql.execute("DELETE FROM heads WHERE size >= ?1", [kept])
            .unwrap();
        sql.execute(
            "INSERT INTO recent VALUES (1000, ?1, ?2)",
            params![size, note],
        )
        .unwrap();
        sql.execute("UPDATE head SET frontier = ?1", [frontier.to_bytes()])
            .unwrap();
    }

    fn verdict(&self, found: &Contradiction) -> AnchorVerdict {
        let key = ApproverKey::open(&self.state().approver_key(), PASSPHRASE).unwrap();
        let (anchor, head) = found.digests();
        let mut verdict = AnchorVerdict {
            version: Version::V1,
            object_type: AnchorObject::The,
            anchor,
            head,
            reason: Reason::try_from("restored from Monday's backup").unwrap(),
            at: Timestamp::from_millis(1_700_000_000_009),
            mark: Mark::unsigned(key.key_id().clone()),
        };
        key.sign(&mut verdict).unwrap();
        verdict
    }
}

/// Without a process: what is forked meanwhile would hold another test's lock for a moment.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

fn receipts(store: &dyn Store) -> Vec<Receipt> {
    let rows = store.record(0, usize::MAX).unwrap();
    let read = |bytes: Vec<u8>| {
        let value = json::parse(&bytes, &Limits::OBJECT).ok()?;
        json::from_value(&value).ok()
    };
    rows.into_iter()
        .filter_map(|row| read(row.bytes?))
        .collect()
}

#[test]
fn a_record_that_goes_on_from_its_anchor_starts() {
    let place = Place::new();
    for (lines, anchored) in [(2, true), (300, false), (1, true), (0, true)] {
        place.session(lines, anchored);
    }
    let opened = place.open().unwrap();
    assert_eq!(opened.anchor_note, None);
    assert_eq!(place.contradiction(), None);
    let file = &opened.anchors.files()[0];
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(file.path()).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    assert!(!file.path().starts_with(place.state().path()));
}

#[test]
fn a_restored_older_folder_is_refused_until_the_approver_decides() {
    let place = Place::new();
    let opened = place.open().unwrap();
    let store = Arc::clone(&opened.parts.store);
    done(store.as_ref(), Txn::Escalate(make::escalate(1, "s")));
    done(store.as_ref(), Txn::Decide(make::decide(1, true)));
    done(store.as_ref(), Txn::Issue(make::issue(2)));
    place.anchor(&opened);
    drop((store, opened));
    let copied = place.copy();
    // After the copy the approval and an authority are used up, as far as the record goes.
    place.session(4, true);
    place.restore(&copied);

    let found = place.contradiction().unwrap();
    assert!(matches!(place.finding(), Finding::RolledBack { .. }));
    let said = place.open().map(|_| ()).unwrap_err().to_string();
    for part in [
        "EF-080",
        "older state",
        "ledger anchor --accept",
        "passphrase",
        "store.db",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(found.needs_approver);
    let verdict = place.verdict(&found);
    let unsigned = Decision::Unsigned(verdict.reason.clone());
    let accept = |decision| place.state().accept_anchor(&place.options, &decision);
    assert!(matches!(accept(unsigned), Err(StateFault::NotAccepted)));
    let mut other = verdict.clone();
    other.reason = Reason::try_from("another reason").unwrap();
    assert!(matches!(
        accept(Decision::Signed(Box::new(other))),
        Err(StateFault::NotAccepted)
    ));
    place.finding();

    let aside = accept(Decision::Signed(Box::new(verdict.clone()))).unwrap();
    assert_eq!(fs::read(aside).unwrap(), found.anchor, "the evidence stays");
    let opened = place.open().unwrap();
    let store = opened.parts.store.as_ref();
    let told: Vec<_> = receipts(store)
        .into_iter()
        .filter(|receipt| receipt.kind == ReceiptKind::AnchorAccepted)
        .collect();
    assert_eq!(told.len(), 1);
    assert!(
        told[0]
            .detail
            .as_ref()
            .unwrap()
            .starts_with("rolled_back anchor:")
    );
    assert_eq!(told[0].approver_key.as_ref(), Some(&verdict.mark.key_id));
    assert_eq!(opened.parts.current.epochs.authority_epoch, 1);
    // What was used up after the copy does not come back.
    let ticket = store.ticket(make::ticket(1)).unwrap().unwrap();
    assert_eq!(ticket.state, TicketState::Expired);
    let stale = make::rejected(store, boxed(make::consume(2)));
    assert!(
        matches!(stale, Rejected::Expired | Rejected::EpochMismatch { .. }),
        "{stale:?}"
    );
    drop(opened);
    assert_eq!(place.contradiction(), None);
    assert!(matches!(
        accept(Decision::Signed(Box::new(verdict))),
        Err(StateFault::NothingToAccept)
    ));
}

#[test]
fn without_an_approver_the_owner_of_the_folder_decides() {
    let place = Place::of(World::with(None, |text| text));
    let copied = place.copy();
    place.session(4, true);
    place.restore(&copied);
    let said = place.open().map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("no approver"), "{said}");
    let reason = Reason::try_from("mine").unwrap();
    let accepted = place
        .state()
        .accept_anchor(&place.options, &Decision::Unsigned(reason));
    accepted.unwrap();
    let opened = place.open().unwrap();
    let told = receipts(opened.parts.store.as_ref());
    let told = told
        .iter()
        .filter(|one| one.kind == ReceiptKind::AnchorAccepted);
    assert_eq!(
        told.map(|one| one.approver_key.clone()).collect::<Vec<_>>(),
        [None]
    );
}

#[test]
fn a_truncated_record_sealed_anew_is_refused() {
    let place = Place::new();
    place.session(600, true);
    let sql = place.sql();
    sql.execute("DELETE FROM record WHERE idx >= 400", [])
        .unwrap();
    sql.execute("DELETE FROM nodes WHERE at > (1 << 56)", [])
        .unwrap();
    drop(sql);
    let damage = place.damage();
    assert!(
        damage.contains("EF-080") && damage.contains("400 lines"),
        "{damage}"
    );
    place.reseal(false);
    let rolled_back = Finding::RolledBack {
        size: 400,
        anchored: FIRST + 603,
    };
    assert_eq!(place.finding(), rolled_back);
}

#[test]
fn a_record_rewritten_and_sealed_anew_is_refused() {
    let place = Place::new();
    place.session(40, true);
    let rewrite = |index: i64| {
        let bytes = b"another line";
        place
            .sql()
            .execute(
                "UPDATE record SET bytes = ?2, leaf = ?3 WHERE idx = ?1",
                params![index, bytes, leaf_hash(bytes).0],
            )
            .unwrap();
    };
    rewrite(20);
    place.damage();
    place.reseal(false);
    // The anchor's head and the log's new one are of one size, both signed by the log.
    let size = FIRST + 43;
    match place.finding() {
        Finding::Forked {
            size: found,
            one,
            other,
        } => {
            assert_eq!(found, size);
            assert_ne!(one, other);
        }
        other => panic!("{other:?}"),
    }
    // One line more, so that there is no other head of the anchor's size.
    place
        .sql()
        .execute(
            "INSERT INTO record VALUES (?1, ?2, ?3)",
            params![size as i64, leaf_hash(b"x").0, b"x"],
        )
        .unwrap();
    place.reseal(false);
    let resealed = Finding::Resealed { from: 0, to: size };
    assert_eq!(place.finding(), resealed);
}

#[test]
fn an_edited_receipt_is_refused() {
    let place = Place::new();
    place.session(9, true);
    place
        .sql()
        .execute("UPDATE record SET bytes = x'00' WHERE idx = 7", [])
        .unwrap();
    assert_eq!(place.finding(), Finding::Edited { index: 7 });
}

#[test]
fn swapped_and_dropped_lines_are_refused() {
    let place = Place::new();
    place.session(9, true);
    let copied = place.copy();
    place
        .sql()
        .execute_batch(
            "UPDATE record SET idx = -1 WHERE idx = 7; UPDATE record SET idx = 7 WHERE idx = 8;
             UPDATE record SET idx = 8 WHERE idx = -1",
        )
        .unwrap();
    place.damage();
    place.restore(&copied);
    place
        .sql()
        .execute("DELETE FROM record WHERE idx = 7", [])
        .unwrap();
    place.damage();
}

#[test]
fn two_heads_of_one_size_are_refused() {
    let place = Place::new();
    let opened = place.open().unwrap();
    let anchored = opened.parts.store.record_len().unwrap();
    place.append(&opened, 2);
    drop(opened);
    // The log signs a second story of the size before the last, with its own key.
    let trust = TrustBundle::read(&place.state().trust()).unwrap();
    let ring = KeyRing::open(&place.state().keys(), &trust).unwrap();
    let log = place.state().read_log_name().unwrap();
    let signer = RingSigner::new(log, &ring, &trust).unwrap();
    let note = signer.sign_head(anchored + 1, [7; 32]).unwrap();
    place
        .sql()
        .execute(
            "INSERT INTO recent VALUES (1001, ?1, ?2)",
            params![anchored as i64 + 1, note],
        )
        .unwrap();
    assert!(matches!(place.finding(), Finding::Forked { size, .. } if size == anchored + 1));
}

#[test]
fn an_edited_tree_is_refused() {
    let place = Place::new();
    place.session(300, true);
    let copied = place.copy();
    for edit in [
        "UPDATE head SET frontier = zeroblob(length(frontier))",
        "UPDATE head SET frontier = CAST(substr(frontier, 1, length(frontier) - 32) || zeroblob(32) AS BLOB)",
        "UPDATE nodes SET hash = zeroblob(32)",
        "DELETE FROM nodes",
        "DELETE FROM recent WHERE size = (SELECT max(size) FROM recent)",
        "UPDATE recent SET note = x'00' WHERE size = (SELECT max(size) FROM recent)",
        "UPDATE record SET leaf = zeroblob(32) WHERE idx = 299",
    ] {
        place.sql().execute_batch(edit).unwrap();
        match place.open() {
            Err(StateFault::Damaged { .. } | StateFault::Store(_)) => {}
            Err(other) => panic!("{edit}: {other}"),
            Ok(_) => panic!("{edit}: it started"),
        }
        place.restore(&copied);
    }
    place.open().unwrap();
}

#[test]
fn a_log_that_lost_its_end_with_the_wal_is_refused() {
    let place = Place::new();
    let opened = place.open().unwrap();
    place.append(&opened, 50);
    place.anchor(&opened);
    // As a power cut that dropped what was acknowledged as synced.
    const ANCHORED: u64 = FIRST + 53;
    let copied = place.copy();
    drop(opened);
    place.restore(&copied);
    let wal = place.state().path().join("store.db-wal");
    let length = fs::metadata(&wal).unwrap().len();
    fs::OpenOptions::new()
        .write(true)
        .open(&wal)
        .unwrap()
        .set_len(length / 2)
        .unwrap();
    assert!(matches!(
        place.finding(),
        Finding::RolledBack {
            anchored: ANCHORED,
            ..
        }
    ));
}

#[test]
fn a_store_that_is_gone_is_said_so() {
    let place = Place::new();
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(place.state().path().join(file));
    }
    let fault = place.open().map(|_| ()).unwrap_err().to_string();
    assert!(
        fault.contains("EF-080") && fault.contains("store.db"),
        "{fault}"
    );
}

#[test]
fn an_anchor_that_is_gone_or_not_its_own_is_not_silent() {
    let place = Place::new();
    let anchor = place.open().unwrap().anchors.files()[0].path().to_owned();
    let kept = fs::read(&anchor).unwrap();
    fs::remove_file(&anchor).unwrap();
    let note = place.open().unwrap().anchor_note;
    assert_eq!(note, Some(AnchorNote::Missing));
    fs::write(&anchor, b"").unwrap();
    let note = place.open().unwrap().anchor_note;
    assert_eq!(note, Some(AnchorNote::Missing), "cut off by a crash");
    fs::remove_file(&anchor).unwrap();
    fs::create_dir(&anchor).unwrap();
    let note = place.open().unwrap().anchor_note;
    assert_eq!(note, Some(AnchorNote::Unreadable));
    fs::remove_dir(&anchor).unwrap();
    fs::write(&anchor, b"no checkpoint").unwrap();
    assert!(matches!(place.difference(), Difference::Unreadable(_)));
    let other = Place::new();
    let theirs = other.open().unwrap().anchors.files()[0].path().to_owned();
    fs::copy(theirs, &anchor).unwrap();
    assert!(matches!(place.difference(), Difference::OtherLog(_)));
    let name = place.state().read_log_name().unwrap();
    let text = String::from_utf8(fs::read(&anchor).unwrap()).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    fs::write(&anchor, format!("{name}\n{rest}")).unwrap();
    assert_eq!(place.difference(), Difference::UnknownKey);
    fs::write(&anchor, kept).unwrap();
    place.open().unwrap();
}

#[test]
fn a_second_anchor_is_kept_and_compared_too() {
    let elsewhere = tempfile::tempdir().unwrap();
    let second = elsewhere.path().join("deep/second");
    let table = format!("[ledger]\nanchor_file = \"{}\"\n", second.display());
    let place = Place::of(World::with(Some(PASSPHRASE), |text| {
        format!("{text}\n{table}")
    }));
    let copied = place.copy();
    place.session(4, true);
    place.restore(&copied);
    // Whoever restored the folder restored its neighbour too.
    fs::remove_dir_all(place.options.anchors.as_ref().unwrap()).unwrap();
    assert!(matches!(place.finding(), Finding::RolledBack { .. }));
    let found = place.contradiction().unwrap();
    assert_eq!(found.place.file(), Some(second.as_path()));
    let verdict = Decision::Signed(Box::new(place.verdict(&found)));
    place
        .state()
        .accept_anchor(&place.options, &verdict)
        .unwrap();
    place.session(1, true);
    place.open().unwrap();
}

/// A witness that shows one head to everybody; `None`: it takes the connection and says nothing.
fn witness(listener: std::net::TcpListener, head: Option<Vec<u8>>) {
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(head) = &head else {
                silent.push(stream);
                continue;
            };
            let mut asked = [0; 4096];
            let read = stream.read(&mut asked).unwrap();
            assert!(read == 0 || asked[..read].starts_with(b"GET /checkpoint/"));
            let length = head.len();
            let start = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            // Some have gone: they asked before there was anybody to answer.
            let _ = stream.write_all(start.as_bytes());
            let _ = stream.write_all(head);
        }
    });
}

/// A place whose configuration names a witness, and its listener.
fn witnessed(approver: Option<&[u8]>) -> (Place, std::net::TcpListener) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let table =
        format!("[ledger.witness.near]\nurl = \"http://{to}\"\nkey = \"wit+00000000+BAAA\"\n");
    let world = World::with(approver, |text| format!("{text}\n{table}"));
    (Place::of(world), listener)
}

/// Folder, anchor and all else on this disk as they were, and the head that was signed since.
fn restored_whole(place: &Place) -> Vec<u8> {
    let anchors = place.options.anchors.clone().unwrap();
    let kept = place.world.root().join("kept-anchors");
    let copied = place.copy();
    copy(&anchors, &kept);
    place.session(4, true);
    let newest = place.open().unwrap().parts.store.newest_head().unwrap();
    place.restore(&copied);
    fs::remove_dir_all(&anchors).unwrap();
    copy(&kept, &anchors);
    newest.unwrap().note
}

#[test]
fn a_folder_restored_with_its_anchor_is_told_by_the_witness() {
    for approver in [Some(PASSPHRASE), None] {
        let (place, listener) = witnessed(approver);
        let head = restored_whole(&place);
        witness(listener, Some(head.clone()));
        assert!(matches!(place.finding(), Finding::RolledBack { .. }));
        let said = place.open().map(drop).unwrap_err().to_string();
        assert!(
            said.contains("EF-080") && said.contains("witness `near`"),
            "{said}"
        );

        let found = place.contradiction().unwrap();
        assert_eq!(found.place, Keeper::Witness("near".to_owned()));
        assert_eq!(
            (&found.anchor, found.needs_approver),
            (&head, approver.is_some())
        );
        let reason = Reason::try_from("restored from Monday's backup").unwrap();
        let accept = |decision| place.state().accept_anchor(&place.options, &decision);
        if approver.is_some() {
            let unsigned = accept(Decision::Unsigned(reason));
            assert!(matches!(unsigned, Err(StateFault::NotAccepted)));
            let mut other = found.clone();
            other.head.note.push(b'x');
            let other = Decision::Signed(Box::new(place.verdict(&other)));
            assert!(matches!(accept(other), Err(StateFault::NotAccepted)));
            place.finding();
            accept(Decision::Signed(Box::new(place.verdict(&found)))).unwrap();
        } else {
            accept(Decision::Unsigned(reason)).unwrap();
        }
        let told = receipts(place.open().unwrap().parts.store.as_ref());
        let told = told
            .iter()
            .filter(|one| one.kind == ReceiptKind::AnchorAccepted);
        let told: Vec<_> = told.filter_map(|one| one.detail.as_deref()).collect();
        assert!(
            told.len() == 1 && told[0].starts_with("rolled_back witness:"),
            "{told:?}"
        );
        // The witness says the same for ever, and nobody is asked again.
        place.session(9, true);
        place.open().unwrap();
        assert_eq!(place.contradiction(), None);
    }
}

#[test]
fn a_decision_is_of_use_for_its_own_record_and_with_its_signature_alone() {
    let (place, listener) = witnessed(Some(PASSPHRASE));
    let older = place.world.root().join("older");
    copy(place.state().path(), &older);
    place.session(2, true);
    let head = restored_whole(&place);
    witness(listener, Some(head));
    let found = place.contradiction().unwrap();
    let verdict = Decision::Signed(Box::new(place.verdict(&found)));
    let kept = place
        .state()
        .accept_anchor(&place.options, &verdict)
        .unwrap();
    let decided = fs::read(&kept).unwrap();
    place.open().unwrap();
    // In a folder from before the decided record it covers nothing.
    fs::remove_dir_all(place.options.anchors.as_ref().unwrap()).unwrap();
    let accepted = place.copy_to("accepted");
    place.restore(&older);
    fs::write(&kept, &decided).unwrap();
    place.finding();
    // Nor without the approver's signature.
    place.restore(&accepted);
    place.open().unwrap();
    let text = String::from_utf8(decided).unwrap();
    let at = text.find(r#""signature":""#).unwrap() + 13;
    let other = if &text[at..=at] == "A" { "B" } else { "A" };
    fs::write(&kept, format!("{}{other}{}", &text[..at], &text[at + 1..])).unwrap();
    place.finding();
    fs::write(&kept, "[]").unwrap();
    place.finding();
}

#[test]
fn a_cosigned_head_beside_the_anchor_is_compared_and_put_away() {
    let place = Place::new();
    let head = restored_whole(&place);
    let anchors = place.open().unwrap().anchors;
    let cosigned = anchors.files()[0].path().with_extension("cosigned-near");
    fs::write(&cosigned, &head).unwrap();
    assert!(matches!(place.finding(), Finding::RolledBack { .. }));
    let found = place.contradiction().unwrap();
    assert_eq!(found.place, Keeper::Cosigned(cosigned.clone()));
    let verdict = Decision::Signed(Box::new(place.verdict(&found)));
    let aside = place
        .state()
        .accept_anchor(&place.options, &verdict)
        .unwrap();
    assert_eq!(fs::read(aside).unwrap(), head);
    assert!(!cosigned.exists());
    assert_eq!(place.open().unwrap().anchor_note, None);
}

#[test]
fn what_no_key_of_the_log_signed_is_a_line_and_no_refusal() {
    let theirs = Place::new();
    let theirs = theirs
        .open()
        .unwrap()
        .parts
        .store
        .newest_head()
        .unwrap()
        .unwrap();
    let (place, listener) = witnessed(Some(PASSPHRASE));
    let name = place.state().read_log_name().unwrap();
    let text = String::from_utf8(theirs.note).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    witness(listener, Some(format!("{name}\n{rest}").into_bytes()));
    let opened = place.open().unwrap();
    assert_eq!(opened.anchor_note, Some(AnchorNote::Unproven));
    assert_eq!(place.contradiction(), None);
    // One that takes the connection and keeps still holds up a start for a second, and no longer.
    let (place, listener) = witnessed(Some(PASSPHRASE));
    witness(listener, None);
    assert_eq!(place.open().unwrap().anchor_note, None);
    // And one that is not there at all for nothing.
    let (place, listener) = witnessed(Some(PASSPHRASE));
    drop(listener);
    assert_eq!(place.open().unwrap().anchor_note, None);
}

#[test]
fn no_sink_may_touch_an_anchor() {
    let place = Place::new();
    let opened = place.open().unwrap();
    let anchor = opened.anchors.files()[0].path();
    assert!(opened.parts.paths.forbidden(anchor));
    assert!(opened.parts.paths.holds_private(anchor.parent().unwrap()));
}

/// The applied configuration put in another's place in the store, its digest and all: the record says which was applied.
#[test]
fn another_configuration_in_the_store_is_not_the_one_applied() {
    let place = Place::new();
    let applied = place
        .open()
        .unwrap()
        .parts
        .store
        .applied()
        .unwrap()
        .unwrap();
    let exchange = |snapshot: &[u8]| {
        let digest = lychgate_core::Digest::sha256(snapshot);
        let sql = place.sql();
        sql.execute(
            "UPDATE applied SET snapshot = ?1, digest = ?2",
            params![snapshot, digest.bytes()],
        )
        .unwrap();
        sql.execute("UPDATE head SET policy_digest = ?1", [digest.bytes()])
            .unwrap();
    };
    let text = String::from_utf8(applied.snapshot.clone()).unwrap();
    let other = text.replace("test-agent", "free-agent");
    assert_ne!(other, text);
    exchange(other.as_bytes());
    let refused = place.open().err().unwrap().to_string();
    assert!(
        refused.contains("another one was applied last"),
        "{refused}"
    );
    exchange(&applied.snapshot);
    place.open().unwrap();
}
