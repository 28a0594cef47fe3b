//! Blocks that a provider names by their place in the message and seals one by one.

use std::collections::{BTreeMap, BTreeSet};

use lychgate_core::json::{Object, Value};

use super::Limits;
use super::arguments;
use super::block::Content;
use super::out::Out;
use super::reason::Reason;

/// A block that is not sealed yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The block in the provider's shape, as far as it came.
    pub(super) block: Object,
    /// The harness would execute it.
    pub(super) acts: bool,
    /// Whole arguments that came with the start.
    pub(super) given: Option<Value>,
    /// Pieces of the arguments' text.
    pub(super) json: String,
    /// Set once: it is no act any more, whatever else comes.
    pub(super) refused: Option<Reason>,
    /// It was stopped before any argument came, and may have been cut short there.
    doubtful: bool,
}

impl Draft {
    pub(super) fn refuse(&mut self, reason: Reason) {
        self.refused.get_or_insert(reason);
    }

    /// The arguments, of whichever source spoke.
    pub(super) fn arguments(&mut self, limits: &Limits) -> Result<Value, Reason> {
        if self.json.is_empty() {
            return arguments::from_value(self.given.take());
        }
        let said = arguments::from_text(&self.json, limits)?;
        match self.given.take() {
            Some(given) if given != said => Err(Reason::SourcesDisagree),
            _ => Ok(said),
        }
    }

    fn may_be_cut(&self) -> bool {
        self.acts && self.json.is_empty() && self.given.is_none() && self.refused.is_none()
    }
}

/// Makes of a stopped draft what it is.
pub(super) type Seal = fn(Draft, &Limits) -> (Content, Option<Value>);

#[derive(Debug)]
enum Entry {
    Open(Draft),
    Sealed(Content, Option<Value>),
}

/// The blocks by place. They leave in the order of their places; a place that was skipped holds back what is behind it
/// until the end of the message.
#[derive(Debug)]
pub(super) struct Indexed {
    seal: Seal,
    /// By place, and for refusals that have none of their own by when they came after the highest place.
    entries: BTreeMap<(u64, u32), Entry>,
    /// Every place below has left.
    floor: u64,
    used: BTreeSet<u64>,
    /// Places whose further pieces are refused already.
    swallowed: BTreeSet<u64>,
    /// A refusal speaks for the pieces that name no place.
    placeless: bool,
    tail: u32,
}

impl Indexed {
    pub(super) const fn new(seal: Seal) -> Self {
        Self {
            seal,
            entries: BTreeMap::new(),
            floor: 0,
            used: BTreeSet::new(),
            swallowed: BTreeSet::new(),
            placeless: false,
            tail: 0,
        }
    }

    pub(super) fn is_used(&self, index: u64) -> bool {
        self.used.contains(&index)
    }

    /// The first place after all that were named.
    pub(super) fn next_index(&self) -> u64 {
        self.used.last().map_or(0, |last| last.saturating_add(1))
    }

    /// How many blocks are open.
    pub(super) fn open(&self) -> usize {
        self.entries
            .values()
            .filter(|entry| matches!(entry, Entry::Open(draft) if !draft.doubtful))
            .count()
    }

    pub(super) fn start(
        &mut self,
        index: Option<u64>,
        draft: Draft,
        out: &mut Out,
    ) -> Result<(), Reason> {
        self.settle(None, out);
        let Some(index) = index else {
            self.placeless = true;
            return self.behind(Reason::IndexMissing, out);
        };
        if self.used.insert(index) {
            out.begin()?;
            self.entries.insert((index, 0), Entry::Open(draft));
            return Ok(());
        }
        // Two blocks on one place: neither is known when both are open; what was sealed stays.
        if let Some(entry @ Entry::Open(_)) = self.entries.get_mut(&(index, 0)) {
            *entry = Entry::Sealed(Content::Refused(Reason::IndexRepeated), None);
        }
        self.swallowed.insert(index);
        self.behind(Reason::IndexRepeated, out)
    }

    /// The open block that a piece belongs to; `None` when it belongs to none and that is accounted for.
    pub(super) fn draft(
        &mut self,
        index: Option<u64>,
        out: &mut Out,
    ) -> Result<Option<&mut Draft>, Reason> {
        let Some(index) = index else {
            self.placeless_piece(out)?;
            return Ok(None);
        };
        if self.swallowed.contains(&index) {
            return Ok(None);
        }
        let is_open =
            matches!(self.entries.get(&(index, 0)), Some(Entry::Open(draft)) if !draft.doubtful);
        if !is_open {
            self.swallowed.insert(index);
            if !self.used.insert(index) {
                self.behind(Reason::AfterSeal, out)?;
                return Ok(None);
            }
            out.begin()?;
            let refused = Content::Refused(Reason::NotStarted);
            self.entries
                .insert((index, 0), Entry::Sealed(refused, None));
            return Ok(None);
        }
        match self.entries.get_mut(&(index, 0)) {
            Some(Entry::Open(draft)) => Ok(Some(draft)),
            _ => Ok(None),
        }
    }

