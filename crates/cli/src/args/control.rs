//! The flags of `revoke`, `consent` and `epochs`.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use lychgate_core::Subject;

use super::{Output, Passphrase};

/// `revoke`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args(
    ["agent", "session", "tool", "server", "destination", "key", "act", "delegation", "all"]
)))]
#[command(after_help = "\
Examples:
  lychgate revoke --all
  lychgate revoke --tool files/write_file --reason \"it wrote outside the task\"
  lychgate revoke --tool files/write_file --undo

What is revoked runs no more from now on, whatever was allowed or asked for before; a call that waits for you and falls
under it ends. Stopping wants no passphrase, `--undo` does. `lychgate epochs` shows who has taken note.")]
pub(crate) struct Revoke {
    /// Every act of an agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Vec<String>,
    /// Every act of a client's connection, as `lychgate epochs` lists them
    #[arg(long, value_name = "ID")]
    pub(crate) session: Vec<String>,
    /// Every act of one function
    #[arg(long, value_name = "SERVER/FUNCTION")]
    pub(crate) tool: Vec<String>,
    /// Every act at a server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
    /// Every act that reaches a destination, a recipient or a host, as `lychgate acts` writes it
    #[arg(long, value_name = "NAME")]
    pub(crate) destination: Vec<String>,
    /// What a key signed; of one of the gate's own keys: every act
    #[arg(long, value_name = "KEY-ID")]
    pub(crate) key: Vec<String>,
    /// One act that waits or is allowed
    #[arg(long, value_name = "ACT")]
    pub(crate) act: Vec<String>,
    /// One link of a chain of delegations, and every act below it
    #[arg(long, value_name = "DELEGATION")]
    pub(crate) delegation: Vec<String>,
    /// Everything
    #[arg(long)]
    pub(crate) all: bool,
    /// Take it back; wants the approver's passphrase
    #[arg(long)]
    pub(crate) undo: bool,
    /// Also what nothing here is known to be called
    #[arg(long, conflicts_with = "undo")]
    pub(crate) force: bool,
    /// Why; the record keeps its digest
    #[arg(long, value_name = "R")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Revoke {
    /// What is named, or the text that names nothing.
    pub(crate) fn subjects(&self) -> Result<Vec<Subject>, String> {
        let mut found = Vec::new();
        for (kind, names) in [
            ("agent", &self.agent),
            ("session", &self.session),
            ("tool", &self.tool),
            ("server", &self.server),
            ("destination", &self.destination),
            ("key", &self.key),
            ("act", &self.act),
            ("delegation", &self.delegation),
        ] {
            for name in names {
                let subject = format!("{kind}:{name}").parse();
                found.push(subject.map_err(|_| format!("--{kind}: `{name}`"))?);
            }
        }
        found.extend(self.all.then_some(Subject::All));
        Ok(found)
    }
}

/// `epochs`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lychgate epochs --json

A control is a change of the configuration, a revocation, a withdrawn consent or a new key. `received` and `enforced` are
the sink's word, `observed` the client process'; `missing` was never seen, `conflict` does not fit.")]
pub(crate) struct Epochs {
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `consent`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate consent grant --for 8h --function files
  lychgate consent list
  lychgate consent withdraw cns-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f")]
pub(crate) struct Consent {
    #[command(subcommand)]
    pub(crate) what: ConsentCommand,
}

/// What to do with consents.
#[derive(Debug, Subcommand)]
pub(crate) enum ConsentCommand {
    /// Consent to what the agent may do for you, until a moment; wants the approver's passphrase
    #[command(
        after_help = "Example:\n  lychgate consent grant --for 8h --function files --purpose general"
    )]
    Grant(Grant),
    /// Take consents back: what rests on them and has not run does not run
    #[command(after_help = "Example:\n  lychgate consent withdraw --all")]
    Withdraw(Withdraw),
    /// List the consents that hold
    #[command(after_help = "Example:\n  lychgate consent list --all --json")]
    List(ListConsents),
}

/// `consent grant`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("covers").required(true).multiple(true).args(["function", "purpose", "everything"])))]
pub(crate) struct Grant {
    /// For how long: a number and `m`, `h` or `d`
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) lasts: Duration,
    /// For a server, or one function as SERVER/FUNCTION
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Vec<String>,
    /// For a purpose
    #[arg(long, value_name = "ID")]
    pub(crate) purpose: Vec<String>,
    /// For all functions and purposes
    #[arg(long, conflicts_with_all = ["function", "purpose"])]
    pub(crate) everything: bool,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `consent withdraw`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["ids", "all"])))]
pub(crate) struct Withdraw {
    /// Which
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// All that hold
    #[arg(long)]
    pub(crate) all: bool,
    /// Why; the record keeps its digest
    #[arg(long, value_name = "R")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `consent list`
#[derive(Debug, Args)]
pub(crate) struct ListConsents {
    /// Also those that hold no more
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "it is not a number followed by `m`, `h` or `d`".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u64 = text.trim_end_matches(unit).parse().map_err(|_| wrong())?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let total = number.checked_mul(seconds).filter(|total| *total > 0);
    total.map(Duration::from_secs).ok_or_else(wrong)
}
