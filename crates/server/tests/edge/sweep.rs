//! Every door, knocked at by every kind of caller, against a table written down here by hand.
//!
//! The table is not derived from the policy: it says what people were promised. A door without a row fails the test.

use drumtower_server::auth::{Call, DOORS, Operation, Verb};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::{Server, rand_name};
use crate::worker::{Worker, fetch_checkpoint};

/// The callers, in the order of the columns. All but the last two are good for every namespace; everything asked for
/// lies in namespace `a`.
const CALLERS: [&str; 8] = [
    "no token",
    "unknown token",
    "viewer",
    "operator",
    "worker",
    "admin",
    "operator of b",
    "admin of b",
];

/// What each caller gets.
fn expected(operation: Operation) -> [u16; 8] {
    match operation {
        Operation::PutJob => [401, 401, 403, 201, 403, 201, 403, 403],
        Operation::PatchJob => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::PauseJobs => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ResumeJobs => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::DeleteJobs => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ListJobVersions => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::ShowJobVersion => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::DiffJob => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::RestoreJob => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ShowJob => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::DeleteJob => [401, 401, 403, 204, 403, 204, 403, 403],
        Operation::PauseJob => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ResetBreaker => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ResumeJob => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::NextTimes => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::ExplainJob => [401, 401, 200, 200, 403, 200, 403, 403],
        // The schedule asked about names a calendar of namespace `a`.
        Operation::PreviewSchedule => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::PutCalendar => [401, 401, 403, 201, 403, 201, 403, 403],
        Operation::ShowCalendar => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::DeleteCalendar => [401, 401, 403, 204, 403, 204, 403, 403],
        Operation::ListCalendarVersions => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::ListNamespaceCalendars => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::PutQueue => [401, 401, 403, 201, 403, 201, 403, 403],
        Operation::ShowQueue => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::PauseQueue => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ResumeQueue => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::DeleteQueue => [401, 401, 403, 204, 403, 204, 403, 403],
        Operation::ListNamespaceQueues => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::TriggerRun => [401, 401, 403, 201, 403, 201, 403, 403],
        Operation::ListNamespaceJobs => [401, 401, 200, 200, 403, 200, 403, 403],
        // These answer everyone who may ask, each with what it may see; `strangers_see_nothing` looks into them.
        Operation::ListCalendars => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::ListQueues => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::ListJobs => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::TriggerBatch => [401, 401, 403, 200, 403, 200, 200, 200],
        Operation::ListRuns => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::ShowOverview => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::ShowMetrics => [401, 401, 200, 200, 403, 200, 200, 200],
        // Who serves is no secret of a namespace.
        Operation::ShowCluster => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::FollowChanges => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::ListWorkers => [401, 401, 200, 200, 403, 200, 200, 200],
        // No worker is connected.
        Operation::ShowWorker => [401, 401, 404, 404, 403, 404, 404, 404],
        // Asked of workers of namespace `a`; one that is not connected can be drained.
        Operation::DrainWorker => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ResumeWorker => [401, 401, 403, 404, 403, 404, 403, 403],
        Operation::ResetWorker => [401, 401, 403, 404, 403, 404, 403, 403],
        Operation::ListTokens => [401, 401, 403, 403, 403, 200, 403, 200],
        // An id of another namespace is like one that never was.
        Operation::ShowRun => [401, 401, 200, 200, 403, 200, 404, 404],
        Operation::ExplainRun => [401, 401, 200, 200, 403, 200, 404, 404],
        Operation::WaitRun => [401, 401, 200, 200, 403, 200, 404, 404],
        Operation::CancelRun => [401, 401, 403, 200, 403, 200, 404, 404],
        // The run has not ended.
        Operation::RerunRun => [401, 401, 403, 409, 403, 409, 404, 404],
        Operation::ListLetters => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::ListAllLetters => [401, 401, 200, 200, 403, 200, 200, 200],
        // The run has not failed.
        Operation::ShowLetter => [401, 401, 404, 404, 403, 404, 403, 403],
        Operation::RequeueLetters => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::DiscardLetters => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::CreateBackfill => [401, 401, 403, 201, 403, 201, 403, 403],
        Operation::PreviewBackfill => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::ListJobBackfills => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::ListBackfills => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::ShowBackfill => [401, 401, 200, 200, 403, 200, 404, 404],
        Operation::PauseBackfill => [401, 401, 403, 200, 403, 200, 404, 404],
        Operation::ResumeBackfill => [401, 401, 403, 200, 403, 200, 404, 404],
        Operation::CancelBackfill => [401, 401, 403, 200, 403, 200, 404, 404],
        Operation::ReadLogs => [401, 401, 200, 200, 403, 200, 404, 404],
        Operation::RevokeToken => [401, 401, 403, 403, 403, 204, 403, 404],
        // The token asked for is one of namespace `a`.
        Operation::CreateToken => [401, 401, 403, 403, 403, 201, 403, 403],
        Operation::ListAudit => [401, 401, 403, 403, 403, 200, 403, 200],
        Operation::PutSetting => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ShowSetting => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::DeleteSetting => [401, 401, 403, 204, 403, 204, 403, 403],
        Operation::ListSettings => [401, 401, 403, 200, 403, 200, 403, 403],
        // What holds for every namespace is told to all and changed by an admin of all.
        Operation::PutInstallationSetting => [401, 401, 403, 403, 403, 200, 403, 403],
        Operation::ShowInstallationSetting => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::DeleteInstallationSetting => [401, 401, 403, 403, 403, 204, 403, 403],
        Operation::ListInstallationSettings => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::AcquireLock => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::RenewLock => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ReleaseLock => [401, 401, 403, 204, 403, 204, 403, 403],
        Operation::BreakLock => [401, 401, 403, 204, 403, 204, 403, 403],
        Operation::ShowLock => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::ListLocks => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::MakeBackup => [401, 401, 403, 403, 403, 201, 403, 403],
        Operation::ListBackups => [401, 401, 403, 403, 403, 200, 403, 403],
        Operation::ListNotifications => [401, 401, 200, 200, 403, 200, 200, 200],
        // The message asked for is one of namespace `a`.
        Operation::TestNotification => [401, 401, 403, 200, 403, 200, 403, 403],
        Operation::ShowJobSchema => [401, 401, 200, 200, 200, 200, 200, 200],
        Operation::ShowCalendarSchema | Operation::ShowQueueSchema => {
            [401, 401, 200, 200, 200, 200, 200, 200]
        }
        Operation::ShowOpenapi => [401, 401, 200, 200, 200, 200, 200, 200],
        Operation::ShowProblem => [401, 401, 200, 200, 200, 200, 200, 200],
        Operation::ValidateJob => [401, 401, 200, 200, 403, 200, 403, 403],
        Operation::ShowRollups => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::ListUpcoming => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::SignIn | Operation::ShowSession => [401, 401, 200, 200, 403, 200, 200, 200],
        Operation::SignOut => [401, 401, 204, 204, 403, 204, 204, 204],
        Operation::ShowConsole => [200; 8],
        // A file that is not there.
        Operation::ShowConsoleFile => [404; 8],
        Operation::Health => [200; 8],
        Operation::Readiness => [200; 8],
        Operation::WorkerSession => [401, 401, 403, 403, 200, 200, 403, 200],
        // The attempt asked for is nobody's.
        Operation::FetchCheckpoint => [401, 401, 403, 403, 404, 404, 403, 404],
    }
}

