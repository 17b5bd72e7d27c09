//! Carrying out a plan, step by step, and telling how far it came.

use drumtower_core::model::diff;
use serde_json::{Value, json};
use ureq::http::Method;

use super::plan::{Action, Step};
use crate::client::{Call, Client};
use crate::failure::{Exit, Failure, Result};
use crate::output::Progress;

/// How far a plan came.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What the server has now of each step that is done, in their order; `Null` of what is gone.
    pub objects: Vec<Value>,
    /// Why the step after those could not be done. What follows was not tried.
    pub failure: Option<Failure>,
}

/// Does what the steps say until one fails. `told` hears of each that is done.
pub fn carry_out(
    client: &Client,
    steps: &[Step],
    mut told: impl FnMut(&Step) -> Result<()>,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let progress = Progress::new("applying", steps.len());
    for step in steps {
        match one(client, step) {
            Ok(object) => {
                outcome.objects.push(object);
                progress.clear();
                told(step)?;
            }
            Err(failure) => {
                outcome.failure = Some(failure);
                break;
            }
        }
        progress.at(outcome.objects.len());
    }
    progress.clear();
    outcome.failure = outcome
        .failure
        .map(|failure| partial(failure, steps, outcome.objects.len()));
    Ok(outcome)
}

fn one(client: &Client, step: &Step) -> Result<Value> {
    let call = match (&step.document, step.action) {
        (_, Action::Unchanged) => return Ok(step.found.clone()),
        (None, _) => Call::new(Method::DELETE, step.path()).header("if-match", tag(step)),
        (Some(document), Action::Create | Action::Change) if document.paused => {
            return paused(client, step, document.body()?).map_err(|failure| told(failure, step));
        }
        (Some(document), Action::Create) => Call::new(Method::PUT, step.path())
            .json(document.body()?)
            .header("if-none-match", "*"),
        (Some(document), _) => Call::new(Method::PUT, step.path())
            .json(document.body()?)
            .header("if-match", tag(step)),
    };
    client.value(call).map_err(|failure| told(failure, step))
}

/// With its place, and in the words of a plan.
fn told(failure: Failure, step: &Step) -> Failure {
    let place = step
        .document
        .as_ref()
        .map_or(step.title(), |document| document.place());
    match failure.code.as_deref() {
        Some("stale" | "already_there") => Failure::new(
            Exit::Refused,
            format!(
                "{place}: {} was changed by someone else since the plan was made",
                step.title()
            ),
        )
        .remedy("run the command again: it plans anew"),
        _ => failure.at(&place),
    }
}

/// A job that shall be paused from its first moment on. A new one is made without a schedule, so that it cannot fire before
/// the pause holds; it and one that exists get what they shall be afterwards. Whatever breaks off on the way, the job does
/// not fire by what is to be paused.
fn paused(client: &Client, step: &Step, body: Value) -> Result<Value> {
    let path = step.path();
    let mut job = step.found.clone();
    if step.action == Action::Create {
        let mut bare = body.clone();
        for key in ["schedule", "calendar", "jitter", "bounds"] {
            bare.as_object_mut().and_then(|keys| keys.remove(key));
        }
        let call = Call::new(Method::PUT, &path).json(bare);
        job = client.value(call.header("if-none-match", "*"))?;
    }
    if job["paused"].is_null() {
        let call = Call::post(format!("{path}/pause"));
        job = client.value(call.header("if-match", step.kind.etag(&job)))?;
    }
    if diff(&job["spec"], &body).is_empty() {
        return Ok(job);
    }
    let call = Call::new(Method::PUT, &path).json(body);
    client.value(call.header("if-match", step.kind.etag(&job)))
}

/// The ETag of what the step was compared with.
fn tag(step: &Step) -> String {
    step.kind.etag(&step.found)
}

/// Says what was done and what was not, when there is something of both.
fn partial(failure: Failure, steps: &[Step], done: usize) -> Failure {
    let names = |steps: &[Step]| {
        let changing = steps.iter().filter(|step| step.action != Action::Unchanged);
        changing.map(Step::title).collect::<Vec<_>>()
    };
    let (before, after) = (names(&steps[..done]), names(&steps[done + 1..]));
    if before.is_empty() && after.is_empty() {
        return failure;
    }
    let list = |names: Vec<String>| match names.len() {
        0 => "nothing".to_owned(),
        1..=10 => names.join(", "),
        count => format!("{} and {} more", names[..10].join(", "), count - 10),
    };
    let told = format!(
        "  done before: {}\n  not done: {}, {}",
        list(before),
        steps[done].title(),
        list(after)
    );
    let told = told.replace(", nothing", "");
    failure.also(told)
}

/// The steps with what became of each, for programs.
pub fn results(steps: &[Step], outcome: &Outcome) -> Vec<Value> {
    let told = steps.iter().enumerate().map(|(index, step)| {
        let mut value = step.to_value();
        let result = match index.cmp(&outcome.objects.len()) {
            std::cmp::Ordering::Less => "done",
            std::cmp::Ordering::Equal => "failed",
            std::cmp::Ordering::Greater => "not_done",
        };
        value["result"] = json!(result);
        value
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Kind;

    fn step(action: Action, name: &str) -> Step {
        let found = json!({"namespace": "default", "name": name, "revision": 1});
        Step {
            action,
            ..Step::delete(Kind::Job, found)
        }
    }

    #[test]
    fn a_failure_in_the_middle_says_what_was_done_and_what_not() {
        let steps = [
            step(Action::Create, "a"),
            step(Action::Unchanged, "b"),
            step(Action::Change, "c"),
            step(Action::Delete, "d"),
        ];
        let told = partial(Failure::failed("no"), &steps, 2).to_string();
        assert_eq!(
            told,
            "error: no\n  done before: job default/a\n  not done: job default/c, job default/d\n"
        );
        let alone = partial(Failure::failed("no"), &steps[2..3], 0).to_string();
        assert_eq!(alone, "error: no\n");
    }
}
