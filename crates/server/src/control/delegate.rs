//! Delegating over the socket: the asker is told when a person is asked, and one that leaves has withdrawn its act.

use std::sync::Arc;

use lychgate_core::delegation::{Delegation, DelegationFile};
use lychgate_core::display::escape_within;
use lychgate_core::id::TicketId;
use lychgate_core::json::{self, Limits};
use lychgate_gate::{CallerGone, DelegationRequest, Denied, Peer, log};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::fault;
use crate::listen::{Door, say};
use crate::protocol::{Class, DelegationView, MOST_DELEGATIONS, Refusal, Response};

/// Answers [`crate::protocol::Request::Delegate`]. False when the connection is of no further use.
pub(crate) async fn delegate(
    door: &Arc<Door>,
    stream: &mut UnixStream,
    peer: Peer,
    from: Option<DelegationFile>,
    request: DelegationRequest,
) -> bool {
    let (here, caller) = CallerGone::new();
    let (tell, mut asked) = mpsc::channel::<TicketId>(TICKETS);
    let gate = Arc::clone(door.gate());
    // A task of its own: what has begun runs to its end, whatever becomes of the asker.
    let mut made = tokio::spawn(async move {
        let waiting = |ticket| {
            // An asker that does not read is told at the end.
            let _ = tell.try_send(ticket);
        };
        gate.delegate(peer, from.as_ref(), request, &caller, &waiting)
            .await
    });
    let mut byte = [0];
    let response = loop {
        tokio::select! {
            made = &mut made => break match made {
                Ok(Ok(delegated)) => {
                    log::info("a delegation was made", &[("act", delegated.act.into())]);
                    Response::Delegated { act: delegated.act, file: delegated.file }
                }
                Ok(Err(denied)) => Response::Refused(refusal(&denied)),
                Err(_) => Response::Refused(Refusal::new(Class::Fault, "the gate has failed")),
            },
            Some(ticket) = asked.recv() => {
                if say(stream, &Response::Asked { ticket }).await.is_err() {
                    here.say();
                    return false;
                }
            }
            // Whatever an asker sends meanwhile, it waits no longer.
            _ = stream.read(&mut byte) => {
                here.say();
                return false;
            }
        }
    };
    say(stream, &response).await.is_ok()
}

/// A denial, for a person.
pub(crate) fn refusal(denied: &Denied) -> Refusal {
    let code = denied.code;
    let act = denied.act.map_or(String::new(), |act| format!(" ({act})"));
    let why = format!("{} {}: {}{act}", code.number(), code.name(), code.text());
    Refusal::new(Class::Refused, why)
}

/// The delegations there are, newest first.
pub(super) fn list(door: &Door) -> Result<Response, Refusal> {
    let gate = door.gate();
    let rows = gate.delegations(MOST_DELEGATIONS).map_err(fault)?;
    let read = |body: &[u8]| {
        let value = json::parse(body, &Limits::OBJECT).ok()?;
        json::from_value::<Delegation>(&value).ok()
    };
    let mut delegations = Vec::with_capacity(rows.len());
    for row in rows {
        let account = lychgate_store::Account::Delegation(row.id);
        let drawn = gate.store().account(account).map_err(fault)?;
        let Some(link) = read(&row.body) else {
            log::error("a delegation cannot be read", &[("act", row.act.into())]);
            continue;
        };
        delegations.push(DelegationView {
            link,
            acts: drawn.as_ref().map_or(0, |drawn| drawn.acts),
            spent: drawn
                .map(|drawn| drawn.spent)
                .unwrap_or_default()
                .into_iter()
                .map(|(unit, amount)| (escape_within(&unit, 80), amount))
                .collect(),
        });
    }
    Ok(Response::Delegations { delegations })
}

/// How often one act may be asked about.
const TICKETS: usize = 8;
