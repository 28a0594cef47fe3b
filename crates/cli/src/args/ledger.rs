//! The flags of the commands an auditor uses.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lychgate_ledger::note::SignatureKind;
use lychgate_ledger::{KeyName, VerifierKey};

use super::{Output, Passphrase};

/// `ledger`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate ledger show
  lychgate ledger prove 27a40c6e19d3 --open > receipt.json
  lychgate ledger verify --checkpoint head-of-last-month.txt

The record holds a receipt of every decision and outcome, one after another, in a tree of hashes
whose root (the head) the gate signs: nothing in it can be changed without that showing.")]
pub(crate) struct Ledger {
    #[command(subcommand)]
    pub(crate) what: LedgerCommand,
}

/// What to do with the record.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// List receipts, or show one whole
    Show(LedgerShow),
    /// Write one receipt with its proof, for somebody who trusts nobody here
    Prove(LedgerProve),
    /// Write the whole record as files (C2SP tlog-tiles), for other people's tools
    Export(LedgerExport),
    /// Check the whole record against every head signed over it
    Verify(LedgerVerify),
    /// See where the newest head is kept beside the record, and what it says
    Anchor(LedgerAnchor),
    /// Move the oldest receipts into an archive; their hashes, and every proof, stay
    Prune(LedgerPrune),
}

/// `ledger show`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lychgate ledger show\n  lychgate ledger show 77\n  lychgate ledger show --from 0 --limit 100 --json"
)]
pub(crate) struct LedgerShow {
    /// One receipt, by its number
    #[arg(value_name = "INDEX", conflicts_with_all = ["from", "limit"])]
    pub(crate) index: Option<u64>,
    /// Begin with this number [default: so that the newest come last]
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u64>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `ledger prove`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate ledger prove 77 > receipt.json
  lychgate ledger prove 27a40c6e19d3 --open --out receipt.json

Its reader checks it with `lychgate verify` or examples/verify.py, and your `lychgate keys export`.
For an act it is the act's last receipt: what became of it. Where witnesses have cosigned a head over
it, the proof is under that one.")]
pub(crate) struct LedgerProve {
    /// A receipt's number, or an act by its id or how the id ends
    #[arg(value_name = "INDEX|ACT")]
    pub(crate) what: String,
    /// Let the reader see where the call went and the digest of its arguments
    #[arg(long)]
    pub(crate) open: bool,
    /// Write this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// `ledger export`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  lychgate ledger export ./record")]
pub(crate) struct LedgerExport {
    /// A folder that is not there yet, or is empty
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Hashes only: no receipt leaves, and single ones can still be proven
    #[arg(long)]
    pub(crate) redact: bool,
}

/// `ledger verify`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate ledger verify
  lychgate ledger verify --checkpoint head-of-last-month.txt
  lychgate ledger verify --dir ./record --trust trust.json

A head kept elsewhere is what shows that all of it was rewritten and signed anew: the anchors and
what witnesses cosigned, which are read by themselves, and any copy that you give (--checkpoint).
No gate is started for this. Exit status 1 when something differs; the first difference is named.")]
pub(crate) struct LedgerVerify {
    #[command(flatten)]
    pub(crate) record: AuditedRecord,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A record to audit, and by what it is held.
#[derive(Debug, Args)]
pub(crate) struct AuditedRecord {
    /// A signed head that was kept elsewhere; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Vec<PathBuf>,
    /// An exported record instead of the gate's
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Where `ledger prune` put receipts; those that are not here are checked by their hashes alone
    #[arg(long, value_name = "DIR")]
    pub(crate) archive: Option<PathBuf>,
    /// Whose word counts [default: the gate's own trust bundle]
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) trust: Option<PathBuf>,
}

/// `ledger prune`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate ledger prune --below 100000 --archive /mnt/archive/lychgate
  lychgate ledger verify --archive /mnt/archive/lychgate

Whole bundles of 256 receipts are written to DIR (C2SP tlog-tiles), read back and held against the
log's signed head; only then the approver is asked, and their bytes leave the store. DIR may hold
what was archived before. What a dropped receipt said only DIR tells then: keep two copies of it.")]
pub(crate) struct LedgerPrune {
    /// Receipts with a smaller number than this, as far as they fill whole bundles
    #[arg(long, value_name = "N")]
    pub(crate) below: u64,
    /// The folder of the archive, outside the state folder
    #[arg(long, value_name = "DIR")]
    pub(crate) archive: PathBuf,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `ledger anchor`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate ledger anchor
  lychgate ledger anchor --accept --reason \"restored last night's backup after the disk failed\"

The anchor is the record's newest signed head, kept outside the state folder. A gate does not start
on a record that its anchor contradicts, or a head that a witness has cosigned; --accept goes on
with it, and a receipt says so for ever.")]
pub(crate) struct LedgerAnchor {
    /// Go on with a record that its anchor contradicts
    #[arg(long, requires = "reason")]
    pub(crate) accept: bool,
    /// Why
    #[arg(long, value_name = "R", requires = "accept")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `witness`
#[derive(Debug, Args)]
#[command(after_help = "\
Example, on another machine than the log's:
  lychgate witness --log 'lychgate/gate-01a2...+5b1d0a9c+AX...' --listen 127.0.0.1:8091

A witness cosigns the heads of a log as long as each provably adds to the one before, and remembers
what it cosigned: its owner cannot show two people two records. It speaks C2SP tlog-witness over
HTTP; put a server with TLS before it to offer it to others. The log's key is shown by
`lychgate ledger anchor`; the witness' own, which `lychgate verify --witness` takes, is printed here.")]
pub(crate) struct Witness {
    /// A log to witness: its key; repeat for more logs, and after a log's key was rotated
    #[arg(long, value_name = "KEY", required = true, value_parser = log)]
    pub(crate) log: Vec<VerifierKey>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8091")]
    pub(crate) listen: SocketAddr,
    /// What to be called, best a domain of yours [default: made of the key]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<KeyName>,
    /// Where its key and memory lie [default: lychgate-witness in your state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

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

fn log(text: &str) -> Result<VerifierKey, String> {
    let key: VerifierKey = text
        .parse()
        .map_err(|fault| format!("it is not NAME+ID+KEY: {fault}"))?;
    if key.kind() == SignatureKind::Ed25519 {
        Ok(key)
    } else {
        Err("it is a witness' key, not a log's".to_owned())
    }
}

fn name(text: &str) -> Result<KeyName, String> {
    KeyName::new(text).map_err(|fault| fault.to_string())
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
