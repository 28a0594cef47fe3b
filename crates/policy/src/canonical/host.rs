//! Hosts and URLs: one form, and a refusal for every spelling on which URL readers disagree.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{LONGEST, Name};
use crate::reach::Unresolved;

/// A host in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Lower case, no dot at the end.
    Domain(String),
    /// An address in its standard text.
    Address(IpAddr),
}

impl Host {
    fn text(&self) -> String {
        match self {
            Self::Domain(domain) => domain.clone(),
            Self::Address(IpAddr::V4(address)) => address.to_string(),
            Self::Address(IpAddr::V6(address)) => format!("[{address}]"),
        }
    }
}

/// Reads a host. Refused: anything outside ASCII and punycode that may look like something else, a dot at the end,
/// IPv4 in decimal, hexadecimal, octal or short form, IPv4 inside IPv6, zones.
pub(crate) fn host(text: &str) -> Result<Host, Unresolved> {
    let refused = Unresolved::new("a host is not written in a plain form");
    if let Some(inner) = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        let address = inner.parse::<Ipv6Addr>().map_err(|_| refused.clone())?;
        return if hides_ipv4(&address) {
            Err(refused)
        } else {
            Ok(Host::Address(IpAddr::V6(address)))
        };
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            // A punycode label is a look-alike waiting to be drawn.
            && !label.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("xn--"))
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // A last label that is a number makes the whole an IPv4 address to a URL reader.
    let last = text.rsplit('.').next().unwrap_or_default();
    let number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last
            .get(..2)
            .is_some_and(|head| head.eq_ignore_ascii_case("0x"));
    if text.len() > 253 || number || !text.split('.').all(label) {
        return Err(refused);
    }
    Ok(Host::Domain(text.to_ascii_lowercase()))
}

/// `host` or `host:port`.
pub(crate) fn host_and_port(text: &str) -> Result<Name, Unresolved> {
    let (host, port) = split_port(text)?;
    let host = host.text();
    let id = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
    Ok(Name::outside(id, host))
}

/// An `http` or `https` URL in canonical form: lower-case scheme and host, no default port, no fragment, path and
/// query byte for byte. Refused: user information, backslashes, white space, control and non-ASCII characters, path
/// segments `.` and `..` in any spelling.
pub(crate) fn url(text: &str) -> Result<Name, Unresolved> {
    if text.len() > LONGEST
        || !text
            .bytes()
            .all(|byte| (0x21..=0x7e).contains(&byte) && byte != b'\\')
    {
        return Err(Unresolved::new(
            "a url is too long or has characters that must be escaped",
        ));
    }
    let (scheme, rest) = text
        .split_once("://")
        .ok_or(Unresolved::new("a url is not absolute"))?;
    let scheme = scheme.to_ascii_lowercase();
    let default = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return Err(Unresolved::new("a url's scheme is neither http nor https")),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
    if authority.contains('@') {
        return Err(Unresolved::new("a url carries user information"));
    }
    let (host, port) = split_port(authority)?;
    let path = tail.split('?').next().unwrap_or_default();
    let dots = |segment: &str| {
        matches!(
            segment.to_ascii_lowercase().replace("%2e", ".").as_str(),
            "." | ".."
        )
    };
    if path.split('/').any(dots) {
        return Err(Unresolved::new(
            "a url's path has segments that readers fold",
        ));
    }
    let slash = if tail.starts_with('/') { "" } else { "/" };
    let port = port
        .filter(|port| *port != default)
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let host = host.text();
    Ok(Name::outside(
        format!("{scheme}://{host}{port}{slash}{tail}"),
        host,
    ))
}

/// Whether a canonical host is a cloud's metadata service.
pub(crate) fn is_metadata(host: &str) -> bool {
    METADATA.contains(&host)
}

fn split_port(text: &str) -> Result<(Host, Option<u16>), Unresolved> {
    let after_bracket = text.rfind(']').map_or(0, |at| at + 1);
    let colon = text
        .get(after_bracket..)
        .and_then(|rest| rest.find(':'))
        .map(|at| at + after_bracket);
    let Some((name, port)) = colon.and_then(|at| text.split_at_checked(at)) else {
        return Ok((host(text)?, None));
    };
    let digits = port.get(1..).unwrap_or_default();
    let canonical = !digits.is_empty()
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = digits
        .parse::<u16>()
        .ok()
        .filter(|_| canonical)
        .ok_or(Unresolved::new("a port is not a number"))?;
    Ok((host(name)?, Some(port)))
}

/// Mapped, compatible, translated (NAT64) and 6to4 addresses carry an IPv4 address that a filter overlooks.
fn hides_ipv4(address: &Ipv6Addr) -> bool {
    let segments = address.segments();
    matches!(segments, [0, 0, 0, 0, 0, 0 | 0xffff, high, low] if !(high == 0 && low <= 1))
        || matches!(
            segments,
            [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, ..] | [0x2002, ..]
        )
}

const METADATA: [&str; 7] = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "[fd00:ec2::254]",
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn one_url_has_one_form() {
        for (text, id) in [
            ("HTTPS://Example.COM", "https://example.com/"),
            (
                "https://example.com:443/a?b=c#d",
                "https://example.com/a?b=c",
            ),
            (
                "http://example.com:8080/%7Ea",
                "http://example.com:8080/%7Ea",
            ),
            ("http://[::1]:80/", "http://[::1]/"),
            ("http://127.0.0.1/", "http://127.0.0.1/"),
            ("https://example.com?q", "https://example.com/?q"),
        ] {
            assert_eq!(url(text).unwrap().id, id, "{text}");
        }
    }

    #[test]
    fn network_attacks_are_refused() {
        for bad in [
            "https://user@example.com/",
            "https://example.com@evil.example/",
            "https://a:b@c.example/",
            "https://evil.example\\@example.com/",
            "https:\\\\example.com",
            "https:/example.com",
            "//example.com/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://0x7f.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[fe80::1%25eth0]/",
            "http://example.com./",
            "http://example..com/",
            "http://.example.com/",
            "https://exаmple.com/",
            "https://xn--exmple-4nf.com/",
            "https://ex%61mple.com/",
            "http://１２７.0.0.1/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "javascript://example.com/%0a",
            "data:text/plain,x",
            "gopher://x/",
            "https://example.com:/",
            "https://example.com:0443/",
            "https://example.com:99999/",
            "https://example.com:8a/",
            "https://exam ple.com/",
            "https://example.com/\r\nHost: evil",
            "https://example.com/\0",
            "https://",
            "https:///x",
            "https://example.com/a/../b",
            "https://example.com/%2e%2E/b",
            "https://-a.example/",
            "",
        ] {
            assert!(url(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn metadata_addresses_are_marked() {
        for marked in [
            "http://169.254.169.254/latest",
            "http://metadata.google.internal/",
            "http://[fd00:ec2::254]/",
        ] {
            assert!(url(marked).unwrap().metadata, "{marked}");
        }
        assert!(!url("https://example.com/").unwrap().metadata);
    }

    #[test]
    fn a_host_may_have_a_port() {
        assert_eq!(
            host_and_port("DB.example:5432").unwrap().id,
            "db.example:5432"
        );
        assert!(host_and_port("db.example:").is_err());
        assert!(host_and_port("::1").is_err());
    }
}
