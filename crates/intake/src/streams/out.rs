//! Where sealed blocks wait for whoever drains them; it gives them their ordinals and holds the stream's bounds.

use std::collections::{HashSet, VecDeque};

use lychgate_core::json::Value;

use super::Limits;
use super::block::{Block, Content};
use super::reason::Reason;

#[derive(Debug)]
pub(super) struct Out {
    limits: Limits,
    ready: VecDeque<Block>,
    next: u64,
    refusals: u64,
    /// Content bytes taken so far.
    bytes: usize,
    /// Blocks begun so far.
    begun: usize,
    /// Ids that blocks were begun with.
    ids: HashSet<String>,
}

impl Out {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ready: VecDeque::new(),
            next: 0,
            refusals: 0,
            bytes: 0,
            begun: 0,
            ids: HashSet::new(),
        }
    }

    pub(super) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Another block begins.
    pub(super) fn begin(&mut self) -> Result<(), Reason> {
        self.begun += 1;
        if self.begun > self.limits.blocks {
            return Err(Reason::TooLarge);
        }
        Ok(())
    }

    /// So many bytes of content are kept.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<(), Reason> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.message_bytes {
            return Err(Reason::TooLarge);
        }
        Ok(())
    }

    /// Whether an id is new. An empty one says nothing.
    pub(super) fn is_new_id(&mut self, id: &str) -> bool {
        id.is_empty() || self.ids.insert(id.to_owned())
    }

    pub(super) fn push(&mut self, content: Content, replay: Option<Value>) {
        let refused = matches!(content, Content::Refused(_));
        self.refusals += u64::from(refused);
        self.ready.push_back(Block {
            ordinal: self.next,
            content,
            replay: replay.filter(|_| !refused),
        });
        self.next += 1;
    }

    pub(super) fn refuse(&mut self, reason: Reason) {
        self.push(Content::Refused(reason), None);
    }

    pub(super) const fn refusals(&self) -> u64 {
        self.refusals
    }

    pub(super) fn next(&mut self) -> Option<Block> {
        self.ready.pop_front()
    }
}
