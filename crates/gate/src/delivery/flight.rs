//! What a sink has in flight: from the moment the PED looks at an act until its first byte has left or it certainly never
//! will.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::gate::Gate;
use crate::session::Session;

/// The flights of one connection, by the newest control there was when each began.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    /// Nearly always one number, with how many flights have it.
    open: Mutex<Vec<(u64, usize)>>,
    ended: Notify,
}

impl Flights {
    /// A number added is as good as any: a poisoned lock is still good.
    fn open(&self) -> MutexGuard<'_, Vec<(u64, usize)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_older_than(&self, number: u64) -> bool {
        self.open().iter().any(|(began, _)| *began < number)
    }
}

/// One act on its way through the doors. It ends with this, wherever that is dropped.
#[derive(Debug)]
pub(crate) struct Flight {
    session: Arc<Session>,
    began: u64,
}

impl Flight {
    /// `began` must be read before anything is decided: a flight may look older than it is, never younger.
    pub(crate) fn begin(session: &Arc<Session>, began: u64) -> Self {
        let mut open = session.flights().open();
        match open.iter_mut().find(|(number, _)| *number == began) {
            Some((_, count)) => *count += 1,
            None => open.push((began, 1)),
        }
        drop(open);
        Self {
            session: Arc::clone(session),
            began,
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let flights = self.session.flights();
        let mut open = flights.open();
        if let Some((_, count)) = open.iter_mut().find(|(number, _)| *number == self.began) {
            *count = count.saturating_sub(1);
        }
        open.retain(|(_, count)| *count > 0);
        drop(open);
        flights.ended.notify_waiters();
    }
}

impl Gate {
    /// Resolves when nothing of this connection is in flight that began before control `number`.
    pub async fn drained(&self, session: &Session, number: u64) {
        let flights = session.flights();
        loop {
            let ended = flights.ended.notified();
            let mut ended = std::pin::pin!(ended);
            // Before the look, so that no end is missed.
            ended.as_mut().enable();
            if !flights.is_older_than(number) {
                return;
            }
            ended.await;
        }
    }
}
