//! The flags of `report`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use lychgate_core::Timestamp;

use super::{AuditedRecord, Output};

/// `report`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lychgate report
  lychgate report --since 30d --html november.html
  lychgate report --dir ./record --trust trust.json --max-depth 2 --json

The record is audited first, as `lychgate ledger verify` does it; of one that does not verify
nothing else is said. Then the four tests of the draft (5.10): (1) every high-risk invoke consumed
an authority, (2) mismatches are denials, not ways round the sink, (3) nothing beyond the permitted
delegation depth is invoked, (4) no effect on a second path (not measured yet). Every act that
violates one is named, with its receipts' numbers.

TIME is 2026-11-30, 2026-11-30T12:00:00Z, or how long ago: 45m, 24h, 30d.
What --json prints, and what each violation means: docs/REPORT.md.
Exit status 1 when the record does not verify, an act violates a test, or acts were only advised.")]
pub(crate) struct Report {
    /// Count only what happened from then on
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<When>,
    /// Count only what happened up to then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<When>,
    /// The deepest delegation that is permitted [default: as the applied configuration says]
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<u32>,
    /// Write a page to be looked at, whole in one file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) record: AuditedRecord,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A moment that a person names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// This one.
    At(Timestamp),
    /// A day, from its first moment to its last (UTC).
    Day(Timestamp),
    /// So long ago.
    Ago(Duration),
}

impl When {
    /// The moment something begins at.
    pub(crate) fn begins(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) | Self::Day(at) => at,
            Self::Ago(span) => ago(now, span),
        }
    }

    /// The moment something ends at.
    pub(crate) fn ends(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Day(at) => at.after(A_DAY),
            Self::Ago(span) => ago(now, span),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(span) = span(text) {
            return Ok(Self::Ago(span));
        }
        if let Ok(day) = format!("{text}T00:00:00.000Z").parse() {
            return Ok(Self::Day(day));
        }
        let whole = text.strip_suffix('Z').unwrap_or_default();
        let spelled = ["", ".000", ":00.000"].into_iter();
        let mut read = spelled.filter_map(|more| format!("{whole}{more}Z").parse().ok());
        read.next().map(Self::At).ok_or_else(|| {
            "it is no time: 2026-11-30, 2026-11-30T12:00:00Z, or how long ago (45m, 24h, 30d)"
                .to_owned()
        })
    }
}

fn span(text: &str) -> Option<Duration> {
    let seconds = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

fn ago(now: Timestamp, span: Duration) -> Timestamp {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}

const A_DAY: Duration = Duration::from_millis(86_400_000 - 1);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Timestamp = "2026-11-30T12:00:00.000Z".parse().unwrap();
        for (text, begins, ends) in [
            (
                "2026-11-29",
                "2026-11-29T00:00:00.000Z",
                "2026-11-29T23:59:59.999Z",
            ),
            (
                "2026-11-29T08:30Z",
                "2026-11-29T08:30:00.000Z",
                "2026-11-29T08:30:00.000Z",
            ),
            (
                "2026-11-29T08:30:01Z",
                "2026-11-29T08:30:01.000Z",
                "2026-11-29T08:30:01.000Z",
            ),
            ("2026-11-29T08:30:01.5Z", "", ""),
            (
                "24h",
                "2026-11-29T12:00:00.000Z",
                "2026-11-29T12:00:00.000Z",
            ),
            (
                "30d",
                "2026-10-31T12:00:00.000Z",
                "2026-10-31T12:00:00.000Z",
            ),
            ("99999999999999999999d", "", ""),
            ("yesterday", "", ""),
            ("2026-11-31", "", ""),
            ("é", "", ""),
        ] {
            let when = text.parse::<When>();
            match when {
                Ok(when) => {
                    assert_eq!(when.begins(now).to_string(), begins, "{text}");
                    assert_eq!(when.ends(now).to_string(), ends, "{text}");
                }
                Err(_) => assert_eq!(begins, "", "{text}"),
            }
        }
    }
}
