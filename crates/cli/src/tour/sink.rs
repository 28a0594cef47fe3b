//! The steps at the two doors themselves: the complete transaction, and what an attacker may try at the sink.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::Digest;
use lychgate_core::act::CandidateAct;
use lychgate_core::authority::FinalityAuthority;
use lychgate_core::id::{ActId, HolderId};
use lychgate_core::json;
use lychgate_gate::sink::Effect as _;
use lychgate_gate::{
    Allowed, Connected, FinalitySink, Gate, HeldAct, LiveInvocation, Peer, Presented, Session,
    Verdict,
};
use lychgate_intake::{Body, FromClient, Limits, from_client};
use serde_json::{Value, json};

use super::desk::{DESK, World};
use super::hand::{ByHand, Hand};
use super::lab::{Fault, at};
use super::plots::{ATTACKS, Attack, OVERTAKEN, REPLAY, TRANSACTION};
use super::step::{Step, Taking};

/// A client connection to the two doors, without a transport.
pub(super) struct Doors<'a> {
    world: &'a World,
    session: Arc<Session>,
    sink: FinalitySink,
    count: u32,
}

impl<'a> Doors<'a> {
    pub(super) fn open(world: &'a World) -> Result<Self, Fault> {
        let peer = Peer { uid: 0, pid: None };
        let session = world.lab.gate.connect(DESK, peer).map_err(at("connect"))?;
        Ok(Self {
            world,
            session,
            sink: FinalitySink::mcp(DESK),
            count: 0,
        })
    }

    /// A call that the PED allows: writes a note inside a recoverable root.
    async fn allowed(&mut self, content: &str) -> Result<Allowed, Fault> {
        self.count += 1;
        let path = self.world.note(&format!("note-{}.txt", self.count));
        let arguments = json!({"path": path, "content": content});
        match self.world.lab.gate.decide(self.held(&arguments)?).await {
            Verdict::Allow(allowed) => Ok(*allowed),
            other => Err(Fault(format!(
                "the PED did not allow a plain note: {other:?}"
            ))),
        }
    }

    fn held(&self, arguments: &Value) -> Result<HeldAct, Fault> {
        let params = json!({"name": "write_note", "arguments": arguments});
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let line = line.to_string();
        let parsed = from_client(line.as_bytes(), &Limits::default()).map_err(at("intake"))?;
        let FromClient::Request {
            body: Body::Acts(proposal),
            ..
        } = parsed
        else {
            return Err(Fault("intake took a call for something else".to_owned()));
        };
        let gate = &self.world.lab.gate;
        let current = gate.current();
        let server = current.applied.server(DESK);
        let connected = Connected {
            endpoint: server
                .map(|server| server.endpoint().to_owned())
                .unwrap_or_default(),
            definition: self.world.definition("write_note"),
            listed: false,
        };
        gate.hold(&self.session, *proposal, connected)
            .map_err(at("hold"))
    }

