//! Brings a database to the schema that this program knows, in one transaction.
//!
//! Two servers may start on an empty database at once. There is no lock for it that every such database has, so the second
//! one fails on what the first has made, and looks again.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use drumtower_core::model::{Meta, SegmentId, WallMs};
use tokio_postgres::Row;

use super::connect::{Link, Runtime};
use super::schema::{KNOWN, MIGRATIONS, OLDEST_SERVER, SCHEMA};
use super::target::Target;
use super::{Look, Options, failure};
use crate::{Error, TableSize, failpoint};

/// Tries of somebody who finds that another is at it.
const TRIES: u32 = 20;

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version that was found; 0 when there were no tables.
    pub from: u32,
    pub to: u32,
}

/// Makes or updates the tables, and lets another role work on them.
pub fn migrate(target: &Target, grant_to: Option<&str>) -> Result<Migrated, Error> {
    let runtime = Runtime::start()?;
    let options = Options::default();
    let migrated = bring_up(&runtime, target, &options)?;
    if let Some(role) = grant_to {
        runtime.block_on(async {
            let link = Link::open(target, options.patience).await?;
            grant(&link, role).await
        })?;
    }
    Ok(migrated)
}

/// Opens what is there, made or updated if need be.
pub fn up_to_date(runtime: &Runtime, target: &Target, options: &Options) -> Result<(), Error> {
    bring_up(runtime, target, options).map(drop)
}

/// Refuses what a newer program has made and servers of this version may not write to.
pub fn check_version(meta: &Meta) -> Result<(), Error> {
    match meta.oldest_server > KNOWN {
        true => Err(Error::Newer {
            found: meta.schema_version.max(meta.oldest_server),
            known: KNOWN,
        }),
        false => Ok(()),
    }
}

fn agree(meta: &Meta, target: &Target) -> Result<(), Error> {
    check_version(meta)?;
    if meta.segment_count != SegmentId::COUNT {
        let (found, known) = (meta.segment_count, SegmentId::COUNT);
        return Err(Error::Corrupt(format!(
            "{target} has {found} segments, this program works with {known}"
        )));
    }
    Ok(())
}

fn bring_up(runtime: &Runtime, target: &Target, options: &Options) -> Result<Migrated, Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let tried = runtime.block_on(try_once(target, options));
        match tried {
            Err(Error::Busy(_) | Error::Invariant(_)) if tries < TRIES => {
                std::thread::sleep(Duration::from_millis(100));
            }
            other => return other,
        }
    }
}

async fn try_once(target: &Target, options: &Options) -> Result<Migrated, Error> {
    let link = Link::open(target, options.patience).await?;
    let there = meta_row(&link).await?;
    if let Some(meta) = &there {
        agree(meta, target)?;
    }
    let from = there.map_or(0, |meta| meta.schema_version);
    if from < KNOWN {
        let done = change(&link, from, options).await;
        done.map_err(|error| not_migrated(target, &error))?;
    }
    Ok(Migrated {
        from,
        to: from.max(KNOWN),
    })
}

/// What another server has just made is no fault, only a reason to look again.
fn not_migrated(target: &Target, error: &Failed) -> Error {
    match error {
        Failed::Sql(error) if failure::is_forbidden(error) => Error::Io(format!(
            "{target}: the role may not make tables ({error}): run `drumtower store migrate --store URL --grant ROLE` as a role that may"
        )),
        Failed::Sql(error) => {
            let code = error.code().map(|code| code.code().to_owned());
            let raced = [
                "23505", "42P06", "42P07", "42710", "42723", "40001", "40P01",
            ];
            match code.filter(|code| raced.contains(&code.as_str())) {
                Some(code) => Error::Busy(format!("another server makes the tables ({code})")),
                None => Error::Io(format!("{target}: the tables were not made: {error}")),
            }
        }
        Failed::Raced => Error::Busy("another server changes the tables".to_owned()),
        Failed::Other(why) => Error::Io(why.clone()),
    }
}

