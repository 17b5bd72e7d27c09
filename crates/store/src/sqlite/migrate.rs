//! Brings a file to the schema that this program knows, one version after the other, each in one transaction.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use drumtower_core::model::{Meta, Retention, SegmentId, WallMs};
use rusqlite::{Connection, OptionalExtension, params};

use super::{Options, backup, rollups, schema};
use crate::{Error, failpoint};

pub fn run(conn: &mut Connection, path: &Path, options: &Options) -> Result<(), Error> {
    let found: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > schema::KNOWN {
        return Err(Error::Newer {
            found,
            known: schema::KNOWN,
        });
    }
    for (version, statements) in (1..).zip(schema::MIGRATIONS) {
        if version > found {
            migrate(conn, version, statements, options)?;
        }
    }
    agree(&meta(conn)?, path)
}

/// Makes a backup in the data directory if the schema is older than ours: the way back from an upgrade.
pub fn back_up(conn: &Connection, directory: &Path) -> Result<(), Error> {
    let found: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found == 0 || found >= schema::KNOWN {
        return Ok(());
    }
    let newest = conn
        .query_row(
            "SELECT id, seq FROM session ORDER BY id DESC LIMIT 1",
            [],
            |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)),
        )
        .optional()?;
    let (session, seq) = newest.unwrap_or((0, 0));
    match backup::before_upgrade(directory, (found, session, seq)) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::NotUpgraded {
            found,
            known: schema::KNOWN,
            why: error.to_string(),
        }),
    }
}

/// A file without tables is ours to fill; one with tables must carry our mark.
pub fn refuse_foreign(conn: &Connection, path: &Path) -> Result<(), Error> {
    let foreign = |why: &str| {
        let path = path.display();
        Error::Corrupt(format!(
            "{path} is not a Drumtower store ({why}): choose another directory with --data"
        ))
    };
    let mark = conn.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0));
    let mark = mark.map_err(|error| match Error::from(error) {
        Error::Corrupt(text) => foreign(&text),
        other => other,
    })?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if mark == schema::APPLICATION_ID || (mark == 0 && tables == 0) {
        Ok(())
    } else {
        Err(foreign("its application id is another one"))
    }
}

fn migrate(
    conn: &mut Connection,
    version: u32,
    statements: &[&str],
    options: &Options,
) -> Result<(), Error> {
    let transaction = conn.transaction()?;
    for statement in statements {
        transaction.execute(statement, [])?;
        failpoint::hit("in_migration");
    }
    if version == 1 {
        fill(&transaction, options)?;
    }
    transaction.execute(
        "UPDATE meta SET schema_version = ?1, oldest_server = ?2",
        params![version, schema::OLDEST_SERVER.min(version)],
    )?;
    transaction.pragma_update(None, "application_id", schema::APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)?;
    failpoint::hit("in_migration");
    transaction.commit()?;
    failpoint::hit("in_migration");
    Ok(())
}

/// The rows that exist from the beginning.
fn fill(conn: &Connection, options: &Options) -> Result<(), Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Error::Io(format!("no randomness: {error}")))?;
    let cluster = format!("{:016x}", u64::from_le_bytes(bytes));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    conn.execute(
        "INSERT INTO meta VALUES(1, ?1, 1, 1, ?2, ?3, ?4)",
        params![
            cluster,
            SegmentId::COUNT,
            options.tz_version,
            i64::try_from(now).unwrap_or(i64::MAX)
        ],
    )?;
    let rows = i64::try_from(options.bucket_rows.max(1)).unwrap_or(i64::MAX);
    for class in 0..Retention::ALL.len() {
        conn.execute(
            "INSERT INTO class VALUES(?1, ?2, 0, 0, -1, -1)",
            params![class as i64, rows],
        )?;
    }
    conn.execute("INSERT INTO key_state VALUES(1, ?1, 0, 0, -1)", [rows])?;
    rollups::Progress::default().save(conn)
}

pub fn meta(conn: &Connection) -> Result<Meta, Error> {
    let mut select = conn.prepare_cached(
        "SELECT cluster, schema_version, oldest_server, segment_count, tz_version, created FROM meta WHERE one = 1",
    )?;
    let row = select.query_row([], |row| {
        Ok(Meta {
            cluster: row.get(0)?,
            schema_version: row.get(1)?,
            oldest_server: row.get(2)?,
            segment_count: row.get(3)?,
            tz_version: row.get(4)?,
            created: WallMs(row.get(5)?),
        })
    })?;
    Ok(row)
}

fn agree(meta: &Meta, path: &Path) -> Result<(), Error> {
    if meta.oldest_server > schema::KNOWN {
        return Err(Error::Newer {
            found: meta.oldest_server,
            known: schema::KNOWN,
        });
    }
    if meta.segment_count != SegmentId::COUNT {
        let (path, found, known) = (path.display(), meta.segment_count, SegmentId::COUNT);
        return Err(Error::Corrupt(format!(
            "{path} has {found} segments, this program works with {known}"
        )));
    }
    Ok(())
}