    fn live<'h>(&self, held: &'h HeldAct) -> Result<LiveInvocation<'h>, Fault> {
        let definition = self.world.definition("write_note");
        live(
            held.act(),
            &held.proposal().canonical,
            self.session.holder(),
            definition,
        )
    }

    //= draft §12.3: the complete transaction
    /// One call all the way, each object shown; then the same authority once more.
    pub(super) async fn transaction(&mut self) -> Result<[Step; 2], Fault> {
        let gate = &Arc::clone(&self.world.lab.gate);
        let mut hand = Hand::start(&command(self.world)).await?;
        let mut taking = Taking::begin(self.world)?;
        let allowed = self.allowed("Buy milk.").await?;
        show(&mut taking, &allowed)?;
        let (held, presented) = allowed.into_parts();
        let live = self.live(&held)?;
        let dispatched = gate.present(&self.sink, &live, presented).await;
        let dispatched = dispatched.map_err(|refused| {
            Fault(format!("the sink refused a plain note: {:?}", refused.code))
        })?;
        let checks = canonical(&dispatched.checks)?;
        let checks = checks.as_object().map_or(0, serde_json::Map::len);
        taking.line(
            "sink",
            format!("{checks} checks on the live call · signed, consumed, durably"),
        );
        let effect = dispatched.permit.effect();
        let act = dispatched.permit.act();
        let by_hand = ByHand {
            hand: &mut hand,
            proposal: held.proposal(),
        };
        let (attempt, answer) = by_hand.perform(dispatched.permit).await;
        let raw = answer
            .as_ref()
            .and_then(|answer| answer.get("result"))
            .map(Value::to_string);
        let settled = gate
            .settle(attempt, raw.as_deref().map(str::as_bytes))
            .await;
        gate.delivered(act);
        hand.stop().await;
        let spent = short(&effect.to_string());
        taking.line("permit", format!("{spent} · spent at the first byte"));
        taking.line(
            "outcome",
            format!("{} · answer delivered", settled.state.name()),
        );
        taking.expect(settled.recorded, "the outcome is not in the record");
        let first = taking.end(TRANSACTION, None)?;
        let authority = kept_authority(gate, act)?;
        let again = self.replay(&live, held.act(), Some(authority)).await?;
        Ok([first, again])
    }

    async fn replay(
        &self,
        live: &LiveInvocation<'_>,
        act: &CandidateAct,
        authority: Option<FinalityAuthority>,
    ) -> Result<Step, Fault> {
        let mut taking = Taking::begin(self.world)?;
        let presented = Presented::from_outside(act.clone(), authority);
        let code = self.refused(live, presented, &self.sink, &mut taking).await;
        taking.end(REPLAY, code)
    }

    /// What an attacker may try between the PED's yes and the sink.
    pub(super) async fn attacks(&mut self) -> Result<Vec<Step>, Fault> {
        let mut steps = Vec::new();
        for (attack, plot) in ATTACKS {
            let mut taking = Taking::begin(self.world)?;
            let (held, presented) = self.allowed("As agreed.").await?.into_parts();
            let other = self
                .world
                .lab
                .gate
                .connect(DESK, Peer { uid: 0, pid: None });
            let other = other.map_err(at("connect"))?;
            let mutated = mutate(&held)?;
            let mut live = self.live(&held)?;
            let elsewhere = FinalitySink::mcp("elsewhere");
            match attack {
                Attack::Arguments => live.arguments = &mutated,
                Attack::Tool => live.function_id = "send_message",
                Attack::Holder => live.holder = other.holder(),
                Attack::Late => self.world.lab.clock.advance(Duration::from_secs(11)),
                Attack::Sink => {}
            }
            let sink = if attack == Attack::Sink {
                &elsewhere
            } else {
                &self.sink
            };
            let code = self.refused(&live, presented, sink, &mut taking).await;
            steps.push(taking.end(plot, code)?);
        }
        Ok(steps)
    }

    /// An authority that was given before the rules changed. `change` changes them.
    pub(super) async fn overtaken<F>(&mut self, change: F) -> Result<Step, Fault>
    where
        F: AsyncFnOnce() -> Result<(), Fault>,
    {
        let mut taking = Taking::begin(self.world)?;
        let (held, presented) = self.allowed("Before the change.").await?.into_parts();
        change().await?;
        let live = self.live(&held)?;
        let code = self
            .refused(&live, presented, &self.sink, &mut taking)
            .await;
        taking.end(OVERTAKEN, code)
    }

    async fn refused(
        &self,
        live: &LiveInvocation<'_>,
        presented: Presented,
        sink: &FinalitySink,
        taking: &mut Taking<'_>,
    ) -> Option<String> {
        match self.world.lab.gate.present(sink, live, presented).await {
            Err(refusal) => {
                let signed = refusal
                    .verification
                    .is_some_and(|one| one.mark.signature.is_some());
                taking.expect(signed, "the sink's no is not signed");
                Some(refusal.code.number().to_owned())
            }
            Ok(dispatched) => {
                // It must not happen; and if it does, nothing runs all the same.
                let attempt = dispatched.permit.give_up().into();
                self.world.lab.gate.settle(attempt, None).await;
                taking.expect(false, "the sink made a permit");
                None
            }
        }
    }
}

