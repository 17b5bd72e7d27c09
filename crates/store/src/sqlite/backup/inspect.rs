//! Whether a database file that nobody writes to holds together: its pages, its schema, and its counters against its rows.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use drumtower_core::model::Counters;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::super::schema;
use super::Error;
use super::manifest::Counts;
use crate::codec;

/// What a database file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub cluster: String,
    pub schema_version: u32,
    pub counts: Counts,
    /// The newest session and its last commit: the same pair means the same state.
    pub session: u64,
    pub seq: u64,
}

/// Live, completed, failed and cancelled runs of a namespace.
type Tally = [u64; 4];

const LIVE: usize = 0;

/// How often it is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// Instructions of SQLite between two looks at whether to stop.
const STEPS: i32 = 10_000;

/// Reads the whole file. It must be at rest and without a log beside it. Ends soon after `go_on` says to.
pub(super) fn database(
    path: &Path,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Contents, Error> {
    let mut conn = open(path)?;
    let stop = Arc::new(AtomicBool::new(go_on().is_break()));
    obey(&mut conn, &stop)?;
    let (tell, told) = channel();
    let inspected = thread::scope(|scope| {
        // On a thread of its own: within SQLite nothing that is borrowed can be asked.
        let looking = move || drop(tell.send(look(&conn)));
        if let Err(error) = thread::Builder::new().spawn_scoped(scope, looking) {
            return Err(Error::file(path, error));
        }
        loop {
            match told.recv_timeout(ASK_EVERY) {
                Ok(inspected) => return inspected,
                Err(RecvTimeoutError::Timeout) => {
                    stop.fetch_or(go_on().is_break(), Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Unsound("its check broke off".to_owned()));
                }
            }
        }
    });
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    inspected.map_err(|error| match error {
        Error::Store(crate::Error::Corrupt(why)) => Error::Unsound(why),
        other => other,
    })
}

/// Makes whatever the connection does end with an error once `stop` is true.
fn obey(conn: &mut Connection, stop: &Arc<AtomicBool>) -> Result<(), Error> {
    let stop = Arc::clone(stop);
    conn.progress_handler(STEPS, Some(move || stop.load(Ordering::Relaxed)))
        .map_err(|error| crate::Error::from(error).into())
}

fn look(conn: &Connection) -> Result<Contents, Error> {
    check_mark(conn)?;
    check_pages(conn)?;
    let contents = contents(conn)?;
    check_counters(conn)?;
    Ok(contents)
}

fn open(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    // A file that nobody writes to needs no index of its log beside it, and none must be left there.
    let uri = format!("file:{}?immutable=1", escaped(path));
    let conn = Connection::open_with_flags(uri, flags).map_err(crate::Error::from)?;
    conn.pragma_update(None, "query_only", true)
        .map_err(crate::Error::from)?;
    Ok(conn)
}

fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'?' | b'#' | b'%' => escaped.push_str(&format!("%{byte:02x}")),
            0x20..=0x7e => escaped.push(char::from(byte)),
            other => escaped.push_str(&format!("%{other:02x}")),
        }
    }
    escaped
}

fn check_mark(conn: &Connection) -> Result<(), Error> {
    let mark: i32 = conn
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(crate::Error::from)?;
    if mark == schema::APPLICATION_ID {
        Ok(())
    } else {
        Err(Error::Unsound(
            "the database is not a Drumtower store".to_owned(),
        ))
    }
}

fn check_pages(conn: &Connection) -> Result<(), Error> {
    let verdict: String = conn
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(crate::Error::from)?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(Error::Unsound(verdict))
    }
}

