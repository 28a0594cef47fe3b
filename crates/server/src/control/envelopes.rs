//! Open envelopes, told and closed.

use lychgate_core::id::EnvelopeId;
use lychgate_gate::{OpenEnvelope, log};

use crate::listen::Door;
use crate::protocol::{EnvelopeView, Refusal, Response};

pub(super) fn list(door: &Door) -> Response {
    let envelopes = door.gate().open_envelopes().into_iter().map(view);
    Response::Envelopes {
        envelopes: envelopes.collect(),
    }
}

pub(super) async fn close(door: &Door, id: EnvelopeId) -> Result<Response, Refusal> {
    let closed = door.gate().close_envelope(id).await;
    closed.map_err(|why| door.refusal(why))?;
    log::info("an envelope was closed", &[]);
    Ok(list(door))
}

fn view(open: OpenEnvelope) -> EnvelopeView {
    EnvelopeView {
        id: open.id,
        act: open.act,
        agent: open.agent,
        tool: open.tool,
        function: open.function,
        destination: open.destination,
        class: open.class,
        source: open.source,
        granted: open.granted,
        used: open.used,
        acts: open.acts,
        until: open.until,
    }
}
