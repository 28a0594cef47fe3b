//! Gemini: parts restart at 0 in every event, calls come whole. With an id, the id is the slot. Without one, what is no
//! resend of a slot opens a new one.

use lychgate_core::json::{Object, Value};

use super::arguments;
use super::block::{Act, Content, FUNCTION, ProviderCall};
use super::out::Out;
use super::partial::Partial;
use super::reason::Reason;
use super::take;

#[derive(Debug, Default)]
pub(super) struct Gemini {
    entries: Vec<Entry>,
    building: Option<Building>,
    /// Another candidate's call was refused already.
    other: bool,
    ended: bool,
}

#[derive(Debug)]
struct Entry {
    content: Content,
    /// The part as it came.
    part: Object,
    /// Text that further text of the same kind goes on.
    grows: bool,
}

/// A call whose arguments come in parts (Vertex).
#[derive(Debug)]
struct Building {
    /// Its place, held by a refusal until it is whole.
    at: usize,
    name: String,
    id: Option<String>,
    partial: Partial,
    refused: Option<Reason>,
}

impl Gemini {
    pub(super) fn event(&mut self, mut event: Object, out: &mut Out) -> Result<(), Reason> {
        if take::take(&mut event, "error").is_some() {
            return Err(Reason::ProviderError);
        }
        let known = |key| event.contains_key(key);
        if !["candidates", "usageMetadata", "promptFeedback"]
            .into_iter()
            .any(known)
        {
            return Err(Reason::EventUnknown);
        }
        if let Some(mut feedback) = take::object(&mut event, "promptFeedback")?
            && take::label(&mut feedback, "blockReason")?.is_some()
        {
            self.ended = true;
        }
        for candidate in take::array(&mut event, "candidates")? {
            let Value::Object(candidate) = candidate else {
                return Err(Reason::Shape);
            };
            self.candidate(candidate, out)?;
        }
        Ok(())
    }

    /// Everything leaves at the end: until then a call may turn out to have come twice.
    pub(super) fn close(&mut self, reason: Reason, out: &mut Out) {
        if let Some(building) = self.building.take() {
            self.set(
                building.at,
                Content::Refused(building.refused.unwrap_or(reason)),
            );
        }
        for entry in std::mem::take(&mut self.entries) {
            let content = match entry.content {
                Content::Text(_) => Content::Text(
                    take::peek(&entry.part, "text")
                        .unwrap_or_default()
                        .to_owned(),
                ),
                other => other,
            };
            out.push(content, Some(Value::Object(entry.part)));
        }
    }

    pub(super) const fn is_ended(&self) -> bool {
        self.ended
    }

    fn candidate(&mut self, mut candidate: Object, out: &mut Out) -> Result<(), Reason> {
        let mut content = take::object(&mut candidate, "content")?.unwrap_or_default();
        let parts = take::array(&mut content, "parts")?;
        let index = take::take(&mut candidate, "index");
        if index.is_some_and(|index| index.as_u64() != Some(0)) {
            let acts = |part: &Value| part.get("functionCall").is_some();
            if parts.iter().any(acts) && !std::mem::replace(&mut self.other, true) {
                self.push(Content::Refused(Reason::OtherCandidate), Object::new(), out)?;
            }
            return Ok(());
        }
        for part in parts {
            let Value::Object(part) = part else {
                return Err(Reason::Shape);
            };
            self.part(part, out)?;
        }
        match take::label(&mut candidate, "finishReason")?.as_deref() {
            None | Some("FINISH_REASON_UNSPECIFIED") => {}
            Some(reason) => {
                self.ended = true;
                if let Some(building) = &mut self.building {
                    building.refused.get_or_insert(Reason::CutShort);
                }
                if BROKEN_CALL.contains(&reason) {
                    self.push(Content::Refused(Reason::CutShort), Object::new(), out)?;
                }
            }
        }
        Ok(())
    }

