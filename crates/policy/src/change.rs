//! What a new configuration narrows and widens (PROFILE §10): what widens wants the approver. In doubt it widens.

mod approvers;
mod delegation;
mod ledger;
mod purposes;
mod server;
mod telemetry;

use std::collections::BTreeSet;

use lychgate_core::display;

use crate::applied::Applied;
use crate::model::{Limits, Model, Profile};

/// Which way a change goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Less passes than before.
    Narrows,
    /// Neither.
    Neutral,
    /// More may pass than before, or nobody can tell: wants the approver.
    Widens,
}

/// One difference between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which way it goes.
    pub effect: Effect,
    /// What changes, escaped for a terminal, without values of the environment.
    pub text: String,
}

/// Compares two configurations; `None` is the state before the first apply. Empty when they are the same.
#[must_use]
pub fn changes(old: Option<&Applied>, new: &Applied) -> Vec<Change> {
    let mut list = List(Vec::new());
    match old {
        Some(old) => compare(&old.model, &new.model, &mut list),
        None => {
            list.neutral(format!(
                "first configuration, profile {}",
                new.model.profile.name()
            ));
            // Before the first apply nothing could be called, so only servers and the allowlist widen.
            let mut nothing = new.model.clone();
            nothing.servers.clear();
            nothing.agent.allow.clear();
            compare(&nothing, &new.model, &mut list);
        }
    }
    list.0
}

/// The changes found so far.
pub(crate) struct List(Vec<Change>);

impl List {
    fn push(&mut self, effect: Effect, text: String) {
        self.0.push(Change { effect, text });
    }

    fn widens(&mut self, text: String) {
        self.push(Effect::Widens, text);
    }

    fn narrows(&mut self, text: String) {
        self.push(Effect::Narrows, text);
    }

    fn neutral(&mut self, text: String) {
        self.push(Effect::Neutral, text);
    }

    /// A switch of which one side lets more through.
    fn switch(&mut self, what: &str, old: bool, new: bool, wide: bool) {
        if old != new {
            let effect = if new == wide {
                Effect::Widens
            } else {
                Effect::Narrows
            };
            self.push(effect, format!("{what}: {old} -> {new}"));
        }
    }

    /// A bound of which more lets more through.
    fn bound(&mut self, what: &str, old: u64, new: u64) {
        if old != new {
            let effect = if new > old {
                Effect::Widens
            } else {
                Effect::Narrows
            };
            self.push(effect, format!("{what}: {old} -> {new}"));
        }
    }

    /// Anything whose change nobody can rank.
    fn doubt<T: PartialEq>(&mut self, what: &str, old: &T, new: &T) {
        if old != new {
            self.widens(format!("{what} changes"));
        }
    }
}

fn compare(old: &Model, new: &Model, list: &mut List) {
    if old.profile != new.profile {
        let effect = if new.profile == Profile::Balanced {
            Effect::Widens
        } else {
            Effect::Narrows
        };
        list.push(
            effect,
            format!("profile: {} -> {}", old.profile.name(), new.profile.name()),
        );
    }
    list.switch("unattended", old.unattended, new.unattended, false);
    list.doubt("principal", &old.principal, &new.principal);
    list.doubt("agent id", &old.agent.id, &new.agent.id);
    list.bound(
        "agent max_depth",
        u64::from(old.agent.max_depth),
        u64::from(new.agent.max_depth),
    );
    list.doubt("purpose", &old.purpose, &new.purpose);
    purposes::changes(&old.purposes, &new.purposes, list);
    let (before, after) = (old.consent.required, new.consent.required);
    list.switch("consent required", before, after, false);
    match (old.vouch, new.vouch) {
        (one, other) if one == other => {}
        (_, None) => list.narrows("the operator no longer vouches for a channel".to_owned()),
        (_, Some(_)) => list.widens("what the operator vouches for changes".to_owned()),
    }
    limits(&old.limits, &new.limits, list);
    if old.reconcile != new.reconcile {
        list.neutral("when acts in doubt are looked up changes".to_owned());
    }
    allow(old, new, list);
    delegation::changes(old, new, list);
    roots(old, new, list);
    jurisdictions(old, new, list);
    approvers::changes(&old.approvers, &new.approvers, list);
    ledger::changes(&old.ledger, &new.ledger, list);
    telemetry::changes(&old.telemetry, &new.telemetry, list);
    server::servers(old, new, list);
}

