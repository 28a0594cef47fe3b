//! What can be wrong in a record, named.

use lychgate_core::id::ActId;
use lychgate_core::{ConsequenceClass, Timestamp};

/// One of the draft's four tests (§5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// (1) every high-risk invoke has a consumed authority.
    Authority,
    /// (2) digest mismatches are denials, not retries that skip the sink.
    Mismatch,
    /// (3) delegation beyond the permitted depth never reaches invoke.
    Depth,
}

impl Test {
    /// Its number in the draft.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Authority => 1,
            Self::Mismatch => 2,
            Self::Depth => 3,
        }
    }
}

macro_rules! breaches {
    ($($(#[$doc:meta])* $name:ident = $test:ident $word:literal $sentence:literal;)*) => {
        /// How a record breaks a test. Exhaustive.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Breach { $($(#[$doc])* $name,)* }

        impl Breach {
            /// Every breach, in the order of the tests.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The test it breaks.
            #[must_use]
            pub fn test(self) -> Test {
                match self { $(Self::$name => Test::$test,)* }
            }

            /// The word for it in documents; stable.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The sentence for a person.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)* }
            }
        }
    };
}

breaches! {
    /// The bytes are no receipt.
    NotAReceipt = Authority "not_a_receipt" "no receipt: nobody can tell what it let through";
    /// No evidence stands behind the dispatch.
    NoEvidence = Authority "no_evidence" "dispatched without evidence of the PED";
    /// No authority was consumed.
    NoAuthority = Authority "no_authority" "dispatched without a consumed authority";
    /// The sink did not verify.
    NoVerification = Authority "no_verification" "dispatched without a verification by the sink";
    /// The attempt has no id.
    NoEffectId = Authority "no_effect_id" "dispatched without an effect id";
    /// The receipt's state or code is not a dispatch's.
    NotDispatched = Authority "not_dispatched" "a dispatch whose receipt says it was refused";
    /// A predicate did not hold.
    PredicateFailed = Authority "predicate_failed" "dispatched although a predicate of the PED did not hold";
    /// No person's yes to its ticket stands in the record, or it was used before.
    NotApproved = Authority "not_approved" "dispatched under a ticket that the record does not say was approved for it";
    /// The act was dispatched before.
    ActTwice = Authority "act_twice" "the same act was dispatched twice";
    /// The authority was consumed before.
    AuthorityTwice = Authority "authority_twice" "the same authority was consumed twice";
    /// Another authority than the one issued was consumed.
    OtherAuthority = Authority "other_authority" "consumed another authority than it was issued";
    /// The act had been refused, had expired or was withdrawn.
    AfterEnd = Authority "after_end" "dispatched after the act had ended";
    /// Far too long after the act or the authority was made.
    Stale = Authority "stale" "dispatched long after its act or authority was made";
    /// An outcome of something never dispatched.
    OutcomeWithoutDispatch = Authority "outcome_without_dispatch" "an outcome without a dispatch";
    /// An outcome after the act had one.
    OutcomeTwice = Authority "outcome_twice" "a second outcome of an act that had ended";
    /// The outcome names another authority or effect.
    OutcomeDiffers = Authority "outcome_differs" "an outcome of another authority or effect";
    /// A step that the lifecycle does not have.
    OutOfOrder = Authority "out_of_order" "a step that cannot follow the one before it";
    /// A later gate started and said nothing of it.
    NeverSettled = Authority "never_settled" "neither outcome nor doubt at the gate's next start";
    /// The very act that was refused for a mismatch was dispatched.
    DispatchedAfterMismatch = Mismatch "dispatched_after_mismatch" "dispatched after it was denied for a mismatch";
    /// A dispatch that says it repeats an act that was refused for a mismatch.
    RetryOfMismatch = Mismatch "retry_of_mismatch" "a retry of an act that was denied for a mismatch";
    /// The same function ran without the sink after a mismatch.
    SinkSkipped = Mismatch "sink_skipped" "ran without the sink after a mismatch was denied";
    /// The mismatch was noticed and not denied.
    MismatchNotDenied = Mismatch "mismatch_not_denied" "a mismatch was found and the act not denied";
    /// Delegated too deep.
    TooDeep = Depth "too_deep" "dispatched beyond the permitted delegation depth";
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong.
    pub breach: Breach,
    /// The act; absent when the line cannot be read.
    pub act: Option<ActId>,
    /// `tool/function` as it stands in the receipt: text from outside, to be escaped.
    pub function: Option<String>,
    /// The class.
    pub class: Option<ConsequenceClass>,
    /// When, as the last of its receipts says.
    pub at: Option<Timestamp>,
    /// The receipts that show it, by their numbers in the record, oldest first.
    pub records: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_breach_has_its_own_word_and_sentence() {
        for (at, one) in Breach::ALL.iter().enumerate() {
            for other in &Breach::ALL[at + 1..] {
                assert_ne!(one.word(), other.word());
                assert_ne!(one.sentence(), other.sentence());
            }
        }
    }
}
