//! `keys approver`: another approver, or one less. An approver of now says yes to exactly that key.

use lychgate_core::act::Version;
use lychgate_core::display::escape;
use lychgate_keys::verdict::{ApproverChange, Membership, PublicKey};
use lychgate_keys::{ApproverKey, Role, TrustBundle};
use lychgate_server::{Request, Response};

use super::Context;
use crate::approver::{self, key_fault};
use crate::args::{AddApprover, ApproverCommand, Passphrase, RetireApprover};
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::passphrase::Source;
use crate::places::now;
use crate::terminal::{Style, dim, styled, text};

/// Runs one of them.
pub(crate) fn run(what: &ApproverCommand, context: &mut Context<'_>) -> Outcome {
    match what {
        ApproverCommand::Add(args) => add(args, context),
        ApproverCommand::Retire(args) => retire(args, context),
    }
}

fn add(args: &AddApprover, context: &mut Context<'_>) -> Outcome {
    let path = context.places.approver_named(Some(&args.name))?;
    if path.exists() {
        return Err(Stop::usage(format!(
            "there is a key of `{}` here already",
            escape(&args.name)
        )));
    }
    let signer = context.places.approver_named(args.signer.as_deref())?;
    // Whoever says yes does so first: without it no key is made.
    let key = approver::open(&signer, args.passphrase.passphrase_fd.into())?;
    let source = Source::from(args.new_passphrase_fd.or(args.passphrase.passphrase_fd));
    let passphrase = source.ask_new(&format!("New passphrase of {}: ", args.name))?;
    let (id, public) = ApproverKey::create(&path, &passphrase, now()).map_err(key_fault)?;
    let added = change(&key, PublicKey(public), Membership::Add, context);
    if let Err(stop) = added {
        // Nobody believes it: it is as if it had never been made.
        let _ = std::fs::remove_file(&path);
        return Err(stop);
    }
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("{} can approve now, with the key", args.name)),
    ]);
    context.terminal.line(&[text(format!("  {}", id.0))]);
    context.terminal.line(&[
        dim("  lychgate approve ID --as "),
        dim(&args.name),
        dim("    To ask several for one call: [approvers.NAME] in lychgate.toml"),
    ]);
    Ok(())
}

fn retire(args: &RetireApprover, context: &mut Context<'_>) -> Outcome {
    let bundle = TrustBundle::read(&context.places.folder()?.trust()).map_err(key_fault)?;
    let named = bundle.approvers().find(|key| key.key_id().0 == args.key);
    let public = named.map(|key| PublicKey(*key.public())).ok_or_else(|| {
        Stop::usage(format!("`{}` is no approver's key", escape(&args.key)))
            .try_this("lychgate keys list")
    })?;
    let Passphrase { passphrase_fd } = args.passphrase;
    let signer = context.places.approver_named(args.signer.as_deref())?;
    let key = approver::open(&signer, passphrase_fd.into())?;
    change(&key, public, Membership::Retire, context)?;
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("{} {} approves no more", Role::Approver, args.key)),
    ]);
    Ok(())
}

fn change(
    key: &lychgate_keys::SigningKey,
    public: PublicKey,
    change: Membership,
    context: &Context<'_>,
) -> Outcome {
    let mut connection = Connection::open(context)?;
    let challenge = answer!(connection.ask(&Request::Challenge)?, Response::Challenge { challenge } => challenge)?;
    let change = approver::sign(key, |mark| ApproverChange {
        version: Version::V1,
        object_type: Default::default(),
        public,
        change,
        at: now(),
        challenge,
        mark,
    })?;
    let request = Request::ChangeApprover { change };
    answer!(connection.ask(&request)?, Response::ApproverChanged { key_id } => drop(key_id))
}
