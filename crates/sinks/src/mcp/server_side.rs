//! What a server says by itself: notifications that pass, questions that the gate answers or passes on (MCP.md).

use lychgate_core::json::{Object, Value};
use lychgate_core::receipt::ReceiptKind;
use lychgate_intake::answer::forward_bytes;
use lychgate_intake::answer::retag_subscription;
use lychgate_intake::method::{FromServerKind, from_server_kind};
use lychgate_intake::rebuild::reply_bytes;
use lychgate_intake::{Era, RequestId};
use lychgate_policy::Server;

use super::connection::{Connection, refusal};
use super::handshake::roots_list;
use super::upstream::Event;

impl Connection {
    pub(super) async fn server_says(&mut self, event: Event) {
        match event {
            Event::Notification { method, params } => {
                self.server_tells(&method, params.as_deref()).await
            }
            Event::Request { id, method, params } => {
                self.server_asks(id, &method, params.as_deref()).await
            }
        }
    }

    async fn server_tells(&mut self, method: &str, params: Option<&[u8]>) {
        match from_server_kind(method, false) {
            FromServerKind::ListChanged => self.shared.listing.outdated(),
            FromServerKind::Passes if method != "notifications/cancelled" => {}
            _ => return,
        }
        let client_id = |id: &RequestId| self.shared.client_id_of(id);
        let params = match params {
            Some(params) => match retag_subscription(params, client_id) {
                Some(params) => Some(params.into_owned()),
                None => return,
            },
            None => None,
        };
        self.shared
            .say(forward_bytes(None, method, params.as_deref()))
            .await;
    }

    async fn server_asks(&mut self, id: RequestId, method: &str, params: Option<&[u8]>) {
        let legacy = self.shared.handshake.era() == Some(Era::Legacy);
        let allowed = |pick: fn(&Server) -> bool| legacy && self.with_server(pick);
        match from_server_kind(method, true) {
            FromServerKind::Roots => {
                let roots = self.with_server(|server| Some(roots_list(server)));
                let roots = roots.unwrap_or(Value::Object(Object::new()));
                self.shared.upstream.say(reply_bytes(&id, Ok(&roots))).await;
            }
            FromServerKind::Ping => {
                self.shared
                    .upstream
                    .say(reply_bytes(&id, Ok(&Value::Object(Object::new()))))
                    .await;
            }
            FromServerKind::Elicitation if allowed(|server| server.elicitation) => {
                self.ask_client(id, method, params).await
            }
            FromServerKind::Sampling if allowed(|server| server.sampling) => {
                self.ask_client(id, method, params).await
            }
            _ => {
                self.shared
                    .upstream
                    .say(reply_bytes(&id, Err(&refusal("this request is refused"))))
                    .await;
            }
        }
    }

    /// A server's question goes to the client under an id of ours, and is a line in the record.
    async fn ask_client(&self, server_id: RequestId, method: &str, params: Option<&[u8]>) {
        if self.shared.gate.note(ReceiptKind::Noted).await.is_err() {
            self.shared
                .upstream
                .say(reply_bytes(
                    &server_id,
                    Err(&refusal("it could not be recorded")),
                ))
                .await;
            return;
        }
        let ours = self.shared.ask_as(server_id);
        self.shared
            .say(forward_bytes(Some(&ours), method, params))
            .await;
    }
}
