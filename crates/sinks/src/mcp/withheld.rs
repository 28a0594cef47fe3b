//! A server that is not started, because its entry file is not the one pinned or it cannot be: everything that is asked
//! of it is a recorded denial, in the same forms as those of a server that runs.

use std::sync::Arc;

use lychgate_core::Code;
use lychgate_gate::{Gate, Session};
use lychgate_intake::{Body, ClientFault, FromClient, Limits, from_client};
use tokio::sync::mpsc;

use super::refusals::{Refusals, Refused};
use super::{FromLink, ToLink};

/// Why the server is not there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Withheld {
    /// Its entry file is not the one pinned.
    Substituted,
    /// It could not be started.
    NotStarted,
}

impl Withheld {
    const fn reason(self) -> (Code, &'static str) {
        match self {
            Self::Substituted => (
                Code::ToolSubstitution,
                "the server's entry file is not the one pinned",
            ),
            Self::NotStarted => (Code::FailClosed, "the server could not be started"),
        }
    }
}

/// Answers a client until it is gone.
pub(super) async fn serve(
    gate: &Arc<Gate>,
    session: &Arc<Session>,
    withheld: Withheld,
    bounds: &Limits,
    (from, to): (&mut mpsc::Receiver<FromLink>, &mpsc::Sender<ToLink>),
) {
    let refusals = Refusals::new(gate, session);
    loop {
        let message = tokio::select! {
            message = from.recv() => message,
            () = to.closed() => None,
            () = gate.closing() => None,
        };
        let Some(message) = message else { return };
        for line in answers(&refusals, withheld, bounds, message).await {
            let message = ToLink {
                line,
                delivery: None,
            };
            if to.send(message).await.is_err() {
                return;
            }
        }
    }
}

async fn answers(
    refusals: &Refusals,
    withheld: Withheld,
    bounds: &Limits,
    message: FromLink,
) -> Vec<Vec<u8>> {
    let line = match message {
        FromLink::Delivered(_) => return Vec::new(),
        FromLink::TooLong => return vec![refusals.too_long().await],
        FromLink::Line(line) => line,
    };
    let messages = match from_client(&line, bounds) {
        Ok(FromClient::Batch(elements)) => elements,
        other => vec![other],
    };
    let mut answers = Vec::new();
    for message in messages {
        answers.extend(answer(refusals, withheld, message).await);
    }
    answers
}

async fn answer(
    refusals: &Refusals,
    withheld: Withheld,
    message: Result<FromClient, ClientFault>,
) -> Option<Vec<u8>> {
    let (id, body, era) = match message {
        Ok(FromClient::Request { id, body, era }) => (id, body, era),
        Ok(_) => return None,
        Err(fault) => return refusals.fault(&fault).await,
    };
    let method = match &body {
        Body::Acts(proposal) => Some(&proposal.method),
        Body::Passes { .. } | Body::Refused { .. } => None,
    };
    let refused = Refused {
        id: &id,
        method,
        era,
    };
    let (code, why) = withheld.reason();
    Some(refusals.request(&refused, code, why).await)
}
