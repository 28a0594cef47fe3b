//! Fuzz bodies: what must hold for any bytes whatever. A smoke test and a fuzzer call the same functions.

pub use crate::streams::fuzz::{fuzz_streams, stream_holds};

use crate::answer::{Denial, fault_answer, mark_result, without_decision};
use crate::client::{Body, FromClient, Limits, from_client};
use crate::envelope::well_formed;
use crate::listing::page;
use crate::rebuild::request_bytes;
use crate::server::{DEPTH, FromServer, from_server, result_facts};
use lychgate_core::Digest;
use lychgate_core::json::Value;

/// Any bytes from a client: no panic; a proposal's bytes hash to its digest and its rebuilt request says the same
/// again; an answer to a fault is JSON. Gives whether that held.
#[must_use]
pub fn fuzz_client(bytes: &[u8]) -> bool {
    client_holds(&from_client(bytes, &Limits::default()))
}

fn client_holds(read: &Result<FromClient, crate::ClientFault>) -> bool {
    match read {
        Err(fault) => fault_answer(fault, &Denial::new(fault.code))
            .is_none_or(|answer| well_formed(&answer, DEPTH).is_ok()),
        Ok(FromClient::Batch(elements)) => elements.iter().all(client_holds),
        Ok(FromClient::Request {
            body: Body::Acts(proposal),
            ..
        }) => {
            let line = request_bytes(7, proposal, None);
            let again = from_client(
                &line,
                &Limits {
                    message_bytes: usize::MAX,
                    ..Limits::default()
                },
            );
            let mut expected = proposal.clone();
            expected.meta.dropped = 0;
            let same = matches!(
                again,
                Ok(FromClient::Request { body: Body::Acts(again), .. }) if again == expected
            );
            same && Digest::sha256(&proposal.canonical) == proposal.digest && !line.contains(&b'\n')
        }
        Ok(_) => true,
    }
}

/// Any bytes from a server: no panic; spans are well-formed JSON, and marking a result leaves it one.
#[must_use]
pub fn fuzz_server(bytes: &[u8]) -> bool {
    server_holds(&from_server(bytes))
}

fn server_holds(read: &Result<FromServer<'_>, crate::envelope::Fault>) -> bool {
    let well = |raw: &[u8]| well_formed(raw, DEPTH).is_ok();
    match read {
        Err(_) => true,
        Ok(FromServer::Batch(elements)) => elements.iter().all(server_holds),
        Ok(FromServer::Response { result, .. }) => {
            let (Ok(raw) | Err(raw)) = result;
            // Called for their own sake: neither may panic.
            let _ = (
                result_facts(raw),
                page(raw).map(|page| page.keeping(|_| true)),
            );
            well(raw)
                && mark_result(raw, &Value::Null).is_none_or(|marked| well(&marked))
                && without_decision(raw).is_none_or(|cut| well(&cut))
        }
        Ok(FromServer::Request { params, .. } | FromServer::Notification { params, .. }) => {
            params.is_none_or(well)
        }
    }
}
