//! Typed atoms: what in a text can be acted on, each in one canonical form.

use crate::date::{self, Day};
use crate::number::Decimal;

/// What an atom is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Email,
    Url,
    Host,
    Path,
    Account,
    Phone,
    Number,
    Date,
}

impl Kind {
    /// Whether somebody who reads it can be led by it to an address, an account or a site.
    pub(crate) const fn actionable(self) -> bool {
        matches!(
            self,
            Self::Email | Self::Url | Self::Host | Self::Account | Self::Phone
        )
    }
}

/// One atom.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Atom {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

impl Atom {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    pub(crate) fn number(value: Decimal) -> Self {
        Self::new(Kind::Number, value.canonical())
    }

    pub(crate) fn day(day: Day) -> Self {
        Self::new(Kind::Date, day.canonical())
    }

    /// For a URL or a mail address, whose it is.
    pub(crate) fn host(&self) -> Option<&str> {
        match self.kind {
            Kind::Host => Some(&self.text),
            Kind::Url => self.text.split(['/', '?', '#']).next(),
            Kind::Email => self.text.rsplit_once('@').map(|(_, host)| host),
            _ => None,
        }
    }
}

/// The atoms that one folded chunk is, without the punctuation round it.
pub(crate) fn of_chunk(chunk: &str, each: &mut dyn FnMut(Atom)) {
    let chunk = chunk.trim_matches(|c: char| ".,:;!?*_~'\"".contains(c));
    let bytes = chunk.as_bytes();
    let (mut at, mut dot, mut slash, mut digits, mut colon) = (false, false, false, 0usize, false);
    for byte in bytes {
        match byte {
            b'@' => at = true,
            b'.' => dot = true,
            b'/' | b'\\' => slash = true,
            b':' => colon = true,
            b'0'..=b'9' => digits += 1,
            _ => {}
        }
    }
    if at && !slash && mail(chunk, each) {
        return;
    }
    if (dot || colon) && (slash || dot) && site(chunk, each) {
        return;
    }
    if digits > 0 {
        let amount = chunk
            .trim_start_matches(['$', '€', '£', '¥', '#'])
            .trim_end_matches(['%', '€', '$', '£']);
        if let Some(value) = Decimal::parse(amount) {
            each(Atom::number(value));
            return;
        }
        let days = date::numeric(chunk);
        if !days.is_empty() {
            days.into_iter().for_each(|day| each(Atom::day(day)));
            return;
        }
        if account_like(bytes) {
            each(Atom::new(Kind::Account, chunk));
            return;
        }
        if let Some(phone) = phone(chunk) {
            each(Atom::new(Kind::Phone, phone));
            return;
        }
    }
    if slash {
        each(Atom::new(Kind::Path, chunk));
    }
}

fn mail(chunk: &str, each: &mut dyn FnMut(Atom)) -> bool {
    let chunk = chunk.strip_prefix("mailto:").unwrap_or(chunk);
    let Some((local, domain)) = chunk.split_once('@') else {
        return false;
    };
    let local_fits = !local.is_empty()
        && local
            .chars()
            .all(|c| c.is_alphanumeric() || ".!#$%&'*+-/=?^_`~".contains(c));
    match host(domain) {
        Some(domain) if local_fits && domain.contains('.') => {
            each(Atom::new(Kind::Email, format!("{local}@{domain}")));
            true
        }
        _ => false,
    }
}

/// A URL, or a bare host. Of both the host is an atom of its own.
fn site(chunk: &str, each: &mut dyn FnMut(Atom)) -> bool {
    let (schemed, rest) = match chunk.split_once("://") {
        Some((scheme, rest))
            if scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'+') =>
        {
            (true, rest)
        }
        Some(_) => return false,
        None => (false, chunk),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, authority) = match authority.rsplit_once('@') {
        Some((user, authority)) => (Some(user), authority),
        None => (None, authority),
    };
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, Some(port)),
        _ => (authority, None),
    };
    let www = name.strip_prefix("www.");
    if !schemed && www.is_none() && !looks_like_host(name) {
        return false;
    }
    let Some(name) = host(www.unwrap_or(name)) else {
        return false;
    };
    if !schemed && !name.contains('.') {
        return false;
    }
    each(Atom::new(Kind::Host, name.clone()));
    let path = path.trim_end_matches('/');
    if !path.is_empty() || user.is_some() || port.is_some() {
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        each(Atom::new(Kind::Url, format!("{name}{port}{path}{user}")));
    }
    true
}

