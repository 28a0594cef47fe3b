//! Whether acts need a consent record (draft §4.5, PROFILE §11): the `[consent]` table.

use serde::{Deserialize, Serialize};

/// What is asked of a session's authorization context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsentRule {
    /// Without a consent that covers it and is in time, an act is EF-017.
    pub(crate) required: bool,
}
