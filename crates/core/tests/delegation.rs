//! Chains of delegations: no link is more than the one above it, in any dimension.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "shared with `schemas.rs`")]
mod objects;

use lychgate_core::delegation::{
    AgentName, Broken, Budget, Chain, ClassSet, Delegation, DelegationFile, Exceeds, Grant, Name,
    Rate, Secret, Spend, TextSet, ToolSet, Window, names_tool,
};
use lychgate_core::id::DelegationId;
use lychgate_core::{ConsequenceClass, Digest, Timestamp};
use proptest::prelude::*;

fn texts<T: TryFrom<Vec<String>>>(texts: &[&str]) -> T
where
    T::Error: std::fmt::Debug,
{
    T::try_from(texts.iter().map(|text| (*text).to_owned()).collect()).unwrap()
}

fn agent(name: &str) -> AgentName {
    AgentName::try_from(name.to_owned()).unwrap()
}

/// The principal's own agent to `planner`, `planner` to `worker`.
fn two() -> [Delegation; 2] {
    let mut first = objects::delegation();
    first.delegation_id = DelegationId::from_bytes([1; 16]);
    first.parent_delegation_id = None;
    first.parent_agent_id = agent("root");
    first.child_agent_id = agent("planner");
    first.delegation_depth = 1;
    let mut second = objects::delegation();
    second.delegation_id = DelegationId::from_bytes([2; 16]);
    second.parent_delegation_id = Some(first.delegation_id);
    second.grant.further_depth = 0;
    [first, second]
}

#[test]
fn a_link_that_grants_less_or_as_much_hangs() {
    let [first, second] = two();
    let chain = Chain::new(vec![first.clone(), second]).unwrap();
    assert_eq!(
        (chain.depth(), chain.agent(), chain.parent()),
        (2, "worker", "planner")
    );
    assert!(chain.permits_tool("maps", "anything") && chain.permits_tool("search", "web.find"));
    assert!(!chain.permits_tool("search", "web") && !chain.permits_tool("map", "s"));
    assert!(!chain.permits_class(ConsequenceClass::Financial));
    assert!(
        chain.permits_destination(&["/src/a", "root:work"]) && !chain.permits_destination(&["x"])
    );
    assert!(chain.permits_purpose("general") && !chain.permits_purpose("billing"));
    assert_ne!(
        chain.digest().unwrap(),
        Chain::new(vec![first]).unwrap().digest().unwrap()
    );
}

/// What makes the second link more than the first, and what is said of it.
type Widening = (fn(&mut Delegation), Exceeds);

const WIDENINGS: [Widening; 22] = [
    (
        |link| link.grant.tools = texts(&["maps", "shell"]),
        Exceeds::Tools,
    ),
    (|link| link.grant.tools = texts(&["search"]), Exceeds::Tools),
    (
        |link| link.grant.tools = texts(&["search/pay"]),
        Exceeds::Tools,
    ),
    (
        |link| {
            link.grant.consequence_classes = ClassSet::of([ConsequenceClass::Financial]).unwrap();
        },
        Exceeds::Classes,
    ),
    (
        |link| link.grant.destinations = Some(texts(&["elsewhere"])),
        Exceeds::Destinations,
    ),
    (
        |link| link.grant.purposes = Some(texts(&["billing"])),
        Exceeds::Purposes,
    ),
    (|link| link.grant.further_depth = 1, Exceeds::FurtherDepth),
    (|link| link.grant.budget.acts = Some(21), Exceeds::Acts),
    (
        |link| link.grant.budget.high_risk_acts = Some(4),
        Exceeds::Acts,
    ),
    (
        |link| link.grant.budget.rate.as_mut().unwrap().acts = 11,
        Exceeds::Rate,
    ),
    (
        |link| {
            link.grant.budget.rate.as_mut().unwrap().window_ms = Window::try_from(59_999).unwrap()
        },
        Exceeds::Rate,
    ),
    (
        |link| {
            link.grant.budget.spend.as_mut().unwrap()[0].amount =
                "12.500000000000000001".parse().unwrap()
        },
        Exceeds::Spend,
    ),
    (
        |link| {
            link.grant.budget.spend.as_mut().unwrap()[0].unit =
                Name::try_from("CHF".to_owned()).unwrap()
        },
        Exceeds::Spend,
    ),
    (
        |link| link.expires_at = link.expires_at.after(std::time::Duration::from_millis(1)),
        Exceeds::Lifetime,
    ),
    (
        |link| link.issued_at = Timestamp::from_millis(1),
        Exceeds::Lifetime,
    ),
    (|link| link.expires_at = link.issued_at, Exceeds::Lifetime),
    (|link| link.delegation_depth = 1, Exceeds::Depth),
    (|link| link.parent_agent_id = agent("root"), Exceeds::Parent),
    (
        |link| link.parent_delegation_id = Some(DelegationId::from_bytes([7; 16])),
        Exceeds::Parent,
    ),
    (|link| link.child_agent_id = agent("root"), Exceeds::Circle),
    (
        |link| link.initiating_principal.principal_id = "mallory".to_owned(),
        Exceeds::Principal,
    ),
    (|link| link.epochs.authority_epoch += 1, Exceeds::Epoch),
];

