//! What was measured, as a table for a person and as one JSON document.

use std::fmt;
use std::time::Duration;

use lychgate_core::json::{self, Object, Value};

use super::cycle::Outcome;
use super::histogram::Histogram;
use super::relay::Relayed;

/// Everything one run measured.
#[derive(Default)]
pub(crate) struct Report {
    pub(super) pair_before: Histogram,
    pub(super) pair_after: Histogram,
    pub(super) single: Histogram,
    pub(super) single_read: Histogram,
    pub(super) many: Outcome,
    pub(super) many_read: Outcome,
    pub(super) rows: u64,
    pub(super) full_single: Option<Histogram>,
    pub(super) full_many: Option<Outcome>,
    pub(super) relayed: Option<Relayed>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            times: Histogram::new(),
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
            rss: (0, 0),
        }
    }
}

impl Outcome {
    /// Processor time for one act, in microseconds.
    fn cpu_each(&self) -> f64 {
        ratio(micros(self.cpu), count(self.times.total()))
    }

    fn rate(&self) -> f64 {
        ratio(count(self.times.total()), self.wall.as_secs_f64())
    }
}

impl Relayed {
    /// What the gate adds at the median when durable writes cost nothing; the work of the commits is in it.
    fn added(&self) -> Duration {
        let direct = self.direct.quantile(500);
        match &self.in_memory {
            Some(times) => times.quantile(500).saturating_sub(direct),
            None => self
                .gated
                .quantile(500)
                .saturating_sub(direct)
                .saturating_sub(self.pair.quantile(500)),
        }
    }

    /// What is left of it when the work of the two commits is taken off too: all of the durable writes excluded.
    fn added_without_commits(&self) -> Duration {
        self.added().saturating_sub(self.commits)
    }

    fn how(&self) -> &'static str {
        match &self.in_memory {
            Some(_) => "with the state folder in memory",
            None => "two fdatasyncs taken off",
        }
    }
}

impl Report {
    /// Two raw `fdatasync`s, measured before and after the single acts: the middle of all.
    fn pair(&self) -> Duration {
        let mut both = self.pair_before.clone();
        both.merge(&self.pair_after);
        both.quantile(500)
    }

    /// p50 of a cycle in pairs of `fdatasync`.
    pub(crate) fn cycle_ratio(&self) -> f64 {
        ratio(
            self.single.quantile(500).as_secs_f64(),
            self.pair().as_secs_f64(),
        )
    }

    /// Rate on a full store against an empty one, as a slowdown: 0.1 is ten percent slower.
    pub(crate) fn slowdown(&self) -> Option<f64> {
        self.full_many
            .as_ref()
            .map(|full| 1.0 - ratio(full.rate(), self.many.rate()))
    }

    /// One JSON document.
    pub(crate) fn to_json(&self) -> Value {
        let mut out = Object::new();
        put(&mut out, "fdatasync_pair_us", micros(self.pair()));
        latency(&mut out, "single", &self.single);
        put(&mut out, "single_to_pair", self.cycle_ratio());
        latency(&mut out, "single_read", &self.single_read);
        load(&mut out, "in_flight_64", &self.many);
        load(&mut out, "in_flight_64_read", &self.many_read);
        if let (Some(full), Some(single)) = (&self.full_many, &self.full_single) {
            put(&mut out, "rows", count(self.rows));
            load(&mut out, "full_in_flight_64", full);
            latency(&mut out, "full_single", single);
            put(&mut out, "full_slowdown", self.slowdown().unwrap_or(0.0));
        }
        if let Some(relayed) = &self.relayed {
            latency(&mut out, "server_direct", &relayed.direct);
            latency(&mut out, "server_gated", &relayed.gated);
            if let Some(times) = &relayed.in_memory {
                latency(&mut out, "server_gated_in_memory", times);
            }
            put(
                &mut out,
                "server_pair_p50_us",
                micros(relayed.pair.quantile(500)),
            );
            put(&mut out, "server_added_us", micros(relayed.added()));
            put(&mut out, "two_commits_us", micros(relayed.commits));
            put(
                &mut out,
                "server_added_without_commits_us",
                micros(relayed.added_without_commits()),
            );
        }
        Value::Object(out)
    }
}

