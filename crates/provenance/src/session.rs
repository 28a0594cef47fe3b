//! The content record of one session: append-only, by channel, in memory, bounded (draft §3, §10).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use lychgate_core::act::SourceType;
use lychgate_core::json::Value;
use lychgate_core::{Digest, jcs};

use crate::atom::Atom;
use crate::decode;
use crate::fold::{self, Folded, fold};
use crate::index::{Index, Segment};
use crate::number::Decimal;
use crate::registry::Registries;
use crate::scan::{chunks, scan};
use crate::select::Group;
use crate::structured::Leaves;
use crate::words;

/// How much a session remembers.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of content.
    pub bytes: usize,
    /// Occurrences of atoms.
    pub atoms: usize,
    /// Values that must not leave.
    pub secrets: usize,
    /// Grants.
    pub grants: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            atoms: 1 << 20,
            secrets: 1024,
            grants: 4096,
        }
    }
}

/// Who can write a field of a tool's result, as the catalogue says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writer {
    /// The user.
    User,
    /// The service itself: an id, a date it set, a sender it authenticated.
    Service,
    /// Anybody; what nothing is said of.
    Others,
}

/// Where a result comes from, as the catalogue says.
#[derive(Clone, Debug)]
pub struct Origin {
    /// TOOL, RETRIEVAL, MEMORY or AGENT; anything higher counts as TOOL.
    pub source: SourceType,
    /// Writers by field name; `*` for every other field.
    pub fields: BTreeMap<String, Writer>,
    /// Fields that are secret besides those whose names say so.
    pub secrets: Vec<String>,
}

impl Default for Origin {
    fn default() -> Self {
        Self {
            source: SourceType::Tool,
            fields: BTreeMap::new(),
            secrets: Vec::new(),
        }
    }
}

impl Origin {
    fn writer(&self, field: &str) -> Writer {
        let named = self.fields.get(field).or_else(|| self.fields.get("*"));
        named.copied().unwrap_or(Writer::Others)
    }
}

/// A value of a result that is not for others.
pub(crate) struct Secret {
    /// Letters and digits only.
    pub(crate) compact: String,
    pub(crate) field: String,
}

/// What one session has seen.
pub struct Session {
    pub(crate) bounds: Bounds,
    pub(crate) index: Index,
    pub(crate) registries: Arc<Registries>,
    /// The user's words and atoms, in whatever place.
    pub(crate) user_words: HashSet<String>,
    pub(crate) user_atoms: HashSet<Atom>,
    pub(crate) groups: Vec<Group>,
    /// The group of each record.
    pub(crate) record_group: Vec<u32>,
    /// The segments of each record.
    pub(crate) record_segments: Vec<Vec<u32>>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) untrusted: bool,
    grants: HashSet<(String, String)>,
    effects: HashMap<String, u32>,
    spent: HashMap<String, Decimal>,
    entries: u32,
    trusted: Vec<Digest>,
}

impl Session {
    /// An empty record.
    #[must_use]
    pub fn new(bounds: Bounds, registries: Arc<Registries>) -> Self {
        Self {
            bounds,
            index: Index::default(),
            registries,
            user_words: HashSet::new(),
            user_atoms: HashSet::new(),
            groups: Vec::new(),
            record_group: Vec::new(),
            record_segments: Vec::new(),
            secrets: Vec::new(),
            untrusted: false,
            grants: HashSet::new(),
            effects: HashMap::new(),
            spent: HashMap::new(),
            entries: 0,
            trusted: Vec::new(),
        }
    }

    /// A message came by a channel. USER is for what the prompt channel delivered; other user-role text is RETRIEVAL.
    pub fn say(&mut self, source: SourceType, text: &str) {
        let entry = self.next_entry();
        if source.trusted() {
            let digest = Digest::sha256(text.as_bytes());
            self.trusted.push(digest);
            if source == SourceType::User {
                self.note_user(text);
            }
        } else {
            self.untrusted |= !text.trim().is_empty();
        }
        self.add(
            entry,
            source,
            Writer::Others,
            None,
            String::new(),
            false,
            text,
        );
        self.redo_selection();
    }

