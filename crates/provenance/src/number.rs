//! Exact decimals: two numbers are one value when they denote the same decimal, however they are written.

use std::cmp::Ordering;

/// A decimal, exact, with up to 30 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits as one whole number.
    digits: i128,
    /// How many of them stand after the point. No trailing zero is kept.
    places: u32,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Self = Self {
        digits: 0,
        places: 0,
    };

    /// Reads a plain decimal; commas and underscores may group thousands. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() || !grouped(whole) || fraction.bytes().any(|b| !b.is_ascii_digit()) {
            return None;
        }
        let digits = whole
            .bytes()
            .filter(u8::is_ascii_digit)
            .chain(fraction.bytes());
        let mut value = 0i128;
        let mut count = 0;
        for digit in digits {
            count += i32::from(value != 0);
            if count > 30 {
                return None;
            }
            value = value * 10 + i128::from(digit - b'0');
        }
        let places = u32::try_from(fraction.len()).ok()?;
        Some(Self::new(if negative { -value } else { value }, places))
    }

    /// A double as JSON writes it.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        Self::parse(&format!("{value}"))
    }

    fn new(mut digits: i128, mut places: u32) -> Self {
        while places > 0 && digits % 10 == 0 {
            digits /= 10;
            places -= 1;
        }
        Self { digits, places }
    }

    /// The sum; `None` when it would not be exact.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        let places = self.places.max(other.places);
        let sum = self.at(places)?.checked_add(other.at(places)?)?;
        Some(Self::new(sum, places))
    }

    /// Whether it is not negative and at most this much.
    #[must_use]
    pub fn within(self, most: Self) -> bool {
        let places = self.places.max(most.places);
        match (self.at(places), most.at(places)) {
            (Some(value), Some(most)) => value >= 0 && value.cmp(&most) != Ordering::Greater,
            _ => false,
        }
    }

    fn at(self, places: u32) -> Option<i128> {
        let factor = 10i128.checked_pow(places.checked_sub(self.places)?)?;
        self.digits.checked_mul(factor)
    }

    /// The one way it is written here.
    #[must_use]
    pub fn canonical(self) -> String {
        let sign = if self.digits < 0 { "-" } else { "" };
        let digits = self.digits.unsigned_abs().to_string();
        let places = self.places as usize;
        if places == 0 {
            return format!("{sign}{digits}");
        }
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        format!("{sign}{whole}.{fraction}")
    }
}

/// Digits, or digits in groups of three.
fn grouped(whole: &str) -> bool {
    if whole.bytes().all(|b| b.is_ascii_digit()) {
        return true;
    }
    let mut groups = whole.split([',', '_']);
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len())
        && first.bytes().all(|b| b.is_ascii_digit())
        && groups.all(|group| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_value_however_it_is_written() {
        for (text, canonical) in [
            ("10.00", "10"),
            ("1,200.50", "1200.5"),
            ("0.010", "0.01"),
            ("-3", "-3"),
            ("007", "7"),
        ] {
            assert_eq!(Decimal::parse(text).unwrap().canonical(), canonical);
        }
        for text in [
            "",
            ".5",
            "1,20",
            "1e3",
            "12a",
            "1.2.3",
            "9999999999999999999999999999999999",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_cap_holds_the_exact_sum() {
        let sum = Decimal::parse("0.1")
            .unwrap()
            .plus(Decimal::parse("0.2").unwrap())
            .unwrap();
        assert!(sum.within(Decimal::parse("0.3").unwrap()));
        assert!(!sum.within(Decimal::parse("0.29").unwrap()));
        assert!(
            !Decimal::parse("-1")
                .unwrap()
                .within(Decimal::parse("5").unwrap())
        );
    }
}
