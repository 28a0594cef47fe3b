//! Bedrock ConverseStream: blocks by `contentBlockIndex`, sealed by `contentBlockStop`; without any index, in the order
//! they come.

use lychgate_core::json::{Object, Value};

use super::Limits;
use super::block::{Act, Content, FUNCTION, ProviderCall};
use super::indexed::{Draft, Indexed};
use super::out::Out;
use super::reason::Reason;
use super::take;

#[derive(Debug)]
pub(super) struct Bedrock {
    blocks: Indexed,
    /// The slot that a piece without an index belongs to.
    current: Option<u64>,
    started: bool,
    ended: bool,
}

impl Default for Bedrock {
    fn default() -> Self {
        Self {
            blocks: Indexed::new(seal),
            current: None,
            started: false,
            ended: false,
        }
    }
}

impl Bedrock {
    /// `kind` is the frame's event type; empty for an event on a line, whose only member names it.
    pub(super) fn event(&mut self, kind: &str, event: Object, out: &mut Out) -> Result<(), Reason> {
        if !kind.is_empty() {
            return self.inner(kind, event, out);
        }
        let mut named = None;
        for (key, value) in event {
            if value != Value::Null && named.replace((key, value)).is_some() {
                return Err(Reason::EventUnknown);
            }
        }
        match named {
            Some((kind, Value::Object(inner))) => self.inner(&kind, inner, out),
            _ => Err(Reason::EventUnknown),
        }
    }

    pub(super) fn close(&mut self, reason: Reason, out: &mut Out) {
        self.blocks.close(reason, out);
    }

    pub(super) const fn is_ended(&self) -> bool {
        self.ended
    }

    fn inner(&mut self, kind: &str, mut event: Object, out: &mut Out) -> Result<(), Reason> {
        if kind.ends_with("Exception") {
            return Err(Reason::ProviderError);
        }
        if self.ended && kind != "metadata" {
            return Err(Reason::AfterEnd);
        }
        match kind {
            "metadata" => Ok(()),
            "messageStart" if !std::mem::replace(&mut self.started, true) => Ok(()),
            "contentBlockStart" => {
                let index = place(&event)?.unwrap_or_else(|| self.blocks.next_index());
                let start = take::object(&mut event, "start")?.unwrap_or_default();
                self.current = Some(index);
                self.blocks.start(Some(index), begun(start, out)?, out)
            }
            "contentBlockDelta" => {
                let delta = take::object(&mut event, "delta")?.ok_or(Reason::Shape)?;
                let named = place(&event)?;
                self.delta(named, delta, out)
            }
            "contentBlockStop" => {
                let named = place(&event)?;
                let index = self.resolve(named);
                if index.is_some() && index == self.current {
                    self.current = None;
                }
                self.blocks.stop(index, out)
            }
            "messageStop" => {
                let reason = take::label(&mut event, "stopReason")?;
                let whole = matches!(
                    reason.as_deref(),
                    None | Some("end_turn" | "tool_use" | "stop_sequence")
                );
                self.blocks
                    .settle((!whole).then_some(Reason::CutShort), out);
                self.ended = true;
                self.blocks.end(out);
                Ok(())
            }
            _ => Err(Reason::EventUnknown),
        }
    }

    /// Which slot an event without a start belongs to: the one it names, or the current one while no other is open.
    fn resolve(&self, named: Option<u64>) -> Option<u64> {
        named.or_else(|| self.current.filter(|_| self.blocks.open() <= 1))
    }

    fn delta(&mut self, named: Option<u64>, delta: Object, out: &mut Out) -> Result<(), Reason> {
        let mut index = self.resolve(named);
        // A text block may come without a start.
        let startless = !delta.contains_key("toolUse") && !delta.contains_key("toolResult");
        if startless && index.is_none() && self.blocks.open() == 0 {
            index = Some(self.blocks.next_index());
        }
        if let Some(place) = index {
            if startless && !self.blocks.is_used(place) {
                self.blocks.start(index, Draft::default(), out)?;
            }
            self.current = index;
        }
        match self.blocks.draft(index, out)? {
            Some(draft) => apply(draft, delta, out),
            None => Ok(()),
        }
    }
}

/// The event's place. Absent and null are no place; anything but a whole number is no event.
fn place(event: &Object) -> Result<Option<u64>, Reason> {
    match event.get("contentBlockIndex") {
        None | Some(Value::Null) => Ok(None),
        Some(index) => index.as_u64().map(Some).ok_or(Reason::Shape),
    }
}

