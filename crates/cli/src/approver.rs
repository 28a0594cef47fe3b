//! The approver's key, opened in this process and nowhere else: the gate is handed signatures only (PROFILE §10).

use std::path::Path;

use lychgate_core::signed::{Mark, Signed};
use lychgate_keys::{ApproverKey, KeyFault, SigningKey};

use crate::outcome::{Outcome, Stop};
use crate::passphrase::Source;

/// Asks for the passphrase and opens the key. On a terminal a slip of the finger may be mended twice.
pub(crate) fn open(path: &Path, source: Source) -> Outcome<SigningKey> {
    if !path.exists() {
        return Err(Stop::refused(
            "there is no approver here (`init --no-approver`), so nothing can be signed",
        ));
    }
    let mut tries = if source.can_ask_again() { 3 } else { 1 };
    let mut prompt = "Approver's passphrase: ";
    loop {
        let passphrase = source.ask(prompt)?;
        tries -= 1;
        match ApproverKey::open(path, &passphrase) {
            Ok(key) => return Ok(key),
            Err(KeyFault::WrongPassphrase { .. }) if tries > 0 => {
                prompt = "Not that one. Approver's passphrase: "
            }
            Err(fault) => return Err(key_fault(fault)),
        }
    }
}

/// Signs what a person decided. `make` is handed the mark the signature goes into.
pub(crate) fn sign<T: Signed>(key: &SigningKey, make: impl FnOnce(Mark) -> T) -> Outcome<T> {
    let mut object = make(Mark::unsigned(key.key_id().clone()));
    key.sign(&mut object).map_err(Stop::fault)?;
    Ok(object)
}

/// What a fault of a key is worth.
pub(crate) fn key_fault(fault: KeyFault) -> Stop {
    match fault {
        KeyFault::WrongPassphrase { .. } => {
            Stop::refused("the passphrase does not open the approver's key; nothing was done")
        }
        KeyFault::Io { .. } | KeyFault::Crypto(_) | KeyFault::Entropy(_) | KeyFault::Shape(_) => {
            let source = std::error::Error::source(&fault).map(|source| format!(": {source}"));
            Stop::fault(format!("{fault}{}", source.unwrap_or_default()))
        }
        fault => Stop::usage(fault),
    }
}
