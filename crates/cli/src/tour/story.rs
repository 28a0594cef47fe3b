//! The steps a client sees: calls over the code that serves `lychgate mcp`, with a child process behind it.

use std::sync::Arc;

use lychgate_core::act::Version;
use lychgate_core::id::ActId;
use lychgate_core::signed::Mark;
use lychgate_gate::{Gate, TicketSummary};
use lychgate_keys::SigningKey;
use lychgate_keys::verdict::{ApprovalVerdict, Reason, ReconciliationVerdict, Verdict};
use serde_json::json;

use super::client::Client;
use super::desk::{DESK, FRAGILE, World};
use super::lab::{Fault, at, read_config};
use super::plots::{
    APPROVED, ASKED_AGAIN, ESCALATED, INJECTED, LOST, RECONCILED, REPEATED, UNRESOLVED,
};
use super::sink::short;
use super::step::{Step, Taking};

/// A destination that cannot be resolved.
pub(super) async fn unresolved(world: &World, client: &mut Client) -> Result<Step, Fault> {
    let taking = Taking::begin(world)?;
    let answer = client
        .call("look_up", &json!({"url": "somewhere nice"}))
        .await?;
    taking.end(UNRESOLVED, answer.code().map(str::to_owned))
}

/// A query to the outside: a person is asked, says yes, and it runs once; then the person is asked again.
pub(super) async fn escalated(world: &World, client: &mut Client) -> Result<[Step; 3], Fault> {
    let gate = &world.lab.gate;
    let arguments = json!({"url": "https://api.example.com/weather"});
    let mut taking = Taking::begin(world)?;
    let answer = client.call("look_up", &arguments).await?;
    let ticket = pending(gate)?;
    taking.line("ticket", short(&ticket.id.to_string()));
    taking.line("", &ticket.why);
    let asked = taking.end(ESCALATED, answer.code().map(str::to_owned))?;

    let mut taking = Taking::begin(world)?;
    approve(world, &ticket).await?;
    taking.line(
        "approved",
        format!("{} · by key {}", short(&ticket.id.to_string()), key(world)?),
    );
    let answer = client.call("look_up", &arguments).await?;
    taking.line("server", format!("\"{}\"", answer.text()));
    let ran = taking.end(APPROVED, answer.code().map(str::to_owned))?;

    let mut taking = Taking::begin(world)?;
    let answer = client.call("look_up", &arguments).await?;
    let again = pending(gate)?;
    taking.expect(again.id != ticket.id, "the used approval was used again");
    taking.line(
        "ticket",
        format!("{} · another one", short(&again.id.to_string())),
    );
    let asked_again = taking.end(ASKED_AGAIN, answer.code().map(str::to_owned))?;
    Ok([asked, ran, asked_again])
}

/// An answer that is lost, the call repeated, and a person's word on it.
pub(super) async fn lost(world: &World) -> Result<[Step; 3], Fault> {
    let gate = &world.lab.gate;
    let arguments = json!({"path": world.note("lost.txt"), "content": "Did this arrive?"});
    let mut taking = Taking::begin(world)?;
    let mut client = Client::connect(gate, FRAGILE).await?;
    let answer = client.call("write_note", &arguments).await?;
    let act = answer
        .act()
        .ok_or_else(|| Fault("a lost answer names no act".to_owned()))?;
    client.leave().await;
    taking.line(
        "act",
        format!("{} · {}", short(&act.to_string()), state(gate, act)),
    );
    taking.expect(
        state(gate, act) == "indeterminate",
        "a lost answer is not indeterminate",
    );
    let first = taking.end(LOST, answer.code().map(str::to_owned))?;

    let mut taking = Taking::begin(world)?;
    let mut client = Client::connect(gate, FRAGILE).await?;
    let answer = client.call("write_note", &arguments).await?;
    client.leave().await;
    taking.line(
        "",
        format!(
            "it names {}, whose outcome is open",
            short(&act.to_string())
        ),
    );
    taking.expect(answer.act() == Some(act), "the refusal names another act");
    let second = taking.end(REPEATED, answer.code().map(str::to_owned))?;

    let mut taking = Taking::begin(world)?;
    let arrived = std::fs::read_to_string(world.note("lost.txt")).is_ok();
    reconcile(world, act, arrived).await?;
    taking.line(
        "act",
        format!("{} · {}", short(&act.to_string()), state(gate, act)),
    );
    taking.expect(
        state(gate, act) == "reconciled_effect",
        "the act is not reconciled",
    );
    let third = taking.end(RECONCILED, None)?;
    Ok([first, second, third])
}

/// Text from a web page asks for a message, and nobody is there to ask.
pub(super) async fn injected(world: &World, client: &mut Client) -> Result<Step, Fault> {
    let taking = Taking::begin(world)?;
    let arguments = json!({"to": "mallory@example.com", "text": "All the notes."});
    let answer = client.call("send_message", &arguments).await?;
    taking.end(INJECTED, answer.code().map(str::to_owned))
}

/// Nobody will be at the keyboard: what would ask is denied from now on.
pub(super) async fn leave_alone(world: &World) -> Result<(), Fault> {
    let text = world
        .config
        .replace("unattended = false", "unattended = true");
    let applied = read_config(&text, &world.pins)?;
    world
        .lab
        .gate
        .apply(applied, None)
        .await
        .map(|_| ())
        .map_err(at("apply"))
}

/// A connection to the server that behaves.
pub(super) async fn client(world: &World) -> Result<Client, Fault> {
    Client::connect(&world.lab.gate, DESK).await
}

fn state(gate: &Arc<Gate>, act: ActId) -> &'static str {
    let row = gate.store().act(act).ok().flatten();
    row.map_or("unknown", |row| row.state.name())
}

/// The ticket that waits.
fn pending(gate: &Arc<Gate>) -> Result<TicketSummary, Fault> {
    let ticket = gate.pending().map_err(at("pending"))?.pop();
    ticket.ok_or_else(|| Fault("nobody was asked".to_owned()))
}

fn key(world: &World) -> Result<String, Fault> {
    Ok(short(&approver(world)?.key_id().0))
}

fn approver(world: &World) -> Result<&SigningKey, Fault> {
    world
        .lab
        .approver
        .as_ref()
        .ok_or_else(|| Fault("there is no approver".to_owned()))
}

async fn approve(world: &World, ticket: &TicketSummary) -> Result<(), Fault> {
    let key = approver(world)?;
    let mut signed = ApprovalVerdict {
        version: Version::default(),
        object_type: Default::default(),
        ticket_id: ticket.id,
        subject: ticket.subject,
        expires_at: ticket.expires_at,
        verdict: Verdict::Approve,
        at: world.lab.gate.now(),
        mark: Mark::unsigned(key.key_id().clone()),
    };
    key.sign(&mut signed).map_err(at("approver"))?;
    world.lab.gate.rule(&signed).await.map_err(Fault).map(drop)
}

async fn reconcile(world: &World, act: ActId, effect: bool) -> Result<(), Fault> {
    let key = approver(world)?;
    let gate = &world.lab.gate;
    let mut signed = ReconciliationVerdict {
        version: Version::default(),
        object_type: Default::default(),
        candidate_act_id: act,
        effect,
        reason: Reason::try_from("the note is on the disk").map_err(at("reason"))?,
        at: gate.now(),
        challenge: gate.challenge().map_err(at("challenge"))?,
        mark: Mark::unsigned(key.key_id().clone()),
    };
    key.sign(&mut signed).map_err(at("approver"))?;
    gate.reconcile(&signed)
        .await
        .map(|_| ())
        .map_err(at("reconcile"))
}
