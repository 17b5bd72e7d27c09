//! Many runs with one call: the hot way in.
//!
//! The body is parsed straight into borrowed pieces, and everything in it becomes one command. An item that is refused
//! does not touch its neighbours; the answer has one entry per item, in their order.
//!
//! Where other servers own some of the jobs, the command is refused as a whole, and the items are [spread](super::spread):
//! each with the key that it has by its place in the whole batch, so that a repetition may be split in another way.

use std::borrow::Cow;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::IntoResponse;
use drumtower_core::engine::{Command, JobRef, Refusal, Reply, Trigger};
use drumtower_core::model::{
    Actor, JobName, Limits, NameError, NamespaceName, Obedience, SegmentId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body::{self, Bounded};
use super::problem::{self, Kind, Problem};
use super::query::Parameters;
use super::spread::{self, Part, Work, spread};
use super::trigger::{Answer, checked_key, key_of, params, when};
use super::{Edge, internal};
use crate::auth::Principal;
use crate::cluster::Errand;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Batch")]
pub struct Batch<'a> {
    #[serde(borrow)]
    #[schemars(length(max = 1000))]
    runs: Vec<Item<'a>>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BatchItem")]
struct Item<'a> {
    /// The token's own unless given.
    #[serde(borrow, default)]
    #[schemars(with = "Option<NamespaceName>")]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    #[schemars(with = "JobName")]
    job: Text<'a>,
    /// Instead of the job's own.
    #[serde(borrow, default)]
    #[schemars(with = "Option<serde_json::Value>")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>", length(min = 1, max = 256))]
    idempotency_key: Option<Text<'a>>,
    /// How long after the request it is due, such as `30m`; not with `at`.
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>")]
    delay: Option<Text<'a>>,
    /// When it is due, in RFC 3339; not with `delay`.
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>")]
    at: Option<Text<'a>>,
    /// As with one run.
    #[serde(default)]
    overlap: Obedience,
    /// As with one run.
    #[serde(default)]
    force: bool,
}

/// Borrowed where it holds no escapes; serde borrows a bare `Cow`, but not one within an `Option`.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BatchAnswer")]
pub struct Answers<'a> {
    runs: Vec<Entry<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "BatchEntry")]
enum Entry<'a> {
    Made(Answer),
    Refused {
        problem: problem::Body<'a>,
    },
    /// As another server told it.
    #[schemars(skip)]
    Told(&'a RawValue),
}

/// What came of an item.
enum Made {
    Here(Answer),
    Told(Box<RawValue>),
}

pub async fn trigger(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    errand: Option<Extension<Errand>>,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::BATCH }>,
) -> Result<impl IntoResponse, Problem> {
    Parameters::read(&uri, &[])?;
    let key = batch_key(&headers)?;
    let (triggers, mut outcomes) = read(&bytes, &principal, key.as_deref())?;
    // It is needed again where the batch has to be taken apart.
    let again = errand.map(|Extension(errand)| (errand, bytes));
    if !triggers.is_empty() {
        let count = triggers.len();
        let actor = principal.actor.clone();
        let made = edge
            .handle
            .command(actor, Command::TriggerRuns { triggers });
        match (made.await, again) {
            (Ok(Err(Refusal::Elsewhere(_))), Some((errand, bytes))) => {
                let spread = spread_out(&edge, &principal, &errand, &bytes, key.as_deref());
                settle(&mut outcomes, spread.await?);
            }
            (made, _) => settle(&mut outcomes, told(made??, count)?),
        }
    }
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], answer(&outcomes)?))
}

type Settled = Result<Made, Problem>;

fn told(reply: Reply, count: usize) -> Result<Vec<Settled>, Problem> {
    match reply {
        Reply::Triggered(answers) if answers.len() == count => Ok(answers
            .into_iter()
            .map(|answer| {
                answer
                    .map(|it| Made::Here(it.into()))
                    .map_err(Problem::from)
            })
            .collect()),
        other => Err(internal(&format!(
            "the engine answered {count} triggers with {other:?}"
        ))),
    }
}

/// Fills in what was open.
fn settle(outcomes: &mut [Outcome], settled: Vec<Settled>) {
    let open = outcomes.iter_mut().filter(|outcome| outcome.is_none());
    for (outcome, settled) in open.zip(settled) {
        *outcome = Some(settled);
    }
}

