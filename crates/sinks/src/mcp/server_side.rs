//! What a server says by itself: notifications that pass, questions that the gate answers or passes on (MCP.md).

use lychgate_core::json::{Object, Value};
use lychgate_core::{Code, jcs};
use lychgate_intake::answer::{error_object, forward_bytes, retag_subscription};
use lychgate_intake::method::{FromServerKind, from_server_kind};
use lychgate_intake::rebuild::reply_bytes;
use lychgate_intake::{Denial, Era, RequestId};
use lychgate_policy::Server;

use super::connection::Connection;
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
        let reply = match from_server_kind(method, true) {
            FromServerKind::Roots => {
                let roots = self.with_server(|server| Some(roots_list(server)));
                Ok(roots.unwrap_or(Value::Object(Object::new())))
            }
            FromServerKind::Ping => Ok(Value::Object(Object::new())),
            FromServerKind::Elicitation if allowed(|server| server.elicitation) => {
                return self.ask_client(id, method, params).await;
            }
            FromServerKind::Sampling if allowed(|server| server.sampling) => {
                return self.ask_client(id, method, params).await;
            }
            _ => Err(error_object(&Denial::new(Code::ToolNotAuthorized))),
        };
        self.reply(&id, reply.as_ref());
    }

    /// Answers a server's question. A server that takes no more loses the answer, as with any other pipe that is full.
    pub(super) fn reply(&self, server_id: &RequestId, outcome: Result<&Value, &Value>) {
        self.shared.upstream.tell(reply_bytes(server_id, outcome));
    }

    /// A server's question goes to the client under an id of ours, and is a line in the record.
    async fn ask_client(&self, server_id: RequestId, method: &str, params: Option<&[u8]>) {
        let asked = params.unwrap_or_default();
        if let Err(code) = self.note("the server asks", method, asked).await {
            let refusal = error_object(&Denial::new(code));
            return self.reply(&server_id, Err(&refusal));
        }
        let ours = self.shared.ask_as(server_id, method);
        self.shared
            .say(forward_bytes(Some(&ours), method, params))
            .await;
    }

    /// The client's answer to a server's question goes to the server, once it is a line in the record.
    pub(super) async fn client_answered(&self, id: &RequestId, outcome: Result<Value, Value>) {
        let Some((server_id, method)) = self.shared.asked_as(id) else {
            return;
        };
        let (Ok(said) | Err(said)) = &outcome;
        let said = jcs::to_bytes(said);
        match self.note("the client answers", &method, &said).await {
            Ok(()) => self.reply(&server_id, outcome.as_ref()),
            Err(code) => self.reply(&server_id, Err(&error_object(&Denial::new(code)))),
        }
    }

    //= MCP "A gate for both eras": elicitation passes and is recorded
    /// `method` is one of those that are asked of a client; the message itself stays out of the record.
    async fn note(&self, who: &str, method: &str, message: &[u8]) -> Result<(), Code> {
        let what = format!("{who}: {method}, server {}", self.shared.session.server());
        self.shared.gate.note_message(&what, message).await
    }
}