    fn part(&mut self, part: Object, out: &mut Out) -> Result<(), Reason> {
        let payloads = PAYLOADS
            .into_iter()
            .filter(|key| part.get(key).is_some_and(|value| *value != Value::Null));
        let mut payloads = payloads.collect::<Vec<_>>();
        let payload = payloads.pop();
        if !payloads.is_empty() {
            return self.push(Content::Refused(Reason::SourcesDisagree), part, out);
        }
        match payload {
            Some("text") => self.text(part, out),
            Some("functionCall") => self.call(part, out),
            Some(form @ ("executableCode" | "toolCall")) => {
                let inner = part.get(form);
                let member = |key| inner.and_then(|inner| inner.get(key)?.as_str());
                let call = ProviderCall {
                    form: form.to_owned(),
                    name: member("toolType").map(str::to_owned),
                    provider_id: member("id").map(str::to_owned),
                };
                self.push(Content::ProviderExecuted(call), part, out)
            }
            Some(_) => self.push(Content::ProviderData, part, out),
            // A signature alone, or nothing.
            None if part.iter().all(|(key, _)| OPAQUE.contains(&key)) => {
                if part.is_empty() {
                    return Ok(());
                }
                self.push(Content::Reasoning, part, out)
            }
            None => self.push(Content::Refused(Reason::UnknownBlock), part, out),
        }
    }

    fn text(&mut self, part: Object, out: &mut Out) -> Result<(), Reason> {
        let Some(text) = part.get("text").and_then(Value::as_str) else {
            return Err(Reason::Shape);
        };
        let thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        // A signed part goes back as it came: it is never joined with another.
        let grows = !part.contains_key("thoughtSignature");
        if let Some(last) = self.entries.last_mut()
            && last.grows
            && grows
            && (last.part.get("thought") == part.get("thought"))
        {
            out.keep(text.len())?;
            take::append(&mut last.part, "text", text);
            return Ok(());
        }
        let content = if thought || (text.is_empty() && !grows) {
            Content::Reasoning
        } else {
            Content::Text(String::new())
        };
        self.push(content, part, out)?;
        if let Some(last) = self.entries.last_mut() {
            last.grows = grows;
        }
        Ok(())
    }

    fn call(&mut self, part: Object, out: &mut Out) -> Result<(), Reason> {
        let mut call = match part.get("functionCall") {
            Some(Value::Object(call)) => call.clone(),
            _ => return self.push(Content::Refused(Reason::Shape), part, out),
        };
        let name = take::label(&mut call, "name")?;
        let id = take::label(&mut call, "id")?;
        let args = take::take(&mut call, "args");
        let pieces = take::array(&mut call, "partialArgs")?;
        let goes_on = take::truth(&mut call, "willContinue")?;
        let is_piece = name.is_none() && args.is_none();
        if let Some(building) = &mut self.building
            && is_piece
            && (id.is_none() || id == building.id)
        {
            building.take(pieces, out)?;
            if !goes_on {
                self.built(out);
            }
            return Ok(());
        }
        if let Some(broken) = self.building.take() {
            // Another call begins before this one was whole.
            self.set(broken.at, Content::Refused(Reason::Unsealed));
        }
        if pieces.is_empty() && !goes_on {
            return self.whole(name.as_deref(), id, args, part, out);
        }
        let empty = |args: &Value| args.as_object().is_some_and(Object::is_empty);
        let refused = match (&name, args.as_ref()) {
            (None, _) => Some(Reason::NameMissing),
            (_, Some(args)) if !empty(args) => Some(Reason::SourcesDisagree),
            _ => None,
        };
        self.push(Content::Refused(Reason::Unsealed), part, out)?;
        let mut building = Building {
            at: self.entries.len().saturating_sub(1),
            name: name.unwrap_or_default(),
            id,
            partial: Partial::default(),
            refused,
        };
        building.take(pieces, out)?;
        self.building = Some(building);
        if !goes_on {
            self.built(out);
        }
        Ok(())
    }

