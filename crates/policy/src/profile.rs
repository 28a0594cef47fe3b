//! The `strict` and `balanced` rules: provenance x consequence class x place, as a plain table (PROFILE §2, §9).

use lychgate_core::act::SourceType;
use lychgate_core::{Code, ConsequenceClass};

use crate::model::Profile;
use crate::reach::{Scope, Target};

/// What one rule says of an act. The order is the order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Nothing against it.
    Pass,
    /// A person decides. Where nobody can be asked, it is denied with this code.
    Ask {
        /// The reason's code.
        code: Code,
        /// For the approver and the receipt; never for the model.
        why: &'static str,
    },
    /// No.
    Deny {
        /// The denial's code.
        code: Code,
        /// For the receipt; never for the model.
        why: &'static str,
    },
}

impl Finding {
    /// 0 pass, 1 ask, 2 deny.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Ask { .. } => 1,
            Self::Deny { .. } => 2,
        }
    }
}

/// Everything the table looks at.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Which table.
    pub profile: Profile,
    /// From the catalogue.
    pub class: ConsequenceClass,
    /// Where the instruction came from; `None` is UNKNOWN.
    pub source: Option<SourceType>,
    /// The source is only the operator's word for the channel (PROFILE §10), not observed.
    pub vouched: bool,
    /// Every target, each judged alone.
    pub targets: &'a [Target],
    /// The catalogue says that it cannot be undone.
    pub irreversible: bool,
    /// An argument is itself a program.
    pub has_program: bool,
    /// A recipient was resolved.
    pub recipient_present: bool,
}

/// Judges a situation: one finding for the act as a whole, then one for each target, in order.
#[must_use]
pub fn judge(situation: &Situation<'_>) -> Vec<Finding> {
    let mut findings = Vec::with_capacity(situation.targets.len() + 1);
    findings.push(whole(situation));
    findings.extend(
        situation
            .targets
            .iter()
            .map(|target| one(situation, target)),
    );
    findings
}

/// The strictest of some findings; among equals the first. Nothing judged is nothing allowed.
#[must_use]
pub fn strictest(findings: &[Finding]) -> Finding {
    let nothing = Finding::Deny {
        code: Code::FailClosed,
        why: "nothing was judged",
    };
    findings
        .iter()
        .copied()
        .reduce(|best, next| {
            if next.rank() > best.rank() {
                next
            } else {
                best
            }
        })
        .unwrap_or(nothing)
}

fn whole(situation: &Situation<'_>) -> Finding {
    if situation.targets.is_empty() {
        return deny(
            Code::DestinationUnresolved,
            "no destination could be resolved",
        );
    }
    if situation.class.needs_recipient() && !situation.recipient_present {
        return deny(
            Code::DestinationUnresolved,
            "an act of this class must name who receives",
        );
    }
    if situation.has_program {
        return ask(Code::EscalationRequired, "an argument is itself a program");
    }
    Finding::Pass
}

fn one(situation: &Situation<'_>, target: &Target) -> Finding {
    match &target.scope {
        Scope::Forbidden => {
            return deny(
                Code::DestinationMismatch,
                "the gate's own files and clients' configurations are out of reach",
            );
        }
        Scope::External { metadata: true, .. } => {
            return deny(
                Code::DestinationMismatch,
                "cloud metadata addresses are out of reach",
            );
        }
        _ => {}
    }
    match situation.class {
        ConsequenceClass::Informational => read(situation.profile, &target.scope),
        ConsequenceClass::PersistentStateChange => write(situation, &target.scope),
        ConsequenceClass::DataDisclosure
        | ConsequenceClass::Communication
        | ConsequenceClass::Financial
        | ConsequenceClass::NetworkControl
        | ConsequenceClass::Physical
        | ConsequenceClass::Other => outward(situation),
    }
}

fn read(profile: Profile, scope: &Scope) -> Finding {
    match (scope, profile) {
        (Scope::InRoot { .. } | Scope::Fixed | Scope::LocalOther, _) => Finding::Pass,
        (Scope::OutsideRoots, Profile::Balanced) => ask(
            Code::DestinationMismatch,
            "it reads outside the declared roots",
        ),
        (Scope::OutsideRoots, Profile::Strict) => deny(
            Code::DestinationMismatch,
            "it reads outside the declared roots",
        ),
        //= PROFILE §9: a query sent to an outside service discloses its arguments
        (Scope::External { .. }, _) => ask(
            Code::EscalationRequired,
            "a query to an outside service discloses its arguments",
        ),
        (Scope::Forbidden, _) => deny(Code::DestinationMismatch, "forbidden"),
    }
}

fn write(situation: &Situation<'_>, scope: &Scope) -> Finding {
    if situation.irreversible {
        return by_provenance(situation, "it cannot be undone");
    }
    match (scope, situation.profile, situation.source) {
        (
            Scope::InRoot {
                recoverable: true, ..
            },
            _,
            Some(source),
        ) if !source.trusted() => ask(
            Code::InstructionProvenanceFailure,
            "the instruction came from an untrusted source",
        ),
        (
            Scope::InRoot {
                recoverable: true, ..
            },
            Profile::Balanced,
            None,
        ) => Finding::Pass,
        (
            Scope::InRoot {
                recoverable: true, ..
            },
            Profile::Strict,
            None,
        ) => ask(
            Code::InstructionProvenanceFailure,
            "nobody knows who asked for it",
        ),
        (
            Scope::InRoot {
                recoverable: true, ..
            },
            _,
            Some(_),
        ) => Finding::Pass,
        (
            Scope::InRoot {
                recoverable: false, ..
            }
            | Scope::OutsideRoots
            | Scope::External { .. }
            | Scope::Fixed
            | Scope::LocalOther
            | Scope::Forbidden,
            _,
            _,
        ) => by_provenance(situation, "its effect is not inside a recoverable root"),
    }
}

fn outward(situation: &Situation<'_>) -> Finding {
    by_provenance(
        situation,
        "acts of this class are never taken without a person",
    )
}

//= PROFILE §10: a vouched channel never covers external or irreversible acts
fn by_provenance(situation: &Situation<'_>, why: &'static str) -> Finding {
    let trusted = situation.source.is_some_and(SourceType::trusted) && !situation.vouched;
    let code = if trusted {
        Code::EscalationRequired
    } else {
        Code::InstructionProvenanceFailure
    };
    ask(code, why)
}

const fn ask(code: Code, why: &'static str) -> Finding {
    Finding::Ask { code, why }
}

const fn deny(code: Code, why: &'static str) -> Finding {
    Finding::Deny { code, why }
}