enum Failed {
    Sql(tokio_postgres::Error),
    /// Another server was faster.
    Raced,
    Other(String),
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

async fn change(link: &Link, found: u32, options: &Options) -> Result<(), Failed> {
    let client = link.client();
    client.batch_execute("BEGIN").await?;
    if found == 0 {
        let sql = format!("CREATE SCHEMA IF NOT EXISTS {SCHEMA}");
        client.batch_execute(&sql).await?;
    } else {
        let sql = "SELECT schema_version FROM meta FOR UPDATE";
        let row = client.query_one(sql, &[]).await?;
        if row.try_get::<_, i32>(0)? as u32 != found {
            return Err(Failed::Raced);
        }
        if is_too_old(found, OLDEST_SERVER) {
            let live = live_servers(link).await?;
            if !live.is_empty() {
                return Err(Failed::Other(still_in_use(found, &live)));
            }
        }
    }
    for (version, statements) in (1..).zip(MIGRATIONS) {
        if version <= found {
            continue;
        }
        for statement in *statements {
            client.batch_execute(statement).await?;
            failpoint::hit("in_migration");
        }
        if version == 1 {
            fill(link, options).await?;
        }
        let numbers: [i32; 2] = [version as i32, OLDEST_SERVER.min(version) as i32];
        let sql = "UPDATE meta SET schema_version = $1, oldest_server = $2";
        client.execute(sql, &[&numbers[0], &numbers[1]]).await?;
    }
    failpoint::hit("in_migration");
    client.batch_execute("COMMIT").await?;
    failpoint::hit("in_migration");
    Ok(())
}

/// Whether servers that know the schema that was found may not write to what it becomes.
fn is_too_old(found: u32, oldest_server: u32) -> bool {
    oldest_server > found
}

/// Servers whose session has not ended by the database's clock.
async fn live_servers(link: &Link) -> Result<Vec<String>, Failed> {
    let sql = "SELECT server, coalesce(address, '') FROM session
               WHERE NOT revoked AND expires > (extract(epoch FROM clock_timestamp()) * 1000)::bigint ORDER BY id";
    let rows = link.client().query(sql, &[]).await?;
    let name = |row: &Row| -> Result<String, Failed> {
        let (server, address): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        Ok(match address.is_empty() {
            true => format!("`{server}`"),
            false => format!("`{server}` at {address}"),
        })
    };
    rows.iter().map(name).collect()
}

fn still_in_use(found: u32, live: &[String]) -> String {
    format!(
        "the tables have schema version {found} and were not brought to {KNOWN}, because servers that know {found} cannot write to {KNOWN} and still work on them: stop {} first, and start this one then; a server that died is counted for three seconds more",
        live.join(", ")
    )
}

/// The row that exists from the beginning.
async fn fill(link: &Link, options: &Options) -> Result<(), Failed> {
    let (mut bytes, mut peer_key) = ([0; 8], [0; 32]);
    let drawn = getrandom::fill(&mut bytes).and_then(|()| getrandom::fill(&mut peer_key));
    drawn.map_err(|error| Failed::Other(format!("no randomness: {error}")))?;
    let cluster = format!("{:016x}", u64::from_le_bytes(bytes));
    let peer_key = &peer_key[..];
    let sql = "INSERT INTO meta VALUES(1, $1, 1, 1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $4)";
    let segments = i32::from(SegmentId::COUNT);
    link.client()
        .execute(sql, &[&cluster, &segments, &options.tz_version, &peer_key])
        .await?;
    Ok(())
}

/// The meta row, if there are tables.
async fn meta_row(link: &Link) -> Result<Option<Meta>, Error> {
    let sql = "SELECT to_regclass('drumtower.meta') IS NOT NULL";
    let there: bool = link.client().query_one(sql, &[]).await?.try_get(0)?;
    if !there {
        return Ok(None);
    }
    let row = link.client().query_opt(META, &[]).await?;
    row.as_ref().map(meta).transpose()
}

pub const META: &str =
    "SELECT cluster, schema_version, oldest_server, segment_count, tz_version, created FROM meta";

pub fn meta(row: &Row) -> Result<Meta, Error> {
    let number = |column| -> Result<u32, Error> {
        let number: i32 = row.try_get(column)?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    };
    Ok(Meta {
        cluster: row.try_get(0)?,
        schema_version: number(1)?,
        oldest_server: number(2)?,
        segment_count: u16::try_from(number(3)?).unwrap_or(u16::MAX),
        tz_version: row.try_get(4)?,
        created: WallMs(row.try_get(5)?),
    })
}

/// Lets a role do all that a server does, and not change the tables.
async fn grant(link: &Link, role: &str) -> Result<(), Error> {
    let role = format!("\"{}\"", role.replace('"', "\"\""));
    let sql = format!(
        "BEGIN;
         GRANT USAGE ON SCHEMA {SCHEMA} TO {role};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {role};
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {role};
         GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} TO {role};
         COMMIT"
    );
    Ok(link.client().batch_execute(&sql).await?)
}

