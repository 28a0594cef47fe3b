//! For random chains: no child ever does what an ancestor could not, and no budget is ever passed, restarts and all.

use std::collections::BTreeMap;

use lychgate_core::ConsequenceClass;
use lychgate_core::delegation::{Budget, ClassSet, DelegationFile, TextSet, ToolSet};
use lychgate_core::id::DelegationId;
use lychgate_gate::{DelegationRequest, End, Passed, Verdict};
use lychgate_store::{Account, Store};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

use super::kit::Kit;
use super::kit::workers::{CHANGE, INFORMATIONAL, request};

const TOOLS: [&str; 4] = ["read_note", "write_note", "search", "purposed"];
const CLASSES: [ConsequenceClass; 3] = [INFORMATIONAL, CHANGE, ConsequenceClass::DataDisclosure];
const PLACES: [&str; 5] = [
    "root:work",
    "root:plain",
    "search.example",
    "ledger",
    "elsewhere",
];

/// A grant in small numbers, so that some fit into others.
#[derive(Clone, Debug)]
struct Wanted {
    tools: Vec<&'static str>,
    classes: Vec<ConsequenceClass>,
    places: Option<Vec<&'static str>>,
    further: u32,
    acts: Option<u64>,
    /// It is cut down to what the one above it has, as an honest planner would.
    fits: bool,
}

impl Wanted {
    fn under(&self, above: Option<&Self>) -> Self {
        let mut own = self.clone();
        let Some(above) = above.filter(|_| self.fits) else {
            return own;
        };
        own.tools.retain(|tool| above.tools.contains(tool));
        if own.tools.is_empty() {
            own.tools.clone_from(&above.tools);
        }
        own.classes.retain(|class| above.classes.contains(class));
        if own.classes.is_empty() {
            own.classes.clone_from(&above.classes);
        }
        if let (Some(places), Some(wider)) = (&mut own.places, &above.places) {
            places.retain(|place| wider.contains(place));
        }
        own.places = own.places.filter(|places| !places.is_empty());
        own.further = above.further.saturating_sub(1);
        own.acts = own
            .acts
            .filter(|acts| above.acts.is_none_or(|most| *acts <= most));
        own
    }

    fn request(&self, name: &str) -> DelegationRequest {
        let mut wanted = request(name, &[TOOLS[0]], &[INFORMATIONAL]);
        let tools = self.tools.iter().map(|tool| format!("box/{tool}"));
        wanted.grant.tools = ToolSet::of(tools).unwrap();
        wanted.grant.consequence_classes = ClassSet::of(self.classes.iter().copied()).unwrap();
        let places = self.places.as_ref();
        wanted.grant.destinations = places
            .map(|places| TextSet::of(places.iter().map(|place| (*place).to_owned())).unwrap());
        wanted.grant.further_depth = self.further;
        wanted.grant.budget = Budget {
            acts: self.acts,
            ..Budget::default()
        };
        wanted
    }
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (
        subsequence(TOOLS.to_vec(), 1..=4),
        subsequence(CLASSES.to_vec(), 1..=3),
        prop::option::of(subsequence(PLACES.to_vec(), 1..=5)),
        prop::sample::select(&[0, 1, 2, 2][..]),
        prop::option::weighted(0.2, 1..4_u64),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(tools, classes, places, further, acts, fits)| Wanted {
            tools,
            classes,
            places,
            further,
            acts,
            fits,
        })
}

