//! Number tokens: which are accepted, and as which double (PROFILE §3).

use std::fmt::Write as _;

use super::fault::FaultKind;
use super::value::Number;

/// Reads the number token at the start of `text`; gives the number and how many bytes the token has.
///
/// Linear in the token's length, whatever its digits and exponent.
pub(super) fn read(text: &[u8]) -> Result<(Number, usize), FaultKind> {
    let (decimal, length) = scan(text)?;
    match text.get(length) {
        Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'+' | b'-' | b'_') => {
            Err(FaultKind::NumberSyntax)
        }
        _ => Ok((decimal.exact().ok_or(FaultKind::NumberNotExact)?, length)),
    }
}

/// A decimal value without its redundant zeros: `digits` × 10^`exponent`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    /// Significant digits, no zero at either end; those past `count` are 0.
    digits: [u8; MOST_DIGITS],
    /// How many digits there are; zero has none.
    count: usize,
    exponent: i64,
    /// More significant digits than any accepted token has.
    overlong: bool,
}

impl Decimal {
    /// The number this token may stand for, if it may.
    fn exact(&self) -> Option<Number> {
        if self.overlong {
            // A double is written with at most 17 digits, and a fraction is taken with at most 17.
            return None;
        }
        if self.count == 0 {
            return Number::from_f64(0.0);
        }
        let whole = self.exponent >= 0;
        if let Some(small) = self.small_whole() {
            return Number::from_f64(small);
        }
        // The first digit's decimal place; doubles end between 10^-324 and 10^308.
        let place = self.exponent.saturating_add(self.count as i64 - 1);
        if !(-330..=310).contains(&place) {
            return None;
        }
        let number = Number::from_f64(self.to_double()?)?;
        let mut buffer = ryu_js::Buffer::new();
        let (written, _) = scan(buffer.format_finite(number.get()).as_bytes()).ok()?;
        let stays_fraction = !whole && number.get().fract() != 0.0;
        (written == *self || stays_fraction).then_some(number)
    }

    /// The double, when this is whole and so small that it is plainly exact.
    fn small_whole(&self) -> Option<f64> {
        let length = usize::try_from(self.exponent)
            .ok()?
            .checked_add(self.count)?;
        if length > 15 {
            return None;
        }
        let digits = self
            .digits
            .iter()
            .take(self.count)
            .chain(std::iter::repeat(&0))
            .take(length);
        let whole = digits.fold(0_i64, |sum, digit| sum * 10 + i64::from(*digit));
        Some(if self.negative { -whole } else { whole } as f64)
    }

    /// The nearest double, ties to even, possibly infinite.
    fn to_double(self) -> Option<f64> {
        let mut text = String::with_capacity(32);
        if self.negative {
            text.push('-');
        }
        let digits = self.digits.iter().take(self.count);
        text.extend(digits.map(|digit| char::from(b'0' + digit)));
        write!(text, "e{}", self.exponent).ok()?;
        text.parse().ok()
    }
}

/// Walks over one token of RFC 8259 §6.
fn scan(text: &[u8]) -> Result<(Decimal, usize), FaultKind> {
    let mut gather = Gather::default();
    let mut at = 0;
    let negative = text.first() == Some(&b'-');
    at += usize::from(negative);
    let whole = digits(text, at)?;
    if whole.len() > 1 && whole.first() == Some(&b'0') {
        return Err(FaultKind::NumberSyntax);
    }
    gather.take(whole, false);
    at += whole.len();
    if text.get(at) == Some(&b'.') {
        let fraction = digits(text, at + 1)?;
        gather.take(fraction, true);
        at += 1 + fraction.len();
    }
    let mut exponent = 0_i64;
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        let minus = text.get(at) == Some(&b'-');
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        let run = digits(text, at)?;
        at += run.len();
        // Saturation is harmless: so large an exponent is refused whatever it is exactly.
        let magnitude = run.iter().fold(0_i64, |sum, byte| {
            sum.saturating_mul(10)
                .saturating_add(i64::from(byte - b'0'))
        });
        exponent = if minus { -magnitude } else { magnitude };
    }
    Ok((gather.finish(negative, exponent), at))
}

/// The run of digits at `at`, at least one.
fn digits(text: &[u8], at: usize) -> Result<&[u8], FaultKind> {
    let rest = text.get(at..).unwrap_or_default();
    let length = rest
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(rest.len());
    match rest.split_at_checked(length) {
        Some((run, _)) if length > 0 => Ok(run),
        _ if rest.is_empty() => Err(FaultKind::Truncated),
        _ => Err(FaultKind::NumberSyntax),
    }
}

/// Collects significant digits while the token goes by.
#[derive(Default)]
struct Gather {
    digits: [u8; MOST_DIGITS],
    count: usize,
    /// Zeros seen since the last significant digit: significant only when another digit follows.
    zeros: usize,
    /// Digits after the point.
    places: i64,
    overlong: bool,
}

impl Gather {
    fn take(&mut self, run: &[u8], fraction: bool) {
        if fraction {
            self.places += run.len() as i64;
        }
        for byte in run {
            match byte - b'0' {
                0 if self.count > 0 => self.zeros += 1,
                0 => {}
                digit => {
                    let at = self.count + self.zeros;
                    match self.digits.get_mut(at) {
                        Some(slot) => {
                            *slot = digit;
                            self.count = at + 1;
                            self.zeros = 0;
                        }
                        None => self.overlong = true,
                    }
                }
            }
        }
    }

    fn finish(self, negative: bool, exponent: i64) -> Decimal {
        let zero = self.count == 0 && !self.overlong;
        let exponent = exponent
            .saturating_add(self.zeros as i64)
            .saturating_sub(self.places);
        Decimal {
            negative: negative && !zero,
            digits: self.digits,
            count: self.count,
            exponent: if zero { 0 } else { exponent },
            overlong: self.overlong,
        }
    }
}

/// The most significant decimal digits an ECMAScript number is written with.
const MOST_DIGITS: usize = 17;
