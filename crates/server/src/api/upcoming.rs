//! What fires next, over all jobs: the order in which the scheduler itself reads them.

use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use drumtower_core::model::{JobName, JobRecord, NamespaceName, SegmentSet, WallMs};
use drumtower_core::schedule::Language;
use drumtower_store::Read;
use schemars::JsonSchema;
use serde::Serialize;

use super::Edge;
use super::page::Page;
use super::problem::Problem;
use super::query::Parameters;
use super::time::{self, Time};
use crate::auth::Principal;

const AHEAD_MS: i64 = 24 * 3_600_000;
/// Jobs that are looked at for a caller that does not see them all.
const LOOK_AT: usize = 10_000;
const A_READ: usize = 500;

/// The next fire of a job.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Upcoming")]
pub struct Upcoming {
    namespace: NamespaceName,
    job: JobName,
    nominal: Option<Time>,
    due: Time,
    words: Option<String>,
    words_zh: Option<String>,
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Json<Page<Upcoming>>, Problem> {
    let parameters = Parameters::read(&uri, &["namespace", "until", "limit"])?;
    let namespace = principal.narrow(parameters.one("namespace")?)?;
    let until = parameters.instant("until")?;
    let until = until.unwrap_or_else(|| time::now().plus(AHEAD_MS));
    let limit = parameters.limit()?;
    let found = edge
        .read(move |store| soonest(store, namespace.as_ref(), until, limit))
        .await?;
    Ok(Json(Page::whole(found.into_iter())))
}

fn soonest(
    store: &dyn Read,
    namespace: Option<&NamespaceName>,
    until: WallMs,
    limit: usize,
) -> Result<Vec<Upcoming>, drumtower_store::Error> {
    let (mut found, mut looked, mut after) = (Vec::new(), 0, None);
    while found.len() < limit && looked < LOOK_AT {
        let jobs = store.jobs_due(&SegmentSet::ALL, until, after, A_READ.min(limit.max(50)))?;
        looked += jobs.len();
        let Some(last) = jobs.last() else { break };
        after = last.schedule.next_due.map(|due| (due, last.row.id));
        let seen = |job: &&JobRecord| namespace.is_none_or(|only| job.row.namespace == *only);
        found.extend(jobs.iter().filter(seen).filter_map(upcoming));
    }
    found.truncate(limit);
    Ok(found)
}

fn upcoming(job: &JobRecord) -> Option<Upcoming> {
    let words = |language| job.version.spec.words(language);
    Some(Upcoming {
        namespace: job.row.namespace.clone(),
        job: job.row.name.clone(),
        nominal: job.schedule.next_nominal.map(Time),
        due: Time(job.schedule.next_due?),
        words: words(Language::English),
        words_zh: words(Language::Chinese),
    })
}