    /// The provider's seal.
    pub(super) fn stop(&mut self, index: Option<u64>, out: &mut Out) -> Result<(), Reason> {
        if let Some(draft) = self.draft(index, out)? {
            if draft.may_be_cut() {
                draft.doubtful = true;
            } else {
                let draft = std::mem::take(draft);
                self.sealed(index.unwrap_or_default(), draft, out);
            }
        }
        self.drain(out);
        Ok(())
    }

    /// What was stopped before any argument came is a call without arguments, unless the provider was cut short there.
    pub(super) fn settle(&mut self, cut: Option<Reason>, out: &mut Out) {
        while let Some((index, mut draft)) = self.entries.iter_mut().find_map(doubtful) {
            if let Some(reason) = cut {
                draft.refuse(reason);
            }
            self.sealed(index, draft, out);
            self.drain(out);
        }
    }

    /// The provider ended the message: what is open has no seal, and a place that was skipped stays empty.
    pub(super) fn end(&mut self, out: &mut Out) {
        self.settle(None, out);
        for (_, entry) in std::mem::take(&mut self.entries) {
            leave(entry, Reason::Unsealed, out);
        }
    }

    /// The stream broke off: what is open has no seal. What would have come on a skipped place is not known, so an act
    /// behind one has no ordinal that would still hold with the rest of the stream: it is none.
    pub(super) fn close(&mut self, reason: Reason, out: &mut Out) {
        let mut skipped = false;
        for ((index, _), entry) in std::mem::take(&mut self.entries) {
            skipped |= index > self.floor;
            self.floor = self.floor.max(index.saturating_add(1));
            match entry {
                Entry::Sealed(Content::Act(_), _) if skipped => out.refuse(reason),
                entry => leave(entry, reason, out),
            }
        }
    }

    fn sealed(&mut self, index: u64, draft: Draft, out: &Out) {
        let (content, replay) = match draft.refused {
            Some(reason) => (Content::Refused(reason), None),
            None => (self.seal)(draft, out.limits()),
        };
        self.entries
            .insert((index, 0), Entry::Sealed(content, replay));
    }

    /// A piece that names no place: with blocks open, nobody knows whose it is.
    fn placeless_piece(&mut self, out: &mut Out) -> Result<(), Reason> {
        let mut any = self.placeless;
        for entry in self.entries.values_mut() {
            if let Entry::Open(draft) = entry {
                draft.refuse(Reason::IndexMissing);
                any = true;
            }
        }
        self.placeless = true;
        if any {
            Ok(())
        } else {
            self.behind(Reason::IndexMissing, out)
        }
    }

    /// A refusal without a place of its own.
    fn behind(&mut self, reason: Reason, out: &mut Out) -> Result<(), Reason> {
        out.begin()?;
        self.tail = self.tail.saturating_add(1);
        let place = (self.used.last().copied().unwrap_or(0), self.tail);
        let refused = Entry::Sealed(Content::Refused(reason), None);
        self.entries.insert(place, refused);
        self.drain(out);
        Ok(())
    }

    fn drain(&mut self, out: &mut Out) {
        while let Some(first) = self.entries.first_entry() {
            let (index, tail) = *first.key();
            let is_next = if tail == 0 {
                index == self.floor
            } else {
                index < self.floor
            };
            if !is_next || matches!(first.get(), Entry::Open(_)) {
                return;
            }
            if let Entry::Sealed(content, replay) = first.remove() {
                out.push(content, replay);
                self.floor = self.floor.max(index.saturating_add(1));
            }
        }
    }
}

/// An entry as it is when nothing comes any more.
fn leave(entry: Entry, reason: Reason, out: &mut Out) {
    match entry {
        Entry::Open(draft) => out.refuse(draft.refused.unwrap_or(reason)),
        Entry::Sealed(content, replay) => out.push(content, replay),
    }
}

/// Takes a doubtful draft out of its entry.
fn doubtful((place, entry): (&(u64, u32), &mut Entry)) -> Option<(u64, Draft)> {
    match entry {
        Entry::Open(draft) if draft.doubtful => Some((place.0, std::mem::take(draft))),
        _ => None,
    }
}
