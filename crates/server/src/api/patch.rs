//! A part of a job's definition, changed by a merge patch (RFC 7396): what it names is replaced, `null` takes away what is
//! optional, everything else stays.
//!
//! The patch is made of the definition as it stands and put only if it still stands so. A caller without `If-Match` does
//! not care which one it stands at, so it is tried again on the newer one, a few times.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use drumtower_core::engine::{Command, Condition, JobRef, Refusal, Reply};
use drumtower_core::model::{JobRecord, JobSpec};
use serde_json::{Map, Value};

use super::body::{self, Bounded};
use super::gate::JobPath;
use super::precondition::JOB;
use super::problem::Problem;
use super::query::Parameters;
use super::{Edge, internal, jobs};
use crate::auth::Principal;

const TRIES: usize = 5;

pub async fn job(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let given = JOB.condition_on_existing(&headers)?;
    let patch: Map<String, Value> = body::parse(&bytes)?;
    for tries_left in (0..TRIES).rev() {
        let record = jobs::find(&edge, job.clone()).await?;
        let condition = match given {
            Condition::Any => Condition::Revision(record.row.revision),
            given => given,
        };
        let command = Command::PutJob {
            spec: Box::new(patched(&record, &job, &patch)?),
            condition,
        };
        match edge
            .handle
            .command(principal.actor.clone(), command)
            .await?
        {
            Ok(Reply::Job { record, .. }) => return Ok(jobs::shown(&record).into_response()),
            Ok(other) => return Err(jobs::unexpected(&other)),
            Err(Refusal::Stale { .. }) if given == Condition::Any && tries_left > 0 => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Err(internal(&"a patch was tried without an outcome"))
}

fn patched(
    record: &JobRecord,
    job: &JobRef,
    patch: &Map<String, Value>,
) -> Result<JobSpec, Problem> {
    let mut document =
        serde_json::to_value(&record.version.spec).map_err(|error| internal(&error))?;
    merge(&mut document, patch);
    check_task(&record.version.spec, &document)?;
    let bytes = serde_json::to_vec(&document).map_err(|error| internal(&error))?;
    jobs::manifest(&bytes, job)
}

/// A patch that names another kind of task must take the one there is away.
fn check_task(before: &JobSpec, document: &Value) -> Result<(), Problem> {
    let old = serde_json::to_value(&before.task).map_err(|error| internal(&error))?;
    let (Some(old), Some(new)) = (old.as_object(), document["task"].as_object()) else {
        return Ok(());
    };
    let mut added = new.keys().filter(|key| !old.contains_key(*key));
    let stays = old.keys().find(|key| new.contains_key(*key));
    match (added.next(), stays) {
        (Some(added), Some(stays)) => {
            let added: String = added.chars().take(64).collect();
            Err(Problem::field(
                "task",
                format!(
                    "task: with `{added}` the job would have two tasks, because `{stays}` stays: set \"{stays}\": null beside it"
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// How deep it goes is bounded by what the JSON reader takes.
fn merge(target: &mut Value, patch: &Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else {
        return;
    };
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.remove(key);
            }
            Value::Object(inner) => merge(target.entry(key).or_insert(Value::Null), inner),
            other => {
                target.insert(key.clone(), other.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The cases of RFC 7396, appendix A, whose patch is an object.
    #[test]
    fn patches_are_merged_as_the_standard_has_it() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [{"b": "c"}]}),
                json!({"a": [1]}),
                json!({"a": [1]}),
            ),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!([1, 2]),
                json!({"a": "b", "c": null}),
                json!({"a": "b"}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ];
        for (mut target, patch, expected) in cases {
            merge(&mut target, patch.as_object().unwrap());
            assert_eq!(target, expected, "{patch}");
        }
    }
}
