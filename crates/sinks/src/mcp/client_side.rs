//! What a client sends: what acts, what passes, what is refused, by exact method name (MCP.md).

use std::sync::Arc;

use lychgate_core::Code;
use lychgate_core::json::Value;
use lychgate_gate::CallerGone;
use lychgate_intake::answer::error_object;
use lychgate_intake::passing::known_params;
use lychgate_intake::rebuild::{cancelled_bytes, notification_bytes};
use lychgate_intake::waiting::shows_urls;
use lychgate_intake::{
    ActingMethod, Body, ClientFault, ClientNotification, Denial, Era, FromClient, Proposal,
    RequestId, propose,
};

use super::call::Call;
use super::connection::Connection;
use super::handshake::shape_capabilities;
use super::refusals::Refused;
use super::shared::Open;

impl Connection {
    pub(super) async fn client_says(&mut self, message: Result<FromClient, ClientFault>) {
        match message {
            Ok(FromClient::Request { id, body, era }) => self.request(id, body, era).await,
            Ok(FromClient::Notification(notification)) => self.notification(notification),
            Ok(FromClient::Response { id, outcome }) => self.client_answered(&id, outcome).await,
            Ok(FromClient::Batch(_)) => {}
            Err(fault) => {
                if let Some(answer) = self.shared.refusals.fault(&fault).await {
                    self.shared.say(answer).await;
                }
                // The server waits for an answer that cannot be passed on.
                if let Some(id) = fault.answers {
                    let refusal = error_object(&Denial::new(fault.code));
                    self.client_answered(&id, Err(refusal)).await;
                }
            }
        }
    }

    async fn request(&mut self, id: RequestId, body: Body, era: Era) {
        let acting = match &body {
            Body::Acts(proposal) => Some(proposal.method.clone()),
            Body::Passes { .. } => None,
            Body::Refused { method, .. } => self
                .with_server(|server| server.method(method).is_some())
                .then(|| ActingMethod::Listed(method.clone())),
        };
        let refused = Refused {
            id: &id,
            method: acting.as_ref(),
            era,
        };
        // An id that is still open would make two requests answer to one name.
        if self.shared.is_open(&id) {
            return self
                .refuse(&refused, Code::MalformedAct, "the request id is in use")
                .await;
        }
        if self.tasks.len() >= self.most {
            return self
                .refuse(
                    &refused,
                    Code::EnvelopeExceeded,
                    "too many requests at a time",
                )
                .await;
        }
        match (body, &acting) {
            (Body::Acts(proposal), _) => self.act(id, *proposal, era),
            (Body::Passes { method, params }, _) => self.pass(id, method, params, era).await,
            (Body::Refused { params, .. }, Some(listed)) => {
                match propose(listed.clone(), params, &self.bounds) {
                    Ok(proposal) => self.act(id, proposal, era),
                    Err(fault) => {
                        let (code, pointer) = (Code::MalformedAct, Some(fault.pointer));
                        let refusals = &self.shared.refusals;
                        let line = refusals
                            .request_at(&refused, code, fault.reason, pointer)
                            .await;
                        self.shared.say(line).await;
                    }
                }
            }
            (Body::Refused { .. }, None) => {
                self.refuse(&refused, Code::ToolNotAuthorized, "the method is not known")
                    .await;
            }
        }
    }

    pub(super) async fn refuse(&self, refused: &Refused<'_>, code: Code, why: &'static str) {
        let line = self.shared.refusals.request(refused, code, why).await;
        self.shared.say(line).await;
    }

    fn act(&mut self, id: RequestId, mut proposal: Proposal, era: Era) {
        let shows_urls = match (era, &proposal.meta.client_capabilities) {
            (Era::Modern, capabilities) => capabilities.as_ref().is_some_and(shows_urls),
            (Era::Legacy, _) => self.shared.handshake.shows_urls(),
        };
        if let Some(Value::Object(capabilities)) = proposal.meta.client_capabilities.as_mut() {
            self.with_server(|server| shape_capabilities(capabilities, server, Era::Modern));
        }
        let (gone, caller) = CallerGone::new();
        self.shared.opened(id.clone(), Open::held(gone));
        let call = Call {
            shared: Arc::clone(&self.shared),
            id,
            era,
            caller,
            shows_urls,
        };
        self.tasks.spawn(call.run(proposal));
    }

    fn notification(&mut self, notification: ClientNotification) {
        let upstream = &self.shared.upstream;
        match notification {
            ClientNotification::Initialized => {
                self.shared.handshake.initialized();
                upstream.tell(notification_bytes("notifications/initialized", None));
            }
            ClientNotification::Cancelled { request, .. } => {
                let Some((act, upstream_id)) = self.shared.given_up(&request) else {
                    return;
                };
                if let Some(act) = act {
                    self.shared.gate.orphaned(act);
                }
                if let Some(id) = upstream_id {
                    upstream.tell(cancelled_bytes(id, "cancelled by the client"));
                }
            }
            ClientNotification::Progress { params } => {
                let method = "notifications/progress";
                let params = known_params(method, params);
                upstream.tell(notification_bytes(method, params.as_ref()));
            }
            //= PROFILE §4: roots come from the configuration
            ClientNotification::RootsListChanged | ClientNotification::Unknown { .. } => {}
        }
    }
}
