//! What the server offers now, held against what is pinned (PROFILE §8).

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex as Plain, MutexGuard, PoisonError};
use std::time::Duration;

use lychgate_core::Digest;
use lychgate_core::json::{self, Limits, Object, Value};
use lychgate_intake::listing::{self, Definition};
use lychgate_intake::passing_bytes;
use lychgate_policy::{Applied, Resolution, Server, allowlisted};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::handshake::Handshake;
use super::upstream::Upstream;

/// The server's listing as the gate itself has read it, whole.
#[derive(Default)]
pub(crate) struct Listing {
    state: Plain<State>,
    /// One reading at a time.
    reading: Mutex<()>,
}

#[derive(Default)]
struct State {
    fresh: bool,
    /// How often the server has said that something changed.
    changes: u64,
    tools: HashMap<String, Digest>,
    /// Readings that failed since the last that did not, and when the next is due.
    failures: u32,
    not_before: Option<Instant>,
    names: HashMap<&'static str, HashSet<String>>,
}

impl Listing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server says that something changed: look again before the next act.
    pub(crate) fn outdated(&self) {
        let mut state = self.state();
        state.fresh = false;
        state.not_before = None;
        state.changes = state.changes.wrapping_add(1);
        state.names.clear();
    }

    /// The digest of the definition the server gives for a function now; `None` when it gives none, or several.
    pub(crate) fn definition(&self, function: &str) -> Option<Digest> {
        self.state().tools.get(function).copied()
    }

    /// Whether the server lists this resource or prompt.
    pub(crate) fn lists(&self, kind: &'static str, name: &str) -> bool {
        self.state()
            .names
            .get(kind)
            .is_some_and(|names| names.contains(name))
    }

    /// Whether a tool is offered to the client: pinned as it is, unique, enabled, on the allowlist.
    pub(crate) fn offers(
        &self,
        definition: &Definition,
        applied: &Applied,
        server: &Server,
    ) -> bool {
        let unique = self.definition(&definition.name) == Some(definition.digest);
        let pinned = match server.resolve(&definition.name) {
            Resolution::Exact(entry) => {
                entry.function == definition.name && entry.definition == definition.digest
            }
            Resolution::Disabled | Resolution::Unknown => false,
        };
        unique && pinned && allowlisted(applied, &server.name, &definition.name)
    }

    /// Whether nothing was announced since the tools were read.
    pub(crate) fn is_fresh(&self) -> bool {
        self.state().fresh
    }

    /// Reads the tools again unless what is known is fresh. `false` when they could not be read: then nothing is
    /// offered, and a server that failed is left alone for a while.
    pub(crate) async fn ensure(&self, upstream: &Upstream, handshake: &Handshake) -> bool {
        if self.is_fresh() {
            return true;
        }
        let _one = self.reading.lock().await;
        let changes = {
            let state = self.state();
            if state.fresh {
                return true;
            }
            if state.not_before.is_some_and(|at| Instant::now() < at) {
                return false;
            }
            state.changes
        };
        let mut definitions: Vec<Definition> = Vec::new();
        let whole = each_page(upstream, handshake, "tools/list", |raw| {
            let page = listing::page(raw).ok()?;
            definitions.extend(
                page.tools
                    .into_iter()
                    .filter_map(|tool| tool.definition.ok()),
            );
            Some(page.next_cursor)
        })
        .await;
        let doubled: HashSet<String> = listing::duplicates(&definitions).into_iter().collect();
        let mut state = self.state();
        // A change announced during the reading makes what was read stale at once.
        state.fresh = whole && state.changes == changes;
        state.tools = definitions
            .into_iter()
            .filter(|definition| whole && !doubled.contains(&definition.name))
            .map(|definition| (definition.name, definition.digest))
            .collect();
        if whole {
            state.failures = 0;
            state.not_before = None;
        } else {
            let wait = BACK_OFF.saturating_mul(1 << state.failures.min(5));
            state.failures = state.failures.saturating_add(1);
            state.not_before = Some(Instant::now() + wait);
        }
        whole
    }

    /// Reads what the server lists under `kind` (`resources` by `uri`, `prompts` by `name`) unless it is known.
    pub(crate) async fn ensure_names(
        &self,
        kind: &'static str,
        upstream: &Upstream,
        handshake: &Handshake,
    ) {
        if self.state().names.contains_key(kind) {
            return;
        }
        let (method, key) = match kind {
            "resources" => ("resources/list", "uri"),
            _ => ("prompts/list", "name"),
        };
        let mut names = HashSet::new();
        each_page(upstream, handshake, method, |raw| {
            let result = json::parse(raw, &Limits::CANON).ok()?;
            let items = result.get(kind).and_then(Value::as_array)?;
            names.extend(
                items
                    .iter()
                    .filter_map(|item| item.get(key)?.as_str().map(str::to_owned)),
            );
            Some(
                result
                    .get("nextCursor")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            )
        })
        .await;
        self.state().names.insert(kind, names);
    }
}

/// Reads a listing page by page. `false` when it could not be read to its end.
pub(crate) async fn each_page(
    upstream: &Upstream,
    handshake: &Handshake,
    method: &str,
    mut page: impl FnMut(&[u8]) -> Option<Option<String>>,
) -> bool {
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let mut params = Object::new();
        if let Some(cursor) = &cursor {
            params.insert("cursor".to_owned(), Value::from(cursor.as_str()));
        }
        let (id, answer) = upstream.expect();
        let line = passing_bytes(id, method, handshake.own_params(params).as_ref());
        if !upstream.say(line).await {
            return false;
        }
        let Ok(Ok(Ok(raw))) = timeout(PATIENCE, answer).await else {
            return false;
        };
        match page(&raw) {
            Some(None) => return true,
            Some(Some(next)) => cursor = Some(next),
            None => return false,
        }
    }
    false
}

const MOST_PAGES: usize = 64;
/// How long a server whose tools could not be read is left alone; doubled each time, up to half a minute.
const BACK_OFF: Duration = Duration::from_secs(1);
/// How long a server may take for one page.
const PATIENCE: Duration = Duration::from_secs(30);
