//! What runs that have not ended are to the overlap of their jobs.
//!
//! Most runs are what their origin makes them: those of a schedule count for the job as a whole, others do not count. Only
//! of the rest a column tells: `s` for one of a schedule or `o` for another, then `l` for one that is under way, `q` for one
//! that waits for its turn or `n` for one that does not count, then a colon and the key where there is one.

use drumtower_core::model::{JobId, Origin, Run, Standing, Tallies};
use rusqlite::{Connection, params};

use super::packed;
use super::run_rows::Payloads;
use crate::Error;
use drumtower_core::model::RunId;

/// The column of a run.
pub fn column(run: &Run) -> Option<String> {
    let standing = &run.standing;
    let usual = Standing {
        superseded: standing.superseded,
        ..Standing::of(run.origin)
    };
    (*standing != usual).then(|| text(run.origin, standing))
}

fn text(origin: Origin, standing: &Standing) -> String {
    let made = match origin {
        Origin::Schedule => 's',
        _ => 'o',
    };
    let place = match (standing.counts, standing.queued) {
        (false, _) => 'n',
        (true, false) => 'l',
        (true, true) => 'q',
    };
    match &standing.key {
        None => format!("{made}{place}"),
        Some(key) => format!("{made}{place}:{key}"),
    }
}

/// Whether a run was made by a schedule, and its standing.
fn read(text: &str) -> Option<(bool, Standing)> {
    let (made, rest) = text.split_at_checked(1)?;
    let (place, key) = rest.split_at_checked(1)?;
    let standing = Standing {
        counts: place != "n",
        queued: place == "q",
        key: match key {
            "" => None,
            key => Some(key.strip_prefix(':')?.to_owned()),
        },
        superseded: false,
    };
    Some((made == "s", standing))
}

/// What there is of each key, from the counts of the column's texts and of the runs that schedules made.
pub fn tallies(scheduled: u32, texts: &[(String, u32)]) -> Result<Tallies, Error> {
    let mut tallies = Tallies::default();
    let mut unusual = 0;
    for (text, runs) in texts {
        let broken = || Error::Corrupt(format!("`{text}` is no standing of a run"));
        let (made, standing) = read(text).ok_or_else(broken)?;
        tallies.add(&standing, *runs);
        if made {
            unusual += runs;
        }
    }
    let usual = Standing::of(Origin::Schedule);
    tallies.add(&usual, scheduled.saturating_sub(unusual));
    Ok(tallies)
}

/// Runs of a job that count under a key and do not wait for their turn, in order of id.
pub fn live(
    conn: &Connection,
    job: JobId,
    key: Option<&str>,
    limit: i64,
) -> Result<Vec<Run>, Error> {
    let Ok(id) = i64::try_from(job.0) else {
        return Ok(Vec::new());
    };
    let standing = Standing {
        counts: true,
        key: key.map(str::to_owned),
        ..Standing::default()
    };
    let (scheduled, other) = (
        text(Origin::Schedule, &standing),
        text(Origin::Api, &standing),
    );
    // Those whose column is empty are the usual ones of the schedule, which have no key.
    let usual = key.is_none();
    let sql = "SELECT id, body FROM run WHERE job = ?1 AND overlap IN (?2, ?3)
               UNION ALL
               SELECT id, body FROM run WHERE ?4 AND job = ?1 AND scheduled = 1 AND overlap IS NULL
               ORDER BY id LIMIT ?5";
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params![id, scheduled, other, usual, limit])?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        let id = RunId(row.get::<_, i64>(0)? as u64);
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        runs.push(packed::open(id, job, body, &Payloads(conn))?);
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        for key in [None, Some("7".to_owned()), Some("\"a:b\"".to_owned())] {
            for (counts, queued) in [(true, false), (true, true), (false, false)] {
                let standing = Standing {
                    counts,
                    queued,
                    key: key.clone(),
                    superseded: false,
                };
                let text = text(Origin::Schedule, &standing);
                assert_eq!(read(&text), Some((true, standing)), "{text}");
            }
        }
        for broken in ["", "s", "slx"] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
