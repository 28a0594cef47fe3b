//! What every task of a client connection shares: who waits for what, and the way to the client.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lychgate_core::Code;
use lychgate_core::id::ActId;
use lychgate_core::json::Object;
use lychgate_gate::{AtWork, CallerGone, Gate, Session};
use lychgate_intake::answer::{response_bytes, without_decision};
use lychgate_intake::rebuild::cancelled_bytes;
use lychgate_intake::{Proposal, RequestId, listing, passing_bytes};
use tokio::sync::mpsc;

use super::ToLink;
use super::handshake::{Handshake, Stage};
use super::listing::Listing;
use super::refusals::{Refusals, Refused};
use super::upstream::{Answer, Upstream};

/// What every task of a connection shares.
pub(crate) struct Shared {
    pub(crate) gate: Arc<Gate>,
    pub(crate) session: Arc<Session>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) handshake: Handshake,
    pub(crate) listing: Listing,
    pub(crate) refusals: Refusals,
    pub(crate) endpoint: String,
    pub(crate) to: mpsc::Sender<ToLink>,
    open: Mutex<HashMap<RequestId, Open>>,
    /// The server's requests that the client has to answer, by the id the client sees.
    asked: Mutex<HashMap<RequestId, Asked>>,
    /// Acts whose call the server has and may still act on: until it has ended.
    at_work: Mutex<Vec<AtWork>>,
}

/// A server's question: its id there, and its method.
type Asked = (RequestId, String);

/// A request of the client that has no answer yet.
pub(crate) struct Open {
    gone: CallerGone,
    act: Option<ActId>,
    upstream: Option<u64>,
}

impl Open {
    /// A request that acts.
    pub(crate) fn held(gone: CallerGone) -> Self {
        Self {
            gone,
            act: None,
            upstream: None,
        }
    }

    /// A request that has passed to the server under this id.
    pub(crate) fn passing(gone: CallerGone, upstream: u64) -> Self {
        Self {
            gone,
            act: None,
            upstream: Some(upstream),
        }
    }
}

impl Shared {
    pub(crate) fn new(
        gate: &Arc<Gate>,
        session: &Arc<Session>,
        upstream: Arc<Upstream>,
        endpoint: &str,
        to: mpsc::Sender<ToLink>,
    ) -> Self {
        Self {
            gate: Arc::clone(gate),
            session: Arc::clone(session),
            upstream,
            handshake: Handshake::default(),
            listing: Listing::default(),
            refusals: Refusals::new(gate, session),
            endpoint: endpoint.to_owned(),
            to,
            open: Mutex::default(),
            asked: Mutex::default(),
            at_work: Mutex::default(),
        }
    }

    pub(crate) fn opened(&self, id: RequestId, open: Open) {
        self.open().insert(id, open);
    }

    pub(crate) fn is_open(&self, id: &RequestId) -> bool {
        self.open().contains_key(id)
    }

    /// The client gives a request up: its act and the id it went out under, as far as it has them.
    pub(crate) fn given_up(&self, id: &RequestId) -> Option<(Option<ActId>, Option<u64>)> {
        let open = self.open();
        let open = open.get(id)?;
        open.gone.say();
        Some((open.act, open.upstream))
    }

    /// The client's id of the request that went out under this id.
    pub(crate) fn client_id_of(&self, upstream: &RequestId) -> Option<RequestId> {
        let RequestId::Number(id) = upstream else {
            return None;
        };
        let upstream = u64::try_from(*id).ok()?;
        self.open()
            .iter()
            .find(|(_, open)| open.upstream == Some(upstream))
            .map(|(id, _)| id.clone())
    }

    /// The server's question goes to the client under an id of ours.
    pub(crate) fn ask_as(&self, server_id: RequestId, method: &str) -> RequestId {
        let ours = RequestId::String(format!("lychgate-{}", self.upstream.fresh_id()));
        let mut asked = self.asked();
        if asked.len() >= MOST_ASKED {
            asked.clear();
        }
        asked.insert(ours.clone(), (server_id, method.to_owned()));
        ours
    }

