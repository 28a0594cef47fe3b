//! Points in time as the wire objects carry them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970-01-01T00:00:00Z; on the wire an RFC 3339 `date-time` in UTC with three decimals.
///
/// The core never asks what time it is: the gate hands time in through its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// A text that is not a UTC `date-time` with at most millisecond precision.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a date-time in UTC with at most three decimals")]
pub struct NotATimestamp(String);

impl Timestamp {
    /// From milliseconds since the epoch, capped at the year 9999 so that it always prints.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis.min(LAST_MILLISECOND))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> u64 {
        self.0
    }

    /// This point, `by` later.
    pub fn after(self, by: Duration) -> Self {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// How long after `earlier` this is; zero when it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(signed) {
            Ok(point) => write!(f, "{point:.3}"),
            Err(_) => Err(fmt::Error),
        }
    }
}

impl FromStr for Timestamp {
    type Err = NotATimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || NotATimestamp(text.to_owned());
        let point: jiff::Timestamp = text.parse().map_err(|_| refused())?;
        let millis = u64::try_from(point.as_millisecond()).map_err(|_| refused())?;
        let stamp = Self::from_millis(millis);
        // Only our own spelling is accepted, so that one point has one digest.
        if stamp.to_string() == text {
            Ok(stamp)
        } else {
            Err(refused())
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// 9999-12-31T23:59:59.999Z less a day, the last point every reader can print.
const LAST_MILLISECOND: u64 = 253_402_214_400_000;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn prints_three_decimals_and_reads_only_its_own_spelling() {
        let t = Timestamp::from_millis(1_787_766_001_000);
        assert_eq!(t.to_string(), "2026-08-26T17:40:01.000Z");
        assert_eq!("2026-08-26T17:40:01.000Z".parse::<Timestamp>().unwrap(), t);
        for other in [
            "2026-08-26T17:40:01Z",
            "2026-08-26T19:40:01.000+02:00",
            "yesterday",
            "",
        ] {
            assert!(other.parse::<Timestamp>().is_err(), "{other}");
        }
    }
}
