//! What is really behind a call: the server's definition of now, the catalogue's word on errors and time.

use std::time::Duration;

use lychgate_core::json::Value;
use lychgate_gate::{Connected, HeldAct};
use lychgate_intake::{ActingMethod, Proposal};
use lychgate_policy::{ErrorMeaning, Resolution, ToolEntry};

use super::effect::Meaning;
use super::shared::Shared;

/// What a call names, as far as the server's listings know it.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    method: ActingMethod,
    function: String,
    uri: String,
    prompt: String,
}

impl Named {
    pub(crate) fn of(proposal: &Proposal) -> Self {
        let argument = |key| {
            let text = proposal.arguments.get(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Self {
            method: proposal.method.clone(),
            function: proposal.function.clone(),
            uri: argument("uri"),
            prompt: argument("name"),
        }
    }

    /// What is really connected behind it now.
    pub(crate) fn connected(&self, shared: &Shared) -> Connected {
        let current = shared.gate.current();
        let server = current.applied.server(shared.session.server());
        let pinned = || Some(server?.method(self.method.name())?.definition);
        let (definition, listed) = match &self.method {
            ActingMethod::ToolsCall => {
                let resolved = server.and_then(|server| match server.resolve(&self.function) {
                    Resolution::Exact(entry) => Some(entry.function.as_str()),
                    Resolution::Disabled | Resolution::Unknown => None,
                });
                let function = resolved.unwrap_or(&self.function);
                (shared.listing.definition(function), false)
            }
            ActingMethod::ResourcesRead => (pinned(), shared.listing.lists("resources", &self.uri)),
            ActingMethod::PromptsGet => (pinned(), shared.listing.lists("prompts", &self.prompt)),
            ActingMethod::TasksUpdate | ActingMethod::TasksCancel | ActingMethod::Listed(_) => {
                (pinned(), false)
            }
        };
        Connected {
            endpoint: shared.endpoint.clone(),
            definition,
            listed,
        }
    }
}

/// What the catalogue says of this function's errors, and how long it may take.
pub(crate) fn meaning_of(shared: &Shared, held: &HeldAct) -> (Meaning, Duration) {
    let class = held.act().consequence_class;
    with_entry(shared, held, |entry| {
        // Without an entry there is no act; the safest meaning stands here all the same.
        let (errors, timeout) = entry.map_or((ErrorMeaning::Unknown, PATIENCE), |entry| {
            (entry.errors, entry.timeout)
        });
        (Meaning { class, errors }, timeout)
    })
}

//= PROFILE §8: a definition that changes after pinning is withheld
/// Whether the server's definition of now is the pinned one.
pub(crate) fn as_pinned(shared: &Shared, held: &HeldAct) -> bool {
    let live = Named::of(held.proposal()).connected(shared).definition;
    with_entry(shared, held, |entry| {
        entry.is_some_and(|entry| live == Some(entry.definition))
    })
}

fn with_entry<T>(shared: &Shared, held: &HeldAct, read: impl FnOnce(Option<&ToolEntry>) -> T) -> T {
    let current = shared.gate.current();
    let function = held.proposal().function.as_str();
    let server = current.applied.server(shared.session.server());
    read(server.and_then(|server| match held.proposal().method {
        ActingMethod::ToolsCall => server.tool(function),
        _ => server.method(function),
    }))
}

const PATIENCE: Duration = Duration::from_secs(60);