#[test]
fn a_link_that_is_more_in_any_dimension_does_not() {
    for (at, (widen, exceeds)) in WIDENINGS.into_iter().enumerate() {
        let [first, mut second] = two();
        widen(&mut second);
        let broken = Chain::new(vec![first, second]).unwrap_err();
        assert_eq!(broken, Broken::Link { link: 2, exceeds }, "{at}");
    }
    let [first, second] = two();
    assert!(matches!(
        Chain::new(vec![second]),
        Err(Broken::Link {
            link: 1,
            exceeds: Exceeds::Parent
        })
    ));
    assert_eq!(Chain::new(vec![]), Err(Broken::Length));
    assert_eq!(Chain::new(vec![first; 17]), Err(Broken::Length));
}

#[test]
fn nobody_below_is_granted_what_one_above_lacks_by_leaving_it_out() {
    // Absent is "as above", never "everything".
    let [first, mut second] = two();
    second.grant.destinations = None;
    second.grant.purposes = None;
    second.grant.budget = Budget::default();
    let chain = Chain::new(vec![first, second]).unwrap();
    assert!(!chain.permits_destination(&["elsewhere"]));
    assert!(!chain.permits_purpose("billing"));
}

#[test]
fn a_file_is_read_strictly_and_its_secret_admits_one_user() {
    let [mut first, _] = two();
    let secret = Secret::new([3; 32]);
    first.holder.secret_digest = secret.digest();
    let chain = Chain::new(vec![first]).unwrap();
    let file = DelegationFile::new(&chain, Some(secret.clone()));
    let bytes = file.to_bytes().unwrap();
    let read = DelegationFile::parse(&bytes).unwrap();
    assert_eq!(read, file);
    assert!(
        !format!("{read:?}").contains("AwMD"),
        "the secret is not printed"
    );
    let holder = chain.holder().unwrap();
    assert!(holder.admits(1000, Some(&secret)));
    assert!(!holder.admits(1001, Some(&secret)), "another user's copy");
    assert!(!holder.admits(1000, None) && !holder.admits(1000, Some(&Secret::new([4; 32]))));
    let text = String::from_utf8(bytes).unwrap();
    for bad in [
        text.replacen('{', "{\"x\":1,", 1),
        text.replace(
            "\"tools\":[\"maps\",",
            "\"tools\":[\"search/web.find\",\"maps\",",
        ),
        text.replace("\"tools\":[\"maps\"", "\"tools\":[\"maps\",\"maps\""),
        format!("{text} x"),
    ] {
        assert!(DelegationFile::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn a_tool_is_a_server_or_one_function_of_it() {
    for good in ["fs", "fs/read_file", "a-b_1/ns/x.y"] {
        assert!(names_tool(good), "{good}");
    }
    for bad in [
        "",
        "/",
        "fs/",
        "/x",
        "FS",
        "-a",
        "fs/a b",
        "*",
        "fs/*",
        "lychgate.delegation",
        "f\u{455}",
    ] {
        assert!(!names_tool(bad), "{bad}");
    }
}

fn grants() -> impl Strategy<Value = Grant> {
    let tools = prop::collection::btree_set(
        prop::sample::select(vec!["a", "a/x", "a/y", "b", "b/x", "c/z"]),
        1..4,
    );
    let classes =
        prop::collection::btree_set(prop::sample::select(ConsequenceClass::ALL.to_vec()), 1..4);
    let destinations = prop::option::of(prop::collection::btree_set(
        prop::sample::select(vec!["p", "q", "r"]),
        1..3,
    ));
    let number = || prop::option::of(0..4_u64);
    let rate = prop::option::of((0..4_u64, 1_000..1_003_u64));
    let spend = prop::option::of(prop::collection::btree_map(
        prop::sample::select(vec!["EUR", "USD"]),
        0..3_u8,
        0..3,
    ));
    (
        tools,
        classes,
        destinations,
        0..3_u32,
        number(),
        number(),
        rate,
        spend,
    )
        .prop_map(
            |(tools, classes, destinations, further_depth, acts, high_risk_acts, rate, spend)| {
                Grant {
                    tools: ToolSet::of(tools.into_iter().map(str::to_owned)).unwrap(),
                    consequence_classes: ClassSet::of(classes).unwrap(),
                    destinations: destinations
                        .map(|set| TextSet::of(set.into_iter().map(str::to_owned)).unwrap()),
                    purposes: None,
                    further_depth,
                    budget: Budget {
                        acts,
                        high_risk_acts,
                        rate: rate.map(|(acts, window)| Rate {
                            acts,
                            window_ms: Window::try_from(window).unwrap(),
                        }),
                        spend: spend.map(|spend| {
                            let one = |(unit, amount): (&str, u8)| Spend {
                                unit: Name::try_from(unit.to_owned()).unwrap(),
                                amount: amount.to_string().parse().unwrap(),
                            };
                            spend.into_iter().map(one).collect()
                        }),
                    },
                }
            },
        )
}

proptest! {
    #[test]
    fn what_a_grant_permits_every_grant_above_it_permits(grants in prop::collection::vec(grants(), 1..4)) {
        let links = grants.into_iter().enumerate().map(|(at, grant)| {
            let number = u8::try_from(at).unwrap();
            let mut link = objects::minimal_delegation();
            link.delegation_id = DelegationId::from_bytes([number + 1; 16]);
            link.parent_delegation_id = (at > 0).then(|| DelegationId::from_bytes([number; 16]));
            link.parent_agent_id = agent(&format!("agent-{at}"));
            link.child_agent_id = agent(&format!("agent-{}", at + 1));
            link.delegation_depth = u32::from(number) + 1;
            link.holder.secret_digest = Digest::sha256(b"s");
            link.grant = grant;
            link
        }).collect::<Vec<_>>();
        let Ok(chain) = Chain::new(links.clone()) else { return Ok(()) };
        let above = (1..links.len()).map(|many| Chain::new(links[..many].to_vec()).unwrap());
        for above in above {
            for (server, function) in [("a", "x"), ("a", "y"), ("a", "w"), ("b", "x"), ("c", "z"), ("d", "x")] {
                prop_assert!(!chain.permits_tool(server, function) || above.permits_tool(server, function));
            }
            for class in ConsequenceClass::ALL {
                prop_assert!(!chain.permits_class(class) || above.permits_class(class));
            }
            for place in ["p", "q", "r", "s"] {
                prop_assert!(!chain.permits_destination(&[place]) || above.permits_destination(&[place]));
            }
        }
    }
}
