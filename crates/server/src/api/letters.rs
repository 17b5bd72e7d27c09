//! Dead letters: runs that failed for good, to be looked at, requeued or discarded.
//!
//! A letter is read from the store and holds the whole run. Each that is requeued or discarded is a command of its own, which
//! says whether it was still there: two callers never requeue the same one. Letters of jobs that other servers own are
//! [spread](super::spread).

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, JobRef, Refusal, Reply, Trigger};
use drumtower_core::model::{
    Actor, JobId, JobName, Limits, NamespaceName, Obedience, Reason, Run, RunId, SegmentId,
    WorkerName, failures,
};
use drumtower_store::{Error, LetterFilter, Read};
use futures_util::{StreamExt, stream};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::{self, Bounded};
use super::gate::{LetterPath, NamespacePath};
use super::page::{self, Page};
use super::problem::{self, Problem};
use super::query::Parameters;
use super::run_view::RunView;
use super::spread::{self, Part, Settled, Work, spread};
use super::time::{self, Time};
use super::{Edge, internal, rerun, runs, trigger};
use crate::auth::Principal;
use crate::cluster::Errand;

const KNOWN: &[&str] = &["job", "reason", "since", "until", "limit", "cursor"];
/// Commands under way at a time: enough to share commits, few enough to leave others room.
const AT_ONCE: usize = 64;
/// Pages of the store that one call reads; a page may be empty where few letters fit.
const PAGES: usize = 10;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Letter")]
pub struct Letter {
    run: RunId,
    namespace: NamespaceName,
    job: Option<JobName>,
    job_id: JobId,
    /// Why it failed for good.
    reason: Option<Reason>,
    /// When it did.
    died: Option<Time>,
    attempts: usize,
    /// The worker of the last attempt.
    worker: Option<WorkerName>,
    nominal: Option<Time>,
    due: Time,
    error: Option<String>,
}

impl Letter {
    fn new(run: Run, job: Option<JobName>) -> Self {
        let last = run.transitions.last();
        Self {
            run: run.id,
            job,
            job_id: run.job,
            reason: last.map(|last| last.reason),
            died: last.map(|last| Time(last.at)),
            attempts: run.attempts.len(),
            worker: run.attempts.last().map(|last| last.worker.clone()),
            nominal: run.nominal.map(Time),
            due: Time(run.due),
            namespace: run.namespace,
            error: run.error,
        }
    }
}

pub async fn list(
    State(edge): State<Edge>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, KNOWN)?;
    let job = job_of(&edge, &namespace, parameters.one("job")?).await?;
    listed(&edge, Some(namespace), job, &uri, &parameters).await
}

/// Those of every namespace that the caller sees.
pub async fn list_all(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    let known = ["namespace", "reason", "since", "until", "limit", "cursor"];
    let parameters = Parameters::read(&uri, &known)?;
    let namespace = principal.narrow(parameters.one("namespace")?)?;
    listed(&edge, namespace, None, &uri, &parameters).await
}

async fn listed(
    edge: &Edge,
    namespace: Option<NamespaceName>,
    job: Option<JobId>,
    uri: &Uri,
    parameters: &Parameters,
) -> Result<Response, Problem> {
    let listing = page::listing(edge, uri, parameters);
    let before = match parameters.text("cursor")? {
        Some(cursor) => Some(listing.decode(cursor)?.parse()?),
        None => None,
    };
    let reason = parameters.text("reason")?.map(reason).transpose();
    let reason = reason.map_err(|detail| Problem::parameter("reason", detail))?;
    let filter = LetterFilter {
        job,
        namespace,
        reason,
        since: parameters.instant("since")?,
        until: parameters.instant("until")?,
    };
    let limit = parameters.limit()?;
    let (found, next) = edge
        .read(move |store| {
            let page = store.letters(&filter, before, limit)?;
            let names = runs::names(store, &page.runs)?;
            let letters = page.runs.into_iter().map(|run| {
                let name = names.get(&run.job).cloned().flatten();
                Letter::new(run, name)
            });
            Ok((letters.collect::<Vec<_>>(), page.next))
        })
        .await?;
    let page = Page {
        items: found,
        next: next.map(|id| listing.encode(&id.to_string())),
    };
    Ok(Json(page).into_response())
}

