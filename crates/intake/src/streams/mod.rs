//! What a provider streamed becomes exactly the acts that the model emitted, or none.
//!
//! A [`Normaliser`] takes a raw stream's bytes, in chunks of any size, and gives sealed [`Block`]s in the provider's
//! order. It never repairs: ambiguous identity, arguments that are not strict JSON, a block without its seal, two
//! accounts of one block that differ, each becomes [`Content::Refused`] with a constant [`Reason`]. `docs/STREAMS.md`
//! says what every malformation becomes.
//!
//! - [`sse`]: server-sent events; `frames`: Bedrock's binary frames; `objects`: bare JSON objects
//! - `anthropic`, `bedrock` over `indexed`: blocks by index, sealed by their stop
//! - `chat`, `responses`, `gemini` (and `partial`, Vertex's partial arguments): blocks sealed with the message or whole

mod anthropic;
mod arguments;
mod bedrock;
mod block;
mod chat;
mod frames;
pub(crate) mod fuzz;
mod gemini;
mod indexed;
mod item;
mod objects;
mod out;
mod partial;
mod reason;
mod responses;
pub mod sse;
mod take;

use std::str::FromStr;

use lychgate_core::json::{self, CaseRule, Value, parse};

pub use self::block::{Act, Block, Content, ProviderCall};
use self::out::Out;
pub use self::reason::Reason;

/// Whose stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Anthropic Messages, server-sent events.
    Anthropic,
    /// OpenAI Chat Completions and its many kin, server-sent events.
    OpenaiChat,
    /// OpenAI Responses, server-sent events.
    OpenaiResponses,
    /// Gemini `streamGenerateContent`, server-sent events or JSON objects; Vertex too.
    Gemini,
    /// Bedrock ConverseStream, binary frames or a JSON event a line.
    Bedrock,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Gemini,
        Self::Bedrock,
    ];

    /// The name on the command line and in a stored transcript.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }
}

/// No provider has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("provider must be `anthropic`, `openai-chat`, `openai-responses`, `gemini` or `bedrock`")]
pub struct UnknownProvider;

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        Self::ALL
            .into_iter()
            .find(|provider| provider.name() == name)
            .ok_or(UnknownProvider)
    }
}

/// What a stream may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One event, in bytes.
    pub event_bytes: usize,
    /// The arguments of one call, in bytes, as they came and in canonical form.
    pub arguments_bytes: usize,
    /// The content of all blocks together, in bytes.
    pub message_bytes: usize,
    /// Blocks, refused ones counted.
    pub blocks: usize,
    /// What to do about keys of arguments that differ only in case, where arguments come as text. Inside an event's
    /// own JSON they are refused always.
    pub case: CaseRule,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            event_bytes: 8 << 20,
            arguments_bytes: 1 << 20,
            message_bytes: 32 << 20,
            blocks: 1024,
            case: CaseRule::Refuse,
        }
    }
}

/// One message's stream on its way to blocks. As an iterator it gives the blocks that are sealed so far; after `None`,
/// push more and go on.
#[derive(Debug)]
pub struct Normaliser {
    framing: Framing,
    shape: Shape,
    out: Out,
    limits: Limits,
    fault: Option<Reason>,
    finished: bool,
}

#[derive(Debug)]
enum Framing {
    /// Nothing but white space yet: the first byte decides between these.
    Unknown(Provider),
    Sse(sse::Sse),
    Objects(objects::Objects),
    Frames(frames::Frames),
}

#[derive(Debug)]
enum Shape {
    Anthropic(anthropic::Anthropic),
    Chat(chat::Chat),
    Responses(responses::Responses),
    Gemini(gemini::Gemini),
    Bedrock(bedrock::Bedrock),
}

impl Normaliser {
    /// One for a message's stream.
    #[must_use]
    pub fn new(provider: Provider, limits: Limits) -> Self {
        let (framing, shape) = match provider {
            Provider::Anthropic => (None, Shape::Anthropic(anthropic::Anthropic::default())),
            Provider::OpenaiChat => (None, Shape::Chat(chat::Chat::default())),
            Provider::OpenaiResponses => (None, Shape::Responses(responses::Responses::default())),
            Provider::Gemini => (Some(provider), Shape::Gemini(gemini::Gemini::default())),
            Provider::Bedrock => (Some(provider), Shape::Bedrock(bedrock::Bedrock::default())),
        };
        Self {
            framing: framing.map_or_else(
                || Framing::Sse(sse::Sse::new(limits.event_bytes)),
                Framing::Unknown,
            ),
            shape,
            out: Out::new(limits),
            limits,
            fault: None,
            finished: false,
        }
    }

