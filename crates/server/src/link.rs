//! One client of a server: between the socket's frames and the sink's lines. Bounded both ways, so that who does not read
//! is not read from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lychgate_core::control::{ControlEnd, ControlStage};
use lychgate_core::delegation::DelegationFile;
use lychgate_gate::{Gate, Peer, Session};
use lychgate_sinks::mcp::{FromLink, ToLink};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::control::refusal;
use crate::frame::{Frame, FrameFault, Kind, MOST_LINE, Tokens};
use crate::listen::{Door, say};
use crate::protocol::{Class, Refusal, Response};
use lychgate_gate::log;

/// Serves one client of `server` until one side ends.
pub(crate) async fn serve(
    door: &Arc<Door>,
    mut stream: UnixStream,
    peer: Peer,
    server: &str,
    delegation: Option<DelegationFile>,
    purpose: Option<&str>,
) {
    let (session, limit) = match enter(door.gate(), peer, server, delegation, purpose).await {
        Ok(entered) => entered,
        Err(refusal) => {
            let _ = say(&mut stream, &Response::Refused(refusal)).await;
            return;
        }
    };
    let welcome = Response::Mcp {
        message_bytes: u64::try_from(limit).unwrap_or(u64::MAX),
    };
    if say(&mut stream, &welcome).await.is_err() {
        return;
    }
    let gate = Arc::clone(door.gate());
    let controls = gate.controls();
    gate.attach(&session).await;
    let attached = Arc::clone(&session);
    let holder = session.holder();
    let pid = peer.pid.and_then(|pid| u32::try_from(pid).ok());
    let who = [
        ("holder", holder.into()),
        ("server", (&*session).into()),
        ("pid", pid.unwrap_or_default().into()),
    ];
    log::info("a client has connected", &who);
    let (reader, writer) = stream.into_split();
    let (from_sender, from) = mpsc::channel(QUEUE);
    let (to, to_receiver) = mpsc::channel(QUEUE);
    let tokens = Arc::new(Mutex::new(Tokens::default()));
    // Dropped with this future, and then every task in them is ended.
    let mut sink = JoinSet::new();
    sink.spawn(lychgate_sinks::mcp::serve(
        Arc::clone(door.gate()),
        Arc::clone(&session),
        from,
        to,
    ));
    let inward = Inward {
        gate: Arc::clone(door.gate()),
        session,
        tokens: Arc::clone(&tokens),
        limit,
    };
    let mut reading = JoinSet::new();
    reading.spawn(async move {
        if let Err(fault) = inward.read(reader, from_sender).await {
            let who = [("holder", holder.into()), ("fault", fault.shown())];
            log::warn("a client out of step was closed", &who);
        }
    });
    tokio::select! {
        // When the sink is done; the last reports of delivery may still be on their way.
        written = write(writer, to_receiver, &tokens, controls) => if written.is_ok() {
            let _ = tokio::time::timeout(LAST_REPORTS, reading.join_next()).await;
        },
        // The connection has ended: with the way out the sink hears of it.
        _ = reading.join_next() => {}
    }
    // What was dispatched for the client may still be answered.
    while sink.join_next().await.is_some() {}
    gate.detach(&attached).await;
    log::info("a client has gone", &[("holder", holder.into())]);
}

async fn enter(
    gate: &Arc<Gate>,
    peer: Peer,
    server: &str,
    delegation: Option<DelegationFile>,
    purpose: Option<&str>,
) -> Result<(Arc<Session>, usize), Refusal> {
    let applied = Arc::clone(&gate.current().applied);
    if applied.server(server).is_none() {
        let name = lychgate_core::display::escape_within(server, 80);
        let why = format!(
            "there is no server `{name}` in the applied configuration; put it in with `lychgate add`, or run `lychgate apply`"
        );
        return Err(Refusal::new(Class::Usage, why));
    }
    let session = match (delegation, purpose) {
        (Some(_), Some(_)) => {
            let why = "a worker's purpose is its chain's; leave `--purpose` away";
            return Err(Refusal::new(Class::Usage, why));
        }
        (Some(file), None) => gate
            .connect_delegated(server, peer, &file)
            .await
            .map(Some)
            .map_err(|denied| refusal(&denied))?,
        (None, purpose) => match purpose {
            Some(purpose) => gate.connect_for(server, peer, purpose),
            None => gate.connect(server, peer).map(Some),
        }
        .map_err(|code| Refusal::new(Class::Fault, code))?,
    };
    let Some(session) = session else {
        let configured = applied.purposes().collect::<Vec<_>>().join(", ");
        let why = format!(
            "there is no such purpose in the applied configuration; it has: {}",
            lychgate_core::display::escape_within(&configured, 400)
        );
        return Err(Refusal::new(Class::Usage, why));
    };
    let limit = usize::try_from(applied.limits().message_bytes).unwrap_or(MOST_LINE);
    Ok((session, limit.min(MOST_LINE)))
}