/// Reads what a run failed for; `Err` is what is wrong with it.
fn reason(text: &str) -> Result<Reason, String> {
    let known = failures();
    let found = known.iter().find(|reason| reason.as_str() == text);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|reason| reason.as_str()).collect();
        format!("reason: `{text}` is not one of {}", names.join(", "))
    })
}

/// The words for what a run can fail for.
pub fn reasons() -> Vec<&'static str> {
    failures().into_iter().map(Reason::as_str).collect()
}

fn reason_schema(_: &mut SchemaGenerator) -> Schema {
    let words = reasons().into_iter().map(Value::from);
    let words: Vec<Value> = words.chain([Value::Null]).collect();
    json_schema!({"type": ["string", "null"], "enum": words})
}

/// The job that a filter names, deleted ones aside.
async fn job_of(
    edge: &Edge,
    namespace: &NamespaceName,
    name: Option<JobName>,
) -> Result<Option<JobId>, Problem> {
    let Some(name) = name else {
        return Ok(None);
    };
    let wanted = JobRef {
        namespace: namespace.clone(),
        name,
    };
    let key = wanted.clone();
    let record = edge
        .read(move |store| store.job_named(&key.namespace, &key.name))
        .await?;
    Ok(Some(record.ok_or(Refusal::NoSuchJob(wanted))?.row.id))
}

pub async fn show(
    State(edge): State<Edge>,
    LetterPath(namespace, id): LetterPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let letter = edge.read(move |store| store.letter(id)).await?;
    let letter = letter
        .filter(|run| run.namespace == namespace)
        .ok_or(Refusal::NoSuchLetter(id))?;
    let found = edge
        .read(move |store| runs::Found::of(store, letter))
        .await?;
    Ok(Json(RunView::from(&found.named)).into_response())
}

/// Which letters are meant: those of `runs`, or those that fit all of the rest.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LetterSelection")]
pub struct Selection {
    /// These, by the ids of their runs; not with the other keys.
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(max = 1000))]
    runs: BTreeSet<String>,
    /// Those of the job of this name.
    #[serde(default)]
    job: Option<JobName>,
    /// Those that failed for this reason.
    #[serde(default)]
    #[schemars(schema_with = "reason_schema")]
    reason: Option<String>,
    /// Those that failed at or after this instant, in RFC 3339.
    #[serde(default)]
    since: Option<String>,
    /// Those that failed before this instant.
    #[serde(default)]
    until: Option<String>,
    /// All of the namespace.
    #[serde(default)]
    all: bool,
    /// At most so many, the newest first; 1000 unless given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Only when they are requeued: whether the new runs have a part in the overlap of their jobs, as with a trigger;
    /// `ignore` unless given. With `obey` one whose job is full stays a letter, unless the job's overlap lets it wait.
    #[serde(default)]
    overlap: Option<Obedience>,
    /// Only tells what would be done.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LettersAnswer")]
