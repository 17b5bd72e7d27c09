//! How runs ended, by time: sums over what the store counts for each job and minute. No run is looked at.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use drumtower_core::engine::JobRef;
use drumtower_core::model::{JobId, JobName, NamespaceName, WallMs};
use drumtower_core::schedule::parse_duration;
use drumtower_store::{Read, Rollup};
use schemars::JsonSchema;
use serde::Serialize;

use super::Edge;
use super::problem::Problem;
use super::query::Parameters;
use super::time::{self, Time};
use crate::auth::Principal;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const MOST_POINTS: i64 = 1_500;
/// Over all jobs; of one job as far back as they are kept.
const WIDEST_MS: i64 = 24 * HOUR_MS;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Rollups")]
pub struct Answer {
    since: Time,
    until: Time,
    step_ms: i64,
    /// One for each step, oldest first, also where nothing ended. The last one grows while it lasts.
    points: Vec<Point>,
}

/// What ended within one step.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RollupPoint")]
struct Point {
    at: Time,
    completed: u64,
    failed: u64,
    cancelled: u64,
    /// From the due time to the first start; estimated from powers of two. `null` when nothing started.
    delay_p50_ms: Option<u64>,
    delay_p99_ms: Option<u64>,
    /// Of last attempts, likewise.
    duration_p50_ms: Option<u64>,
    duration_p99_ms: Option<u64>,
}

#[derive(Clone, Copy)]
struct Window {
    since: i64,
    until: i64,
    step: i64,
}

