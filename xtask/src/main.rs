//! Checks on the workspace itself, and the one test command.
//!
//! `cargo xtask test` is everything: format, lints, layers, unit and integration tests, doc tests,
//! and the end-to-end tests with real MCP clients and servers, which it installs first.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people at a terminal: its output is its purpose"
)]

mod faults;
mod layers;
mod peers;
mod steps;
mod supply;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use steps::{Failure, Steps, cargo, has_subcommand};

const USAGE: &str = "usage: cargo xtask COMMAND

  test            everything, in the order below (what CI runs)
  layers          direction of imports; who may start a process
  supply          licences, bans and sources of all dependencies, as deny.toml says
  peers           installs the pinned MCP clients and servers into target/peers
  e2e [ARG…]      the end-to-end tests; arguments go to pytest
  faults [ARG…]   kills, failing storage and power cuts; --full --table for all of them and the
                  counts in docs/RELIABILITY.md
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let root = workspace_root();
    let done = match (command.as_str(), rest.is_empty()) {
        ("test", true) => test(&root),
        ("layers", true) => layers::check(&root),
        ("supply", true) => supply::check(&root),
        ("peers", true) => peers::install(&root).map(|_| ()),
        ("faults", _) => build_binary(&root).and_then(|()| faults::check(&root, &rest)),
        ("e2e", _) => build_binary(&root).and_then(|()| e2e(&root, &rest)),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The folder that holds the workspace's `Cargo.toml`.
fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// The whole check. Stops at the first step that fails and prints what each took.
fn test(root: &Path) -> Result<(), Failure> {
    let mut steps = Steps::new();
    steps.run("format", || cargo(root, &["fmt", "--all", "--check"]))?;
    steps.run("clippy", || {
        cargo(
            root,
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
        )
    })?;
    steps.run("layers", || layers::check(root))?;
    steps.run("supply", || supply::check(root))?;
    if has_subcommand(root, "deny") {
        steps.run("deny", || cargo(root, &["deny", "check"]))?;
    } else {
        steps.skipped(
            "deny",
            "cargo-deny is not installed; advisories were not looked at",
        );
    }
    steps.run("build", || {
        cargo(root, &["build", "--workspace", "--all-targets"])
    })?;
    if has_subcommand(root, "nextest") {
        steps.run("tests", || cargo(root, &["nextest", "run", "--workspace"]))?;
    } else {
        println!("xtask: cargo-nextest is not installed: running the same tests by `cargo test`");
        steps.run("tests", || {
            cargo(root, &["test", "--workspace", "--all-targets"])
        })?;
    }
    steps.run("doc tests", || {
        cargo(root, &["test", "--doc", "--workspace"])
    })?;
    steps.run("docs", || docs(root))?;
    steps.run("peers", || peers::install(root).map(|_| ()))?;
    steps.run("end to end", || e2e(root, &[]))?;
    steps.run("faults", || faults::check(root, &[]))?;
    steps.summary();
    Ok(())
}

/// Every link in the documentation leads somewhere.
fn docs(root: &Path) -> Result<(), Failure> {
    let mut command = steps::command(env!("CARGO"));
    command
        .current_dir(root)
        .args(["doc", "--no-deps", "--workspace", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings");
    steps::run(&mut command)
}

fn build_binary(root: &Path) -> Result<(), Failure> {
    cargo(root, &["build", "--package", "lychgate"])
}

/// Runs the Python tests against the binary that was just built.
fn e2e(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    let peers = peers::install(root)?;
    let folder = root.join("tests/e2e");
    let mut command = steps::command(&peers.python);
    command
        .current_dir(&folder)
        .args([
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--strict-markers",
            "--durations=5",
        ])
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("LYCHGATE_BIN", binary_under_test(root)?)
        .env("LYCHGATE_NODE", &peers.node)
        .env("LYCHGATE_NODE_MODULES", &peers.node_modules);
    steps::run(&mut command)
}

/// A copy of the binary for the tests alone. It is the entry file of the servers that they add, and those are pinned: a
/// build that goes on beside the tests would make every one of them another server.
fn binary_under_test(root: &Path) -> Result<PathBuf, Failure> {
    let target = steps::target_dir(root)?;
    let folder = target.join("e2e");
    std::fs::create_dir_all(&folder)?;
    let (fresh, copy) = (folder.join("lychgate.new"), folder.join("lychgate"));
    std::fs::copy(target.join("debug/lychgate"), &fresh)?;
    std::fs::rename(&fresh, &copy)?;
    Ok(copy)
}