fn put(out: &mut Object, key: &str, number: f64) {
    // Rounded: more digits than were measured say nothing.
    let rounded = (number * 1000.0).round() / 1000.0;
    if let Ok(value) = json::to_value(&rounded) {
        out.insert(key.to_owned(), value);
    }
}

fn latency(out: &mut Object, name: &str, times: &Histogram) {
    put(out, &format!("{name}_p50_us"), micros(times.quantile(500)));
    put(out, &format!("{name}_p99_us"), micros(times.quantile(990)));
    put(out, &format!("{name}_acts"), count(times.total()));
}

fn load(out: &mut Object, name: &str, outcome: &Outcome) {
    put(out, &format!("{name}_acts_per_second"), outcome.rate());
    latency(out, name, &outcome.times);
    put(out, &format!("{name}_cpu_us_per_act"), outcome.cpu_each());
    put(out, &format!("{name}_rss_start_kib"), count(outcome.rss.0));
    put(out, &format!("{name}_rss_end_kib"), count(outcome.rss.1));
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |out: &mut fmt::Formatter<'_>, name: &str, times: &Histogram, rest: String| {
            let (p50, p99) = (millis(times.quantile(500)), millis(times.quantile(990)));
            writeln!(out, "  {name:<34} {p50:>9} {p99:>9}   {rest}")
        };
        let mut pair = self.pair_before.clone();
        pair.merge(&self.pair_after);
        writeln!(out, "  {:<34} {:>9} {:>9}", "", "p50 ms", "p99 ms")?;
        row(out, "two fdatasyncs of 4 KiB", &pair, String::new())?;
        let verdict = format!("{:.2} x the pair (aim: at most 2.0)", self.cycle_ratio());
        row(out, "full durable cycle, a write", &self.single, verdict)?;
        row(
            out,
            "full durable cycle, a read",
            &self.single_read,
            String::new(),
        )?;
        let rate = |outcome: &Outcome| {
            format!(
                "{:.0} acts/s, {:.0} us CPU each",
                outcome.rate(),
                outcome.cpu_each()
            )
        };
        let aim = format!("{} (aim: at least 12000, p99 15)", rate(&self.many));
        row(out, "64 in flight, writes", &self.many.times, aim)?;
        row(
            out,
            "64 in flight, reads",
            &self.many_read.times,
            rate(&self.many_read),
        )?;
        if let (Some(full), Some(single)) = (&self.full_many, &self.full_single) {
            let slower = self.slowdown().unwrap_or(0.0) * 100.0;
            row(
                out,
                "  the same, on a full store",
                &full.times,
                format!(
                    "{}, {slower:.1} % slower than empty (aim: at most 10)",
                    rate(full)
                ),
            )?;
            row(
                out,
                "  one in flight, on a full store",
                single,
                format!("{} consumed rows", self.rows),
            )?;
        }
        if let Some(relayed) = &self.relayed {
            row(
                out,
                "a real server, asked directly",
                &relayed.direct,
                String::new(),
            )?;
            let added = micros(relayed.added());
            let how = relayed.how();
            let aim = format!("{added:.0} us more, {how}");
            row(
                out,
                "  the same through `lychgate mcp`",
                &relayed.gated,
                aim,
            )?;
            let (commits, rest) = (
                micros(relayed.commits),
                micros(relayed.added_without_commits()),
            );
            writeln!(
                out,
                "    of it {commits:.0} us its two commits, {rest:.0} us the rest (aim: at most 300 without the durable writes)"
            )?;
        }
        let (before, after) = self.many.rss;
        writeln!(
            out,
            "  memory over {} acts: {} MiB -> {} MiB",
            self.many.times.total(),
            before / 1024,
            after / 1024
        )
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Counts here stay far below 2^53.
#[allow(clippy::cast_precision_loss, reason = "a count for a report")]
fn count(number: u64) -> f64 {
    number as f64
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn millis(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64() * 1e3)
}
