//! Bank accounts: IBAN (ISO 13616), checked by its remainder modulo 97.

use super::Name;
use crate::reach::Unresolved;

/// Upper case, without spaces, with a right check sum.
pub(crate) fn iban(text: &str) -> Result<Name, Unresolved> {
    let refused = || Unresolved::new("an account number is not a valid iban");
    let id = text
        .chars()
        .filter(|c| *c != ' ')
        .map(|c| c.to_ascii_uppercase())
        .collect::<String>();
    let shape = (15..=34).contains(&id.len())
        && id.bytes().enumerate().all(|(at, byte)| match at {
            0 | 1 => byte.is_ascii_uppercase(),
            2 | 3 => byte.is_ascii_digit(),
            _ => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        });
    if !shape {
        return Err(refused());
    }
    let (head, tail) = id.split_at_checked(4).ok_or_else(refused)?;
    let remainder = tail.bytes().chain(head.bytes()).fold(0_u32, |sum, byte| {
        if byte.is_ascii_digit() {
            (sum * 10 + u32::from(byte - b'0')) % 97
        } else {
            (sum * 100 + u32::from(byte - b'A') + 10) % 97
        }
    });
    if remainder != 1 {
        return Err(refused());
    }
    Ok(Name {
        id,
        host: Some(String::new()),
        metadata: false,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn an_account_is_checked_and_written_one_way() {
        assert_eq!(
            iban("de89 3704 0044 0532 0130 00").unwrap().id,
            "DE89370400440532013000"
        );
        for bad in [
            "DE88370400440532013000",
            "DE89",
            "",
            "DE89-3704-0044-0532-0130-00",
            "ＤＥ89370400440532013000",
        ] {
            assert!(iban(bad).is_err(), "{bad:?}");
        }
    }
}
