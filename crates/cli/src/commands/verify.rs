//! `verify`: a mailed receipt against a trust bundle, with no gate, no store and no network.

use std::io::Read as _;
use std::path::Path;

use lychgate_core::Timestamp;
use lychgate_core::display::escape;
use lychgate_keys::TrustBundle;
use lychgate_ledger::checkpoint::CheckpointFault;
use lychgate_ledger::note::NoteFault;
use lychgate_ledger::proof::{NotProven, Proven};
use lychgate_ledger::{ReceiptProof, Trust};
use serde_json::{Map, Value, json};

use crate::args::Verify;
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::shown;
use crate::terminal::{Style, Terminal, bold, count, dim, styled, text};
use crate::told;

/// One thing that must hold, in the order it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The trust bundle is one.
    Trust,
    /// The file is one.
    File,
    /// The receipt is one.
    Receipt,
    /// The log is the one asked for.
    Origin,
    /// A believed key stands under the head.
    Key,
    /// Its signature is good.
    Signature,
    /// The witnesses stand under it too.
    Witnesses,
    /// The receipt lies under the head.
    Inclusion,
    /// What was opened is what was committed to.
    Opening,
}

impl Step {
    fn word(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::File => "file",
            Self::Receipt => "receipt",
            Self::Origin => "origin",
            Self::Key => "key",
            Self::Signature => "signature",
            Self::Witnesses => "witnesses",
            Self::Inclusion => "inclusion",
            Self::Opening => "opening",
        }
    }

    /// What it means for a person when this does not hold.
    fn meaning(self) -> &'static str {
        match self {
            Self::Trust => "The trust bundle is not what `lychgate keys export` printed.",
            Self::File => "The file is not what `lychgate ledger prove` wrote, byte for byte.",
            Self::Receipt => "What the file holds as the receipt is none in its one exact form.",
            Self::Origin => "The receipt lies in another log than the one you asked for.",
            Self::Key => "No key you trust vouches for this: another log, or another trust bundle.",
            Self::Signature => "The signed head of the log was changed, or never signed.",
            Self::Witnesses => "Too few of the witnesses you named have seen this head of the log.",
            Self::Inclusion => "The receipt, its number or its path is not what the log signed.",
            Self::Opening => "A value shown beside the receipt is not what it committed to.",
        }
    }

    fn of(fault: &NotProven) -> Self {
        match fault {
            NotProven::ReceiptJson(_) | NotProven::ReceiptForm | NotProven::Receipt(_) => {
                Self::Receipt
            }
            NotProven::Origin(_) => Self::Origin,
            NotProven::Checkpoint(CheckpointFault::Note(NoteFault::NoKnownKey))
            | NotProven::Checkpoint(CheckpointFault::NotTheLog)
            | NotProven::Retired(_) => Self::Key,
            NotProven::Checkpoint(_) => Self::Signature,
            NotProven::Quorum { .. } => Self::Witnesses,
            NotProven::Inclusion(_) => Self::Inclusion,
            NotProven::Opening(_) => Self::Opening,
        }
    }
}

/// A step that does not hold, and why.
struct Failed {
    step: Step,
    reason: String,
}

/// Verifies, and says what that shows.
pub(crate) fn run(args: &Verify, terminal: &mut Terminal) -> Outcome {
    let file = read(&args.file)?;
    let trust = files::read(&args.trust, MOST_TRUST)?
        .ok_or_else(|| Stop::usage(format!("there is no file `{}`", shown(&args.trust))))?;
    match verify(args, &trust, &file) {
        Ok((proof, proven)) => {
            if args.output.json {
                terminal.document(&document(&proof, &proven));
            } else {
                say(args, &proof, &proven, terminal);
            }
            Ok(())
        }
        Err(Failed { step, reason }) => {
            if args.output.json {
                terminal.document(&json!({
                    "proven": false, "failed_step": step.word(), "reason": reason,
                }));
            }
            let (name, meaning) = (step.word(), step.meaning());
            let reason = escape(&reason);
            Err(Stop::refused(format!(
                "not proven, at the step `{name}`: {reason}\n{meaning}"
            )))
        }
    }
}

fn verify(args: &Verify, trust: &[u8], file: &[u8]) -> Result<(ReceiptProof, Proven), Failed> {
    let failed = |step, fault: &dyn std::error::Error| Failed {
        step,
        reason: chain(fault),
    };
    let bundle = TrustBundle::from_bytes(trust).map_err(|fault| failed(Step::Trust, &fault))?;
    let proof = ReceiptProof::parse(file).map_err(|fault| failed(Step::File, &fault))?;
    let trust = Trust {
        bundle: &bundle,
        origin: args.heads.origin.as_deref(),
        witnesses: &args.heads.witness,
        quorum: args.heads.quorum(),
    };
    let proven = proof.verify(&trust);
    let proven = proven.map_err(|fault| failed(Step::of(&fault), &fault))?;
    Ok((proof, proven))
}

