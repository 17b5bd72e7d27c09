//! Routes of notifications: what was sent to whom, and a message to try a way out.

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{JobRef, Refusal};
use drumtower_core::model::{JobName, NamespaceName, Notify, NotifyOn, NotifyRule, SettingName};
use drumtower_store::Read;
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{self, Bounded};
use super::page::Page;
use super::problem::Problem;
use super::query::Parameters;
use super::time::Time;
use super::{Edge, sum};
use crate::auth::Principal;
use crate::cluster::Errand;
use crate::notify::{self, Outcome, Target};

/// A message and what became of it.
#[derive(Serialize, JsonSchema)]
pub struct Notification {
    /// The id that the receiver sees.
    id: String,
    namespace: NamespaceName,
    /// `null` when it tells of several jobs.
    job: Option<JobName>,
    /// `failure`, `recovery`, `late` or `summary`.
    #[serde(rename = "type")]
    kind: String,
    summary: String,
    channel: Channel,
    /// Without what may be secret.
    target: String,
    state: notify::State,
    attempts: u32,
    created: Time,
    updated: Time,
    /// When it is tried again.
    next_attempt: Option<Time>,
    error: Option<String>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Channel {
    Webhook,
    Email,
}

impl Channel {
    fn of(target: &Target) -> Self {
        match target {
            Target::Webhook(_) => Self::Webhook,
            Target::Email(_) => Self::Email,
        }
    }
}

const STATES: [notify::State; 4] = [
    notify::State::Pending,
    notify::State::Delivered,
    notify::State::Failed,
    notify::State::Dropped,
];

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    errand: Option<Extension<Errand>>,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["namespace", "state", "limit"])?;
    let namespace = principal.narrow(parameters.one("namespace")?)?;
    let state = match parameters.text("state")? {
        None => None,
        Some(given) => Some(named_state(given)?),
    };
    let limit = parameters.limit()?;
    let takes = |delivery: &notify::Delivery| {
        let of = &delivery.message.place.namespace;
        namespace.as_ref().is_none_or(|it| it == of)
            && state.is_none_or(|state| state == delivery.state)
    };
    let found = edge.notices.deliveries(takes, limit);
    let page = Page::whole(found.into_iter().map(view));
    let Some(Extension(errand)) = errand else {
        return Ok(Json(page).into_response());
    };
    // Each server sends the messages about what it owns, and remembers them.
    let mut others = sum::same(&edge, Some(&errand)).await.told;
    let mut items = sum::items(&mut sum::value(&page)?, "items");
    items.extend(others.iter_mut().flat_map(|part| sum::items(part, "items")));
    items.sort_by_cached_key(|it| std::cmp::Reverse(it["created"].to_string()));
    items.truncate(limit);
    Ok(Json(Page::whole(items.into_iter())).into_response())
}

fn named_state(given: &str) -> Result<notify::State, Problem> {
    let found = STATES.into_iter().find(|state| state.as_str() == given);
    found.ok_or_else(|| {
        let names: Vec<&str> = STATES.iter().map(|state| state.as_str()).collect();
        let given: String = given.chars().take(64).collect();
        let detail = format!("state: `{given}` is none of {}", names.join(", "));
        Problem::parameter("state", detail)
    })
}

fn view(delivery: notify::Delivery) -> Notification {
    let message = &delivery.message;
    Notification {
        id: message.id.clone(),
        namespace: message.place.namespace.clone(),
        job: message.job().cloned(),
        kind: message.kind().to_owned(),
        summary: message.summary(),
        channel: Channel::of(&message.place.target),
        target: message.place.target.to_string(),
        state: delivery.state,
        attempts: delivery.attempts,
        created: message.created.into(),
        updated: delivery.updated.into(),
        next_attempt: delivery.next.map(Time::from),
        error: delivery.error,
    }
}

