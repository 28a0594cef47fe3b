//! The rules as Cedar policies: files that people can read, checked against a schema, with three outcomes.
//!
//! A `permit` lets pass what nothing forbids; a `forbid` with `@code` denies; a `forbid` with `@ask` calls a person.
//! Forbid wins, a denial outranks a question, and where no `permit` holds the answer is a denial. Cedar skips a policy
//! whose evaluation fails; here any such failure denies, for what was skipped may have been a `forbid`.

mod rule;
mod schema;

use std::collections::HashMap;
use std::sync::LazyLock;

use cedar_policy::{
    ActionConstraint, Authorizer, Context, Decision, Entities, Entity, EntityUid, PolicyId,
    PolicySet, Request, Response, RestrictedExpression, ValidationMode, Validator,
};
use lychgate_core::act::SourceType;
use lychgate_core::{Code, ConsequenceClass};

use self::rule::{Outcome, Rule};
use self::schema::uid;
use crate::model::Profile;
use crate::profile::{Finding, Situation};
use crate::reach::{Scope, Target};

/// Compiled policies. They live as long as the process, so a finding can carry a policy's own words.
#[derive(Debug)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    places: HashMap<PolicyId, usize>,
    classes: Vec<Class>,
    sources: HashMap<Option<SourceType>, EntityUid>,
    destinations: HashMap<Place, (EntityUid, Entities)>,
    principal: EntityUid,
    authorizer: Authorizer,
}

/// The policies that can hold of acts of one class: a decision looks at no others.
#[derive(Debug)]
struct Class {
    class: ConsequenceClass,
    action: EntityUid,
    /// What permits and what denies.
    decides: PolicySet,
    /// What asks.
    asks: PolicySet,
}

/// What policies can see of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    scope: &'static str,
    recoverable: bool,
    metadata: bool,
}

impl Place {
    fn of(scope: &Scope) -> Self {
        Self {
            scope: schema::scope_word(scope),
            recoverable: matches!(
                scope,
                Scope::InRoot {
                    recoverable: true,
                    ..
                }
            ),
            metadata: matches!(scope, Scope::External { metadata: true, .. }),
        }
    }
}

/// The rules of a profile: the floor, what holds under both profiles, and the profile's own. A fault in them, which the
/// tests exclude, denies everything.
pub(crate) fn of(profile: Profile) -> Result<&'static Rules, &'static str> {
    let compiled: &'static Result<Rules, String> = match profile {
        Profile::Strict => &STRICT,
        Profile::Balanced => &BALANCED,
    };
    compiled.as_ref().map_err(String::as_str)
}

static STRICT: LazyLock<Result<Rules, String>> = LazyLock::new(|| {
    Rules::compile(&[
        FLOOR,
        BOTH,
        ("strict", include_str!("../profiles/strict.cedar")),
    ])
});
static BALANCED: LazyLock<Result<Rules, String>> = LazyLock::new(|| {
    Rules::compile(&[
        FLOOR,
        BOTH,
        ("balanced", include_str!("../profiles/balanced.cedar")),
    ])
});
const FLOOR: (&str, &str) = ("floor", include_str!("../profiles/floor.cedar"));
const BOTH: (&str, &str) = ("both", include_str!("../profiles/both.cedar"));

impl Rules {
    /// Reads and checks files of policies, `(name, text)`, in their order of precedence.
    ///
    /// # Errors
    /// A sentence: a text is not Cedar, an annotation or code is unknown, a policy names what the schema does not, or can
    /// hold of nothing.
    pub(crate) fn compile(files: &[(&str, &str)]) -> Result<Self, String> {
        let mut rules = Vec::new();
        for (file, text) in files {
            rules.extend(rule::read(file, text)?);
        }
        let mut places = HashMap::new();
        let mut whole = PolicySet::new();
        for (place, rule) in rules.iter_mut().enumerate() {
            let id = PolicyId::new(rule.name.as_str());
            rule.policy = rule.policy.new_id(id.clone());
            places.insert(id, place);
            whole.add(rule.policy.clone()).map_err(said)?;
        }
        validate(&whole)?;
        let classes = ConsequenceClass::ALL.iter();
        let sources = SourceType::ALL.map(Some).into_iter().chain([None]);
        Ok(Self {
            classes: classes
                .map(|class| Class::of(*class, &rules))
                .collect::<Result<_, _>>()?,
            sources: sources
                .map(|source| Ok((source, uid("Source", schema::source_word(source))?)))
                .collect::<Result<_, String>>()?,
            destinations: every_place().map(destination).collect::<Result<_, _>>()?,
            principal: uid("Principal", "configured")?,
            authorizer: Authorizer::new(),
            rules,
            places,
        })
    }

    /// Judges one target of an act.
    pub(crate) fn judge(&'static self, situation: &Situation<'_>, target: &Target) -> Finding {
        // Unknown values, an evaluation that fails: never a pass.
        self.decide(situation, target).unwrap_or(FAULT)
    }

