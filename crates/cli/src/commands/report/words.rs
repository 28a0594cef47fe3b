//! The words that text and page share.

use std::time::Duration;

use lychgate_core::{ConsequenceClass, State, Timestamp};
use lychgate_ledger::report::{Happened, Report, Verdict};

/// One of the four tests as a person reads it.
pub(super) struct Line {
    /// Its number in the draft.
    pub(super) number: u8,
    /// What it asks.
    pub(super) asks: &'static str,
    /// What is claimed.
    pub(super) verdict: Verdict,
    /// What was examined, or why it was not.
    pub(super) examined: String,
}

/// The four tests.
pub(super) fn lines(report: &Report) -> [Line; 4] {
    let (verdicts, counts) = (&report.verdicts, &report.counts);
    let mut authority = format!(
        "{}, {} high-risk",
        many(counts.invoked, "invoke", "invokes"),
        grouped(counts.high_risk)
    );
    if counts.unjudged > 0 {
        authority.push_str(&format!("; {} not judged", grouped(counts.unjudged)));
    }
    let mismatch = many(counts.mismatches, "mismatch denied", "mismatches denied");
    let depth = format!("deepest: {}", counts.deepest);
    let line = |number, asks, verdict, examined: String| Line {
        number,
        asks,
        verdict,
        examined: match verdict {
            Verdict::NotMeasured(why) => why.to_owned(),
            Verdict::Partly(why) => format!("{examined}; {why}"),
            _ => examined,
        },
    };
    [
        line(
            1,
            "every high-risk invoke consumed an authority",
            verdicts.authority,
            authority,
        ),
        line(
            2,
            "mismatches are denials, not ways round the sink",
            verdicts.mismatch,
            mismatch,
        ),
        line(
            3,
            "nothing beyond the permitted depth is invoked",
            verdicts.depth,
            depth,
        ),
        line(
            4,
            "no effect on a second path",
            verdicts.second_path,
            String::new(),
        ),
    ]
}

/// A verdict as a person reads it.
pub(super) fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Held => "held".to_owned(),
        Verdict::Partly(_) => "held in part".to_owned(),
        Verdict::Violated(number) => many(number, "violation", "violations"),
        Verdict::Nothing => "nothing to judge".to_owned(),
        Verdict::NotMeasured(_) => "not measured".to_owned(),
    }
}

/// Why a report is not clean.
pub(super) fn broken(report: &Report) -> String {
    let advised = report.counts.advisory.number;
    let mut said = Vec::new();
    if report.violated > 0 {
        said.push(many(report.violated, "violation", "violations"));
    }
    if advised > 0 {
        let advised = many(advised, "act was", "acts were");
        said.push(format!("{advised} only advised, which is never finality"));
    }
    said.join("; ")
}

/// The states that some act is in.
pub(super) fn states(report: &Report) -> Vec<(&'static str, u64)> {
    let all = State::ALL.into_iter();
    let all = all.map(|state| (state.name(), report.counts.in_state(state)));
    all.filter(|(_, number)| *number > 0).collect()
}

/// The classes that some act is of.
pub(super) fn classes(report: &Report) -> Vec<(&'static str, u64)> {
    let all = ConsequenceClass::ALL.into_iter().map(Some).chain([None]);
    let all = all.map(|class| {
        let name = class.map_or("no class", ConsequenceClass::name);
        (name, report.counts.of_class(class))
    });
    all.filter(|(_, number)| *number > 0).collect()
}

/// What a part of the picture is called.
pub(super) fn happened(what: Happened) -> &'static str {
    match what {
        Happened::Effected => "took effect",
        Happened::NoEffect => "no effect",
        Happened::Lapsed => "lapsed or withdrawn",
        Happened::Denied => "denied",
        Happened::InDoubt => "in doubt",
        Happened::Advisory => "advisory only",
    }
}

/// `1 act`, `1,234 acts`.
pub(super) fn many(number: u64, one: &str, more: &str) -> String {
    let word = if number == 1 { one } else { more };
    format!("{} {word}", grouped(number))
}

/// `1,234,567`
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// To the second, UTC: `2026-01-01 00:00:05`.
pub(super) fn moment(at: Timestamp) -> String {
    let text = at.to_string().replacen('T', " ", 1);
    text.split('.').next().unwrap_or_default().to_owned()
}

/// A wait as a person says it.
pub(super) fn span(span: Option<Duration>) -> String {
    span.map_or_else(|| "–".to_owned(), crate::terminal::ago)
}

/// A few numbers of many: `3, 17, 21 … (40 more)`.
pub(super) fn some(records: &[u64], number: u64) -> String {
    let shown = records.iter().take(SOME).map(u64::to_string);
    let mut shown = shown.collect::<Vec<_>>().join(", ");
    let left = number.saturating_sub(SOME as u64);
    if left > 0 {
        shown.push_str(&format!(" … ({} more)", grouped(left)));
    }
    shown
}

const SOME: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), shown);
        }
        assert_eq!(some(&[1, 2], 2), "1, 2");
        assert_eq!(
            some(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 12),
            "1, 2, 3, 4, 5, 6, 7, 8 … (4 more)"
        );
    }
}