struct Caller {
    client: Client,
    token: Option<String>,
}

async fn callers(server: &Server) -> Vec<Caller> {
    let tokens = [
        None,
        Some("drt_0000000000000000000000000000000000000000000000000000".to_owned()),
        Some(server.token("viewer", None).await),
        Some(server.token("operator", None).await),
        Some(server.token("worker", None).await),
        Some(server.token("admin", None).await),
        Some(server.token("operator", Some("b")).await),
        Some(server.token("admin", Some("b")).await),
    ];
    tokens
        .into_iter()
        .map(|token| Caller {
            client: server.with(token.as_deref()),
            token,
        })
        .collect()
}

fn manifest() -> Value {
    json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}, "schedule": [{"every": "1h"}]})
}

/// A backfill with one time in it.
fn hour() -> Value {
    json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"})
}

/// One that is under way: nobody runs what it makes.
async fn backfill(server: &Server, job: &str) -> String {
    let path = format!("/api/v1/namespaces/a/jobs/{job}/backfills");
    let made = server.admin().post(&path, &hour()).await.expect(201);
    made["id"].as_str().unwrap().to_owned()
}

fn calendar() -> Value {
    json!({"kind": "Calendar", "weekly": ["mon"]})
}

fn queue() -> Value {
    json!({"kind": "Queue", "concurrency": 1})
}

