//! What a change of the `[ledger]` table does.

use super::List;
use crate::ledger::Ledger;

/// What changes. Whoever keeps the heads is who could tell on the record: any other one, or one less, widens.
pub(super) fn changes(old: &Ledger, new: &Ledger, list: &mut List) {
    list.doubt("ledger anchor_file", &old.anchor_file, &new.anchor_file);
    list.doubt("ledger witnesses", &old.witness, &new.witness);
}
