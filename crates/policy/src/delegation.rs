//! What the configuration says of delegations: who may speak as the agent itself, what it may use up, and which grants ask.

use lychgate_core::act::SourceType;
use lychgate_core::amount::Amount;
use lychgate_core::delegation::{Budget, ClassSet};
use lychgate_core::json::Value;
use lychgate_core::name::is_name;
use lychgate_core::{Code, ConsequenceClass};
use serde::{Deserialize, Serialize};

use crate::diagnostics::{Problem, quoted};
use crate::model::{Model, Profile, Role};
use crate::profile::Finding;
use crate::schema;
use crate::tool::ToolEntry;

/// What the agent and every worker below it may use up together, each `every` anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentBudget {
    /// Milliseconds until everything but the rate begins anew.
    pub every: u64,
    /// What is counted.
    pub budget: Budget,
}

//= draft §5.9: a planner may not confer what nobody looked at
/// Whether a grant passes by itself. One that reaches beyond reading never does; in `strict` neither does one that nobody
/// knows who asked for.
#[must_use]
pub fn judge_delegation(
    profile: Profile,
    classes: &ClassSet,
    source: Option<SourceType>,
) -> Finding {
    let high_risk = |class: &ConsequenceClass| class.high_risk();
    if classes.iter().any(high_risk) {
        return Finding::Ask {
            code: Code::EscalationRequired,
            why: "it hands on acts that have consequences",
        };
    }
    if profile == Profile::Strict && !source.is_some_and(SourceType::trusted) {
        return Finding::Ask {
            code: Code::InstructionProvenanceFailure,
            why: "nobody knows who asked for the delegation",
        };
    }
    Finding::Pass
}

/// Value that a call would spend cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Uncountable(pub &'static str);

impl ToolEntry {
    /// What a call would spend, exactly, by unit: the sum of the arguments of role `amount`.
    ///
    /// # Errors
    /// When an amount or its unit cannot be told from the arguments, or the sum is too large to be counted.
    pub fn spend(&self, args: &Value) -> Result<Option<(String, Amount)>, Uncountable> {
        let amounts = self.roles.iter().filter(|(_, role)| **role == Role::Amount);
        let mut sum: Option<Amount> = None;
        for (pointer, _) in amounts {
            let tokens = schema::tokens(pointer).ok_or(Uncountable("a pointer is malformed"))?;
            let mut found = Vec::new();
            walk(args, &tokens, &mut found);
            for value in found {
                let amount = Amount::of_value(value)
                    .map_err(|_| Uncountable("an amount cannot be counted exactly"))?;
                let more = sum.unwrap_or_default().plus(amount);
                sum = Some(more.ok_or(Uncountable("the amounts are too large to be counted"))?);
            }
        }
        sum.map(|sum| Ok((self.unit_of(args)?, sum))).transpose()
    }

    fn unit_of(&self, args: &Value) -> Result<String, Uncountable> {
        let Some(rule) = &self.unit else {
            return Ok(PLAIN_UNIT.to_owned());
        };
        if !rule.starts_with('/') {
            return Ok(rule.clone());
        }
        let named = args.pointer(rule).and_then(Value::as_str);
        named
            .filter(|unit| is_name(unit))
            .map(str::to_owned)
            .ok_or(Uncountable("an amount's unit cannot be told"))
    }
}

/// Every value at a pointer; an array on the way, or at the end, means each of its elements; null counts as absent.
fn walk<'a>(here: &'a Value, tokens: &[String], found: &mut Vec<&'a Value>) {
    match (here, tokens.split_first()) {
        (Value::Null, _) => {}
        (Value::Array(items), _) => items.iter().for_each(|item| walk(item, tokens, found)),
        (value, None) => found.push(value),
        (Value::Object(members), Some((token, rest))) => {
            if let Some(member) = members.get(token) {
                walk(member, rest, found);
            }
        }
        _ => {}
    }
}

/// Every problem of meaning.
pub(crate) fn check(model: &Model, found: &mut Vec<Problem>) {
    if let Some(budget) = &model.agent.budget
        && !(MOST_OFTEN..=MOST_SELDOM).contains(&budget.every)
    {
        let message = format!("`every` must be from {MOST_OFTEN} ms to {MOST_SELDOM} ms");
        found.push(Problem::new(&["agent", "budget", "every"], message));
    }
}

/// Whether a text is a unit's name or a pointer to one.
pub(crate) fn is_unit(text: &str) -> bool {
    is_name(text) || (text.starts_with('/') && schema::tokens(text).is_some())
}

pub(crate) fn not_a_unit(text: &str) -> String {
    format!(
        "{} is neither a unit's name nor a json pointer to an argument that names one",
        quoted(text)
    )
}

/// What is counted where nothing names a unit.
pub const PLAIN_UNIT: &str = "value";
const MOST_OFTEN: u64 = 1_000;
const MOST_SELDOM: u64 = 2_678_400_000;
