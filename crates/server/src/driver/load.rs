//! Answers the engine's loads from the store's reading side, off the loop.

use drumtower_core::engine::{
    ENDING_ROWS, FOLLOWER_ROWS, JobRef, LOAD_ROWS, LoadKey, LoadRequest, Loaded, LoadedRow,
};
use drumtower_core::model::{JobId, JobRecord, Run, RunId, SegmentSet, SweepCause};
use drumtower_store::{Error, Read};

use super::boot::{jobs_of, pinned_to};
use crate::history;

/// Reads everything a request asks for; `None` when the session that asks has been revoked. Whoever revoked it wrote
/// nothing before, so what was read while it was live holds nothing that another made.
pub fn load(reader: &dyn Read, request: &LoadRequest) -> Result<Option<Loaded>, Error> {
    let mut rows = Vec::with_capacity(request.keys.len());
    for key in &request.keys {
        load_key(reader, request, key, &mut rows)?;
    }
    if reader.is_revoked(request.session)? {
        return Ok(None);
    }
    Ok(Some(Loaded {
        id: request.id,
        rows,
    }))
}

fn load_key(
    reader: &dyn Read,
    request: &LoadRequest,
    key: &LoadKey,
    rows: &mut Vec<LoadedRow>,
) -> Result<(), Error> {
    let (within, now) = (&request.within, request.now);
    match key {
        LoadKey::JobNamed(job) => {
            let found = reader.job_named(&job.namespace, &job.name)?;
            if found.is_none() && !followers(reader, job, None, 1)?.is_empty() {
                rows.push(LoadedRow::Awaited(job.clone()));
            }
            rows.push(LoadedRow::JobNamed(job.clone(), found));
        }
        LoadKey::Followers { ending, job, after } => rows.push(LoadedRow::Followers {
            ending: *ending,
            jobs: followers(reader, job, *after, FOLLOWER_ROWS)?,
        }),
        LoadKey::Endings => rows.push(LoadedRow::Endings(reader.endings(within, ENDING_ROWS)?)),
        LoadKey::Run(id) => {
            let run = reader.run(*id)?;
            if let Some(live) = run.as_ref().filter(|run| !run.state.is_terminal()) {
                definitions(reader, std::slice::from_ref(live), rows)?;
            }
            rows.push(LoadedRow::Run(*id, run));
        }
        LoadKey::Idempotency(hash) => rows.push(LoadedRow::Idempotency(
            *hash,
            reader.idempotency(hash, now)?,
        )),
        LoadKey::Letter(run) => {
            let there = reader.letter(*run)?.is_some();
            rows.push(LoadedRow::Letter(*run, there));
        }
        LoadKey::Backfill(id) => {
            rows.push(LoadedRow::Backfill(*id, reader.backfill(*id)?));
        }
        LoadKey::Times(wanted) => {
            let page = history::page(reader, wanted, now)?;
            rows.push(LoadedRow::Times(wanted.clone(), page));
        }
        LoadKey::Due { before, after } => {
            let jobs = reader.jobs_due(within, *before, *after, LOAD_ROWS)?;
            rows.push(LoadedRow::Due {
                before: *before,
                jobs,
            });
        }
        LoadKey::Swept { cause, after } => {
            let jobs = match cause {
                SweepCause::Calendar(calendar) => {
                    reader.calendar_users(within, calendar, *after, LOAD_ROWS)?
                }
                SweepCause::TimeZones => reader.jobs_by_id(within, *after, LOAD_ROWS)?,
            };
            rows.push(LoadedRow::Swept {
                cause: cause.clone(),
                jobs,
            });
        }
        LoadKey::CalendarUsers(calendar) => rows.push(LoadedRow::CalendarUsers(
            calendar.clone(),
            reader.calendar_users(&SegmentSet::ALL, calendar, None, LOAD_ROWS)?,
        )),
        LoadKey::Overdue { by, after } => {
            let page = reader.parked_starts(within, *by, *after, LOAD_ROWS)?;
            definitions(reader, &page.runs, rows)?;
            rows.push(LoadedRow::Overdue {
                runs: page.runs,
                next: page.next,
            });
        }
        LoadKey::Queued { key, rows: most } => {
            let runs = reader.parked_runs(within, key, None, *most)?;
            definitions(reader, &runs, rows)?;
            let key = key.clone();
            rows.push(LoadedRow::Queued { key, runs });
        }
        LoadKey::Live { job, key } => {
            let runs = reader.live_runs(*job, key.as_deref(), LOAD_ROWS)?;
            definitions(reader, &runs, rows)?;
            let (job, key) = (*job, key.clone());
            rows.push(LoadedRow::Live { job, key, runs });
        }
        LoadKey::Parked {
            key,
            after,
            rows: most,
        } => {
            let runs = parked(reader, within, key, *after, *most, rows)?;
            let (key, all) = (key.clone(), runs.len() < *most);
            rows.push(LoadedRow::Parked { key, runs, all });
        }
        LoadKey::Sorted { key, after } => {
            let runs = parked(reader, within, key, *after, LOAD_ROWS, rows)?;
            let key = key.clone();
            rows.push(LoadedRow::Sorted { key, runs });
        }
    }
    Ok(())
}

/// A page of the jobs that run after another.
fn followers(
    reader: &dyn Read,
    job: &JobRef,
    after: Option<JobId>,
    most: usize,
) -> Result<Vec<JobRecord>, Error> {
    reader.followers(&SegmentSet::ALL, &job.namespace, &job.name, after, most)
}

/// A page of the runs that are parked under a key, with their definitions before them.
fn parked(
    reader: &dyn Read,
    within: &SegmentSet,
    key: &str,
    after: Option<RunId>,
    most: usize,
    rows: &mut Vec<LoadedRow>,
) -> Result<Vec<Run>, Error> {
    let runs = reader.parked_runs(within, key, after, most)?;
    definitions(reader, &runs, rows)?;
    Ok(runs)
}

/// A run is useless to the engine without its job and pinned version, so they go before it.
fn definitions(reader: &dyn Read, runs: &[Run], rows: &mut Vec<LoadedRow>) -> Result<(), Error> {
    let (jobs, versions) = jobs_of(reader, pinned_to(runs))?;
    rows.extend(jobs.into_iter().map(LoadedRow::Job));
    rows.extend(versions.into_iter().map(LoadedRow::Version));
    Ok(())
}

#[cfg(test)]
mod tests {
    use drumtower_core::engine::take_over;
    use drumtower_core::model::{Member, WallMs};
    use drumtower_store::{Commit, Store, memory::Memory};

    use super::*;

    #[test]
    fn what_a_deposed_server_reads_is_not_taken() {
        let mut store = Memory::new();
        let reader = store.reader();
        let mut begin = |revoke| {
            let member = Member::alone("server");
            let session = store.begin_session(&member, 3_000).expect("it begins");
            let taken = take_over(session, 1, 3_000, revoke, Vec::new());
            assert_eq!(store.commit(&taken).expect("it is answered"), Commit::Done);
            session
        };
        let first = begin(Vec::new());
        let request = LoadRequest {
            id: 1,
            tag: 0,
            session: first,
            within: SegmentSet::ALL,
            keys: Vec::new(),
            now: WallMs(0),
        };
        assert!(load(&reader, &request).expect("it is read").is_some());
        begin(vec![first]);
        assert!(load(&reader, &request).expect("it is read").is_none());
    }
}
