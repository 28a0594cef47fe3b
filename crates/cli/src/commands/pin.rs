//! `pin`: a server's definitions changed; a person looks at the difference and pins what is there now (PROFILE §8).

use std::collections::BTreeMap;

use lychgate_core::json::{CaseRule, Limits, Object, Value, parse};
use lychgate_core::{display, jcs};
use lychgate_policy::{Definition, edit};
use lychgate_sinks::mcp::{Inspected, Launch, entry_file};

use super::Context;
use super::add::look_at;
use super::apply::{self, Change};
use crate::args::Pin;
use crate::configuration::{Written, entry_pin, has_entry, launch_of, pin_file, problems};
use crate::connection::Connection;
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::passphrase::question;
use crate::places::shown;
use crate::terminal::{Style, Terminal, bold, count, dim, styled, text};

/// Looks, asks, pins, applies.
pub(crate) fn run(args: &Pin, context: &mut Context<'_>) -> Outcome {
    let before = Written::read(&context.places)?;
    let pinned = pinned(&before, &args.name)?;
    let launch = launch_of(&before.text, &args.name)?;
    context.terminal.note(&[dim(format!(
        "starting `{}` once, with your rights, to list its tools",
        args.name
    ))]);
    let found = look_at(&launch, context)?;
    let differences = compare(&pinned, &found.definitions);
    let after = after(&before, &args.name, &found, &differences)?;
    if after == before {
        context
            .terminal
            .line(&[text("Nothing changed: the tools are the pinned ones.")]);
        return Ok(());
    }
    show_entry_file(&before, &after, &args.name, &launch, context)?;
    show(&before, &args.name, &differences, context.terminal)?;
    after
        .compile(&context.places)
        .map_err(|found| problems(&context.places, &found))?;
    let mut connection = Connection::open(context)?;
    let plan = apply::plan(&mut connection, &after, context)?;
    apply::show(&plan.changes, context.terminal);
    let _ = context.terminal.flush();
    if !args.yes
        && !matches!(
            question("Pin these definitions? [y/N] ")?.as_str(),
            "y" | "yes"
        )
    {
        return Err(Stop::refused("nothing was changed"));
    }
    let change = Change {
        plan,
        source: args.passphrase.passphrase_fd.into(),
        always: true,
    };
    let applied = write_and_apply(
        change,
        &mut connection,
        (&before, &after),
        &args.name,
        context,
    )?;
    apply::said(&applied, context.terminal);
    Ok(())
}

/// The files as they would be: every definition as it is now, and the file the command really runs.
fn after(
    before: &Written,
    server: &str,
    found: &Inspected,
    differences: &[Difference],
) -> Outcome<Written> {
    let mut after = before.clone();
    if !differences.is_empty() {
        let pins = pin_file(server, &found.definitions);
        after.pins.insert(server.to_owned(), pins);
    }
    for definition in &found.definitions {
        after.text = edit::set_pin(&after.text, server, &definition.name, &definition.digest)
            .map_err(Stop::usage)?;
    }
    for gone in differences
        .iter()
        .filter(|difference| difference.now.is_none())
    {
        after.text = edit::remove_tool(&after.text, server, &gone.name).map_err(Stop::usage)?;
    }
    let entry = found.entry.map(|digest| digest.to_base64url());
    if entry_pin(&after.text, server)? != entry {
        after.text =
            edit::with_entry_pin(&after.text, server, entry.as_deref()).map_err(Stop::usage)?;
    }
    Ok(after)
}

/// The server's program is part of its endpoint (PROFILE §8), so a new content is shown like a new definition.
fn show_entry_file(
    before: &Written,
    after: &Written,
    server: &str,
    launch: &Launch,
    context: &mut Context<'_>,
) -> Outcome {
    let (old, new) = (
        entry_pin(&before.text, server)?,
        entry_pin(&after.text, server)?,
    );
    if old == new {
        return Ok(());
    }
    let file =
        entry_file(&launch.command).map_or_else(|| "its file".to_owned(), |file| shown(&file));
    let word = |digest: &Option<String>| display::escape(digest.as_deref().unwrap_or("none"));
    let terminal = &mut *context.terminal;
    terminal.line(&[
        styled(Style::Yellow, "~ "),
        bold("the program itself"),
        text("  "),
        text(file),
    ]);
    terminal.line(&[styled(Style::Red, format!("    - {}", word(&old)))]);
    terminal.line(&[styled(Style::Green, format!("    + {}", word(&new)))]);
    terminal.gap();
    Ok(())
}