fn contents(conn: &Connection) -> Result<Contents, Error> {
    let number = |sql: &str| -> Result<u64, Error> {
        let count = conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        Ok(count.map_err(crate::Error::from)?.unsigned_abs())
    };
    let (cluster, schema_version) = conn
        .query_row(
            "SELECT cluster, schema_version FROM meta WHERE one = 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(crate::Error::from)?;
    let newest = conn
        .query_row(
            "SELECT id, seq FROM session ORDER BY id DESC LIMIT 1",
            [],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )
        .optional()
        .map_err(crate::Error::from)?;
    let (session, seq) = newest.unwrap_or((0, 0));
    let mut finished = 0;
    for table in HISTORY {
        finished += number(&format!("SELECT count(*) FROM {table}"))?;
    }
    Ok(Contents {
        cluster,
        schema_version,
        counts: Counts {
            jobs: number("SELECT count(*) FROM job WHERE deleted = 0")?,
            live_runs: number("SELECT count(*) FROM run")?,
            finished_runs: finished,
            tokens: number("SELECT count(*) FROM token")?,
        },
        session: session.unsigned_abs(),
        seq: seq.unsigned_abs(),
    })
}

const HISTORY: [&str; 4] = ["history_1d", "history_7d", "history_30d", "history_keep"];

/// Conservation: what the counters say of each namespace, its rows and what retention took away must say as well.
fn check_counters(conn: &Connection) -> Result<(), Error> {
    let mut found = counted_rows(conn)?;
    for (namespace, expected) in counted(conn)? {
        let rows = found.remove(&namespace).unwrap_or_default();
        if rows != expected {
            return Err(Error::Unsound(format!(
                "namespace {namespace} has {rows:?} runs that live, completed, failed, were cancelled; its counters say {expected:?}"
            )));
        }
    }
    match found
        .into_iter()
        .find(|(_, rows)| *rows != Tally::default())
    {
        None => Ok(()),
        Some((namespace, rows)) => Err(Error::Unsound(format!(
            "namespace {namespace} has runs and no counters: {rows:?}"
        ))),
    }
}

/// What the counters say.
fn counted(conn: &Connection) -> Result<HashMap<String, Tally>, crate::Error> {
    let mut tallies: HashMap<String, Tally> = HashMap::new();
    let mut select = conn.prepare("SELECT namespace, body FROM counter")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let body = row.get_ref(1)?.as_blob();
        let body = body.map_err(|error| crate::Error::Corrupt(error.to_string()))?;
        let counters: Counters = codec::open(body)?;
        let tally = tallies.entry(row.get(0)?).or_default();
        let ended = [counters.completed, counters.failed, counters.cancelled];
        tally[LIVE] += counters.live();
        for (sum, count) in tally[1..].iter_mut().zip(ended) {
            *sum += count;
        }
    }
    Ok(tallies)
}

/// What the rows say.
fn counted_rows(conn: &Connection) -> Result<HashMap<String, Tally>, crate::Error> {
    let mut by_job: HashMap<i64, Tally> = HashMap::new();
    each(conn, "SELECT job FROM run", |row| {
        by_job.entry(row.get(0)?).or_default()[LIVE] += 1;
        Ok(())
    })?;
    for table in HISTORY {
        each(conn, &format!("SELECT job, verdict FROM {table}"), |row| {
            let verdict = row.get::<_, i64>(1)?.clamp(0, 2) as usize;
            by_job.entry(row.get(0)?).or_default()[1 + verdict] += 1;
            Ok(())
        })?;
    }
    let mut tallies: HashMap<String, Tally> = HashMap::new();
    each(conn, "SELECT id, namespace FROM job", |row| {
        if let Some(counts) = by_job.remove(&row.get(0)?) {
            add(tallies.entry(row.get(1)?).or_default(), counts);
        }
        Ok(())
    })?;
    if let Some(job) = by_job.keys().next() {
        let why = format!("job {job} has runs but no row");
        return Err(crate::Error::Corrupt(why));
    }
    let sql = "SELECT namespace, completed, failed, cancelled FROM pruned";
    each(conn, sql, |row| {
        let count = |at| row.get::<_, i64>(at).map(i64::unsigned_abs);
        let counts = [0, count(1)?, count(2)?, count(3)?];
        add(tallies.entry(row.get(0)?).or_default(), counts);
        Ok(())
    })?;
    Ok(tallies)
}

fn add(tally: &mut Tally, counts: Tally) {
    for (sum, count) in tally.iter_mut().zip(counts) {
        *sum += count;
    }
}

fn each(
    conn: &Connection,
    sql: &str,
    mut take: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
) -> Result<(), crate::Error> {
    let mut select = conn.prepare(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_without_end_is_ended() {
        let mut conn = Connection::open_in_memory().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        obey(&mut conn, &stop).unwrap();
        thread::scope(|scope| {
            let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
                           SELECT count(*) FROM c";
            let asked = scope.spawn(move || conn.query_row(endless, [], |_| Ok(())));
            stop.store(true, Ordering::Relaxed);
            let ended = asked.join().unwrap().unwrap_err();
            let code = ended.sqlite_error_code();
            assert_eq!(code, Some(rusqlite::ErrorCode::OperationInterrupted));
        });
    }
}
