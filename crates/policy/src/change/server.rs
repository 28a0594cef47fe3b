//! Servers and their catalogue entries, old against new.

use std::collections::BTreeSet;

use lychgate_core::ConsequenceClass;

use super::{Effect, List, shown};
use crate::model::{ErrorMeaning, Model, Profile, Role, Rule, ServerModel, ToolModel};

pub(super) fn servers(old: &Model, new: &Model, list: &mut List) {
    let names = old
        .servers
        .keys()
        .chain(new.servers.keys())
        .collect::<BTreeSet<_>>();
    for name in names {
        match (old.servers.get(name), new.servers.get(name)) {
            (None, Some(added)) => {
                let command = added
                    .command
                    .iter()
                    .map(|word| shown(word))
                    .collect::<Vec<_>>()
                    .join(" ");
                list.widens(format!("server {name}: new, runs {command}"));
                for function in added.definitions.keys() {
                    let entry = effective(name, added, function);
                    let irreversible = if entry.irreversible {
                        ", irreversible"
                    } else {
                        ""
                    };
                    list.widens(format!(
                        "server {name}: tool {}, {}{irreversible}",
                        shown(function),
                        entry.class.name()
                    ));
                }
            }
            (Some(_), None) => list.narrows(format!("server {name}: removed")),
            (Some(before), Some(after)) => server(name, (old, before), (new, after), list),
            (None, None) => {}
        }
    }
}

fn server(
    name: &str,
    (old_model, old): (&Model, &ServerModel),
    (new_model, new): (&Model, &ServerModel),
    list: &mut List,
) {
    let what = |key: &str| format!("server {name}: {key}");
    let strict = old_model.profile == Profile::Strict || new_model.profile == Profile::Strict;
    if old.command != new.command {
        let command = new
            .command
            .iter()
            .map(|word| shown(word))
            .collect::<Vec<_>>()
            .join(" ");
        list.widens(format!("server {name}: now runs {command}"));
    }
    list.doubt(&what("working folder"), &old.cwd, &new.cwd);
    list.doubt(&what("environment"), &old.env, &new.env);
    list.doubt(&what("environment passed on"), &old.pass_env, &new.pass_env);
    list.doubt(&what("entry file"), &old.entry, &new.entry);
    list.bound(&what("timeout (ms)"), old.timeout, new.timeout);
    errors(&what("errors"), old.errors, new.errors, list);
    list.switch(&what("sampling"), old.sampling, new.sampling, true);
    list.switch(&what("elicitation"), old.elicitation, new.elicitation, true);
    roots(name, (old_model, old), (new_model, new), list);
    let functions = old
        .definitions
        .keys()
        .chain(new.definitions.keys())
        .collect::<BTreeSet<_>>();
    for function in functions {
        let what = format!("server {name}: tool {}", shown(function));
        match (old.definitions.get(function), new.definitions.get(function)) {
            (None, Some(_)) => list.widens(format!(
                "{what}: new, {}",
                effective(name, new, function).class.name()
            )),
            (Some(_), None) => list.narrows(format!("{what}: removed")),
            (before, after) => {
                if before != after {
                    list.widens(format!("{what}: its definition changes"));
                }
                tool(
                    &what,
                    strict,
                    (&effective(name, old, function), old),
                    (&effective(name, new, function), new),
                    list,
                );
            }
        }
    }
    let methods = old
        .methods
        .keys()
        .chain(new.methods.keys())
        .collect::<BTreeSet<_>>();
    for method in methods {
        let what = format!("server {name}: method {}", shown(method));
        match (old.methods.get(method), new.methods.get(method)) {
            (Some(before), Some(after)) => tool(&what, strict, (before, old), (after, new), list),
            // Some methods have rules of their own when no entry speaks of them, some are refused: nobody can rank it.
            _ => list.widens(format!("{what}: its entry comes or goes")),
        }
    }
}

/// The entry that holds for a function, written or not.
fn effective(name: &str, server: &ServerModel, function: &str) -> ToolModel {
    server
        .tools
        .get(function)
        .cloned()
        .unwrap_or_else(|| ToolModel::unlisted(name, None))
}

fn roots(
    name: &str,
    (old_model, old): (&Model, &ServerModel),
    (new_model, new): (&Model, &ServerModel),
    list: &mut List,
) {
    for root in new.roots.iter().filter(|root| !old.roots.contains(root)) {
        list.widens(format!("server {name}: gets root {root}"));
    }
    for root in old.roots.iter().filter(|root| !new.roots.contains(root)) {
        // An inner root that promised less covered part of an outer one that promises more.
        let promised = old_model
            .roots
            .get(root)
            .is_some_and(|root| root.recoverable);
        let outer = new.roots.iter().any(|root| {
            new_model
                .roots
                .get(root)
                .is_some_and(|root| root.recoverable)
        });
        // And where destinations need a jurisdiction, the outer root may have one that the inner one had not.
        let judged = new_model.jurisdictions.is_some();
        let effect = if outer && !promised || judged {
            Effect::Widens
        } else {
            Effect::Narrows
        };
        list.push(effect, format!("server {name}: loses root {root}"));
    }
}

