//! `canon` and `digest`: JSON on standard input, read by the one strict parser (PROFILE §3).

use std::io::Read as _;

use lychgate_core::digest::Algorithm;
use lychgate_core::display::escape;
use lychgate_core::json::{self, Limits, Value};
use lychgate_core::{Digest, jcs};

use crate::args;
use crate::outcome::{Outcome, Stop};
use crate::terminal::{Terminal, dim, text};

/// Prints the canonical bytes: exactly those, when standard output is not a terminal.
pub(crate) fn canon(terminal: &mut Terminal) -> Outcome {
    let bytes = jcs::to_bytes(&parsed()?);
    if !terminal.is_screen() {
        terminal.bytes(&bytes);
        return Ok(());
    }
    let canonical = String::from_utf8_lossy(&bytes);
    let shown = escape(&canonical).replace("\\\\", "\\");
    terminal.line(&[text(&shown)]);
    if shown != canonical {
        terminal.note(&[dim(
            "(some characters are shown escaped here; a pipe or file gets the bytes)",
        )]);
    }
    Ok(())
}

/// Prints the digest of the canonical bytes.
pub(crate) fn digest(args: &args::Digest, terminal: &mut Terminal) -> Outcome {
    let algorithm = match args.algorithm {
        args::Hash::Sha256 => Algorithm::Sha256,
        args::Hash::Sha384 => Algorithm::Sha384,
        args::Hash::Sha512 => Algorithm::Sha512,
    };
    let digest = Digest::of_value(algorithm, &parsed()?).to_base64url();
    if args.output.json {
        terminal.document(&serde_json::json!({ "algorithm": algorithm.name(), "digest": digest }));
    } else {
        terminal.line(&[text(digest)]);
    }
    Ok(())
}

fn parsed() -> Outcome<Value> {
    let most = Limits::CANON.max_bytes as u64;
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(most + 1);
    input
        .read_to_end(&mut bytes)
        .map_err(|fault| Stop::fault(format!("cannot read standard input: {fault}")))?;
    json::parse(&bytes, &Limits::CANON).map_err(|fault| Stop::refused(format!("refused: {fault}")))
}
