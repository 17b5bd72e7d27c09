//! Many jobs of a namespace with one call: pause, resume or delete those that have the labels, or the names.
//!
//! Each job is a command of its own: one that is refused does not touch its neighbours, and the answer tells of each. A
//! call takes a bounded number of jobs in order of their names and says where the next one goes on. Jobs that other servers
//! own are [spread](super::spread).

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use drumtower_core::engine::{Command, Condition, JobRef, Refusal, Reply};
use drumtower_core::model::{Actor, JobName, JobRecord, NamespaceName, SegmentId};
use drumtower_store::{Error, JobFilter, Read};
use futures_util::{StreamExt, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Edge;
use super::body::{self, Bounded};
use super::cursor::Listing;
use super::gate::NamespacePath;
use super::jobs;
use super::problem::{self, Kind, Problem};
use super::query::Parameters;
use super::spread::{self, Part, Settled, Work, spread};
use crate::auth::Principal;
use crate::cluster::Errand;

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

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BulkItem")]
struct Item {
    namespace: NamespaceName,
    name: JobName,
    result: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<problem::Body<'static>>")]
    problem: Option<serde_json::Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    errand: Option<Extension<Errand>>,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    let caller = Caller::new(principal, namespace, errand);
    carry_out(&edge, &caller, Deed::Pause, &uri, &bytes).await
}

pub async fn resume(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
    errand: Option<Extension<Errand>>,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    let caller = Caller::new(principal, namespace, errand);
    carry_out(&edge, &caller, Deed::Resume, &uri, &bytes).await
}

pub async fn delete(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
    errand: Option<Extension<Errand>>,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    let caller = Caller::new(principal, namespace, errand);
    carry_out(&edge, &caller, Deed::Delete, &uri, &bytes).await
}

/// Who asks, of which namespace, and what to show to other servers.
struct Caller {
    actor: Actor,
    namespace: NamespaceName,
    errand: Option<Errand>,
}

impl Caller {
    fn new(
        principal: Principal,
        namespace: NamespaceName,
        errand: Option<Extension<Errand>>,
    ) -> Self {
        Self {
            actor: principal.actor,
            namespace,
            errand: errand.map(|Extension(errand)| errand),
        }
    }
}

async fn carry_out(
    edge: &Edge,
    caller: &Caller,
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
    let (dry_run, labels) = (request.dry_run, request.labels.clone());
    let home = caller.namespace.clone();
    let chosen = edge
        .read(move |store| choose(store, home, &request, after))
        .await?;
    let work = Deeds {
        edge,
        caller,
        deed,
        dry_run,
        labels,
        jobs: chosen.jobs,
    };
    let errand = caller.errand.as_ref().filter(|_| !dry_run);
    let places = (0..work.jobs.len()).collect();
    let items: Vec<Item> = spread(edge, errand, &work, places).await;
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

/// What is to be done, and to which jobs.
struct Deeds<'a> {
    edge: &'a Edge,
    caller: &'a Caller,
    deed: Deed,
    dry_run: bool,
    labels: BTreeMap<String, String>,
    jobs: Vec<Result<JobRecord, JobName>>,
}

impl Deeds<'_> {
    fn name(&self, place: usize) -> &JobName {
        match &self.jobs[place] {
            Ok(record) => &record.row.name,
            Err(name) => name,
        }
    }

    async fn settle(&self, place: usize) -> Settled<Item> {
        let outcome = match &self.jobs[place] {
            Err(name) => Err(Refusal::NoSuchJob(self.job(name)).into()),
            Ok(record) if self.dry_run => Ok(foreseen(record, self.deed)),
            Ok(record) => apply(self.edge, self.caller.actor.clone(), record, self.deed).await,
        };
        match outcome {
            Ok(result) => Settled::Done(self.item(place, result, None)),
            Err(problem) => Settled::refused(problem, |problem| self.failed(place, problem)),
        }
    }

    fn job(&self, name: &JobName) -> JobRef {
        JobRef {
            namespace: self.caller.namespace.clone(),
            name: name.clone(),
        }
    }

    fn item(&self, place: usize, result: Outcome, problem: Option<Problem>) -> Item {
        let problem = problem.and_then(|it| serde_json::to_value(it.body()).ok());
        Item {
            namespace: self.caller.namespace.clone(),
            name: self.name(place).clone(),
            result,
            problem,
        }
    }
}

impl Work for Deeds<'_> {
    type Outcome = Item;

    fn segment(&self, place: usize) -> SegmentId {
        self.job(self.name(place)).segment()
    }

    async fn here(&self, places: &[usize]) -> Vec<Settled<Item>> {
        let work = places.iter().copied().map(|place| self.settle(place));
        stream::iter(work).buffered(AT_ONCE).collect().await
    }

    /// The same of these jobs by name, and only those that still have the labels.
    fn part(&self, errand: &Errand, places: &[usize]) -> Result<Part, Problem> {
        let names: Vec<&JobName> = places.iter().map(|place| self.name(*place)).collect();
        let body = serde_json::json!({"labels": self.labels, "names": names});
        Ok(Part {
            held: errand.0.part(body.to_string().into_bytes()),
            again: false,
        })
    }

    fn read(&self, answer: &Bytes, places: &[usize]) -> Result<Vec<Settled<Item>>, Problem> {
        #[derive(Deserialize)]
        struct Told {
            items: Vec<Item>,
        }
        let Told { items } = spread::parse(answer)?;
        let mut told: BTreeMap<JobName, Item> = items
            .into_iter()
            .map(|item| (item.name.clone(), item))
            .collect();
        let settled = places
            .iter()
            .map(|place| match told.remove(self.name(*place)) {
                Some(item) => {
                    let problem = item.problem.clone();
                    spread::settled(item, problem.as_ref())
                }
                None => {
                    let detail = "it has changed since it was chosen: look at it and try again";
                    Settled::Done(self.failed(*place, Problem::new(Kind::Stale, detail)))
                }
            });
        Ok(settled.collect())
    }

    fn failed(&self, place: usize, problem: Problem) -> Item {
        self.item(place, Outcome::Failed, Some(problem))
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
