//! Roll-ups as they are read: rows of closed ranges, and what the journals of all sessions add to them.

use std::collections::BTreeMap;

use drumtower_core::model::JobId;

use super::pool::Pool;
use super::rollups;
use super::row::{body, key};
use crate::tally::{Tally, merge_all};
use crate::{Error, Rollup};

pub fn read(pool: &Pool, job: Option<JobId>, from: i64, to: i64) -> Result<Vec<Rollup>, Error> {
    if from >= to {
        return Ok(Vec::new());
    }
    // Rows are by minute first: of one job there is one look for each minute, never a walk over other jobs.
    let all = "SELECT minute, job, NULL::bigint, body, NULL::bigint, NULL::bigint, NULL::bigint FROM rollup WHERE minute >= $1 AND minute < $2
               UNION ALL SELECT NULL, NULL, journal.seq, journal.body, state.seq, state.minute, state.job
                 FROM rollup_journal AS journal LEFT JOIN rollup_state AS state ON state.session = journal.session";
    let one = "SELECT rollup.minute, rollup.job, NULL::bigint, rollup.body, NULL::bigint, NULL::bigint, NULL::bigint
                 FROM generate_series(greatest($1::bigint, (SELECT min(minute) FROM rollup)), least($2::bigint - 1, (SELECT max(minute) FROM rollup))) AS at
                 JOIN rollup ON rollup.minute = at AND rollup.job = $3
               UNION ALL SELECT NULL, NULL, journal.seq, journal.body, state.seq, state.minute, state.job
                 FROM rollup_journal AS journal LEFT JOIN rollup_state AS state ON state.session = journal.session";
    let rows = match job {
        Some(job) => pool.rows(one, &[&from, &to, &key(job.0)])?,
        None => pool.rows(all, &[&from, &to])?,
    };
    let mut sums = BTreeMap::<(i64, JobId), Tally>::new();
    for row in &rows {
        let minute: Option<i64> = row.try_get(0)?;
        if let Some(minute) = minute {
            let job = JobId(row.try_get::<_, i64>(1)? as u64);
            merge_all(&mut sums, [((minute, job), body(row, 3)?)]);
            continue;
        }
        let seq: i64 = row.try_get(2)?;
        let rest = rollups::rest(row, seq, 3, 4)?.into_iter();
        let wanted = rest.filter(|((minute, of), _)| {
            (from..to).contains(minute) && job.is_none_or(|job| job == *of)
        });
        merge_all(&mut sums, wanted);
    }
    let sums = sums.into_iter();
    Ok(sums.map(|(key, tally)| tally.into_rollup(key)).collect())
}
