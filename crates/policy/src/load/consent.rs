//! The `[consent]` table.

use super::read::{Reader, Section};
use crate::consent::ConsentRule;

pub(super) fn consent(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> ConsentRule {
    let Some(section) = reader.table(top, "consent", &["required"]) else {
        return ConsentRule::default();
    };
    ConsentRule {
        required: reader.flag(&section, "required").unwrap_or(false),
    }
}
