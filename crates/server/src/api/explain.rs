//! What became of each due time of a job: reads the records, leaves the rest to `core::explain`.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use drumtower_core::engine::{Hindrance, JobRef, Refusal};
use drumtower_core::explain::run::{Cause, Obstacle};
use drumtower_core::explain::{self, Answer, History, Row, RunFact, Runs, Timeline};
use drumtower_core::model::{JobRecord, Origin, Requirement, Run, RunId, WallMs};
use drumtower_store::{Error, Read, RunFilter};

use super::cursor::{self, Listing};
use super::explain_view::{Explanation, RowView};
use super::gate::JobPath;
use super::problem::Problem;
use super::query::Parameters;
use super::time::{self, Time};
use super::{Edge, page};
use crate::driver::Waiter;
use crate::history::{Known, kept_since, versions};

const DAY_MS: i64 = 86_400_000;
const DEFAULT_ROWS: usize = 1000;
/// Schedules know no times outside: the years 1970 to 2199.
const FIRST: WallMs = WallMs(0);
const LAST: WallMs = WallMs(7_258_118_400_000);
const RUNS_A_READ: usize = 1000;
/// How much later than its id says a run may have been made: ids go on growing while a clock that was set back catches
/// up. The second is tried when something seems to be missing with the first.
const SLACK_MS: [i64; 2] = [3_600_000, 26 * 3_600_000];

struct Asked {
    job: JobRef,
    from: WallMs,
    to: WallMs,
    rows: usize,
    now: WallMs,
}

pub async fn explain(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["from", "to", "limit", "cursor"])?;
    edge.at_owner(job.segment())?;
    let listing = page::listing(&edge, &uri, &parameters);
    let asked = asked(job, &parameters, &listing)?;
    let (from, to, job) = (asked.from, asked.to, asked.job.clone());
    let answer = edge.read(move |store| answer(store, &asked)).await?;
    let Some((Answer { rows, next }, wanted)) = answer else {
        return Err(Refusal::NoSuchJob(job).into());
    };
    // A server that stops knows no fleet any more; what became of times is told all the same.
    let fleet = edge.handle.workers().await.ok();
    let obstacle = fleet.and_then(|fleet| Obstacle::find(&wanted, &fleet));
    let held = match obstacle {
        Some(obstacle) => Some((obstacle.code(), obstacle.text())),
        None => limit(&edge, &job).await?,
    };
    let (waiting_code, waiting) = held.unzip();
    let row = |row| RowView::from(row).because(waiting.as_deref());
    let explanation = Explanation {
        namespace: &job.namespace,
        job: &job.name,
        from: Time(from),
        to: Time(to),
        rows: rows.iter().map(row).collect(),
        waiting: waiting.clone(),
        waiting_code,
        next: next.map(|next| listing.encode(&next.0.to_string())),
    };
    Ok(Json(explanation).into_response())
}

/// The limit that holds runs of the job back at the moment.
async fn limit(edge: &Edge, job: &JobRef) -> Result<Option<(Cause, String)>, Problem> {
    let JobRef { namespace, name } = job.clone();
    let found = edge
        .read(move |store| store.job_named(&namespace, &name))
        .await?;
    let Some(found) = found else {
        return Ok(None);
    };
    let asked = edge.handle.hindrance(Waiter::Job(found.row.id)).await;
    let told = |limit: Hindrance| (limit.code(), limit.text(time::now()));
    Ok(asked.ok().flatten().map(told))
}