/// The command of the server that behaves, as it was applied.
fn command(world: &World) -> Vec<String> {
    let current = world.lab.gate.current();
    current
        .applied
        .server(DESK)
        .map(|server| server.command.clone())
        .unwrap_or_default()
}

fn live<'h>(
    act: &'h CandidateAct,
    arguments: &'h [u8],
    holder: HolderId,
    definition: Option<Digest>,
) -> Result<LiveInvocation<'h>, Fault> {
    let missing = || Fault("the act misses its endpoint or destination".to_owned());
    Ok(LiveInvocation {
        holder,
        tool_id: &act.tool.tool_id,
        function_id: &act.tool.function_id,
        endpoint: act.tool.tool_endpoint.as_deref().ok_or_else(missing)?,
        definition: definition.ok_or_else(missing)?,
        arguments,
        continuation: None,
        destination: act.destination.clone().ok_or_else(missing)?,
        class: act.consequence_class,
        idempotent: false,
    })
}

/// The same call with one word changed, in canonical form as everything a sink sends.
fn mutate(held: &HeldAct) -> Result<Vec<u8>, Fault> {
    let text = String::from_utf8(held.proposal().canonical.clone()).map_err(at("arguments"))?;
    Ok(text.replace("As agreed.", "Pay Mallory.").into_bytes())
}

fn show(taking: &mut Taking<'_>, allowed: &Allowed) -> Result<(), Fault> {
    let held = allowed.held();
    let act = held.act();
    let id = |id: String| short(&id);
    taking.line(
        "call",
        format!(
            "{}/{} · \"Buy milk.\"",
            act.tool.tool_id, act.tool.function_id
        ),
    );
    let digest = act.digest().map_err(at("act"))?.to_base64url();
    let held_line = format!(
        "{} · digest {}",
        id(act.candidate_act_id.to_string()),
        short(&digest)
    );
    taking.line("act", held_line);
    taking.line(
        "",
        format!(
            "arguments {} · held, non-effective",
            short(&act.arguments_digest.value)
        ),
    );
    let evidence = allowed.evidence();
    let holding = canonical(&evidence.validated_predicates)?;
    let count = holding.as_object().map_or(0, serde_json::Map::len);
    let all = holding
        .as_object()
        .is_some_and(|all| all.values().all(|one| one == true));
    taking.expect(all, "a predicate does not hold");
    let evidence = format!(
        "{} · {count} predicates hold",
        id(evidence.evidence_id.to_string())
    );
    taking.line("evidence", evidence);
    let authority = allowed
        .authority()
        .ok_or_else(|| Fault("no authority".to_owned()))?;
    let lives = authority
        .lifetime
        .expires_at
        .since(authority.lifetime.issued_at)
        .as_secs();
    let line = format!(
        "{} · once, within {lives} s",
        id(authority.authority_id.to_string())
    );
    taking.line("authority", line);
    let bound = format!(
        "for sink {} and this connection only",
        authority.binding.finality_sink_id
    );
    taking.line("", bound);
    Ok(())
}

/// The authority of a dispatched act as it was signed.
fn kept_authority(gate: &Gate, act: ActId) -> Result<FinalityAuthority, Fault> {
    let kept = gate.objects(act).map_err(at("objects"))?;
    let kept =
        kept.ok_or_else(|| Fault("nothing signed is kept of a dispatched act".to_owned()))?;
    json::from_value(&kept.authority).map_err(at("authority"))
}

/// An object as it is signed and recorded.
fn canonical<T: serde::Serialize>(object: &T) -> Result<Value, Fault> {
    let bytes = json::to_canonical(object).map_err(at("object"))?;
    serde_json::from_slice(&bytes).map_err(at("object"))
}

/// Enough of an id or a digest to recognise it: the end, where ids differ.
pub(super) fn short(text: &str) -> String {
    let (prefix, rest) = text
        .split_once('-')
        .filter(|(prefix, _)| prefix.len() <= 4)
        .unwrap_or(("", text));
    let tail: String = rest
        .chars()
        .rev()
        .take(10)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    if prefix.is_empty() {
        format!("{}…", rest.chars().take(10).collect::<String>())
    } else {
        format!("{prefix}-…{tail}")
    }
}
