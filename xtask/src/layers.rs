//! The direction of imports (HOUSE.md), and that only a sink can cause an effect.
//!
//! Two checks. The manifest check compares every dependency between our crates with a table and
//! keeps I/O libraries out of the pure crates. The source check looks for the words that start a
//! process or open a connection; clippy's `disallowed-methods` bans the same calls by path, this
//! one also catches imports and types.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::DependencyKind;

use crate::steps::{Failure, metadata};

/// What one crate of ours may import, besides what every crate may.
struct Layer {
    /// The package's name.
    name: &'static str,
    /// Our own crates it may depend on, in any kind of dependency.
    may_use: &'static [&'static str],
    /// No I/O at all: none of `IO_LIBRARIES` and none of the words of `PROCESSES`, `CONNECTIONS` or `FILES`.
    pure: bool,
    /// The files that may start processes, below the crate's `src`; a name that ends in `/` is a whole folder.
    processes: &'static [&'static str],
    /// The files that may open connections, named in the same way.
    connections: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer {
        name: "lychgate-core",
        may_use: &[],
        pure: true,
        processes: &[],
        connections: &[],
    },
    Layer {
        name: "lychgate-keys",
        may_use: &["core"],
        pure: false,
        processes: &[],
        connections: &[],
    },
    Layer {
        name: "lychgate-intake",
        may_use: &["core"],
        pure: true,
        processes: &[],
        connections: &[],
    },
    Layer {
        name: "lychgate-provenance",
        may_use: &["core"],
        pure: true,
        processes: &[],
        connections: &[],
    },
    Layer {
        name: "lychgate-policy",
        may_use: &["core"],
        pure: true,
        processes: &[],
        connections: &[],
    },
    Layer {
        name: "lychgate-ledger",
        may_use: &["core", "keys"],
        pure: true,
        processes: &[],
        connections: &[],
    },
    Layer {
        name: "lychgate-store",
        may_use: &["core", "keys", "ledger"],
        pure: false,
        processes: &[],
        connections: &[],
    },
    Layer {
        name: "lychgate-gate",
        may_use: &[
            "core",
            "keys",
            "intake",
            "provenance",
            "policy",
            "ledger",
            "store",
        ],
        pure: false,
        processes: &[],
        connections: &[],
    },
    Layer {
        name: "lychgate-sinks",
        may_use: &["core", "intake", "policy", "gate"],
        pure: false,
        processes: &["mcp/"],
        connections: &["mcp/"],
    },
    Layer {
        name: "lychgate-server",
        may_use: &[
            "core", "keys", "intake", "policy", "ledger", "store", "gate", "sinks",
        ],
        pure: false,
        processes: &["client.rs"],
        connections: &[
            "client.rs",
            "control.rs",
            "control/delegate.rs",
            "link.rs",
            "listen.rs",
            "outward.rs",
            "relay.rs",
            "run.rs",
            "witness.rs",
            "witness/",
            "telemetry/endpoint.rs",
        ],
    },
    Layer {
        name: "lychgate",
        may_use: &[
            "core", "keys", "intake", "provenance", "policy", "ledger", "store", "gate", "sinks", "server",
        ],
        pure: false,
        // The tour's victim and the benchmark's peer: they show the gate, and are no way round it.
        processes: &["bench/relay.rs", "tour/hand.rs"],
        connections: &[],
    },
    Layer {
        name: "xtask",
        may_use: &[],
        pure: false,
        // This file names the words themselves.
        processes: &["layers.rs", "steps.rs"],
        connections: &["layers.rs"],
    },
];

/// What a crate's tests may use besides: a sink is tested against a whole gate.
const TESTS_MAY_USE: &[(&str, &str)] = &[("lychgate-sinks", "keys"), ("lychgate-sinks", "store")];

/// Libraries that read, write, wait or connect: never a dependency of a pure crate.
const IO_LIBRARIES: &[&str] = &[
    "axum",
    "hyper",
    "mio",
    "reqwest",
    "rpassword",
    "rusqlite",
    "rustix",
    "tokio",
    "tracing-subscriber",
    "ureq",
];

/// Words that start a process.
const PROCESSES: &[&str] = &[
    "process::Command",
    "process::{Command",
    "process::Child",
    "process::{Child",
    "tokio::process",
    "CommandExt",
];

/// Words that open a connection.
const CONNECTIONS: &[&str] = &[
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "UnixDatagram",
    "ToSocketAddrs",
    "lookup_host",
];

