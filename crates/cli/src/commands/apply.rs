//! `apply`: a changed configuration counts from here on. What widens wants the approver's key (PROFILE §10).

use lychgate_core::Digest;
use lychgate_core::act::Version;
use lychgate_core::display::escape;
use lychgate_keys::verdict::ConfigurationChange;
use lychgate_server::protocol::{ChangeView, Effect, Plan};
use lychgate_server::{Request, Response};
use serde_json::json;

use super::Context;
use crate::approver;
use crate::args::Apply;
use crate::configuration::{Written, problems};
use crate::connection::{Connection, answer};
use crate::outcome::Outcome;
use crate::passphrase::Source;
use crate::places::now;
use crate::terminal::{Style, Terminal, bold, count, dim, styled, text};

/// Applies what stands in the files.
pub(crate) fn run(args: &Apply, context: &mut Context<'_>) -> Outcome {
    let written = Written::read(&context.places)?;
    // Every problem with its line, before a gate is started for it.
    written
        .compile(&context.places)
        .map_err(|found| problems(&context.places, &found))?;
    let mut connection = Connection::open(context)?;
    let plan = plan(&mut connection, &written, context)?;
    if plan.from == plan.to {
        if args.output.json {
            context
                .terminal
                .document(&json!({ "changed": false, "digest": plan.to.to_base64url() }));
        } else {
            context.terminal.line(&[text(
                "Nothing changed: this configuration is the applied one.",
            )]);
        }
        return Ok(());
    }
    if !args.output.json {
        show(&plan.changes, context.terminal);
    }
    let source = args.passphrase.passphrase_fd.into();
    let applied = Change {
        plan,
        source,
        always: false,
    }
    .apply(&mut connection, &written, context, || Ok(()))?;
    if args.output.json {
        let changes = applied
            .changes
            .iter()
            .map(|change| json!({ "effect": change.effect, "text": change.text }));
        context.terminal.document(&json!({
            "changed": true, "digest": applied.digest.to_base64url(), "policy_epoch": applied.epoch,
            "changes": changes.collect::<Vec<_>>(), "pass_env_unset": applied.unset,
        }));
    } else {
        said(&applied, context.terminal);
    }
    Ok(())
}

/// What applying the configuration would change.
pub(crate) fn plan(
    connection: &mut Connection,
    written: &Written,
    context: &Context<'_>,
) -> Outcome<Plan> {
    let request = Request::Plan {
        configuration: written.for_gate(&context.places),
    };
    answer!(connection.ask(&request)?, Response::Plan { plan } => plan)
}

/// A change that was shown and is about to be made.
pub(crate) struct Change {
    /// As the gate planned it.
    pub(crate) plan: Plan,
    /// Where the passphrase comes from.
    pub(crate) source: Source,
    /// Whether the passphrase is wanted although nothing widens.
    pub(crate) always: bool,
}

/// A change that was made.
pub(crate) struct Applied {
    pub(crate) digest: Digest,
    pub(crate) epoch: u64,
    pub(crate) changes: Vec<ChangeView>,
    /// Variables that servers are to be given and that the gate does not have.
    pub(crate) unset: Vec<String>,
}

impl Change {
    /// Asks for the passphrase where one is wanted, then lets `write` bring the files in line, then applies: so nothing
    /// is written before the key was opened.
    pub(crate) fn apply(
        self,
        connection: &mut Connection,
        written: &Written,
        context: &mut Context<'_>,
        write: impl FnOnce() -> Outcome,
    ) -> Outcome<Applied> {
        let Self {
            plan,
            source,
            always,
        } = self;
        let key_file = context.places.approver()?;
        let yes = if plan.wants_approver || (always && key_file.exists()) {
            let _ = context.terminal.flush();
            let key = approver::open(&key_file, source)?;
            let change = approver::sign(&key, |mark| ConfigurationChange {
                version: Version::V1,
                object_type: Default::default(),
                from: Some(plan.from),
                to: plan.to,
                at: now(),
                challenge: plan.challenge.clone(),
                mark,
            })?;
            Some(change)
        } else {
            None
        };
        write()?;
        let request = Request::Apply {
            configuration: written.for_gate(&context.places),
            yes,
        };
        let (digest, unset) = answer!(connection.ask(&request)?, Response::Applied { digest, unset } => (digest, unset))?;
        let status =
            answer!(connection.ask(&Request::Status)?, Response::Status { status } => status)?;
        Ok(Applied {
            digest,
            epoch: status.epochs.policy_epoch,
            changes: plan.changes,
            unset,
        })
    }
}

/// What narrows and what widens.
pub(crate) fn show(changes: &[ChangeView], terminal: &mut Terminal) {
    let of = |effect: Effect| changes.iter().filter(move |change| change.effect == effect);
    for (effect, style, head) in [
        (Effect::Widens, Style::Yellow, "Widens"),
        (Effect::Narrows, Style::Green, "Narrows"),
        (Effect::Neutral, Style::Plain, "Otherwise"),
    ] {
        let found = of(effect).count();
        if found == 0 {
            continue;
        }
        terminal.line(&[
            bold(head),
            dim(format!("  {}", count(found, "change", "changes"))),
        ]);
        for change in of(effect) {
            let sign = match effect {
                Effect::Widens => "+",
                Effect::Narrows => "-",
                Effect::Neutral => "·",
            };
            terminal.line(&[styled(style, format!("  {sign} {}", change.text))]);
        }
        terminal.gap();
    }
}

/// The change is made.
pub(crate) fn said(applied: &Applied, terminal: &mut Terminal) {
    terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("applied: policy epoch {}", applied.epoch)),
        dim(format!("  digest {}", applied.digest.to_base64url())),
    ]);
    if !applied.unset.is_empty() {
        let names = applied
            .unset
            .iter()
            .map(|name| escape(name))
            .collect::<Vec<_>>()
            .join(", ");
        terminal.wrapped(
            &[styled(Style::Yellow, "  pass_env: ")],
            &text(format!(
                "the gate does not have {names}. It keeps the values it was started with: where they are set, run \
                 `lychgate gate stop` and then `lychgate pending`, which starts it again."
            )),
        );
    }
}
