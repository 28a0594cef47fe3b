//! One client connection from its first line to the end of its child.

use std::sync::Arc;

use lychgate_core::control::{ControlEnd, ControlStage};
use lychgate_gate::{Gate, Session};
use lychgate_intake::{FromClient, Limits, from_client};
use lychgate_policy::{Applied, Server};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::entry::entry_digest;
use super::launch::{self, Launch};
use super::shared::Shared;
use super::upstream::{Event, Upstream};
use super::withheld::{self, Withheld};
use super::{FromLink, ToLink};
use lychgate_gate::log;

pub(crate) async fn serve(
    gate: Arc<Gate>,
    session: Arc<Session>,
    mut from: mpsc::Receiver<FromLink>,
    to: mpsc::Sender<ToLink>,
) {
    let current = gate.current();
    let Some(server) = current.applied.server(session.server()) else {
        return;
    };
    let (bounds, most) = bounds(&current.applied);
    let running = match start(server) {
        Ok(running) => running,
        Err(why) => {
            return withheld::serve(&gate, &session, why, &bounds, (&mut from, &to)).await;
        }
    };
    let upstream = Upstream::new(running.stdin);
    let (events_in, events) = mpsc::channel(EVENTS);
    let largest = bounds.message_bytes;
    let reading = tokio::spawn(Arc::clone(&upstream).read(running.stdout, largest, events_in));
    let shared = Arc::new(Shared::new(
        &gate,
        &session,
        Arc::clone(&upstream),
        server.endpoint(),
        to,
    ));
    let mut connection = Connection {
        shared: Arc::clone(&shared),
        bounds,
        most,
        tasks: JoinSet::new(),
    };
    // Followed before it is said to be, so that no control in between is missed.
    let controls = gate.controls();
    session.mark_sink(true);
    let (taken, follow) = watch::channel(0);
    let following = tokio::spawn(tell_of_controls(
        Arc::clone(&gate),
        Arc::clone(&session),
        follow,
    ));
    connection.run(&mut from, events, (controls, &taken)).await;
    following.abort();
    session.mark_sink(false);
    shared.client_gone();
    upstream.hang_up().await;
    launch::end(running.child).await;
    upstream.finish();
    // Nothing that was dispatched is left without an outcome.
    while connection.tasks.join_next().await.is_some() {}
    drop(reading.await);
}

/// Says how far this sink has come with each control: it has taken it, and nothing older is in flight.
async fn tell_of_controls(gate: Arc<Gate>, session: Arc<Session>, mut taken: watch::Receiver<u64>) {
    while taken.changed().await.is_ok() {
        let number = *taken.borrow_and_update();
        let sink = ControlEnd::Sink;
        let received = ControlStage::Received;
        gate.acknowledge(&session, sink, received, number).await;
        gate.drained(&session, number).await;
        let enforced = ControlStage::Enforced;
        gate.acknowledge(&session, sink, enforced, number).await;
    }
}

//= PROFILE §8: the digest of the entry file belongs to the endpoint
pub(super) fn start(server: &Server) -> Result<launch::Running, Withheld> {
    if server.entry.is_some() && entry_digest(&server.command) != server.entry {
        log::error(
            "the server's entry file is not the one pinned",
            &[("server", server.into())],
        );
        return Err(Withheld::Substituted);
    }
    Launch::of(server).start().map_err(|fault| {
        log::error(
            "the server is not started",
            &[("server", server.into()), ("fault", fault.shown())],
        );
        Withheld::NotStarted
    })
}

/// What is taken of a message, and how many requests may be open at a time.
fn bounds(applied: &Applied) -> (Limits, usize) {
    let limits = applied.limits();
    let size = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
    let bounds = Limits {
        message_bytes: size(limits.message_bytes),
        arguments_bytes: size(limits.arguments_bytes),
    };
    (bounds, size(limits.in_flight))
}

pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) bounds: Limits,
    /// How many requests may be open at a time, acts or not.
    pub(super) most: usize,
    pub(super) tasks: JoinSet<()>,
}

impl Connection {
    async fn run(
        &mut self,
        from: &mut mpsc::Receiver<FromLink>,
        mut events: mpsc::Receiver<Event>,
        (mut controls, taken): (watch::Receiver<u64>, &watch::Sender<u64>),
    ) {
        let mut client_speaks = true;
        loop {
            tokio::select! {
                // A task that ends has given its answer away, and there may be room again.
                message = from.recv(), if client_speaks && self.shared.upstream.has_room() => match message {
                    Some(message) => self.link_says(message).await,
                    None => client_speaks = false,
                },
                // The loop itself takes the new epochs: one that is stuck acknowledges nothing.
                Ok(()) = controls.changed() => {
                    controls.mark_unchanged();
                    taken.send_replace(self.shared.gate.current().epochs.control());
                }
                Some(event) = events.recv() => self.server_says(event).await,
                Some(_) = self.tasks.join_next() => {}
                () = self.shared.to.closed() => {
                    self.shared.client_gone();
                    return self.finish_dispatched(events).await;
                }
                () = self.shared.upstream.over() => return self.drain(from).await,
                () = self.shared.gate.closing() => return,
            }
            if !client_speaks && self.tasks.is_empty() {
                return;
            }
        }
    }

    /// The client is gone: what was dispatched may still be answered, and its outcome is worth waiting for.
    async fn finish_dispatched(&mut self, mut events: mpsc::Receiver<Event>) {
        loop {
            tokio::select! {
                next = self.tasks.join_next() => if next.is_none() { return },
                // What the server says by itself reaches nobody, and must not hold up its answers.
                Some(_) = events.recv() => {}
                () = self.shared.gate.closing() => return,
            }
        }
    }

    /// The server has ended: what is open is answered, what the client has already sent is refused.
    async fn drain(&mut self, from: &mut mpsc::Receiver<FromLink>) {
        while let Ok(message) = from.try_recv() {
            self.link_says(message).await;
        }
        let finishing = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            () = finishing => {}
            () = self.shared.gate.closing() => {}
        }
    }

    async fn link_says(&mut self, message: FromLink) {
        let line = match message {
            FromLink::Delivered(act) => return self.shared.gate.delivered(act),
            FromLink::TooLong => {
                let answer = self.shared.refusals.too_long().await;
                return self.shared.say(answer).await;
            }
            FromLink::Line(line) => line,
        };
        match from_client(&line, &self.bounds) {
            Ok(FromClient::Batch(elements)) => {
                for element in elements {
                    self.client_says(element).await;
                }
            }
            other => self.client_says(other).await,
        }
    }

    pub(super) fn with_server<T: Default>(&self, read: impl FnOnce(&Server) -> T) -> T {
        let current = self.shared.gate.current();
        current
            .applied
            .server(self.shared.session.server())
            .map(read)
            .unwrap_or_default()
    }
}

/// How many of the server's own messages wait for a slow client before the server is held up.
const EVENTS: usize = 256;
