//! A general vocabulary: which words carry no meaning of their own, which verbs ask for the same, and which nouns
//! name the same thing. None of it grants anything (docs/PROVENANCE.md, "Licence").

/// The parts of a name: `sendMoney`, `send_money` and `send-money` are `send`, `money`.
#[must_use]
pub fn split_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let starts = c.is_uppercase() && before.is_lowercase();
        if (starts || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A word without the usual endings of English, so that `payments`, `adjusting` and `booked` meet their stems.
#[must_use]
pub fn singular(word: &str) -> String {
    let cut = |end: &str, least: usize| word.strip_suffix(end).filter(|rest| rest.len() >= least);
    if let Some(rest) = cut("ies", 3) {
        return format!("{rest}y");
    }
    if let Some(rest) = cut("sses", 2)
        .or_else(|| cut("xes", 2))
        .or_else(|| cut("shes", 2))
        .or_else(|| cut("ches", 2))
    {
        return word[..rest.len() + word.len() - rest.len() - 2].to_owned();
    }
    if word.ends_with("ss") {
        return word.to_owned();
    }
    cut("s", 3).unwrap_or(word).to_owned()
}

/// Whether a word of a person's text is a form of a verb's stem.
pub(crate) fn is_form(word: &str, stem: &str) -> bool {
    let Some(rest) = word.strip_prefix(stem) else {
        // `adjusting` of `adjust`, `making` of `make`, `cancelled` of `cancel`, `paid` of `pay`.
        let Some(root) = stem.strip_suffix('e').or_else(|| stem.strip_suffix('y')) else {
            return false;
        };
        return root.len() >= 2
            && word.strip_prefix(root).is_some_and(|rest| {
                matches!(rest, "ing" | "ed" | "ation" | "ied" | "ies" | "id" | "ion")
            });
    };
    matches!(
        rest,
        "" | "s"
            | "es"
            | "d"
            | "ed"
            | "ing"
            | "ment"
            | "ments"
            | "ation"
            | "ations"
            | "r"
            | "er"
            | "led"
            | "ling"
            | "lation"
            | "ted"
            | "ting"
            | "ped"
            | "ping"
            | "ded"
            | "ding"
    )
}

/// The families a verb belongs to; a verb of no family is its own.
pub(crate) fn family(verb: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for list in VERBS {
        if list.contains(&verb) {
            found.extend(list.iter().copied());
        }
    }
    found
}

/// The words for the same thing.
pub(crate) fn things(noun: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for list in NOUNS {
        if list.contains(&noun) {
            found.extend(list.iter().copied());
        }
    }
    found
}

/// Whether a verb says so little that its thing must be named as well.
pub(crate) fn vague(verb: &str) -> bool {
    VAGUE.contains(&verb)
}

/// Words that pick nothing out.
pub(crate) fn empty(word: &str) -> bool {
    (word.len() < 3 && !word.bytes().any(|b| b.is_ascii_digit())) || EMPTY.contains(&word)
}

/// Words that ask for more than one.
pub(crate) fn several(word: &str) -> bool {
    SEVERAL.contains(&word)
}

/// Whether a field's name says that its value is not for others.
pub(crate) fn secret(field: &str) -> bool {
    let words = split_name(field);
    let all = words.join(" ");
    SECRET.iter().any(|secret| {
        all == *secret
            || all.starts_with(&format!("{secret} "))
            || all.ends_with(&format!(" {secret}"))
            || all.contains(&format!(" {secret} "))
    })
}

const VERBS: &[&[&str]] = &[
    &[
        "send", "email", "mail", "message", "write", "tell", "notify", "reply", "forward", "text",
        "dm", "respond", "answer", "inform", "share", "let", "ask", "contact", "deliver", "say",
        "greet", "invite", "remind",
    ],
    &[
        "pay",
        "send",
        "transfer",
        "refund",
        "reimburse",
        "wire",
        "remit",
        "settle",
        "repay",
        "return",
        "give",
        "charge",
        "donate",
        "split",
        "deposit",
        "lend",
        "buy",
        "purchase",
        "order",
    ],
    &[
        "create", "add", "make", "set", "schedule", "put", "save", "write", "new", "plan",
        "generate", "prepare", "start", "open", "build", "remind", "draft", "compose", "insert",
        "append", "record", "note", "register", "book", "invite", "organize", "organise",
        "arrange",
    ],
    &[
        "update",
        "change",
        "adjust",
        "modify",
        "edit",
        "set",
        "reset",
        "move",
        "reschedule",
        "rename",
        "fix",
        "replace",
        "correct",
        "increase",
        "decrease",
        "raise",
        "lower",
        "mark",
        "switch",
        "amend",
        "extend",
        "shift",
        "postpone",
        "append",
        "add",
        "improve",
        "configure",
    ],
    &[
        "delete",
        "remove",
        "cancel",
        "clear",
        "drop",
        "unsubscribe",
        "discard",
        "clean",
        "erase",
        "purge",
        "kick",
        "uninvite",
        "undo",
        "trash",
        "empty",
    ],
    &["reserve", "book", "reservation", "arrange"],
    &[
        "buy", "purchase", "order", "checkout", "cart", "pay", "shop", "get", "add", "place",
        "select", "choose", "pick", "want", "need",
    ],
    &["share", "give", "grant", "invite", "send", "permission"],
    &["invite", "add", "include", "join", "onboard"],
    &[
        "post", "publish", "upload", "share", "write", "send", "announce", "tweet", "comment",
        "reply", "put",
    ],
    &[
        "clone", "fork", "download", "copy", "checkout", "get", "fetch", "pull", "set",
    ],
    &[
        "open",
        "visit",
        "browse",
        "go",
        "navigate",
        "view",
        "read",
        "look",
        "see",
        "check",
        "show",
        "fetch",
        "get",
        "summarize",
        "summarise",
        "click",
        "search",
        "find",
        "load",
        "access",
        "use",
    ],
    &[
        "schedule",
        "reschedule",
        "move",
        "plan",
        "set",
        "book",
        "arrange",
        "postpone",
    ],
    &[
        "merge", "commit", "push", "release", "deploy", "publish", "submit", "approve",
    ],
    &["close", "resolve", "finish", "complete", "end"],
    &[
        "follow",
        "subscribe",
        "star",
        "like",
        "watch",
        "favorite",
        "favourite",
        "bookmark",
    ],
    &["login", "log", "sign", "register", "authenticate"],
    &[
        "run", "execute", "start", "launch", "test", "build", "install",
    ],
    &["play", "start", "turn", "switch", "set"],
];

const NOUNS: &[&[&str]] = &[
    &[
        "money",
        "payment",
        "transaction",
        "transfer",
        "amount",
        "refund",
        "order",
        "bill",
        "rent",
        "invoice",
        "fee",
        "difference",
        "subscription",
        "standing",
    ],
    &["email", "mail", "message", "inbox", "letter", "note"],
    &[
        "event",
        "calendar",
        "meeting",
        "appointment",
        "reminder",
        "remind",
        "invite",
        "invitation",
        "lunch",
        "dinner",
        "call",
        "check",
        "trip",
        "party",
    ],
    &[
        "participant",
        "attendee",
        "guest",
        "invite",
        "invitation",
        "people",
    ],
    &[
        "file",
        "document",
        "doc",
        "note",
        "list",
        "report",
        "spreadsheet",
        "pdf",
        "txt",
        "docx",
    ],
    &[
        "info",
        "information",
        "detail",
        "profile",
        "account",
        "address",
        "data",
        "setting",
        "preference",
    ],
    &["password", "passcode", "credential", "login"],
    &[
        "user",
        "account",
        "profile",
        "member",
        "person",
        "colleague",
    ],
    &["channel", "group", "room"],
    &["cart", "basket", "item", "product"],
    &["repository", "repo", "project", "code"],
    &["issue", "ticket", "bug"],
    &["pull", "request", "pr", "merge"],
    &[
        "webpage", "page", "website", "site", "web", "url", "link", "article", "blog",
    ],
    &["reservation", "booking", "table", "room", "ticket"],
];

const VAGUE: &[&str] = &[
    "create", "add", "make", "set", "put", "update", "change", "get", "new", "start", "delete",
    "remove", "edit", "modify", "write", "save", "open",
];

const EMPTY: &[&str] = &[
    "the",
    "and",
    "for",
    "you",
    "your",
    "this",
    "that",
    "with",
    "from",
    "they",
    "them",
    "their",
    "have",
    "has",
    "had",
    "are",
    "was",
    "were",
    "will",
    "would",
    "could",
    "should",
    "can",
    "please",
    "hey",
    "hello",
    "thanks",
    "thank",
    "what",
    "which",
    "who",
    "when",
    "where",
    "how",
    "why",
    "any",
    "all",
    "not",
    "but",
    "also",
    "then",
    "than",
    "there",
    "here",
    "about",
    "into",
    "just",
    "some",
    "its",
    "our",
    "his",
    "her",
    "she",
    "him",
    "one",
    "two",
    "get",
    "got",
    "let",
    "make",
    "sure",
    "like",
    "want",
    "need",
    "send",
    "give",
    "tell",
    "know",
    "see",
    "use",
    "add",
    "out",
    "off",
    "too",
    "very",
    "only",
    "own",
    "same",
    "such",
    "after",
    "before",
    "last",
    "next",
    "first",
    "new",
    "old",
    "day",
    "week",
    "month",
    "year",
    "today",
    "tomorrow",
    "time",
    "name",
    "list",
    "true",
    "false",
    "null",
    "none",
    "yes",
    "read",
    "check",
    "find",
    "show",
    "me",
    "my",
    "mine",
    "accordingly",
    "create",
    "update",
    "delete",
    "remove",
    "file",
    "email",
    "mail",
    "message",
    "event",
    "meeting",
    "calendar",
    "transaction",
    "payment",
    "account",
    "amount",
    "recipient",
    "sender",
    "subject",
    "date",
    "user",
    "com",
    "www",
    "http",
    "https",
];

const SEVERAL: &[&str] = &[
    "each",
    "every",
    "all",
    "everyone",
    "everybody",
    "both",
    "them",
    "their",
    "these",
    "those",
    "others",
    "other",
    "people",
    "following",
    "multiple",
    "several",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
];

const SECRET: &[&str] = &[
    "password",
    "passwd",
    "passcode",
    "passphrase",
    "pin",
    "pin code",
    "secret",
    "token",
    "api key",
    "apikey",
    "access key",
    "private key",
    "secret key",
    "credential",
    "credentials",
    "ssn",
    "social security",
    "passport",
    "passport number",
    "credit card",
    "card number",
    "cvv",
    "cvc",
    "id number",
    "tax id",
    "bank account",
    "account number",
    "otp",
    "verification code",
    "security code",
    "recovery code",
    "auth code",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_case_and_separators() {
        assert_eq!(
            split_name("sendMoney-to_IBAN"),
            ["send", "money", "to", "iban"]
        );
    }

    #[test]
    fn forms_of_a_verb_are_found_and_other_words_are_not() {
        for (word, stem) in [
            ("adjusting", "adjust"),
            ("paid", "pay"),
            ("scheduled", "schedule"),
            ("cancelled", "cancel"),
            ("payments", "pay"),
            ("reservation", "reserve"),
            ("making", "make"),
        ] {
            assert!(is_form(word, stem), "{word} {stem}");
        }
        for (word, stem) in [
            ("sender", "sand"),
            ("posterior", "post"),
            ("addiction", "add"),
        ] {
            assert!(!is_form(word, stem), "{word} {stem}");
        }
    }

    #[test]
    fn a_field_whose_name_says_so_is_secret() {
        assert!(secret("Passport Number") && secret("credit_card_number") && secret("apiKey"));
        assert!(!secret("spinning") && !secret("name") && !secret("id"));
    }
}