/// Words that write to a log, and the two files that may: what makes its lines, of an allowlist of fields, and what keeps
/// them (PROFILE §10).
const LOGS: &[&str] = &["tracing::", "use tracing", "tracing_subscriber"];
const LOG_FILES: &[(&str, &str)] = &[("lychgate-gate", "log.rs"), ("lychgate-server", "log.rs")];

/// Words that touch files: a pure crate is handed bytes and gives bytes back.
const FILES: &[&str] = &["std::fs", "File::open", "File::create", "std::io::stdin"];

/// Checks the whole workspace; every fault is printed, not only the first.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    let metadata = metadata(root)?;
    let mut faults = Vec::new();
    let mut crates = 0_usize;
    let mut files = 0_usize;
    for package in metadata.workspace_packages() {
        let name = package.name.to_string();
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            faults.push(format!(
                "`{name}` has no place in the table of layers (xtask/src/layers.rs)"
            ));
            continue;
        };
        crates += 1;
        let dependencies = package
            .dependencies
            .iter()
            .map(|dependency| (dependency.name.as_str(), dependency.kind));
        manifest_faults(layer, dependencies, &mut faults);
        let Some(folder) = package.manifest_path.parent() else {
            continue;
        };
        let source = folder.join("src").into_std_path_buf();
        for path in rust_files(&source)? {
            files += 1;
            let place = path.strip_prefix(&source).unwrap_or(&path);
            let shown = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .display()
                .to_string();
            let text = fs::read_to_string(&path)?;
            source_faults(
                layer,
                (&place.to_string_lossy(), &shown),
                &text,
                &mut faults,
            );
        }
    }
    if crates == 0 || files == 0 {
        faults.push("nothing was looked at: the check itself is broken".to_owned());
    }
    if faults.is_empty() {
        println!("layers: {crates} crates, {files} files in order");
        return Ok(());
    }
    for fault in &faults {
        eprintln!("layers: {fault}");
    }
    Err(Failure::new(format!(
        "{} faults in the layers",
        faults.len()
    )))
}

fn manifest_faults<'a>(
    layer: &Layer,
    dependencies: impl Iterator<Item = (&'a str, DependencyKind)>,
    faults: &mut Vec<String>,
) {
    let ours: BTreeSet<&str> = LAYERS.iter().map(|layer| layer.name).collect();
    for (name, kind) in dependencies {
        // A crate's own tests may take it again with another feature (a conformance suite).
        if name == layer.name && kind == DependencyKind::Development {
            continue;
        }
        let short = name.strip_prefix("lychgate-").unwrap_or(name);
        let in_tests =
            kind == DependencyKind::Development && TESTS_MAY_USE.contains(&(layer.name, short));
        if ours.contains(name) && !layer.may_use.contains(&short) && !in_tests {
            faults.push(format!("`{}` must not depend on `{name}`", layer.name));
        }
        if layer.pure && kind == DependencyKind::Normal && IO_LIBRARIES.contains(&name) {
            faults.push(format!(
                "`{}` is pure and must not depend on `{name}`",
                layer.name
            ));
        }
    }
}

/// `place` is the file below the crate's `src`, `path` as a person is shown it.
fn source_faults(layer: &Layer, (place, path): (&str, &str), text: &str, faults: &mut Vec<String>) {
    let may_log = LOG_FILES.contains(&(layer.name, place));
    let banned = [
        (PROCESSES, !named(layer.processes, place)),
        (CONNECTIONS, !named(layer.connections, place)),
        (FILES, layer.pure),
        (LOGS, layer.name != "xtask" && !may_log),
    ];
    for (number, line) in text.lines().enumerate() {
        // The unit tests are the last thing in a file, in one module.
        if line.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.split("//").next().unwrap_or(line);
        let words = banned.iter().filter(|(_, holds)| *holds);
        for word in words
            .flat_map(|(words, _)| *words)
            .filter(|word| code.contains(**word))
        {
            faults.push(format!(
                "{path}:{}: `{word}` has no place in this file",
                number + 1
            ));
        }
    }
}

fn named(places: &[&str], place: &str) -> bool {
    places
        .iter()
        .any(|named| *named == place || (named.ends_with('/') && place.starts_with(named)))
}

/// Every `.rs` file under a folder, test files (`tests.rs`, `tests/`) apart, in a stable order.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let stem = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            if stem == "tests" || stem.ends_with("_tests") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
