#![allow(clippy::unwrap_used)]

use super::*;

fn rules(text: &str) -> Result<&'static Rules, String> {
    Rules::compile(&[("t", text)]).map(|rules| &*Box::leak(Box::new(rules)))
}

fn judged(text: &str, class: ConsequenceClass) -> Finding {
    let situation = Situation {
        profile: Profile::Strict,
        class,
        source: Some(SourceType::User),
        vouched: false,
        targets: &[],
        irreversible: false,
        has_program: false,
        recipient_present: true,
    };
    let target = Target {
        canonical: "t".to_owned(),
        scope: Scope::OutsideRoots,
    };
    rules(text).unwrap().judge(&situation, &target)
}

fn word(finding: Finding) -> String {
    match finding {
        Finding::Pass => "pass".to_owned(),
        Finding::Ask { code, why } => format!("ask {} {why}", code.number()),
        Finding::Deny { code, why } => format!("deny {} {why}", code.number()),
    }
}

const PERMIT: &str = "@id(\"p\") @why(\"w\") permit (principal, action, resource);\n";
const ASK: &str =
    "@id(\"a\") @ask(\"EF-053\") @why(\"asked\") forbid (principal, action, resource);\n";
const DENY: &str =
    "@id(\"d\") @code(\"EF-020\") @why(\"denied\") forbid (principal, action, resource);\n";

#[test]
fn the_shipped_policies_hold_against_the_schema() {
    for profile in [Profile::Strict, Profile::Balanced] {
        assert!(of(profile).is_ok(), "{:?}", of(profile).err());
    }
}

#[test]
fn forbid_wins_and_a_denial_outranks_a_question_in_any_order() {
    let read = ConsequenceClass::Informational;
    for (policies, said) in [
        (&[PERMIT][..], "pass"),
        (&[PERMIT, ASK], "ask EF-053 asked"),
        (&[ASK, PERMIT], "ask EF-053 asked"),
        (&[PERMIT, ASK, DENY], "deny EF-020 denied"),
        (&[DENY, ASK, PERMIT], "deny EF-020 denied"),
        (&[DENY], "deny EF-020 denied"),
    ] {
        assert_eq!(word(judged(&policies.concat(), read)), said);
    }
}

#[test]
fn where_no_permit_holds_nothing_passes_not_even_by_a_question() {
    let other = "@id(\"p\") @why(\"w\") permit (principal, action in Action::\"INFORMATIONAL\", resource);\n";
    for policies in [ASK.to_owned(), [other, ASK].concat(), other.to_owned()] {
        let said = word(judged(&policies, ConsequenceClass::Financial));
        assert_eq!(said, "deny EF-015 no policy permits it");
    }
}

#[test]
fn among_equals_the_first_in_the_file_gives_the_code() {
    let second = ASK.replace("\"a\"", "\"b\"").replace("053", "070");
    for _ in 0..20 {
        let said =
            |policies: [&str; 3]| word(judged(&policies.concat(), ConsequenceClass::Informational));
        assert_eq!(said([PERMIT, ASK, &second]), "ask EF-053 asked");
        assert_eq!(said([&second, PERMIT, ASK]), "ask EF-070 asked");
    }
}

/// Kind of fault: an engine that goes on past what it could not evaluate, and so past a prohibition.
#[test]
fn a_policy_that_fails_in_evaluation_denies_whatever_it_is() {
    // The sum overflows; Cedar drops the policy and answers without it.
    let failing = |head: &str| {
        format!(
            "{head} (principal, action, resource) when {{ 9223372036854775807 + (if context.vouched then 0 else 1) > 0 }};\n"
        )
    };
    for head in [
        "@id(\"x\") @why(\"w\") permit",
        "@id(\"x\") @why(\"w\") @ask(\"EF-070\") forbid",
        "@id(\"x\") @why(\"w\") @code(\"EF-020\") forbid",
    ] {
        let said = word(judged(
            &[PERMIT, &failing(head)].concat(),
            ConsequenceClass::Informational,
        ));
        assert_eq!(
            said, "deny EF-080 a policy could not be evaluated",
            "{head}"
        );
    }
}

#[test]
fn what_a_policy_cannot_mean_is_refused_when_it_is_loaded() {
    let deny = |more: &str| DENY.replace(';', more);
    for (what, text, names) in [
        ("not Cedar", "permit (".to_owned(), "`t`"),
        ("no id", DENY.replace("@id(\"d\")", ""), "@id"),
        ("no reason", DENY.replace("@why(\"denied\")", ""), "@why"),
        ("no code", DENY.replace("@code(\"EF-020\")", ""), "@ask"),
        (
            "two outcomes",
            DENY.replace("@why", "@ask(\"EF-070\") @why"),
            "one of",
        ),
        (
            "a permit with a code",
            PERMIT.replace("@why", "@code(\"EF-020\") @why"),
            "neither",
        ),
        ("an unknown code", DENY.replace("020", "999"), "EF-999"),
        (
            "an unknown annotation",
            DENY.replace("@why", "@wyh(\"x\") @why"),
            "@wyh",
        ),
        ("twice", [DENY, DENY].concat(), "t/d"),
        (
            "an unknown attribute",
            deny(" when { context.sauce == 1 };"),
            "sauce",
        ),
        (
            "an unknown action",
            DENY.replace("action,", "action == Action::\"FINANCAL\","),
            "FINANCAL",
        ),
        (
            "a word nobody says",
            deny(" when { context.source == Source::\"usr\" };"),
            "usr",
        ),
        (
            "a wrong type",
            deny(" when { context.vouched == 1 };"),
            "type",
        ),
        (
            "what can hold of nothing",
            deny(" when { context.vouched && !context.vouched && false };"),
            "t/d",
        ),
        (
            "a template",
            DENY.replace("principal,", "principal == ?principal,"),
            "template",
        ),
    ] {
        let fault = rules(&text).err().unwrap_or_default();
        assert!(fault.contains(names), "{what}: {fault}");
    }
}