/// What a start brings: nothing for text, the tool for a call.
fn begun(mut start: Object, out: &mut Out) -> Result<Draft, Reason> {
    let mut draft = Draft::default();
    if let Some(mut tool) = take::object(&mut start, "toolUse")? {
        draft.acts = take::peek(&tool, "type").is_none();
        match take::take(&mut tool, "input") {
            None => {}
            Some(Value::Object(input)) if input.is_empty() => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(input @ Value::Object(_)) => draft.given = Some(input),
            Some(_) => draft.refuse(Reason::ArgumentsNotObject),
        }
        if !out.is_new_id(take::peek(&tool, "toolUseId").unwrap_or_default()) {
            draft.refuse(Reason::IdRepeated);
        }
        draft
            .block
            .insert("toolUse".to_owned(), Value::Object(tool));
    }
    for (key, value) in start {
        if value != Value::Null {
            draft.block.insert(key, value);
        }
    }
    Ok(draft)
}

/// Adds a piece to its block: text, a tool's input, reasoning with its signature, or what is opaque.
fn apply(draft: &mut Draft, delta: Object, out: &mut Out) -> Result<(), Reason> {
    for (member, piece) in delta {
        let fits = draft.block.is_empty() || draft.block.contains_key(&member);
        match (member.as_str(), piece) {
            (_, Value::Null) => {}
            ("citation", citation) => {
                out.keep(64)?;
                let mut all = take::array(&mut draft.block, "citations")?;
                all.push(citation);
                draft
                    .block
                    .insert("citations".to_owned(), Value::Array(all));
            }
            _ if !fits => draft.refuse(Reason::KindChanged),
            ("text", Value::String(text)) => {
                out.keep(text.len())?;
                take::append(&mut draft.block, "text", &text);
            }
            ("toolUse", Value::Object(mut tool)) => match take::take(&mut tool, "input") {
                None => {}
                Some(Value::String(text)) => {
                    out.keep(text.len())?;
                    if draft.json.len().saturating_add(text.len()) > out.limits().arguments_bytes {
                        draft.refuse(Reason::ArgumentsTooLarge);
                    } else {
                        draft.json.push_str(&text);
                    }
                }
                Some(_) => draft.refuse(Reason::ArgumentsNotText),
            },
            ("reasoningContent", Value::Object(reasoning)) => {
                let mut all =
                    take::object(&mut draft.block, "reasoningContent")?.unwrap_or_default();
                for (key, value) in reasoning {
                    let Value::String(text) = value else {
                        continue;
                    };
                    out.keep(text.len())?;
                    take::append(&mut all, &key, &text);
                }
                draft
                    .block
                    .insert("reasoningContent".to_owned(), Value::Object(all));
            }
            ("toolResult" | "image", data) => {
                out.keep(64)?;
                draft.block.insert(member, data);
            }
            _ => draft.refuse(Reason::UnknownBlock),
        }
    }
    Ok(())
}

fn seal(mut draft: Draft, limits: &Limits) -> (Content, Option<Value>) {
    if draft.block.contains_key("toolUse") {
        return tool(draft, limits);
    }
    let reasoning = take::object(&mut draft.block, "reasoningContent");
    let content = match reasoning {
        Ok(Some(parts)) => {
            // Streamed as members side by side, replayed as one text with its signature.
            let inner = if parts.contains_key("redactedContent") {
                parts
            } else {
                Object::from_members(vec![("reasoningText".to_owned(), Value::Object(parts))])
                    .unwrap_or_default()
            };
            draft
                .block
                .insert("reasoningContent".to_owned(), Value::Object(inner));
            Content::Reasoning
        }
        _ if draft.block.contains_key("text") || draft.block.is_empty() => {
            let text = take::peek(&draft.block, "text").unwrap_or_default();
            Content::Text(text.to_owned())
        }
        _ if draft.block.contains_key("toolResult") || draft.block.contains_key("image") => {
            Content::ProviderData
        }
        _ => Content::Refused(Reason::UnknownBlock),
    };
    (content, Some(Value::Object(draft.block)))
}

fn tool(mut draft: Draft, limits: &Limits) -> (Content, Option<Value>) {
    let input = draft.arguments(limits);
    let mut tool = match draft.block.remove("toolUse") {
        Some(Value::Object(tool)) => tool,
        _ => Object::new(),
    };
    let name = take::peek(&tool, "name");
    let id = take::peek(&tool, "toolUseId").map(str::to_owned);
    let content = if draft.acts {
        let act = input
            .clone()
            .and_then(|input| Act::seal(FUNCTION, name, &input, id, limits));
        act.map_or_else(Content::Refused, Content::Act)
    } else {
        Content::ProviderExecuted(ProviderCall {
            form: take::peek(&tool, "type").unwrap_or_default().to_owned(),
            name: name.map(str::to_owned),
            provider_id: id,
        })
    };
    let Ok(input) = input else {
        return (content, None);
    };
    tool.insert("input".to_owned(), input);
    draft
        .block
        .insert("toolUse".to_owned(), Value::Object(tool));
    (content, Some(Value::Object(draft.block)))
}
