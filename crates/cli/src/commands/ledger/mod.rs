//! `ledger`: the record of everything the gate decided and did, for those who do not take its word for it.

mod anchor;
mod archive;
mod audit;
mod export;
mod folder;
mod prove;
mod prune;
mod show;
mod source;

use std::path::Path;

use lychgate_core::json::{self, Limits};
use lychgate_core::receipt::Receipt;
use lychgate_keys::TrustBundle;

pub(in crate::commands) use self::audit::{Audit, audit};
use super::Context;
use crate::approver::key_fault;
use crate::args::{Ledger, LedgerCommand};
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::shown;

/// Runs one of them.
pub(crate) fn run(args: &Ledger, context: &mut Context<'_>) -> Outcome {
    match &args.what {
        LedgerCommand::Show(args) => show::run(args, context),
        LedgerCommand::Prove(args) => prove::run(args, context),
        LedgerCommand::Export(args) => export::run(args, context),
        LedgerCommand::Verify(args) => audit::run(args, context),
        LedgerCommand::Anchor(args) => anchor::run(args, context),
        LedgerCommand::Prune(args) => prune::run(args, context),
    }
}

/// A receipt from its bytes; `None` when they are none.
fn receipt(bytes: &[u8]) -> Option<Receipt> {
    let value = json::parse(bytes, &Limits::OBJECT).ok()?;
    json::from_value(&value).ok()
}

/// The trust bundle that a flag names, else the gate's own.
fn trust(named: Option<&Path>, context: &Context<'_>) -> Outcome<TrustBundle> {
    let Some(path) = named else {
        return TrustBundle::read(&context.places.folder()?.trust()).map_err(key_fault);
    };
    let bytes = files::read(path, MOST_TRUST)?
        .ok_or_else(|| Stop::usage(format!("there is no file `{}`", shown(path))))?;
    TrustBundle::from_bytes(&bytes)
        .map_err(|fault| Stop::usage(format!("`{}`: {fault}", shown(path))))
}

/// Twice the longest trust bundle.
const MOST_TRUST: u64 = 4 << 20;
