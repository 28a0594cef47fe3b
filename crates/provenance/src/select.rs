//! Which record of a result the user's words pick: the one whose fields they name best, when it is one alone. Only
//! fields that no outsider writes are looked at, so nobody can put himself forward by a title.

use crate::atom::Kind;
use crate::scan::scan;
use crate::session::{Session, Writer};
use crate::words;

/// The records of one list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) records: Vec<u32>,
    pub(crate) selected: Option<u32>,
}

impl Session {
    /// Looks again at every group, after the user said something.
    pub(crate) fn redo_selection(&mut self) {
        for group in 0..self.groups.len() {
            self.select(group);
        }
    }

    pub(crate) fn select(&mut self, group: usize) {
        let (mut best, mut score, mut tie) = (None, 0, false);
        for record in &self.groups[group].records {
            let here = self.score(*record);
            if here > score {
                (best, score, tie) = (Some(*record), here, false);
            } else if here == score {
                tie = true;
            }
        }
        self.groups[group].selected = if tie { None } else { best };
    }

    fn score(&self, record: u32) -> u32 {
        let segments = self.record_segments[record as usize].iter();
        let mut seen = Vec::new();
        let mut score = 0;
        for segment in segments.map(|at| &self.index.segments[*at as usize]) {
            let (first, end) = segment.tokens;
            if segment.writer == Writer::Others || end - first > LONGEST_FIELD {
                continue;
            }
            let text = self.index.range(first, end).collect::<Vec<_>>();
            for word in &text {
                let stem = words::singular(word);
                let named = self.user_words.contains(*word) || self.user_words.contains(&stem);
                let number = word.bytes().all(|b| b.is_ascii_digit());
                if named && !number && !words::empty(word) && !seen.contains(&stem) {
                    score += 1;
                    seen.push(stem);
                }
            }
            score += self.atoms_named(segment.tokens);
        }
        score
    }

    /// Atoms of a field that the user named.
    fn atoms_named(&self, (first, end): (u32, u32)) -> u32 {
        let Some(text) = self.index.text_of(first, end) else {
            return 0;
        };
        let mut score = 0;
        scan(text, &mut |atom, _, _| {
            let yearless = match atom.kind {
                Kind::Date => atom
                    .text
                    .get(4..)
                    .map(|rest| crate::atom::Atom::new(Kind::Date, format!("-{rest}"))),
                _ => None,
            };
            let named = self.user_atoms.contains(&atom)
                || yearless.is_some_and(|day| self.user_atoms.contains(&day));
            score += if named { 2 } else { 0 };
        });
        score
    }

    /// Whether a record is the one that the user's words pick in its group.
    pub(crate) fn picked(&self, record: u32) -> bool {
        let group = self.record_group.get(record as usize);
        group.is_some_and(|group| self.groups[*group as usize].selected == Some(record))
    }
}

/// A longer field is a text: it names everything.
const LONGEST_FIELD: u32 = 24;
