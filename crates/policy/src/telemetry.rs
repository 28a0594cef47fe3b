//! What the gate tells of itself, and to whom: the `[telemetry]` table. Nothing by default, and nobody outside this
//! machine unless the configuration says so (PROFILE §10).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::diagnostics::{Problem, quoted};

/// Where metrics and traces go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prometheus: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) otlp: Option<String>,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) every: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) beyond_loopback: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Telemetry {
    /// Where the metrics endpoint listens; `None` when there is none.
    #[must_use]
    pub fn prometheus(&self) -> Option<SocketAddr> {
        self.prometheus.as_deref()?.parse().ok()
    }

    /// The collector that OTLP goes to, over plain HTTP; `None` when there is none. Always an address, never a name:
    /// nobody's resolver decides where it goes.
    #[must_use]
    pub fn otlp(&self) -> Option<SocketAddr> {
        collector(self.otlp.as_deref()?)
    }

    /// How often OTLP goes out, in milliseconds.
    #[must_use]
    pub fn every(&self) -> u64 {
        self.every.unwrap_or(EVERY)
    }
}

fn collector(url: &str) -> Option<SocketAddr> {
    let rest = url.strip_prefix("http://")?;
    rest.strip_suffix('/').unwrap_or(rest).parse().ok()
}

/// Every problem of meaning.
pub(crate) fn check(telemetry: &Telemetry, found: &mut Vec<Problem>) {
    if let Some(text) = &telemetry.prometheus {
        let place = Place {
            key: "prometheus",
            text,
            usual: PROMETHEUS,
            scheme: "",
        };
        let address = text.parse::<SocketAddr>().ok();
        place.check(address, telemetry.beyond_loopback, found);
    }
    if let Some(text) = &telemetry.otlp {
        let place = Place {
            key: "otlp",
            text,
            usual: OTLP,
            scheme: "http://",
        };
        place.check(collector(text), telemetry.beyond_loopback, found);
    }
    if !(LEAST_EVERY..=MOST_EVERY).contains(&telemetry.every()) {
        let message = format!("`every` must be from {LEAST_EVERY} ms to {MOST_EVERY} ms");
        found.push(Problem::new(&["telemetry", "every"], message));
    }
}

/// An address as it was written.
struct Place<'a> {
    key: &'a str,
    text: &'a str,
    /// The port such things listen on.
    usual: u16,
    scheme: &'a str,
}

impl Place<'_> {
    fn check(&self, address: Option<SocketAddr>, anywhere: bool, found: &mut Vec<Problem>) {
        let path = ["telemetry", self.key];
        let shown = quoted(self.text);
        let Some(address) = address else {
            let wanted = if self.scheme.is_empty() {
                "an address and a port"
            } else {
                "`http://`, an address and a port, without a path: names are not looked up and `https` is not spoken, so run a collector nearby"
            };
            let message = format!("`{}` must be {wanted}, not {shown}", self.key);
            found.push(Problem::new(&path, message).suggesting(Some(self.near())));
            return;
        };
        if address.port() == 0 {
            let message = format!("{shown} has no port that anybody could find");
            found.push(Problem::new(&path, message).suggesting(Some(self.near())));
        } else if !address.ip().is_loopback() && !anywhere {
            let message = format!(
                "{shown} is not on this machine alone: write `beyond_loopback = true` as well when it is to be so"
            );
            found.push(Problem::new(&path, message).suggesting(Some(self.near())));
        }
    }

    /// The same port on this machine, when there is a port in the text.
    fn near(&self) -> String {
        let digits = self
            .text
            .trim_end_matches(|c: char| !c.is_ascii_digit())
            .rsplit(|c: char| !c.is_ascii_digit())
            .next();
        let written =
            self.text.contains(':') || self.text.bytes().all(|byte| byte.is_ascii_digit());
        let port = digits
            .filter(|_| written)
            .and_then(|digits| digits.parse::<u16>().ok())
            .filter(|port| *port >= 80)
            .unwrap_or(self.usual);
        format!("{}127.0.0.1:{port}", self.scheme)
    }
}

const EVERY: u64 = 10_000;
const LEAST_EVERY: u64 = 200;
const MOST_EVERY: u64 = 600_000;
/// The ports that are usual.
const PROMETHEUS: u16 = 9464;
const OTLP: u16 = 4318;
