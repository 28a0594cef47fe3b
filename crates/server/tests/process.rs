//! The gate as a process: one per folder, however many start it; what a stop and a crash leave behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use lychgate_core::State;
use lychgate_server::{
    ClientFault, OpenOptions, Request, Response, Start, StateFault, StateFolder, connect,
};
use support::{Mcp, World, eventually};

#[test]
#[ignore = "not a test: the gate that the tests start"]
fn child_gate() {
    support::be_a_gate();
}

#[test]
fn eight_clients_that_start_a_gate_at_once_end_with_one() {
    let world = World::new();
    let gates: BTreeSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| world.status().gate_id))
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(gates.len(), 1);
    assert_eq!(world.status().gate_id, *gates.first().unwrap());
    world.stop();
}

#[test]
fn a_second_gate_is_refused_and_told_who_has_the_folder() {
    let world = World::new();
    let pid = world.status().pid;
    match world.state.open(&OpenOptions::default()) {
        Err(StateFault::Locked { pid: Some(other) }) => assert_eq!(other, pid),
        other => panic!("{other:?}"),
    }
    world.stop();
    world.state.open(&OpenOptions::default()).unwrap();
}

#[test]
fn a_gate_that_is_on_its_way_out_is_followed_by_another() {
    let world = World::new();
    let lock = world.state.lock().unwrap();
    let gate = std::thread::scope(|scope| {
        let client = scope.spawn(|| world.status().gate_id);
        std::thread::sleep(Duration::from_millis(900));
        drop(lock);
        client.join().unwrap()
    });
    assert_eq!(gate, world.status().gate_id);
    world.stop();
}

#[test]
fn a_stale_socket_is_replaced_and_a_fresh_one_is_closed_to_others() {
    let world = World::new();
    drop(UnixListener::bind(world.state.socket()).unwrap());
    assert!(matches!(
        world.running(),
        Err(ClientFault::NotRunning { .. })
    ));
    world.status();
    let mode = fs::metadata(world.state.socket())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    world.stop();
}

