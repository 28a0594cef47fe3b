//! The flags of `delegate` and `envelopes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lychgate_core::ConsequenceClass;
use lychgate_core::Timestamp;
use lychgate_core::amount::Amount;
use lychgate_core::delegation::{AgentName, Name, Rate, Spend, Window};
use lychgate_core::id::EnvelopeId;

use super::Output;

/// `delegate`
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  lychgate delegate --to worker --tool files/read_text_file --class INFORMATIONAL --acts 20 --expires 30m --out worker.json
  lychgate mcp files --delegation worker.json        what the worker starts
  lychgate delegate verify worker.json --trust trust.json

The worker may ask for no more than this, and each of its calls is still decided one by one. What reaches beyond reading
asks you first. Take it back with a revocation of `delegation:ID`.")]
pub(crate) struct Delegate {
    #[command(subcommand)]
    pub(crate) verb: Option<DelegateVerb>,
    /// Whom to hand it to
    #[arg(long, value_name = "AGENT", required = true, value_parser = agent)]
    pub(crate) to: Option<AgentName>,
    /// A tool the worker may call: a server, or one function of it (repeat)
    #[arg(long, value_name = "SERVER[/FUNCTION]", required = true)]
    pub(crate) tool: Vec<String>,
    /// A consequence class its calls may have (repeat)
    #[arg(long, value_name = "CLASS", required = true, value_parser = class)]
    pub(crate) class: Vec<ConsequenceClass>,
    /// Only to this destination: its name, its host, or `root:NAME` (repeat) [default: wherever you may]
    #[arg(long, value_name = "NAME")]
    pub(crate) destination: Vec<String>,
    /// Only for this purpose (repeat) [default: whatever you may]
    #[arg(long, value_name = "ID")]
    pub(crate) purpose: Vec<String>,
    /// How many further hops the worker may hand it on
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) depth: u32,
    /// At most so many calls, of the worker and all below it
    #[arg(long, value_name = "N")]
    pub(crate) acts: Option<u64>,
    /// At most so many calls of any class but INFORMATIONAL
    #[arg(long, value_name = "N")]
    pub(crate) high_risk_acts: Option<u64>,
    /// At most so many calls in any stretch of time
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    pub(crate) rate: Option<Rate>,
    /// At most so much of a unit; others may then not be spent at all (repeat)
    #[arg(long, value_name = "UNIT=AMOUNT", value_parser = spend)]
    pub(crate) spend: Vec<Spend>,
    /// For how long [default: 30m, or as long as what you were handed]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) expires: Option<u64>,
    /// The user number of the worker [default: yours]
    #[arg(long, value_name = "UID")]
    pub(crate) uid: Option<u32>,
    /// What you were handed yourself
    #[arg(
        long,
        value_name = "FILE",
        env = "LYCHGATE_DELEGATION",
        hide_env_values = true
    )]
    pub(crate) from: Option<PathBuf>,
    /// Where to write what the worker is handed; it holds a secret [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What else there is to do with delegations.
#[derive(Debug, Subcommand)]
pub(crate) enum DelegateVerb {
    /// Check a delegation offline: who signed it, and that no link grants more than the one above it
    #[command(
        after_help = "Example:\n  lychgate keys export > trust.json\n  lychgate delegate verify worker.json --trust trust.json"
    )]
    Verify(DelegateVerify),
    /// List the delegations there are, and what was used of them
    #[command(after_help = "Example:\n  lychgate delegate list --json")]
    List(Output),
}

/// `envelopes`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lychgate envelopes\n  lychgate envelopes --close env-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f"
)]
pub(crate) struct Envelopes {
    /// Close this one: its acts are decided on one by one again
    #[arg(long, value_name = "ID")]
    pub(crate) close: Option<EnvelopeId>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `delegate verify`
#[derive(Debug, Args)]
pub(crate) struct DelegateVerify {
    /// What the worker was handed, with or without its secret
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The keys to believe (`lychgate keys export`)
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: PathBuf,
    /// Whether it was in time then, as in 2026-12-01T12:00:00.000Z [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) output: Output,
}

fn agent(text: &str) -> Result<AgentName, String> {
    AgentName::try_from(text.to_owned()).map_err(|fault| fault.to_string())
}

fn class(text: &str) -> Result<ConsequenceClass, String> {
    ConsequenceClass::from_name(text).ok_or_else(|| {
        let names = ConsequenceClass::ALL.map(ConsequenceClass::name).join(", ");
        format!("it must be one of {names}")
    })
}

fn rate(text: &str) -> Result<Rate, String> {
    let (acts, window) = text.split_once('/').ok_or("write it as `10/1m`")?;
    let acts = acts.parse().map_err(|_| "write it as `10/1m`")?;
    let window_ms = Window::try_from(duration(window)?)?;
    Ok(Rate { acts, window_ms })
}

fn spend(text: &str) -> Result<Spend, String> {
    let (unit, amount) = text.split_once('=').ok_or("write it as `EUR=12.50`")?;
    Ok(Spend {
        unit: Name::try_from(unit.to_owned())?,
        amount: Amount::read(amount).map_err(|fault| fault.to_string())?,
    })
}

/// `90s`, `30m`, `12h`, `7d`, in milliseconds.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    let wrong = || "write a time as `90s`, `30m`, `12h` or `7d`".to_owned();
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at_checked(at).ok_or_else(wrong)?;
    let unit = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn limits_are_read_as_people_write_them() {
        assert_eq!(duration("30m"), Ok(1_800_000));
        assert_eq!(rate("10/1m").unwrap().window_ms.millis(), 60_000);
        assert_eq!(spend("EUR=12.50").unwrap().amount.to_string(), "12.5");
        for wrong in ["", "m", "1", "1w", "-1s", "1.5h", "99999999999999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["10", "x/1m", "10/1ms", "1/0s"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        for wrong in ["EUR", "EUR=-1", "E R=1", "=1"] {
            assert!(spend(wrong).is_err(), "{wrong}");
        }
    }
}