fn notify() -> Value {
    json!({"rules": []})
}

/// Holds for what the other calls put too, and stands in nobody's way.
fn job_settings() -> Value {
    json!({"limits": {"max_attempts": 100}})
}

/// Objects of namespace `a` for one call, so that no call sees what another left behind.
struct Objects {
    job: String,
    calendar: String,
    queue: String,
    run: String,
    token: String,
    /// Of the lock that is called like the job.
    fence: Value,
}

async fn objects(server: &Server) -> Objects {
    let (admin, job) = (server.admin(), rand_name());
    admin
        .put(&format!("/api/v1/namespaces/a/jobs/{job}"), &manifest())
        .await
        .expect(201);
    let run = admin
        .post(&format!("/api/v1/namespaces/a/jobs/{job}/runs"), &json!({}))
        .await
        .expect(201);
    let days = rand_name();
    admin
        .put(
            &format!("/api/v1/namespaces/a/calendars/{days}"),
            &calendar(),
        )
        .await
        .expect(201);
    let mail = rand_name();
    admin
        .put(&format!("/api/v1/namespaces/a/queues/{mail}"), &queue())
        .await
        .expect(201);
    admin
        .put("/api/v1/namespaces/a/settings/notify", &notify())
        .await
        .success();
    admin
        .put("/api/v1/settings/jobs", &job_settings())
        .await
        .success();
    let acquire = format!("/api/v1/namespaces/a/locks/{job}/acquire");
    let held = admin.post(&acquire, &json!({"owner": "sweep"})).await;
    let fence = held.expect(200)["fence"].clone();
    let token = json!({"name": rand_name(), "role": "viewer", "namespace": "a"});
    let token = admin.post("/api/v1/tokens", &token).await.expect(201);
    let text = |value: &Value| value["id"].as_str().unwrap().to_owned();
    Objects {
        job,
        calendar: days,
        queue: mail,
        run: text(&run),
        token: text(&token),
        fence,
    }
}

