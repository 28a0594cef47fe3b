//! Where every word and every atom of the record stands. Grows only; has bounds; says when it could not hold all.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use lychgate_core::act::SourceType;

use crate::atom::Atom;
use crate::fold::{Folded, words};
use crate::scan::scan;
use crate::session::Writer;

/// A piece of content with one source: a message, or one leaf of a tool's result.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Which entry of the record.
    pub(crate) entry: u32,
    pub(crate) source: SourceType,
    pub(crate) writer: Writer,
    /// The record of a result that it is a field of.
    pub(crate) record: Option<u32>,
    /// The JSON pointer into the result; empty for a text.
    pub(crate) pointer: Box<str>,
    /// One value of a structured result, not running text.
    pub(crate) leaf: bool,
    pub(crate) tokens: (u32, u32),
}

#[derive(Clone, Copy)]
pub(crate) struct Token {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Where it began before folding, within its segment.
    pub(crate) from: u32,
    previous: u32,
}

/// Where something was found: a segment, and the first and last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) segment: u32,
    pub(crate) first: u32,
    pub(crate) last: u32,
}

#[derive(Clone, Copy, Default)]
struct Head {
    last: u32,
    count: u32,
}

#[derive(Default)]
pub(crate) struct Index {
    text: String,
    tokens: Vec<Token>,
    heads: HashMap<u64, Head, BuildHasherDefault<Same>>,
    pub(crate) segments: Vec<Segment>,
    atoms: HashMap<Atom, Vec<Hit>>,
    atom_count: usize,
    pub(crate) overflow: bool,
}

impl Index {
    /// Adds a segment; false when it does not fit.
    pub(crate) fn add(
        &mut self,
        folded: &Folded,
        mut segment: Segment,
        bytes: usize,
        atoms: usize,
    ) -> bool {
        if self.text.len() + folded.text.len() > bytes.min(u32::MAX as usize / 2) {
            self.overflow = true;
            return false;
        }
        let base = self.text.len();
        self.text.push_str(&folded.text);
        // Nothing runs on from one segment into the next.
        self.text.push('\n');
        let first = self.tokens.len();
        let (tokens, heads, text) = (&mut self.tokens, &mut self.heads, &folded.text);
        words(text, |start, end| {
            let at = small(tokens.len());
            let head = heads
                .entry(hash(&text.as_bytes()[start..end]))
                .or_insert(Head {
                    last: NONE,
                    count: 0,
                });
            tokens.push(Token {
                start: small(base + start),
                end: small(base + end),
                from: folded.from(start),
                previous: head.last,
            });
            head.last = at;
            head.count += 1;
        });
        segment.tokens = (small(first), small(self.tokens.len()));
        let number = small(self.segments.len());
        self.segments.push(segment);
        self.note_atoms(&folded.text, base, number, atoms);
        true
    }

    fn note_atoms(&mut self, folded: &str, base: usize, segment: u32, most: usize) {
        let (tokens, atoms) = (&self.tokens, &mut self.atoms);
        let range = self.segments[segment as usize].tokens;
        let mine = &tokens[range.0 as usize..range.1 as usize];
        let (count, overflow) = (&mut self.atom_count, &mut self.overflow);
        scan(folded, &mut |atom, start, end| {
            if *count >= most {
                *overflow = true;
                return;
            }
            let before =
                |at: usize| mine.partition_point(|token| (token.start as usize) < base + at);
            let (first, after) = (before(start), before(end));
            if after > first {
                *count += 1;
                atoms.entry(atom).or_default().push(Hit {
                    segment,
                    first: range.0 + small(first),
                    last: range.0 + small(after) - 1,
                });
            }
        });
    }

    /// Where an atom stands.
    pub(crate) fn atom(&self, atom: &Atom) -> &[Hit] {
        self.atoms.get(atom).map_or(&[], Vec::as_slice)
    }

    /// Where a run of words stands, the latest first. False when there were too many places to look at all of them.
    pub(crate) fn phrase(&self, folded: &str, each: &mut dyn FnMut(Hit)) -> bool {
        let mut parts = Vec::new();
        words(folded, |start, end| parts.push(&folded[start..end]));
        let counted = parts.iter().enumerate().map(|(at, word)| {
            let head = self.heads.get(&hash(word.as_bytes())).copied();
            (at, head.unwrap_or_default())
        });
        let Some((pivot, head)) = counted.min_by_key(|(_, head)| head.count) else {
            return true;
        };
        if head.count == 0 {
            return true;
        }
        let (mut at, mut steps) = (head.last, 0);
        while at != NONE {
            steps += 1;
            if steps > CHAIN {
                return false;
            }
            let token = &self.tokens[at as usize];
            if let Some(first) = (at as usize).checked_sub(pivot)
                && self.matches(first, &parts)
            {
                let segment = self.segment_of(small(first));
                let last = small(first + parts.len() - 1);
                if last < self.segments[segment as usize].tokens.1 {
                    each(Hit {
                        segment,
                        first: small(first),
                        last,
                    });
                }
            }
            at = token.previous;
        }
        true
    }

    fn matches(&self, first: usize, parts: &[&str]) -> bool {
        self.tokens
            .get(first..first + parts.len())
            .is_some_and(|tokens| {
                tokens
                    .iter()
                    .zip(parts)
                    .all(|(token, part)| self.word(token) == *part)
            })
    }

    fn segment_of(&self, token: u32) -> u32 {
        small(
            self.segments
                .partition_point(|segment| segment.tokens.0 <= token)
                .saturating_sub(1),
        )
    }

    fn word(&self, token: &Token) -> &str {
        self.text
            .get(token.start as usize..token.end as usize)
            .unwrap_or_default()
    }

    pub(crate) fn token(&self, at: u32) -> Option<Token> {
        self.tokens.get(at as usize).copied()
    }

    /// The words of a range.
    pub(crate) fn range(&self, first: u32, end: u32) -> impl Iterator<Item = &str> {
        let tokens = self.tokens.get(first as usize..end as usize);
        tokens
            .unwrap_or_default()
            .iter()
            .map(|token| self.word(token))
    }

    /// The folded text from one word to another.
    pub(crate) fn text_of(&self, first: u32, end: u32) -> Option<&str> {
        let start = self.tokens.get(first as usize)?.start as usize;
        let last = self.tokens.get((end as usize).checked_sub(1)?)?.end as usize;
        self.text.get(start..last)
    }

    /// The words round a hit, within its segment.
    pub(crate) fn around(&self, hit: Hit, reach: u32) -> impl Iterator<Item = &str> {
        let (first, end) = self.segments[hit.segment as usize].tokens;
        self.range(
            hit.first.saturating_sub(reach).max(first),
            hit.last.saturating_add(reach + 1).min(end),
        )
    }

    /// Whether a hit is all there is in its segment.
    pub(crate) fn whole(&self, hit: Hit) -> bool {
        let segment = &self.segments[hit.segment as usize];
        segment.leaf && segment.tokens == (hit.first, hit.last + 1)
    }
}

/// FNV-1a over eight bytes at a time: only spreads; what is found is compared in full, and a chain has a bound.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk
            .iter()
            .rev()
            .fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    let rest = chunks
        .remainder()
        .iter()
        .rev()
        .fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    hash = (hash.rotate_left(5) ^ rest).wrapping_mul(0x517c_c1b7_2722_0a95);
    hash ^ hash >> 32
}

/// The key is a hash already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A place in the record; the bounds keep it small.
fn small(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

const NONE: u32 = u32::MAX;
/// How many places of one word are looked at.
const CHAIN: usize = 4096;
