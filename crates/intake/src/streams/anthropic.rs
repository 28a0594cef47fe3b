//! Anthropic Messages: blocks by `index`, sealed by `content_block_stop`.

use lychgate_core::json::{Object, Value};

use super::Limits;
use super::block::{Act, Content, FUNCTION, ProviderCall};
use super::indexed::{Draft, Indexed};
use super::out::Out;
use super::reason::Reason;
use super::take;

#[derive(Debug)]
pub(super) struct Anthropic {
    blocks: Indexed,
    started: bool,
    ended: bool,
}

impl Default for Anthropic {
    fn default() -> Self {
        Self {
            blocks: Indexed::new(seal),
            started: false,
            ended: false,
        }
    }
}

impl Anthropic {
    pub(super) fn event(
        &mut self,
        name: &str,
        mut event: Object,
        out: &mut Out,
    ) -> Result<(), Reason> {
        let kind = take::kind(&mut event, name)?;
        match kind.as_str() {
            "ping" => return Ok(()),
            "error" => return Err(Reason::ProviderError),
            _ if self.ended => return Err(Reason::AfterEnd),
            _ => {}
        }
        match kind.as_str() {
            "message_start" if !std::mem::replace(&mut self.started, true) => Ok(()),
            "content_block_start" => {
                let index = take::index(&mut event, "index");
                let block = take::object(&mut event, "content_block")?.ok_or(Reason::Shape)?;
                self.start(index, block, out)
            }
            "content_block_delta" => {
                let index = take::index(&mut event, "index");
                let delta = take::object(&mut event, "delta")?.ok_or(Reason::Shape)?;
                match self.blocks.draft(index, out)? {
                    Some(draft) => apply(draft, delta, out),
                    None => Ok(()),
                }
            }
            "content_block_stop" => self.blocks.stop(take::index(&mut event, "index"), out),
            "message_delta" => {
                let mut delta = take::object(&mut event, "delta")?.unwrap_or_default();
                if let Some(reason) = take::label(&mut delta, "stop_reason")? {
                    let whole = matches!(
                        reason.as_str(),
                        "end_turn" | "tool_use" | "stop_sequence" | "pause_turn"
                    );
                    self.blocks
                        .settle((!whole).then_some(Reason::CutShort), out);
                }
                Ok(())
            }
            "message_stop" => {
                self.ended = true;
                self.blocks.end(out);
                Ok(())
            }
            _ => Err(Reason::EventUnknown),
        }
    }

    pub(super) fn close(&mut self, reason: Reason, out: &mut Out) {
        self.blocks.close(reason, out);
    }

    pub(super) const fn is_ended(&self) -> bool {
        self.ended
    }

    fn start(
        &mut self,
        index: Option<u64>,
        mut block: Object,
        out: &mut Out,
    ) -> Result<(), Reason> {
        let kind = take::peek(&block, "type").unwrap_or_default().to_owned();
        let mut draft = Draft::default();
        if matches!(
            kind.as_str(),
            "tool_use" | "server_tool_use" | "mcp_tool_use"
        ) {
            draft.acts = kind == "tool_use";
            match take::take(&mut block, "input") {
                None => {}
                Some(Value::Object(input)) if input.is_empty() => {}
                Some(input @ Value::Object(_)) => draft.given = Some(input),
                Some(_) => draft.refuse(Reason::ArgumentsNotObject),
            }
            if !out.is_new_id(take::peek(&block, "id").unwrap_or_default()) {
                draft.refuse(Reason::IdRepeated);
            }
        }
        draft.block = block;
        self.blocks.start(index, draft, out)
    }
}

/// Adds a piece to its block.
fn apply(draft: &mut Draft, mut delta: Object, out: &mut Out) -> Result<(), Reason> {
    let piece = take::text(&mut delta, "type")?.unwrap_or_default();
    let (member, fits): (&str, &[&str]) = match piece.as_str() {
        "text_delta" => ("text", &["text"]),
        "thinking_delta" => ("thinking", &["thinking"]),
        "signature_delta" => ("signature", &["thinking"]),
        "input_json_delta" => (
            "partial_json",
            &["tool_use", "server_tool_use", "mcp_tool_use"],
        ),
        "citations_delta" => ("citation", &["text"]),
        "compaction_delta" => ("content", &["compaction"]),
        _ => ("", &[]),
    };
    let kind = take::peek(&draft.block, "type").unwrap_or_default();
    if !fits.contains(&kind) {
        draft.refuse(Reason::KindChanged);
        return Ok(());
    }
    match (take::take(&mut delta, member), member) {
        (None, _) => {}
        (Some(Value::String(text)), "partial_json") => {
            out.keep(text.len())?;
            if draft.json.len().saturating_add(text.len()) > out.limits().arguments_bytes {
                draft.refuse(Reason::ArgumentsTooLarge);
            } else {
                draft.json.push_str(&text);
            }
        }
        (Some(_), "partial_json") => draft.refuse(Reason::ArgumentsNotText),
        (Some(citation), "citation") => {
            out.keep(CITATION)?;
            let mut all = take::array(&mut draft.block, "citations")?;
            all.push(citation);
            draft
                .block
                .insert("citations".to_owned(), Value::Array(all));
        }
        (Some(Value::String(text)), _) => {
            out.keep(text.len())?;
            take::append(&mut draft.block, member, &text);
        }
        (Some(_), _) => draft.refuse(Reason::Shape),
    }
    Ok(())
}

fn seal(mut draft: Draft, limits: &Limits) -> (Content, Option<Value>) {
    let kind = take::peek(&draft.block, "type")
        .unwrap_or_default()
        .to_owned();
    let content = match kind.as_str() {
        "text" => Content::Text(
            take::peek(&draft.block, "text")
                .unwrap_or_default()
                .to_owned(),
        ),
        "thinking" | "redacted_thinking" => Content::Reasoning,
        "tool_use" => {
            let act = draft.arguments(limits).and_then(|input| {
                let id = take::peek(&draft.block, "id").map(str::to_owned);
                let act = Act::seal(
                    FUNCTION,
                    take::peek(&draft.block, "name"),
                    &input,
                    id,
                    limits,
                )?;
                draft.block.insert("input".to_owned(), input);
                Ok(act)
            });
            act.map_or_else(Content::Refused, Content::Act)
        }
        "server_tool_use" | "mcp_tool_use" => {
            let call = ProviderCall {
                form: kind,
                name: take::peek(&draft.block, "name").map(str::to_owned),
                provider_id: take::peek(&draft.block, "id").map(str::to_owned),
            };
            // It was executed whatever it said; without its input it cannot be told to the provider again.
            let Ok(input) = draft.arguments(limits) else {
                return (Content::ProviderExecuted(call), None);
            };
            draft.block.insert("input".to_owned(), input);
            Content::ProviderExecuted(call)
        }
        "container_upload" | "compaction" => Content::ProviderData,
        _ if kind.ends_with("_tool_result") => Content::ProviderData,
        _ => Content::Refused(Reason::UnknownBlock),
    };
    (content, Some(Value::Object(draft.block)))
}

/// What a citation counts for at least against the message's bound.
const CITATION: usize = 64;