    /// Takes the next chunk. Drain the blocks before pushing again. After a fault nothing more is read.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.fault.is_some() || self.finished {
            return;
        }
        let rest = self.framed(chunk);
        let Self {
            framing,
            shape,
            out,
            limits,
            ..
        } = self;
        let done = match framing {
            Framing::Unknown(_) => Ok(()),
            Framing::Sse(sse) => sse.push(rest, &mut |event| shape.sse(event, out, limits)),
            Framing::Objects(objects) => objects.push(rest, &mut |text| {
                shape.event("", event_value(text, limits)?, out)
            }),
            Framing::Frames(frames) => frames.push(rest, &mut |frame| {
                if frame.message != "event" {
                    return Err(Reason::ProviderError);
                }
                shape.event(frame.kind, event_value(frame.payload, limits)?, out)
            }),
        };
        if let Err(fault) = done {
            self.fault = Some(fault);
            self.close(fault);
        }
    }

    /// The stream has ended: what has no seal is refused.
    pub fn finish(&mut self) {
        if !self.finished && self.fault.is_none() {
            self.close(Reason::Unsealed);
        }
        self.finished = true;
    }

    /// Why the rest of the stream could not be read, when that is so.
    #[must_use]
    pub const fn fault(&self) -> Option<Reason> {
        self.fault
    }

    /// Whether the provider ended the message itself, and nothing hangs on behind it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let inside = match &self.framing {
            Framing::Unknown(_) => true,
            Framing::Sse(sse) => sse.is_inside(),
            Framing::Objects(objects) => objects.is_inside(),
            Framing::Frames(frames) => frames.is_inside(),
        };
        let ended = match &self.shape {
            Shape::Anthropic(shape) => shape.is_ended(),
            Shape::Chat(shape) => shape.is_ended(),
            Shape::Responses(shape) => shape.is_ended(),
            Shape::Gemini(shape) => shape.is_ended(),
            Shape::Bedrock(shape) => shape.is_ended(),
        };
        ended && !inside && self.fault.is_none()
    }

    /// Chooses the framing by the first byte that is no white space, and gives what is to be framed.
    fn framed<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let Framing::Unknown(provider) = self.framing else {
            return chunk;
        };
        let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let start = chunk.iter().position(|byte| !space(byte));
        let rest = chunk
            .get(start.unwrap_or(chunk.len())..)
            .unwrap_or_default();
        let most = self.limits.event_bytes;
        match (rest.first(), provider) {
            (None, _) => {}
            (Some(b'{' | b'['), Provider::Gemini) | (Some(b'{'), _) => {
                self.framing = Framing::Objects(objects::Objects::new(most));
            }
            (_, Provider::Bedrock) => self.framing = Framing::Frames(frames::Frames::new(most)),
            _ => self.framing = Framing::Sse(sse::Sse::new(most)),
        }
        rest
    }

    /// No event comes any more. A fault that no open block accounts for is a refusal of its own.
    fn close(&mut self, reason: Reason) {
        let before = self.out.refusals();
        let out = &mut self.out;
        match &mut self.shape {
            Shape::Anthropic(shape) => shape.close(reason, out),
            Shape::Chat(shape) => shape.close(reason, out),
            Shape::Responses(shape) => shape.close(reason, out),
            Shape::Gemini(shape) => shape.close(reason, out),
            Shape::Bedrock(shape) => shape.close(reason, out),
        }
        if reason != Reason::Unsealed && self.out.refusals() == before {
            self.out.refuse(reason);
        }
    }
}

impl Iterator for Normaliser {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        self.out.next()
    }
}

impl Shape {
    fn sse(&mut self, event: sse::Event<'_>, out: &mut Out, limits: &Limits) -> Result<(), Reason> {
        if event.data == b"[DONE]" {
            return match self {
                Self::Chat(chat) => chat.done(),
                _ => Err(Reason::EventUnknown),
            };
        }
        self.event(event.name, event_value(event.data, limits)?, out)
    }

    fn event(&mut self, name: &str, event: Value, out: &mut Out) -> Result<(), Reason> {
        let Value::Object(event) = event else {
            return Err(Reason::Shape);
        };
        match self {
            Self::Anthropic(shape) => shape.event(name, event, out),
            Self::Chat(shape) => shape.event(name, event, out),
            Self::Responses(shape) => shape.event(name, event, out),
            Self::Gemini(shape) => shape.event(event, out),
            Self::Bedrock(shape) => shape.event(name, event, out),
        }
    }
}

/// An event's text, strictly (PROFILE §3).
fn event_value(text: &[u8], limits: &Limits) -> Result<Value, Reason> {
    let limits = json::Limits {
        max_bytes: limits.event_bytes,
        max_depth: EVENT_DEPTH,
        case: CaseRule::Refuse,
    };
    parse(text, &limits).map_err(|fault| Reason::of_event(fault.kind))
}

/// Arguments 64 deep, inside what an event puts round them.
const EVENT_DEPTH: usize = 64 + 16;