pub struct Answer {
    matched: usize,
    changed: usize,
    items: Vec<Item>,
    /// Whether more letters fit than one call takes: send it again.
    more: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LetterItem")]
struct Item {
    run: RunId,
    /// The run that was made of it.
    new_run: Option<RunId>,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<problem::Body<'static>>")]
    problem: Option<Value>,
}

#[derive(Clone, Copy)]
enum Deed {
    Requeue(Obedience),
    Discard,
}

pub async fn requeue(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
    errand: Option<Extension<Errand>>,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    let request = selection(&uri, &bytes)?;
    let deed = Deed::Requeue(request.overlap.unwrap_or_default());
    let errand = errand.map(|Extension(errand)| errand);
    carry_out(&edge, principal.actor, namespace, deed, request, errand).await
}

pub async fn discard(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
    errand: Option<Extension<Errand>>,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    let request = selection(&uri, &bytes)?;
    if request.overlap.is_some() {
        let detail = "overlap: what is discarded makes no run: leave it out";
        return Err(Problem::field("overlap", detail));
    }
    let errand = errand.map(|Extension(errand)| errand);
    let deed = Deed::Discard;
    carry_out(&edge, principal.actor, namespace, deed, request, errand).await
}

fn selection(uri: &Uri, bytes: &[u8]) -> Result<Selection, Problem> {
    Parameters::read(uri, &[])?;
    let request: Selection = body::parse(bytes)?;
    let filtered = request.job.is_some()
        || request.reason.is_some()
        || request.since.is_some()
        || request.until.is_some()
        || request.all;
    let most = Limits::DEAD_LETTERS_AT_ONCE;
    if request.runs.len() > most {
        let detail = format!(
            "runs: may have {most} items, has {}: send several requests",
            request.runs.len()
        );
        return Err(Problem::field("runs", detail));
    }
    if request.runs.is_empty() != filtered {
        let detail = "runs: name the runs, or give `job`, `reason`, `since`, `until` or `all`, not both: say which are meant";
        return Err(Problem::field("runs", detail));
    }
    if request
        .limit
        .is_some_and(|limit| limit == 0 || limit > most)
    {
        let detail = format!("limit: it is not between 1 and {most}");
        return Err(Problem::field("limit", detail));
    }
    Ok(request)
}

async fn carry_out(
    edge: &Edge,
    actor: Actor,
    namespace: NamespaceName,
    deed: Deed,
    request: Selection,
    errand: Option<Errand>,
) -> Result<Json<Answer>, Problem> {
    let instant = |field: &str, text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| time::instant(field, text)).transpose()
    };
    let reason = request.reason.as_deref().map(reason);
    let filter = LetterFilter {
        job: job_of(edge, &namespace, request.job).await?,
        namespace: Some(namespace.clone()),
        reason: reason
            .transpose()
            .map_err(|detail| Problem::field("reason", detail))?,
        since: instant("since", &request.since)?,
        until: instant("until", &request.until)?,
    };
    let named = request.runs.iter().map(|text| text.parse());
    let named = named.collect::<Result<Vec<RunId>, _>>()?;
    let limit = request.limit.unwrap_or(Limits::DEAD_LETTERS_AT_ONCE);
    let home = namespace.clone();
    let (letters, more) = edge
        .read(move |store| match named.is_empty() {
            true => fitting(store, &filter, limit),
            false => Ok((these(store, &home, named)?, false)),
        })
        .await?;
    let work = Deeds {
        edge,
        actor,
        namespace,
        deed,
        dry_run: request.dry_run,
        letters,
    };
    let errand = errand.as_ref().filter(|_| !request.dry_run);
    let places = (0..work.letters.len()).collect();
    let items: Vec<Item> = spread(edge, errand, &work, places).await;
    Ok(Json(Answer {
        matched: items.len(),
        changed: items.iter().filter(|item| item.done).count(),
        items,
        more,
    }))
}

/// A letter, or the id of a run that is none.
type Chosen = Result<Run, RunId>;

fn these(
    store: &dyn Read,
    namespace: &NamespaceName,
    ids: Vec<RunId>,
) -> Result<Vec<Chosen>, Error> {
    let one = |id: RunId| {
        let letter = store.letter(id)?;
        Ok(letter.filter(|run| run.namespace == *namespace).ok_or(id))
    };
    ids.into_iter().map(one).collect()
}

fn fitting(
    store: &dyn Read,
    filter: &LetterFilter,
    limit: usize,
) -> Result<(Vec<Chosen>, bool), Error> {
    let (mut letters, mut before) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = store.letters(filter, before, limit - letters.len())?;
        letters.extend(page.runs.into_iter().map(Ok));
        before = page.next;
        if before.is_none() || letters.len() >= limit {
            break;
        }
    }
    Ok((letters, before.is_some()))
}

/// What is to be done, and to which letters.
struct Deeds<'a> {
    edge: &'a Edge,
    actor: Actor,
    namespace: NamespaceName,
    deed: Deed,
    dry_run: bool,
    letters: Vec<Chosen>,
}

