//! What the `strict` and `balanced` rules say of a situation (PROFILE §2, §9). The rules themselves are the Cedar files
//! in `profiles/`.

use lychgate_core::act::SourceType;
use lychgate_core::{Code, ConsequenceClass};

use crate::model::Profile;
use crate::reach::Target;
use crate::rules;

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

/// Everything the rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Which rules.
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

/// Judges a situation: one finding for each target, in order. Without a target there is nothing to allow.
#[must_use]
pub fn judge(situation: &Situation<'_>) -> Vec<Finding> {
    if situation.targets.is_empty() {
        return vec![Finding::Deny {
            code: Code::DestinationUnresolved,
            why: "no destination could be resolved",
        }];
    }
    match rules::of(situation.profile) {
        Ok(rules) => {
            let targets = situation.targets.iter();
            targets
                .map(|target| rules.judge(situation, target))
                .collect()
        }
        Err(_) => vec![Finding::Deny {
            code: Code::FailClosed,
            why: "the policies cannot be used",
        }],
    }
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
