//! Many jobs of a namespace with one call: pause, resume or delete those that have the labels, or the names.
//!
//! Each job is a command of its own: one that is refused does not touch its neighbours, and the answer tells of each. A
//! call takes a bounded number of jobs in order of their names and says where the next one goes on.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use drumtower_core::engine::{Command, Condition, JobRef, Refusal, Reply};
use drumtower_core::model::{Actor, JobName, JobRecord, NamespaceName};
use drumtower_store::{Error, JobFilter, Read};
use futures_util::{StreamExt, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Edge;
use super::body::{self, Bounded};
use super::cursor::Listing;
use super::gate::NamespacePath;
use super::jobs;
use super::problem::{self, Problem};
use super::query::Parameters;
use crate::auth::Principal;

/// Jobs that one call takes.
const MOST: usize = 1000;
/// Pages of the store that one call reads; a page may be empty where labels are rare.
const PAGES: usize = 10;
/// Commands under way at a time: enough to share commits, few enough to leave others room.
const AT_ONCE: usize = 64;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Selection")]
pub struct Request {
    /// All of these must match.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Only these.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    names: BTreeSet<JobName>,
    /// Only tells what would be done.
    #[serde(default)]
    dry_run: bool,
    /// `next` of the call before, with the same labels.
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BulkAnswer")]
pub struct Answer {
    matched: usize,
    changed: usize,
    items: Vec<Item>,
    /// More jobs match: passed as `cursor` it goes on with them.
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BulkItem")]
struct Item {
    namespace: NamespaceName,
    name: JobName,
    result: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<problem::Body<'static>>")]
    problem: Option<serde_json::Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BulkResult")]
enum Outcome {
    Changed,
    Unchanged,
    Failed,
}

#[derive(Clone, Copy)]
enum Deed {
    Pause,
    Resume,
    Delete,
}

pub async fn pause(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    carry_out(&edge, principal.actor, namespace, Deed::Pause, &uri, &bytes).await
}

pub async fn resume(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    carry_out(
        &edge,
        principal.actor,
        namespace,
        Deed::Resume,
        &uri,
        &bytes,
    )
    .await
}

pub async fn delete(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    carry_out(
        &edge,
        principal.actor,
        namespace,
        Deed::Delete,
        &uri,
        &bytes,
    )
    .await
}

async fn carry_out(
    edge: &Edge,
    actor: Actor,
    namespace: NamespaceName,
    deed: Deed,
    uri: &Uri,
    bytes: &[u8],
) -> Result<Json<Answer>, Problem> {
    Parameters::read(uri, &[])?;
    let request: Request = body::parse(bytes)?;
    check(&request)?;
    let parts = request
        .labels
        .iter()
        .flat_map(|(key, value)| [&**key, &**value]);
    let listing = Listing::new(&edge.cursors, std::iter::once(uri.path()).chain(parts));
    let after = request.cursor.as_deref();
    let after = after
        .map(|cursor| jobs::place(&listing.decode(cursor)?))
        .transpose()
        .map_err(|problem| Problem::field("cursor", problem.detail))?;
    let dry_run = request.dry_run;
    let home = namespace.clone();
    let chosen = edge
        .read(move |store| choose(store, home, &request, after))
        .await?;
    let work = chosen
        .jobs
        .into_iter()
        .map(|job| settle(edge, &actor, &namespace, job, deed, dry_run));
    let items: Vec<Item> = stream::iter(work).buffered(AT_ONCE).collect().await;
    let count = |outcome| items.iter().filter(|item| item.result == outcome).count();
    Ok(Json(Answer {
        matched: items.len(),
        changed: count(Outcome::Changed),
        next: chosen
            .next
            .map(|(namespace, name)| listing.encode(&format!("{namespace}/{name}"))),
        items,
    }))
}

/// Everything in a namespace is not what anyone deletes by leaving something out.
fn check(request: &Request) -> Result<(), Problem> {
    if request.labels.is_empty() && request.names.is_empty() {
        return Err(Problem::field(
            "labels",
            "labels: neither labels nor names are given: say which jobs are meant",
        ));
    }
    if request.names.len() > MOST {
        let detail = format!(
            "names: may have {MOST} items, has {}: send several requests",
            request.names.len()
        );
        return Err(Problem::field("names", detail));
    }
    if !request.names.is_empty() && request.cursor.is_some() {
        return Err(Problem::field(
            "cursor",
            "cursor: names are done in one call: leave it out",
        ));
    }
    Ok(())
}

/// The jobs that one call is about. A name without a job is kept: the answer says so.
struct Chosen {
    jobs: Vec<Result<JobRecord, JobName>>,
    next: Option<(NamespaceName, JobName)>,
}

fn choose(
    store: &dyn Read,
    namespace: NamespaceName,
    request: &Request,
    mut after: Option<(NamespaceName, JobName)>,
) -> Result<Chosen, Error> {
    let mut jobs = Vec::new();
    let labels = request.labels.iter();
    if !request.names.is_empty() {
        for name in &request.names {
            match store.job_named(&namespace, name)? {
                Some(job) => {
                    let own = &job.version.spec.labels;
                    if labels
                        .clone()
                        .all(|(key, value)| own.get(key) == Some(value))
                    {
                        jobs.push(Ok(job));
                    }
                }
                None => jobs.push(Err(name.clone())),
            }
        }
        return Ok(Chosen { jobs, next: None });
    }
    let filter = JobFilter {
        namespace: Some(namespace),
        labels: labels
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        ..JobFilter::default()
    };
    for _ in 0..PAGES {
        let page = store.jobs(&filter, after.as_ref(), MOST - jobs.len())?;
        jobs.extend(page.jobs.into_iter().map(Ok));
        after = page.next;
        if after.is_none() || jobs.len() >= MOST {
            break;
        }
    }
    Ok(Chosen { jobs, next: after })
}

async fn settle(
    edge: &Edge,
    actor: &Actor,
    namespace: &NamespaceName,
    job: Result<JobRecord, JobName>,
    deed: Deed,
    dry_run: bool,
) -> Item {
    let (name, outcome) = match job {
        Err(name) => {
            let job = JobRef {
                namespace: namespace.clone(),
                name: name.clone(),
            };
            (name, Err(Refusal::NoSuchJob(job).into()))
        }
        Ok(record) if dry_run => (record.row.name.clone(), Ok(foreseen(&record, deed))),
        Ok(record) => (
            record.row.name.clone(),
            apply(edge, actor.clone(), &record, deed).await,
        ),
    };
    let (result, problem) = match outcome {
        Ok(result) => (result, None),
        Err(problem) => (
            Outcome::Failed,
            serde_json::to_value(Problem::body(&problem)).ok(),
        ),
    };
    Item {
        namespace: namespace.clone(),
        name,
        result,
        problem,
    }
}

fn foreseen(record: &JobRecord, deed: Deed) -> Outcome {
    let would_change = match deed {
        Deed::Pause => record.row.paused.is_none(),
        Deed::Resume => record.row.paused.is_some(),
        Deed::Delete => true,
    };
    match would_change {
        true => Outcome::Changed,
        false => Outcome::Unchanged,
    }
}

async fn apply(
    edge: &Edge,
    actor: Actor,
    record: &JobRecord,
    deed: Deed,
) -> Result<Outcome, Problem> {
    let job = JobRef {
        namespace: record.row.namespace.clone(),
        name: record.row.name.clone(),
    };
    // What was chosen by its labels is changed as it was chosen; one that was edited meanwhile may not match any more.
    let condition = Condition::Revision(record.row.revision);
    let command = match deed {
        Deed::Pause => Command::PauseJob { job, condition },
        Deed::Resume => Command::ResumeJob { job, condition },
        Deed::Delete => Command::DeleteJob { job, condition },
    };
    match edge.handle.command(actor, command).await?? {
        Reply::Job { record: now, .. } if now.row.revision == record.row.revision => {
            Ok(Outcome::Unchanged)
        }
        Reply::Job { .. } | Reply::Deleted => Ok(Outcome::Changed),
        other => Err(jobs::unexpected(&other)),
    }
}
