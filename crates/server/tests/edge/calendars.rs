//! Calendars: put, show, list, versions, delete, the conditions on them, and what a change does to jobs.

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Server, eventually};

const DAYS: &str = "/api/v1/namespaces/team/calendars/days";
const JOB: &str = "/api/v1/namespaces/team/jobs/report";

fn manifest() -> Value {
    json!({"kind": "Calendar", "weekly": ["mon", "tue"], "exclude": ["12-25"]})
}

fn job() -> Value {
    json!({
        "kind": "Job",
        "schedule": [{"cron": "0 9 * * *"}],
        "calendar": {"only": ["days"]},
        "task": {"exec": {"argv": ["true"]}},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_calendar_lives_from_put_to_delete() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = admin.put(DAYS, &manifest()).await;
    assert_eq!(
        (made.status.as_u16(), made.header("etag")),
        (201, "\"v1\""),
        "{}",
        made.text()
    );
    let calendar = made.json();
    assert_eq!(
        (&calendar["namespace"], &calendar["name"], &calendar["jobs"]),
        (&json!("team"), &json!("days"), &json!(0))
    );
    assert_eq!(calendar["spec"]["weekly"], json!(["mon", "tue"]));
    assert_eq!(calendar["days_ahead"].as_array().map(Vec::len), Some(10));

    let again = admin.put(DAYS, &manifest()).await;
    assert_eq!(
        (again.status.as_u16(), again.header("etag")),
        (200, "\"v1\"")
    );
    let mut changed = manifest();
    changed["weekly"] = json!(["sun"]);
    let answer = admin.put(DAYS, &changed).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("etag")),
        (200, "\"v2\"")
    );
    assert!(admin.get(DAYS).await.header("etag").starts_with("\"v2."));

    admin.delete(DAYS).await.expect(204);
    admin.get(DAYS).await.problem(404, "no_such_calendar");
    admin.delete(DAYS).await.problem(404, "no_such_calendar");
    let versions = admin.get(&format!("{DAYS}/versions")).await.expect(200);
    let told: Vec<(u64, bool)> = versions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| {
            (
                version["version"].as_u64().unwrap(),
                version["deleted"] == true,
            )
        })
        .collect();
    assert_eq!(told, [(3, true), (2, false), (1, false)]);
    let page = admin
        .get(&format!("{DAYS}/versions?limit=2"))
        .await
        .expect(200);
    let rest = format!("{DAYS}/versions?cursor={}", page["next"].as_str().unwrap());
    let rest = admin.get(&rest).await.expect(200);
    assert_eq!(rest["items"][0]["version"], 1);
    assert_eq!(rest["next"], Value::Null);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_what_has_changed_is_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    let put = async |header: (&str, &str), day: &str| {
        let manifest = json!({"kind": "Calendar", "weekly": [day]});
        admin
            .call("PUT", DAYS, &[header], Some(manifest.to_string()))
            .await
    };
    put(("if-match", "\"v1\""), "mon")
        .await
        .problem(404, "no_such_calendar");
    put(("if-none-match", "*"), "mon").await.expect(201);
    put(("if-none-match", "*"), "tue")
        .await
        .problem(412, "already_there");
    put(("if-match", "\"v1\""), "tue").await.expect(200);
    let stale = put(("if-match", "\"v1\""), "wed")
        .await
        .problem(412, "stale");
    assert!(
        stale["detail"].as_str().unwrap().contains("version 2"),
        "{stale}"
    );
    put(("if-match", "\"2\""), "wed")
        .await
        .problem(400, "invalid_header");
    admin
        .call("DELETE", DAYS, &[("if-match", "\"v1\"")], None)
        .await
        .problem(412, "stale");
    admin
        .call("DELETE", DAYS, &[("if-match", "\"v2\"")], None)
        .await
        .expect(204);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_key_is_named() {
    let server = Server::start().await;
    let admin = server.admin();
    for (manifest, field) in [
        (
            json!({"kind": "Calendar", "weekly": ["monday"]}),
            "weekly[0]",
        ),
        (
            json!({"kind": "Calendar", "include": ["2026-02-30"]}),
            "include[0]",
        ),
        (
            json!({"kind": "Calendar", "exclude": ["12-25", "x"]}),
            "exclude[1]",
        ),
        (json!({"kind": "Job"}), "kind"),
        (json!({"kind": "Calendar", "name": "other"}), "name"),
        (
            json!({"kind": "Calendar", "description": "x".repeat(5000)}),
            "description",
        ),
    ] {
        let problem = admin
            .put(DAYS, &manifest)
            .await
            .problem(422, "invalid_field");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let unknown = json!({"kind": "Calendar", "weekley": ["mon"]});
    let problem = admin
        .put(DAYS, &unknown)
        .await
        .problem(400, "unknown_field");
    assert!(
        problem["detail"].as_str().unwrap().contains("`weekly`"),
        "{problem}"
    );
    let missing = admin.put(JOB, &job()).await.problem(422, "invalid_field");
    assert_eq!(missing["field"], "calendar.only[0]", "{missing}");
    admin
        .get(&format!("{DAYS}/versions"))
        .await
        .problem(404, "no_such_calendar");
    server.stop().await;
}

async fn names(client: &Client, path: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let joiner = if path.contains('?') { '&' } else { '?' };
        let page = client
            .get(&format!("{path}{joiner}limit=2{cursor}"))
            .await
            .expect(200);
        for item in page["items"].as_array().unwrap() {
            let text = |key: &str| item[key].as_str().unwrap().to_owned();
            names.push(format!("{}/{}", text("namespace"), text("name")));
        }
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return names,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_filter_and_continue() {
    let server = Server::start().await;
    let admin = server.admin();
    for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "w"), ("b", "x"), ("b", "z")] {
        let path = format!("/api/v1/namespaces/{namespace}/calendars/{name}");
        admin.put(&path, &manifest()).await.expect(201);
    }
    admin
        .delete("/api/v1/namespaces/b/calendars/w")
        .await
        .expect(204);
    assert_eq!(
        names(&admin, "/api/v1/calendars").await,
        ["a/x", "a/y", "b/x", "b/z"]
    );
    assert_eq!(
        names(&admin, "/api/v1/calendars?namespace=b").await,
        ["b/x", "b/z"]
    );
    assert_eq!(
        names(&admin, "/api/v1/namespaces/a/calendars").await,
        ["a/x", "a/y"]
    );
    let viewer = server.client("viewer", Some("a")).await;
    assert_eq!(names(&viewer, "/api/v1/calendars").await, ["a/x", "a/y"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_calendar_in_use_stays_and_its_jobs_follow_it() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.put(DAYS, &manifest()).await.expect(201);
    let made = admin.put(JOB, &job()).await.expect(201);
    let refused = admin.delete(DAYS).await.problem(409, "calendar_in_use");
    assert!(
        refused["detail"].as_str().unwrap().contains("`report`"),
        "{refused}"
    );
    admin
        .put(DAYS, &json!({"kind": "Calendar", "weekly": ["sat"]}))
        .await
        .expect(200);
    let shown = eventually("the job is planned anew", async || {
        let shown = admin.get(DAYS).await.expect(200);
        (shown["replan"]["finished"].is_string() && shown["replan"]["version"] == "2")
            .then_some(shown)
    })
    .await;
    assert_eq!(
        (&shown["jobs"], &shown["replan"]["looked"]),
        (&json!(1), &json!(1))
    );
    let job = admin.get(JOB).await.expect(200);
    assert_ne!(job["next_nominal"], made["next_nominal"]);
    let next: jiff::Timestamp = job["next_nominal"].as_str().unwrap().parse().unwrap();
    let day = next.to_zoned(jiff::tz::TimeZone::UTC).weekday();
    assert_eq!(day, jiff::civil::Weekday::Saturday);
    admin.delete(JOB).await.expect(204);
    admin.delete(DAYS).await.expect(204);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_names_every_key_of_a_manifest() {
    let server = Server::start().await;
    let schema = server.admin().get("/api/v1/schema/calendar").await;
    assert_eq!(schema.header("content-type"), "application/schema+json");
    let schema = schema.expect(200);
    for key in ["kind", "name", "namespace", "weekly", "include", "exclude"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    server.stop().await;
}
