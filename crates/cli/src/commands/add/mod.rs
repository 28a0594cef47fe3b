//! `add`: an MCP server comes behind the gate. Started once to list its tools, shown in one table, asked about once,
//! written and applied together or not at all.

mod clients;
mod launch;
mod table;

use lychgate_policy::edit::{self, NewServer};
use lychgate_policy::{Library, Proposed, propose};
use lychgate_sinks::mcp::{Inspected, Launch, inspect};
use serde_json::json;

use super::Context;
use super::apply::{self, Change};
use super::pin::write_and_apply;
use crate::args::Add;
use crate::configuration::{Written, pin_file, problems};
use crate::connection::Connection;
use crate::outcome::{Outcome, Stop};
use crate::passphrase::question;
use crate::places::shown;
use crate::terminal::{Style, bold, count, dim, styled, text};

use self::launch::Planned;

/// Adds.
pub(crate) fn run(args: &Add, context: &mut Context<'_>) -> Outcome {
    let before = Written::read(&context.places)?;
    let rules = before
        .compile(&context.places)
        .map_err(|found| problems(&context.places, &found))?;
    let planned = launch::plan(args, &before.text, &context.places)?;
    for warning in &planned.warnings {
        context
            .terminal
            .note(&[styled(Style::Yellow, format!("warning: {warning}"))]);
    }
    context.terminal.note(&[dim(format!(
        "starting `{}` once, with your rights, to list its tools",
        args.name
    ))]);
    let found = look_at(&planned.launch, context)?;
    let tools = proposed(args, &planned, &found)?;
    if !args.output.json {
        table::show(&args.name, &planned, &tools, &rules, context.terminal);
    }
    let after = after(args, &before, &planned, &found, &tools)?;
    after
        .compile(&context.places)
        .map_err(|found| problems(&context.places, &found))?;
    let mut connection = Connection::open(context)?;
    let plan = apply::plan(&mut connection, &after, context)?;
    let source = args.passphrase.passphrase_fd.into();
    if !args.accept_proposed {
        ask(context)?;
    }
    let change = Change {
        plan,
        source,
        always: false,
    };
    let applied = write_and_apply(
        change,
        &mut connection,
        (&before, &after),
        &args.name,
        context,
    )?;
    if args.output.json {
        let tools = tools.iter().map(|tool| {
            json!({
                "function": tool.function, "class": tool.class.name(), "reviewed": tool.reviewed, "note": tool.note,
                "definition": tool.definition.to_base64url(),
            })
        });
        context.terminal.document(&json!({
            "server": args.name, "tools": tools.collect::<Vec<_>>(), "policy_epoch": applied.epoch,
            "digest": applied.digest.to_base64url(),
        }));
        return Ok(());
    }
    apply::said(&applied, context.terminal);
    context.terminal.gap();
    clients::show(&args.name, context)
}

/// Starts a server and lists its tools. Those that cannot be pinned are named; they will be withheld.
pub(crate) fn look_at(launch: &Launch, context: &mut Context<'_>) -> Outcome<Inspected> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|fault| Stop::fault(format!("cannot start: {fault}")))?;
    let found = runtime.block_on(inspect(launch)).map_err(Stop::usage)?;
    for (name, why) in &found.unpinnable {
        let name = lychgate_core::display::escape_within(name, 80);
        let why = lychgate_core::display::escape_within(why, 200);
        context
            .terminal
            .note(&[styled(Style::Yellow, format!("withheld: `{name}`: {why}"))]);
    }
    Ok(found)
}

/// One entry for each tool: the library's, a guess, or the class that was named.
fn proposed(args: &Add, planned: &Planned, found: &Inspected) -> Outcome<Vec<Proposed>> {
    let launch = &planned.launch;
    let mut tools = propose(
        &args.name,
        &launch.command,
        &launch.env,
        &found.definitions,
        &Library::embedded(),
    );
    for (name, class) in &args.class {
        let known = || {
            tools
                .iter()
                .map(|tool| tool.function.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let Some(at) = tools.iter().position(|tool| tool.function == *name) else {
            let name = lychgate_core::display::escape(name);
            return Err(Stop::usage(format!(
                "--class: there is no tool `{name}`; there are: {}",
                known()
            )));
        };
        if let Some(tool) = tools.get_mut(at)
            && tool.class != *class
        {
            tool.class = *class;
            tool.reviewed = false;
            tool.note = "class chosen when it was added".to_owned();
        }
    }
    Ok(tools)
}

/// The configuration as it would be.
fn after(
    args: &Add,
    before: &Written,
    planned: &Planned,
    found: &Inspected,
    tools: &[Proposed],
) -> Outcome<Written> {
    let mut after = before.clone();
    for root in planned.roots.iter().filter(|root| root.new) {
        after.text = edit::with_root(
            &after.text,
            &root.root.name,
            &root.path_text(),
            root.root.recoverable,
        )
        .map_err(Stop::usage)?;
    }
    let launch = &planned.launch;
    let server = NewServer {
        name: args.name.clone(),
        command: launch.command.clone(),
        cwd: launch
            .cwd
            .as_ref()
            .map(|cwd| cwd.to_string_lossy().into_owned()),
        env: launch.env.clone(),
        pass_env: launch.pass_env.clone(),
        entry: found.entry,
        roots: planned
            .roots
            .iter()
            .map(|root| root.root.name.clone())
            .collect(),
        tools: tools.to_vec(),
    };
    after.text = edit::add_server(&after.text, &server).map_err(Stop::usage)?;
    after
        .pins
        .insert(args.name.clone(), pin_file(&args.name, &found.definitions));
    Ok(after)
}

fn ask(context: &mut Context<'_>) -> Outcome {
    let _ = context.terminal.flush();
    let answer = question("Right? [y/N, e to change something] ").map_err(|stop| {
        stop.try_this("the same with `--accept-proposed`, and `--class TOOL=CLASS` for what should be otherwise")
    })?;
    match answer.as_str() {
        "y" | "yes" => Ok(()),
        "e" | "edit" => {
            let config = shown(&context.places.config);
            context.terminal.note(&[text(
                "Nothing was written. To change a class, say so and run it again:",
            )]);
            context.terminal.note(&[bold("  --class TOOL=CLASS")]);
            context.terminal.note(&[text(format!(
                "Or say y, edit {config}, and run `lychgate apply`."
            ))]);
            Err(Stop::refused(""))
        }
        _ => Err(Stop::refused("nothing was written")),
    }
}

/// How many tools there are, in words.
fn tools_of(tools: &[Proposed]) -> String {
    count(tools.len(), "tool", "tools")
}