/// Writes configuration and pin file and applies them; if the gate does not take them, both are as they were.
pub(crate) fn write_and_apply(
    change: Change,
    connection: &mut Connection,
    (before, after): (&Written, &Written),
    server: &str,
    context: &mut Context<'_>,
) -> Outcome<apply::Applied> {
    let (config, pin) = (context.places.config.clone(), context.places.pin(server));
    let new_pin = after.pins.get(server).map(Vec::as_slice);
    let old_pin = before.pins.get(server).map(Vec::as_slice);
    let undo = || {
        let config = files::restore(&config, Some(before.text.as_bytes()));
        files::restore(&pin, old_pin).and(config)
    };
    // Somebody may have edited the file while the question stood there; their words are not overwritten.
    if Written::read(&context.places)? != *before {
        return Err(
            Stop::refused("the configuration was changed meanwhile; nothing was done")
                .try_this("the same again"),
        );
    }
    let write = || {
        let written = files::restore(&pin, new_pin)
            .and_then(|()| files::write(&config, after.text.as_bytes()));
        written.or_else(|stop| undo().and(Err(stop)))
    };
    let mut wrote = false;
    let applied = change.apply(connection, after, context, || {
        write().inspect(|()| wrote = true)
    });
    match applied {
        Err(stop) if wrote => undo().and(Err(stop)),
        other => other,
    }
}

/// A definition that is not as it was.
struct Difference {
    name: String,
    before: Option<Definition>,
    now: Option<Definition>,
}

fn compare(pinned: &[Definition], found: &[Definition]) -> Vec<Difference> {
    let mut all: BTreeMap<&str, (Option<&Definition>, Option<&Definition>)> = BTreeMap::new();
    for definition in pinned {
        all.entry(&definition.name).or_default().0 = Some(definition);
    }
    for definition in found {
        all.entry(&definition.name).or_default().1 = Some(definition);
    }
    let differing = all
        .into_iter()
        .filter(|(_, (before, now))| before.map(|one| one.digest) != now.map(|one| one.digest));
    differing
        .map(|(name, (before, now))| Difference {
            name: name.to_owned(),
            before: before.cloned(),
            now: now.cloned(),
        })
        .collect()
}

fn show(
    before: &Written,
    server: &str,
    differences: &[Difference],
    terminal: &mut Terminal,
) -> Outcome {
    if differences.is_empty() {
        return Ok(());
    }
    terminal.line(&[bold(count(
        differences.len(),
        "tool is not as it was pinned",
        "tools are not as they were pinned",
    ))]);
    terminal.gap();
    for difference in differences {
        match (&difference.before, &difference.now) {
            (Some(old), Some(now)) => {
                terminal.line(&[styled(Style::Yellow, "~ "), bold(&difference.name)]);
                members(&old.value, &now.value, "", terminal);
            }
            (None, Some(now)) => {
                let means = if has_entry(&before.text, server, &difference.name)? {
                    "  new; the configuration has an entry for it"
                } else {
                    "  new, without an entry: it asks every time"
                };
                terminal.line(&[
                    styled(Style::Green, "+ "),
                    bold(&difference.name),
                    dim(means),
                ]);
                members(&Value::Object(Object::new()), &now.value, "", terminal);
            }
            (_, None) => {
                terminal.line(&[
                    styled(Style::Red, "- "),
                    bold(&difference.name),
                    dim("  gone; its entry goes too"),
                ]);
            }
        }
        terminal.gap();
    }
    Ok(())
}

