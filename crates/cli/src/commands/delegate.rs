//! `delegate`: handing a bounded part of one's standing to a worker, and checking what was handed out (draft §5.9).

use std::path::Path;

use lychgate_core::delegation::{
    Budget, Chain, ClassSet, Delegation, DelegationFile, Grant, MOST_BYTES, Spend, TextSet, ToolSet,
};
use lychgate_core::display::escape;
use lychgate_gate::DelegationRequest;
use lychgate_keys::{TrustBundle, verify_chain_at};
use lychgate_server::protocol::DelegationView;
use lychgate_server::{Request, Response};
use serde_json::{Value, json};

use super::Context;
use crate::args::{Delegate, DelegateVerb, DelegateVerify, Output};
use crate::connection::{Connection, answer};
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::{now, shown};
use crate::terminal::{Style, Terminal, bold, dim, styled, text};

/// Delegates, or lists what was delegated.
pub(crate) fn run(args: &Delegate, context: &mut Context<'_>) -> Outcome {
    match &args.verb {
        None => delegate(args, context),
        Some(DelegateVerb::List(output)) => list(*output, context),
        // Needs no place of the user's, and is run before there is a context.
        Some(DelegateVerb::Verify(args)) => verify(args, context.terminal),
    }
}

/// What a worker was handed, from its file.
pub(crate) fn read(path: &Path) -> Outcome<DelegationFile> {
    let bytes = files::read(path, MOST_BYTES as u64)?
        .ok_or_else(|| Stop::usage(format!("there is no file `{}`", shown(path))))?;
    DelegationFile::parse(&bytes)
        .map_err(|fault| Stop::usage(format!("`{}`: {}", shown(path), escape(&fault.to_string()))))
}

fn delegate(args: &Delegate, context: &mut Context<'_>) -> Outcome {
    let request = Request::Delegate {
        request: request(args)?,
        from: args.from.as_deref().map(read).transpose()?,
    };
    let mut connection = Connection::open(context)?;
    let mut response = connection.ask(&request)?;
    while let Response::Asked { ticket } = response {
        let terminal = &mut *context.terminal;
        terminal.note(&[text(format!(
            "A person is asked: lychgate approve {ticket}"
        ))]);
        let _ = terminal.flush();
        response = connection.hear()?;
    }
    let file = answer!(response, Response::Delegated { file, .. } => file)?;
    let bytes = file.to_bytes().map_err(Stop::fault)?;
    let Some(out) = &args.out else {
        let document: Value = serde_json::from_slice(&bytes).map_err(Stop::fault)?;
        context.terminal.document(&document);
        return Ok(());
    };
    files::write(out, &bytes)?;
    let chain = file.chain().map_err(Stop::fault)?;
    if args.output.json {
        context.terminal.document(&links(&chain));
        return Ok(());
    }
    let terminal = &mut *context.terminal;
    terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("written to {}", shown(out))),
    ]);
    show(&chain, terminal);
    terminal.line(&[dim(
        "The file holds a secret. It is of use to that user alone, and allows nothing by itself.",
    )]);
    Ok(())
}

fn request(args: &Delegate) -> Outcome<DelegationRequest> {
    let usage = |what: &'static str| move |fault| Stop::usage(format!("{what}: {fault}"));
    let texts = |what, texts: &[String]| {
        let set = (!texts.is_empty()).then(|| TextSet::of(texts.iter().cloned()));
        set.transpose().map_err(usage(what))
    };
    let spend = sorted(&args.spend)?;
    Ok(DelegationRequest {
        child_agent_id: args
            .to
            .clone()
            .ok_or_else(|| Stop::usage("--to names nobody"))?,
        grant: Grant {
            tools: ToolSet::of(args.tool.iter().cloned()).map_err(usage("--tool"))?,
            consequence_classes: ClassSet::of(args.class.iter().copied())
                .map_err(usage("--class"))?,
            destinations: texts("--destination", &args.destination)?,
            purposes: texts("--purpose", &args.purpose)?,
            further_depth: args.depth,
            budget: Budget {
                acts: args.acts,
                high_risk_acts: args.high_risk_acts,
                rate: args.rate,
                spend,
            },
        },
        uid: args
            .uid
            .unwrap_or_else(|| rustix::process::geteuid().as_raw()),
        lifetime_ms: args.expires,
    })
}

fn sorted(spends: &[Spend]) -> Outcome<Option<Vec<Spend>>> {
    if spends.is_empty() {
        return Ok(None);
    }
    let mut spends = spends.to_vec();
    spends.sort();
    if spends
        .windows(2)
        .any(|two| matches!(two, [one, other] if one.unit == other.unit))
    {
        return Err(Stop::usage("--spend names a unit twice"));
    }
    Ok(Some(spends))
}

