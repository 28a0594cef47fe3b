//! `bench`: what [`crate::bench`] measures, printed.

use crate::args::Bench;
use crate::bench::{Options, run as measure};
use crate::outcome::{Outcome, Stop};
use crate::places::absolute;
use crate::terminal::{Terminal, dim, text};

/// Measures and prints.
pub(crate) fn run(args: &Bench, terminal: &mut Terminal) -> Outcome {
    let parent = match &args.dir {
        Some(dir) => absolute(dir)?,
        None => std::env::temp_dir(),
    };
    let mut options = Options::new(parent);
    if args.long {
        options = options.long();
    }
    options.single = args.single.unwrap_or(options.single).max(10);
    options.acts = args.acts.unwrap_or(options.acts);
    options.seconds = args.seconds.unwrap_or(options.seconds);
    options.rows = args.rows.unwrap_or(options.rows);
    let cell = std::cell::RefCell::new(terminal);
    let say = |what: &str| cell.borrow_mut().note(&[dim(format!("measuring: {what}"))]);
    let report = measure(&options, &say).map_err(|fault| Stop::fault(fault.0))?;
    let terminal = cell.into_inner();
    if args.output.json {
        let bytes = lychgate_core::jcs::to_bytes(&report.to_json());
        terminal.document(&serde_json::from_slice(&bytes).map_err(Stop::fault)?);
    } else {
        for line in report.to_string().lines() {
            terminal.line(&[text(line)]);
        }
    }
    Ok(())
}
