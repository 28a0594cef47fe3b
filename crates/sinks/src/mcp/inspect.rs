//! A server's tools, read once, for the person who adds or pins it. Nothing is called.

use std::sync::Arc;
use std::time::Duration;

use lychgate_core::json::{Object, Value};
use lychgate_core::{Code, Digest};
use lychgate_intake::answer::error_object;
use lychgate_intake::listing;
use lychgate_intake::method::{FromServerKind, from_server_kind};
use lychgate_intake::rebuild::{notification_bytes, reply_bytes};
use lychgate_intake::{Denial, passing_bytes};
use lychgate_policy::Definition;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::entry::entry_digest;
use super::handshake::{Handshake, roots_value};
use super::launch::{self, Launch, LaunchFault};
use super::listing::each_page;
use super::upstream::{Event, Upstream};

/// What a server offers.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// Its tools, in its order.
    pub definitions: Vec<Definition>,
    /// Tools that cannot be pinned, and why; escape the texts before showing them.
    pub unpinnable: Vec<(String, String)>,
    /// The digest of the file its command really runs; `None`: nothing is pinned beside the command's words, and the
    /// person should be told.
    pub entry: Option<Digest>,
    /// What the server calls itself: a claim.
    pub server_info: Option<Value>,
}

/// Why a server could not be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectFault {
    /// It could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchFault),
    /// It did not answer as an MCP server.
    #[error("`{0}` got no proper answer; is the command an MCP server that speaks stdio?")]
    NoAnswer(&'static str),
}

/// Starts the server with the caller's rights, lists its tools, and ends it.
///
/// # Errors
/// When it cannot be started or does not answer in time.
pub async fn inspect(launch: &Launch) -> Result<Inspected, InspectFault> {
    let entry = entry_digest(&launch.command);
    let running = launch.start()?;
    let upstream = Upstream::new(running.stdin);
    let (events_in, events) = mpsc::channel(64);
    let reading = tokio::spawn(Arc::clone(&upstream).read(running.stdout, LARGEST, events_in));
    let roots = roots_value(&launch.roots);
    let answering = tokio::spawn(answer_server(Arc::clone(&upstream), events, roots));
    let found = ask(&upstream, !launch.roots.is_empty(), launch.timeout).await;
    upstream.hang_up().await;
    launch::end(running.child).await;
    upstream.finish();
    drop(reading.await);
    answering.abort();
    let (definitions, unpinnable, server_info) = found?;
    Ok(Inspected {
        definitions,
        unpinnable,
        entry,
        server_info,
    })
}

type Found = (Vec<Definition>, Vec<(String, String)>, Option<Value>);

async fn ask(
    upstream: &Upstream,
    has_roots: bool,
    patience: Duration,
) -> Result<Found, InspectFault> {
    let greeted = greet(upstream, has_roots, patience).await;
    let raw = greeted.ok_or(InspectFault::NoAnswer("initialize"))?;
    let parsed = lychgate_core::json::parse(&raw, &lychgate_core::json::Limits::CANON).ok();
    let server_info = parsed.and_then(|result| result.get("serverInfo").cloned());
    let mut listed = Vec::new();
    let mut unpinnable = Vec::new();
    let handshake = Handshake::default();
    let whole = each_page(upstream, &handshake, "tools/list", |raw| {
        let page = listing::page(raw).ok()?;
        for tool in page.tools {
            match tool.definition {
                Ok(definition) => listed.push(definition),
                Err(fault) => unpinnable.push((fault.name.unwrap_or_default(), fault.reason)),
            }
        }
        Some(page.next_cursor)
    })
    .await;
    if !whole {
        return Err(InspectFault::NoAnswer("tools/list"));
    }
    let doubled = listing::duplicates(&listed);
    listed.retain(|definition| !doubled.contains(&definition.name));
    let twice = |name| (name, "the name is offered twice".to_owned());
    unpinnable.extend(doubled.into_iter().map(twice));
    let mut definitions = Vec::new();
    for one in listed {
        match Definition::parse(one.value) {
            Ok(definition) => definitions.push(definition),
            Err(fault) => unpinnable.push((one.name, fault.to_string())),
        }
    }
    Ok((definitions, unpinnable, server_info))
}

/// The handshake of the gate's own connections, and what the server answered.
pub(super) async fn greet(
    upstream: &Upstream,
    has_roots: bool,
    patience: Duration,
) -> Option<Vec<u8>> {
    let (id, answer) = upstream.expect();
    let hello = passing_bytes(id, "initialize", Some(&initialize_params(has_roots)));
    upstream.say(hello).await;
    let Ok(Ok(Ok(raw))) = timeout(patience, answer).await else {
        return None;
    };
    let initialized = notification_bytes("notifications/initialized", None);
    upstream.say(initialized).await;
    // Some servers finish their list only after they have heard of the client; a moment lets them.
    tokio::time::sleep(SETTLE).await;
    Some(raw)
}

fn initialize_params(has_roots: bool) -> Value {
    let mut capabilities = Object::new();
    if has_roots {
        capabilities.insert("roots".to_owned(), Value::Object(Object::new()));
    }
    let mut info = Object::new();
    info.insert("name".to_owned(), Value::from("lychgate"));
    info.insert("version".to_owned(), Value::from(env!("CARGO_PKG_VERSION")));
    let mut params = Object::new();
    params.insert("protocolVersion".to_owned(), Value::from("2025-11-25"));
    params.insert("capabilities".to_owned(), Value::Object(capabilities));
    params.insert("clientInfo".to_owned(), Value::Object(info));
    Value::Object(params)
}

/// What a server may ask of the gate's own connections, answered.
pub(super) async fn answer_server(
    upstream: Arc<Upstream>,
    mut events: mpsc::Receiver<Event>,
    roots: Value,
) {
    let refusal = error_object(&Denial::new(Code::ToolNotAuthorized));
    while let Some(event) = events.recv().await {
        let Event::Request { id, method, .. } = event else {
            continue;
        };
        let line = match from_server_kind(&method, true) {
            FromServerKind::Roots => reply_bytes(&id, Ok(&roots)),
            FromServerKind::Ping => reply_bytes(&id, Ok(&Value::Object(Object::new()))),
            _ => reply_bytes(&id, Err(&refusal)),
        };
        upstream.say(line).await;
    }
}

const LARGEST: usize = 16 << 20;
const SETTLE: Duration = Duration::from_millis(300);