/// The items that became triggers, with what each came to.
struct Apart<'a> {
    edge: &'a Edge,
    actor: &'a Actor,
    items: Vec<(Item<'a>, Trigger)>,
}

/// Takes the batch apart: an outcome for each item that is not refused here.
async fn spread_out(
    edge: &Edge,
    principal: &Principal,
    errand: &Errand,
    bytes: &Bytes,
    key: Option<&str>,
) -> Result<Vec<Settled>, Problem> {
    let home = principal.home();
    let Batch { runs } = body::parse(bytes)?;
    let keyed = runs
        .into_iter()
        .enumerate()
        .map(|(index, item)| item.keyed(key, index));
    let both = keyed.filter_map(|item| {
        let trigger = trigger_of(item.clone(), principal, &home, &mut None).ok()?;
        Some((item, trigger))
    });
    let apart = Apart {
        edge,
        actor: &principal.actor,
        items: both.collect(),
    };
    let places = (0..apart.items.len()).collect();
    Ok(spread(edge, Some(errand), &apart, places).await)
}

impl Work for Apart<'_> {
    type Outcome = Settled;

    fn segment(&self, place: usize) -> SegmentId {
        self.items[place].1.job.segment()
    }

    async fn here(&self, places: &[usize]) -> Vec<spread::Settled<Settled>> {
        let triggers = places.iter().map(|place| self.items[*place].1.clone());
        let command = Command::TriggerRuns {
            triggers: triggers.collect(),
        };
        let made = match self.edge.handle.command(self.actor.clone(), command).await {
            Ok(Ok(reply)) => told(reply, places.len()),
            Ok(Err(refusal)) => Err(refusal.into()),
            Err(unavailable) => Err(unavailable.into()),
        };
        match made {
            Ok(made) => made.into_iter().map(spread::Settled::Done).collect(),
            Err(problem) => places
                .iter()
                .map(|_| spread::Settled::refused(problem.clone(), Err))
                .collect(),
        }
    }

    fn part(&self, errand: &Errand, places: &[usize]) -> Result<Part, Problem> {
        let items = || places.iter().map(|place| &self.items[*place]);
        let body = Sent {
            runs: items().map(SentItem::of).collect(),
        };
        let body = serde_json::to_vec(&body).map_err(|error| internal(&error))?;
        Ok(Part {
            held: errand.0.part(body),
            again: items().all(|(item, _)| item.idempotency_key.is_some()),
        })
    }

    fn read(&self, answer: &Bytes, _: &[usize]) -> Result<Vec<spread::Settled<Settled>>, Problem> {
        #[derive(Deserialize)]
        struct Told {
            runs: Vec<Box<RawValue>>,
        }
        #[derive(Deserialize)]
        struct Refused {
            problem: Option<serde_json::Value>,
        }
        let Told { runs } = spread::parse(answer)?;
        let settled = runs.into_iter().map(|run| {
            let refused: Option<Refused> = serde_json::from_str(run.get()).ok();
            let problem = refused.and_then(|refused| refused.problem);
            spread::settled(Ok(Made::Told(run)), problem.as_ref())
        });
        Ok(settled.collect())
    }

    fn failed(&self, _: usize, problem: Problem) -> Settled {
        Err(problem)
    }
}

/// A part of a batch as another server gets it.
#[derive(Serialize)]
struct Sent<'a> {
    runs: Vec<SentItem<'a>>,
}

#[derive(Serialize)]
struct SentItem<'a> {
    namespace: &'a str,
    job: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    overlap: Obedience,
    force: bool,
}

impl<'a> SentItem<'a> {
    /// What was left out in the batch is said: the other server knows neither the whole batch nor the place in it.
    fn of((item, trigger): &'a (Item<'a>, Trigger)) -> Self {
        fn text<'b>(it: &'b Option<Text<'_>>) -> Option<&'b str> {
            it.as_ref().map(|Text(text)| &**text)
        }
        Self {
            namespace: trigger.job.namespace.as_str(),
            job: trigger.job.name.as_str(),
            params: item.params,
            idempotency_key: text(&item.idempotency_key),
            delay: text(&item.delay),
            at: text(&item.at),
            overlap: item.overlap,
            force: item.force,
        }
    }
}