/// Every member that was added, removed or changed, by its JSON pointer.
fn members(before: &Value, now: &Value, pointer: &str, terminal: &mut Terminal) {
    if before == now {
        return;
    }
    if let (Value::Object(old), Value::Object(new)) = (before, now) {
        let keys = old
            .iter()
            .chain(new.iter())
            .map(|(key, _)| key)
            .collect::<std::collections::BTreeSet<_>>();
        for key in keys {
            let token = display::escape(&key.replace('~', "~0").replace('/', "~1"));
            let deeper = format!("{pointer}/{token}");
            match (old.get(key), new.get(key)) {
                (Some(old), Some(new)) => members(old, new, &deeper, terminal),
                (Some(old), None) => change(terminal, Style::Red, "-", &deeper, old),
                (None, Some(new)) => change(terminal, Style::Green, "+", &deeper, new),
                (None, None) => {}
            }
        }
        return;
    }
    change(terminal, Style::Red, "-", pointer, before);
    change(terminal, Style::Green, "+", pointer, now);
}

fn change(terminal: &mut Terminal, style: Style, sign: &str, pointer: &str, value: &Value) {
    let shown = match value {
        Value::String(text) => format!("\"{}\"", display::escape(text)),
        other => {
            display::escape(&String::from_utf8_lossy(&jcs::to_bytes(other))).replace("\\\\", "\\")
        }
    };
    let room = terminal.width().saturating_sub(8).max(20);
    terminal.line(&[styled(style, format!("    {sign} {pointer}"))]);
    let characters = shown.chars().collect::<Vec<_>>();
    for chunk in characters.chunks(room) {
        terminal.line(&[dim("      ┊ "), text(chunk.iter().collect::<String>())]);
    }
}

fn pinned(written: &Written, server: &str) -> Outcome<Vec<Definition>> {
    let Some(bytes) = written.pins.get(server) else {
        return Ok(Vec::new());
    };
    let limits = Limits {
        max_bytes: 32 << 20,
        max_depth: 70,
        case: CaseRule::Allow,
    };
    let file = parse(bytes, &limits)
        .map_err(|fault| Stop::usage(format!("pins of `{server}`: {fault}")))?;
    let tools = file
        .get("tools")
        .and_then(Value::as_array)
        .unwrap_or_default();
    // What cannot be read is as good as never pinned: it shows up as new.
    Ok(tools
        .iter()
        .filter_map(|tool| Definition::parse(tool.clone()).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tool(text: &str) -> Definition {
        let value = parse(text.as_bytes(), &Limits::OBJECT).unwrap();
        Definition::parse(value).unwrap()
    }

    #[test]
    fn a_difference_names_each_member_and_escapes_the_servers_words() {
        let pinned = [
            tool(r#"{"name":"read","description":"Reads","inputSchema":{"type":"object"}}"#),
            tool(r#"{"name":"gone"}"#),
            tool(r#"{"name":"same"}"#),
        ];
        let found = [
            tool(
                "{\"name\":\"read\",\"description\":\"Reads\u{202e} all\",\"inputSchema\":{\"type\":\"object\",\"a/b\":1}}",
            ),
            tool(r#"{"name":"new","title":"New"}"#),
            tool(r#"{"name":"same"}"#),
        ];
        let differences = compare(&pinned, &found);
        let before = Written {
            text: "[servers.fs.tools.gone]\n".to_owned(),
            pins: Default::default(),
        };
        let mut terminal = Terminal::captured(80);
        show(&before, "fs", &differences, &mut terminal).unwrap();
        let text = terminal.taken().0;
        for line in [
            "3 tools are not as they were pinned",
            "- gone  gone; its entry goes too",
            "+ new  new, without an entry: it asks every time",
            "    + /title\n      ┊ \"New\"",
            "~ read",
            "    - /description\n      ┊ \"Reads\"",
            "    + /description\n      ┊ \"Reads\\u{202e} all\"",
            "    + /inputSchema/a~1b\n      ┊ 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("same") && !text.contains('\u{202e}'));
    }
}
