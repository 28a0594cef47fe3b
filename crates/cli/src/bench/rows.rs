//! Fills a store with consumed acts.
//!
//! The fast path, and its honesty: one act is taken through the gate itself; then its rows are copied in one big
//! transaction straight into the tables, under ids, nonces and record places that lie before it in time, as those of
//! older acts do. So the tables are as large and as deep as after so many real acts, and nothing else is pretended.

use std::path::Path;

use lychgate_ledger::{Frontier, LeafHash};
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
    grow_tree(&transaction, lines)?;
    transaction.commit().map_err(at("fill"))?;
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(at("checkpoint"))
}

/// The tree over the record grows by the copied lines, as the store's writer would have grown it. The next group signs a
/// head over all of it.
fn grow_tree(connection: &Connection, lines: i64) -> Result<(), Fault> {
    let (tree, leaf): (Vec<u8>, [u8; 32]) = connection
        .query_row(
            "SELECT head.frontier, record.leaf FROM head, record WHERE head.id = 1
             ORDER BY record.idx DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(at("fill tree"))?;
    let mut tree = Frontier::from_bytes(&tree).map_err(at("fill tree"))?;
    let mut insert = connection
        .prepare("INSERT INTO nodes (at, hash) VALUES (?1, ?2)")
        .map_err(at("fill tree"))?;
    for _ in 0..lines {
        let mut made = Vec::new();
        tree.append_with(LeafHash(leaf), |node, hash| {
            if node.level() > 0 && node.level() % 8 == 0 {
                made.push((node, *hash));
            }
        });
        for (node, hash) in made {
            let index = i64::try_from(node.index()).map_err(at("fill tree"))?;
            let place = i64::from(node.level() / 8) << 56 | index;
            insert
                .execute(params![place, hash])
                .map_err(at("fill tree"))?;
        }
    }
    connection
        .execute(
            "UPDATE head SET frontier = ?1 WHERE id = 1",
            [tree.to_bytes()],
        )
        .map(drop)
        .map_err(at("fill tree"))
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
