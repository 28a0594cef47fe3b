//! The `[telemetry]` table.

use super::read::{Reader, Section};
use crate::telemetry::Telemetry;

pub(super) fn telemetry(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Telemetry {
    let keys = ["prometheus", "otlp", "every", "beyond_loopback"];
    let Some(section) = reader.table(top, "telemetry", &keys) else {
        return Telemetry::default();
    };
    Telemetry {
        prometheus: reader.text(&section, "prometheus"),
        otlp: reader.text(&section, "otlp"),
        every: section
            .has("every")
            .then(|| reader.duration(&section, "every"))
            .flatten(),
        beyond_loopback: reader.flag(&section, "beyond_loopback").unwrap_or(false),
    }
}