/// A fault with what lies behind it.
fn chain(fault: &dyn std::error::Error) -> String {
    let mut said = fault.to_string();
    let mut behind = fault.source();
    while let Some(fault) = behind {
        let next = fault.to_string();
        if !said.ends_with(&next) {
            said = format!("{said}: {next}");
        }
        behind = fault.source();
    }
    said
}

fn say(args: &Verify, proof: &ReceiptProof, proven: &Proven, terminal: &mut Terminal) {
    terminal.line(&[
        styled(Style::Green, "✓ proven: "),
        bold(told::sentence(&proven.receipt)),
    ]);
    terminal.gap();
    told::show(&proven.receipt, &proven.opened, terminal);
    terminal.gap();
    terminal.line(&[text("How that is known")]);
    for (label, value) in known(args, proof, proven) {
        terminal.wrapped(
            &[
                styled(Style::Green, "  ✓ "),
                dim(format!("{label:<9}")),
                text(" "),
            ],
            &text(value),
        );
    }
    terminal.gap();
    let caveat = if proven.cosignatures.is_empty() {
        "No witness vouches for it (--witness): the log's owner could show others another log."
    } else {
        "These witnesses cosigned no other record under this name, up to this head."
    };
    terminal.line(&[dim(caveat)]);
    terminal.line(&[dim(
        "Proven is what the log's owner wrote down then, and that it cannot be changed now.",
    )]);
}

fn known(args: &Verify, proof: &ReceiptProof, proven: &Proven) -> Vec<(&'static str, String)> {
    let mut known = vec![
        ("receipt", "in its one exact form, byte for byte".to_owned()),
        (
            "log",
            format!(
                "`{}`, {} at the time",
                escape(&proven.origin),
                records(proven.size)
            ),
        ),
        (
            "signature",
            format!(
                "by the ledger key {} of the trust bundle",
                proven.signed_by.0
            ),
        ),
        (
            "place",
            format!(
                "it is number {}, counted from 0; {} lead to the signed root",
                proven.index,
                count(proof.inclusion.len(), "hash", "hashes")
            ),
        ),
    ];
    let last = proven.cosignatures.iter().map(|by| by.time).max();
    if let Some(last) = last {
        let names = proven.cosignatures.iter();
        let names = names
            .map(|by| escape(by.key.name().as_str()))
            .collect::<Vec<_>>();
        known.push((
            "witnesses",
            format!(
                "{} ({} asked for), last at {}",
                names.join(", "),
                args.heads.quorum(),
                moment(last)
            ),
        ));
    }
    if !proven.opened.is_empty() {
        let fields = proven.opened.iter().map(|(field, _)| field.label());
        known.push((
            "opened",
            format!(
                "{}: what the receipt committed to",
                fields.collect::<Vec<_>>().join(", ")
            ),
        ));
    }
    known
}

fn records(size: u64) -> String {
    count(
        usize::try_from(size).unwrap_or(usize::MAX),
        "record",
        "records",
    )
}

fn moment(seconds: u64) -> String {
    Timestamp::from_millis(seconds.saturating_mul(1000)).to_string()
}

fn document(proof: &ReceiptProof, proven: &Proven) -> Value {
    let receipt: Value = serde_json::from_str(&proof.receipt).unwrap_or_default();
    let cosignatures = proven
        .cosignatures
        .iter()
        .map(|by| json!({ "witness": by.key.to_string(), "at": moment(by.time) }));
    let opened = proven
        .opened
        .iter()
        .map(|(field, value)| (field.label().to_owned(), told::opened_value(*field, value)));
    json!({
        "proven": true,
        "says": told::sentence(&proven.receipt),
        "receipt": receipt,
        "index": proven.index,
        "log": proven.origin,
        "size": proven.size,
        "signed_by": proven.signed_by.0,
        "cosignatures": cosignatures.collect::<Vec<_>>(),
        "opened": opened.collect::<Map<_, _>>(),
    })
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        let mut input = std::io::stdin().lock().take(MOST_PROOF + 1);
        let read = input.read_to_end(&mut bytes);
        read.map_err(|fault| Stop::fault(format!("cannot read standard input: {fault}")))?;
        return Ok(bytes);
    }
    files::read(path, MOST_PROOF)?
        .ok_or_else(|| Stop::usage(format!("there is no file `{}`", shown(path))))
}

/// A proof is an object of ours, with a checkpoint of at most 1,000,000 bytes.
const MOST_PROOF: u64 = 4 << 20;
/// Twice the longest trust bundle.
const MOST_TRUST: u64 = 4 << 20;