fn limits(old: &Limits, new: &Limits, list: &mut List) {
    for (what, old, new) in [
        ("limit authority (ms)", old.authority, new.authority),
        ("limit permit (ms)", old.permit, new.permit),
        ("limit ticket (ms)", old.ticket, new.ticket),
        ("limit hold (ms)", old.hold, new.hold),
        ("limit decision (ms)", old.decision, new.decision),
        (
            "limit arguments_bytes",
            old.arguments_bytes,
            new.arguments_bytes,
        ),
        ("limit message_bytes", old.message_bytes, new.message_bytes),
        ("limit in_flight", old.in_flight, new.in_flight),
    ] {
        list.bound(what, old, new);
    }
}

fn allow(old: &Model, new: &Model, list: &mut List) {
    let covered = |rules: &[String], rule: &str| {
        let server = rule.split_once('/').map_or(rule, |(server, _)| server);
        rules.iter().any(|one| one == rule || one == server)
    };
    for rule in new
        .agent
        .allow
        .iter()
        .filter(|rule| !old.agent.allow.contains(rule))
    {
        let text = format!("allowed: {}", shown(rule));
        let effect = if covered(&old.agent.allow, rule) {
            Effect::Neutral
        } else {
            Effect::Widens
        };
        list.push(effect, text);
    }
    for rule in old
        .agent
        .allow
        .iter()
        .filter(|rule| !new.agent.allow.contains(rule))
    {
        list.narrows(format!("no longer allowed: {}", shown(rule)));
    }
}

fn roots(old: &Model, new: &Model, list: &mut List) {
    let names = old
        .roots
        .keys()
        .chain(new.roots.keys())
        .collect::<BTreeSet<_>>();
    for name in names {
        match (old.roots.get(name), new.roots.get(name)) {
            // A root matters through the servers that name it; they are compared on their own.
            (None, Some(root)) => {
                list.neutral(format!("root {name}: declared at {}", shown(&root.path)))
            }
            (Some(_), None) => list.neutral(format!("root {name}: no longer declared")),
            (Some(before), Some(after)) => {
                if before.path != after.path {
                    list.widens(format!(
                        "root {name}: {} -> {}",
                        shown(&before.path),
                        shown(&after.path)
                    ));
                }
                list.switch(
                    &format!("root {name} recoverable"),
                    before.recoverable,
                    after.recoverable,
                    true,
                );
            }
            (None, None) => {}
        }
    }
}

fn jurisdictions(old: &Model, new: &Model, list: &mut List) {
    match (&old.jurisdictions, &new.jurisdictions) {
        (None, None) => {}
        (None, Some(_)) => list.narrows("destinations need an allowed jurisdiction".to_owned()),
        (Some(_), None) => list.widens("destinations no longer need a jurisdiction".to_owned()),
        (Some(before), Some(after)) => {
            for code in after.iter().filter(|code| !before.contains(code)) {
                list.widens(format!("jurisdiction allowed: {}", shown(code)));
            }
            for code in before.iter().filter(|code| !after.contains(code)) {
                list.narrows(format!("jurisdiction no longer allowed: {}", shown(code)));
            }
        }
    }
    // `root:NAME` entries stand for the places of roots, so with jurisdictions in force a moved root counts too.
    let in_force = old.jurisdictions.is_some() && new.jurisdictions.is_some();
    if old.destinations != new.destinations || (in_force && old.roots != new.roots) {
        let effect = if in_force {
            Effect::Widens
        } else {
            Effect::Neutral
        };
        list.push(effect, "the registry of destinations changes".to_owned());
    }
}

/// Text of the configuration as it may reach a terminal.
fn shown(text: &str) -> String {
    format!("`{}`", display::escape_within(text, 200))
}
