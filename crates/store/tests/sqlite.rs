//! The suite on SQLite, and what only a file can get wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt;

use lychgate_core::State;
use lychgate_store::testing::make::*;
use lychgate_store::testing::{Fault, FaultyStore, Place};
use lychgate_store::txn::Note;
use lychgate_store::{Committed, Options, SqliteStore, Store, StoreFault, Txn};
use rusqlite::Connection;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn options(&self) -> Options {
        Options::new(self.0.path().join("store.db"))
    }

    fn sqlite(&self) -> SqliteStore {
        SqliteStore::open(&self.options(), signer()).unwrap()
    }

    fn foreign(&self) -> Connection {
        Connection::open(self.options().path).unwrap()
    }
}

impl Place for Folder {
    fn open(&self) -> Box<dyn Store> {
        Box::new(self.sqlite())
    }
}

lychgate_store::conformance!(Box::new(Folder::new()));

fn note(text: &str) -> Txn {
    Txn::Note(Note {
        now: at(1),
        receipts: vec![entry(text)],
    })
}

#[test]
fn the_files_are_their_owners_alone() {
    let folder = Folder::new();
    let store = folder.sqlite();
    done(&store, note("x"));
    let mode = |name: &str| {
        std::fs::metadata(folder.0.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    drop(store);
    let path = folder.options().path;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(folder.sqlite());
    assert_eq!(mode("store.db"), 0o600);
}

#[test]
fn another_version_and_another_program_are_refused() {
    let folder = Folder::new();
    drop(folder.sqlite());
    folder
        .foreign()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let refused = SqliteStore::open(&folder.options(), signer()).unwrap_err();
    assert_eq!(
        refused,
        StoreFault::Version {
            found: 99,
            known: 5
        }
    );
    assert_eq!(
        refused.to_string(),
        "the store has schema version 99, this program knows 4"
    );

    let folder = Folder::new();
    folder
        .foreign()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    let refused = SqliteStore::open(&folder.options(), signer()).unwrap_err();
    assert!(
        refused.to_string().contains("another program's"),
        "{refused}"
    );

    let folder = Folder::new();
    std::fs::write(
        folder.options().path,
        b"not a database at all, but some text",
    )
    .unwrap();
    assert!(matches!(
        SqliteStore::open(&folder.options(), signer()),
        Err(StoreFault::Open { .. })
    ));
    std::fs::remove_file(folder.options().path).unwrap();
    std::os::unix::fs::symlink("elsewhere", folder.options().path).unwrap();
    assert!(matches!(
        SqliteStore::open(&folder.options(), signer()),
        Err(StoreFault::Open { .. })
    ));
}

#[test]
fn a_full_queue_answers_busy_and_commits_the_rest() {
    let folder = Folder::new();
    let options = Options {
        queue: 4,
        ..folder.options()
    };
    let store = SqliteStore::open(&options, signer()).unwrap();
    let stall = folder.foreign();
    stall.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The writer takes at most one group of four, four more wait.
    let pending: Vec<_> = (0..20)
        .map(|n| store.commit(note(&format!("{n}"))))
        .collect();
    stall.execute_batch("ROLLBACK").unwrap();
    let results: Vec<_> = pending.into_iter().map(|pending| pending.wait()).collect();
    let busy = results
        .iter()
        .filter(|result| **result == Err(StoreFault::Busy))
        .count();
    let done = results
        .iter()
        .filter(|result| matches!(result, Ok(Committed::Done(_))))
        .count();
    assert!(busy >= 12 && busy + done == 20, "{busy} busy, {done} done");
    assert_eq!(store.record_len().unwrap(), done as u64);
    let load = store.load();
    let counted = (load.transactions, load.busy, load.queued, load.capacity);
    assert_eq!(counted, (done as u64, busy as u64, 0, 4));
    assert!(load.groups.iter().sum::<u64>() >= 1);
}

#[test]
fn a_fault_in_one_transaction_fails_it_alone() {
    let folder = Folder::new();
    let store = folder.sqlite();
    let foreign = folder.foreign();
    foreign
        .execute_batch(
            "CREATE TRIGGER poison BEFORE INSERT ON record WHEN NEW.bytes = CAST('poison' AS BLOB)
             BEGIN SELECT RAISE(ABORT, 'poisoned'); END;
             BEGIN IMMEDIATE",
        )
        .unwrap();
    let texts = ["first", "a", "poison", "b", "c"];
    let pending: Vec<_> = texts.iter().map(|text| store.commit(note(text))).collect();
    foreign.execute_batch("ROLLBACK").unwrap();
    for (text, pending) in texts.iter().zip(pending) {
        match pending.wait() {
            Ok(Committed::Done(_)) => assert_ne!(*text, "poison"),
            Err(StoreFault::Unavailable(_)) => assert_eq!(*text, "poison"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let lines: Vec<_> = store
        .record(0, 9)
        .unwrap()
        .into_iter()
        .map(|row| row.bytes)
        .collect();
    assert_eq!(
        lines,
        ["first", "a", "b", "c"].map(|text| Some(text.as_bytes().to_vec()))
    );
}

#[test]
fn what_nobody_here_wrote_is_corruption() {
    let folder = Folder::new();
    let store = folder.sqlite();
    ready(&store);
    done(&store, boxed(dispatch(1)));
    folder
        .foreign()
        .execute_batch("UPDATE acts SET state = 77")
        .unwrap();
    assert!(matches!(store.act(act(1)), Err(StoreFault::Corrupt(_))));
    let fault = faulted(&store, Txn::Settle(settle(1, State::Effected)));
    assert!(matches!(fault, StoreFault::Corrupt(_)), "{fault}");
}

#[test]
fn open_acts_and_live_tickets_are_found_by_index() {
    let folder = Folder::new();
    drop(folder.sqlite());
    let foreign = folder.foreign();
    let plan = |sql: &str| -> String {
        let mut explain = foreign
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let rows = explain
            .query_map([], |row| row.get::<_, String>(3))
            .unwrap();
        rows.map(|row| row.unwrap()).collect::<Vec<_>>().join("; ")
    };
    for sql in [
        "SELECT * FROM acts WHERE open = 1 ORDER BY id",
        "SELECT * FROM acts WHERE open = 2 AND state = 0 AND id < x'ff' ORDER BY id DESC LIMIT 9",
        "SELECT id FROM acts WHERE open = 2 AND state = 2 AND ticket = x'00'",
    ] {
        let plan = plan(sql);
        assert!(
            plan.contains("acts_open") && !plan.contains("TEMP"),
            "{sql}: {plan}"
        );
    }
    let plan =
        plan("SELECT * FROM tickets WHERE live = 1 AND subject = x'00' ORDER BY id DESC LIMIT 1");
    assert!(
        plan.contains("tickets_live") && !plan.contains("TEMP"),
        "{plan}"
    );
}

#[test]
fn the_faulty_store_fails_as_told() {
    let folder = Folder::new();
    let store = FaultyStore::new(folder.sqlite());
    ready(&store);
    store.fail(Some(Fault::Unavailable));
    assert!(matches!(
        faulted(&store, note("x")),
        StoreFault::Unavailable(_)
    ));
    assert!(store.protected_state().is_err());
    store.fail(Some(Fault::Hang));
    let hanging = store.commit(note("x"));
    store.fail_after(1, Some(Fault::CommitThenUnrecorded));
    assert!(matches!(hanging.wait(), Err(StoreFault::Unavailable(_))));
    done(&store, note("y"));
    assert_eq!(faulted(&store, note("z")), StoreFault::Unrecorded);
    assert_eq!(faulted(&store, note("x")), StoreFault::Closed);
    assert_eq!(store.record_len(), Err(StoreFault::Closed));
    drop(store);
    assert_eq!(
        folder.sqlite().record_len().unwrap(),
        3,
        "it was committed after all"
    );
}
