//! The description of the REST API in OpenAPI 3.1, made from what the server is made of: the policy table gives paths,
//! methods and roles, the types of requests and answers give the schemas, the kinds of problems give the refusals.
//!
//! [`describe`] says in words what no type says, one entry an operation; the compiler misses none. What the description
//! claims about parameters and answers is held against a running server by the edge's tests and by schemathesis.

mod backfills;
mod calendars;
mod entry;
mod fleet;
mod jobs;
mod letters;
mod locks;
mod parameters;
mod queues;
mod records;
mod runs;
mod schemas;
mod streams;
mod system;
mod versions;

use std::sync::LazyLock;

use axum::http::{HeaderValue, Uri, header};
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};

use super::problem::Problem;
use super::query::Parameters;
use crate::auth::{Call, DOORS, Operation, Verb};

use entry::Entry;
use schemas::Schemas;
pub use schemas::{CalendarManifest, JobManifest, QueueManifest};

static TEXT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", document()));

/// The document as it is served and kept with the docs.
pub fn text() -> &'static str {
    &TEXT
}

pub async fn show(uri: Uri) -> Result<impl IntoResponse, Problem> {
    Parameters::read(&uri, &[])?;
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], text()))
}

fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for door in DOORS {
        if let Call::Rest(verb, path) = door.call
            && let Some(entry) = describe(door.operation, &mut schemas)
        {
            let operations = paths.entry(path).or_insert_with(|| json!({}));
            operations[method(verb)] = entry.finish(door, verb, path, &mut schemas);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Drumtower",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": entry::Tag::all(),
        "paths": paths,
        "components": {
            "schemas": schemas.components(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token, `drt_…`, made by `drumtower token create`.",
                },
            },
        },
    })
}

const ABOUT: &str = "Jobs, their runs and their workers. Times are RFC 3339 in UTC with milliseconds, ids are text. \
    A key of an answer is never left out unless it says so: what is not known is `null`. Unknown keys and parameters are \
    refused. A command is answered after it is on disk. `x-roles` names the roles that may call an operation.";

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Put => "put",
        Verb::Patch => "patch",
        Verb::Post => "post",
        Verb::Delete => "delete",
    }
}

