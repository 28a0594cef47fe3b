//! Running programs and steps, with a name and a time for each.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use cargo_metadata::{CargoOpt, Metadata, MetadataCommand};

/// Why a step did not pass: one line for a person.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// The steps of one run and the time each took.
pub(crate) struct Steps {
    done: Vec<(String, String)>,
    started: Instant,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            done: Vec::new(),
            started: now(),
        }
    }

    /// Runs one step under a heading.
    pub(crate) fn run(
        &mut self,
        name: &str,
        step: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        println!("\n== {name}");
        let started = now();
        let result = step();
        self.done
            .push((name.to_owned(), seconds(started.elapsed())));
        if result.is_err() {
            self.summary();
        }
        result.map_err(|failure| Failure(format!("step `{name}` failed: {failure}")))
    }

    /// Says that a step was left out, and why.
    pub(crate) fn skipped(&mut self, name: &str, why: &str) {
        println!("\n== {name}: not run, {why}");
        self.done.push((name.to_owned(), format!("not run: {why}")));
    }

    /// Prints the table of steps.
    pub(crate) fn summary(&self) {
        println!("\nxtask: steps");
        for (name, took) in &self.done {
            println!("  {name:<12}{took}");
        }
        println!("  {:<12}{}", "total", seconds(self.started.elapsed()));
    }
}

/// A command for this tool to run.
#[allow(
    clippy::disallowed_methods,
    reason = "this tool's purpose is to run cargo and the peers"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the time a step took is for people only"
)]
fn now() -> Instant {
    Instant::now()
}

/// Runs a command with this terminal, to its end.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|error| cannot_start(command, &error))?;
    success(command, status)
}

/// Runs a command and gives its standard output; a command that fails is a failure.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .output()
        .map_err(|error| cannot_start(command, &error))?;
    success(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `cargo` in the workspace, the same one that runs this tool.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    run(command(env!("CARGO")).current_dir(root).args(arguments))
}

/// Whether `cargo NAME` is installed.
pub(crate) fn has_subcommand(root: &Path, name: &str) -> bool {
    let mut command = command(env!("CARGO"));
    command.current_dir(root).args([name, "--version"]);
    command.output().is_ok_and(|output| output.status.success())
}

/// What cargo knows of the workspace, without its dependencies' own metadata.
pub(crate) fn metadata(root: &Path) -> Result<Metadata, Failure> {
    MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .no_deps()
        .exec()
        .map_err(|error| Failure(format!("cannot read the workspace: {error}")))
}

/// The same with every dependency for one target, of exactly the versions in the lock file.
pub(crate) fn metadata_with_dependencies(root: &Path, target: &str) -> Result<Metadata, Failure> {
    let options = ["--locked", "--filter-platform", target].map(ToOwned::to_owned);
    MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .other_options(options)
        .exec()
        .map_err(|error| Failure(format!("cannot read the dependencies: {error}")))
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir(root: &Path) -> Result<PathBuf, Failure> {
    Ok(metadata(root)?.target_directory.into_std_path_buf())
}

fn cannot_start(command: &Command, error: &io::Error) -> Failure {
    Failure(format!(
        "cannot start `{}`: {error}",
        command.get_program().to_string_lossy()
    ))
}

fn success(command: &Command, status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    Err(Failure(format!("`{line}` ended with {status}")))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
