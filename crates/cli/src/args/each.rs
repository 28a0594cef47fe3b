//! The flags of each command.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use lychgate_core::{ConsequenceClass, State};

/// Where a passphrase comes from.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Passphrase {
    /// Read the approver's passphrase from this descriptor instead of the terminal (up to a newline)
    #[arg(long, value_name = "N")]
    pub(crate) passphrase_fd: Option<u32>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Output {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `init`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  lychgate init --root ~/src:recoverable")]
pub(crate) struct Init {
    /// Declare a folder that servers may be given; `:recoverable` when version control or snapshots stand behind it
    #[arg(long, value_name = "PATH[:recoverable]")]
    pub(crate) root: Vec<String>,
    /// No approver: what would ask is denied, and `apply` wants no passphrase
    #[arg(long, conflicts_with = "passphrase_fd")]
    pub(crate) no_approver: bool,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `add`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ~/src
  lychgate add time --class get_current_time=INFORMATIONAL -- uvx mcp-server-time==2026.10.19

The server is started once, with your rights, to list its tools. Then one question is asked.")]
pub(crate) struct Add {
    /// What to call the server: small letters, digits, `_` and `-`
    pub(crate) name: String,
    /// Declare a folder and give it to the server; absolute folders in COMMAND are declared by themselves
    #[arg(long, value_name = "PATH[:recoverable]")]
    pub(crate) root: Vec<String>,
    /// Set a variable of the server's environment; its own is empty otherwise
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) env: Vec<(String, String)>,
    /// Pass a variable of the gate's environment on, by name
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// The server's working folder
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Take what is proposed without the question
    #[arg(long)]
    pub(crate) accept_proposed: bool,
    /// Set a tool's consequence class
    #[arg(long, value_name = "TOOL=CLASS", value_parser = class_of)]
    pub(crate) class: Vec<(String, ConsequenceClass)>,
    /// How long to wait for the server's first answers, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
    /// The server's program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `mcp`
#[derive(Debug, Args)]
#[command(
    after_help = "Example, in a client's configuration:\n  \"command\": \"lychgate\", \"args\": [\"mcp\", \"files\"]"
)]
pub(crate) struct Mcp {
    /// The server, as named in the configuration
    pub(crate) name: String,
    /// As a worker: what it was handed (`lychgate delegate`)
    #[arg(
        long,
        value_name = "FILE",
        env = "LYCHGATE_DELEGATION",
        hide_env_values = true
    )]
    pub(crate) delegation: Option<PathBuf>,
    /// One of the configured purposes, by its id
    #[arg(long, value_name = "ID")]
    pub(crate) purpose: Option<String>,
}

/// `tour`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lychgate tour --state-dir ./tour    (keeps what the tour made)"
)]
pub(crate) struct Tour {
    /// Do not pause between the steps
    #[arg(long)]
    pub(crate) fast: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `pending`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lychgate pending\n  lychgate pending --tool bank --class FINANCIAL\n  lychgate pending --limit 500 --oldest --json"
)]
pub(crate) struct Pending {
    /// Only calls of this server, or of one of its functions
    #[arg(long, value_name = "SERVER[/FUNCTION]")]
    pub(crate) tool: Option<String>,
    /// Only calls of this consequence class
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Option<String>,
    /// The oldest first, instead of the newest
    #[arg(long)]
    pub(crate) oldest: bool,
    /// Go on after this ticket: the last one of the page before
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
    /// How many at most (50; with `--json` all)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `approve` and `deny`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lychgate pending
  lychgate approve 5f21c3e8

A ticket's first or last characters will do. All of the call is shown before you are asked.")]
pub(crate) struct Decide {
    /// Tickets, or a part that names one
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Sign with this approver's key, as `keys approver add NAME` made it
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `acts`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lychgate acts --state indeterminate\n  lychgate acts --follow --json\n  lychgate acts 27a40c6e19d3 --json    (one act, with what was signed on its way)"
)]
pub(crate) struct Acts {
    /// One act, by its id or how the id ends: all that is known of it
    #[arg(value_name = "ACT", conflicts_with_all = ["state", "follow"])]
    pub(crate) act: Option<String>,
    /// Only acts in this state
    #[arg(long, value_parser = state)]
    pub(crate) state: Option<State>,
    /// Go on as acts change; with `--json` one line for each
    #[arg(long)]
    pub(crate) follow: bool,
    /// At most so many, the newest
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `reconcile`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("verdict").required(true).args(["effect", "no_effect"])))]
#[command(
    after_help = "Example:\n  lychgate reconcile 27a40c6e19d3 --no-effect --reason \"the file is not there\""
)]
pub(crate) struct Reconcile {
    /// The act, or how its id ends
    #[arg(value_name = "ACT")]
    pub(crate) act: String,
    /// It had its effect
    #[arg(long)]
    pub(crate) effect: bool,
    /// It had none; an equal call may be made again
    #[arg(long)]
    pub(crate) no_effect: bool,
    /// How you know
    #[arg(long, value_name = "R")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `apply`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lychgate apply\n\nWhat widens wants the approver's passphrase."
)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `pin`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lychgate pin files\n\nPinning changed definitions always wants the approver's passphrase."
)]
pub(crate) struct Pin {
    /// The server, as named in the configuration
    pub(crate) name: String,
    /// Pin without the question; the passphrase is wanted all the same
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
}

/// `gate`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lychgate gate            in the foreground, until Ctrl-C\n  lychgate gate status"
)]
pub(crate) struct Gate {
    #[command(subcommand)]
    pub(crate) what: Option<GateCommand>,
    /// How a client starts it: detached, and gone again when nobody needs it.
    #[arg(long, hide = true)]
    pub(crate) background: bool,
}

