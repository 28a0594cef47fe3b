//! How the gate answers what changes the rules without a configuration: revocation, consent, and how far they have come.

use std::sync::Arc;

use lychgate_core::Subject;
use lychgate_gate::delivery;
use lychgate_gate::{Gate, log};

use super::fault;
use crate::listen::Door;
use crate::protocol::{
    Class, ConnectionView, ConsentView, ControlAnswer, ControlRequest, ControlView, EndView,
    EpochsView, Refusal,
};

pub(super) async fn answer(
    door: &Arc<Door>,
    request: ControlRequest,
) -> Result<ControlAnswer, Refusal> {
    let gate = door.gate();
    let refused = |why: lychgate_gate::ControlRefused| door.refusal(why);
    Ok(match request {
        ControlRequest::Revoke {
            subjects,
            reason,
            force,
        } => {
            if !force {
                known(gate, &subjects)?;
            }
            let done = gate.revoke(subjects, reason.as_ref()).await;
            let done = done.map_err(refused)?;
            log::info("something was revoked", &[]);
            ControlAnswer::Revoked {
                number: done.number,
                withdrawn: u64::try_from(done.withdrawn).unwrap_or(u64::MAX),
            }
        }
        ControlRequest::Restore { verdict } => ControlAnswer::Restored {
            number: gate.restore(&verdict).await.map_err(refused)?,
        },
        ControlRequest::RestoreUnsigned { subjects, reason } => ControlAnswer::Restored {
            number: gate
                .restore_unsigned(&subjects, Some(&reason))
                .await
                .map_err(refused)?,
        },
        ControlRequest::Consent { terms, grant } => ControlAnswer::Consented {
            consent: gate.consent(terms, grant.as_ref()).await.map_err(refused)?,
        },
        ControlRequest::WithdrawConsent { consents, reason } => ControlAnswer::ConsentWithdrawn {
            number: gate
                .withdraw_consents(consents, reason.as_ref())
                .await
                .map_err(refused)?,
        },
        ControlRequest::Consents { all } => consents(gate, all)?,
        ControlRequest::Epochs => ControlAnswer::Epochs {
            epochs: Box::new(epochs(gate)),
        },
    })
}

fn known(gate: &Gate, subjects: &[Subject]) -> Result<(), Refusal> {
    for subject in subjects {
        let Some(unknown) = gate.unknown_subject(subject).map_err(fault)? else {
            continue;
        };
        let shown = lychgate_core::display::escape_within(&subject.to_string(), 200);
        let text = subject.to_string();
        let name = text.split_once(':').map_or("", |(_, name)| name);
        let candidates = unknown.candidates.iter().map(String::as_str);
        let meant = lychgate_policy::nearest(name, candidates).map_or_else(String::new, |meant| {
            let meant = lychgate_core::display::escape_within(&meant, 200);
            format!(" (did you mean `{meant}`?)")
        });
        let why = format!(
            "nothing here is called `{shown}`{meant}; nothing was revoked. `--force` revokes it all the same"
        );
        return Err(Refusal::new(Class::Usage, why));
    }
    Ok(())
}

fn consents(gate: &Gate, all: bool) -> Result<ControlAnswer, Refusal> {
    let current = gate.current();
    let records = gate.consents(all).map_err(fault)?.into_iter();
    let view = |record: lychgate_gate::ConsentRecord| ConsentView {
        terms: record.terms,
        granted_at: record.granted_at,
        withdrawn_at: record.withdrawn_at,
        holds: record.holds,
    };
    Ok(ControlAnswer::Consents {
        required: current.applied.consent_required(),
        principal: current.applied.principal().id.clone(),
        agent: current.applied.agent().id.clone(),
        consents: records.map(view).take(MOST_SHOWN).collect(),
    })
}

fn epochs(gate: &Gate) -> EpochsView {
    let current = gate.current();
    let connections = gate.connections().into_iter();
    EpochsView {
        epochs: current.epochs,
        purpose_epoch: current.purpose_epoch,
        policy_digest: current.policy_digest,
        revoked: current.revoked.iter().take(MOST_SHOWN).cloned().collect(),
        connections: connections
            .map(|(holder, server)| ConnectionView { holder, server })
            .collect(),
        controls: gate
            .deliveries_seen()
            .into_iter()
            .take(MOST_CONTROLS)
            .map(control)
            .collect(),
    }
}

fn control(control: delivery::Control) -> ControlView {
    let end = |end: delivery::End| {
        let lacks = end.lacks();
        EndView {
            end: end.end,
            holder: end.holder,
            sink: end.sink,
            received: end.received,
            enforced: end.enforced,
            observed: end.observed,
            stage: end.finding.map(|(stage, _)| stage).or(lacks),
            finding: end.finding.map(|(_, finding)| finding),
        }
    };
    ControlView {
        number: control.number,
        kind: control.kind,
        emitted: control.at,
        what: control.what,
        ends: control.ends.into_iter().map(end).collect(),
    }
}

/// Consents, or revoked things, in one answer.
const MOST_SHOWN: usize = 1000;
/// Controls in one answer: each may concern every connection there can be.
const MOST_CONTROLS: usize = 20;
