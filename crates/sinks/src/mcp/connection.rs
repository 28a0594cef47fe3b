//! One client connection: what passes, what acts, what is refused, by exact method name (MCP.md).

use std::sync::Arc;

use lychgate_core::Code;
use lychgate_core::json::{Object, Value};
use lychgate_gate::{CallerGone, Gate, Session};
use lychgate_intake::answer::{error, error_code, fault_answer, method_refused};
use lychgate_intake::rebuild::{cancelled_bytes, notification_bytes, reply_bytes};
use lychgate_intake::{
    ActingMethod, Body, ClientFault, ClientNotification, Era, FromClient, Limits, Proposal,
    RequestId, from_client, passing_bytes, propose,
};
use lychgate_policy::Server;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::call::Call;
use super::handshake::{Stage, shape_initialize, shape_meta};
use super::launch::{self, Launch, entry_digest};
use super::shared::{Open, Shared};
use super::upstream::{Event, Upstream};
use super::withheld;
use super::{FromLink, ToLink};

pub(crate) async fn serve(
    gate: Arc<Gate>,
    session: Arc<Session>,
    mut from: mpsc::Receiver<FromLink>,
    to: mpsc::Sender<ToLink>,
) {
    let current = gate.current();
    let Some(server) = current.applied.server(session.server()) else {
        return;
    };
    let unchanged = server.entry.is_none() || entry_digest(&server.command) == server.entry;
    let running = if unchanged {
        Launch::of(server).start()
    } else {
        refuse_launch()
    };
    let running = match running {
        Ok(running) => running,
        Err(fault) => {
            tracing::error!(%fault, server = session.server(), "the server is not started");
            return withheld::serve(&gate, &session, unchanged, &mut from, &to).await;
        }
    };
    let upstream = Upstream::new(running.stdin);
    let limits = current.applied.limits();
    let largest = usize::try_from(limits.message_bytes).unwrap_or(usize::MAX);
    let bounds = Limits {
        message_bytes: largest,
        arguments_bytes: usize::try_from(limits.arguments_bytes).unwrap_or(usize::MAX),
    };
    let most = usize::try_from(limits.in_flight).unwrap_or(usize::MAX);
    let (events_in, events) = mpsc::channel(EVENTS);
    let reading = tokio::spawn(Arc::clone(&upstream).read(running.stdout, largest, events_in));
    let shared = Arc::new(Shared::new(
        &gate,
        &session,
        Arc::clone(&upstream),
        server.endpoint(),
        to,
    ));
    let mut connection = Connection {
        shared: Arc::clone(&shared),
        bounds,
        most,
        tasks: JoinSet::new(),
    };
    connection.run(&mut from, events).await;
    shared.client_gone();
    upstream.hang_up().await;
    launch::end(running.child).await;
    upstream.finish();
    // Nothing that was dispatched is left without an outcome.
    while connection.tasks.join_next().await.is_some() {}
    drop(reading.await);
}

fn refuse_launch() -> Result<launch::Running, launch::LaunchFault> {
    Err(launch::LaunchFault::Pipes(std::io::Error::other(
        "its entry file is not the one pinned",
    )))
}

pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    bounds: Limits,
    most: usize,
    tasks: JoinSet<()>,
}

impl Connection {
    async fn run(
        &mut self,
        from: &mut mpsc::Receiver<FromLink>,
        mut events: mpsc::Receiver<Event>,
    ) {
        let mut client_speaks = true;
        loop {
            tokio::select! {
                // A task that ends has given its answer away, and there may be room again.
                message = from.recv(), if client_speaks && self.shared.upstream.has_room() => match message {
                    Some(message) => self.link_says(message).await,
                    None => client_speaks = false,
                },
                Some(event) = events.recv() => self.server_says(event).await,
                Some(_) = self.tasks.join_next() => {}
                () = self.shared.to.closed() => {
                    self.shared.client_gone();
                    return self.finish_dispatched(events).await;
                }
                () = self.shared.upstream.over() => return self.drain(from).await,
                () = self.shared.gate.closing() => return,
            }
            if !client_speaks && self.tasks.is_empty() {
                return;
            }
        }
    }