/// `gate stop`, `gate status`
#[derive(Debug, Subcommand)]
pub(crate) enum GateCommand {
    /// End the running gate
    #[command(after_help = "Example:\n  lychgate gate stop")]
    Stop,
    /// See how the gate is; exit status 1 when it is not running
    #[command(after_help = "Example:\n  lychgate gate status --json")]
    Status(Output),
}

/// `keys`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lychgate keys list\n  lychgate keys rotate ped\n  lychgate keys export > trust.json"
)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) what: KeysCommand,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// List the trusted keys, current and retired
    #[command(after_help = "Example:\n  lychgate keys list")]
    List(Output),
    /// Put a fresh key in the place of a role's current one
    #[command(
        after_help = "Example:\n  lychgate keys rotate ped\n\nThe approver's passphrase is asked for; the gate starts again."
    )]
    Rotate(Rotate),
    /// Print the trust bundle: the public keys others verify with
    #[command(after_help = "Example:\n  lychgate keys export > trust.json")]
    Export,
    /// Change the approver's passphrase
    #[command(after_help = "Example:\n  lychgate keys passphrase")]
    Passphrase(ChangePassphrase),
    /// Add another approver, or retire one
    #[command(subcommand)]
    Approver(ApproverCommand),
}

/// What to do with approvers.
#[derive(Debug, Subcommand)]
pub(crate) enum ApproverCommand {
    /// Make a key for another approver, under a passphrase of its own
    #[command(
        after_help = "Example:\n  lychgate keys approver add alice\n\nAn approver of now says yes with a passphrase; then the new approver types a new one, twice."
    )]
    Add(AddApprover),
    /// Believe an approver's key no longer; what it approved and nobody has used is void
    #[command(
        after_help = "Example:\n  lychgate keys approver retire kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    )]
    Retire(RetireApprover),
}

/// `keys approver add`
#[derive(Debug, Args)]
pub(crate) struct AddApprover {
    /// What this machine calls the new approver: small letters, digits, `-`
    pub(crate) name: String,
    /// Sign with this approver's key
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) signer: Option<String>,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    /// Read the new approver's passphrase from this descriptor instead of the terminal
    #[arg(long, value_name = "N")]
    pub(crate) new_passphrase_fd: Option<u32>,
}

/// `keys approver retire`
#[derive(Debug, Args)]
pub(crate) struct RetireApprover {
    /// The key's id, as `keys list` shows it
    pub(crate) key: String,
    /// Sign with this approver's key
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) signer: Option<String>,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
}

/// `keys rotate`
#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// Whose key
    pub(crate) role: GateRole,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
}

/// The roles with a key of the gate's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateRole {
    /// Signs evidence and authorities
    Ped,
    /// Signs sink verifications
    Sink,
    /// Signs checkpoints
    Ledger,
}

/// `keys passphrase`
#[derive(Debug, Args)]
pub(crate) struct ChangePassphrase {
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    /// Read the new passphrase from this descriptor
    #[arg(long, value_name = "N", requires = "passphrase_fd")]
    pub(crate) new_passphrase_fd: Option<u32>,
}

/// `canon`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  echo '{\"b\":1.0,\"a\":2}' | lychgate canon")]
pub(crate) struct Canon {}

/// `digest`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  echo '{\"b\":1.0,\"a\":2}' | lychgate digest --algorithm sha-512"
)]
pub(crate) struct Digest {
    /// Which hash
    #[arg(long, value_name = "A", default_value = "sha-256")]
    pub(crate) algorithm: Hash,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The hashes of PROFILE §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hash {
    /// The default everywhere
    #[value(name = "sha-256", alias = "sha256")]
    Sha256,
    #[value(name = "sha-384", alias = "sha384")]
    Sha384,
    #[value(name = "sha-512", alias = "sha512")]
    Sha512,
}

/// `bench`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  lychgate bench --dir /var/tmp --rows 1000000")]
pub(crate) struct Bench {
    /// The disk to measure: a throw-away folder is made in here [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Acts one after another
    #[arg(long, value_name = "N")]
    pub(crate) single: Option<u64>,
    /// Acts with 64 in flight, at most
    #[arg(long, value_name = "N")]
    pub(crate) acts: Option<u64>,
    /// How long 64 in flight are measured, at most
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<u64>,
    /// Measure beside a store that holds so many consumed acts already
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// A million acts, to see whether memory stays flat
    #[arg(long)]
    pub(crate) long: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `completions`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lychgate completions bash > ~/.local/share/bash-completion/completions/lychgate"
)]
pub(crate) struct Completions {
    /// For which shell
    pub(crate) shell: Shell,
}

/// `man`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lychgate man | man -l -\n  lychgate man ~/.local/share/man/man1"
)]
pub(crate) struct Man {
    /// Write a page for each command into this folder
    pub(crate) dir: Option<PathBuf>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it is not of the form NAME=VALUE".to_owned()),
    }
}

fn class_of(text: &str) -> Result<(String, ConsequenceClass), String> {
    let (tool, class) = text
        .rsplit_once('=')
        .ok_or("it is not of the form TOOL=CLASS")?;
    let class = ConsequenceClass::from_name(class).ok_or_else(|| {
        let names = ConsequenceClass::ALL.map(ConsequenceClass::name);
        format!("the class is one of {}", names.join(", "))
    })?;
    Ok((tool.to_owned(), class))
}

fn state(text: &str) -> Result<State, String> {
    State::from_name(text)
        .ok_or_else(|| format!("it is one of {}", State::ALL.map(State::name).join(", ")))
}
