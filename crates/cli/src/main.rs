//! Lychgate: this exact act, once, or not at all.
//!
//! The one binary. Thin: flags in [`args`], a file per command in [`commands`], everything a person reads through
//! [`terminal`]. What a command decides is decided elsewhere: by the gate it talks to, or by the crates below.

mod approver;
mod args;
mod bench;
mod commands;
mod configuration;
mod connection;
mod files;
mod outcome;
mod passphrase;
mod places;
mod terminal;
mod told;
mod tour;

use std::process::ExitCode;

/// Deciding on an act makes some hundred small objects and drops them: a twentieth of its cost under the system's
/// allocator (measured in `bench`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut terminal = terminal::Terminal::standard();
    let asked = match args::read(std::env::args_os()) {
        Ok(asked) => asked,
        Err(told) => return told.tell(&mut terminal),
    };
    let ended = commands::run(asked, &mut terminal);
    outcome::exit_code(ended, &mut terminal)
}
