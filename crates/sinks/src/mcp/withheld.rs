//! A server that is not started, because its entry file is not the one pinned or it cannot be: the client is told so,
//! and every act is a recorded denial.

use std::sync::Arc;

use lychgate_core::Code;
use lychgate_gate::{Gate, Session};
use lychgate_intake::answer::{denial_answer, error, error_code};
use lychgate_intake::{Body, Denial, FromClient, Limits, from_client};
use tokio::sync::mpsc;

use super::{FromLink, ToLink};

/// A server that was not started: every request is answered with a refusal, every act with a recorded denial.
pub(super) async fn serve(
    gate: &Arc<Gate>,
    session: &Arc<Session>,
    unchanged: bool,
    from: &mut mpsc::Receiver<FromLink>,
    to: &mpsc::Sender<ToLink>,
) {
    let (code, why) = if unchanged {
        (Code::FailClosed, "the server could not be started")
    } else {
        (
            Code::ToolSubstitution,
            "the server's entry file is not the one pinned",
        )
    };
    while let Some(message) = from.recv().await {
        let FromLink::Line(line) = message else {
            continue;
        };
        let Ok(FromClient::Request { id, body, era }) = from_client(&line, &Limits::default())
        else {
            continue;
        };
        let answer = match body {
            Body::Acts(proposal) => {
                let denied = gate.deny_request(session, code, why).await;
                let denial = Denial {
                    code: denied.code,
                    pointer: None,
                    act: denied.act,
                    ticket: None,
                    state: Some(denied.state),
                };
                denial_answer(&id, &proposal.method, &denial, era)
            }
            Body::Passes { .. } | Body::Refused { .. } => error(&id, error_code(code), why, None),
        };
        if to
            .send(ToLink {
                line: answer,
                delivery: None,
            })
            .await
            .is_err()
        {
            return;
        }
    }
}