/// A host name in its one form: IDNA, lower case.
pub(crate) fn host(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > 253 {
        return None;
    }
    let fits = |text: &str| {
        text.split('.').all(|label| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
    };
    if text.is_ascii() && !text.contains("xn--") {
        return fits(text).then(|| text.to_ascii_lowercase());
    }
    let ascii = idna::domain_to_ascii(text).ok()?;
    fits(&ascii).then_some(ascii)
}

/// Dotted, ends in letters, and the end is not the usual ending of a file.
fn looks_like_host(name: &str) -> bool {
    let Some((rest, last)) = name.rsplit_once('.') else {
        return false;
    };
    !rest.is_empty()
        && last.chars().count() >= 2
        && last.chars().all(char::is_alphabetic)
        && rest.chars().any(char::is_alphabetic)
        && !FILE_ENDINGS.contains(&last)
        && rest
            .chars()
            .all(|c| c.is_alphanumeric() || c == '-' || c == '.')
}

/// What an account number looks like: two letters, two digits, then mostly digits. Whether its check digits fit is
/// the canonicaliser's business; a reader pays to it all the same.
fn account_like(bytes: &[u8]) -> bool {
    (15..=34).contains(&bytes.len())
        && bytes[..2].iter().all(u8::is_ascii_alphabetic)
        && bytes[2..4].iter().all(u8::is_ascii_digit)
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes.iter().filter(|b| b.is_ascii_digit()).count() >= 8
}

/// An account number written in groups of four, from the start of a text: the number, and how long it is.
pub(crate) fn grouped_account(text: &str) -> Option<(Atom, usize)> {
    let mut whole = String::new();
    let mut end = 0;
    for (n, group) in text.split(' ').enumerate().take(9) {
        let word = group.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let fits = word.bytes().all(|b| b.is_ascii_alphanumeric()) && (1..=4).contains(&word.len());
        if !fits {
            break;
        }
        whole.push_str(word);
        end += word.len() + usize::from(n > 0);
        if word.len() < 4 || word.len() != group.len() {
            break;
        }
    }
    let fits = whole.len() >= 15 && account_like(whole.as_bytes()) && checks(&whole);
    fits.then(|| (Atom::new(Kind::Account, whole), end))
}

/// ISO 7064 mod 97-10.
fn checks(account: &str) -> bool {
    let turned = account.bytes().skip(4).chain(account.bytes().take(4));
    let rest = turned.fold(0u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte.to_ascii_lowercase() - b'a') + 10) % 97,
    });
    rest == 1
}

/// A telephone number: 7 to 15 digits, with a plus or in at least two groups.
pub(crate) fn phone(text: &str) -> Option<String> {
    let body = text.strip_prefix('+');
    let plain = body.unwrap_or(text);
    let fits = plain
        .bytes()
        .all(|b| b.is_ascii_digit() || b" -.()/".contains(&b));
    let digits = plain
        .chars()
        .filter(char::is_ascii_digit)
        .collect::<String>();
    let groups = plain
        .split(|c: char| !c.is_ascii_digit())
        .filter(|group| !group.is_empty())
        .count();
    let enough = (7..=15).contains(&digits.len()) && (body.is_some() || groups >= 3);
    (fits && enough).then_some(digits)
}

const FILE_ENDINGS: [&str; 44] = [
    "txt", "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "csv", "tsv", "md", "rst", "png",
    "jpg", "jpeg", "gif", "svg", "webp", "mp3", "mp4", "wav", "zip", "tar", "gz", "json", "jsonl",
    "yaml", "yml", "toml", "xml", "html", "htm", "css", "js", "ts", "py", "rs", "sh", "rb", "java",
    "log", "lock", "cfg", "ini",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        of_chunk(&crate::fold::folded(text), &mut |atom| {
            found.push(format!("{:?} {}", atom.kind, atom.text));
        });
        found
    }

    #[test]
    fn one_form_for_one_thing() {
        assert_eq!(of("JaneLong@Google.com,"), ["Email janelong@google.com"]);
        assert_eq!(
            of("https://www.Example.com/A?b=c"),
            ["Host example.com", "Url example.com/a?b=c"]
        );
        assert_eq!(of("www.example.com/"), ["Host example.com"]);
        assert_eq!(of("https://bücher.de"), of("https://xn--bcher-kva.de"));
        assert_eq!(of("$1,200.00"), ["Number 1200"]);
        assert_eq!(of("2024-05-19"), ["Date 2024-05-19"]);
        assert_eq!(of("notes.txt"), [""; 0]);
        assert_eq!(of("src/main.rs"), ["Path src/main.rs"]);
        assert_eq!(
            of("DE89370400440532013000"),
            ["Account de89370400440532013000"]
        );
        assert_eq!(of("327-420-4923"), ["Phone 3274204923"]);
        assert_ne!(
            of("jane@gооgle.com"),
            of("jane@google.com"),
            "Cyrillic letters"
        );
    }

    #[test]
    fn what_stands_before_an_at_sign_is_not_the_host() {
        assert_eq!(
            of("https://bank.com@evil.example/x")[0],
            "Host evil.example"
        );
    }

    #[test]
    fn groups_of_four_are_one_account() {
        let found = grouped_account("gb29 nwbk 6016 1331 9268 19 please")
            .map(|(atom, end)| (atom.text, end));
        assert_eq!(found, Some(("gb29nwbk60161331926819".to_owned(), 27)));
    }
}