    /// The client is gone: what was dispatched may still be answered, and its outcome is worth waiting for.
    async fn finish_dispatched(&mut self, mut events: mpsc::Receiver<Event>) {
        loop {
            tokio::select! {
                next = self.tasks.join_next() => if next.is_none() { return },
                // What the server says by itself reaches nobody, and must not hold up its answers.
                Some(_) = events.recv() => {}
                () = self.shared.gate.closing() => return,
            }
        }
    }

    /// The server has ended: what is open is answered, what the client has already sent is refused.
    async fn drain(&mut self, from: &mut mpsc::Receiver<FromLink>) {
        while let Ok(message) = from.try_recv() {
            self.link_says(message).await;
        }
        let finishing = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            () = finishing => {}
            () = self.shared.gate.closing() => {}
        }
    }

    async fn link_says(&mut self, message: FromLink) {
        match message {
            FromLink::Delivered(act) => self.shared.gate.delivered(act),
            FromLink::TooLong => {
                self.shared
                    .gate
                    .deny_request(
                        &self.shared.session,
                        Code::MalformedAct,
                        "a line was too long",
                    )
                    .await;
            }
            FromLink::Line(line) => match from_client(&line, &self.bounds) {
                Ok(FromClient::Batch(elements)) => {
                    for element in elements {
                        self.client_says(element).await;
                    }
                }
                other => self.client_says(other).await,
            },
        }
    }

    async fn client_says(&mut self, message: Result<FromClient, ClientFault>) {
        match message {
            Ok(FromClient::Request { id, body, era }) => self.request(id, body, era).await,
            Ok(FromClient::Notification(notification)) => self.notification(notification).await,
            Ok(FromClient::Response { id, outcome }) => self.client_answered(&id, outcome).await,
            Ok(FromClient::Batch(_)) => {}
            Err(fault) => {
                self.shared
                    .gate
                    .deny_request(
                        &self.shared.session,
                        fault.code,
                        "the request is not well formed",
                    )
                    .await;
                if let Some(answer) = fault_answer(&fault) {
                    self.shared.say(answer).await;
                }
                // The server waits for an answer that cannot be passed on.
                if let Some(id) = fault.answers {
                    self.client_answered(
                        &id,
                        Err(refusal("the client's answer is not well formed")),
                    )
                    .await;
                }
            }
        }
    }

    async fn request(&mut self, id: RequestId, body: Body, era: Era) {
        // An id that is still open would make two requests answer to one name.
        if self.shared.is_open(&id) {
            let line = error(
                &id,
                error_code(Code::MalformedAct),
                "this request id is in use",
                None,
            );
            self.shared
                .gate
                .deny_request(
                    &self.shared.session,
                    Code::MalformedAct,
                    "a request id in use",
                )
                .await;
            return self.shared.say(line).await;
        }
        match body {
            Body::Acts(proposal) => self.act(id, *proposal, era).await,
            Body::Passes { method, params } => self.pass(id, method, params, era).await,
            Body::Refused { method, params } => {
                let listed = self.with_server(|server| server.method(&method).is_some());
                match listed.then(|| propose(ActingMethod::Listed(method), params, &self.bounds)) {
                    Some(Ok(proposal)) => self.act(id, proposal, era).await,
                    Some(Err(_)) | None => {
                        let code = Code::ToolNotAuthorized;
                        self.shared
                            .gate
                            .deny_request(&self.shared.session, code, "the method is not known")
                            .await;
                        self.shared.say(method_refused(&id)).await;
                    }
                }
            }
        }
    }

    pub(super) fn with_server<T: Default>(&self, read: impl FnOnce(&Server) -> T) -> T {
        let current = self.shared.gate.current();
        current
            .applied
            .server(self.shared.session.server())
            .map(read)
            .unwrap_or_default()
    }

    async fn act(&mut self, id: RequestId, mut proposal: Proposal, era: Era) {
        if self.tasks.len() >= self.most {
            let code = Code::EnvelopeExceeded;
            let denied = self
                .shared
                .gate
                .deny_request(&self.shared.session, code, "too many acts at a time")
                .await;
            let denial = lychgate_intake::Denial {
                act: denied.act,
                ..lychgate_intake::Denial::new(denied.code)
            };
            let line = lychgate_intake::answer::denial_answer(&id, &proposal.method, &denial, era);
            return self.shared.say(line).await;
        }
        if let Some(Value::Object(capabilities)) = proposal.meta.client_capabilities.as_mut() {
            self.with_server(|server| {
                super::handshake::shape_capabilities(capabilities, server, Era::Modern)
            });
        }
        let (gone, caller) = CallerGone::new();
        self.shared.opened(id.clone(), Open::held(gone));
        let call = Call {
            shared: Arc::clone(&self.shared),
            id,
            era,
            caller,
        };
        self.tasks.spawn(call.run(proposal));
    }

    async fn pass(&mut self, id: RequestId, method: String, mut params: Option<Value>, era: Era) {
        let early = era == Era::Legacy
            && !matches!(
                self.shared.handshake.stage(),
                Stage::Answered | Stage::Legacy
            )
            && !matches!(method.as_str(), "initialize" | "ping");
        if early {
            let line = error(
                &id,
                error_code(Code::MalformedAct),
                "a request before the handshake",
                None,
            );
            return self.shared.say(line).await;
        }
        match (method.as_str(), era) {
            ("initialize", _) => {
                let shaped = params.get_or_insert_with(|| Value::Object(Object::new()));
                self.with_server(|server| shape_initialize(shaped, server));
            }
            (_, Era::Modern) => {
                self.with_server(|server| shape_meta(params.as_mut(), server));
                if let Some(Value::Object(meta)) =
                    params.as_ref().and_then(|params| params.get("_meta"))
                {
                    let mut meta = meta.clone();
                    meta.remove("progressToken");
                    self.shared.handshake.remember(meta);
                }
            }
            (_, Era::Legacy) => {}
        }
        let (gone, caller) = CallerGone::new();
        let (upstream_id, answer) = self.shared.upstream.expect();
        self.shared
            .opened(id.clone(), Open::passing(gone, upstream_id));
        let line = passing_bytes(upstream_id, &method, params.as_ref());
        if !self.shared.upstream.say(line).await {
            self.shared.finished(&id);
            return self
                .shared
                .say(error(
                    &id,
                    error_code(Code::FailClosed),
                    "the server has ended",
                    None,
                ))
                .await;
        }
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            let answer = tokio::select! {
                answer = answer => answer.ok(),
                () = caller.gone() => None,
            };
            // Asked first: what is finished has no other end any more, which would look like a caller that has gone.
            let gone = caller.is_gone();
            shared.finished(&id);
            let Some(answer) = answer else {
                if !gone {
                    shared
                        .say(error(
                            &id,
                            error_code(Code::FailClosed),
                            "the server has ended",
                            None,
                        ))
                        .await;
                }
                return;
            };
            let line = shared.passed_answer(&id, &method, answer).await;
            if !gone {
                shared.say(line).await;
            }
        });
    }

    async fn notification(&mut self, notification: ClientNotification) {
        match notification {
            ClientNotification::Initialized => {
                self.shared.handshake.initialized();
                self.shared
                    .upstream
                    .say(notification_bytes("notifications/initialized", None))
                    .await;
            }
            ClientNotification::Cancelled { request, .. } => {
                let Some((act, upstream)) = self.shared.given_up(&request) else {
                    return;
                };
                if let Some(act) = act {
                    self.shared.gate.orphaned(act);
                }
                if let Some(upstream) = upstream {
                    self.shared
                        .upstream
                        .say(cancelled_bytes(upstream, "cancelled by the client"))
                        .await;
                }
            }
            ClientNotification::Progress { params } => {
                self.shared
                    .upstream
                    .say(notification_bytes(
                        "notifications/progress",
                        params.as_ref(),
                    ))
                    .await;
            }
            //= PROFILE §4: roots come from the configuration
            ClientNotification::RootsListChanged | ClientNotification::Unknown { .. } => {}
        }
    }

    async fn client_answered(&self, id: &RequestId, outcome: Result<Value, Value>) {
        if let Some(server_id) = self.shared.asked_as(id) {
            self.shared
                .upstream
                .say(reply_bytes(&server_id, outcome.as_ref()))
                .await;
        }
    }
}

/// Our error to a server's request: a plain object outside the reserved numbers.
pub(crate) fn refusal(message: &str) -> Value {
    let mut object = Object::new();
    let code = error_code(Code::ToolNotAuthorized);
    object.insert(
        "code".to_owned(),
        lychgate_core::json::to_value(&code).unwrap_or(Value::Null),
    );
    object.insert("message".to_owned(), Value::from(message));
    Value::Object(object)
}

/// How many of the server's own messages wait for a slow client before the server is held up.
const EVENTS: usize = 256;
