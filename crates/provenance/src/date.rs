//! Dates as sets: a text may leave the year out, or the order of day and month open; each reading is one atom.

/// A day; without a year, of any year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Day {
    pub(crate) year: Option<u16>,
    pub(crate) month: u8,
    pub(crate) day: u8,
}

impl Day {
    /// As it is compared.
    pub(crate) fn canonical(self) -> String {
        match self.year {
            Some(year) => format!("{year:04}-{:02}-{:02}", self.month, self.day),
            None => format!("--{:02}-{:02}", self.month, self.day),
        }
    }

    fn new(year: Option<u16>, month: u32, day: u32) -> Option<Self> {
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some(Self { year, month, day })
    }
}

/// The readings of a numeric date: `2024-05-19`, `2024/5/19`, `19.05.2024`, `05/19/2024`, a time may follow.
pub(crate) fn numeric(text: &str) -> Vec<Day> {
    let date = text.split(['t', 'T', ' ']).next().unwrap_or_default();
    let parts = date.split(['-', '/', '.']).collect::<Vec<_>>();
    let [first, second, third] = parts.as_slice() else {
        return Vec::new();
    };
    let number = |text: &str| -> Option<u32> {
        let fits = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| text.parse().ok()).flatten()
    };
    let (Some(a), Some(b), Some(c)) = (number(first), number(second), number(third)) else {
        return Vec::new();
    };
    let year = |value: u32| u16::try_from(value).ok().filter(|year| *year >= 1000);
    let readings = match (year(a), year(c)) {
        (Some(year), None) => vec![Day::new(Some(year), b, c)],
        (None, Some(year)) => vec![Day::new(Some(year), b, a), Day::new(Some(year), a, b)],
        _ => Vec::new(),
    };
    let mut days = readings.into_iter().flatten().collect::<Vec<_>>();
    days.sort_unstable();
    days.dedup();
    days
}

/// Reads a date out of words: `may 1st 2024`, `1st of may`, `13th to the 17th of may 2024`. `words[at]` is a month.
/// The answer holds every day that the month's name stands for.
pub(crate) fn spelled(words: &[&str], at: usize) -> Vec<Day> {
    let Some(month) = words.get(at).and_then(|word| month(word)) else {
        return Vec::new();
    };
    let after = |n: usize| words.get(at + n).copied().unwrap_or_default();
    let mut days = Vec::new();
    let mut year_at = 1;
    if let Some(day) = day(after(1)) {
        year_at = 2;
        days.push(day);
    } else {
        // `1st of may`, `the 13th to the 17th of may`: days before the month, back to the first other word.
        let mut back = at;
        while back > 0 && at - back < 8 {
            back -= 1;
            match (words[back], day(words[back])) {
                (_, Some(day)) => days.push(day),
                ("of" | "to" | "the" | "and" | "until" | "till" | "through", None) => {}
                _ => break,
            }
        }
    }
    let year = after(year_at)
        .parse::<u16>()
        .ok()
        .filter(|year| (1900..2200).contains(year) && after(year_at).len() == 4);
    days.into_iter()
        .filter_map(|day| Day::new(year, month, day))
        .collect()
}

/// A month's number.
pub(crate) fn month(word: &str) -> Option<u32> {
    let at = MONTHS
        .iter()
        .position(|name| *name == word || (word.len() == 3 && name.starts_with(word)))?;
    u32::try_from(at + 1).ok()
}

fn day(word: &str) -> Option<u32> {
    let digits = word
        .strip_suffix("st")
        .or_else(|| word.strip_suffix("nd"))
        .or_else(|| word.strip_suffix("rd"))
        .or_else(|| word.strip_suffix("th"))
        .unwrap_or(word);
    let fits = (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| digits.parse().ok())
        .flatten()
        .filter(|day| (1..=31).contains(day))
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(days: Vec<Day>) -> Vec<String> {
        days.into_iter().map(Day::canonical).collect()
    }

    #[test]
    fn numeric_dates_have_every_reading() {
        assert_eq!(canonical(numeric("2024-05-19 10:00")), ["2024-05-19"]);
        assert_eq!(
            canonical(numeric("05/04/2024")),
            ["2024-04-05", "2024-05-04"]
        );
        assert_eq!(canonical(numeric("19.05.2024")), ["2024-05-19"]);
        assert!(numeric("1.2.3").is_empty() && numeric("10-20").is_empty());
    }

    #[test]
    fn spelled_dates_may_leave_the_year_out() {
        let words = ["from", "january", "11th", "to", "january", "15th", "2025"];
        assert_eq!(canonical(spelled(&words, 1)), ["--01-11"]);
        assert_eq!(canonical(spelled(&words, 4)), ["2025-01-15"]);
        let words = ["the", "13th", "to", "the", "17th", "of", "may", "2024"];
        assert_eq!(canonical(spelled(&words, 6)), ["2024-05-17", "2024-05-13"]);
    }
}