    /// The server's id, and the method, of a question the client answers.
    pub(crate) fn asked_as(&self, ours: &RequestId) -> Option<Asked> {
        self.asked().remove(ours)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<RequestId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<RequestId, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To the client. A client that does not read holds up its own connection and nothing else.
    pub(crate) async fn send(&self, message: ToLink) {
        let bytes = message.line.len();
        self.upstream.unread.fetch_add(bytes, Ordering::Relaxed);
        tokio::select! {
            sent = self.to.send(message) => drop(sent),
            () = self.gate.closing() => {}
        }
        self.upstream.unread.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What may as well not arrive: a client that does not read misses it, and nobody waits.
    pub(crate) fn hint(&self, line: Vec<u8>) {
        let message = ToLink {
            line,
            delivery: None,
        };
        let _ = self.to.try_send(message);
    }

    pub(crate) async fn say(&self, line: Vec<u8>) {
        self.send(ToLink {
            line,
            delivery: None,
        })
        .await;
    }

    pub(crate) fn held(&self, id: &RequestId, act: ActId) {
        if let Some(open) = self.open().get_mut(id) {
            open.act = Some(act);
        }
    }

    pub(crate) fn dispatched(&self, id: &RequestId, upstream: u64) {
        if let Some(open) = self.open().get_mut(id) {
            open.upstream = Some(upstream);
        }
    }

    /// The server has this act's call, has not answered, and may still act on it.
    pub(crate) fn still_at_work(&self, act: ActId) {
        let at_work = self.gate.at_work(act);
        let mut all = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(at_work);
    }

    pub(crate) fn finished(&self, id: &RequestId) {
        self.open().remove(id);
    }

    /// The call went out and nobody waits for it any more.
    pub(crate) async fn cancel_upstream(&self, id: &RequestId) {
        let upstream = self.open().get(id).and_then(|open| open.upstream);
        if let Some(upstream) = upstream {
            self.upstream
                .say(cancelled_bytes(upstream, "no answer in time"))
                .await;
        }
    }

    /// Whether the server speaks the modern era; asked once, in the words of the request at hand.
    pub(crate) async fn ensure_modern(&self, proposal: &Proposal) -> bool {
        match self.handshake.stage() {
            Stage::Modern => return true,
            Stage::Answered | Stage::Legacy => return false,
            Stage::New => {}
        }
        self.handshake.remember(proposal.meta.to_object());
        let (id, answer) = self.upstream.expect();
        let line = passing_bytes(
            id,
            "server/discover",
            self.handshake.own_params(Object::new()).as_ref(),
        );
        if !self.upstream.say(line).await {
            return false;
        }
        if let Ok(Ok(Ok(raw))) = tokio::time::timeout(PROBE, answer).await {
            self.handshake.discovered(&raw);
        }
        self.handshake.stage() == Stage::Modern
    }

    /// Everything held for the client is withdrawn; what is dispatched will find nobody.
    pub(crate) fn client_gone(&self) {
        self.session.mark_gone();
        for open in self.open().values() {
            open.gone.say();
            if let Some(act) = open.act {
                self.gate.orphaned(act);
            }
        }
    }

    /// The answer to a request that passed, as the client may have it.
    pub(crate) async fn passed_answer(
        &self,
        id: &RequestId,
        method: &str,
        answer: Answer,
    ) -> Vec<u8> {
        let raw = match answer {
            Ok(raw) => raw,
            Err(raw) => return response_bytes(id, Err(&raw)),
        };
        let clean = match method {
            "tools/list" => self.offered(&raw).await,
            _ => without_decision(&raw).map(Cow::into_owned),
        };
        let Some(clean) = clean else {
            let why = "the server's answer cannot be read";
            return self
                .refusals
                .request(&Refused::passing(id), Code::FailClosed, why)
                .await;
        };
        match method {
            "initialize" => self.handshake.answered(),
            "server/discover" => self.handshake.discovered(&clean),
            _ => {}
        }
        response_bytes(id, Ok(&clean))
    }

    /// One page of the server's tools, with those that are offered.
    async fn offered(&self, raw: &[u8]) -> Option<Vec<u8>> {
        if !self.listing.ensure(&self.upstream, &self.handshake).await {
            return None;
        }
        let current = self.gate.current();
        let server = current.applied.server(self.session.server())?;
        let page = listing::page(raw).ok()?;
        let kept = page.keeping(|tool| self.listing.offers(tool, &current.applied, server));
        without_decision(&kept).map(Cow::into_owned)
    }
}

/// Open questions of a server to its client.
const MOST_ASKED: usize = 256;
/// How long a server may take to say which era it speaks; interpreters start slowly.
const PROBE: Duration = Duration::from_secs(30);
