//! What to put where, so that clients go through the gate; and what still goes round it.

use crate::commands::Context;
use crate::outcome::{Outcome, Stop};
use crate::places::shown;
use crate::terminal::{Style, bold, dim, styled, text};

/// Shows it.
pub(crate) fn show(server: &str, context: &mut Context<'_>) -> Outcome {
    let program = std::env::current_exe()
        .map_err(|fault| Stop::fault(format!("cannot tell which program this is: {fault}")))?;
    let program = program.to_string_lossy().into_owned();
    let mut arguments = vec!["mcp".to_owned(), server.to_owned()];
    // A client starts us in its own environment: what was named here must be named there.
    let usual = crate::places::Places::find(None, None).ok();
    if usual.as_ref().is_none_or(|usual| *usual != context.places) {
        for (flag, path) in [
            ("--config", &context.places.config),
            ("--state-dir", &context.places.state),
        ] {
            arguments.push(flag.to_owned());
            arguments.push(path.to_string_lossy().into_owned());
        }
    }
    let terminal = &mut *context.terminal;
    terminal.line(&[bold("In your client, instead of the server")]);
    for (client, place, lines) in entries(server, &program, &arguments) {
        terminal.gap();
        terminal.line(&[
            styled(Style::Bold, format!("  {client}")),
            dim(format!("  {place}")),
        ]);
        for line in lines {
            terminal.line(&[text(format!("    {line}"))]);
        }
    }
    terminal.gap();
    terminal.line(&[
        styled(Style::Yellow, "Not gated: "),
        text("your client's own tools (its shell, editor, browser), and every server it"),
    ]);
    terminal.line(&[text(
        "still starts by itself. Take those out of its configuration, or add them here too.",
    )]);
    let config = shown(&context.places.config);
    context.terminal.line(&[dim(format!(
        "The entries are in {config}; after an edit: lychgate apply"
    ))]);
    Ok(())
}

/// What each client calls itself, where its entry goes, and the entry.
fn entries(
    server: &str,
    program: &str,
    arguments: &[String],
) -> [(&'static str, &'static str, Vec<String>); 4] {
    let words = arguments
        .iter()
        .map(|word| shell(word))
        .collect::<Vec<_>>()
        .join(" ");
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let list_of = |quote: &dyn Fn(&str) -> String| {
        arguments
            .iter()
            .map(|word| quote(word))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (command, args) = (quoted(program), list_of(&quoted));
    let entry = |head: &str, more: &str| {
        vec![
            format!("{{ \"{head}\": {{ {}: {{", quoted(server)),
            format!("    {more}\"command\": {command},"),
            format!("    \"args\": [{args}]"),
            "} } }".to_owned(),
        ]
    };
    [
        (
            "Claude Code",
            "in a shell",
            vec![format!(
                "claude mcp add {server} -- {} {words}",
                shell(program)
            )],
        ),
        ("Cursor", "~/.cursor/mcp.json", entry("mcpServers", "")),
        (
            "VS Code",
            ".vscode/mcp.json",
            entry("servers", "\"type\": \"stdio\", "),
        ),
        (
            "Codex",
            "~/.codex/config.toml",
            vec![
                format!("[mcp_servers.{server}]"),
                format!("command = {}", toml(program)),
                format!("args = [{}]", list_of(&toml)),
            ],
        ),
    ]
}

fn shell(word: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '=' | ':' | '@' | '+')
    };
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn toml(word: &str) -> String {
    toml_edit::Value::from(word).to_string()
}