    /// A tool answered. Structured content is recorded field by field; else the text is.
    pub fn result(&mut self, origin: &Origin, text: &str, structured: Option<&Value>) {
        let entry = self.next_entry();
        let source = match origin.source.trusted() {
            true => SourceType::Tool,
            false => origin.source,
        };
        let parsed = match structured {
            Some(_) => None,
            None => crate::structured::lenient(text),
        };
        match structured.or(parsed.as_ref()) {
            Some(value) if matches!(value, Value::Object(_) | Value::Array(_)) => {
                self.fields(entry, source, origin, value);
            }
            _ => {
                self.untrusted |= !text.trim().is_empty();
                self.add(
                    entry,
                    source,
                    origin.writer(""),
                    None,
                    String::new(),
                    false,
                    text,
                );
            }
        }
    }

    fn fields(&mut self, entry: u32, source: SourceType, origin: &Origin, value: &Value) {
        let found = Leaves::of(value);
        self.index.overflow |= found.cut;
        self.untrusted |= found.cut;
        let (groups, records) = (self.groups.len(), self.record_group.len());
        for group in &found.groups {
            while self.groups.len() <= groups + group {
                self.groups.push(Group::default());
            }
            let record = small(self.record_group.len());
            self.groups[groups + group].records.push(record);
            self.record_group.push(small(groups + group));
            self.record_segments.push(Vec::new());
        }
        for leaf in found.leaves {
            let writer = origin.writer(leaf.field);
            if words::secret(leaf.field) || origin.secrets.iter().any(|name| name == leaf.field) {
                self.note_secret(leaf.field, &leaf.text);
            }
            self.untrusted |= writer == Writer::Others && leaf.text.parse::<f64>().is_err();
            let record = leaf.record.map(|record| small(records + record));
            let number = small(self.index.segments.len());
            let added = self.add(
                entry,
                source,
                writer,
                record,
                leaf.pointer,
                true,
                &leaf.text,
            );
            if let (true, Some(record)) = (added, record) {
                self.record_segments[record as usize].push(number);
            }
        }
        for group in groups..self.groups.len() {
            self.select(group);
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one segment's parts, named at each of three callers"
    )]
    fn add(
        &mut self,
        entry: u32,
        source: SourceType,
        writer: Writer,
        record: Option<u32>,
        pointer: String,
        leaf: bool,
        text: &str,
    ) -> bool {
        let segment = Segment {
            entry,
            source,
            writer,
            record,
            pointer: pointer.into_boxed_str(),
            leaf,
            tokens: (0, 0),
        };
        let hidden = if source.trusted() {
            Vec::new()
        } else {
            hidden(text)
        };
        let folded: Folded = fold(text);
        let (bytes, atoms) = (self.bounds.bytes, self.bounds.atoms);
        let added = self.index.add(&folded, segment.clone(), bytes, atoms);
        for text in hidden {
            // What was encoded has its parent's label.
            let part = Segment {
                leaf: false,
                record: None,
                writer: Writer::Others,
                ..segment.clone()
            };
            self.index.add(&fold(&text), part, bytes, atoms);
        }
        added
    }

    /// The user's words and atoms, which pick records. They are the user's however often and wherever they stand.
    fn note_user(&mut self, text: &str) {
        let text = fold(text).text;
        fold::words(&text, |start, end| {
            let word = &text[start..end];
            self.user_words.insert(words::singular(word));
            self.user_words.insert(word.to_owned());
        });
        scan(&text, &mut |atom, _, _| {
            self.user_atoms.insert(atom);
        });
    }

    fn note_secret(&mut self, field: &str, text: &str) {
        let compact = compact(text);
        if compact.len() < SHORTEST_SECRET {
            return;
        }
        if self.secrets.len() >= self.bounds.secrets {
            self.index.overflow = true;
            return;
        }
        self.secrets.push(Secret {
            compact,
            field: field.to_owned(),
        });
    }

    fn next_entry(&mut self) -> u32 {
        self.entries += 1;
        self.entries - 1
    }

    /// A person endorsed a value in a role for this session: it is worth as much as the user's own word there.
    pub fn grant(&mut self, role: &str, value: &str) {
        if self.grants.len() < self.bounds.grants {
            self.grants.insert((role.to_owned(), fold(value).text));
        }
    }

    /// Whether a value was endorsed in a role.
    #[must_use]
    pub fn granted(&self, role: &str, value: &str) -> bool {
        self.grants.contains(&(role.to_owned(), fold(value).text))
    }

    /// An act was let through: `key` is the function and what it acts on.
    pub fn effected(&mut self, key: &str) {
        *self.effects.entry(key.to_owned()).or_default() += 1;
    }

