//! `keys`: who is believed, fresh keys, another passphrase.

use lychgate_core::act::Version;
use lychgate_keys::verdict::KeyChange;
use lychgate_keys::{ApproverKey, Role, TrustBundle};
use lychgate_server::{Request, Response};
use serde_json::json;

use super::Context;
use crate::approver::{self, key_fault};
use crate::args::{ChangePassphrase, GateRole, Keys, KeysCommand, Output, Rotate};
use crate::connection::{Connection, answer};
use crate::outcome::Outcome;
use crate::passphrase::Source;
use crate::places::now;
use crate::terminal::{Style, dim, styled, text};

/// Runs one of them.
pub(crate) fn run(args: &Keys, context: &mut Context<'_>) -> Outcome {
    match &args.what {
        KeysCommand::List(output) => list(*output, context),
        KeysCommand::Rotate(args) => rotate(args, context),
        KeysCommand::Export => export(context),
        KeysCommand::Passphrase(args) => passphrase(args, context),
        KeysCommand::Approver(what) => super::approvers::run(what, context),
    }
}

fn bundle(context: &Context<'_>) -> Outcome<TrustBundle> {
    TrustBundle::read(&context.places.folder()?.trust()).map_err(key_fault)
}

fn list(output: Output, context: &mut Context<'_>) -> Outcome {
    let bundle = bundle(context)?;
    if output.json {
        let keys = bundle.keys().iter().map(|key| {
            json!({
                "role": key.role().word(), "key_id": key.key_id().0, "valid_from": key.valid_from().to_string(),
                "retired_at": key.retired_at().map(|at| at.to_string()),
            })
        });
        context
            .terminal
            .document(&json!({ "keys": keys.collect::<Vec<_>>() }));
        return Ok(());
    }
    let mut rows = vec![["role", "key", "since", "state"].map(dim).to_vec()];
    rows.extend(bundle.keys().iter().map(|key| {
        let state = match key.retired_at() {
            None => styled(Style::Green, "current"),
            Some(at) => dim(format!("retired {at}")),
        };
        vec![
            text(key.role()),
            text(&key.key_id().0),
            text(key.valid_from()),
            state,
        ]
    }));
    context.terminal.table(&rows);
    if bundle.current(Role::Approver).is_none() {
        context.terminal.gap();
        context.terminal.line(&[styled(
            Style::Yellow,
            "  no approver: what would ask is denied",
        )]);
    }
    Ok(())
}

fn export(context: &mut Context<'_>) -> Outcome {
    let bytes = bundle(context)?.to_bytes().map_err(key_fault)?;
    context.terminal.bytes(&bytes);
    context.terminal.bytes(b"\n");
    Ok(())
}

fn rotate(args: &Rotate, context: &mut Context<'_>) -> Outcome {
    let role = match args.role {
        GateRole::Ped => Role::Ped,
        GateRole::Sink => Role::Sink,
        GateRole::Ledger => Role::Ledger,
    };
    let mut connection = Connection::open(context)?;
    // The gate makes the key first, so that the yes is to this one and to no other.
    let prepared = connection.ask(&Request::PrepareKey { role })?;
    let (public, new, challenge) = answer!(
        prepared, Response::KeyPrepared { public, key_id, challenge } => (public, key_id, challenge)
    )?;
    context
        .terminal
        .line(&[dim(format!("  the new {role} key  ")), text(&new.0)]);
    let _ = context.terminal.flush();
    let key = approver::open(
        &context.places.approver()?,
        args.passphrase.passphrase_fd.into(),
    )?;
    let change = approver::sign(&key, |mark| KeyChange {
        version: Version::V1,
        object_type: Default::default(),
        role,
        public,
        at: now(),
        challenge,
        mark,
    })?;
    let request = Request::Rotate { change };
    let key_id = answer!(connection.ask(&request)?, Response::Rotated { key_id } => key_id)?;
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("{role} signs with {} now", key_id.0)),
    ]);
    context.terminal.line(&[dim(
        "  The gate has ended; the next command starts it with the new key.",
    )]);
    Ok(())
}

fn passphrase(args: &ChangePassphrase, context: &mut Context<'_>) -> Outcome {
    let path = context.places.approver()?;
    let old = Source::from(args.passphrase.passphrase_fd).ask("Present passphrase: ")?;
    // A wrong one is told before a new one is asked for.
    ApproverKey::open(&path, &old).map_err(key_fault)?;
    let new = Source::from(args.new_passphrase_fd.or(args.passphrase.passphrase_fd))
        .ask_new("New passphrase: ")?;
    ApproverKey::change_passphrase(&path, &old, &new).map_err(key_fault)?;
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text("the passphrase is changed"),
    ]);
    Ok(())
}
