//! What a change of the `[telemetry]` table does.

use super::List;
use crate::diagnostics::quoted;
use crate::telemetry::Telemetry;

/// What changes. Whoever listens learns which tools run and when, so a new place widens; so does silence, because what
/// an operator no longer sees nobody looks into.
pub(super) fn changes(old: &Telemetry, new: &Telemetry, list: &mut List) {
    for (what, old, new) in [
        ("metrics endpoint", &old.prometheus, &new.prometheus),
        ("traces and metrics", &old.otlp, &new.otlp),
    ] {
        let shown = |place: &Option<String>| place.as_deref().map_or("none".to_owned(), quoted);
        if old != new {
            list.widens(format!("{what}: {} -> {}", shown(old), shown(new)));
        }
    }
    list.switch(
        "telemetry beyond_loopback",
        old.beyond_loopback,
        new.beyond_loopback,
        true,
    );
    if old.every() != new.every() {
        list.neutral("how often telemetry goes out changes".to_owned());
    }
}