fn list(output: Output, context: &mut Context<'_>) -> Outcome {
    let mut connection = Connection::open(context)?;
    let response = connection.ask(&Request::Delegations)?;
    let found = answer!(response, Response::Delegations { delegations } => delegations)?;
    if output.json {
        let all = found.iter().map(listed).collect::<Vec<_>>();
        context.terminal.document(&json!({ "delegations": all }));
        return Ok(());
    }
    let terminal = &mut *context.terminal;
    if found.is_empty() {
        terminal.line(&[text("Nothing is delegated.")]);
    }
    for view in &found {
        show_link(&view.link, terminal);
        let spent = view.spent.iter();
        let spent = spent.map(|(unit, amount)| format!(", {amount} {}", escape(unit)));
        let used = format!("  used     {} acts{}", view.acts, spent.collect::<String>());
        terminal.line(&[text(used)]);
    }
    Ok(())
}

fn listed(view: &DelegationView) -> Value {
    let spent = view.spent.iter();
    let spent = spent.map(|(unit, amount)| (unit.clone(), Value::from(amount.to_string())));
    json!({
        "link": link(&view.link),
        "used": { "acts": view.acts, "spend": spent.collect::<serde_json::Map<_, _>>() },
    })
}

/// Verifies a file against a trust bundle, with no gate, no store and no network.
pub(crate) fn verify(args: &DelegateVerify, terminal: &mut Terminal) -> Outcome {
    let trust = files::read(&args.trust, MOST_TRUST)?
        .ok_or_else(|| Stop::usage(format!("there is no file `{}`", shown(&args.trust))))?;
    let bundle = TrustBundle::from_bytes(&trust).map_err(Stop::usage)?;
    let file = read(&args.file)?;
    let at = args.at.unwrap_or_else(now);
    let verified = file.chain().map_err(|broken| broken.to_string());
    let verified = verified.and_then(|chain| {
        let believed = verify_chain_at(&bundle, &chain, at);
        believed.map(|()| chain).map_err(|not| not.to_string())
    });
    match verified {
        Ok(chain) if args.output.json => {
            let mut document = links(&chain);
            if let Some(object) = document.as_object_mut() {
                object.insert("holds".to_owned(), Value::Bool(true));
            }
            terminal.document(&document);
            Ok(())
        }
        Ok(chain) => {
            terminal.line(&[styled(Style::Green, "✓ it holds")]);
            show(&chain, terminal);
            terminal.line(&[dim(
                "Whether a link was revoked since, and what is left of its budget, only the gate knows.",
            )]);
            Ok(())
        }
        Err(reason) => {
            if args.output.json {
                terminal.document(&json!({ "holds": false, "reason": reason }));
            }
            Err(Stop::refused(format!(
                "the delegation does not hold: {}",
                escape(&reason)
            )))
        }
    }
}

fn show(chain: &Chain, terminal: &mut Terminal) {
    chain
        .links()
        .iter()
        .for_each(|link| show_link(link, terminal));
}

fn show_link(link: &Delegation, terminal: &mut Terminal) {
    let grant = &link.grant;
    let (parent, child) = (link.parent_agent_id.as_str(), link.child_agent_id.as_str());
    terminal.line(&[
        bold(format!("{parent} → {child}")),
        dim(format!("  {}", link.delegation_id)),
    ]);
    let words = |words: &mut dyn Iterator<Item = String>| words.collect::<Vec<_>>().join(", ");
    let mut row = |label: &str, value: String| {
        terminal.line(&[text(format!("  {label:<8} {value}"))]);
    };
    row(
        "tools",
        words(&mut grant.tools.iter().map(|tool| escape(tool))),
    );
    let classes = grant.consequence_classes.iter();
    row(
        "classes",
        words(&mut classes.map(|class| class.name().to_owned())),
    );
    for (label, set) in [("to", &grant.destinations), ("for", &grant.purposes)] {
        if let Some(set) = set {
            row(label, words(&mut set.iter().map(|one| escape(one))));
        }
    }
    row(
        "depth",
        format!("{}, {} further", link.delegation_depth, grant.further_depth),
    );
    let limits = limits(&grant.budget);
    if !limits.is_empty() {
        row("at most", limits.join(", "));
    }
    row(
        "until",
        format!("{} for user {}", link.expires_at, link.holder.uid),
    );
}

fn limits(budget: &Budget) -> Vec<String> {
    let mut limits = Vec::new();
    limits.extend(budget.acts.map(|acts| format!("{acts} acts")));
    let high_risk = budget.high_risk_acts;
    limits.extend(high_risk.map(|acts| format!("{acts} acts beyond INFORMATIONAL")));
    limits.extend(
        budget
            .rate
            .map(|rate| format!("{} acts in any {} ms", rate.acts, rate.window_ms.millis())),
    );
    let spends = budget.spend.iter().flatten();
    limits.extend(spends.map(|spend| format!("{} {}", spend.amount, spend.unit.as_str())));
    if budget.spend.as_ref().is_some_and(Vec::is_empty) {
        limits.push("no value".to_owned());
    }
    limits
}

fn links(chain: &Chain) -> Value {
    json!({ "chain": chain.links().iter().map(link).collect::<Vec<_>>() })
}

/// A link as it is signed.
fn link(link: &Delegation) -> Value {
    lychgate_core::json::to_canonical(link)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// Twice the longest trust bundle.
const MOST_TRUST: u64 = 4 << 20;
