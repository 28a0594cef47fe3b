//! Opening the file: its mode, its version, and the settings durability rests on.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::schema;
use super::sync::Log;
use crate::outcome::StoreFault;

/// The one connection that writes, on a file that is ours and of our version, and its log, which is ours to sync.
pub(super) fn writer(path: &Path) -> Result<(Connection, Log), StoreFault> {
    let refused = |reason: String| StoreFault::Open {
        path: path.display().to_string(),
        reason,
    };
    prepare_file(path).map_err(|error| refused(error.to_string()))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sql = |error: rusqlite::Error| refused(error.to_string());
    let mut connection = Connection::open_with_flags(path, flags).map_err(sql)?;
    settle_version(&mut connection, &refused)?;
    settings(&connection).map_err(sql)?;
    let mode: String = pragma(&connection, "journal_mode").map_err(sql)?;
    let synchronous: i64 = pragma(&connection, "synchronous").map_err(sql)?;
    if mode != "wal" || synchronous != SYNCHRONOUS_NORMAL {
        return Err(refused(format!(
            "durable mode refused: `{mode}`, `{synchronous}`"
        )));
    }
    // The names of the files must survive too. The log, which was just opened or made, is gone and made again between
    // runs, and SQLite takes no notice when its own sync of the folder fails.
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|dir| dir.sync_all());
    synced.map_err(|error| refused(error.to_string()))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let log = Log::open(path).map_err(|error| refused(error.to_string()))?;
    Ok((connection, log))
}

/// A connection that reads a file of ours and of our version, without making or changing one.
pub(super) fn reading(path: &Path) -> Result<Connection, StoreFault> {
    let refused = |reason: String| StoreFault::Open {
        path: path.display().to_string(),
        reason,
    };
    let sql = |error: rusqlite::Error| refused(error.to_string());
    let connection = reader(path).map_err(sql)?;
    let application: i64 = pragma(&connection, "application_id").map_err(sql)?;
    let version: i64 = pragma(&connection, "user_version").map_err(sql)?;
    known(application, version, &refused)?;
    Ok(connection)
}

/// One connection that reads.
pub(super) fn reader(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Makes the file for its owner alone, or takes everybody else's rights on it away.
fn prepare_file(path: &Path) -> std::io::Result<()> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path)?;
            if !found.is_file() {
                return Err(std::io::Error::other("not a regular file"));
            }
            if found.permissions().mode() & 0o777 != OWNER_ONLY {
                fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY))?;
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Makes the tables in an empty file; refuses a file that is another program's or another version's.
fn settle_version(
    connection: &mut Connection,
    refused: &dyn Fn(String) -> StoreFault,
) -> Result<(), StoreFault> {
    let sql = |error: rusqlite::Error| refused(error.to_string());
    connection.busy_timeout(BUSY).map_err(sql)?;
    let pages: i64 = pragma(connection, "page_count").map_err(sql)?;
    if pages == 0 {
        // WAL first: it cannot be changed inside a transaction, and the tables come whole or not at all.
        connection
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .and_then(|()| connection.pragma_update(None, "synchronous", "FULL"))
            .map_err(sql)?;
    }
    let application: i64 = pragma(connection, "application_id").map_err(sql)?;
    let version: i64 = pragma(connection, "user_version").map_err(sql)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(sql)?;
    if application == 0 && version == 0 && tables == 0 {
        return create(connection).map_err(sql);
    }
    known(application, version, refused)
}

/// Whether the file is this program's and of this version.
fn known(
    application: i64,
    version: i64,
    refused: &dyn Fn(String) -> StoreFault,
) -> Result<(), StoreFault> {
    if application != schema::APPLICATION_ID {
        return Err(refused("it is another program's database".to_owned()));
    }
    if version == schema::VERSION {
        Ok(())
    } else {
        Err(StoreFault::Version {
            found: version,
            known: schema::VERSION,
        })
    }
}

fn create(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(schema::CREATE)?;
    transaction.pragma_update(None, "application_id", schema::APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", schema::VERSION)?;
    transaction.commit()
}

fn settings(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // SQLite syncs the log before a checkpoint and when it begins anew; each commit is ours to sync.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Zeroes what is deleted on pages that are written anyway: sealed bytes do not linger in the file.
    connection.query_row("PRAGMA secure_delete = FAST", [], |_| Ok(()))?;
    connection.query_row(
        &format!("PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}"),
        [],
        |_| Ok(()),
    )?;
    connection.query_row(
        &format!("PRAGMA journal_size_limit = {WAL_BYTES}"),
        [],
        |_| Ok(()),
    )
}

fn pragma<T: rusqlite::types::FromSql>(
    connection: &Connection,
    name: &str,
) -> Result<T, rusqlite::Error> {
    connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
}

/// Read and write for the owner.
const OWNER_ONLY: u32 = 0o600;
/// How long to wait for a lock that only a foreign tool can hold.
const BUSY: Duration = Duration::from_secs(5);
/// Distinct statements; all of ours stay prepared.
const STATEMENTS: usize = 64;
const SYNCHRONOUS_NORMAL: i64 = 1;
/// The writer checkpoints at a commit that finds so many pages in the log. Measured at 64 in flight
/// (`tests/throughput.rs`): 300 and 1000 alike (p99 6-8 ms), 4000 as many acts but p99 14 ms.
const CHECKPOINT_PAGES: u32 = 1000;
/// The log is cut back to this after a checkpoint.
const WAL_BYTES: u32 = 64 << 20;