impl Deeds<'_> {
    fn run(&self, place: usize) -> RunId {
        match &self.letters[place] {
            Ok(letter) => letter.id,
            Err(run) => *run,
        }
    }

    async fn settle(&self, place: usize) -> Settled<Item> {
        let (edge, actor) = (self.edge, self.actor.clone());
        let outcome = match self.letters[place].clone() {
            Err(run) => Err(Refusal::NoSuchLetter(run).into()),
            Ok(letter) if self.dry_run => foreseen(edge, letter, self.deed).await,
            Ok(letter) => match self.deed {
                Deed::Requeue(overlap) => make(edge, actor, letter, overlap).await.map(Some),
                Deed::Discard => {
                    let thrown = throw(edge, actor, self.namespace.clone(), letter.id);
                    thrown.await.map(|()| None)
                }
            },
        };
        match outcome {
            Ok(new_run) => Settled::Done(Item {
                run: self.run(place),
                new_run,
                done: true,
                problem: None,
            }),
            Err(problem) => Settled::refused(problem, |problem| self.failed(place, problem)),
        }
    }
}

impl Work for Deeds<'_> {
    type Outcome = Item;

    fn segment(&self, place: usize) -> SegmentId {
        self.run(place).segment()
    }

    async fn here(&self, places: &[usize]) -> Vec<Settled<Item>> {
        let work = places.iter().copied().map(|place| self.settle(place));
        stream::iter(work).buffered(AT_ONCE).collect().await
    }

    fn part(&self, errand: &Errand, places: &[usize]) -> Result<Part, Problem> {
        let runs: Vec<RunId> = places.iter().map(|place| self.run(*place)).collect();
        let body = match self.deed {
            Deed::Requeue(overlap) => serde_json::json!({"runs": runs, "overlap": overlap}),
            Deed::Discard => serde_json::json!({"runs": runs}),
        };
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
        let told = items.into_iter().map(|item| (item.run, item));
        let mut told: BTreeMap<RunId, Item> = told.collect();
        let settled = places.iter().map(|place| {
            let run = self.run(*place);
            match told.remove(&run) {
                Some(item) => {
                    let problem = item.problem.clone();
                    spread::settled(item, problem.as_ref())
                }
                None => Settled::Done(self.failed(*place, Refusal::NoSuchLetter(run).into())),
            }
        });
        Ok(settled.collect())
    }

    fn failed(&self, place: usize, problem: Problem) -> Item {
        Item {
            run: self.run(place),
            new_run: None,
            done: false,
            problem: serde_json::to_value(problem.body()).ok(),
        }
    }
}

/// Whether it could be done now.
async fn foreseen(edge: &Edge, letter: Run, deed: Deed) -> Result<Option<RunId>, Problem> {
    if let Deed::Requeue(_) = deed {
        rerun::again(edge, letter).await?;
    }
    Ok(None)
}

async fn make(
    edge: &Edge,
    actor: Actor,
    letter: Run,
    overlap: Obedience,
) -> Result<RunId, Problem> {
    let (job, mut rerun) = rerun::again(edge, letter).await?;
    rerun.letter = true;
    let trigger = Trigger {
        rerun: Some(Box::new(rerun)),
        overlap,
        ..Trigger::of(job)
    };
    let (_, Json(answer)) = trigger::make(edge, actor, trigger).await?;
    Ok(answer.id())
}

async fn throw(
    edge: &Edge,
    actor: Actor,
    namespace: NamespaceName,
    run: RunId,
) -> Result<(), Problem> {
    let command = Command::DiscardLetters {
        namespace,
        runs: vec![run],
    };
    match edge.handle.command(actor, command).await?? {
        Reply::Discarded(discarded) if discarded.contains(&run) => Ok(()),
        Reply::Discarded(_) => Err(Refusal::NoSuchLetter(run).into()),
        other => Err(internal(&format!(
            "the engine answered a discard with {other:?}"
        ))),
    }
}
