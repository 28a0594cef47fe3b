//! `check`: what the gate would say of the configuration, without the gate.

use serde_json::json;

use super::Context;
use crate::args::Output;
use crate::configuration::{Written, problems};
use crate::outcome::{Outcome, Stop};
use crate::places::shown;
use crate::terminal::{Style, count, dim, styled, text};

/// Checks.
pub(crate) fn run(output: Output, context: &mut Context<'_>) -> Outcome {
    let written = Written::read(&context.places)?;
    let applied = match written.compile(&context.places) {
        Ok(applied) => applied,
        Err(found) if output.json => {
            let list = found.iter().map(|one| {
                json!({
                    "file": one.file.to_string_lossy(), "line": one.line, "column": one.column,
                    "message": one.message, "suggestion": one.suggestion,
                })
            });
            context
                .terminal
                .document(&json!({ "valid": false, "problems": list.collect::<Vec<_>>() }));
            return Err(Stop::usage(""));
        }
        Err(found) => return Err(problems(&context.places, &found)),
    };
    let tools = applied
        .servers()
        .map(|server| server.tools().len())
        .sum::<usize>();
    let servers = applied.servers().len();
    if output.json {
        context.terminal.document(&json!({
            "valid": true, "digest": applied.digest().to_base64url(), "profile": applied.profile().name(),
            "servers": servers, "tools": tools, "problems": [],
        }));
        return Ok(());
    }
    context.terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!("{} is sound: ", shown(&context.places.config))),
        text(format!(
            "profile {}, {}, {}",
            applied.profile().name(),
            count(servers, "server", "servers"),
            count(tools, "tool", "tools")
        )),
    ]);
    context
        .terminal
        .line(&[dim(format!("  digest {}", applied.digest().to_base64url()))]);
    Ok(())
}
