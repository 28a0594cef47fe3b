//! Traces and measures as OTLP messages (opentelemetry-proto 1.x), with the GenAI semantic conventions where they exist.
//!
//! An attribute's value is one of the kinds of [`Said`]; there is none for arguments, results or a tool's text.

use lychgate_core::id::ActId;
use lychgate_core::{Digest, State, Timestamp};
use lychgate_gate::observe::{ActTrace, Step};

use super::measures::{Distribution, Family, Labels, Samples};
use super::protobuf::Message;

/// Who tells.
pub(super) struct Resource {
    /// The running gate.
    pub(super) gate: lychgate_core::id::GateId,
}

/// What an attribute may say.
enum Said<'a> {
    /// A constant word.
    Word(&'static str),
    /// An id of ours.
    Id(String),
    /// A name of the applied configuration.
    Name(&'a str),
}

/// An `ExportTraceServiceRequest`.
pub(super) fn traces(resource: &Resource, acts: &[ActTrace]) -> Vec<u8> {
    let scope = scope();
    let spans = acts.iter().flat_map(spans);
    let scoped = Message::default().message(1, &scope).messages(2, spans);
    resource_of(resource, scoped)
}

/// An `ExportMetricsServiceRequest`; cumulative since `since`.
pub(super) fn metrics(
    resource: &Resource,
    families: &[Family],
    since: Timestamp,
    now: Timestamp,
) -> Vec<u8> {
    let span = (nanos(since), nanos(now));
    let metrics = families.iter().map(|family| metric(family, span));
    let scoped = Message::default().message(1, &scope()).messages(2, metrics);
    resource_of(resource, scoped)
}

fn resource_of(resource: &Resource, scoped: Message) -> Vec<u8> {
    let attributes = [
        attribute("service.name", &Said::Word("lychgate")),
        attribute("service.version", &Said::Word(env!("CARGO_PKG_VERSION"))),
        attribute("service.instance.id", &Said::Id(resource.gate.to_string())),
    ];
    let described = Message::default().messages(1, attributes);
    let one = Message::default()
        .message(1, &described)
        .message(2, &scoped);
    Message::default().message(1, &one).into_bytes()
}

fn scope() -> Message {
    Message::default()
        .text(1, "lychgate")
        .text(2, env!("CARGO_PKG_VERSION"))
}

/// The span of an act and one below it for each step it took.
fn spans(act: &ActTrace) -> Vec<Message> {
    let start = nanos(act.started_at);
    let steps = Step::ALL
        .into_iter()
        .filter_map(|step| act.step(step).map(|stretch| (step, stretch)));
    let end = steps.clone().map(|(_, stretch)| stretch.to).max();
    let span = |name: &str, from: u64, to: u64| {
        Message::default()
            .bytes(1, act.act.as_bytes())
            .text(5, name)
            .varint(6, INTERNAL)
            .fixed(7, start.saturating_add(from))
            .fixed(8, start.saturating_add(to))
    };
    let name = match &act.function {
        Some(function) => format!("execute_tool {function}"),
        None => "execute_tool".to_owned(),
    };
    let whole = span(&name, 0, end.unwrap_or(0))
        .bytes(2, &span_id(act.act, None))
        .messages(9, attributes(act))
        .message(15, &Message::default().varint(3, status(act.state)));
    let parts = steps.map(|(step, stretch)| {
        span(step.name(), stretch.from, stretch.to)
            .bytes(2, &span_id(act.act, Some(step)))
            .bytes(4, &span_id(act.act, None))
    });
    std::iter::once(whole).chain(parts).collect()
}

fn attributes(act: &ActTrace) -> Vec<Message> {
    let mut said = vec![
        ("gen_ai.operation.name", Said::Word("execute_tool")),
        ("gen_ai.tool.type", Said::Word("extension")),
        ("gen_ai.tool.call.id", Said::Id(act.act.to_string())),
        ("gen_ai.agent.id", Said::Name(&act.agent)),
        ("mcp.method.name", Said::Word(act.method)),
        ("lychgate.act.id", Said::Id(act.act.to_string())),
        ("lychgate.server", Said::Name(&act.server)),
        ("lychgate.consequence_class", Said::Word(act.class.name())),
        ("lychgate.state", Said::Word(act.state.name())),
    ];
    if let Some(function) = &act.function {
        said.push(("gen_ai.tool.name", Said::Name(function)));
    }
    if let Some(answer) = act.answer {
        said.push(("lychgate.verdict", Said::Word(answer.name())));
    }
    if let Some(code) = act.code {
        said.push(("lychgate.code", Said::Word(code.number())));
        said.push(("error.type", Said::Word(code.name())));
    }
    if let Some(ticket) = act.ticket {
        said.push(("lychgate.ticket.id", Said::Id(ticket.to_string())));
    }
    said.iter()
        .map(|(key, said)| attribute(key, said))
        .collect()
}

fn attribute(key: &str, said: &Said<'_>) -> Message {
    let text = match said {
        Said::Word(word) => word,
        Said::Id(id) => id.as_str(),
        Said::Name(name) => name,
    };
    let value = Message::default().bytes(1, text.as_bytes());
    Message::default().text(1, key).message(2, &value)
}

const fn status(state: State) -> u64 {
    match state {
        State::Effected | State::InputRequired | State::ReconciledEffect => OK,
        State::Allowed | State::Escalated | State::Dispatched => UNSET,
        State::Refused
        | State::Expired
        | State::Withdrawn
        | State::Failed
        | State::Indeterminate
        | State::ReconciledNoEffect => ERROR,
    }
}

/// Eight bytes that follow from the act and the step, so that every span of an act finds the others.
fn span_id(act: ActId, step: Option<Step>) -> [u8; 8] {
    let mut text = act.as_bytes().to_vec();
    text.extend_from_slice(step.map_or("act", Step::name).as_bytes());
    let digest = Digest::sha256(&text);
    let mut id = [0; 8];
    for (into, from) in id.iter_mut().zip(digest.bytes()) {
        *into = *from;
    }
    id
}

fn metric(family: &Family, span: (u64, u64)) -> Message {
    let name = family.name.replacen('_', ".", 1);
    let metric = Message::default()
        .text(1, &name)
        .text(2, family.help)
        .text(3, if family.seconds { "s" } else { "1" });
    match &family.samples {
        Samples::Gauge(all) => {
            let points = all
                .iter()
                .map(|(labels, value)| point(labels, span).double(4, *value));
            metric.message(5, &Message::default().messages(1, points))
        }
        Samples::Counter(all) => {
            let points = all
                .iter()
                .map(|(labels, value)| point(labels, span).fixed(6, *value));
            let sum = Message::default()
                .messages(1, points)
                .varint(2, CUMULATIVE)
                .varint(3, 1);
            metric.message(7, &sum)
        }
        Samples::Histogram(all) => {
            let points = all
                .iter()
                .map(|(labels, value)| distribution(labels, value, span));
            let histogram = Message::default().messages(1, points).varint(2, CUMULATIVE);
            metric.message(9, &histogram)
        }
    }
}

/// A `NumberDataPoint` without its value.
fn point(labels: &Labels, (since, now): (u64, u64)) -> Message {
    Message::default()
        .fixed(2, since)
        .fixed(3, now)
        .messages(7, labelled(labels))
}

fn distribution(labels: &Labels, value: &Distribution, (since, now): (u64, u64)) -> Message {
    // The last bucket's bound is infinite and not said.
    let bounds = value.buckets.iter().map(|(bound, _)| *bound);
    let bounds = bounds.filter(|bound| bound.is_finite()).map(f64::to_bits);
    Message::default()
        .fixed(2, since)
        .fixed(3, now)
        .fixed(4, value.count)
        .double(5, value.sum)
        .packed(6, value.buckets.iter().map(|(_, count)| *count))
        .packed(7, bounds)
        .messages(9, labelled(labels))
}

fn labelled(labels: &Labels) -> impl Iterator<Item = Message> {
    labels
        .iter()
        .map(|(key, value)| attribute(key, &Said::Word(value)))
}

fn nanos(at: Timestamp) -> u64 {
    at.as_millis().saturating_mul(1_000_000)
}

const INTERNAL: u64 = 1;
const UNSET: u64 = 0;
const OK: u64 = 1;
const ERROR: u64 = 2;
const CUMULATIVE: u64 = 2;