/// Exactly one of `job`, `webhook` and `email` is given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NotificationTest")]
pub struct Test {
    /// Whose message it is; that of the token, or `default`, unless given.
    #[serde(default)]
    namespace: Option<NamespaceName>,
    /// Every target of the rules in force for this job, up to 20.
    #[serde(default)]
    job: Option<JobName>,
    /// This address.
    #[serde(default)]
    webhook: Option<String>,
    /// This address.
    #[serde(default)]
    email: Option<String>,
}

/// What became of a test message at one target.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NotificationTested")]
pub struct Tested {
    channel: Channel,
    target: String,
    delivered: bool,
    error: Option<String>,
}

pub async fn test(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Page<Tested>>, Problem> {
    Parameters::read(&uri, &[])?;
    let asked: Test = body::parse(&bytes)?;
    let namespace = asked.namespace.clone().unwrap_or_else(|| principal.home());
    principal.enter(&namespace)?;
    let targets = match asked.job.clone() {
        Some(job) if asked.webhook.is_none() && asked.email.is_none() => {
            of_job(&edge, &namespace, job).await?
        }
        None => vec![one(&asked)?],
        Some(_) => return Err(not_one()),
    };
    let sent = targets.into_iter().map(|target| {
        let (notices, namespace) = (&edge.notices, &namespace);
        async move {
            let outcome = notices.test(namespace, target.clone()).await;
            tested(&target, outcome)
        }
    });
    Ok(Json(Page::whole(join_all(sent).await.into_iter())))
}

fn tested(target: &Target, outcome: Outcome) -> Tested {
    let error = match outcome {
        Outcome::Delivered => None,
        Outcome::Again(error) | Outcome::Never(error) => Some(error),
    };
    Tested {
        channel: Channel::of(target),
        target: target.to_string(),
        delivered: error.is_none(),
        error,
    }
}

/// The one address that was given, checked as a rule's is.
fn one(asked: &Test) -> Result<Target, Problem> {
    let rule = NotifyRule {
        on: vec![NotifyOn::Failure],
        webhook: asked.webhook.clone(),
        email: asked.email.iter().cloned().collect(),
        late_after: None,
        group_for: None,
    };
    let mut targets = Target::of_rule(&rule);
    let (Some(target), None) = (targets.next(), targets.next()) else {
        return Err(not_one());
    };
    drop(targets);
    let field = target.channel();
    match (Notify { rules: vec![rule] }).check("") {
        Ok(()) => Ok(target),
        Err(error) => Err(Problem::field(field, format!("{field}: {}", error.message))),
    }
}

fn not_one() -> Problem {
    Problem::field(
        "job",
        "give exactly one of `job`, `webhook` and `email`: where the message should go",
    )
}

/// The targets of the rules in force for a job.
async fn of_job(
    edge: &Edge,
    namespace: &NamespaceName,
    name: JobName,
) -> Result<Vec<Target>, Problem> {
    let job = JobRef {
        namespace: namespace.clone(),
        name,
    };
    let wanted = job.clone();
    let found = edge.read(move |store| rules_of(store, &wanted)).await?;
    let rules = found.ok_or(Refusal::NoSuchJob(job))?;
    Ok(notify::targets(&rules))
}

fn rules_of(
    store: &dyn Read,
    job: &JobRef,
) -> Result<Option<Vec<NotifyRule>>, drumtower_store::Error> {
    let Some(record) = store.job_named(&job.namespace, &job.name)? else {
        return Ok(None);
    };
    if let Some(own) = record.version.spec.notify {
        return Ok(Some(own.rules));
    }
    let settings = store.settings()?.into_iter();
    let value = settings
        .filter(|row| row.key.name == SettingName::Notify)
        .find(|row| row.key.namespace.as_ref() == Some(&job.namespace))
        .and_then(|row| row.value);
    let rules = value.and_then(|value| Notify::parse("value", &value).ok());
    Ok(Some(rules.unwrap_or_default().rules))
}
