//! The next times of a job, and of a schedule that is yet to be.

use serde_json::{Value, json};

use crate::server::Server;

const JOB: &str = "/api/v1/namespaces/default/jobs/nightly";
const PREVIEW: &str = "/api/v1/schedules:preview";

fn nominal(answer: &Value) -> Vec<&str> {
    let times = answer["times"].as_array().unwrap().iter();
    times
        .map(|time| time["nominal"].as_str().unwrap())
        .collect()
}

fn codes(answer: &Value) -> Vec<&str> {
    let warnings = answer["warnings"].as_array().unwrap().iter();
    warnings
        .map(|warning| warning["code"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_tells_its_times_in_words_and_numbers() {
    let server = Server::start().await;
    let admin = server.admin();
    let manifest = json!({
        "kind": "Job",
        "schedule": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}],
        "jitter": "10m",
        "task": {"exec": {"argv": ["true"]}},
    });
    let made = admin.put(JOB, &manifest).await.expect(201);
    let next = format!("{JOB}/next?from=2027-03-27T12:00:00Z&count=2");
    let answer = admin.get(&next).await.expect(200);
    assert_eq!(answer["words"], made["words"]);
    assert_ne!(answer["words"], answer["words_zh"]);
    assert_eq!(
        nominal(&answer),
        ["2027-03-28T01:30:00.000Z", "2027-03-29T00:30:00.000Z"]
    );
    let first = &answer["times"][0];
    assert_eq!(first["local"], "2027-03-28T03:30:00+02:00[Europe/Berlin]");
    assert!(first["note"].is_string(), "{first}");
    assert_ne!(first["due"], first["nominal"], "the job has its jitter");
    assert_eq!(codes(&answer), ["dst_gap"]);

    let back = format!("{JOB}/next?from=2027-03-27T12:00:00Z&count=1&backwards=true");
    let back = admin.get(&back).await.expect(200);
    assert_eq!(nominal(&back), ["2027-03-27T01:30:00.000Z"]);

    admin
        .post(&format!("{JOB}/pause"), &Value::Null)
        .await
        .expect(200);
    let paused = admin.get(&next).await.expect(200);
    assert_eq!(codes(&paused), ["dst_gap", "paused"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_tried_before_it_is_applied() {
    let server = Server::start().await;
    let admin = server.admin();
    let days = json!({"kind": "Calendar", "include": ["2030-05-01"]});
    admin
        .put("/api/v1/namespaces/team/calendars/holidays", &days)
        .await
        .expect(201);
    let mut asked = json!({
        "namespace": "team",
        "schedule": [{"cron": "0 9 * * *"}],
        "calendar": {"minus": ["holidays"]},
        "from": "2030-04-30T00:00:00Z",
        "count": 2,
    });
    let answer = admin.post(PREVIEW, &asked).await.expect(200);
    assert_eq!(
        nominal(&answer),
        ["2030-04-30T09:00:00.000Z", "2030-05-02T09:00:00.000Z"]
    );
    assert_eq!(codes(&answer), ["calendar_excludes_some"]);
    asked["backwards"] = json!(true);
    asked["from"] = json!("2030-05-02T08:00:00Z");
    let back = admin.post(PREVIEW, &asked).await.expect(200);
    assert_eq!(nominal(&back)[0], "2030-04-30T09:00:00.000Z");
    asked["namespace"] = json!("other");
    let missing = admin
        .post(PREVIEW, &asked)
        .await
        .problem(422, "invalid_field");
    assert_eq!(missing["field"], "calendar.minus[0]", "{missing}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_questions_are_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    admin
        .get(&format!("{JOB}/next"))
        .await
        .problem(404, "no_such_job");
    let manifest = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}});
    admin.put(JOB, &manifest).await.expect(201);
    let none = admin.get(&format!("{JOB}/next")).await.expect(200);
    assert_eq!(nominal(&none), Vec::<&str>::new());
    for (query, field) in [
        ("count=0", "count"),
        ("count=1001", "count"),
        ("from=tomorrow", "from"),
        ("backwards=perhaps", "backwards"),
    ] {
        let problem = admin
            .get(&format!("{JOB}/next?{query}"))
            .await
            .problem(400, "invalid_parameter");
        assert_eq!(problem["field"], field, "{problem}");
    }
    for (body, field) in [
        (
            json!({"schedule": [{"cron": "0 25 * * *"}]}),
            "schedule[0].cron",
        ),
        (
            json!({"schedule": [{"every": "5s"}], "jitter": "soon"}),
            "jitter",
        ),
        (json!({"schedule": [{"every": "5s"}], "count": 0}), "count"),
        (
            json!({"schedule": [{"every": "5s"}], "from": "now"}),
            "from",
        ),
    ] {
        let problem = admin
            .post(PREVIEW, &body)
            .await
            .problem(422, "invalid_field");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let unknown = json!({"schedule": [], "calender": null});
    admin
        .post(PREVIEW, &unknown)
        .await
        .problem(400, "unknown_field");
    server.stop().await;
}
