//! How the gate answers control requests.

mod delegate;
mod envelopes;
mod ledger;
mod pending;
mod rules;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lychgate_core::id::ActId;
use lychgate_core::json::Value;
use lychgate_core::{Code, State, Timestamp, jcs};
use lychgate_gate::ControlRefused;
use lychgate_gate::ledger::Archived;
use lychgate_keys::verdict::{ApproverChange, ConfigurationChange, KeyChange};
use lychgate_keys::{KeyFault, NewKey, Role, TrustBundle, rotate};
use lychgate_policy::Applied;
use lychgate_store::{ActQuery, ActRow, StoreFault};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;

pub(crate) use self::delegate::{delegate, refusal};
use crate::listen::{Door, say};
use crate::protocol::{
    ActView, ChangeView, Class, Configuration, DiagnosticView, MOST_ACTS, Plan, Refusal, Request,
    Response, SignedObjects, Status,
};
use lychgate_gate::log;

/// Answers one request.
pub(crate) async fn answer(door: &Arc<Door>, request: Request) -> Response {
    try_answer(door, request)
        .await
        .unwrap_or_else(Response::Refused)
}

async fn try_answer(door: &Arc<Door>, request: Request) -> Result<Response, Refusal> {
    let gate = door.gate();
    let refused = |why: ControlRefused| door.refusal(why);
    Ok(match request {
        Request::Status => Response::Status {
            status: status(door)?,
        },
        Request::Stop => Response::Stopping,
        Request::Delegations => delegate::list(door)?,
        Request::Envelopes => envelopes::list(door),
        Request::CloseEnvelope { id } => envelopes::close(door, id).await?,
        Request::Pending { wanted } => pending::page(door, wanted)?,
        Request::Named { part } => pending::named(door, &part),
        Request::Ticket { id } => Response::Ticket {
            ticket: pending::one(door, id)?,
        },
        Request::Rule { verdict } => {
            let ruled = gate.rule(&verdict).await.map_err(|why| door.refusal(why))?;
            log::info(
                "a ticket was decided",
                &[("ticket", verdict.ticket_id.into())],
            );
            pending::ruled(ruled)
        }
        Request::Acts { state, limit, .. } => Response::Acts {
            acts: acts(door, state, limit)?,
        },
        Request::Act { id } => Response::Act {
            act: whole_act(door, id)?,
        },
        Request::Objects { id } => Response::Objects {
            objects: gate.objects(id).map_err(fault)?.map(signed),
        },
        Request::Challenge => Response::Challenge {
            challenge: gate.challenge().map_err(refused)?,
        },
        Request::Trust => {
            let bytes = gate
                .trust()
                .to_bytes()
                .map_err(|fault| Refusal::new(Class::Fault, fault))?;
            Response::Trust {
                bundle: String::from_utf8_lossy(&bytes).into_owned(),
            }
        }
        Request::Ledger => Response::Ledger {
            ledger: ledger::view(door)?,
        },
        Request::Records { from, limit } => ledger::records(door, from, limit)?,
        Request::Heads { from, limit } => ledger::heads(door, from, limit)?,
        Request::Proof { index, open, head } => ledger::proof(door, index, open, head)?,
        request => change(door, request).await?,
    })
}

/// The requests that change the rules, the keys, or what an act is taken for.
async fn change(door: &Arc<Door>, request: Request) -> Result<Response, Refusal> {
    let gate = door.gate();
    let refused = |why: ControlRefused| door.refusal(why);
    Ok(match request {
        Request::Plan { configuration } => {
            let plan = gate.plan(&compile(configuration).await?).map_err(refused)?;
            Response::Plan {
                plan: plan_view(plan),
            }
        }
        Request::Apply { configuration, yes } => apply(door, configuration, yes).await?,
        Request::Control { control } => Response::Control {
            answer: rules::answer(door, control).await?,
        },
        Request::Reconcile { verdict } => {
            let state = gate.reconcile(&verdict).await.map_err(refused)?;
            let act = verdict.candidate_act_id;
            log::info(
                "an act was reconciled",
                &[("act", act.into()), ("state", state.into())],
            );
            Response::Reconciled { state }
        }
        Request::ReconcileUnsigned { id, effect, reason } => {
            let state = gate.reconcile_unsigned(id, effect, &reason).await;
            let state = state.map_err(refused)?;
            log::info(
                "an act was reconciled without an approver",
                &[("act", id.into()), ("state", state.into())],
            );
            Response::Reconciled { state }
        }
        Request::PrepareKey { role } => {
            let prepared = gate.prepare_key(role).map_err(refused)?;
            Response::KeyPrepared {
                public: prepared.public,
                key_id: prepared.key_id,
                challenge: prepared.challenge,
            }
        }
        Request::Rotate { change } => put_key(door, change).await?,
        Request::ChangeApprover { change } => change_approver(door, change).await?,
        Request::Prune {
            first,
            below,
            archive,
            yes,
        } => {
            let what = Archived {
                first,
                below,
                archive,
            };
            gate.prune(what, yes.as_ref()).await.map_err(refused)?;
            log::info(
                "archived lines were dropped",
                &[
                    ("first", first.line().into()),
                    ("below", below.line().into()),
                ],
            );
            Response::Pruned
        }
        // `Mcp` is the connection's own business and never handed here; the rest was answered before.
        _ => return Err(Refusal::new(Class::Fault, "not a control request")),
    })
}

