//! Dead letters: runs that failed for good, each whole in a row of its own, whatever becomes of the history.

use drumtower_core::change::{ChangeSet, LetterChange, Prune};
use drumtower_core::model::{JobId, Limits, Run, RunId};
use rusqlite::{Connection, Row, params};

use super::apply::exactly_one;
use crate::read::{LETTER_SCAN, death};
use crate::{Error, LetterFilter, RunPage, columns, packed, retention};

pub fn apply(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut insert =
        conn.prepare_cached("INSERT INTO dead_letter VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    let mut delete = conn.prepare_cached("DELETE FROM dead_letter WHERE run = ?1")?;
    for (id, change) in &changes.letters {
        let what = || format!("the dead letter {id}");
        match change {
            LetterChange::Remove => exactly_one(&mut delete, [id.0 as i64], what)?,
            LetterChange::Insert(run) => {
                let (died, _) = death(run);
                let values = params![
                    id.0 as i64,
                    run.job.0 as i64,
                    run.namespace.as_str(),
                    died.0,
                    columns::letter_reason(run),
                    packed::seal(run)?,
                    packed::aside(run.params.as_ref()),
                    packed::aside(run.result.as_ref()),
                ];
                exactly_one(&mut insert, values, what)?;
            }
        }
    }
    Ok(())
}

/// The payloads that lie in the row beside the body.
struct Beside<'a> {
    params: Option<&'a str>,
    result: Option<&'a str>,
}

impl packed::Aside for Beside<'_> {
    fn params(&self, run: RunId) -> Result<String, Error> {
        found(self.params, run, "parameters")
    }

    fn result(&self, run: RunId) -> Result<String, Error> {
        found(self.result, run, "result")
    }
}

fn found(text: Option<&str>, run: RunId, what: &str) -> Result<String, Error> {
    let missing = || Error::Corrupt(format!("the {what} of the dead letter {run} are missing"));
    text.map(str::to_owned).ok_or_else(missing)
}

const COLUMNS: &str = "run, job, body, params, result, namespace, died, reason";

fn open(row: &Row<'_>) -> Result<Run, Error> {
    let id = RunId(row.get::<_, i64>(0)? as u64);
    let job = JobId(row.get::<_, i64>(1)? as u64);
    let text = |column| -> Result<Option<&str>, Error> {
        let value = row.get_ref(column)?.as_str_or_null();
        Ok(value.map_err(rusqlite::Error::from)?)
    };
    let beside = Beside {
        params: text(3)?,
        result: text(4)?,
    };
    let body = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
    packed::open(id, job, body, &beside)
}

pub fn one(conn: &Connection, id: RunId) -> Result<Option<Run>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM dead_letter WHERE run = ?1");
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query([id.0 as i64])?;
    rows.next()?.map(open).transpose()
}

pub fn page(
    conn: &Connection,
    filter: &LetterFilter,
    before: Option<RunId>,
    limit: usize,
) -> Result<RunPage, Error> {
    let below = before.map_or(i64::MAX, |id| i64::try_from(id.0).unwrap_or(i64::MAX));
    let sql = format!("SELECT {COLUMNS} FROM dead_letter WHERE run < ?1 ORDER BY run DESC");
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query([below])?;
    let mut page = RunPage::default();
    let (mut seen, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        let takes = takes(filter, row)?;
        if (takes && page.runs.len() >= limit) || seen >= LETTER_SCAN {
            page.next = last;
            break;
        }
        seen += 1;
        last = Some(RunId(row.get::<_, i64>(0)? as u64));
        if takes {
            page.runs.push(open(row)?);
        }
    }
    Ok(page)
}

/// By the narrow columns alone, so that what is passed over is not unpacked.
fn takes(filter: &LetterFilter, row: &Row<'_>) -> Result<bool, Error> {
    let job = JobId(row.get::<_, i64>(1)? as u64);
    let namespace = row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?;
    let died: i64 = row.get(6)?;
    let reason = row.get_ref(7)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(filter
        .namespace
        .as_ref()
        .is_none_or(|it| it.as_str() == namespace)
        && filter.job.is_none_or(|it| it == job)
        && filter.reason.is_none_or(|it| it.as_str() == reason)
        && filter.since.is_none_or(|since| died >= since.0)
        && filter.until.is_none_or(|until| died < until.0))
}

/// Those that died first go first.
pub fn prune(conn: &Connection, prune: &Prune, seq: u64) -> Result<(), Error> {
    let limit = i64::try_from(prune.limit).unwrap_or(i64::MAX);
    let oldest = retention::oldest_letter(prune.now).0;
    let old = "DELETE FROM dead_letter WHERE run IN
                 (SELECT run FROM dead_letter WHERE died < ?1 ORDER BY died, run LIMIT ?2)";
    let old = conn.prepare_cached(old)?.execute([oldest, limit])?;
    if !retention::counts_letters(seq) {
        return Ok(());
    }
    let count = "SELECT namespace, count(*) FROM dead_letter GROUP BY namespace";
    let drop = "DELETE FROM dead_letter WHERE run IN
                 (SELECT run FROM dead_letter WHERE namespace = ?1 ORDER BY died, run LIMIT ?2)";
    super::prune::beyond(conn, count, drop, Limits::DEAD_LETTERS, prune.limit - old)
}
