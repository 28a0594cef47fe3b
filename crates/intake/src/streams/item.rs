//! The other blocks that act, by the provider's own word for them: what the harness executes, what the provider does.

use lychgate_core::json::{Object, Value};

use super::take;

/// What a kind of OpenAI output item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// `function_call`
    Function,
    /// Executed by the harness; with the form, the name when the item has none, and the members that act.
    Harness(&'static str, &'static str, &'static [&'static str]),
    /// Executed by the provider.
    Provider,
    /// `message`
    Message,
    /// `reasoning`
    Reasoning,
    /// The provider's own data: results and listings.
    Data,
    /// Not known here.
    Unknown,
}

impl ItemKind {
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            "function_call" => Self::Function,
            "custom_tool_call" => Self::Harness("custom_tool_call", "", &["input"]),
            "computer_call" => Self::Harness("computer_call", "computer", &["action", "actions"]),
            "local_shell_call" => Self::Harness("local_shell_call", "local_shell", &["action"]),
            "shell_call" => Self::Harness("shell_call", "shell", &["action"]),
            "apply_patch_call" => Self::Harness("apply_patch_call", "apply_patch", &["operation"]),
            "mcp_call"
            | "mcp_approval_request"
            | "web_search_call"
            | "file_search_call"
            | "code_interpreter_call"
            | "image_generation_call"
            | "tool_search_call" => Self::Provider,
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "mcp_list_tools"
            | "compaction"
            | "shell_call_output"
            | "apply_patch_call_output"
            | "tool_search_output" => Self::Data,
            _ => Self::Unknown,
        }
    }
}

/// The members of an item that act, as one object: what is digested and judged. They come as they were emitted.
pub(super) fn acting(item: &Object, members: &[&str]) -> Value {
    let mut acting = Object::new();
    for member in members {
        if let Some(value) = item.get(member).filter(|value| **value != Value::Null) {
            acting.insert((*member).to_owned(), value.clone());
        }
    }
    Value::Object(acting)
}

/// Everything a message item says in words: its text, and its refusal.
pub(super) fn words(item: &Object) -> String {
    let mut all = String::new();
    let parts = item.get("content").and_then(Value::as_array);
    for part in parts.unwrap_or_default() {
        let Value::Object(part) = part else { continue };
        let text = take::peek(part, "text").or_else(|| take::peek(part, "refusal"));
        all.push_str(text.unwrap_or_default());
    }
    all
}