impl Door {
    fn refusal(&self, why: impl ToString) -> Refusal {
        let class = if self.gate().is_broken() {
            Class::Fault
        } else {
            Class::Refused
        };
        Refusal::new(class, why)
    }
}

fn fault(fault: StoreFault) -> Refusal {
    Refusal::new(Class::Fault, fault)
}

fn status(door: &Door) -> Result<Status, Refusal> {
    let gate = door.gate();
    let current = gate.current();
    let counts = gate.store().counts().map_err(fault)?;
    let acts = State::ALL
        .into_iter()
        .map(|state| (state.name().to_owned(), counts.of(state)))
        .filter(|(_, count)| *count > 0)
        .collect::<BTreeMap<_, _>>();
    let pending = gate.pending_count();
    let standing = gate.standing();
    Ok(Status {
        gate_id: gate.id(),
        pid: std::process::id(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        now: gate.now(),
        started_at: door.started_at,
        epochs: current.epochs,
        policy_digest: current.policy_digest,
        profile: current.applied.profile().name().to_owned(),
        servers: current
            .applied
            .servers()
            .map(|server| server.name.clone())
            .collect(),
        isolation: standing.isolation,
        approver: standing.approver,
        clients: door.clients.load(Ordering::Relaxed),
        pending: u64::try_from(pending).unwrap_or(u64::MAX),
        acts,
        receipts: gate.store().record_len().map_err(fault)?,
    })
}

/// Compiling is work for a thread that may take its time.
async fn compile(configuration: Configuration) -> Result<Applied, Refusal> {
    let compiled = tokio::task::spawn_blocking(move || {
        let file = PathBuf::from(&configuration.file);
        lychgate_policy::load(&configuration.text, &file, &configuration.pins())
    });
    match compiled.await {
        Ok(Ok(applied)) => Ok(applied),
        Ok(Err(diagnostics)) => Err(Refusal {
            class: Class::Usage,
            reason: "the configuration cannot be used".to_owned(),
            diagnostics: DiagnosticView::of(&diagnostics),
        }),
        Err(_) => Err(Refusal::new(
            Class::Fault,
            "the configuration could not be compiled",
        )),
    }
}

async fn apply(
    door: &Door,
    configuration: Configuration,
    yes: Option<ConfigurationChange>,
) -> Result<Response, Refusal> {
    let applied = compile(configuration).await?;
    let unset = unset(&applied);
    let digest = door
        .gate()
        .apply(applied, yes.as_ref())
        .await
        .map_err(|why| door.refusal(why))?;
    log::info("a configuration was applied", &[("digest", digest.into())]);
    Ok(Response::Applied { digest, unset })
}

#[allow(
    clippy::disallowed_methods,
    reason = "whether a variable that a server is to be given is there; its value is not read"
)]
fn unset(applied: &Applied) -> Vec<String> {
    let names = applied.servers().flat_map(|server| &server.pass_env);
    let unset = names.filter(|name| std::env::var_os(name).is_none());
    unset
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

async fn put_key(door: &Door, change: KeyChange) -> Result<Response, Refusal> {
    if change.role == Role::Approver {
        let why = "the approver's key is rotated by its holder, not by the gate";
        return Err(Refusal::new(Class::Usage, why));
    }
    let state = door.state.clone();
    let put = move |key: NewKey, at: Timestamp| {
        let mut trust = TrustBundle::read(&state.trust()).map_err(shown)?;
        rotate(&state.keys(), &state.trust(), &mut trust, key, at)
            .map(drop)
            .map_err(shown)
    };
    let key_id = door
        .gate()
        .rotate(&change, put)
        .await
        .map_err(|why| door.refusal(why))?;
    log::info(
        "a key was rotated; the gate ends",
        &[
            ("role", change.role.word().into()),
            ("key", (&key_id).into()),
        ],
    );
    Ok(Response::Rotated { key_id })
}

async fn change_approver(door: &Door, change: ApproverChange) -> Result<Response, Refusal> {
    let trust = door.state.trust();
    let put = move |bundle: &TrustBundle| bundle.write(&trust).map_err(shown);
    let changed = door.gate().change_approver(&change, put).await;
    let key_id = changed.map_err(|why| door.refusal(why))?;
    log::info("the approvers changed", &[("key", (&key_id).into())]);
    Ok(Response::ApproverChanged { key_id })
}

fn shown(fault: KeyFault) -> String {
    fault.to_string()
}

fn plan_view(plan: lychgate_gate::Plan) -> Plan {
    let changes = plan.changes.into_iter().map(|change| ChangeView {
        effect: change.effect.into(),
        text: change.text,
    });
    Plan {
        from: plan.from,
        to: plan.to,
        changes: changes.collect(),
        wants_approver: plan.wants_approver,
        challenge: plan.challenge,
    }
}

fn signed(objects: lychgate_gate::Objects) -> SignedObjects {
    let text = |value: &Value| String::from_utf8_lossy(&jcs::to_bytes(value)).into_owned();
    SignedObjects {
        evidence: text(&objects.evidence),
        authority: text(&objects.authority),
        verification: text(&objects.verification),
    }
}

fn whole_act(door: &Door, id: ActId) -> Result<Option<ActView>, Refusal> {
    let row = door.gate().store().act(id).map_err(fault)?;
    Ok(row.map(|row| {
        let destination = door.gate().destination_of(&row);
        ActView {
            destination,
            ..act(row)
        }
    }))
}

/// Without the destination, which lies sealed.
fn act(row: ActRow) -> ActView {
    ActView {
        id: row.id,
        state: row.state,
        created_at: row.created_at,
        updated_at: row.updated_at,
        agent: row.agent,
        tool: row.tool,
        function: row.function,
        class: row.class,
        arguments_digest: row.arguments_digest,
        destination: None,
        effect: row.effect,
        retry_of: row.retry_of,
        ticket: row.ticket,
        // An act that waits has no code of its own: it waits for a person.
        code: row
            .code
            .or_else(|| (row.state == State::Escalated).then_some(Code::EscalationRequired)),
        answered_by: row.answered_by,
        contradicted: row.contradicted,
        undelivered: row.undelivered,
    }
}

fn acts(door: &Door, state: Option<State>, limit: u32) -> Result<Vec<ActView>, Refusal> {
    let query = ActQuery {
        state,
        after: None,
        newest_first: true,
        limit: usize::try_from(limit.min(MOST_ACTS)).unwrap_or(0),
    };
    let rows = door.gate().store().acts(&query).map_err(fault)?;
    Ok(rows.into_iter().map(act).collect())
}

/// Tells of acts, and of every change of one of the newest [`MOST_ACTS`], until the client or the gate ends.
pub(crate) async fn follow(
    door: &Arc<Door>,
    stream: &mut UnixStream,
    state: Option<State>,
    limit: u32,
) {
    let first = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut known: Option<HashMap<ActId, (State, Timestamp, bool, bool)>> = None;
    loop {
        let now = match acts(door, state, MOST_ACTS) {
            Ok(now) => now,
            Err(refusal) => {
                let _ = say(stream, &Response::Refused(refusal)).await;
                return;
            }
        };
        let mark = |act: &ActView| (act.state, act.updated_at, act.undelivered, act.contradicted);
        let seen = now.iter().map(|act| (act.id, mark(act))).collect();
        let told: Vec<_> = match &known {
            None => now.into_iter().take(first).collect(),
            Some(known) => now
                .into_iter()
                .filter(|act| known.get(&act.id) != Some(&mark(act)))
                .collect(),
        };
        let tell = known.is_none() || !told.is_empty();
        known = Some(seen);
        if tell && say(stream, &Response::Acts { acts: told }).await.is_err() {
            return;
        }
        let mut byte = [0];
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = door.gate().closing() => return,
            // Whatever a follower sends, it is done.
            _ = stream.read(&mut byte) => return,
        }
    }
}

const LOOK_AGAIN: Duration = Duration::from_millis(300);