fn errors(what: &str, old: ErrorMeaning, new: ErrorMeaning, list: &mut List) {
    match (old, new) {
        (ErrorMeaning::Unknown, ErrorMeaning::NoEffect) => {
            list.widens(format!("{what}: now mean that nothing happened"))
        }
        (ErrorMeaning::NoEffect, ErrorMeaning::Unknown) => {
            list.narrows(format!("{what}: no longer mean that nothing happened"))
        }
        _ => {}
    }
}

fn tool(
    what: &str,
    strict: bool,
    (old, old_server): (&ToolModel, &ServerModel),
    (new, new_server): (&ToolModel, &ServerModel),
    list: &mut List,
) {
    class(what, strict, old.class, new.class, list);
    list.doubt(&format!("{what}: act type"), &old.act_type, &new.act_type);
    rule(
        &format!("{what}: destination"),
        old.destination.as_ref(),
        new.destination.as_ref(),
        true,
        list,
    );
    let needed = new.class.needs_recipient();
    rule(
        &format!("{what}: recipient"),
        old.recipient.as_ref(),
        new.recipient.as_ref(),
        needed,
        list,
    );
    roles(what, old, new, list);
    list.doubt(
        &format!("{what}: unit of its amounts"),
        &old.unit,
        &new.unit,
    );
    match (&old.envelope, &new.envelope) {
        (one, other) if one == other => {}
        (Some(_), None) => list.narrows(format!("{what}: no envelope any more")),
        _ => list.widens(format!("{what}: its envelope changes")),
    }
    purposes(what, old, new, list);
    aliases(what, old, new, list);
    list.switch(
        &format!("{what}: irreversible"),
        old.irreversible,
        new.irreversible,
        false,
    );
    list.switch(
        &format!("{what}: recursive"),
        old.recursive,
        new.recursive,
        false,
    );
    let meaning = |tool: &ToolModel, server: &ServerModel| tool.errors.unwrap_or(server.errors);
    errors(
        &format!("{what}: errors"),
        meaning(old, old_server),
        meaning(new, new_server),
        list,
    );
    let timeout = |tool: &ToolModel, server: &ServerModel| tool.timeout.unwrap_or(server.timeout);
    if old.timeout != new.timeout {
        list.bound(
            &format!("{what}: timeout (ms)"),
            timeout(old, old_server),
            timeout(new, new_server),
        );
    }
    list.doubt(
        &format!("{what}: idempotency"),
        &old.idempotency,
        &new.idempotency,
    );
    list.doubt(
        &format!("{what}: how it is read back"),
        &old.read_back,
        &new.read_back,
    );
    list.switch(
        &format!("{what}: case_variants"),
        old.case_variants,
        new.case_variants,
        true,
    );
    list.switch(&format!("{what}: enabled"), old.enabled, new.enabled, true);
}

fn class(what: &str, strict: bool, old: ConsequenceClass, new: ConsequenceClass, list: &mut List) {
    if old != new {
        // OTHER asks. Two things are denied instead: a missing recipient, and, where it is strict, a read outside the
        // roots.
        let denied = old.needs_recipient() || (strict && old == ConsequenceClass::Informational);
        let narrower = new == ConsequenceClass::Other && !denied;
        let effect = if narrower {
            Effect::Narrows
        } else {
            Effect::Widens
        };
        list.push(
            effect,
            format!("{what}: class {} -> {}", old.name(), new.name()),
        );
    }
}

fn aliases(what: &str, old: &ToolModel, new: &ToolModel, list: &mut List) {
    for alias in new
        .aliases
        .iter()
        .filter(|alias| !old.aliases.contains(alias))
    {
        list.widens(format!("{what}: alias {}", shown(alias)));
    }
    for alias in old
        .aliases
        .iter()
        .filter(|alias| !new.aliases.contains(alias))
    {
        list.narrows(format!("{what}: alias {} goes", shown(alias)));
    }
}

fn rule(what: &str, old: Option<&Rule>, new: Option<&Rule>, needed: bool, list: &mut List) {
    match (old, new) {
        (one, other) if one == other => {}
        (Some(_), None) if needed => list.narrows(format!("{what}: can no longer be resolved")),
        _ => list.widens(format!("{what}: its rule changes")),
    }
}

fn roles(what: &str, old: &ToolModel, new: &ToolModel, list: &mut List) {
    let program = |role: Option<&Role>| matches!(role, Some(Role::Program | Role::Command));
    let pointers = old
        .roles
        .keys()
        .chain(new.roles.keys())
        .collect::<BTreeSet<_>>();
    for pointer in pointers {
        let (before, after) = (old.roles.get(pointer), new.roles.get(pointer));
        if before == after {
            continue;
        }
        let effect = match (program(before), program(after)) {
            (true, false) => Effect::Widens,
            (false, true) => Effect::Narrows,
            _ => Effect::Neutral,
        };
        list.push(
            effect,
            format!("{what}: role of {} changes", shown(pointer)),
        );
    }
}

fn purposes(what: &str, old: &ToolModel, new: &ToolModel, list: &mut List) {
    if old.purposes == new.purposes {
        return;
    }
    // An empty list serves every purpose.
    let more = new.purposes.is_empty()
        || (!old.purposes.is_empty() && new.purposes.iter().any(|one| !old.purposes.contains(one)));
    let effect = if more {
        Effect::Widens
    } else {
        Effect::Narrows
    };
    list.push(effect, format!("{what}: the purposes it serves change"));
}
