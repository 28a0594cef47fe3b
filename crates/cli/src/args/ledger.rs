//! The flags of the commands an auditor uses.

use std::path::PathBuf;

use clap::Args;
use lychgate_ledger::VerifierKey;
use lychgate_ledger::note::SignatureKind;

use super::Output;

/// `verify`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate verify receipt.json --trust trust.json
  lychgate verify receipt.json --trust trust.json --witness 'wit.example+5b1d0a9c+BA...' --json

FILE is what `lychgate ledger prove` wrote. BUNDLE is what `lychgate keys export` printed; get it
from its owner by a way you trust, not together with FILE. Neither a gate nor a network is needed.
Exit status 1 when something is not proven; the step that failed is named.")]
pub(crate) struct Verify {
    /// The receipt with its proof; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Whose word counts: the log's owner's public keys
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) trust: PathBuf,
    #[command(flatten)]
    pub(crate) heads: Heads,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Which heads of a log are believed.
#[derive(Debug, Args)]
pub(crate) struct Heads {
    /// The log's name, when you know it; another log of the same owner is then refused
    #[arg(long, value_name = "NAME")]
    pub(crate) origin: Option<String>,
    /// A witness that must have cosigned the head: its key, as `lychgate witness` prints it
    #[arg(long, value_name = "KEY", value_parser = witness)]
    pub(crate) witness: Vec<VerifierKey>,
    /// How many of the witnesses must have cosigned it [default: all that are named]
    #[arg(long, value_name = "N", requires = "witness")]
    pub(crate) quorum: Option<usize>,
}

impl Heads {
    /// How many witnesses must have cosigned.
    pub(crate) fn quorum(&self) -> usize {
        self.quorum.unwrap_or(self.witness.len())
    }
}

fn witness(text: &str) -> Result<VerifierKey, String> {
    let key: VerifierKey = text
        .parse()
        .map_err(|fault| format!("it is not NAME+ID+KEY: {fault}"))?;
    if key.kind() == SignatureKind::Cosignature {
        Ok(key)
    } else {
        Err("it is a log's key, not a witness'".to_owned())
    }
}
