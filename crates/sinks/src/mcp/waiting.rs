//! A call whose ticket a person is asked about: its client is told so, again and again, and where the person decides.

use std::convert::Infallible;
use std::time::Duration;

use lychgate_core::Code;
use lychgate_core::id::TicketId;
use lychgate_gate::{CallerGone, Denied};
use lychgate_intake::waiting::{
    elicitation_bytes, elicitation_over_bytes, input_required_bytes, is_our_state, progress_bytes,
};
use lychgate_intake::{ActingMethod, Era, Proposal, RequestId};
use tokio::sync::watch;

use super::call::Call;

/// How a client that waits is told.
pub(super) struct Telling {
    progress: Option<RequestId>,
    /// It shows URLs to a person.
    by_url: bool,
    /// It is told with the answer, and comes again (2026-07-28).
    comes_again: bool,
}

/// What was told of one call, and to whom.
pub(super) struct Told {
    ticket: watch::Receiver<Option<TicketId>>,
    by_url: bool,
    comes_again: bool,
}

impl Telling {
    /// How the client of a call is told. What it brings back of ours is taken away: it is a call like any other then.
    pub(super) fn of(proposal: &mut Proposal, era: Era, shows_urls: bool) -> Self {
        let state = proposal
            .continuation
            .as_ref()
            .and_then(|continuation| continuation.request_state.as_deref());
        let again = is_our_state(state);
        if again {
            proposal.continuation = None;
        }
        let calls = proposal.method == ActingMethod::ToolsCall;
        Self {
            progress: proposal.meta.progress_token.clone(),
            by_url: shows_urls && era == Era::Legacy,
            comes_again: shows_urls && era == Era::Modern && calls && !again,
        }
    }
}

impl Call {
    /// Two ends of a wait: one to say which ticket it is for, one to tell the client of it.
    pub(super) fn told(telling: &Telling) -> (watch::Sender<Option<TicketId>>, Told) {
        let (sender, ticket) = watch::channel(None);
        let told = Told {
            ticket,
            by_url: telling.by_url,
            comes_again: telling.comes_again,
        };
        (sender, told)
    }

    /// Tells the client as long as it waits, and its absence to the gate. It never ends by itself.
    pub(super) async fn mind(
        &self,
        telling: &Telling,
        mut ticket: watch::Receiver<Option<TicketId>>,
        away: &CallerGone,
    ) -> Infallible {
        let asked = async {
            match ticket.wait_for(Option::is_some).await {
                Ok(found) => *found,
                Err(_) => None,
            }
        };
        let found = tokio::select! {
            () = self.caller.gone() => None,
            found = asked => found,
        };
        match found {
            Some(_) if telling.comes_again => {}
            Some(ticket) => self.keep_telling(telling, ticket).await,
            None => {}
        }
        away.say();
        std::future::pending().await
    }

    /// Until the caller has gone.
    async fn keep_telling(&self, telling: &Telling, ticket: TicketId) {
        if telling.by_url {
            let id = RequestId::String(format!("lychgate-{}", self.shared.upstream.fresh_id()));
            // Whatever is answered to it decides nothing, so nobody waits for that.
            self.shared.hint(elicitation_bytes(&id, ticket));
        }
        for step in 1.. {
            if let Some(token) = &telling.progress {
                self.shared.hint(progress_bytes(token, step, ticket));
            }
            tokio::select! {
                () = self.caller.gone() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    /// The wait is over; whether the client is answered with a place to go to instead of a denial.
    pub(super) fn over(&self, told: &Told, denied: Option<&Denied>) -> Option<Vec<u8>> {
        let ticket = (*told.ticket.borrow())?;
        if told.by_url {
            self.shared.hint(elicitation_over_bytes(ticket));
        }
        let asked = denied.is_some_and(|denied| {
            denied.code == Code::EscalationRequired && denied.ticket == Some(ticket)
        });
        (told.comes_again && asked && !self.caller.is_gone())
            .then(|| input_required_bytes(&self.id, ticket))
    }
}

/// Between two words of progress: shorter than any client's patience.
const EVERY: Duration = Duration::from_secs(5);