/// The last day, unless something else is asked for.
fn asked(job: JobRef, parameters: &Parameters, listing: &Listing) -> Result<Asked, Problem> {
    let now = time::now();
    let to = parameters.instant("to")?.unwrap_or(now).min(LAST);
    let from = parameters.instant("from")?;
    let from = from.unwrap_or(to.min(now).plus(-DAY_MS)).max(FIRST);
    if from >= to {
        let detail = format!(
            "to: {} is not after from, {}: give a later `to` or an earlier `from`",
            Time(to),
            Time(from)
        );
        return Err(Problem::parameter("to", detail));
    }
    let rows = parameters.one("limit")?.unwrap_or(DEFAULT_ROWS);
    if !(1..=explain::ROWS).contains(&rows) {
        let detail = format!("limit: `{rows}` is not between 1 and {}", explain::ROWS);
        return Err(Problem::parameter("limit", detail));
    }
    let place = parameters.text("cursor")?;
    let place = place.map(|cursor| listing.decode(cursor)).transpose()?;
    let place = place.map(|place| place.parse().map(WallMs));
    let place = place.transpose().map_err(|_| cursor::foreign())?;
    if place.is_some_and(|place| place < from || place >= to) {
        return Err(cursor::foreign());
    }
    Ok(Asked {
        job,
        from: place.unwrap_or(from),
        to,
        rows,
        now,
    })
}

/// The answer, and what the job asks of a worker now.
fn answer(store: &dyn Read, asked: &Asked) -> Result<Option<(Answer, Requirement)>, Error> {
    let Some(record) = store.job_named(&asked.job.namespace, &asked.job.name)? else {
        return Ok(None);
    };
    let versions = versions(store, &record, asked.from)?;
    let uses = versions
        .iter()
        .filter_map(|version| version.spec.calendar.as_ref());
    let calendars = Known::read(store, &record.row.namespace, uses)?;
    let mut unfired = store.unfired(record.row.id, asked.from, asked.to, asked.rows + 1)?;
    // A range beyond what one answer tells ends it.
    let to = match unfired.get(asked.rows) {
        Some(beyond) => asked.to.min(beyond.first.max(asked.from.plus(1))),
        None => asked.to,
    };
    unfired.truncate(asked.rows);
    let timeline = Timeline::new(History {
        record: &record,
        versions: &versions,
        calendars: &calendars,
        unfired: &unfired,
        kept_since: kept_since(&versions, asked.now),
        now: asked.now,
    });
    let reach = timeline.reach(asked.from, to, asked.rows);
    // What became of the time after the last range says whether the range was made up for.
    let runs_until = timeline.next_from(reach).map_or(reach, |next| next.plus(1));
    let mut answer = Answer::default();
    for slack in SLACK_MS {
        let before = runs_until.plus(timeline.latest_ms()).plus(slack);
        let before = Some(before).filter(|before| *before <= asked.now);
        let runs = runs(store, &record, asked.from, runs_until, before)?;
        answer = timeline.explain(asked.from, reach, &runs, asked.rows);
        let missing = |row: &Row| matches!(row.fate, explain::Fate::Unrecorded);
        if before.is_none() || !answer.rows.iter().any(missing) {
            break;
        }
    }
    let more = Some(reach).filter(|reach| *reach < asked.to);
    answer.next = answer.next.or(more);
    Ok(Some((answer, record.version.spec.requirement())))
}

/// The runs that the schedule made for times in `[from, to)`. They were created at their time or later.
fn runs(
    store: &dyn Read,
    record: &JobRecord,
    from: WallMs,
    to: WallMs,
    created_before: Option<WallMs>,
) -> Result<Runs, Error> {
    let filter = RunFilter {
        job: Some(record.row.id),
        ..RunFilter::default()
    };
    let mut found = Runs::new();
    let mut before: Option<RunId> = created_before.map(explain::run_ids_from);
    loop {
        let page = store.runs(&filter, before, RUNS_A_READ)?;
        // A repetition stands for the same time, but the schedule did not make it.
        let made = |run: &&Run| run.origin == Origin::Schedule;
        for run in page.runs.iter().filter(made) {
            if let Some(nominal) = run.nominal.filter(|at| (from..to).contains(at)) {
                found.insert(nominal, RunFact::from(run));
            }
        }
        match page.next {
            Some(next) if next.created() >= from => before = Some(next),
            _ => return Ok(found),
        }
    }
}
