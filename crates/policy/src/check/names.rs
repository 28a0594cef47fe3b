//! Names: every one resolves to exactly one thing, and a rule that resolves to nothing is a problem (PROFILE §8).

use lychgate_core::name::is_name;
use std::collections::BTreeMap;

use crate::diagnostics::{Problem, nearest, quoted};
use crate::model::{Model, ServerModel};
use crate::server::METHODS;

/// Entries of the allowlist that name nothing, or nothing that is offered.
pub(super) fn allowlist(model: &Model, found: &mut Vec<Problem>) {
    for (index, rule) in model.agent.allow.iter().enumerate() {
        let index = index.to_string();
        let mut report = |message: String, suggestion: Option<String>| {
            found.push(
                Problem::new(&["agent", "allow", rule, &index], message).suggesting(suggestion),
            );
        };
        if model
            .agent
            .allow
            .iter()
            .filter(|other| *other == rule)
            .count()
            > 1
        {
            report(format!("{} is allowed twice", quoted(rule)), None);
            continue;
        }
        if rule.contains('*') {
            report(
                format!(
                    "{} has a `*`: name a server, or server/function",
                    quoted(rule)
                ),
                None,
            );
            continue;
        }
        let (name, function) = rule
            .split_once('/')
            .map_or((rule.as_str(), None), |(name, rest)| (name, Some(rest)));
        let Some(server) = model.servers.get(name) else {
            let near = nearest(name, model.servers.keys().map(String::as_str));
            report(
                format!("allowed server {} is not in the catalogue", quoted(name)),
                near,
            );
            continue;
        };
        let Some(function) = function else { continue };
        let withheld = [&server.tools, &server.methods]
            .into_iter()
            .any(|all| all.get(function).is_some_and(|entry| !entry.enabled));
        if withheld {
            report(
                format!("allowed function {} is not enabled", quoted(rule)),
                None,
            );
        } else if !server.definitions.contains_key(function)
            && !server.methods.contains_key(function)
            && !METHODS.contains(&function)
        {
            let near = nearest(function, server.definitions.keys().map(String::as_str));
            let near = near.map(|near| format!("{name}/{near}"));
            report(
                format!("allowed function {} does not exist", quoted(rule)),
                near,
            );
        }
    }
}

/// Aliases that are no names, occur twice or are another function's name.
pub(super) fn aliases(name: &str, server: &ServerModel, found: &mut Vec<Problem>) {
    let mut owners = BTreeMap::<&str, &str>::new();
    for (function, entry) in &server.tools {
        for (index, alias) in entry.aliases.iter().enumerate() {
            let path = [
                "servers",
                name,
                "tools",
                function,
                "aliases",
                &index.to_string(),
            ];
            let message = if !is_name(alias) {
                format!(
                    "alias {} is refused: only ASCII letters, digits and `_ - . /`",
                    quoted(alias)
                )
            } else if server.definitions.contains_key(alias) || server.tools.contains_key(alias) {
                format!("alias {} is also a function of `{name}`", quoted(alias))
            } else if server.methods.contains_key(alias) || METHODS.contains(&alias.as_str()) {
                format!("alias {} is also a method", quoted(alias))
            } else if let Some(owner) = owners.insert(alias, function) {
                format!(
                    "alias {} stands for both {} and {}",
                    quoted(alias),
                    quoted(owner),
                    quoted(function)
                )
            } else {
                continue;
            };
            found.push(Problem::new(&path, message));
        }
    }
}

/// Two functions whose names are one after a harness has joined them with the server's name, by `_` or `__`.
pub(super) fn collisions(model: &Model, found: &mut Vec<Problem>) {
    let mut joined = BTreeMap::<String, (&str, &str)>::new();
    for (name, server) in &model.servers {
        let own = server.definitions.keys();
        let aliases = server.tools.values().flat_map(|entry| &entry.aliases);
        let enabled = |function: &&String| {
            server
                .tools
                .get(*function)
                .is_none_or(|entry| entry.enabled)
        };
        for function in own.filter(enabled).chain(aliases) {
            for separator in ["_", "__"] {
                let key = format!("{name}{separator}{function}");
                let Some((other, theirs)) = joined.insert(key.clone(), (name, function)) else {
                    continue;
                };
                if other != name {
                    let message = format!(
                        "`{name}/{function}` and `{other}/{theirs}` are both `{key}` once a client joins the names: rename a server or disable one"
                    );
                    found.push(Problem::new(&["servers", name], message));
                }
            }
        }
    }
}
