//! The next and the last times of a schedule: of a job's own, or of one that is yet to be.

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use drumtower_core::engine::Refusal;
use drumtower_core::model::{JobRecord, JobSpec, NamespaceName, WallMs};
use drumtower_core::schedule::{
    self, Bounds, CalendarUse, Direction, Language, MOST_TIMES, Preview, PreviewTime, Schedule,
    ScheduleEntry, ScheduleSpec, Warning, describe,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Edge;
use super::body::{self, Bounded};
use super::gate::JobPath;
use super::problem::Problem;
use super::query::Parameters;
use super::time::{self, Time};
use crate::auth::Principal;
use crate::history::Known;

const DEFAULT_COUNT: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SchedulePreview")]
pub struct Asked {
    /// Where its calendars are looked up: the token's own unless given.
    #[serde(default)]
    namespace: Option<NamespaceName>,
    schedule: Vec<ScheduleEntry>,
    #[serde(default)]
    calendar: Option<CalendarUse>,
    #[serde(default)]
    jitter: Option<String>,
    #[serde(default)]
    bounds: Option<Bounds>,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    count: Option<usize>,
    #[serde(default)]
    backwards: bool,
}

/// Which times are wanted.
#[derive(Clone, Copy)]
struct Wanted {
    from: WallMs,
    count: usize,
    direction: Direction,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Times")]
pub struct Answer {
    words: String,
    words_zh: String,
    times: Vec<TimeView>,
    warnings: Vec<WarningView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DueTime")]
struct TimeView {
    nominal: Time,
    due: Time,
    local: Option<String>,
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ScheduleWarning")]
struct WarningView {
    code: &'static str,
    entry: Option<usize>,
    text: String,
}

pub async fn of_job(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
) -> Result<Json<Answer>, Problem> {
    let parameters = Parameters::read(&uri, &["from", "count", "backwards"])?;
    let wanted = Wanted {
        from: parameters.instant("from")?.unwrap_or_else(time::now),
        count: parameters.one("count")?.unwrap_or(DEFAULT_COUNT),
        direction: direction(parameters.flag("backwards")?.unwrap_or(false)),
    };
    if !(1..=MOST_TIMES).contains(&wanted.count) {
        return Err(Problem::parameter("count", too_many(wanted.count)));
    }
    let named = job.clone();
    let found = edge
        .read(move |store| {
            let Some(record) = store.job_named(&named.namespace, &named.name)? else {
                return Ok(None);
            };
            let used = record.version.spec.calendar.as_ref();
            let calendars = Known::read(store, &named.namespace, used.into_iter())?;
            Ok(Some((record, calendars)))
        })
        .await?;
    let Some((record, calendars)) = found else {
        return Err(Refusal::NoSuchJob(job).into());
    };
    let spec = record.version.spec.schedule_spec();
    let mut answer = answer(&spec, &calendars, Some(record.row.id.0), wanted)?;
    tell_of_job(&record, wanted, &mut answer);
    Ok(Json(answer))
}

/// What only the job knows: a time that follows the end of a run, and why there may be none.
fn tell_of_job(record: &JobRecord, wanted: Wanted, answer: &mut Answer) {
    let counts_from_end = |entry: &ScheduleEntry| entry.after_end.is_some();
    if let (Some(nominal), Some(due)) = (record.schedule.next_nominal, record.schedule.next_due)
        && record.version.spec.schedule.iter().any(counts_from_end)
        && wanted.direction == Direction::Forwards
        && nominal > wanted.from
    {
        answer.times.push(TimeView {
            nominal: Time(nominal),
            due: Time(due),
            local: None,
            note: None,
        });
    }
    if let Some(pause) = &record.row.paused {
        let text = format!(
            "the job is paused by {} since {}: none of its times makes a run before it is resumed",
            pause.actor,
            Time(pause.at)
        );
        answer.warnings.push(WarningView {
            code: "paused",
            entry: None,
            text,
        });
    }
    let bounds = record.version.spec.bounds.as_ref();
    let most = bounds.and_then(|bounds| bounds.max_fires);
    if let Some(most) = most.filter(|most| record.schedule.fires >= *most) {
        let text = format!("the schedule has made the {most} runs that `bounds.max_fires` allows");
        answer.warnings.push(WarningView {
            code: "used_up",
            entry: None,
            text,
        });
    }
}

pub async fn preview(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    Parameters::read(&uri, &[])?;
    let asked: Asked = body::parse(&bytes)?;
    let namespace = match &asked.namespace {
        Some(namespace) => {
            principal.enter(namespace)?;
            namespace.clone()
        }
        None => principal.home(),
    };
    let from = asked.from.as_deref();
    let from = from.map(|from| time::instant("from", from)).transpose()?;
    let wanted = Wanted {
        from: from.unwrap_or_else(time::now),
        count: asked.count.unwrap_or(DEFAULT_COUNT),
        direction: direction(asked.backwards),
    };
    if !(1..=MOST_TIMES).contains(&wanted.count) {
        return Err(Problem::field("count", too_many(wanted.count)));
    }
    let used = asked.calendar.clone();
    let calendars = edge
        .read(move |store| Known::living(store, &namespace, used.as_ref()))
        .await?;
    let spec = ScheduleSpec {
        entries: &asked.schedule,
        calendar: asked.calendar.as_ref(),
        jitter: asked.jitter.as_deref(),
        bounds: asked.bounds.as_ref(),
    };
    Ok(Json(answer(&spec, &calendars, None, wanted)?))
}

/// The next times of a manifest that is not applied.
pub async fn foreseen(edge: &Edge, spec: JobSpec) -> Result<Answer, Problem> {
    let (namespace, used) = (spec.namespace.clone(), spec.calendar.clone());
    let calendars = edge
        .read(move |store| Known::living(store, &namespace, used.as_ref()))
        .await?;
    let wanted = Wanted {
        from: time::now(),
        count: DEFAULT_COUNT,
        direction: Direction::Forwards,
    };
    answer(&spec.schedule_spec(), &calendars, None, wanted)
}

fn direction(backwards: bool) -> Direction {
    if backwards {
        Direction::Backwards
    } else {
        Direction::Forwards
    }
}

fn too_many(count: usize) -> String {
    format!("count: `{count}` is not between 1 and {MOST_TIMES}")
}

fn answer(
    spec: &ScheduleSpec<'_>,
    calendars: &Known,
    job: Option<u64>,
    wanted: Wanted,
) -> Result<Answer, Problem> {
    let refused = |error: schedule::Error| {
        let field = error.field();
        let detail = format!("{field}: {error}");
        Problem::field(field, detail)
    };
    let compiled = Schedule::compile(spec, calendars).map_err(refused)?;
    let Preview { times, warnings } = match &compiled {
        Some(schedule) => {
            let (from, count) = (wanted.from.0, wanted.count);
            schedule::preview(schedule, spec, job, from, count, wanted.direction)
        }
        None => Preview {
            times: Vec::new(),
            warnings: Vec::new(),
        },
    };
    let words = |language| describe(spec, language).map_err(refused);
    Ok(Answer {
        words: words(Language::English)?,
        words_zh: words(Language::Chinese)?,
        times: times.into_iter().map(TimeView::from).collect(),
        warnings: warnings.into_iter().map(WarningView::from).collect(),
    })
}

impl From<PreviewTime> for TimeView {
    fn from(time: PreviewTime) -> Self {
        Self {
            nominal: Time(WallMs(time.nominal)),
            due: Time(WallMs(time.due)),
            local: Some(time.local),
            note: time.note,
        }
    }
}

impl From<Warning> for WarningView {
    fn from(warning: Warning) -> Self {
        Self {
            code: warning.code.as_str(),
            entry: warning.entry,
            text: warning.text,
        }
    }
}
