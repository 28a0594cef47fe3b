//! `completions` and `man`: made from the one definition of the flags.

use clap::CommandFactory as _;

use crate::args::{Cli, Completions, Man};
use crate::outcome::{Outcome, Stop};
use crate::places::{absolute, shown};
use crate::terminal::{Terminal, text};

/// Prints a completion script.
pub(crate) fn completions(args: &Completions, terminal: &mut Terminal) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lychgate", &mut script);
    terminal.bytes(&script);
    Ok(())
}

/// Prints the manual page, or writes all of them.
pub(crate) fn man(args: &Man, terminal: &mut Terminal) -> Outcome {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(Stop::fault)?;
        terminal.bytes(&page);
        return Ok(());
    };
    let dir = absolute(dir)?;
    let unwritable = |fault: std::io::Error| {
        Stop::usage(format!("cannot write into `{}`: {fault}", shown(&dir)))
    };
    std::fs::create_dir_all(&dir).map_err(unwritable)?;
    clap_mangen::generate_to(Cli::command(), &dir).map_err(unwritable)?;
    terminal.line(&[text(format!("Manual pages are in {}", shown(&dir)))]);
    Ok(())
}