/// What there is to say of an operation; `None` for what is not REST.
fn describe(operation: Operation, schemas: &mut Schemas) -> Option<Entry> {
    Some(match operation {
        Operation::PutJob => jobs::put(schemas),
        Operation::PatchJob => jobs::patch(schemas),
        Operation::ShowJob => jobs::show(schemas),
        Operation::DeleteJob => jobs::delete(),
        Operation::PauseJob => jobs::pause(schemas),
        Operation::ResumeJob => jobs::resume(schemas),
        Operation::ResetBreaker => jobs::reset_breaker(schemas),
        Operation::PauseJobs => jobs::bulk(schemas, "pauseJobs", "Pause many jobs"),
        Operation::ResumeJobs => jobs::bulk(schemas, "resumeJobs", "Resume many jobs"),
        Operation::DeleteJobs => jobs::bulk(schemas, "deleteJobs", "Delete many jobs"),
        Operation::ListJobVersions => versions::list(schemas),
        Operation::ShowJobVersion => versions::show(schemas),
        Operation::DiffJob => versions::diff(schemas),
        Operation::RestoreJob => versions::restore(schemas),
        Operation::ListNamespaceJobs => jobs::list_namespace(schemas),
        Operation::ListJobs => jobs::list(schemas),
        Operation::ValidateJob => jobs::validate(schemas),
        Operation::NextTimes => jobs::next_times(schemas),
        Operation::PreviewSchedule => jobs::preview(schemas),
        Operation::ExplainJob => jobs::explain(schemas),
        Operation::PutCalendar => calendars::put(schemas),
        Operation::ShowCalendar => calendars::show(schemas),
        Operation::DeleteCalendar => calendars::delete(),
        Operation::ListCalendarVersions => calendars::versions(schemas),
        Operation::ListNamespaceCalendars => calendars::list_namespace(schemas),
        Operation::ListCalendars => calendars::list(schemas),
        Operation::PutQueue => queues::put(schemas),
        Operation::ShowQueue => queues::show(schemas),
        Operation::DeleteQueue => queues::delete(),
        Operation::PauseQueue => queues::pause(schemas),
        Operation::ResumeQueue => queues::resume(schemas),
        Operation::ListNamespaceQueues => queues::list_namespace(schemas),
        Operation::ListQueues => queues::list(schemas),
        Operation::TriggerRun => runs::trigger(schemas),
        Operation::TriggerBatch => runs::batch(schemas),
        Operation::ListRuns => runs::list(schemas),
        Operation::ShowRun => runs::show(schemas),
        Operation::WaitRun => runs::wait(schemas),
        Operation::ExplainRun => runs::explain(schemas),
        Operation::CancelRun => runs::cancel(schemas),
        Operation::RerunRun => runs::rerun(schemas),
        Operation::ListLetters => letters::list(schemas),
        Operation::ListAllLetters => letters::list_all(schemas),
        Operation::ShowLetter => letters::show(schemas),
        Operation::RequeueLetters => letters::requeue(schemas),
        Operation::DiscardLetters => letters::discard(schemas),
        Operation::CreateBackfill => backfills::create(schemas),
        Operation::PreviewBackfill => backfills::preview(schemas),
        Operation::ListJobBackfills => backfills::list_of_job(schemas),
        Operation::ListBackfills => backfills::list(schemas),
        Operation::ShowBackfill => backfills::show(schemas),
        Operation::PauseBackfill => backfills::pause(schemas),
        Operation::ResumeBackfill => backfills::resume(schemas),
        Operation::CancelBackfill => backfills::cancel(schemas),
        Operation::ReadLogs => runs::logs(),
        Operation::FollowChanges => streams::changes(schemas),
        Operation::ShowOverview => streams::overview(schemas),
        Operation::ShowMetrics => streams::metrics(),
        Operation::ShowCluster => system::cluster(schemas),
        Operation::ShowRollups => streams::rollups(schemas),
        Operation::ListUpcoming => streams::upcoming(schemas),
        Operation::ListWorkers => fleet::workers(schemas),
        Operation::ShowWorker => fleet::worker(schemas),
        Operation::DrainWorker => fleet::drain(schemas),
        Operation::ResumeWorker => fleet::resume(schemas),
        Operation::ResetWorker => fleet::reset(schemas),
        Operation::CreateToken => system::create_token(schemas),
        Operation::ListTokens => system::tokens(schemas),
        Operation::RevokeToken => system::revoke_token(),
        Operation::ListAudit => records::audit(schemas),
        Operation::PutSetting => records::put_setting(schemas),
        Operation::ShowSetting => records::show_setting(schemas),
        Operation::DeleteSetting => records::delete_setting(),
        Operation::ListSettings => records::settings(schemas),
        Operation::PutInstallationSetting => records::put_installation_setting(schemas),
        Operation::ShowInstallationSetting => records::show_installation_setting(schemas),
        Operation::DeleteInstallationSetting => records::delete_installation_setting(),
        Operation::ListInstallationSettings => records::installation_settings(schemas),
        Operation::AcquireLock => locks::acquire(schemas),
        Operation::RenewLock => locks::renew(schemas),
        Operation::ReleaseLock => locks::release(schemas),
        Operation::BreakLock => locks::delete(),
        Operation::ShowLock => locks::show(schemas),
        Operation::ListLocks => locks::list(schemas),
        Operation::MakeBackup => system::make_backup(schemas),
        Operation::ListBackups => system::backups(schemas),
        Operation::ListNotifications => records::notifications(schemas),
        Operation::TestNotification => records::test_notification(schemas),
        Operation::ShowJobSchema => system::schema("showJobSchema", "job"),
        Operation::ShowCalendarSchema => system::schema("showCalendarSchema", "calendar"),
        Operation::ShowQueueSchema => system::schema("showQueueSchema", "queue"),
        Operation::ShowOpenapi => system::openapi(),
        Operation::ShowProblem => system::problem_page(),
        Operation::SignIn => system::sign_in(schemas),
        Operation::ShowSession => system::session(schemas),
        Operation::SignOut => system::sign_out(),
        Operation::Health => system::health(schemas),
        Operation::Readiness => system::readiness(schemas),
        // The console's own files are for people.
        Operation::ShowConsole | Operation::ShowConsoleFile => return None,
        Operation::WorkerSession | Operation::FetchCheckpoint => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every operation with its method and path.
    fn operations(document: &Value) -> Vec<(String, &Value)> {
        let paths = document["paths"].as_object().unwrap();
        paths
            .iter()
            .flat_map(|(path, item)| {
                let item = item.as_object().unwrap();
                item.iter()
                    .map(move |(method, operation)| (format!("{method} {path}"), operation))
            })
            .collect()
    }

    #[test]
    fn every_rest_door_is_described_under_an_id_of_its_own() {
        let document = document();
        let files = [Operation::ShowConsole, Operation::ShowConsoleFile];
        let rest = |door: &&crate::auth::Door| {
            matches!(door.call, Call::Rest(..)) && !files.contains(&door.operation)
        };
        let doors = DOORS.iter().filter(rest).count();
        let operations = operations(&document);
        assert_eq!(operations.len(), doors);
        let ids: BTreeSet<&str> = operations
            .iter()
            .map(|(_, operation)| operation["operationId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), doors);
    }

    #[test]
    fn every_reference_and_every_link_leads_somewhere() {
        let document = document();
        let ids: BTreeSet<&str> = operations(&document)
            .iter()
            .map(|(_, operation)| operation["operationId"].as_str().unwrap())
            .collect();
        let mut open = vec![&document];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(target)) = map.get("$ref") {
                        let found = document.pointer(target.trim_start_matches('#'));
                        assert!(found.is_some(), "{target}");
                    }
                    if let Some(Value::Object(links)) = map.get("links") {
                        for link in links.values() {
                            let id = link["operationId"].as_str().unwrap();
                            assert!(ids.contains(id), "{id}");
                        }
                    }
                    open.extend(map.values());
                }
                Value::Array(list) => open.extend(list),
                _ => {}
            }
        }
    }

    #[test]
    fn every_operation_says_what_people_and_programs_need() {
        let document = document();
        for (name, operation) in operations(&document) {
            for key in ["summary", "operationId", "tags", "responses"] {
                assert!(!operation[key].is_null(), "{name}: {key}");
            }
            let responses = operation["responses"].as_object().unwrap();
            let answered = |status: &String| status.starts_with('2');
            assert!(responses.keys().any(answered), "{name}: no success");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let known = parameter["schema"].is_object() && parameter["description"].is_string();
                assert!(known, "{name}: {parameter}");
            }
            if let Some(body) = operation.get("requestBody") {
                for content in body["content"].as_object().unwrap().values() {
                    assert!(content["examples"].is_object(), "{name}: no example");
                }
            }
        }
    }
}
