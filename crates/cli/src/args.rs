//! Every flag, once: what is parsed, and what help, man pages and completions say.

mod control;
mod delegate;
mod each;
mod ledger;
mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use lychgate_core::display::escape;

pub(crate) use self::control::*;
pub(crate) use self::delegate::*;
pub(crate) use self::each::*;
pub(crate) use self::ledger::*;
pub(crate) use self::report::*;
use crate::terminal::{Style, Terminal, styled, text};

/// Lychgate: this exact act, once, or not at all.
#[derive(Debug, Parser)]
#[command(name = "lychgate", version, styles = STYLES, max_term_width = 100, disable_help_subcommand = true)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Start with:
  lychgate tour                      two minutes, nothing is kept
  lychgate init                      your configuration and keys
  lychgate add NAME -- COMMAND ...   put an MCP server behind the gate

Exit status: 0 done, 1 refused or denied, 2 wrong usage or configuration, 3 internal fault.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The configuration [default: lychgate.toml in your configuration folder, never the working folder]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "LYCHGATE_CONFIG",
        hide_env_values = true
    )]
    #[arg(help_heading = "Places")]
    pub(crate) config: Option<PathBuf>,
    /// The gate's folder [default: lychgate in your state folder]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "LYCHGATE_STATE_DIR",
        hide_env_values = true
    )]
    #[arg(help_heading = "Places")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Whether the folder was named on the command line, not in the environment.
    #[arg(skip)]
    pub(crate) state_dir_is_a_flag: bool,
    /// Do not start the gate when it is not running
    #[arg(long, global = true, help_heading = "Places")]
    pub(crate) no_start: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a commented configuration, keys and the state folder
    Init(Init),
    /// Put an MCP server behind the gate
    Add(Add),
    /// Speak MCP to a gated server: what your client starts instead of the server
    Mcp(Mcp),
    /// See the whole transaction and its attacks, guided, in two minutes
    Tour(Tour),
    /// List the calls that wait for you
    Pending(Pending),
    /// Say yes to a waiting call: this one, once
    Approve(Decide),
    /// Say no to a waiting call
    Deny(Decide),
    /// Hand a bounded part of what your agent may do to a worker
    Delegate(Delegate),
    /// List the kinds of acts that go by one decision for a while, or close one
    Envelopes(Envelopes),
    /// List acts and what became of them
    Acts(Acts),
    /// Say what became of an act whose outcome is unknown
    Reconcile(Reconcile),
    /// Stop things at once: an agent, a session, a tool, a server, a destination, a key, an act, everything
    Revoke(Revoke),
    /// Consent to what the agent may do, list consents, withdraw them
    Consent(Consent),
    /// See the epochs, and who has taken note of the newest controls
    Epochs(Epochs),
    /// Make a changed configuration count
    Apply(Apply),
    /// Find mistakes in the configuration
    #[command(after_help = "Example:\n  lychgate check --config ./lychgate.toml")]
    Check(Output),
    /// Look at a server's changed tools, and pin them
    Pin(Pin),
    /// Run the gate in the foreground, stop it, or see how it is
    Gate(Gate),
    /// List, rotate and export keys
    Keys(Keys),
    /// Look at the record of everything, prove from it, check it
    Ledger(Ledger),
    /// Report from the record what an operator is to measure, and name what breaks it
    Report(Report),
    /// Check a receipt that somebody sent you, offline, trusting nobody here
    Verify(Verify),
    /// Cosign the heads of other people's records, and never two stories of one
    Witness(Witness),
    /// Print the canonical bytes (RFC 8785) of the JSON on standard input
    Canon(Canon),
    /// Print the digest of the JSON on standard input
    Digest(Digest),
    /// Measure this machine: the full durable cycle beside its raw fsync rate
    Bench(Bench),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write all of them into a folder
    Man(Man),
    /// A small MCP server, for the tour and the tests
    #[command(hide = true)]
    TourServer(crate::tour::server::ServerArgs),
}

