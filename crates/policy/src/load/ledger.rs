//! The `[ledger]` table.

use super::read::{Reader, Section};
use crate::ledger::{Ledger, Witness};

pub(super) fn ledger(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Ledger {
    let Some(section) = reader.table(top, "ledger", &["anchor_file", "witness"]) else {
        return Ledger::default();
    };
    let mut ledger = Ledger {
        anchor_file: reader.text(&section, "anchor_file"),
        ..Ledger::default()
    };
    for witness in reader.tables(&section, "witness", &["url", "key"]) {
        let url = reader.required(&witness, "url");
        let key = reader.required(&witness, "key");
        if let (Some(url), Some(key)) = (url, key) {
            let name = witness.name().to_owned();
            ledger.witness.insert(name, Witness { url, key });
        }
    }
    ledger
}
