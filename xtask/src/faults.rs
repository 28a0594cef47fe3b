//! The fault tests: `tests/faults` against the real gate, by strace.

use std::path::Path;

use crate::peers::{self, Tool};
use crate::steps::{Failure, command, run};

const STRACE: &[Tool] = &[Tool {
    name: "strace",
    proof: &["strace", "--version"],
    packages: &["strace"],
}];

/// Runs them against the binary; without `--full` a sample that takes a minute. Where strace is missing and cannot be
/// installed, or may not trace, this fails: nothing is left out silently.
pub(crate) fn check(root: &Path, arguments: &[String]) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Err(Failure::new("the fault tests need Linux: they use strace"));
    }
    peers::ensure_tools(STRACE, "the fault tests")?;
    let peers = peers::install(root)?;
    let mut tests = command(&peers.python);
    tests
        .current_dir(root.join("tests"))
        .args(["-m", "faults"])
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("LYCHGATE_BIN", crate::binary_under_test(root)?)
        .env("LYCHGATE_NODE", &peers.node)
        .env("LYCHGATE_NODE_MODULES", &peers.node_modules);
    run(&mut tests)
}
