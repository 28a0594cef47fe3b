//! What is told of the ledger.

use lychgate_core::json;
use serde::{Deserialize, Serialize};

use super::Bytes;

/// The log, as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerView {
    /// The log's name, which its heads bear.
    pub origin: String,
    /// How many records.
    pub size: u64,
    /// The newest signed head, a note; absent while there is no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub head: Option<String>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordLine {
    /// Its number, from 0.
    pub index: u64,
    /// The receipt's exact bytes; absent when they were archived and dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub bytes: Option<Bytes>,
    /// Its leaf hash as kept, 32 bytes.
    pub leaf: Bytes,
}

/// The most records in one answer.
pub const MOST_RECORDS: u32 = 256;
/// The most heads in one answer.
pub const MOST_HEADS: u32 = 1024;