fn calls(kit: &Kit) -> Vec<(&'static str, String)> {
    let read = |root| format!(r#"{{"path":"{}"}}"#, kit.path(root, "a"));
    vec![
        ("read_note", read("work")),
        ("read_note", read("plain")),
        ("write_note", kit.note("work", "a", "x")),
        ("search", r#"{"url":"https://search.example/q"}"#.to_owned()),
        ("purposed", "{}".to_owned()),
        ("pay", r#"{"to":"bob","amount":1}"#.to_owned()),
    ]
}

/// Whether an agent might do this: it is allowed, or a person would be asked.
async fn might(
    kit: &Kit,
    file: Option<&DelegationFile>,
    (tool, arguments): &(&str, String),
) -> bool {
    let session = match file {
        Some(file) => kit.worker(file).await.unwrap(),
        None => kit.session(),
    };
    let held = kit.held(&session, tool, arguments);
    !matches!(kit.gate.decide(held).await, Verdict::Deny(_))
}

async fn no_child_exceeds_an_ancestor(wants: Vec<Wanted>) {
    let kit = Kit::delegating().await;
    let mut chain: Vec<DelegationFile> = Vec::new();
    let mut above: Option<Wanted> = None;
    for (at, wanted) in wants.iter().enumerate() {
        let wanted = wanted.under(above.as_ref());
        let request = wanted.request(&format!("agent-at-{at}"));
        if let Ok(file) = kit.delegate(chain.last(), request).await {
            chain.push(file);
            above = Some(wanted);
        }
    }
    for call in &calls(&kit) {
        let mut above = might(&kit, None, call).await;
        for file in &chain {
            let below = might(&kit, Some(file), call).await;
            assert!(!below || above, "{call:?} at depth {}", file.chain.len());
            above = below;
        }
    }
}

/// What can happen to budgets.
#[derive(Clone, Debug)]
enum Step {
    Delegate(Option<Index>, Wanted),
    Act(Index, usize),
    Settle(Index, u8),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (prop::option::of(any::<Index>()), wanted())
            .prop_map(|(from, wanted)| Step::Delegate(from, wanted)),
        8 => (any::<Index>(), 0..3_usize).prop_map(|(who, what)| Step::Act(who, what)),
        4 => (any::<Index>(), 0..3_u8).prop_map(|(which, how)| Step::Settle(which, how)),
        1 => Just(Step::Restart),
    ]
}

/// What the model knows of a link: how many acts below it may have had an effect.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    acts: u64,
    most: Option<u64>,
}

struct Running {
    kit: Option<Kit>,
    files: Vec<DelegationFile>,
    used: BTreeMap<DelegationId, Used>,
    flying: Vec<(Vec<DelegationId>, lychgate_gate::Begun)>,
}

fn ids(file: &DelegationFile) -> Vec<DelegationId> {
    file.chain.iter().map(|link| link.delegation_id).collect()
}

impl Running {
    fn kit(&self) -> &Kit {
        self.kit.as_ref().unwrap()
    }

    fn has_room(&self, chain: &[DelegationId]) -> bool {
        chain.iter().all(|id| {
            let used = self.used[id];
            used.most.is_none_or(|most| used.acts < most)
        })
    }

    fn add(&mut self, chain: &[DelegationId], by: i64) {
        for id in chain {
            let used = self.used.get_mut(id).unwrap();
            used.acts = used.acts.checked_add_signed(by).unwrap();
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Delegate(from, wanted) => {
                let from = from.filter(|_| !self.files.is_empty());
                let from = from.map(|at| self.files[at.index(self.files.len())].clone());
                let name = format!("agent-{}", self.used.len());
                let above = from.as_ref().map(ids).unwrap_or_default();
                let room = self.has_room(&above);
                let made = self
                    .kit()
                    .delegate(from.as_ref(), wanted.request(&name))
                    .await;
                if let Ok(file) = made {
                    assert!(room, "a delegation that no budget had room for");
                    self.add(&above, 1);
                    let id = *ids(&file).last().unwrap();
                    self.used.insert(
                        id,
                        Used {
                            acts: 0,
                            most: wanted.acts,
                        },
                    );
                    self.files.push(file);
                }
            }
            Step::Act(who, what) if !self.files.is_empty() => {
                let file = self.files[who.index(self.files.len())].clone();
                let chain = ids(&file);
                let session = self.kit().worker(&file).await.unwrap();
                let (tool, arguments) = calls(self.kit()).swap_remove(what);
                let room = self.has_room(&chain);
                if let Passed::Dispatched { dispatched, .. } =
                    self.kit().pass(&session, tool, &arguments).await
                {
                    assert!(room, "an act that no budget had room for");
                    self.add(&chain, 1);
                    let begun = self.kit().effects.begin(dispatched).unwrap();
                    self.flying.push((chain, begun));
                }
            }
            Step::Settle(which, how) if !self.flying.is_empty() => {
                let at = which.index(self.flying.len());
                let (chain, begun) = self.flying.swap_remove(at);
                let end = match how {
                    0 => End::Effected,
                    1 => End::NoEffect,
                    _ => End::Unknown(lychgate_gate::Unknown::AnswerLost),
                };
                let act = begun.act();
                self.kit().gate.settle(begun.end(end), None).await;
                self.kit().gate.delivered(act);
                if end == End::NoEffect {
                    self.add(&chain, -1);
                }
            }
            Step::Act(..) | Step::Settle(..) => {}
            Step::Restart => {
                self.flying.clear();
                let kit = self.kit.take().unwrap().restart().await;
                self.kit = Some(kit);
            }
        }
        self.check();
    }

    /// The counters are what happened, and no more than was granted.
    fn check(&self) {
        for (id, used) in &self.used {
            let drawn = self.kit().store.account(Account::Delegation(*id)).unwrap();
            let drawn = drawn.map_or(0, |drawn| drawn.acts);
            if let Some(most) = used.most {
                assert_eq!(drawn, used.acts);
                assert!(drawn <= most);
            }
        }
    }
}

fn run<S: Strategy>(cases: u32, strategy: S, test: impl AsyncFn(S::Value))
where
    S::Value: Clone,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let config = ProptestConfig {
        cases,
        max_shrink_iters: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest::test_runner::TestRunner::new(config)
        .run(&strategy, |value| {
            runtime.block_on(test(value));
            Ok(())
        })
        .unwrap();
}

//= draft §5.9: by delegation nothing is conferred that the delegating agent may not do itself
#[test]
fn no_delegated_child_ever_does_what_an_ancestor_could_not() {
    run(
        32,
        prop::collection::vec(wanted(), 1..6),
        no_child_exceeds_an_ancestor,
    );
}

#[test]
fn any_history_of_workers_keeps_within_every_budget() {
    run(16, prop::collection::vec(step(), 1..40), async |steps| {
        let mut running = Running {
            kit: Some(Kit::delegating().await),
            files: Vec::new(),
            used: BTreeMap::new(),
            flying: Vec::new(),
        };
        for step in steps {
            running.take(step).await;
        }
    });
}
