//! What is worth a line about the anchor while the gate runs.

use std::sync::Arc;

use lychgate_core::Code;

use crate::gate::Gate;

/// Something about the anchor that must not pass silently. Each is a receipt of kind `noted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorNote {
    /// There was none when the gate started, and this was not its first start.
    Missing,
    /// It could not be read when the gate started.
    Unreadable,
    /// It cannot be written; said once, until it can be again.
    Unwritable,
    /// A witness has cosigned a record that this one does not go on from.
    Contradicted,
    /// A witness shows a head that no known key of this log signed, or there is one beside the anchor.
    Unproven,
    /// A witness does not answer; said once, until it does again.
    Silent,
}

impl AnchorNote {
    /// Its phrase in the receipt.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Missing => "anchor: missing at start; a new one begins here",
            Self::Unreadable => "anchor: cannot be read at start; nothing was compared",
            Self::Unwritable => "anchor: cannot be written",
            Self::Contradicted => {
                "witness: has cosigned a record that this one does not go on from"
            }
            Self::Unproven => {
                "witness: a head at start is not proven to be of this record; nothing follows"
            }
            Self::Silent => "witness: does not answer",
        }
    }
}

impl Gate {
    /// Records it.
    ///
    /// # Errors
    /// EF-080, EF-081 when the store cannot answer.
    pub async fn note_anchor(self: &Arc<Self>, note: AnchorNote) -> Result<(), Code> {
        self.commit_noted(note.phrase().to_string()).await
    }
}