/// The way in.
struct Inward {
    gate: Arc<Gate>,
    session: Arc<Session>,
    tokens: Arc<Mutex<Tokens>>,
    limit: usize,
}

impl Inward {
    /// Until the connection ends. The channel closes with the client's `End`; reports of delivery still count after it.
    async fn read(
        self,
        mut reader: OwnedReadHalf,
        sender: mpsc::Sender<FromLink>,
    ) -> Result<(), FrameFault> {
        let read = self.read_frames(&mut reader, sender).await;
        //= PROFILE §4: a caller who vanished while its act was held has withdrawn it
        self.session.mark_gone();
        read
    }

    async fn read_frames(
        &self,
        reader: &mut OwnedReadHalf,
        sender: mpsc::Sender<FromLink>,
    ) -> Result<(), FrameFault> {
        let mut open = Some(sender);
        loop {
            let frame = tokio::select! {
                frame = Frame::read_async(reader) => frame?,
                () = self.gate.closing(), if open.is_some() => {
                    open = None;
                    continue;
                }
            };
            let Some(frame) = frame else {
                return Ok(());
            };
            let message = match frame.kind {
                Kind::Line if frame.payload.len() > self.limit => FromLink::TooLong,
                Kind::Line => FromLink::Line(frame.payload),
                Kind::TooLong => FromLink::TooLong,
                Kind::Delivered => match self.delivered(&frame, open.is_none())? {
                    Some(message) => message,
                    None => continue,
                },
                Kind::Told => {
                    let (number, _) = frame.split_token()?;
                    let (end, stage) = (ControlEnd::Client, ControlStage::Observed);
                    self.gate
                        .acknowledge(&self.session, end, stage, number)
                        .await;
                    continue;
                }
                Kind::End => {
                    open = None;
                    continue;
                }
                Kind::Control => return Err(FrameFault::Length),
            };
            // A sink that is done reads no more; neither does it answer.
            if let Some(sender) = &open
                && sender.send(message).await.is_err()
            {
                open = None;
            }
        }
    }

    /// A token that was never given, or was reported already, is a client out of step only in its own bookkeeping.
    fn delivered(&self, frame: &Frame, closed: bool) -> Result<Option<FromLink>, FrameFault> {
        let (token, _) = frame.split_token()?;
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(act) = tokens.take(token) else {
            return Ok(None);
        };
        drop(tokens);
        if closed {
            self.gate.delivered(act);
            return Ok(None);
        }
        Ok(Some(FromLink::Delivered(act)))
    }
}

/// The way out, until the sink is done.
async fn write(
    mut writer: OwnedWriteHalf,
    mut lines: mpsc::Receiver<ToLink>,
    tokens: &Mutex<Tokens>,
    mut controls: watch::Receiver<u64>,
) -> Result<(), FrameFault> {
    loop {
        let next = tokio::select! {
            next = lines.recv() => next,
            Ok(()) = controls.changed() => {
                let number = *controls.borrow_and_update();
                Frame::told(number).write_async(&mut writer).await?;
                continue;
            }
        };
        let Some(ToLink { line, delivery }) = next else {
            break;
        };
        let token = delivery.map_or(0, |act| {
            let mut tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner);
            tokens.give(act)
        });
        Frame::line_from_gate(token, &line)
            .write_async(&mut writer)
            .await?;
    }
    Frame::end().write_async(&mut writer).await
}

/// Messages under way in each direction.
const QUEUE: usize = 64;
const LAST_REPORTS: Duration = Duration::from_secs(2);
