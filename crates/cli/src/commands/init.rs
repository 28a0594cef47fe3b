//! `init`: a commented configuration, keys, the state folder. Never overwrites.

use std::path::Path;

use lychgate_keys::ApproverKey;
use lychgate_policy::{InitRoot, Pins, template};
use lychgate_server::StateFolder;
use serde_json::json;

use super::Context;
use crate::args::Init;
use crate::configuration::{problems, root_name};
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::passphrase::Source;
use crate::places::{absolute, now, principal, shown, state_fault};
use crate::terminal::{Style, bold, styled, text};

/// Makes it all, or nothing.
pub(crate) fn run(args: &Init, context: &mut Context<'_>) -> Outcome {
    let (config, state) = (context.places.config.clone(), context.places.state.clone());
    if config.symlink_metadata().is_ok() {
        return Err(exists("configuration", &config).try_this("lychgate check"));
    }
    if std::fs::read_dir(&state).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(exists("state folder", &state).try_this("lychgate --state-dir DIR init"));
    }
    let text_of_it = template(&principal(), &roots(&args.root)?);
    let first = lychgate_policy::load(&text_of_it, &config, &Pins::new())
        .map_err(|found| problems(&context.places, &found))?;
    let passphrase = match args.no_approver {
        true => None,
        false => Some(ask(args, context)?),
    };
    let made = StateFolder::create(
        &state,
        passphrase.as_ref().map(|words| words.as_slice()),
        &first,
        now(),
    );
    made.map_err(state_fault)?;
    // The configuration comes last: an init that failed can simply be run again.
    if let Err(stop) = files::write(&config, text_of_it.as_bytes()) {
        // Fresh, and of no use without its configuration.
        let _ = std::fs::remove_dir_all(&state);
        return Err(stop);
    }
    if args.output.json {
        context.terminal.document(&json!({
            "config": config.to_string_lossy(), "state_dir": state.to_string_lossy(),
            "approver": passphrase.is_some(), "digest": first.digest().to_base64url(),
        }));
        return Ok(());
    }
    let terminal = &mut *context.terminal;
    for (label, path) in [("configuration", &config), ("state and keys", &state)] {
        terminal.line(&[
            styled(Style::Green, "✓ "),
            text(format!("{label:<15}")),
            text(shown(path)),
        ]);
    }
    if passphrase.is_none() {
        terminal.line(&[styled(
            Style::Yellow,
            "  no approver: what would ask is denied",
        )]);
    }
    terminal.gap();
    terminal.line(&[text(
        "Nothing can be called yet. Put a server behind the gate:",
    )]);
    terminal.line(&[bold(
        "  lychgate add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ~/src",
    )]);
    Ok(())
}

fn ask(args: &Init, context: &mut Context<'_>) -> Outcome<zeroize::Zeroizing<Vec<u8>>> {
    let source = Source::from(args.passphrase.passphrase_fd);
    if source == Source::Terminal {
        context.terminal.note(&[text(
            "The approver's passphrase protects the key that says yes: to calls that ask, and to",
        )]);
        context.terminal.note(&[text("configuration changes that widen. An agent that shares your account cannot do so without it.")]);
    }
    let least = ApproverKey::LEAST_CHARACTERS;
    let passphrase = source.ask_new(&format!("New passphrase (at least {least} characters): "))?;
    let characters = String::from_utf8_lossy(&passphrase).chars().count();
    if characters < least {
        return Err(Stop::usage(format!(
            "the passphrase must have at least {least} characters; nothing was made"
        )));
    }
    Ok(passphrase)
}

fn exists(what: &str, path: &Path) -> Stop {
    Stop::usage(format!(
        "the {what} `{}` exists already and is never overwritten",
        shown(path)
    ))
}

fn roots(given: &[String]) -> Outcome<Vec<InitRoot>> {
    let mut roots: Vec<InitRoot> = Vec::new();
    for text in given {
        let (path, recoverable) = split_root(text);
        let path = absolute(Path::new(path))?;
        let name = root_name(&path, |name| roots.iter().any(|root| root.name == name));
        roots.push(InitRoot {
            name,
            path: path.to_string_lossy().into_owned(),
            recoverable,
        });
    }
    Ok(roots)
}

/// `PATH[:recoverable]`.
pub(crate) fn split_root(text: &str) -> (&str, bool) {
    match text.strip_suffix(":recoverable") {
        Some(path) => (path, true),
        None => (text, false),
    }
}
