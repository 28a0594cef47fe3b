//! Mail addresses: the bare `local@domain` of RFC 5321 without its rarities.

use super::{Name, host};
use crate::reach::Unresolved;

/// One bare address. Quoted local parts, comments, groups, display names, lists, source routes, address literals,
/// line breaks and anything outside ASCII are refused: readers disagree about where such a mail goes.
pub(crate) fn address(text: &str) -> Result<Name, Unresolved> {
    let refused = || Unresolved::new("a mail address is not a plain one");
    if text.len() > 254 || text.bytes().filter(|byte| *byte == b'@').count() != 1 {
        return Err(refused());
    }
    let (local, domain) = text.split_once('@').ok_or_else(refused)?;
    let atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-/=?^_`{|}~.".contains(&byte);
    // `%` and `!` route mail onwards on some relays.
    let plain = !local.is_empty()
        && local.len() <= 64
        && local.bytes().all(|byte| atom(byte) && byte != b'!')
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..");
    if !plain {
        return Err(refused());
    }
    match host::host(domain)? {
        host::Host::Domain(domain) if domain.contains('.') => {
            // The local part is the receiving system's own affair, so its case stays.
            Ok(Name::outside(format!("{local}@{domain}"), domain))
        }
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn mail_attacks_are_refused_and_plain_addresses_have_one_form() {
        assert_eq!(
            address("Alice.B+x@Example.COM").unwrap().id,
            "Alice.B+x@example.com"
        );
        assert_eq!(
            address("a@example.com.").unwrap_err().code,
            lychgate_core::Code::DestinationUnresolved
        );
        for bad in [
            "",
            "a",
            "@example.com",
            "a@",
            "a@b",
            "a@@example.com",
            "\"a b\"@example.com",
            "\"a@evil.example\"@example.com",
            "Alice <a@example.com>",
            "<a@example.com>",
            "ceo@bank.example <a@evil.example>",
            "a@example.com, b@example.com",
            "a@example.com;b@example.com",
            "friends: a@example.com;",
            "a(comment)@example.com",
            "a@example.com(comment)",
            "a@example.com\r\nBcc: b@evil.example",
            "a@example.com\n",
            "a\0@example.com",
            "a b@example.com",
            " a@example.com",
            "a@example.com ",
            ".a@example.com",
            "a.@example.com",
            "a..b@example.com",
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "a%evil.example@example.com",
            "evil.example!a@example.com",
            "@relay.example:a@example.com",
            "ä@example.com",
            "a@exämple.com",
            "a@ехample.com",
        ] {
            assert!(address(bad).is_err(), "{bad:?}");
        }
    }
}