impl Item<'_> {
    /// With the key of its place in the batch, unless it has one of its own.
    fn keyed(mut self, key: Option<&str>, index: usize) -> Self {
        if let (Some(key), None) = (key, &self.idempotency_key) {
            self.idempotency_key = Some(Text(format!("{key}/{index}").into()));
        }
        self
    }
}

/// The key of the whole batch: an item without one of its own gets this and its place, so that a repeated batch makes no
/// second run. It leaves room for the place.
fn batch_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    const ROOM: usize = 4;
    let key = key_of(headers)?;
    let most = Limits::IDEMPOTENCY_KEY_CHARS - ROOM;
    match &key {
        Some(key) if key.chars().count() > most => Err(Problem::new(
            Kind::InvalidHeader,
            format!("Idempotency-Key: that of a batch may have {most} characters"),
        )),
        _ => Ok(key),
    }
}

type Outcome = Option<Settled>;

/// The triggers to carry out, and one outcome per item: settled for those refused here, open for the others.
fn read(
    bytes: &Bytes,
    principal: &Principal,
    key: Option<&str>,
) -> Result<(Vec<Trigger>, Vec<Outcome>), Problem> {
    let Batch { runs } = body::parse(bytes)?;
    if runs.len() > Limits::BATCH_RUNS {
        let detail = format!(
            "runs: may have {} items, has {}: send several batches",
            Limits::BATCH_RUNS,
            runs.len()
        );
        return Err(Problem::field("runs", detail));
    }
    let mut triggers = Vec::with_capacity(runs.len());
    let mut outcomes = Vec::with_capacity(runs.len());
    let home = principal.home();
    let mut last = None;
    for (index, item) in runs.into_iter().enumerate() {
        match trigger_of(item.keyed(key, index), principal, &home, &mut last) {
            Ok(trigger) => {
                triggers.push(trigger);
                outcomes.push(None);
            }
            Err(problem) => outcomes.push(Some(Err(problem))),
        }
    }
    Ok((triggers, outcomes))
}

/// `last` is the job of the item before, as batches mostly name the same one again: its names are shared, not copied.
fn trigger_of(
    item: Item<'_>,
    principal: &Principal,
    home: &NamespaceName,
    last: &mut Option<JobRef>,
) -> Result<Trigger, Problem> {
    let namespace = item
        .namespace
        .as_ref()
        .map_or(home.as_str(), |Text(namespace)| namespace);
    let same =
        |job: &&JobRef| job.name.as_str() == item.job.0 && job.namespace.as_str() == namespace;
    let job = match last.as_ref().filter(same) {
        Some(job) => job.clone(),
        None => job_of(namespace, &item.job.0, principal)?,
    };
    let trigger = Trigger {
        params: params(item.params)?,
        idempotency_key: item
            .idempotency_key
            .map(|Text(key)| checked_key(key))
            .transpose()?,
        request: None,
        when: when(
            item.delay.as_ref().map(|Text(delay)| &**delay),
            item.at.as_ref().map(|Text(at)| &**at),
        )?,
        job: job.clone(),
        rerun: None,
        overlap: item.overlap,
        force: item.force,
    };
    *last = Some(job);
    Ok(trigger)
}

fn job_of(namespace: &str, name: &str, principal: &Principal) -> Result<JobRef, Problem> {
    let wrong = |field: &str, error: NameError| Problem::field(field, error.to_string());
    let namespace = NamespaceName::new(namespace).map_err(|error| wrong("namespace", error))?;
    principal.enter(&namespace)?;
    let name = JobName::new(name).map_err(|error| wrong("job", error))?;
    Ok(JobRef { namespace, name })
}

fn answer(outcomes: &[Outcome]) -> Result<Vec<u8>, Problem> {
    let mut runs = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        runs.push(match outcome {
            Some(Ok(Made::Here(made))) => Entry::Made(*made),
            Some(Ok(Made::Told(entry))) => Entry::Told(entry),
            Some(Err(problem)) => Entry::Refused {
                problem: problem.body(),
            },
            None => return Err(internal(&"an item of a batch was left without an answer")),
        });
    }
    serde_json::to_vec(&Answers { runs }).map_err(|error| internal(&error))
}
