//! Fills a store with consumed acts.
//!
//! The fast path, and its honesty: one act is taken through the gate itself; then its rows are copied in one big
//! transaction straight into the tables, under ids, nonces and record places that lie before it in time, as those of
//! older acts do. So the tables are as large and as deep as after so many real acts, and nothing else is pretended.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::tour::lab::{Fault, at};

/// Copies the newest consumed act of the store `rows` times.
pub(super) fn fill(path: &Path, rows: u64) -> Result<(), Fault> {
    let mut connection = Connection::open(path).map_err(at("store"))?;
    let transaction = connection.transaction().map_err(at("fill"))?;
    let columns = columns(&transaction)?;
    let copy = format!(
        "INSERT INTO acts ({0}) SELECT {1} FROM acts WHERE id = (SELECT max(id) FROM acts)",
        columns.join(", "),
        columns
            .iter()
            .map(|column| match column.as_str() {
                "id" => "?1",
                "nonce" => "?2",
                "holder" => "?3",
                other => other,
            })
            .collect::<Vec<_>>()
            .join(", ")
    );
    {
        let mut acts = transaction.prepare(&copy).map_err(at("fill acts"))?;
        let mut used = transaction
            .prepare("INSERT INTO used (holder, count) VALUES (?1, ?2)")
            .map_err(at("fill nonces"))?;
        let holder = id(0, 1);
        for n in 1..=rows {
            let count = i64::try_from(n).map_err(at("fill"))?;
            acts.execute(params![id(1, n), count, holder])
                .map_err(at("fill acts"))?;
            used.execute(params![holder, count])
                .map_err(at("fill nonces"))?;
        }
    }
    let lines = i64::try_from(rows.saturating_mul(2)).map_err(at("fill"))?;
    transaction
        .execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
             INSERT INTO record (idx, leaf, bytes)
             SELECT last.idx + n.i, last.leaf, last.bytes
             FROM n, (SELECT * FROM record ORDER BY idx DESC LIMIT 1) AS last",
            [lines],
        )
        .map_err(at("fill record"))?;
    transaction
        .execute(
            "UPDATE counts SET n = n + ?1 WHERE state =
             (SELECT state FROM acts WHERE id = (SELECT max(id) FROM acts))",
            [i64::try_from(rows).map_err(at("fill"))?],
        )
        .map_err(at("fill counts"))?;
    transaction.commit().map_err(at("fill"))?;
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(at("checkpoint"))
}

fn columns(connection: &Connection) -> Result<Vec<String>, Fault> {
    let mut statement = connection
        .prepare("SELECT name FROM pragma_table_info('acts') ORDER BY cid")
        .map_err(at("fill"))?;
    let names = statement
        .query_map([], |row| row.get(0))
        .map_err(at("fill"))?;
    names.collect::<Result<_, _>>().map_err(at("fill"))
}

/// An id that lies long before every real one: the time part of a UUIDv7 is its first 48 bits.
fn id(kind: u8, n: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[0] = kind;
    id[6] = 0x70;
    id[8..].copy_from_slice(&n.to_be_bytes());
    id[8] = 0x80 | (id[8] & 0x3f);
    id
}
