//! Going by an open envelope, and the anomalies that close it.

use std::sync::Arc;

use lychgate_core::id::EnvelopeId;
use lychgate_core::{Digest, Timestamp};
use lychgate_store::{Account, Charge, Over};

use super::{Envelope, Envelopes, Kind, MOST_KINDS, MOST_SHAPES, Shape, why_not};
use crate::gate::Gate;
use crate::hold::HeldAct;

/// How an act stands to envelopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hot {
    /// It is decided on by itself.
    #[default]
    Cold,
    /// Policy's word on it is that of the envelope.
    Under {
        /// Which.
        id: EnvelopeId,
        /// The approval behind it.
        approval: Option<Digest>,
    },
    /// It closed the envelope it would have gone by: a person is asked.
    Strange(&'static str),
}

/// What an envelope says to an act.
enum Said {
    Nothing,
    Yes(Hot),
    /// It has ended by itself: its acts, its value or its time are used up.
    Over,
    Strange(EnvelopeId, &'static str),
}

impl Gate {
    //= draft §13: repeated calls inside a fixed envelope may use cached policy; the sink check is still mandatory
    /// Whether the act goes by an open envelope, and takes its place in it.
    pub(crate) async fn enter(self: &Arc<Self>, held: &HeldAct) -> Hot {
        let envelopes = self.envelopes();
        if held.escalated.is_some() {
            // Why it was asked about still holds when the answer is there.
            return held.hot;
        }
        if envelopes.none_open() || why_not(held).is_some() {
            return Hot::Cold;
        }
        match envelopes.ask(held, self.now()) {
            Said::Nothing | Said::Over => Hot::Cold,
            Said::Yes(hot) => hot,
            //= draft §13: runtime anomaly escalates
            Said::Strange(id, why) => {
                self.record_closed(&[id], why).await;
                Hot::Strange(why)
            }
        }
    }

    /// An act was denied: an agent that is denied again and again loses its envelopes.
    pub(crate) async fn note_denial(self: &Arc<Self>, agent: &str) {
        if self.envelopes().none_open() {
            return;
        }
        let closed = self.envelopes().denied(agent, self.now());
        if !closed.is_empty() {
            self.record_closed(&closed, "its agent was denied again and again")
                .await;
        }
    }
}

impl Envelopes {
    fn ask(&self, held: &HeldAct, now: Timestamp) -> Said {
        let kind = Kind::of(held);
        self.change(|table| {
            let Some(envelope) = table.open.get(&kind) else {
                return Said::Nothing;
            };
            let current = &held.current;
            let stands = envelope.epochs == current.epochs
                && envelope.policy_digest == current.policy_digest
                && now < envelope.until;
            if !stands {
                table.open.remove(&kind);
                return Said::Over;
            }
            let shape = Shape::of(&held.proposal.arguments);
            let seen = table
                .shapes
                .get(&kind)
                .is_some_and(|seen| seen.contains(&shape));
            let id = envelope.id;
            if !seen {
                table.open.remove(&kind);
                // Asked about once, it is no stranger the next time.
                remember(&mut table.shapes, &kind, shape);
                return Said::Strange(id, "arguments of a shape never seen here");
            }
            let next = charge(envelope, held).map(|charge| envelope.drawn.with(&charge, now));
            match next {
                Some(Ok(drawn)) => {
                    let hot = Hot::Under {
                        id,
                        approval: envelope.approval,
                    };
                    if let Some(envelope) = table.open.get_mut(&kind) {
                        envelope.drawn = drawn;
                    }
                    Said::Yes(hot)
                }
                Some(Err(Over::Rate)) => {
                    table.open.remove(&kind);
                    Said::Strange(id, "calls came faster than the envelope allows")
                }
                Some(Err(Over::Acts | Over::HighRisk | Over::Spend)) => {
                    table.open.remove(&kind);
                    Said::Over
                }
                None => {
                    table.open.remove(&kind);
                    Said::Strange(id, "what it spends cannot be counted")
                }
            }
        })
    }

    /// The envelopes that an agent's denials close.
    fn denied(&self, agent: &str, now: Timestamp) -> Vec<EnvelopeId> {
        self.change(|table| {
            if !table.open.keys().any(|kind| kind.agent == agent) {
                table.denials.remove(agent);
                return Vec::new();
            }
            let denials = table.denials.entry(agent.to_owned()).or_default();
            denials.retain(|at| now.since(*at) < DENIED_WITHIN);
            denials.push_back(now);
            if denials.len() < MOST_DENIALS {
                return Vec::new();
            }
            table.denials.remove(agent);
            let closed = table.open.iter().filter(|(kind, _)| kind.agent == agent);
            let closed = closed.map(|(_, envelope)| envelope.id).collect();
            table.open.retain(|kind, _| kind.agent != agent);
            closed
        })
    }

    /// A shape that acts of a kind have.
    pub(super) fn see(&self, kind: &Kind, shape: Shape) {
        remember(&mut self.table().shapes, kind, shape);
    }
}

fn remember(shapes: &mut std::collections::HashMap<Kind, Vec<Shape>>, kind: &Kind, shape: Shape) {
    if shapes.len() >= MOST_KINDS && !shapes.contains_key(kind) {
        shapes.clear();
    }
    let seen = shapes.entry(kind.clone()).or_default();
    if !seen.contains(&shape) && seen.len() < MOST_SHAPES {
        seen.push(shape);
    }
}

/// What an act draws on an envelope; `None` when its value cannot be counted.
fn charge(envelope: &Envelope, held: &HeldAct) -> Option<Charge> {
    let limits = envelope.limits.budget();
    let spend = match (&limits.spend, held.entry()) {
        (Some(_), Some(entry)) => entry.spend(&held.proposal.arguments).ok()?,
        _ => None,
    };
    Some(Charge {
        // The envelope keeps its own account.
        account: Account::Agent,
        limits,
        every: None,
        high_risk: held.act.consequence_class.high_risk(),
        spend,
    })
}

/// So many denials within so long close an agent's envelopes.
const MOST_DENIALS: usize = 10;
const DENIED_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