pub async fn look(target: &Target, options: &Options) -> Result<Look, Error> {
    let link = Link::open(target, options.patience).await?;
    let schema_version = meta_row(&link).await?.map(|meta| meta.schema_version);
    let about = "SELECT current_setting('server_version'), coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)";
    let row = link.client().query_one(about, &[]).await?;
    let clock = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let statement = link.client().prepare(clock).await?;
    let mut best: Option<(Duration, i64)> = None;
    for _ in 0..5 {
        let (asked, before) = (Instant::now(), wall_ms());
        let theirs: i64 = link.client().query_one(&statement, &[]).await?.try_get(0)?;
        let took = asked.elapsed();
        let half = i64::try_from(took.as_millis()).unwrap_or(i64::MAX) / 2;
        if best.is_none_or(|(best, _)| took < best) {
            best = Some((took, theirs - before - half));
        }
    }
    let (round_trip, ahead_ms) = best.unwrap_or_default();
    Ok(Look {
        version: row.try_get(0)?,
        encrypted: row.try_get(1)?,
        schema_version,
        round_trip,
        ahead_ms,
    })
}

pub async fn tables(target: &Target, options: &Options) -> Result<Vec<TableSize>, Error> {
    let link = Link::open(target, options.patience).await?;
    let sql = "SELECT coalesce(parent.relname, class.relname)::text, sum(stat.n_live_tup)::bigint, sum(stat.n_dead_tup)::bigint,
                 sum(stat.autovacuum_count)::bigint, sum(pg_table_size(class.oid))::bigint, sum(pg_indexes_size(class.oid))::bigint
               FROM pg_class AS class JOIN pg_stat_user_tables AS stat ON stat.relid = class.oid
                 LEFT JOIN pg_inherits AS child ON child.inhrelid = class.oid
                 LEFT JOIN pg_class AS parent ON parent.oid = child.inhparent
               WHERE class.relnamespace = 'drumtower'::regnamespace AND class.relkind = 'r'
               GROUP BY 1 ORDER BY sum(pg_total_relation_size(class.oid)) DESC";
    let rows = link.client().query(sql, &[]).await?;
    let size = |row: &Row| {
        let number = |column| -> Result<u64, Error> {
            Ok(u64::try_from(row.try_get::<_, i64>(column)?).unwrap_or(0))
        };
        Ok(TableSize {
            name: row.try_get(0)?,
            rows: number(1)?,
            dead_rows: number(2)?,
            vacuums: number(3)?,
            table_bytes: number(4)?,
            index_bytes: number(5)?,
        })
    };
    rows.iter().map(size).collect()
}

fn wall_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_version_that_older_servers_cannot_write_needs_them_to_be_stopped() {
        assert!(is_too_old(1, 3));
        assert!(!is_too_old(3, 3), "what is added is of no concern to them");
        assert!(!is_too_old(4, 3));
        let live = ["`a` at https://a:7070".to_owned(), "`b`".to_owned()];
        let told = still_in_use(1, &live);
        assert!(
            told.contains("stop `a` at https://a:7070, `b` first"),
            "{told}"
        );
    }
}
