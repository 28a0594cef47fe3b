//! What a configuration must hold beyond its shape: names that resolve, paths that are absolute, pins that match.
//!
//! The same checks run on a loaded file and on a stored snapshot, so nothing the gate runs from skipped them.

mod entry;
mod names;
mod read_back;

use std::path::{Component, Path};

use lychgate_core::json::Value;

use crate::diagnostics::{Problem, nearest, quoted};
use crate::model::{Limits, Model, Reconcile, ServerModel};

/// Every problem of meaning.
pub(crate) fn check(model: &Model) -> Vec<Problem> {
    let mut found = Vec::new();
    heads(model, &mut found);
    limits(&model.limits, &mut found);
    crate::approvers::check(model, &mut found);
    crate::ledger::check(&model.ledger, &mut found);
    crate::telemetry::check(&model.telemetry, &mut found);
    reconcile(&model.reconcile, &mut found);
    crate::delegation::check(model, &mut found);
    for (name, root) in &model.roots {
        word(&["roots", name], "root", name, &mut found);
        absolute(&["roots", name, "path"], &root.path, &mut found);
    }
    for (name, jurisdiction) in &model.destinations {
        code(
            &["destinations", name, "jurisdiction"],
            jurisdiction,
            &mut found,
        );
    }
    for (index, jurisdiction) in model.jurisdictions.iter().flatten().enumerate() {
        code(
            &["jurisdictions", "allow", &index.to_string()],
            jurisdiction,
            &mut found,
        );
    }
    for (name, server) in &model.servers {
        self::server(name, server, model, &mut found);
    }
    names::allowlist(model, &mut found);
    names::collisions(model, &mut found);
    found
}

fn heads(model: &Model, found: &mut Vec<Problem>) {
    if model.version != 1 {
        found.push(Problem::new(
            &["version"],
            format!(
                "version {} is not known: this build reads version 1",
                model.version
            ),
        ));
    }
    for (path, id) in [
        (["principal", "id"], &model.principal.id),
        (["agent", "id"], &model.agent.id),
        (["purpose", "id"], &model.purpose.id),
    ] {
        if id.is_empty() || id.len() > 256 || id.chars().any(char::is_control) {
            found.push(Problem::new(
                &path,
                "`id` must have 1 to 256 bytes and no control characters",
            ));
        }
    }
    if model.agent.id == crate::RECONCILER {
        let message = format!("agent id `{}` is the gate's own", crate::RECONCILER);
        found.push(Problem::new(&["agent", "id"], message));
    }
    if model.vouch.is_some_and(|source| !source.trusted()) {
        found.push(Problem::new(
            &["provenance", "vouch"],
            "`vouch` must be `user`, `developer` or `system`",
        ));
    }
    if model.purposes.contains_key(&model.purpose.id) {
        let message = format!("purpose {} is declared twice", quoted(&model.purpose.id));
        found.push(Problem::new(&["purposes", &model.purpose.id], message));
    }
}

fn limits(limits: &Limits, found: &mut Vec<Problem>) {
    for (key, value, least, most) in [
        ("authority", limits.authority, 100, 300_000),
        ("permit", limits.permit, 10, 60_000),
        ("ticket", limits.ticket, 1_000, 604_800_000),
        ("hold", limits.hold, 0, 3_600_000),
        ("decision", limits.decision, 10, 60_000),
    ] {
        if !(least..=most).contains(&value) {
            found.push(Problem::new(
                &["limits", key],
                format!("`{key}` must be from {least} ms to {most} ms"),
            ));
        }
    }
    for (key, value, least, most) in [
        ("arguments_bytes", limits.arguments_bytes, 1_024, 1 << 26),
        ("message_bytes", limits.message_bytes, 4_096, 1 << 28),
        ("in_flight", limits.in_flight, 1, 4_096),
    ] {
        if !(least..=most).contains(&value) {
            found.push(Problem::new(
                &["limits", key],
                format!("`{key}` must be from {least} to {most}"),
            ));
        }
    }
}

fn reconcile(reconcile: &Reconcile, found: &mut Vec<Problem>) {
    for (key, value, least, most) in [
        ("first", reconcile.first, 100, 3_600_000),
        ("most", reconcile.most, reconcile.first, 86_400_000),
        ("deadline", reconcile.deadline, reconcile.first, 604_800_000),
    ] {
        if !(least..=most).contains(&value) {
            found.push(Problem::new(
                &["reconcile", key],
                format!("`{key}` must be from {least} ms to {most} ms"),
            ));
        }
    }
}