    fn whole(
        &mut self,
        name: Option<&str>,
        id: Option<String>,
        args: Option<Value>,
        part: Object,
        out: &mut Out,
    ) -> Result<(), Reason> {
        let act = arguments::from_value(args)
            .and_then(|args| Act::seal(FUNCTION, name, &args, id, out.limits()));
        match act {
            Err(reason) => self.push(Content::Refused(reason), part, out),
            Ok(act) => match self.known(&act) {
                Known::New => self.push(Content::Act(act), part, out),
                Known::Resent => Ok(()),
                Known::Contradicted => {
                    self.push(Content::Refused(Reason::SourcesDisagree), part, out)
                }
            },
        }
    }

    /// The call in parts is whole.
    fn built(&mut self, out: &Out) {
        let Some(building) = self.building.take() else {
            return;
        };
        let Building {
            at,
            name,
            id,
            partial,
            refused,
        } = building;
        let sealed = refused
            .map_or_else(|| partial.seal(), Err)
            .and_then(|args| {
                Act::seal(FUNCTION, Some(&name), &args, id, out.limits()).map(|act| (act, args))
            });
        match sealed {
            Err(reason) => self.set(at, Content::Refused(reason)),
            Ok((act, args)) => {
                let content = match self.known(&act) {
                    Known::New => Content::Act(act),
                    Known::Resent | Known::Contradicted => {
                        Content::Refused(Reason::SourcesDisagree)
                    }
                };
                self.set(at, content);
                self.replay(at, &name, args);
            }
        }
    }

    /// The part as the call goes back: whole.
    fn replay(&mut self, at: usize, name: &str, args: Value) {
        let Some(entry) = self.entries.get_mut(at) else {
            return;
        };
        if let Some(Value::Object(call)) = entry.part.get_mut("functionCall") {
            call.remove("partialArgs");
            call.remove("willContinue");
            call.insert("name".to_owned(), Value::from(name));
            call.insert("args".to_owned(), args);
        }
    }

    /// Whether a call came before. A twin without an id on either side marks the slot: it counts once.
    fn known(&mut self, act: &Act) -> Known {
        for entry in &mut self.entries {
            let Content::Act(held) = &mut entry.content else {
                continue;
            };
            let equal = held.name == act.name && held.digest == act.digest;
            match (&held.provider_id, &act.provider_id) {
                (Some(held), Some(id)) if held != id => {}
                (Some(_), Some(_)) if equal => return Known::Resent,
                (Some(_), Some(_)) => return Known::Contradicted,
                _ if equal => {
                    held.ambiguous = true;
                    return Known::Resent;
                }
                _ => {}
            }
        }
        Known::New
    }

    fn set(&mut self, at: usize, content: Content) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.content = content;
        }
    }

    fn push(&mut self, content: Content, part: Object, out: &mut Out) -> Result<(), Reason> {
        out.begin()?;
        let text = part.get("text").and_then(Value::as_str);
        out.keep(text.map_or(PART, str::len))?;
        self.entries.push(Entry {
            content,
            part,
            grows: false,
        });
        Ok(())
    }
}

enum Known {
    New,
    Resent,
    Contradicted,
}

impl Building {
    fn take(&mut self, pieces: Vec<Value>, out: &mut Out) -> Result<(), Reason> {
        for piece in pieces {
            out.keep(PART)?;
            let added = match piece {
                Value::Object(piece) => self.partial.add(piece),
                _ => Err(Reason::Shape),
            };
            if let Err(reason) = added {
                self.refused.get_or_insert(reason);
            }
        }
        Ok(())
    }
}

/// What a part can be; at most one of them.
const PAYLOADS: [&str; 9] = [
    "text",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "inlineData",
    "fileData",
    "toolCall",
    "toolResponse",
];

/// Members that say nothing by themselves.
const OPAQUE: [&str; 4] = [
    "thought",
    "thoughtSignature",
    "partMetadata",
    "mediaResolution",
];

/// Ends that speak of a call which is not among the parts.
const BROKEN_CALL: [&str; 3] = [
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
];

/// What a part without text counts for at least against the message's bound.
const PART: usize = 256;
