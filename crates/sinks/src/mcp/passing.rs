//! Requests that are known and free of effects: they pass, bounded in number and time like everything else.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::Code;
use lychgate_core::json::{Object, Value};
use lychgate_gate::{Caller, CallerGone};
use lychgate_intake::passing::known_params;
use lychgate_intake::rebuild::cancelled_bytes;
use lychgate_intake::{Era, RequestId, passing_bytes};
use tokio::sync::oneshot;

use super::connection::Connection;
use super::handshake::{Stage, shape_initialize, shape_meta};
use super::refusals::Refused;
use super::shared::{Open, Shared};
use super::upstream::Answer;

impl Connection {
    pub(super) async fn pass(
        &mut self,
        id: RequestId,
        method: String,
        mut params: Option<Value>,
        era: Era,
    ) {
        let stage = self.shared.handshake.stage();
        let early = era == Era::Legacy
            && !matches!(stage, Stage::Answered | Stage::Legacy)
            && !matches!(method.as_str(), "initialize" | "ping");
        if early {
            let why = "a request before the handshake";
            return self
                .refuse(&Refused::passing(&id), Code::MalformedAct, why)
                .await;
        }
        params = known_params(&method, params);
        self.shape(&method, &mut params, era);
        let (gone, caller) = CallerGone::new();
        let (upstream_id, answer) = self.shared.upstream.expect();
        let line = passing_bytes(upstream_id, &method, params.as_ref());
        if !self.shared.upstream.tell(line) {
            let why = "the server has ended or takes nothing more";
            return self
                .refuse(&Refused::passing(&id), Code::FailClosed, why)
                .await;
        }
        self.shared
            .opened(id.clone(), Open::passing(gone, upstream_id));
        let patience = self.with_server(|server| Some(server.timeout.saturating_mul(2)));
        let waits = !UNBOUNDED.contains(&method.as_str());
        let passing = Passing {
            shared: Arc::clone(&self.shared),
            id,
            method,
            upstream_id,
            caller,
            patience: waits.then(|| patience.unwrap_or(PATIENCE)),
        };
        self.tasks.spawn(passing.finish(answer));
    }

    /// What a server is told of the client is what the configuration says.
    fn shape(&self, method: &str, params: &mut Option<Value>, era: Era) {
        if method == "initialize" {
            self.shared.handshake.introduced(params.as_ref());
            let shaped = params.get_or_insert_with(|| Value::Object(Object::new()));
            return self.with_server(|server| shape_initialize(shaped, server));
        }
        if era == Era::Legacy {
            return;
        }
        self.with_server(|server| shape_meta(params.as_mut(), server));
        let meta = params.as_ref().and_then(|params| params.get("_meta"));
        if let Some(Value::Object(meta)) = meta {
            let mut meta = meta.clone();
            meta.remove("progressToken");
            self.shared.handshake.remember(meta);
        }
    }
}

/// A request that has passed and waits for its answer.
struct Passing {
    shared: Arc<Shared>,
    id: RequestId,
    method: String,
    upstream_id: u64,
    caller: Caller,
    /// `None`: as long as client and server are there.
    patience: Option<Duration>,
}

/// How a wait ended.
enum Waited {
    Answered(Answer),
    ServerGone,
    CallerGone,
    TimedOut,
}

impl Passing {
    async fn finish(self, answer: oneshot::Receiver<Answer>) {
        let waited = self.wait(answer).await;
        // Asked first: what is finished has no other end any more, which would look like a caller that has gone.
        let gone = self.caller.is_gone();
        self.shared.finished(&self.id);
        let why = match waited {
            Waited::CallerGone => return,
            Waited::Answered(answer) => {
                let answered = self
                    .shared
                    .passed_answer(&self.id, &self.method, answer)
                    .await;
                if !gone {
                    self.shared.say(answered).await;
                }
                return;
            }
            Waited::ServerGone => "the server has ended",
            Waited::TimedOut => {
                // `initialize` is never cancelled (MCP).
                if self.method != "initialize" {
                    let line = cancelled_bytes(self.upstream_id, "no answer in time");
                    self.shared.upstream.tell(line);
                }
                "the server did not answer in time"
            }
        };
        if !gone {
            let refused = Refused::passing(&self.id);
            let refusals = &self.shared.refusals;
            let line = refusals.request(&refused, Code::FailClosed, why).await;
            self.shared.say(line).await;
        }
    }

    async fn wait(&self, answer: oneshot::Receiver<Answer>) -> Waited {
        let too_late = async {
            match self.patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = answer => answer.map_or(Waited::ServerGone, Waited::Answered),
            () = self.caller.gone() => Waited::CallerGone,
            () = too_late => Waited::TimedOut,
        }
    }
}

/// What is answered only when something happens: a subscription's end, a task's result.
const UNBOUNDED: [&str; 2] = ["subscriptions/listen", "tasks/result"];
const PATIENCE: Duration = Duration::from_secs(120);