    fn decide(&'static self, situation: &Situation<'_>, target: &Target) -> Option<Finding> {
        let class = self
            .classes
            .iter()
            .find(|one| one.class == situation.class)?;
        let (resource, entities) = self.destinations.get(&Place::of(&target.scope))?;
        let request = Request::new(
            self.principal.clone(),
            class.action.clone(),
            resource.clone(),
            self.context(situation)?,
            None,
        )
        .ok()?;
        let answer = self.ask(&request, &class.decides, entities)?;
        if answer.decision() == Decision::Deny {
            return Some(self.first(&answer)?.unwrap_or(UNPERMITTED));
        }
        let answer = self.ask(&request, &class.asks, entities)?;
        Some(self.first(&answer)?.unwrap_or(Finding::Pass))
    }

    //= PROFILE §7: an evaluation error is DENY
    fn ask(&self, request: &Request, set: &PolicySet, entities: &Entities) -> Option<Response> {
        let answer = self.authorizer.is_authorized(request, set, entities);
        let failed = answer.diagnostics().errors().next().is_some();
        (!failed).then_some(answer)
    }

    /// Of the policies that hold, the first in the files: which of them Cedar names first is chance. The outer `None` is
    /// an answer that names no policy of ours.
    fn first(&'static self, answer: &Response) -> Option<Option<Finding>> {
        let named = answer.diagnostics().reason();
        let places = named.map(|id| self.places.get(id).copied());
        let Some(place) = places.collect::<Option<Vec<_>>>()?.into_iter().min() else {
            return Some(None);
        };
        let rule = self.rules.get(place)?;
        Some(Some(match rule.outcome {
            Outcome::Permit => Finding::Pass,
            Outcome::Ask(code) => Finding::Ask {
                code,
                why: &rule.why,
            },
            Outcome::Deny(code) => Finding::Deny {
                code,
                why: &rule.why,
            },
        }))
    }

    fn context(&self, situation: &Situation<'_>) -> Option<Context> {
        let source = self.sources.get(&situation.source)?;
        let truth = RestrictedExpression::new_bool;
        let pairs = [
            (
                "source",
                RestrictedExpression::new_entity_uid(source.clone()),
            ),
            ("vouched", truth(situation.vouched)),
            ("irreversible", truth(situation.irreversible)),
            ("program", truth(situation.has_program)),
            ("recipient_known", truth(situation.recipient_present)),
        ];
        Context::from_pairs(pairs.map(|(name, value)| (name.to_owned(), value))).ok()
    }
}

impl Class {
    fn of(class: ConsequenceClass, rules: &[Rule]) -> Result<Self, String> {
        let action = uid("Action", class.name())?;
        let mut found = Self {
            class,
            action,
            decides: PolicySet::new(),
            asks: PolicySet::new(),
        };
        for rule in rules {
            let concerns = match rule.policy.action_constraint() {
                ActionConstraint::Any => true,
                ActionConstraint::In(actions) => actions.contains(&found.action),
                ActionConstraint::Eq(action) => action == found.action,
            };
            let set = match rule.outcome {
                Outcome::Ask(_) => &mut found.asks,
                Outcome::Permit | Outcome::Deny(_) => &mut found.decides,
            };
            if concerns {
                set.add(rule.policy.clone()).map_err(said)?;
            }
        }
        Ok(found)
    }
}

/// Strict validation; what Cedar only warns of (a policy that can hold of nothing, confusable letters) is refused too.
fn validate(whole: &PolicySet) -> Result<(), String> {
    let validator = Validator::new(schema::schema()?);
    let result = validator.validate(whole, ValidationMode::Strict);
    let errors = result.validation_errors().map(ToString::to_string);
    let warnings = result.validation_warnings().map(ToString::to_string);
    errors.chain(warnings).next().map_or(Ok(()), Err)
}

fn every_place() -> impl Iterator<Item = Place> {
    let root = |recoverable| Scope::InRoot {
        root: String::new(),
        recoverable,
    };
    let external = |metadata| Scope::External {
        host: String::new(),
        metadata,
    };
    [
        root(true),
        root(false),
        Scope::OutsideRoots,
        Scope::Forbidden,
        external(false),
        external(true),
        Scope::Fixed,
        Scope::LocalOther,
    ]
    .into_iter()
    .map(|scope| Place::of(&scope))
}

fn destination(place: Place) -> Result<(Place, (EntityUid, Entities)), String> {
    let id = format!(
        "{}{}{}",
        place.scope,
        if place.recoverable {
            ":recoverable"
        } else {
            ""
        },
        if place.metadata { ":metadata" } else { "" }
    );
    let id = uid("Destination", &id)?;
    let scope = RestrictedExpression::new_entity_uid(uid("Scope", place.scope)?);
    let attributes = [
        ("scope", scope),
        (
            "recoverable",
            RestrictedExpression::new_bool(place.recoverable),
        ),
        ("metadata", RestrictedExpression::new_bool(place.metadata)),
    ];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value));
    let entity = Entity::new(id.clone(), attributes.into(), [].into()).map_err(said)?;
    let entities = Entities::from_entities([entity], None).map_err(said)?;
    Ok((place, (id, entities)))
}

fn said(fault: impl ToString) -> String {
    fault.to_string()
}

const FAULT: Finding = Finding::Deny {
    code: Code::FailClosed,
    why: "a policy could not be evaluated",
};

//= draft §13: what is not permitted is not executed
const UNPERMITTED: Finding = Finding::Deny {
    code: Code::ToolNotAuthorized,
    why: "no policy permits it",
};

#[cfg(test)]
mod tests;
