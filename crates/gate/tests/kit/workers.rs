//! Workers: what is handed to them, and their connections.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use lychgate_core::ConsequenceClass;
use lychgate_core::delegation::{
    AgentName, Budget, ClassSet, DelegationFile, Grant, Name, Rate, Spend, TextSet, ToolSet, Window,
};
use lychgate_gate::{CallerGone, Delegated, DelegationRequest, Denied, Peer, Session};
use tokio::sync::oneshot;

use super::Kit;

pub const INFORMATIONAL: ConsequenceClass = ConsequenceClass::Informational;
pub const CHANGE: ConsequenceClass = ConsequenceClass::PersistentStateChange;

/// A request to hand tools of `box` and some classes to `child`, with no further hop, for half an hour.
pub fn request(child: &str, tools: &[&str], classes: &[ConsequenceClass]) -> DelegationRequest {
    let tools = tools.iter().map(|tool| format!("box/{tool}"));
    DelegationRequest {
        child_agent_id: AgentName::try_from(child.to_owned()).unwrap(),
        grant: Grant {
            tools: ToolSet::of(tools).unwrap(),
            consequence_classes: ClassSet::of(classes.iter().copied()).unwrap(),
            destinations: None,
            purposes: None,
            further_depth: 0,
            budget: Budget::default(),
        },
        uid: 1000,
        lifetime_ms: Some(1_800_000),
    }
}

/// The same, deeper.
pub fn deeper(mut request: DelegationRequest, further: u32) -> DelegationRequest {
    request.grant.further_depth = further;
    request
}

/// The same, with a budget.
pub fn within(mut request: DelegationRequest, budget: Budget) -> DelegationRequest {
    request.grant.budget = budget;
    request
}

/// The same, to some places only.
pub fn to(mut request: DelegationRequest, places: &[&str]) -> DelegationRequest {
    let places = places.iter().map(|place| (*place).to_owned());
    request.grant.destinations = Some(TextSet::of(places).unwrap());
    request
}

pub fn acts(most: u64) -> Budget {
    Budget {
        acts: Some(most),
        ..Budget::default()
    }
}

pub fn rate(acts: u64, window: u64) -> Budget {
    Budget {
        rate: Some(Rate {
            acts,
            window_ms: Window::try_from(window).unwrap(),
        }),
        ..Budget::default()
    }
}

pub fn spend(unit: &str, amount: &str) -> Budget {
    Budget {
        spend: Some(vec![Spend {
            unit: Name::try_from(unit.to_owned()).unwrap(),
            amount: amount.parse().unwrap(),
        }]),
        ..Budget::default()
    }
}

impl Kit {
    /// Three hops are allowed.
    pub async fn delegating() -> Self {
        Self::delegating_with(|text| text).await
    }

    pub async fn delegating_with(edit: impl Fn(String) -> String) -> Self {
        Self::with(|text| edit(text).replace("id = \"agent-1\"", "id = \"agent-1\"\nmax_depth = 3"))
            .await
    }

    pub fn peer(&self) -> Peer {
        Peer {
            uid: 1000,
            pid: None,
        }
    }

    /// Delegates; whoever must be asked says no word.
    pub async fn try_delegate(
        &self,
        from: Option<&DelegationFile>,
        request: DelegationRequest,
    ) -> Result<Delegated, Denied> {
        let (gone, caller) = CallerGone::new();
        let waiting = |_| gone.say();
        let delegating = self
            .gate
            .delegate(self.peer(), from, request, &caller, &waiting);
        delegating.await
    }

    /// Delegates, with a person's yes where one is asked.
    pub async fn delegate(
        &self,
        from: Option<&DelegationFile>,
        request: DelegationRequest,
    ) -> Result<DelegationFile, Denied> {
        let (_here, caller) = CallerGone::new();
        let (tell, told) = oneshot::channel();
        let tell = Mutex::new(Some(tell));
        let waiting = |ticket| {
            if let Some(tell) = tell.lock().unwrap().take() {
                tell.send(ticket).unwrap();
            }
        };
        let delegating = self
            .gate
            .delegate(self.peer(), from, request, &caller, &waiting);
        tokio::pin!(delegating);
        tokio::select! {
            done = &mut delegating => return done.map(|delegated| delegated.file),
            Ok(ticket) = told => self.approve(ticket).await,
        }
        delegating.await.map(|delegated| delegated.file)
    }

    /// A worker's connection.
    pub async fn worker(&self, file: &DelegationFile) -> Result<Arc<Session>, Denied> {
        self.gate.connect_delegated("box", self.peer(), file).await
    }
}

/// The classes there are, as a set.
pub fn classes(of: &[ConsequenceClass]) -> BTreeSet<ConsequenceClass> {
    of.iter().copied().collect()
}
