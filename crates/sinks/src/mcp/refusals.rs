//! What is refused before it is an act: recorded first, then answered with the constant sentence of its code. Why it was
//! refused is in the record alone (PROFILE §6).

use std::sync::Arc;

use lychgate_core::Code;
use lychgate_gate::{Denied, Gate, Session};
use lychgate_intake::answer::{denial_answer, denial_error, fault_answer};
use lychgate_intake::{ActingMethod, ClientFault, Denial, Era, RequestId};

/// The one way to refuse a request of a connection.
pub(crate) struct Refusals {
    gate: Arc<Gate>,
    session: Arc<Session>,
}

/// A request that is to be refused: whom to answer, and in which form.
pub(crate) struct Refused<'a> {
    pub(crate) id: &'a RequestId,
    /// `None` for a request that does not act.
    pub(crate) method: Option<&'a ActingMethod>,
    pub(crate) era: Era,
}

impl<'a> Refused<'a> {
    /// A request that does not act: it is answered with an error, whatever the era.
    pub(crate) const fn passing(id: &'a RequestId) -> Self {
        Self {
            id,
            method: None,
            era: Era::Legacy,
        }
    }
}

impl Refusals {
    pub(crate) fn new(gate: &Arc<Gate>, session: &Arc<Session>) -> Self {
        Self {
            gate: Arc::clone(gate),
            session: Arc::clone(session),
        }
    }

    /// Records the refusal and gives it as it was recorded: when it could not be, that is what the caller hears.
    pub(crate) async fn record(&self, code: Code, why: &'static str) -> Denial {
        denial_of(self.gate.deny_request(&self.session, code, why).await)
    }

    /// Refuses a request; gives the line that answers it.
    pub(crate) async fn request(
        &self,
        refused: &Refused<'_>,
        code: Code,
        why: &'static str,
    ) -> Vec<u8> {
        self.request_at(refused, code, why, None).await
    }

    /// The same, naming the place at fault where the code may.
    pub(crate) async fn request_at(
        &self,
        refused: &Refused<'_>,
        code: Code,
        why: &'static str,
        pointer: Option<String>,
    ) -> Vec<u8> {
        let mut denial = self.record(code, why).await;
        if denial.code == code {
            denial.pointer = pointer;
        }
        match refused.method {
            Some(method) => denial_answer(refused.id, method, &denial, refused.era),
            None => denial_error(Some(refused.id), &denial),
        }
    }

    /// Refuses a message that is not well formed; the line that answers it, when there is somebody to answer.
    pub(crate) async fn fault(&self, fault: &ClientFault) -> Option<Vec<u8>> {
        let denial = self
            .record(fault.code, "the request is not well formed")
            .await;
        fault_answer(fault, &denial)
    }

    /// Refuses a line that was longer than allowed. Nobody knows whose it was, so no request is named in the answer.
    pub(crate) async fn too_long(&self) -> Vec<u8> {
        let denial = self
            .record(Code::MalformedAct, "a line was longer than allowed")
            .await;
        denial_error(None, &denial)
    }
}

/// A denial of the gate as the client may see it.
pub(crate) fn denial_of(denied: Denied) -> Denial {
    Denial {
        code: denied.code,
        pointer: denied.pointer,
        act: denied.act,
        ticket: denied.ticket,
        state: Some(denied.state),
    }
}
