//! The way to the gate: connecting, starting it on demand, and what its refusals are worth.

use std::ffi::OsString;

use lychgate_server::client::ClientFault;
use lychgate_server::protocol::{Class, Refusal, Response};
use lychgate_server::{Client, Request, Start};

use crate::commands::Context;
use crate::outcome::{Outcome, Stop};

/// A connection to the gate.
pub(crate) struct Connection(Client);

impl Connection {
    /// Connects; starts the gate where it does not run, unless that is forbidden.
    pub(crate) fn open(context: &Context<'_>) -> Outcome<Self> {
        connect(context).map(Self)
    }

    /// Connects only to a gate that runs.
    pub(crate) fn to_running(context: &Context<'_>) -> Result<Self, ClientFault> {
        lychgate_server::connect(&context.places.state, &Start::Never).map(Self)
    }

    /// Asks one thing.
    pub(crate) fn ask(&mut self, request: &Request) -> Outcome<Response> {
        self.0.ask(request).map_err(stop)
    }

    /// The next answer to a request that goes on.
    pub(crate) fn hear(&mut self) -> Outcome<Response> {
        self.0.hear().map_err(stop)
    }
}

/// The client itself, for the relay.
pub(crate) fn connect(context: &Context<'_>) -> Outcome<Client> {
    lychgate_server::connect(&context.places.state, &start(context)?).map_err(stop)
}

/// Takes the answer that was asked for out of a response.
macro_rules! answer {
    ($response:expr, $pattern:pat => $value:expr) => {
        match $response {
            $pattern => Ok($value),
            _ => Err($crate::outcome::Stop::fault(
                "the gate gave an answer to another question",
            )),
        }
    };
}
pub(crate) use answer;

fn start(context: &Context<'_>) -> Outcome<Start> {
    if !context.may_start {
        return Ok(Start::Never);
    }
    let program = std::env::current_exe()
        .map_err(|fault| Stop::fault(format!("cannot tell which program this is: {fault}")))?;
    let mut arguments = ["gate", "--background", "--config"]
        .map(OsString::from)
        .to_vec();
    arguments.push(context.places.config.clone().into_os_string());
    arguments.push("--state-dir".into());
    arguments.push(context.places.state.clone().into_os_string());
    Ok(Start::Background { program, arguments })
}

/// What a fault of the connection is worth.
pub(crate) fn stop(fault: ClientFault) -> Stop {
    let status = fault.status();
    match fault {
        ClientFault::Refused(refusal) => refused(&refusal),
        fault => with_status(status, &fault),
    }
}

/// A stop with one of the protocol's statuses.
pub(crate) fn with_status(status: u8, message: &dyn std::fmt::Display) -> Stop {
    match status {
        1 => Stop::refused(message),
        2 => Stop::usage(message),
        _ => Stop::fault(message),
    }
}

fn refused(refusal: &Refusal) -> Stop {
    match refusal.class {
        Class::Refused => Stop::refused(refusal),
        Class::Usage => Stop::usage(refusal),
        Class::Fault => Stop::fault(refusal),
    }
}
