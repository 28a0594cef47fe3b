//! One file per command; each is a few lines over the crates below.

mod acts;
mod add;
mod apply;
mod approvers;
mod bench;
mod canon;
mod check;
mod consent;
mod decide;
mod delegate;
mod envelopes;
mod epochs;
mod gate;
mod generated;
mod init;
mod keys;
mod ledger;
mod mcp;
mod pending;
mod pin;
mod reconcile;
mod report;
mod revoke;
mod ticket;
mod verify;
mod witness;

use crate::args::{Cli, Command, DelegateVerb};
use crate::outcome::{Outcome, Stop};
use crate::places::{Places, absolute};
use crate::terminal::Terminal;

/// What every command works with.
pub(crate) struct Context<'a> {
    /// Where things lie.
    pub(crate) places: Places,
    /// Whether a gate that does not run may be started.
    pub(crate) may_start: bool,
    /// Where to write.
    pub(crate) terminal: &'a mut Terminal,
}

/// Runs a command.
pub(crate) fn run(cli: Cli, terminal: &mut Terminal) -> Outcome {
    let common = &cli.common;
    match &cli.command {
        // These need no place of the user's.
        Command::Canon(_) => return canon::canon(terminal),
        Command::Digest(args) => return canon::digest(args, terminal),
        Command::Completions(args) => return generated::completions(args, terminal),
        Command::Man(args) => return generated::man(args, terminal),
        Command::Tour(args) => {
            let keep = common
                .state_dir
                .as_deref()
                .filter(|_| common.state_dir_is_a_flag);
            let keep = keep.map(absolute).transpose()?;
            return crate::tour::run(args, keep.as_deref(), terminal);
        }
        Command::TourServer(args) => return crate::tour::server::run(args).map_err(Stop::fault),
        Command::Bench(args) => return bench::run(args, terminal),
        Command::Verify(args) => return verify::run(args, terminal),
        Command::Delegate(args) => {
            if let Some(DelegateVerb::Verify(args)) = &args.verb {
                return delegate::verify(args, terminal);
            }
        }
        _ => {}
    }
    let places = Places::find(common.config.as_deref(), common.state_dir.as_deref())?;
    let context = &mut Context {
        places,
        may_start: !common.no_start,
        terminal,
    };
    match &cli.command {
        Command::Init(args) => init::run(args, context),
        Command::Add(args) => add::run(args, context),
        Command::Mcp(args) => mcp::run(args, context),
        Command::Pending(args) => pending::run(args, context),
        Command::Approve(args) => decide::approve(args, context),
        Command::Deny(args) => decide::deny(args, context),
        Command::Delegate(args) => delegate::run(args, context),
        Command::Envelopes(args) => envelopes::run(args, context),
        Command::Acts(args) => acts::run(args, context),
        Command::Reconcile(args) => reconcile::run(args, context),
        Command::Revoke(args) => revoke::run(args, context),
        Command::Consent(args) => consent::run(args, context),
        Command::Epochs(args) => epochs::run(args, context),
        Command::Apply(args) => apply::run(args, context),
        Command::Check(args) => check::run(*args, context),
        Command::Pin(args) => pin::run(args, context),
        Command::Gate(args) => gate::run(args, context),
        Command::Keys(args) => keys::run(args, context),
        Command::Ledger(args) => ledger::run(args, context),
        Command::Report(args) => report::run(args, context),
        Command::Witness(args) => witness::run(args, context),
        Command::Canon(_) | Command::Digest(_) | Command::Completions(_) | Command::Man(_) => {
            Ok(())
        }
        Command::Tour(_) | Command::TourServer(_) | Command::Bench(_) | Command::Verify(_) => {
            Ok(())
        }
    }
}