fn server(name: &str, server: &ServerModel, model: &Model, found: &mut Vec<Problem>) {
    word(&["servers", name], "server", name, found);
    let at = |key: &'static str| ["servers", name, key];
    match server.command.first() {
        None => found.push(Problem::new(&at("command"), "`command` is empty")),
        Some(program) => absolute(&["servers", name, "command", "0"], program, found),
    }
    if let Some(cwd) = &server.cwd {
        absolute(&at("cwd"), cwd, found);
    }
    environment(name, server, found);
    for (index, root) in server.roots.iter().enumerate() {
        let path = ["servers", name, "roots", &index.to_string()];
        if !model.roots.contains_key(root) {
            let problem = Problem::new(&path, format!("root {} is not declared", quoted(root)));
            found.push(problem.suggesting(nearest(root, model.roots.keys().map(String::as_str))));
        } else if server.roots.iter().take(index).any(|other| other == root) {
            found.push(Problem::new(
                &path,
                format!("root {} is named twice", quoted(root)),
            ));
        }
    }
    if !(1..=86_400_000).contains(&server.timeout) {
        found.push(Problem::new(
            &at("timeout"),
            "`timeout` must be from 1 ms to 24 h",
        ));
    }
    for (function, definition) in &server.definitions {
        if definition.get("name").and_then(Value::as_str) != Some(function) {
            found.push(Problem::new(
                &["servers", name],
                format!("pinned definition of {} has another name", quoted(function)),
            ));
        }
    }
    names::aliases(name, server, found);
    entry::entries(name, server, model, found);
}

fn environment(name: &str, server: &ServerModel, found: &mut Vec<Problem>) {
    let fits = |variable: &str| {
        !variable.is_empty()
            && !variable.starts_with(|c: char| c.is_ascii_digit())
            && variable
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    for (variable, value) in &server.env {
        if !fits(variable) || value.contains('\0') {
            found.push(Problem::new(
                &["servers", name, "env", variable],
                format!("{} cannot be set in an environment", quoted(variable)),
            ));
        }
    }
    for (index, variable) in server.pass_env.iter().enumerate() {
        let path = ["servers", name, "pass_env", &index.to_string()];
        if !fits(variable) {
            found.push(Problem::new(
                &path,
                format!("{} cannot be the name of a variable", quoted(variable)),
            ));
        } else if server.env.contains_key(variable) {
            found.push(Problem::new(
                &path,
                format!("{} is also set in `env`", quoted(variable)),
            ));
        }
    }
}

/// A name that is part of other names and of paths: lower case, digits, `-`, `_`.
fn word(path: &[&str], what: &str, name: &str, found: &mut Vec<Problem>) {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = name.bytes().next().is_some_and(plain)
        && name.len() <= 64
        && name
            .bytes()
            .all(|byte| plain(byte) || matches!(byte, b'-' | b'_'));
    if !fits {
        let message = format!(
            "{what} name {} is refused: small letters, digits, `-` and `_`, at most 64, not `-` or `_` first",
            quoted(name)
        );
        found.push(Problem::new(path, message));
    }
}

fn code(path: &[&str], jurisdiction: &str, found: &mut Vec<Problem>) {
    let fits = (2..=16).contains(&jurisdiction.len())
        && jurisdiction
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-');
    if !fits {
        let message = format!(
            "jurisdiction {} is not a code such as `DE` or `US-CA`",
            quoted(jurisdiction)
        );
        found.push(Problem::new(path, message));
    }
}

//= PROFILE §10: nothing is looked up from a working folder
fn absolute(path: &[&str], text: &str, found: &mut Vec<Problem>) {
    let place = Path::new(text);
    if !place.is_absolute() {
        found.push(Problem::new(
            path,
            format!("path {} is not absolute", quoted(text)),
        ));
    } else if place.components().any(|part| part == Component::ParentDir)
        || text.chars().any(char::is_control)
    {
        found.push(Problem::new(
            path,
            format!("path {} has `..` or control characters", quoted(text)),
        ));
    }
}
