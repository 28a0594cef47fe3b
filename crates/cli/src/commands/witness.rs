//! `witness`: cosigns other people's records, in the foreground.

use std::io::Write as _;

use lychgate_core::display::escape;
use lychgate_server::witness::{WitnessFault, WitnessOptions, run as serve};
use serde_json::json;

use super::Context;
use crate::args::Witness;
use crate::outcome::{Outcome, Stop};
use crate::places::{absolute, shown};
use crate::terminal::{Style, dim, styled, text};

/// Runs until it is told to end.
pub(crate) fn run(args: &Witness, context: &mut Context<'_>) -> Outcome {
    let folder = match &args.dir {
        Some(dir) => absolute(dir)?,
        None => context.places.state.with_file_name("lychgate-witness"),
    };
    let options = WitnessOptions {
        folder: folder.clone(),
        listen: args.listen,
        name: args.name.clone(),
        logs: args.log.clone(),
        report,
    };
    let terminal = &mut *context.terminal;
    let ended = serve(&options, |address, key| {
        let url = format!("http://{address}/");
        let key = key.to_string();
        if args.output.json {
            terminal
                .json_line(&json!({ "url": url, "key": key, "folder": folder.to_string_lossy() }));
            return;
        }
        terminal.line(&[
            styled(Style::Green, "✓ "),
            text(format!("a witness listens on {url}; Ctrl-C ends it")),
        ]);
        let row = |label: &str| [dim(format!("{label:>10}")), text("  ")];
        terminal.wrapped(&row("its key"), &text(escape(&key)));
        for log in &args.log {
            terminal.wrapped(&row("witnesses"), &text(escape(log.name().as_str())));
        }
        terminal.wrapped(&row("memory"), &text(shown(&folder)));
        let _ = terminal.flush();
    });
    ended.map_err(|fault| match fault {
        WitnessFault::Io { what: "listen", .. } | WitnessFault::Key(_) => Stop::usage(fault),
        _ => Stop::fault(fault),
    })
}

/// From any thread, at once.
fn report(what: &str) {
    // There is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "lychgate: {}", escape(what));
}
