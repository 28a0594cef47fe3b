//! Exact amounts of value: what spend is counted in. No binary fraction, no rounding.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::Value;

/// A decimal from 0 with at most 20 whole and [`FRACTION`] fractional digits. On the wire a text in its one spelling: no
/// sign, no exponent, no leading zero, no trailing zero of a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u128);

/// A text or value that is no amount that can be counted exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a decimal from 0 with at most 20 whole and 18 fractional digits, such as `12.5`")]
pub struct NotAnAmount;

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The amount a decimal text names, in any spelling of the same number: `12.50`, `1e3`.
    ///
    /// # Errors
    /// When it is negative, too large, finer than can be counted, or no decimal.
    pub fn read(text: &str) -> Result<Self, NotAnAmount> {
        read(text).map(Self).ok_or(NotAnAmount)
    }

    /// The amount in an argument: a number exactly as it is sent, or a text that [`Amount::read`] takes.
    ///
    /// # Errors
    /// As [`Amount::read`], and for any other kind of value.
    pub fn of_value(value: &Value) -> Result<Self, NotAnAmount> {
        match value {
            Value::String(text) => Self::read(text),
            Value::Number(_) => {
                let text = crate::jcs::to_bytes(value);
                Self::read(std::str::from_utf8(&text).map_err(|_| NotAnAmount)?)
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(NotAnAmount),
        }
    }

    /// The sum; `None` when it cannot be counted.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        let sum = self.0.checked_add(other.0)?;
        (sum <= MOST).then_some(Self(sum))
    }

    /// The difference, nothing where it would be less than nothing.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// What the store keeps.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// From what the store keeps; `None` for what no amount gives.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        let units = u128::from_be_bytes(bytes);
        (units <= MOST).then_some(Self(units))
    }
}

fn read(text: &str) -> Option<u128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() > LONGEST || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let mantissa = format!("{whole}{fraction}");
    let mantissa = mantissa.trim_start_matches('0');
    if mantissa.is_empty() {
        return Some(0);
    }
    // In the smallest unit: the mantissa with so many zeros behind it.
    let places = i32::try_from(fraction.len()).ok()?;
    let zeros = FRACTION.checked_add(exponent)?.checked_sub(places)?;
    let units = mantissa.parse::<u128>().ok()?;
    let units = match u32::try_from(zeros) {
        Ok(zeros) => units.checked_mul(10_u128.checked_pow(zeros)?)?,
        // Finer than the smallest unit, unless the whole part ends in zeros.
        Err(_) => {
            let scale = 10_u128.checked_pow(zeros.unsigned_abs())?;
            units.is_multiple_of(scale).then_some(units / scale)?
        }
    };
    (units <= MOST).then_some(units)
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / UNIT, self.0 % UNIT);
        if fraction == 0 {
            return write!(out, "{whole}");
        }
        let fraction = format!("{fraction:018}");
        write!(out, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

impl FromStr for Amount {
    type Err = NotAnAmount;

    /// Only the one spelling.
    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let amount = Self::read(text)?;
        if amount.to_string() == text {
            Ok(amount)
        } else {
            Err(NotAnAmount)
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = String::deserialize(reader)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Fractional digits that are counted.
pub const FRACTION: i32 = 18;
const UNIT: u128 = 1_000_000_000_000_000_000;
/// 10^20 less the smallest unit.
const MOST: u128 = 100_000_000_000_000_000_000 * UNIT - 1;
/// No text that names a countable amount is longer, in bytes.
const LONGEST: usize = 128;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Limits, parse};

    fn value(text: &str) -> Value {
        parse(text.as_bytes(), &Limits::CANON).expect("json")
    }

    #[test]
    fn an_amount_is_what_the_number_says_and_nothing_else() {
        for (text, said) in [
            ("0", "0"),
            ("12.50", "12.5"),
            ("1e3", "1000"),
            ("0.1", "0.1"),
            ("1e-18", "0.000000000000000001"),
            ("1200e-2", "12"),
            (
                "99999999999999999999.999999999999999999",
                "99999999999999999999.999999999999999999",
            ),
            ("0e9999", "0"),
        ] {
            assert_eq!(Amount::read(text).unwrap().to_string(), said, "{text}");
        }
        for text in [
            "",
            "-1",
            "+1",
            ".5",
            "5.",
            "1e",
            "1e-19",
            "100000000000000000000",
            "1e999999999999",
            "0x1",
            "1 ",
            "١",
            "NaN",
            "1,5",
            "1e2147483647",
        ] {
            assert_eq!(Amount::read(text), Err(NotAnAmount), "{text}");
        }
        assert_eq!(
            Amount::of_value(&value("1200.5")).unwrap().to_string(),
            "1200.5"
        );
        assert_eq!(
            Amount::of_value(&value("\"1200.50\"")).unwrap().to_string(),
            "1200.5"
        );
        for other in ["-0.5", "true", "null", "[1]", "{}", "\"\"", "1e21"] {
            assert!(Amount::of_value(&value(other)).is_err(), "{other}");
        }
    }

    #[test]
    fn one_amount_has_one_text() {
        for other in ["12.50", "012", "1e3", "12.0", "0.0"] {
            assert!(other.parse::<Amount>().is_err(), "{other}");
        }
        assert_eq!("12.5".parse::<Amount>().unwrap().to_string(), "12.5");
    }

    proptest! {
        #[test]
        fn sums_are_exact_and_end_where_counting_ends(one in 0..=MOST, other in 0..=MOST) {
            let sum = Amount(one).plus(Amount(other));
            prop_assert_eq!(sum.map(|sum| sum.0), one.checked_add(other).filter(|sum| *sum <= MOST));
            if let Some(sum) = sum {
                prop_assert_eq!(sum.less(Amount(other)), Amount(one));
            }
            let amount = Amount(one);
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
            prop_assert_eq!(Amount::from_bytes(amount.to_bytes()), Some(amount));
        }
    }
}
