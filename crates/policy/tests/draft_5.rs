//! Sentences of draft §5 that the shipped policies keep, each by its section.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use lychgate_core::act::SourceType;
use lychgate_core::{Code, ConsequenceClass as Class};
use lychgate_policy::{Finding, Profile, Scope, Situation, Target, judge, strictest};
use support::{PROFILES, decide, single, value};

fn judged(profile: Profile, class: Class, source: Option<SourceType>, scope: Scope) -> Finding {
    let targets = [Target {
        canonical: "t".to_owned(),
        scope,
    }];
    strictest(&judge(&Situation {
        profile,
        class,
        source,
        vouched: false,
        targets: &targets,
        irreversible: false,
        has_program: false,
        recipient_present: true,
    }))
}

const INJECTED: [Option<SourceType>; 5] = [
    None,
    Some(SourceType::Tool),
    Some(SourceType::Retrieval),
    Some(SourceType::Memory),
    Some(SourceType::Agent),
];

fn code(finding: Finding) -> (u8, Option<Code>) {
    match finding {
        Finding::Pass => (0, None),
        Finding::Ask { code, .. } => (1, Some(code)),
        Finding::Deny { code, .. } => (2, Some(code)),
    }
}

//= draft §5.1: the export of an address book stays non-effective when its provenance is retrieval
//= draft §5.4: DATA_DISCLOSURE escalates when provenance is not user or clinician
#[test]
fn s5_1_and_s5_4_an_export_that_was_not_asked_for_by_a_user_never_passes() {
    for profile in PROFILES {
        for source in INJECTED {
            for scope in [Scope::Fixed, Scope::LocalOther] {
                let finding = judged(profile, Class::DataDisclosure, source, scope);
                assert_eq!(code(finding), (1, Some(Code::InstructionProvenanceFailure)));
            }
        }
    }
}

//= draft §5.2, §5.5: NETWORK_CONTROL, and PERSISTENT_STATE_CHANGE outside a recoverable root, are never taken unasked
#[test]
fn s5_2_and_s5_5_production_and_containment_ask_whoever_wanted_them() {
    for profile in PROFILES {
        for source in INJECTED.into_iter().chain([Some(SourceType::User)]) {
            for class in [Class::NetworkControl, Class::PersistentStateChange] {
                let finding = judged(profile, class, source, Scope::Fixed);
                assert_eq!(code(finding).0, 1, "{profile:?} {class:?} {source:?}");
            }
        }
    }
}

//= draft §5.4: the jurisdiction of the destination binds cross-border egress
#[test]
fn s5_4_a_chart_goes_only_where_the_jurisdiction_is_allowed() {
    let egress = |host: &str| {
        let head = "[agent]\nallow = [\"s\"]\n[jurisdictions]\nallow = [\"DE\"]\n\
                    [destinations.\"clinic.example\"]\njurisdiction = \"DE\"\n\
                    [destinations.\"app.example\"]\njurisdiction = \"US\"\n";
        let entry = "class = \"DATA_DISCLOSURE\"\ndestination = { url = [\"/url\"] }";
        let applied = single(head, &["url"], entry).unwrap();
        decide(
            &applied,
            "f",
            &value(&format!(r#"{{"url":"https://{host}/x"}}"#)),
        )
    };
    assert_eq!(egress("clinic.example"), 1, "it asks");
    assert_eq!(egress("app.example"), 2, "another jurisdiction");
    assert_eq!(egress("unknown.example"), 2, "nobody knows which");
}

//= draft §5.6: memory writes that persist injected instructions are acts
#[test]
fn s5_6_a_memory_write_that_content_asked_for_asks() {
    for profile in PROFILES {
        for source in INJECTED.into_iter().flatten() {
            let root = Scope::InRoot {
                root: "memory".to_owned(),
                recoverable: true,
            };
            let finding = judged(profile, Class::PersistentStateChange, Some(source), root);
            assert_eq!(code(finding), (1, Some(Code::InstructionProvenanceFailure)));
        }
    }
}

//= draft §5.8: account.lookup may be fast; account.charge, number.port and recording.export may not
#[test]
fn s5_8_a_lookup_passes_and_a_charge_a_port_and_an_export_never_do() {
    for profile in PROFILES {
        for source in INJECTED.into_iter().chain([Some(SourceType::User)]) {
            let word = |class| code(judged(profile, class, source, Scope::Fixed)).0;
            assert_eq!(word(Class::Informational), 0);
            for class in [
                Class::Financial,
                Class::NetworkControl,
                Class::DataDisclosure,
            ] {
                assert_eq!(word(class), 1, "{profile:?} {class:?} {source:?}");
            }
        }
    }
}

//= draft §5.9: discovery of a tool is not authority
#[test]
fn s5_9_a_tool_that_nobody_allowed_is_denied_however_harmless() {
    let entry = "class = \"INFORMATIONAL\"\ndestination = { path = [\"/path\"] }";
    let args = value(r#"{"path":"/work/a"}"#);
    let found = single("", &["path"], entry).unwrap();
    let allowed = single("[agent]\nallow = [\"s/f\"]\n", &["path"], entry).unwrap();
    assert_eq!(decide(&found, "f", &args), 2);
    assert_eq!(decide(&allowed, "f", &args), 0);
}