    /// How often an act with this key was let through.
    #[must_use]
    pub fn effects(&self, key: &str) -> u32 {
        self.effects.get(key).copied().unwrap_or(0)
    }

    /// Something of value went to somebody.
    pub fn spend(&mut self, payee: &str, amount: Decimal) {
        let payee = fold(payee).text;
        let sum = self.spent(&payee).plus(amount).unwrap_or(amount);
        self.spent.insert(payee, sum);
    }

    /// What went to somebody in this session.
    #[must_use]
    pub fn spent(&self, payee: &str) -> Decimal {
        let spent = self.spent.get(&fold(payee).text);
        spent.copied().unwrap_or(Decimal::ZERO)
    }

    /// Whether anything came in that an outsider could have written.
    #[must_use]
    pub fn untrusted(&self) -> bool {
        self.untrusted
    }

    /// Whether the record could not hold everything, so that nothing read from it is BOUND any more.
    #[must_use]
    pub fn overflowed(&self) -> bool {
        self.index.overflow
    }

    /// Digest of the chain of trusted instructions: SHA-256 over JCS of the list of their digests, in order.
    #[must_use]
    pub fn trusted_chain(&self) -> Option<Digest> {
        if self.trusted.is_empty() {
            return None;
        }
        let list = self
            .trusted
            .iter()
            .map(|one| Value::String(one.to_base64url()));
        Some(Digest::sha256(&jcs::to_bytes(&Value::Array(
            list.collect(),
        ))))
    }
}

impl std::fmt::Debug for Session {
    /// Never the content.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Session")
            .field("entries", &self.entries)
            .field("overflow", &self.index.overflow)
            .finish_non_exhaustive()
    }
}

/// What a text hides in percent, base64 or hex, bounded.
fn hidden(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    chunks(text, |start, end| {
        let chunk = &text[start..end];
        if chunk.len() >= 9 && found.len() < MOST_HIDDEN && decode::may_be_encoded(chunk) {
            found.extend(decode::decoded(chunk));
        }
    });
    found
}

/// Letters and digits of a folded text.
pub(crate) fn compact(text: &str) -> String {
    fold(text)
        .text
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}

pub(crate) fn small(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

const MOST_HIDDEN: usize = 64;
/// Shorter values stand in any text by chance.
const SHORTEST_SECRET: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn session(bounds: Bounds) -> Session {
        Session::new(bounds, Arc::new(Registries::default()))
    }

    fn service() -> Origin {
        Origin {
            fields: BTreeMap::from([("name".to_owned(), Writer::Service)]),
            ..Origin::default()
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let mut small = session(Bounds {
            bytes: 8,
            ..Bounds::default()
        });
        small.say(SourceType::User, "short");
        assert!(!small.overflowed());
        small.say(SourceType::Tool, "longer than it may be");
        assert!(small.overflowed());
    }

    #[test]
    fn a_result_with_too_many_leaves_is_not_silently_cut() {
        let mut session = session(Bounds::default());
        let list = format!("[{}1]", "1,".repeat(50_000));
        session.result(&Origin::default(), &list, None);
        assert!(session.overflowed() && session.untrusted());
    }

    #[test]
    fn the_users_words_pick_one_record_or_none() {
        let rows = r#"[{"name":"City Hub","text":"x"},{"name":"Good Night","text":"x"}]"#;
        for (said, picked) in [
            ("book the City Hub", [true, false]),
            ("City Hub or Good Night", [false, false]),
        ] {
            let mut session = session(Bounds::default());
            session.say(SourceType::User, said);
            session.result(&service(), rows, None);
            assert_eq!([session.picked(0), session.picked(1)], picked, "{said}");
        }
    }

    #[test]
    fn a_field_that_anybody_writes_puts_no_record_forward() {
        let mut session = session(Bounds::default());
        session.say(SourceType::User, "book the City Hub");
        session.result(
            &service(),
            r#"[{"name":"A","text":"City Hub"},{"name":"B","text":"x"}]"#,
            None,
        );
        assert!(!session.picked(0) && !session.picked(1));
    }

    #[test]
    fn a_grant_is_for_one_role() {
        let mut session = session(Bounds::default());
        session.grant("target", "Jane@Example.com");
        assert!(session.granted("target", "jane@example.com"));
        assert!(!session.granted("credential", "jane@example.com"));
    }
}
