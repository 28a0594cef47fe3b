//! Calls, from the client's words to the settled effect.

use std::sync::{Arc, Mutex};

use lychgate_core::State;
use lychgate_core::id::{ActId, TicketId};
use lychgate_core::json::{self, Value};
use lychgate_gate::{
    Caller, CallerGone, Connected, Denied, Dispatched, End, FinalitySink, HeldAct, Passed, Peer,
    Session,
};
use lychgate_intake::{ActingMethod, Limits, Proposal, propose};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Kit, value_of};

/// How a call went, its effect performed.
#[derive(Debug)]
pub enum Went {
    Ran(ActId, State),
    Recorded(ActId, Vec<u8>),
    Denied(Denied),
}

impl Went {
    pub fn denied(self) -> Denied {
        match self {
            Self::Denied(denied) => denied,
            other => panic!("not denied but {other:?}"),
        }
    }

    pub fn ran(self) -> ActId {
        match self {
            Self::Ran(act, _) => act,
            other => panic!("did not run but {other:?}"),
        }
    }
}

impl Kit {
    pub fn session(&self) -> Arc<Session> {
        let peer = Peer {
            uid: 1000,
            pid: None,
        };
        self.gate.connect("box", peer).unwrap()
    }

    pub fn sink(&self) -> FinalitySink {
        FinalitySink::mcp("box")
    }

    pub fn path(&self, root: &str, name: &str) -> String {
        self.folder
            .path(root)
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// Arguments of `write_note` into a root.
    pub fn note(&self, root: &str, name: &str, text: &str) -> String {
        format!(r#"{{"path":"{}","text":"{text}"}}"#, self.path(root, name))
    }

    /// What is really connected: what was pinned.
    pub fn connected(&self, function: &str) -> Connected {
        let current = self.gate.current();
        let server = current.applied.server("box").unwrap();
        let entry = match server.resolve(function) {
            lychgate_policy::Resolution::Exact(entry) => Some(entry.definition),
            _ => None,
        };
        Connected {
            endpoint: server.endpoint().to_owned(),
            definition: entry,
            listed: false,
        }
    }

    pub fn held(&self, session: &Arc<Session>, function: &str, arguments: &str) -> HeldAct {
        let connected = self.connected(function);
        self.gate
            .hold(session, proposal(function, arguments), connected)
            .unwrap()
    }

    pub async fn pass_held(&self, held: HeldAct, caller: &Caller) -> Passed {
        let function = held.act().tool.function_id.clone();
        let connected = self.connected(&function);
        let live = move || connected.clone();
        self.gate
            .pass(held, &self.sink(), caller, &live, &|_| {})
            .await
    }

    pub async fn pass(&self, session: &Arc<Session>, function: &str, arguments: &str) -> Passed {
        let (_here, caller) = CallerGone::new();
        self.pass_held(self.held(session, function, arguments), &caller)
            .await
    }

    /// Passes a call, performs its effect and settles it; the answer is not delivered yet.
    pub async fn run(
        &self,
        session: &Arc<Session>,
        function: &str,
        arguments: &str,
        end: End,
    ) -> Went {
        let passed = self.pass(session, function, arguments).await;
        self.finish(passed, end).await
    }

    pub async fn finish(&self, passed: Passed, end: End) -> Went {
        match passed {
            Passed::Dispatched { dispatched, .. } => {
                let begun = self.effects.begin(dispatched).unwrap();
                let settled = self.gate.settle(begun.end(end), Some(ANSWER)).await;
                Went::Ran(settled.act, settled.state)
            }
            Passed::Recorded { act, answer } => Went::Recorded(act, answer.to_vec()),
            Passed::Denied(denied) => Went::Denied(denied),
        }
    }

    /// Passes a call that must ask, in a task of its own, up to where it waits.
    pub async fn ask(&self, session: &Arc<Session>, function: &str, arguments: &str) -> Asked {
        let held = self.held(session, function, arguments);
        let act = held.act().candidate_act_id;
        let (gone, caller) = CallerGone::new();
        let (tell, told) = oneshot::channel();
        let tell = Mutex::new(Some(tell));
        let (gate, sink, connected) = (
            Arc::clone(&self.gate),
            self.sink(),
            self.connected(function),
        );
        let task = tokio::spawn(async move {
            let live = move || connected.clone();
            let waiting = move |ticket| {
                if let Some(tell) = tell.lock().unwrap().take() {
                    tell.send(ticket).unwrap();
                }
            };
            gate.pass(held, &sink, &caller, &live, &waiting).await
        });
        let ticket = told.await.expect("it was not escalated");
        Asked {
            act,
            ticket,
            gone,
            task,
        }
    }
}

/// A call that waits for a person.
pub struct Asked {
    pub act: ActId,
    pub ticket: TicketId,
    pub gone: CallerGone,
    pub task: JoinHandle<Passed>,
}

impl Asked {
    pub async fn done(self) -> Passed {
        self.task.await.unwrap()
    }

    pub async fn give_up(self) -> Denied {
        self.gone.say();
        denied(self.task.await.unwrap())
    }

    pub fn abort(self) {
        self.task.abort();
    }
}

pub fn denied(passed: Passed) -> Denied {
    match passed {
        Passed::Denied(denied) => denied,
        other => panic!("not denied but {other:?}"),
    }
}

pub fn dispatched(passed: Passed) -> (HeldAct, Dispatched) {
    match passed {
        Passed::Dispatched { held, dispatched } => (*held, dispatched),
        other => panic!("not dispatched but {other:?}"),
    }
}

pub fn proposal(function: &str, arguments: &str) -> Proposal {
    let mut params = json::Object::new();
    params.insert("name".to_owned(), Value::from(function));
    params.insert("arguments".to_owned(), value_of(arguments.as_bytes()));
    let limits = Limits::default();
    propose(
        ActingMethod::ToolsCall,
        Some(Value::Object(params)),
        &limits,
    )
    .unwrap()
}

/// A call that always asks.
pub const MAIL: &str = r#"{"to":"bob@example.com","body":"hello"}"#;
/// What destinations answer here.
pub const ANSWER: &[u8] = br#"{"content":[]}"#;