async fn knock(server: &Server, caller: &Caller, operation: Operation, call: Call) -> u16 {
    let objects = objects(server).await;
    let (verb, path) = match call {
        Call::Rpc(_) if operation == Operation::FetchCheckpoint => {
            return fetch(server, caller).await;
        }
        Call::Rpc(_) => return dial(server, caller).await,
        Call::Rest(verb, path) => (verb, path),
    };
    let id = match path {
        _ if operation == Operation::RevokeToken => objects.token.clone(),
        path if path.contains("/backfills/") => backfill(server, &objects.job).await,
        _ => objects.run.clone(),
    };
    let name = match operation {
        Operation::PutJob | Operation::PutCalendar | Operation::PutQueue => rand_name(),
        _ if path.starts_with("/api/v1/settings/") => "jobs".to_owned(),
        _ if path.contains("/settings/") => "notify".to_owned(),
        _ if path.contains("/calendars/") => objects.calendar.clone(),
        _ if path.contains("/queues/") => objects.queue.clone(),
        _ => objects.job.clone(),
    };
    let mut path = path
        .replace("{namespace}", "a")
        .replace("{name}", &name)
        .replace("{code}", "stale")
        .replace("{version}", "1")
        .replace("{file}", "none.js")
        .replace("{id}", &id);
    let body = match operation {
        Operation::PutJob | Operation::ValidateJob => Some(manifest()),
        Operation::RestoreJob => Some(json!({"version": 1})),
        Operation::PatchJob => Some(json!({"priority": 9})),
        Operation::PauseJobs | Operation::ResumeJobs | Operation::DeleteJobs => {
            Some(json!({"names": [name]}))
        }
        Operation::RequeueLetters | Operation::DiscardLetters => {
            Some(json!({"runs": [objects.run]}))
        }
        Operation::CreateBackfill | Operation::PreviewBackfill => Some(hour()),
        Operation::PutCalendar => Some(calendar()),
        Operation::PutQueue => Some(queue()),
        Operation::PutSetting => Some(notify()),
        Operation::PutInstallationSetting => Some(job_settings()),
        Operation::AcquireLock => Some(json!({"owner": "sweep"})),
        Operation::RenewLock | Operation::ReleaseLock => Some(json!({"fence": objects.fence})),
        Operation::TestNotification => Some(json!({"namespace": "a", "job": name})),
        Operation::PreviewSchedule => Some(json!({
            "namespace": "a",
            "schedule": [{"cron": "0 9 * * *"}],
            "calendar": {"only": [objects.calendar]},
        })),
        Operation::TriggerBatch => Some(json!({"runs": [{"namespace": "a", "job": name}]})),
        Operation::CreateToken => {
            Some(json!({"name": rand_name(), "role": "worker", "namespace": "a"}))
        }
        _ => None,
    };
    if operation == Operation::WaitRun {
        path.push_str("?timeout=0s");
    }
    if path.starts_with("/api/v1/workers/") && verb == Verb::Post {
        path.push_str("?namespace=a");
    }
    let method = match verb {
        Verb::Get => "GET",
        Verb::Put => "PUT",
        Verb::Patch => "PATCH",
        Verb::Post => "POST",
        Verb::Delete => "DELETE",
    };
    if operation == Operation::FollowChanges {
        // Its answer has no end.
        return caller.client.status(&path).await;
    }
    let answer = caller
        .client
        .call(method, &path, &[], body.map(|body| body.to_string()))
        .await;
    check_shape(&answer);
    answer.status.as_u16()
}

