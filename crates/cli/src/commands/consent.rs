//! `consent`: what the agent may do for its principal, until when, and the end of it (draft §4.5).

use lychgate_core::act::Version;
use lychgate_core::display::escape;
use lychgate_core::id::ConsentId;
use lychgate_core::outside::ten;
use lychgate_core::receipt::Approver;
use lychgate_keys::SystemEntropy;
use lychgate_keys::verdict::{ConsentGrant, ConsentTerms, Reason, Text};
use lychgate_server::protocol::{ConsentView, ControlAnswer, ControlRequest};
use lychgate_server::{Request, Response};
use serde_json::json;

use super::Context;
use super::revoke::ask;
use crate::approver;
use crate::args::{Consent, ConsentCommand, Grant, ListConsents, Withdraw};
use crate::connection::{Connection, answer};
use crate::outcome::{Outcome, Stop};
use crate::places::now;
use crate::terminal::{Style, dim, styled, text};

/// Runs one of them.
pub(crate) fn run(args: &Consent, context: &mut Context<'_>) -> Outcome {
    match &args.what {
        ConsentCommand::Grant(args) => grant(args, context),
        ConsentCommand::Withdraw(args) => withdraw(args, context),
        ConsentCommand::List(args) => list(args, context),
    }
}

struct Standing {
    required: bool,
    principal: String,
    agent: String,
    consents: Vec<ConsentView>,
}

fn standing(connection: &mut Connection, all: bool) -> Outcome<Standing> {
    let answered = ask(connection, ControlRequest::Consents { all })?;
    answer!(answered, ControlAnswer::Consents { required, principal, agent, consents } => Standing {
        required, principal, agent, consents,
    })
}

fn bounded(what: &str) -> Outcome<Text<256>> {
    Text::try_from(what).map_err(|fault| Stop::usage(format!("`{}`: {fault}", escape(what))))
}

fn grant(args: &Grant, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    let standing = standing(&mut connection, false)?;
    let listed = |texts: &[String]| {
        texts
            .iter()
            .map(|text| bounded(text))
            .collect::<Outcome<Vec<_>>>()
    };
    let at = now();
    let random = ten(&SystemEntropy).map_err(|_| Stop::fault("there is no randomness"))?;
    let terms = ConsentTerms {
        consent_id: ConsentId::new(at, random),
        principal_id: bounded(&standing.principal)?,
        agent_id: bounded(&standing.agent)?,
        functions: listed(&args.function)?,
        purposes: listed(&args.purpose)?,
        expires_at: at.after(args.lasts),
    };
    let status = answer!(connection.ask(&Request::Status)?, Response::Status { status } => status)?;
    let grant = match status.approver {
        Approver::None => None,
        Approver::Key => {
            let source = args.passphrase.passphrase_fd.into();
            let key = approver::open(&context.places.approver()?, source)?;
            let challenge = answer!(connection.ask(&Request::Challenge)?, Response::Challenge { challenge } => challenge)?;
            Some(approver::sign(&key, |mark| ConsentGrant {
                version: Version::V1,
                object_type: Default::default(),
                terms: terms.clone(),
                at,
                challenge,
                mark,
            })?)
        }
    };
    let until = terms.expires_at;
    let request = ControlRequest::Consent { terms, grant };
    let consent =
        answer!(ask(&mut connection, request)?, ControlAnswer::Consented { consent } => consent)?;
    if args.output.json {
        context.terminal.document(&json!({
            "consent_id": consent.to_string(), "expires_at": until.to_string(), "required": standing.required,
        }));
        return Ok(());
    }
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("{consent} holds until {until}")),
    ]);
    if !standing.required {
        context.terminal.line(&[dim(
            "  acts need none yet: set `required = true` under `[consent]`, then `lychgate apply`",
        )]);
    }
    Ok(())
}

fn withdraw(args: &Withdraw, context: &mut Context<'_>) -> Outcome {
    let reason = args.reason.as_deref().map(Reason::try_from).transpose();
    let reason = reason.map_err(|fault| Stop::usage(format!("--reason: {fault}")))?;
    let mut connection = Connection::open(context)?;
    let consents: Vec<ConsentId> = if args.all {
        let held = standing(&mut connection, false)?.consents.into_iter();
        held.map(|consent| consent.terms.consent_id).collect()
    } else {
        let parsed = args.ids.iter().map(|id| id.parse::<ConsentId>());
        let parsed = parsed.collect::<Result<_, _>>();
        parsed.map_err(|fault| {
            Stop::usage(escape(&fault.to_string())).try_this("lychgate consent list")
        })?
    };
    if consents.is_empty() {
        return Err(Stop::refused("no consent holds"));
    }
    let names: Vec<String> = consents.iter().map(ToString::to_string).collect();
    let request = ControlRequest::WithdrawConsent { consents, reason };
    let number = answer!(ask(&mut connection, request)?, ControlAnswer::ConsentWithdrawn { number } => number)?;
    if args.output.json {
        context
            .terminal
            .document(&json!({ "control": number, "withdrawn": names }));
        return Ok(());
    }
    for name in names {
        context.terminal.line(&[
            styled(Style::Green, "✓ "),
            text(format!("{name} is withdrawn")),
        ]);
    }
    Ok(())
}

fn list(args: &ListConsents, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    let standing = standing(&mut connection, args.all)?;
    if args.output.json {
        let consents = standing.consents.iter().map(|consent| {
            let terms = &consent.terms;
            let texts = |of: &[Text<256>]| of.iter().map(|one| one.as_str().to_owned()).collect::<Vec<_>>();
            json!({
                "consent_id": terms.consent_id.to_string(), "principal_id": terms.principal_id.as_str(),
                "agent_id": terms.agent_id.as_str(), "functions": texts(&terms.functions),
                "purposes": texts(&terms.purposes), "granted_at": consent.granted_at.to_string(),
                "expires_at": terms.expires_at.to_string(),
                "withdrawn_at": consent.withdrawn_at.map(|at| at.to_string()), "holds": consent.holds,
            })
        });
        context.terminal.document(&json!({
            "required": standing.required, "consents": consents.collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    if standing.consents.is_empty() {
        context.terminal.line(&[text("No consent holds.")]);
    }
    let rows: Vec<_> = standing.consents.iter().map(row).collect();
    context.terminal.table(&rows);
    Ok(())
}

fn row(consent: &ConsentView) -> Vec<crate::terminal::Span> {
    let terms = &consent.terms;
    let all = |of: &[Text<256>], none: &str| {
        let names: Vec<String> = of.iter().map(|one| escape(one.as_str())).collect();
        if names.is_empty() {
            none.to_owned()
        } else {
            names.join(", ")
        }
    };
    let state = match (consent.withdrawn_at, consent.holds) {
        (Some(_), _) => "withdrawn",
        (None, true) => "holds",
        (None, false) => "over",
    };
    vec![
        text(terms.consent_id),
        text(state),
        text(format!("until {}", terms.expires_at)),
        text(escape(terms.agent_id.as_str())),
        text(all(&terms.functions, "all functions")),
        dim(all(&terms.purposes, "all purposes")),
    ]
}
