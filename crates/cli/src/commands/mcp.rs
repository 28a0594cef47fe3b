//! `mcp NAME`: what a client starts instead of the server. It relays, holds nothing and decides nothing (PROFILE §4).

use lychgate_core::display::escape;
use lychgate_server::RelayFault;

use super::{Context, delegate};
use crate::args::Mcp;
use crate::connection;
use crate::outcome::Outcome;

/// Relays until the client or the gate ends.
pub(crate) fn run(args: &Mcp, context: &mut Context<'_>) -> Outcome {
    if !lychgate_core::name::is_name(&args.name) {
        let message = format!("`{}` is no name of a server", escape(&args.name));
        return Err(crate::outcome::Stop::usage(message));
    }
    let delegation = args.delegation.as_deref().map(delegate::read).transpose()?;
    let client = connection::connect(context)?;
    let relayed =
        lychgate_server::relay_stdio(client, &args.name, delegation, args.purpose.as_deref());
    relayed.map_err(|fault| match fault {
        RelayFault::Client(fault) => connection::stop(fault),
        fault => connection::with_status(fault.status(), &fault),
    })
}