pub async fn show(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Json<Answer>, Problem> {
    let parameters = Parameters::read(&uri, &["namespace", "job", "since", "until", "step"])?;
    let mut namespace = principal.narrow(parameters.one("namespace")?)?;
    let job = match parameters.one::<JobName>("job")? {
        None => None,
        Some(name) => {
            let home = namespace.unwrap_or_else(|| principal.home());
            namespace = Some(home.clone());
            let wanted = JobRef {
                namespace: home,
                name,
            };
            Some(super::jobs::find(&edge, wanted).await?.row.id)
        }
    };
    let window = window(&parameters, job.is_some())?;
    let rows = edge
        .read(move |store| counted(store, namespace.as_ref(), job, window))
        .await?;
    Ok(Json(answer(window, &rows)))
}

/// The last hour in steps of a minute, unless something else is asked for.
fn window(parameters: &Parameters, of_one_job: bool) -> Result<Window, Problem> {
    let until = parameters.instant("until")?.unwrap_or_else(time::now);
    let since = parameters.instant("since")?;
    let since = since.unwrap_or(WallMs(until.0.saturating_sub(HOUR_MS)));
    if since >= until {
        let detail = "until: it is not after `since`: give a later `until` or an earlier `since`";
        return Err(Problem::parameter("until", detail));
    }
    let width = until.0.saturating_sub(since.0);
    if !of_one_job && width > WIDEST_MS {
        let detail =
            "since: over all jobs at most 24 hours can be asked for: name a job, or ask for less";
        return Err(Problem::parameter("since", detail));
    }
    let step = match parameters.text("step")? {
        None => MINUTE_MS,
        Some(text) => {
            let ms = parse_duration(text)
                .map_err(|error| Problem::parameter("step", format!("step: {error}")))?;
            i64::try_from(ms).unwrap_or(i64::MAX)
        }
    };
    if step < MINUTE_MS || step % MINUTE_MS != 0 {
        let detail = "step: it is not a number of minutes: use `1m` or more";
        return Err(Problem::parameter("step", detail));
    }
    if width / step >= MOST_POINTS {
        let detail =
            format!("step: more than {MOST_POINTS} points: use a longer one, or ask for less");
        return Err(Problem::parameter("step", detail));
    }
    Ok(Window {
        since: since.0.div_euclid(step).saturating_mul(step),
        until: until.0,
        step,
    })
}

/// The roll-ups that the caller may see, summed by step.
fn counted(
    store: &dyn Read,
    namespace: Option<&NamespaceName>,
    job: Option<JobId>,
    window: Window,
) -> Result<BTreeMap<i64, Rollup>, drumtower_store::Error> {
    let minute = |ms: i64| ms.div_euclid(MINUTE_MS);
    let last = minute(window.until).saturating_add(1);
    let rows = store.rollups(job, minute(window.since), last)?;
    let mut seen: BTreeMap<JobId, bool> = BTreeMap::new();
    let mut steps: BTreeMap<i64, Rollup> = BTreeMap::new();
    for row in rows {
        if let (Some(namespace), None) = (namespace, job) {
            let known = match seen.get(&row.job) {
                Some(known) => *known,
                None => {
                    let record = store.job(row.job)?;
                    record.is_some_and(|record| record.row.namespace == *namespace)
                }
            };
            seen.insert(row.job, known);
            if !known {
                continue;
            }
        }
        let at = (row.minute * MINUTE_MS).div_euclid(window.step) * window.step;
        match steps.get_mut(&at) {
            Some(sum) => add(sum, &row),
            None => {
                steps.insert(at, row);
            }
        }
    }
    Ok(steps)
}

fn add(sum: &mut Rollup, row: &Rollup) {
    sum.completed += row.completed;
    sum.failed += row.failed;
    sum.cancelled += row.cancelled;
    add_sketch(&mut sum.delay_ms, &row.delay_ms);
    add_sketch(&mut sum.duration_ms, &row.duration_ms);
}

fn add_sketch(sum: &mut Vec<u64>, row: &[u64]) {
    if sum.len() < row.len() {
        sum.resize(row.len(), 0);
    }
    for (slot, count) in sum.iter_mut().zip(row) {
        *slot += count;
    }
}

fn answer(window: Window, steps: &BTreeMap<i64, Rollup>) -> Answer {
    let mut points = Vec::new();
    let mut at = window.since;
    while at < window.until {
        points.push(point(at, steps.get(&at)));
        at += window.step;
    }
    Answer {
        since: Time(WallMs(window.since)),
        until: Time(WallMs(window.until)),
        step_ms: window.step,
        points,
    }
}

fn point(at: i64, counted: Option<&Rollup>) -> Point {
    let of = |pick: fn(&Rollup) -> u64| counted.map_or(0, pick);
    let quantile = |pick: fn(&Rollup) -> &Vec<u64>, share: f64| {
        counted.and_then(|row| estimate(pick(row), share))
    };
    Point {
        at: Time(WallMs(at)),
        completed: of(|row| row.completed),
        failed: of(|row| row.failed),
        cancelled: of(|row| row.cancelled),
        delay_p50_ms: quantile(|row| &row.delay_ms, 0.5),
        delay_p99_ms: quantile(|row| &row.delay_ms, 0.99),
        duration_p50_ms: quantile(|row| &row.duration_ms, 0.5),
        duration_p99_ms: quantile(|row| &row.duration_ms, 0.99),
    }
}

/// The value below which `share` of a sketch lies. Place 0 counts zeros, place k values of [2^(k-1), 2^k), which are taken
/// to lie evenly.
fn estimate(sketch: &[u64], share: f64) -> Option<u64> {
    let total: u64 = sketch.iter().sum();
    if total == 0 {
        return None;
    }
    let wanted = share * total as f64;
    let mut below = 0.0;
    for (place, count) in sketch.iter().enumerate() {
        let count = *count as f64;
        if count > 0.0 && below + count >= wanted {
            if place == 0 {
                return Some(0);
            }
            let low = 2_f64.powi(i32::try_from(place).unwrap_or(i32::MAX) - 1);
            return Some((low + low * ((wanted - below) / count)).round() as u64);
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_within_the_place_that_holds_them() {
        assert_eq!(estimate(&[], 0.5), None);
        assert_eq!(estimate(&[0, 0], 0.5), None);
        assert_eq!(estimate(&[4], 0.99), Some(0));
        // 50 below 1 ms, 50 between 8 and 16 ms.
        let sketch = [50, 0, 0, 0, 50];
        assert_eq!(estimate(&sketch, 0.5), Some(0));
        assert_eq!(estimate(&sketch, 0.75), Some(12));
        assert_eq!(estimate(&sketch, 0.99), Some(16));
    }

    #[test]
    fn every_step_has_a_point() {
        let window = Window {
            since: 0,
            until: 3 * MINUTE_MS + 1,
            step: MINUTE_MS,
        };
        let row = Rollup {
            job: JobId(1),
            minute: 2,
            completed: 3,
            failed: 1,
            cancelled: 0,
            delay_ms: vec![4],
            duration_ms: vec![],
        };
        let answer = answer(window, &BTreeMap::from([(2 * MINUTE_MS, row)]));
        let completed: Vec<u64> = answer.points.iter().map(|point| point.completed).collect();
        assert_eq!(completed, [0, 0, 3, 0]);
        assert_eq!(answer.points[2].delay_p99_ms, Some(0));
        assert_eq!(answer.points[2].duration_p50_ms, None);
    }
}
