//! Whether a name to be revoked names anything: a slip of the finger must not look like a stop.

use lychgate_core::{State, Subject};
use lychgate_policy::RECONCILER;
use lychgate_store::{ActQuery, StoreFault};

use crate::gate::Gate;

/// A subject that nothing here has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSubject {
    /// The subject.
    pub subject: Subject,
    /// What may have been meant.
    pub candidates: Vec<String>,
}

impl Gate {
    /// `None` when a subject names something configured, connected, kept or lately seen; else what may have been meant.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn unknown_subject(&self, subject: &Subject) -> Result<Option<UnknownSubject>, StoreFault> {
        let current = self.current();
        let applied = &current.applied;
        let candidates: Vec<String> = match subject {
            Subject::All => return Ok(None),
            Subject::Agent(_) => vec![applied.agent().id.clone(), RECONCILER.to_owned()],
            Subject::Principal(_) => vec![applied.principal().id.clone()],
            Subject::Session(_) => self.connected().iter().map(ToString::to_string).collect(),
            Subject::Server(_) => applied
                .servers()
                .map(|server| server.name.clone())
                .collect(),
            Subject::Tool { .. } => applied
                .servers()
                .flat_map(|server| {
                    let functions = server.tools();
                    functions.map(|tool| format!("{}/{}", server.name, tool.function))
                })
                .collect(),
            Subject::Destination(_) => self.destinations_seen()?,
            Subject::Key(_) => {
                let trust = self.trust();
                let keys = trust.keys().iter();
                keys.map(|key| key.key_id().0.clone()).collect()
            }
            Subject::Delegation(link) => {
                if self.store().delegation(*link)?.is_some() {
                    return Ok(None);
                }
                let newest = self.store().delegations(LOOKED_AT)?;
                newest.iter().map(|row| row.id.to_string()).collect()
            }
            Subject::Act(act) => {
                let row = self.store().act(*act)?;
                let waits =
                    row.is_some_and(|row| matches!(row.state, State::Allowed | State::Escalated));
                return Ok((!waits)
                    .then(|| self.waiting_acts())
                    .transpose()?
                    .map(|candidates| UnknownSubject {
                        subject: subject.clone(),
                        candidates,
                    }));
            }
        };
        let text = subject.to_string();
        let name = text.split_once(':').map_or("", |(_, name)| name);
        if candidates.iter().any(|known| known == name) || current.revoked.contains(&text) {
            return Ok(None);
        }
        Ok(Some(UnknownSubject {
            subject: subject.clone(),
            candidates,
        }))
    }

    fn waiting_acts(&self) -> Result<Vec<String>, StoreFault> {
        let query = ActQuery {
            state: Some(State::Escalated),
            after: None,
            newest_first: true,
            limit: LOOKED_AT,
        };
        let rows = self.store().acts(&query)?.into_iter();
        Ok(rows.map(|row| row.id.to_string()).collect())
    }

    /// Configured destinations, and those of the newest acts.
    fn destinations_seen(&self) -> Result<Vec<String>, StoreFault> {
        let mut seen: Vec<String> = self.current().applied.destination_names();
        let query = ActQuery {
            state: None,
            after: None,
            newest_first: true,
            limit: LOOKED_AT,
        };
        for row in self.store().acts(&query)? {
            seen.extend(self.destinations_of(&row));
        }
        seen.sort_unstable();
        seen.dedup();
        Ok(seen)
    }
}

/// The newest acts that are asked for destinations.
const LOOKED_AT: usize = 1000;