/// A refusal is a problem, and says nothing of what it hides.
fn check_shape(answer: &Answer) {
    if answer.status.as_u16() >= 400 {
        assert_eq!(
            answer.header("content-type"),
            "application/problem+json",
            "{}",
            answer.text()
        );
    }
    if answer.status == 401 {
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
}

async fn dial(server: &Server, caller: &Caller) -> u16 {
    let dialled = Worker::dial(&server.url, caller.token.as_deref()).await;
    dialled.map_or_else(|status| in_numbers(&status), |_| 200)
}

async fn fetch(server: &Server, caller: &Caller) -> u16 {
    let nobody = (Default::default(), 1);
    let fetched = fetch_checkpoint(&server.url, caller.token.as_deref(), nobody).await;
    fetched.map_or_else(|status| in_numbers(&status), |_| 200)
}

fn in_numbers(status: &tonic::Status) -> u16 {
    match status.code() {
        tonic::Code::Unauthenticated => 401,
        tonic::Code::PermissionDenied => 403,
        tonic::Code::Aborted => 404,
        _ => panic!("{status}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_door_opens_to_those_it_should_and_to_nobody_else() {
    let server = Server::start().await;
    let callers = callers(&server).await;
    let mut wrong = Vec::new();
    for ((caller, name), column) in callers.iter().zip(CALLERS).zip(0..) {
        let knocks = DOORS
            .iter()
            .map(|door| knock(&server, caller, door.operation, door.call));
        // Wrong tokens are answered slower and slower; waiting for them together takes as long as for one.
        let at_once = if name == "unknown token" {
            DOORS.len()
        } else {
            1
        };
        let answers: Vec<u16> = stream::iter(knocks).buffered(at_once).collect().await;
        for (door, got) in DOORS.iter().zip(answers) {
            let expected = expected(door.operation)[column];
            if got != expected {
                wrong.push(format!(
                    "{:?} by {name}: expected {expected}, got {got}",
                    door.operation
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_see_nothing() {
    let server = Server::start().await;
    let objects = objects(&server).await;
    let stranger = server.client("admin", Some("b")).await;
    let items = |value: Value| value["items"].as_array().unwrap().clone();
    assert!(items(stranger.get("/api/v1/jobs").await.expect(200)).is_empty());
    assert!(items(stranger.get("/api/v1/runs").await.expect(200)).is_empty());
    assert!(items(stranger.get("/api/v1/calendars").await.expect(200)).is_empty());
    assert!(items(stranger.get("/api/v1/queues").await.expect(200)).is_empty());
    for entry in items(stranger.get("/api/v1/audit").await.expect(200)) {
        assert_eq!(entry["namespace"], "b");
    }
    for token in items(stranger.get("/api/v1/tokens").await.expect(200)) {
        assert_eq!(token["namespace"], "b");
    }
    assert!(items(stranger.get("/api/v1/locks").await.expect(200)).is_empty());
    for path in [
        "/api/v1/locks?namespace=a",
        "/api/v1/jobs?namespace=a",
        "/api/v1/runs?namespace=a",
        "/api/v1/calendars?namespace=a",
        "/api/v1/queues?namespace=a",
        "/api/v1/deadletters?namespace=a",
        "/api/v1/audit?namespace=a",
        "/api/v1/notifications?namespace=a",
        "/api/v1/runs?namespace=a&job=x",
        "/api/v1/rollups?namespace=a",
        "/api/v1/upcoming?namespace=a",
    ] {
        stranger.get(path).await.problem(403, "forbidden_namespace");
    }
    let job_id = server
        .admin()
        .get(&format!("/api/v1/namespaces/a/jobs/{}", objects.job))
        .await
        .expect(200)["id"]
        .clone();
    let by_id = format!("/api/v1/runs?job_id={}", job_id.as_str().unwrap());
    assert!(items(stranger.get(&by_id).await.expect(200)).is_empty());
    let batch = json!({"runs": [{"namespace": "a", "job": objects.job}, {"job": objects.job}]});
    let answers = stranger
        .post("/api/v1/runs:batch", &batch)
        .await
        .expect(200);
    assert_eq!(answers["runs"][0]["problem"]["code"], "forbidden_namespace");
    assert_eq!(
        answers["runs"][1]["problem"]["code"], "no_such_job",
        "left out, it is the token's own namespace"
    );
    let real = stranger
        .get(&format!("/api/v1/runs/{}", objects.run))
        .await
        .problem(404, "no_such_run");
    let none = stranger
        .get("/api/v1/runs/run_0000000000001")
        .await
        .problem(404, "no_such_run");
    assert_eq!(
        real["detail"].as_str().unwrap().replace(&objects.run, "X"),
        none["detail"]
            .as_str()
            .unwrap()
            .replace("run_0000000000001", "X")
    );
    let widened = json!({"name": rand_name(), "role": "admin"});
    let made = stranger.post("/api/v1/tokens", &widened).await.expect(201);
    assert_eq!(
        made["namespace"], "b",
        "an admin of one namespace cannot step out of it"
    );
    server.stop().await;
}
