//! Methods fall in three kinds, by exact name: what is known and has no effect passes, what acts is held, anything else
//! is refused unless the catalogue lists it (MCP "A gate for both eras").

use std::fmt;

/// What a client's request is, by its method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// Free of effects and known: goes through.
    Passes,
    /// An act: held until it is decided.
    Acts(ActingMethod),
    /// Unknown, or spelled otherwise than the specification does.
    Refused,
}

/// A method that acts. Exhaustive; `resources/read` and `prompts/get` are here because their arguments can disclose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ActingMethod {
    /// `tools/call`
    ToolsCall,
    /// `resources/read`
    ResourcesRead,
    /// `prompts/get`
    PromptsGet,
    /// `tasks/update`
    TasksUpdate,
    /// `tasks/cancel`: receipted, never escalated
    TasksCancel,
    /// A method the catalogue lists for this server; never one of the known ones.
    Listed(String),
}

impl ActingMethod {
    /// The method's name on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::ToolsCall => "tools/call",
            Self::ResourcesRead => "resources/read",
            Self::PromptsGet => "prompts/get",
            Self::TasksUpdate => "tasks/update",
            Self::TasksCancel => "tasks/cancel",
            Self::Listed(name) => name,
        }
    }

    /// The acting method of exactly this name; a listed method is never found here.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "tools/call" => Self::ToolsCall,
            "resources/read" => Self::ResourcesRead,
            "prompts/get" => Self::PromptsGet,
            "tasks/update" => Self::TasksUpdate,
            "tasks/cancel" => Self::TasksCancel,
            _ => return None,
        })
    }

    /// Whether a denial is told as a tool result rather than as an error (PROFILE §6).
    #[must_use]
    pub const fn answers_with_tool_result(&self) -> bool {
        matches!(self, Self::ToolsCall)
    }
}

impl fmt::Display for ActingMethod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.name().escape_debug(), out)
    }
}

/// The kind of a client's request method.
#[must_use]
pub fn kind(method: &str) -> MethodKind {
    match ActingMethod::from_name(method) {
        Some(acting) => MethodKind::Acts(acting),
        None if PASSING.contains(&method) => MethodKind::Passes,
        None => MethodKind::Refused,
    }
}

/// What a server's request or notification is, by its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromServerKind {
    /// Request `sampling/createMessage`: refused unless the configuration allows it.
    Sampling,
    /// Request `elicitation/create`: passes and is noted.
    Elicitation,
    /// Request `roots/list`: answered by the gate from the declared roots, never by the client (PROFILE §4).
    Roots,
    /// Request `ping`: answered by the gate.
    Ping,
    /// A known notification: goes to the client.
    Passes,
    /// A list of what the server offers has changed: goes to the client; pinned definitions are looked at again.
    ListChanged,
    /// A request that is not known is refused, a notification dropped.
    Unknown,
}

/// The kind of a server's request (`request` is true) or notification.
#[must_use]
pub fn from_server_kind(method: &str, request: bool) -> FromServerKind {
    match (method, request) {
        ("sampling/createMessage", true) => FromServerKind::Sampling,
        ("elicitation/create", true) => FromServerKind::Elicitation,
        ("roots/list", true) => FromServerKind::Roots,
        ("ping", true) => FromServerKind::Ping,
        (
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed",
            false,
        ) => FromServerKind::ListChanged,
        (
            "notifications/progress"
            | "notifications/cancelled"
            | "notifications/message"
            | "notifications/resources/updated"
            | "notifications/elicitation/complete"
            | "notifications/tasks/status"
            | "notifications/tasks"
            | "notifications/subscriptions/acknowledged",
            false,
        ) => FromServerKind::Passes,
        _ => FromServerKind::Unknown,
    }
}

/// Client requests that are known and free of effects.
const PASSING: [&str; 15] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "subscriptions/listen",
    "tasks/get",
    "tasks/list",
    "tasks/result",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_a_method_spelled_unusually_is_refused() {
        let odd = [
            "Tools/Call",
            "tools/Call",
            "tools/call ",
            " tools/call",
            "tools//call",
            "tools.call",
            "tools/call\u{0}",
            "tools∕call",
            "tools/саll",
            "",
            "tools",
            "tool/call",
            "rpc.tools/call",
            "tools/list ",
            "PING",
        ];
        for method in odd {
            assert_eq!(kind(method), MethodKind::Refused, "{method:?}");
        }
    }

    #[test]
    fn no_acting_method_passes() {
        for method in PASSING {
            assert_eq!(ActingMethod::from_name(method), None, "{method}");
            assert_eq!(kind(method), MethodKind::Passes);
        }
        assert_eq!(
            kind("tools/call"),
            MethodKind::Acts(ActingMethod::ToolsCall)
        );
    }

    #[test]
    fn a_servers_notification_name_is_no_request_and_the_reverse() {
        assert_eq!(
            from_server_kind("roots/list", false),
            FromServerKind::Unknown
        );
        assert_eq!(
            from_server_kind("notifications/message", true),
            FromServerKind::Unknown
        );
        assert_eq!(
            from_server_kind("tools/call", true),
            FromServerKind::Unknown
        );
    }
}
