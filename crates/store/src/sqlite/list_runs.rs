//! Listings of runs, newest id first, and the way from an id to its run.

use drumtower_core::model::{JobId, Run, RunId, RunState};
use rusqlite::{Connection, params};

use super::buckets::Span;
use super::chunk;
use super::derived::Derived;
use super::history;
use super::merge::{Merge, Next, Place, Source};
use super::run_rows::Payloads;
use crate::{Error, RunFilter, RunPage, columns, packed};

/// Rows and blobs that one call looks at before it answers with a short page.
const LOOKS: usize = 20_000;

/// What a listing needs of the derived data, copied when its snapshot begins.
pub struct View {
    /// Written buckets that may hold ids below the cursor.
    spans: Vec<Span>,
    /// Runs that are told of in memory, in order of id, one list for each held bucket.
    held: Vec<Vec<(u64, Place)>>,
}

impl View {
    pub fn of(derived: &Derived, filter: &RunFilter, below: u64) -> Self {
        let mut view = Self {
            spans: Vec::new(),
            held: Vec::new(),
        };
        for class in &derived.classes {
            view.spans
                .extend(class.written.iter().filter(|span| span.least < below));
            for held in &class.held {
                let place = |id: u64| match held.ids.get(&id) {
                    Some(spot) => Place::Finished(class.index, *spot),
                    None => Place::Bucket(class.bucket(held.number)),
                };
                let mut ids: Vec<(u64, Place)> = match filter.job {
                    Some(job) => {
                        let listed = held.jobs.get(&job.0).into_iter().flatten().copied();
                        let newest = newest(listed.filter(|id| *id < below).collect());
                        newest.into_iter().map(|id| (id, place(id))).collect()
                    }
                    None => {
                        let newest = held.ids.range(..below).rev().take(LOOKS + 1);
                        newest
                            .map(|(id, spot)| (*id, Place::Finished(class.index, *spot)))
                            .collect()
                    }
                };
                ids.sort_unstable_by_key(|item| item.0);
                view.held.push(ids);
            }
        }
        view
    }

    fn find(&self, conn: &Connection, id: u64) -> Result<Option<Place>, Error> {
        for list in &self.held {
            if let Ok(at) = list.binary_search_by_key(&id, |item| item.0) {
                return Ok(Some(list[at].1));
            }
        }
        for span in self
            .spans
            .iter()
            .filter(|span| span.least <= id && id <= span.greatest)
        {
            if let Some(spot) = chunk::find(conn, span.bucket, id)? {
                return Ok(Some(Place::Finished(span.bucket.class, spot)));
            }
        }
        Ok(None)
    }
}

/// As many of the greatest ids as one call may look at. Commits wait while this is found out, so nothing more is done
/// with the others.
fn newest(mut ids: Vec<u64>) -> Vec<u64> {
    let rest = ids.len().saturating_sub(LOOKS + 1);
    if rest > 0 {
        ids.select_nth_unstable(rest);
        ids.drain(..rest);
    }
    ids
}

/// Whether a filter asks for active runs, and for finished ones.
fn sides(filter: &RunFilter) -> (bool, bool) {
    let any = |terminal: bool| {
        RunState::ALL
            .iter()
            .any(|s| s.is_terminal() == terminal && filter.takes_state(*s))
    };
    (any(false), any(true))
}

/// One page of runs below `below`.
pub fn page(
    conn: &Connection,
    filter: &RunFilter,
    below: u64,
    limit: usize,
    view: &View,
) -> Result<RunPage, Error> {
    let mut merge = Merge::new(conn, filter.job, below, LOOKS);
    let Some(bound) = below.checked_sub(1) else {
        return Ok(RunPage::default());
    };
    let (active, finished) = sides(filter);
    if active {
        merge.add(bound, Source::Active);
    }
    let failed_only = finished && !filter.takes_state(RunState::Completed);
    if let Some(job) = filter.job.filter(|_| failed_only) {
        add_failed(conn, &mut merge, job, bound)?;
    } else if finished {
        for list in view.held.iter().filter(|list| !list.is_empty()) {
            merge.add(
                list.last().map_or(0, |item| item.0),
                Source::List(list.clone(), None),
            );
        }
        for span in &view.spans {
            merge.add(span.greatest.min(bound), Source::Bucket(span.bucket));
        }
    }
    fill(conn, filter, limit, view, &mut merge)
}

/// Runs that did not complete have an index of their own.
fn add_failed(
    conn: &Connection,
    merge: &mut Merge<'_>,
    job: JobId,
    bound: u64,
) -> Result<(), Error> {
    let sql = "SELECT id FROM failed WHERE job = ?1 AND id <= ?2 ORDER BY id DESC LIMIT ?3";
    let mut select = conn.prepare_cached(sql)?;
    let (job, bound) = (
        i64::try_from(job.0).unwrap_or(-1),
        i64::try_from(bound).unwrap_or(i64::MAX),
    );
    let mut rows = select.query(params![job, bound, LOOKS as i64 + 1])?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push((row.get::<_, i64>(0)? as u64, Place::Unknown));
    }
    items.reverse();
    if let Some(top) = items.last() {
        merge.add(top.0, Source::List(items, None));
    }
    Ok(())
}

fn fill(
    conn: &Connection,
    filter: &RunFilter,
    limit: usize,
    view: &View,
    merge: &mut Merge<'_>,
) -> Result<RunPage, Error> {
    let mut page = RunPage::default();
    loop {
        match merge.next()? {
            Next::Run(id, _) if !filter.takes_id(RunId(id)) => return Ok(page),
            Next::Run(id, place) => {
                let run = read(conn, filter, view, RunId(id), place)?;
                page.runs.extend(run.filter(|run| filter.takes(run)));
                if page.runs.len() >= limit {
                    let more = !merge.is_empty() && filter.since != Some(RunId(id));
                    page.next = more.then_some(RunId(id));
                    return Ok(page);
                }
            }
            Next::Pause(below) => {
                let below = RunId(below);
                page.next = filter
                    .since
                    .is_none_or(|since| below > since)
                    .then_some(below);
                return Ok(page);
            }
            Next::End => return Ok(page),
        }
    }
}

/// The run, unless retention took it or its verdict alone says that the filter does not take it.
fn read(
    conn: &Connection,
    filter: &RunFilter,
    view: &View,
    id: RunId,
    place: Place,
) -> Result<Option<Run>, Error> {
    match place {
        Place::Active => active(conn, id),
        Place::Finished(_, spot) if !filter.takes_state(columns::state_of(spot.verdict)) => {
            Ok(None)
        }
        Place::Finished(class, spot) => history::get(conn, class, spot.fin, &Payloads(conn)),
        Place::Bucket(bucket) => match chunk::find(conn, bucket, id.0)? {
            Some(spot) => read(conn, filter, view, id, Place::Finished(bucket.class, spot)),
            None => Ok(None),
        },
        Place::Unknown => match view.find(conn, id.0)? {
            Some(Place::Unknown) | None => Ok(None),
            Some(place) => read(conn, filter, view, id, place),
        },
    }
}

/// A run of the active table.
pub fn active(conn: &Connection, id: RunId) -> Result<Option<Run>, Error> {
    let Ok(key) = i64::try_from(id.0) else {
        return Ok(None);
    };
    let mut select = conn.prepare_cached("SELECT job, body FROM run WHERE id = ?1")?;
    let mut rows = select.query([key])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let job = JobId(row.get::<_, i64>(0)? as u64);
    let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
    packed::open(id, job, body, &Payloads(conn)).map(Some)
}