/// What is said instead of running a command: help, a version, or what is wrong with the words given.
pub(crate) struct Told(clap::Error);

impl Told {
    /// Says it.
    pub(crate) fn tell(&self, terminal: &mut Terminal) -> ExitCode {
        match self.0.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // Our own words only; clap colours them when standard output is a terminal. A reader that has gone
                // away is no fault.
                let _ = self.0.print();
                ExitCode::SUCCESS
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                let _ = self.0.print();
                ExitCode::from(2)
            }
            _ => {
                // What the caller wrote is quoted in it, so it goes through our own hands.
                let said = self.0.render().to_string();
                let mut lines = said.trim_end().lines();
                let first = lines.next().unwrap_or_default();
                let first = first.strip_prefix("error: ").unwrap_or(first);
                terminal.note(&[styled(Style::Red, "lychgate:"), text(format!(" {first}"))]);
                for line in lines {
                    terminal.note(&[text(line)]);
                }
                ExitCode::from(2)
            }
        }
    }
}

/// Reads the command line. A place in the environment must be absolute: it would mean another folder elsewhere.
pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Told> {
    let matches = Cli::command()
        .try_get_matches_from(arguments)
        .map_err(Told)?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(Told)?;
    cli.common.state_dir_is_a_flag =
        matches.value_source("state_dir") == Some(ValueSource::CommandLine);
    for (id, variable, value) in [
        ("config", "LYCHGATE_CONFIG", &cli.common.config),
        ("state_dir", "LYCHGATE_STATE_DIR", &cli.common.state_dir),
    ] {
        let relative = value.as_ref().filter(|path| path.is_relative());
        if let (Some(path), Some(ValueSource::EnvVariable)) = (relative, matches.value_source(id)) {
            let path = escape(&path.to_string_lossy());
            let message = format!("{variable} is `{path}`; it must be an absolute path\n");
            return Err(Told(clap::Error::raw(ErrorKind::ValueValidation, message)));
        }
    }
    Ok(cli)
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn status(words: &[&str]) -> Option<(i32, String)> {
        let words = std::iter::once("lychgate")
            .chain(words.iter().copied())
            .map(OsString::from);
        read(words).err().map(|told| {
            let mut terminal = Terminal::captured(80);
            let code = if told.tell(&mut terminal) == ExitCode::SUCCESS {
                0
            } else {
                2
            };
            (code, terminal.taken().1)
        })
    }

    #[test]
    fn the_definition_of_the_flags_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn wrong_usage_is_status_2_and_says_what_would_be_right() {
        for (words, said) in [
            (&["add", "fs"][..], "COMMAND"),
            (
                &["add", "fs", "--class", "x=Informational", "--", "a"],
                "INFORMATIONAL",
            ),
            (&["add", "fs", "--env", "x", "--", "a"], "NAME=VALUE"),
            (&["acts", "--state", "done"], "effected"),
            (&["reconcile", "act-1", "--effect"], "--reason"),
            (
                &[
                    "reconcile",
                    "act-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f",
                    "--reason",
                    "r",
                ],
                "--no-effect",
            ),
            (&["digest", "--algorithm", "md5"], "sha-256"),
            (&["aprove", "x"], "approve"),
        ] {
            let (code, message) = status(words).unwrap();
            assert_eq!(code, 2, "{words:?}");
            assert!(message.contains(said), "{words:?}: {message}");
        }
    }

    #[test]
    fn a_hostile_word_is_quoted_back_escaped() {
        let (_, message) = status(&["approve\r\x1b[2K\u{202e}"]).unwrap();
        // The parser takes the sequence out by itself, and we escape what is left.
        assert!(message.contains("'approve\\r\\u{202e}'"), "{message}");
        assert!(!message.contains(['\r', '\x1b', '\u{202e}']));
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            if !command.is_hide_set() {
                assert!(help.contains("Example"), "{}", command.get_name());
            }
        }
    }
}
