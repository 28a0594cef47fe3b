//! One policy of a file, and what its annotations make of it.

use std::str::FromStr as _;

use cedar_policy::{Effect, Policy, PolicyId, PolicySet};
use lychgate_core::Code;

/// A policy with its outcome.
#[derive(Debug)]
pub(super) struct Rule {
    /// `file/id`.
    pub(super) name: String,
    pub(super) outcome: Outcome,
    /// For the approver and the receipt.
    pub(super) why: String,
    pub(super) policy: Policy,
}

/// What a policy that holds of an act says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A `permit`: without one nothing passes.
    Permit,
    /// A `forbid` with `@ask("EF-nnn")`: a person decides.
    Ask(Code),
    /// A `forbid` with `@code("EF-nnn")`.
    Deny(Code),
}

/// Reads a file's policies, in its order. The fault is a sentence that names the policy.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Rule>, String> {
    let set = PolicySet::from_str(text).map_err(|fault| format!("`{file}`: {fault}"))?;
    if set.templates().next().is_some() {
        return Err(format!(
            "`{file}`: a template (`?principal`, `?resource`) decides nothing"
        ));
    }
    let mut policies = set.policies().cloned().collect::<Vec<_>>();
    policies.sort_by_key(|policy| place(policy.id()));
    let mut rules = Vec::<Rule>::with_capacity(policies.len());
    for policy in policies {
        let rule = one(file, policy)?;
        if rules.iter().any(|other| other.name == rule.name) {
            return Err(format!("`{}` is there twice", rule.name));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// The parser names policies `policy0`, `policy1`, ... in the order of the text.
fn place(id: &PolicyId) -> usize {
    let text: &str = id.as_ref();
    text.strip_prefix("policy")
        .and_then(|number| number.parse().ok())
        .unwrap_or(usize::MAX)
}

fn one(file: &str, policy: Policy) -> Result<Rule, String> {
    let id = policy.annotation("id").unwrap_or_default();
    if id.is_empty() {
        return Err(format!("`{file}`: a policy has no `@id(\"...\")`"));
    }
    let name = format!("{file}/{id}");
    if let Some((unknown, _)) = policy
        .annotations()
        .find(|(key, _)| !ANNOTATIONS.contains(key))
    {
        return Err(format!(
            "`{name}`: there is no annotation `@{unknown}`; there are `@id`, `@code`, `@ask` and `@why`"
        ));
    }
    let why = policy.annotation("why").unwrap_or_default();
    if why.is_empty() {
        return Err(format!("`{name}` has no `@why(\"...\")`"));
    }
    let code = |word: &str| {
        word.parse::<Code>()
            .map_err(|_| format!("`{name}`: `{word}` is not a code such as `EF-020`"))
    };
    let outcome = match (
        policy.effect(),
        policy.annotation("ask"),
        policy.annotation("code"),
    ) {
        (Effect::Permit, None, None) => Outcome::Permit,
        (Effect::Forbid, Some(word), None) => Outcome::Ask(code(word)?),
        (Effect::Forbid, None, Some(word)) => Outcome::Deny(code(word)?),
        (Effect::Permit, _, _) => {
            return Err(format!(
                "`{name}`: a `permit` has neither `@ask` nor `@code`"
            ));
        }
        (Effect::Forbid, _, _) => {
            return Err(format!(
                "`{name}`: a `forbid` has one of `@ask(\"EF-...\")` and `@code(\"EF-...\")`"
            ));
        }
    };
    let why = why.to_owned();
    Ok(Rule {
        name,
        outcome,
        why,
        policy,
    })
}

const ANNOTATIONS: [&str; 4] = ["id", "code", "ask", "why"];
