//! History keyed by run id: layouts `none` and `index` (the controls), `a` and `d`.
//!
//! `a` puts a late run where its id belongs and its posting into the open bucket, so its lists are ordered by
//! bucket of finishing first. `d` keeps late runs in a table of their own with an ordinary index by job; its
//! lists are exactly by id.

use rusqlite::{Connection, Result, params};

use crate::layout::{DONE, HISTORY_BODY, Layout};
use crate::postings::{self, Postings};
use crate::workload::{Batch, Run};

enum ByJob {
    Nothing,
    Index,
    Postings(Postings),
    LateApart(Postings),
}

pub struct ById {
    by_job: ByJob,
}

impl ById {
    pub fn bare() -> Self {
        Self {
            by_job: ByJob::Nothing,
        }
    }

    pub fn indexed() -> Self {
        Self {
            by_job: ByJob::Index,
        }
    }

    pub fn with_postings() -> Self {
        Self {
            by_job: ByJob::Postings(Postings::new(0)),
        }
    }

    pub fn late_apart() -> Self {
        Self {
            by_job: ByJob::LateApart(Postings::new(1)),
        }
    }
}

fn table(name: &str) -> String {
    format!(
        "CREATE TABLE {name}(id INTEGER PRIMARY KEY, job INTEGER NOT NULL, state INTEGER NOT NULL,
           created INTEGER NOT NULL, finished INTEGER NOT NULL, body BLOB NOT NULL);"
    )
}

fn exists(conn: &Connection, sql: &str, id: i64) -> Result<bool> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query([id])?;
    let Some(row) = rows.next()? else {
        return Ok(false);
    };
    Ok(row.get_ref(1)?.as_blob()?.len() == HISTORY_BODY.len())
}

const FIND: &str = "SELECT job, body FROM history WHERE id = ?1";
const FIND_LATE: &str = "SELECT job, body FROM history_late WHERE id = ?1";

impl Layout for ById {
    fn schema(&self) -> String {
        let mut sql = table("history");
        match self.by_job {
            ByJob::Nothing => {}
            ByJob::Index => sql.push_str("CREATE INDEX history_by_job ON history(job, id);"),
            ByJob::Postings(_) => sql.push_str(postings::SCHEMA),
            ByJob::LateApart(_) => {
                sql.push_str(postings::SCHEMA);
                sql.push_str(&table("history_late"));
                sql.push_str("CREATE INDEX history_late_by_job ON history_late(job, id);");
            }
        }
        sql
    }

    fn finish(&mut self, conn: &Connection, runs: &[Run], now_ms: i64) -> Result<()> {
        let mut insert =
            conn.prepare_cached("INSERT INTO history VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
        for run in runs {
            let row = params![
                run.id,
                run.job,
                DONE,
                run.created_ms(),
                now_ms,
                HISTORY_BODY
            ];
            match &mut self.by_job {
                ByJob::LateApart(postings) if run.id <= postings.floor() => {
                    conn.prepare_cached("INSERT INTO history_late VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?
                        .execute(row)?;
                    continue;
                }
                ByJob::Postings(postings) | ByJob::LateApart(postings) => {
                    postings.push(run.job, run.id)
                }
                ByJob::Nothing | ByJob::Index => {}
            }
            insert.execute(row)?;
        }
        Ok(())
    }

    fn retain(&mut self, conn: &Connection, batch: &Batch) -> Result<()> {
        conn.prepare_cached("DELETE FROM history WHERE id < ?1")?
            .execute([batch.cutoff_id])?;
        match &mut self.by_job {
            ByJob::Postings(postings) => postings.step(conn, batch.cutoff_id),
            ByJob::LateApart(postings) => {
                conn.prepare_cached("DELETE FROM history_late WHERE id < ?1")?
                    .execute([batch.cutoff_id])?;
                postings.step(conn, batch.cutoff_id)
            }
            _ => Ok(()),
        }
    }

    fn find(&self, conn: &Connection, id: i64) -> Result<bool> {
        let late_apart = matches!(self.by_job, ByJob::LateApart(_));
        Ok(exists(conn, FIND, id)? || late_apart && exists(conn, FIND_LATE, id)?)
    }

    fn list(&self, conn: &Connection, job: u32, limit: usize) -> Result<Option<Vec<i64>>> {
        match &self.by_job {
            ByJob::Nothing => Ok(None),
            ByJob::Index => {
                let mut select = conn.prepare_cached(
                    "SELECT id, body FROM history WHERE job = ?1 ORDER BY id DESC LIMIT ?2",
                )?;
                let rows = select.query_map(params![job, limit as i64], |row| row.get(0))?;
                rows.collect::<Result<_>>().map(Some)
            }
            ByJob::Postings(postings) => existing(postings, conn, job, limit, Vec::new()).map(Some),
            ByJob::LateApart(postings) => {
                let mut select = conn.prepare_cached(
                    "SELECT id FROM history_late WHERE job = ?1 ORDER BY id DESC LIMIT ?2",
                )?;
                let late = select.query_map(params![job, limit as i64], |row| row.get(0))?;
                existing(postings, conn, job, limit, late.collect::<Result<_>>()?).map(Some)
            }
        }
    }

    fn list_slowly(&self) -> Option<&'static str> {
        match self.by_job {
            ByJob::Index => Some("SELECT id FROM history NOT INDEXED WHERE job = ?1 ORDER BY id DESC LIMIT ?2"),
            ByJob::LateApart(_) => Some(
                "SELECT id FROM (SELECT id, job FROM history UNION ALL SELECT id, job FROM history_late)
                 WHERE job = ?1 ORDER BY id DESC LIMIT ?2",
            ),
            ByJob::Nothing | ByJob::Postings(_) => None,
        }
    }
}

/// Merges the job's postings with the ids of its late runs and reads each row; a posting may outlive its row.
fn existing(
    postings: &Postings,
    conn: &Connection,
    job: u32,
    limit: usize,
    late: Vec<i64>,
) -> Result<Vec<i64>> {
    let mut ids = Vec::with_capacity(limit);
    let mut late = late.into_iter().peekable();
    postings.newest(conn, job, |id| {
        while let Some(older) = late.next_if(|&late| late > id && ids.len() < limit) {
            ids.extend(exists(conn, FIND_LATE, older)?.then_some(older));
        }
        if ids.len() < limit {
            ids.extend(exists(conn, FIND, id)?.then_some(id));
        }
        Ok(ids.len() < limit)
    })?;
    for id in late.take(limit - ids.len()) {
        ids.extend(exists(conn, FIND_LATE, id)?.then_some(id));
    }
    Ok(ids)
}