#[test]
fn a_gate_that_cannot_start_says_why_and_is_not_waited_for() {
    let world = World::new();
    fs::write(world.state.trust(), b"{}").unwrap();
    let began = Instant::now();
    match connect(world.state.path(), &world.start()) {
        Err(ClientFault::Start { reason, status }) => {
            assert!(reason.contains("member"), "{reason}");
            assert_ne!(status, 0);
        }
        other => panic!("{other:?}"),
    }
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_folder_open_to_others_is_refused_by_client_and_gate_alike() {
    let world = World::new();
    let path = world.state.path();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    for fault in [
        connect(path, &Start::Never).err().map(|f| f.to_string()),
        world.state.lock().err().map(|f| f.to_string()),
    ] {
        assert!(fault.unwrap().contains("chmod 700"));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    let link = world.root().join("link");
    std::os::unix::fs::symlink(path, &link).unwrap();
    let linked = StateFolder::at(&link).unwrap().lock();
    assert!(matches!(linked, Err(StateFault::SymbolicLink(_))));
    fs::set_permissions(world.state.seal_key(), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(
        world.state.lock(),
        Err(StateFault::Mode { wanted: 0o600, .. })
    ));
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(world.state.seal_key(), fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(path, Some(1), None).unwrap();
        assert!(matches!(
            connect(path, &Start::Never),
            Err(ClientFault::State(StateFault::Owner { .. }))
        ));
        std::os::unix::fs::chown(path, Some(0), None).unwrap();
        drop(UnixListener::bind(world.state.socket()).unwrap());
        std::os::unix::fs::chown(world.state.socket(), Some(1), None).unwrap();
        assert!(matches!(
            connect(path, &Start::Never),
            Err(ClientFault::Impostor { .. })
        ));
    }
}

#[test]
fn a_stop_withdraws_what_is_held_and_leaves_a_whole_record() {
    let world = World::new();
    let mut mcp = Mcp::ready(&world);
    mcp.call(2, "write", &world.root().join("plain/f"), "x");
    eventually("the call is held", || world.status().pending == 1);
    let began = Instant::now();
    world.stop();
    assert!(began.elapsed() < Duration::from_secs(8));
    drop(mcp.input.take());
    let _ = mcp.relay.join().unwrap();
    let acts = world.acts();
    assert_eq!(acts.len(), 1);
    assert_eq!(acts[0].state, State::Withdrawn);
    world.stop();
}

#[test]
fn after_a_kill_what_was_dispatched_is_in_doubt_and_what_was_held_is_withdrawn() {
    let world = World::new();
    let mut mcp = Mcp::ready(&world);
    mcp.call(2, "hang", &world.root().join("work/f"), "x");
    mcp.call(3, "write", &world.root().join("plain/f"), "x");
    eventually("one is dispatched, one is held", || {
        let states: Vec<_> = world.acts().iter().map(|act| act.state).collect();
        states.contains(&State::Dispatched) && states.contains(&State::Escalated)
    });
    let first = world.status();
    world.kill();
    assert!(matches!(
        mcp.relay.join().unwrap(),
        Err(lychgate_server::RelayFault::GateGone)
    ));
    let second = world.status();
    assert_ne!(first.gate_id, second.gate_id);
    let states: BTreeSet<_> = world.acts().iter().map(|act| act.state).collect();
    assert_eq!(
        states,
        BTreeSet::from([State::Indeterminate, State::Withdrawn])
    );
    world.stop();
}

#[test]
fn no_file_of_the_gate_holds_the_text_of_an_argument() {
    let world = World::new();
    let mut mcp = Mcp::ready(&world);
    mcp.call(
        2,
        "write",
        &world.root().join("work/SENTINEL-6"),
        "SENTINEL-1",
    );
    assert!(mcp.hear().contains("done"));
    mcp.call(
        3,
        "write",
        &world.root().join("plain/SENTINEL-7"),
        "SENTINEL-2",
    );
    mcp.call(
        4,
        "SENTINEL-3",
        &world.root().join("work/SENTINEL-8"),
        "SENTINEL-4",
    );
    mcp.say("{\"SENTINEL-5\": nonsense");
    eventually("one is held", || world.status().pending == 1);
    drop(mcp.input.take());
    mcp.relay.join().unwrap().unwrap();
    world.stop();
    for entry in fs::read_dir(world.state.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let found = bytes.windows(8).any(|window| window == b"SENTINEL");
            assert!(!found, "{}", path.display());
        }
    }
    assert!(fs::metadata(world.state.log()).unwrap().len() > 0);
}

/// What the process's environment holds, and where it works.
fn surroundings(pid: u32) -> (BTreeSet<String>, std::path::PathBuf) {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let names = bytes
        .split(|byte| *byte == 0)
        .filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect();
    (names, fs::read_link(format!("/proc/{pid}/cwd")).unwrap())
}

#[test]
fn a_gate_in_the_background_inherits_no_more_than_it_needs() {
    // Cargo and nextest give every test these two.
    let (kept, left) = ("CARGO_MANIFEST_DIR", "CARGO_PKG_NAME");
    for name in [kept, left] {
        assert!(std::env::var_os(name).is_some(), "{name}");
    }
    let pass =
        format!("roots = [\"work\", \"plain\"]\npass_env = [\"{kept}\", \"LYCHGATE_ABSENT\"]\n");
    let world = World::with(Some(support::PASSPHRASE), |text| {
        text.replace("roots = [\"work\", \"plain\"]\n", &pass)
    });
    let (names, folder) = surroundings(world.status().pid);
    assert!(names.contains(kept) && names.contains("PATH"), "{names:?}");
    let expected = |name: &String| {
        ["LC_", "XDG_", "LYCHGATE_"]
            .iter()
            .any(|start| name.starts_with(start))
            || [
                kept, "HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER",
            ]
            .contains(&name.as_str())
    };
    assert!(names.iter().all(expected), "{names:?}");
    assert_eq!(folder, std::path::Path::new("/"));
    let again = world.client().ask(&Request::Apply {
        configuration: world.configuration(&world.text.replace("\"balanced\"", "\"strict\"")),
        yes: None,
    });
    match again.unwrap() {
        Response::Applied { unset, .. } => assert_eq!(unset, ["LYCHGATE_ABSENT"]),
        other => panic!("{other:?}"),
    }
    world.stop();
}

#[test]
fn without_an_approver_an_act_in_doubt_is_reconciled_without_a_key() {
    for approver in [None, Some(support::PASSPHRASE)] {
        let world = World::with(approver, |text| text);
        let mut mcp = Mcp::ready(&world);
        mcp.call(2, "hang", &world.root().join("work/f"), "x");
        eventually("it is dispatched", || {
            let acts = world.acts();
            acts.iter().any(|act| act.state == State::Dispatched)
        });
        world.kill();
        let answer = world.client().ask(&Request::ReconcileUnsigned {
            id: world.acts()[0].id,
            effect: true,
            reason: "the file is there".try_into().unwrap(),
        });
        match (approver, answer) {
            (None, Ok(Response::Reconciled { state })) => {
                assert_eq!(state, State::ReconciledEffect);
            }
            (Some(_), Err(ClientFault::Refused(_))) => {}
            (_, other) => panic!("{other:?}"),
        }
        world.stop();
    }
}

#[test]
fn an_answer_counts_as_delivered_when_it_was_read() {
    let world = World::new();
    let mut mcp = Mcp::ready(&world);
    mcp.call(2, "write", &world.root().join("work/f"), "x");
    eventually("it has its effect", || {
        world.acts().iter().any(|act| act.state == State::Effected)
    });
    std::thread::sleep(Duration::from_millis(600));
    assert!(world.acts()[0].undelivered, "nobody has read it yet");
    assert!(mcp.hear().contains("done"));
    eventually("it is delivered", || !world.acts()[0].undelivered);
    drop(mcp.input.take());
    mcp.relay.join().unwrap().unwrap();
    world.stop();
}

#[test]
fn an_unknown_server_is_refused_with_the_way_out() {
    let world = World::new();
    let mut client = world.client();
    let asked = client.ask(&Request::Mcp {
        server: "other".to_owned(),
        delegation: None,
        purpose: None,
    });
    match asked {
        Err(fault @ ClientFault::Refused(_)) => {
            assert_eq!(fault.status(), 2);
            assert!(fault.to_string().contains("lychgate add"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        world.client().ask(&Request::Status),
        Ok(Response::Status { .. })
    ));
    world.stop();
}
