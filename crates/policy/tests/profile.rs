//! The profile's table, whole: every class, provenance, place and profile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use lychgate_core::ConsequenceClass as Class;
use lychgate_policy::{Finding, Profile, Scope, Situation, Target, judge, strictest};
use support::{PROFILES, SOURCES};

fn places() -> [(&'static str, Scope); 8] {
    let root = |recoverable| Scope::InRoot {
        root: "r".to_owned(),
        recoverable,
    };
    let external = |metadata| Scope::External {
        host: "h".to_owned(),
        metadata,
    };
    [
        ("recoverable", root(true)),
        ("root", root(false)),
        ("outside", Scope::OutsideRoots),
        ("fixed", Scope::Fixed),
        ("local", Scope::LocalOther),
        ("external", external(false)),
        ("metadata", external(true)),
        ("forbidden", Scope::Forbidden),
    ]
}

fn word(finding: Finding) -> String {
    match finding {
        Finding::Pass => "pass".to_owned(),
        Finding::Ask { code, .. } => format!("ask {}", &code.number()[3..]),
        Finding::Deny { code, .. } => format!("deny {}", &code.number()[3..]),
    }
}

/// Every situation of a class in a profile, a line for each provenance, a word for each place.
fn table(profile: Profile, class: Class) -> String {
    let mut lines = String::new();
    for (source, vouched) in SOURCES
        .into_iter()
        .map(|source| (source, false))
        .chain([(SOURCES[1], true)])
    {
        let name = match (source, vouched) {
            (None, _) => "unknown".to_owned(),
            (Some(_), true) => "vouched".to_owned(),
            (Some(source), false) => format!("{source:?}").to_lowercase(),
        };
        let cells = places().map(|(_, scope)| {
            let targets = [Target {
                canonical: "t".to_owned(),
                scope,
            }];
            let situation = Situation {
                profile,
                class,
                source,
                vouched,
                targets: &targets,
                irreversible: false,
                has_program: false,
                recipient_present: true,
            };
            word(strictest(&judge(&situation)))
        });
        lines.push_str(&format!(
            "{name:<9} {}\n",
            cells.map(|cell| format!("{cell:<8}")).join(" ").trim_end()
        ));
    }
    lines
}

const READ_BALANCED: &str = "\
unknown   pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
user      pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
system    pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
developer pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
tool      pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
retrieval pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
memory    pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
agent     pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
vouched   pass     pass     ask 020  pass     pass     ask 070  deny 020 deny 020
";

const WRITE_BALANCED: &str = "\
unknown   pass     ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
user      pass     ask 070  ask 070  ask 070  ask 070  ask 070  deny 020 deny 020
system    pass     ask 070  ask 070  ask 070  ask 070  ask 070  deny 020 deny 020
developer pass     ask 070  ask 070  ask 070  ask 070  ask 070  deny 020 deny 020
tool      ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
retrieval ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
memory    ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
agent     ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
vouched   pass     ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
";

const OUTWARD: &str = "\
unknown   ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
user      ask 070  ask 070  ask 070  ask 070  ask 070  ask 070  deny 020 deny 020
system    ask 070  ask 070  ask 070  ask 070  ask 070  ask 070  deny 020 deny 020
developer ask 070  ask 070  ask 070  ask 070  ask 070  ask 070  deny 020 deny 020
tool      ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
retrieval ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
memory    ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
agent     ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
vouched   ask 053  ask 053  ask 053  ask 053  ask 053  ask 053  deny 020 deny 020
";

#[test]
fn the_whole_table() {
    //                    recoverable root outside fixed local external metadata forbidden
    for class in Class::ALL {
        for profile in PROFILES {
            let expected = match (class, profile) {
                (Class::Informational, Profile::Balanced) => READ_BALANCED.to_owned(),
                (Class::Informational, Profile::Strict) => {
                    READ_BALANCED.replace("ask 020 ", "deny 020")
                }
                (Class::PersistentStateChange, Profile::Balanced) => WRITE_BALANCED.to_owned(),
                (Class::PersistentStateChange, Profile::Strict) => {
                    WRITE_BALANCED.replace("unknown   pass   ", "unknown   ask 053")
                }
                _ => OUTWARD.to_owned(),
            };
            assert_eq!(
                table(profile, class),
                expected,
                "{} in {profile:?}",
                class.name()
            );
        }
    }
}

#[test]
fn what_is_irreversible_a_program_or_without_recipient_never_passes() {
    for class in Class::ALL {
        for profile in PROFILES {
            for source in SOURCES {
                for (_, scope) in places() {
                    let targets = [Target {
                        canonical: "t".to_owned(),
                        scope,
                    }];
                    let plain = Situation {
                        profile,
                        class,
                        source,
                        vouched: false,
                        targets: &targets,
                        irreversible: false,
                        has_program: false,
                        recipient_present: true,
                    };
                    let rank = |situation: &Situation<'_>| strictest(&judge(situation)).rank();
                    let base = rank(&plain);
                    assert!(
                        rank(&Situation {
                            has_program: true,
                            ..plain
                        }) >= base.max(1)
                    );
                    assert!(
                        rank(&Situation {
                            irreversible: true,
                            ..plain
                        }) >= base
                    );
                    if class == Class::PersistentStateChange {
                        assert!(
                            rank(&Situation {
                                irreversible: true,
                                ..plain
                            }) >= 1
                        );
                    }
                    if class.needs_recipient() {
                        assert_eq!(
                            rank(&Situation {
                                recipient_present: false,
                                ..plain
                            }),
                            2
                        );
                    }
                    assert!(
                        rank(&Situation {
                            vouched: true,
                            ..plain
                        }) >= base
                    );
                    assert!(
                        rank(&Situation {
                            profile: Profile::Strict,
                            ..plain
                        }) >= base
                    );
                    assert_eq!(
                        rank(&Situation {
                            targets: &[],
                            ..plain
                        }),
                        2,
                        "nothing resolved is nothing allowed"
                    );
                }
            }
        }
    }
}

#[test]
fn of_several_targets_the_strictest_verdict_counts() {
    let target = |scope| Target {
        canonical: "t".to_owned(),
        scope,
    };
    let targets = [
        target(Scope::InRoot {
            root: "r".to_owned(),
            recoverable: true,
        }),
        target(Scope::OutsideRoots),
        target(Scope::Forbidden),
    ];
    let situation = |targets| Situation {
        profile: Profile::Balanced,
        class: Class::PersistentStateChange,
        source: None,
        vouched: false,
        targets,
        irreversible: false,
        has_program: false,
        recipient_present: false,
    };
    let words = [&targets[..1], &targets[..2], &targets[..]]
        .map(|targets| word(strictest(&judge(&situation(targets)))));
    assert_eq!(words, ["pass", "ask 053", "deny 020"]);
}
