//! What happened when, in a bounded number of spans: spans double in length when there are too many of them.

use lychgate_core::Timestamp;

/// What a span counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happened {
    /// The destination answered, or the effect was found.
    Effected,
    /// It certainly had no effect, or asks for input first.
    NoEffect,
    /// It expired or its caller went away before dispatch.
    Lapsed,
    /// It was denied.
    Denied,
    /// Its answer was lost.
    InDoubt,
    /// It ran under advisory enforcement; never finality (PROFILE §10).
    Advisory,
}

impl Happened {
    /// All, as they are drawn from the bottom up.
    pub const ALL: [Self; 6] = [
        Self::Effected,
        Self::NoEffect,
        Self::Lapsed,
        Self::Denied,
        Self::InDoubt,
        Self::Advisory,
    ];

    /// The word for it in documents.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Effected => "effected",
            Self::NoEffect => "no_effect",
            Self::Lapsed => "lapsed",
            Self::Denied => "denied",
            Self::InDoubt => "in_doubt",
            Self::Advisory => "advisory",
        }
    }
}

/// A span of time and what happened in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span([u64; 6]);

impl Span {
    /// How often it happened.
    #[must_use]
    pub fn of(&self, what: Happened) -> u64 {
        self.0.get(what as usize).copied().unwrap_or(0)
    }

    /// How often anything happened.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn add(&mut self, what: Happened) {
        if let Some(count) = self.0.get_mut(what as usize) {
            *count += 1;
        }
    }

    fn join(&self, other: &Self) -> Self {
        let mut joined = *self;
        joined.0.iter_mut().zip(other.0).for_each(|(a, b)| *a += b);
        joined
    }
}

/// A time in which no gate ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// From the stop, or from the last thing a killed gate recorded.
    pub from: Timestamp,
    /// To the next start; `None`: it has not started again.
    pub to: Option<Timestamp>,
    /// Whether the gate recorded its stop.
    pub clean: bool,
}

/// What happened when.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    // Spans of `width` milliseconds from `first` on.
    width: u64,
    spans: Vec<Span>,
    gaps: Vec<Gap>,
}

impl Timeline {
    /// When the first receipt was made that was counted.
    #[must_use]
    pub fn first(&self) -> Option<Timestamp> {
        self.first
    }

    /// When the last one was.
    #[must_use]
    pub fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// How long a span is, in milliseconds.
    #[must_use]
    pub fn width(&self) -> u64 {
        self.width.max(LEAST)
    }

    /// The spans, from [`Timeline::first`] on.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The longest times without a gate, in their order.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Something was recorded.
    pub(super) fn seen(&mut self, at: Timestamp) {
        self.first.get_or_insert(at);
        self.last = self.last.max(Some(at));
    }

    /// Something happened. Times before the first receipt's fall into the first span.
    pub(super) fn add(&mut self, what: Happened, at: Timestamp) {
        self.seen(at);
        let first = self.first.unwrap_or(at);
        self.width = self.width.max(LEAST);
        let since = at.as_millis().saturating_sub(first.as_millis());
        while since / self.width >= MOST_SPANS {
            self.width *= 2;
            self.spans = self
                .spans
                .chunks(2)
                .map(|pair| match pair {
                    [one, other] => one.join(other),
                    [one] => *one,
                    _ => Span::default(),
                })
                .collect();
        }
        let index = usize::try_from(since / self.width).unwrap_or(0);
        if self.spans.len() <= index {
            self.spans.resize(index + 1, Span::default());
        }
        if let Some(span) = self.spans.get_mut(index) {
            span.add(what);
        }
    }

    /// No gate ran.
    pub(super) fn gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
        if self.gaps.len() > MOST_GAPS {
            let length = |gap: &Gap| gap.to.map_or(u64::MAX, |to| millis(gap.from, to));
            let shortest = (0..self.gaps.len()).min_by_key(|at| self.gaps.get(*at).map(length));
            if let Some(shortest) = shortest {
                self.gaps.remove(shortest);
            }
        }
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    to.as_millis().saturating_sub(from.as_millis())
}

/// The shortest span, in milliseconds.
const LEAST: u64 = 1000;
/// The most spans; a picture has fewer columns than this.
const MOST_SPANS: u64 = 240;
/// The most times without a gate that are kept.
const MOST_GAPS: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_double_and_lose_nothing() {
        let at = |seconds: u64| Timestamp::from_millis(1_800_000_000_000 + seconds * 1000);
        let mut timeline = Timeline::default();
        for second in 0..10_000 {
            timeline.add(Happened::Effected, at(second));
            if second % 10 == 0 {
                timeline.add(Happened::Denied, at(second));
            }
        }
        let sum = |what| {
            timeline
                .spans()
                .iter()
                .map(|span| span.of(what))
                .sum::<u64>()
        };
        assert_eq!(sum(Happened::Effected), 10_000);
        assert_eq!(sum(Happened::Denied), 1_000);
        assert_eq!(timeline.width(), 64_000);
        assert_eq!(timeline.spans().len(), 157);
        assert_eq!(timeline.spans()[3].of(Happened::Effected), 64);
    }

    #[test]
    fn the_longest_gaps_are_kept_in_order() {
        let mut timeline = Timeline::default();
        for n in 0..1_000u64 {
            let from = Timestamp::from_millis(n * 10_000);
            timeline.gap(Gap {
                from,
                to: Some(Timestamp::from_millis(n * 10_000 + n)),
                clean: true,
            });
        }
        let gaps = timeline.gaps();
        assert_eq!(gaps.len(), MOST_GAPS);
        assert!(gaps.windows(2).all(|pair| pair[0].from < pair[1].from));
        assert_eq!(gaps[0].from, Timestamp::from_millis(600 * 10_000));
    }
}
