//! What became of each due time, with a real server that fires.

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Server, eventually};

const JOB: &str = "/api/v1/namespaces/default/jobs/beat";

fn manifest(keys: Value) -> Value {
    let mut manifest = json!({"kind": "Job", "task": {"handler": {"name": "nobody"}}});
    manifest
        .as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    manifest
}

/// Every row of the answer, page by page.
async fn rows(client: &Client, query: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer = client
            .get(&format!("{JOB}/explain?{query}{cursor}"))
            .await
            .expect(200);
        rows.extend(answer["rows"].as_array().unwrap().clone());
        match answer["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return rows,
        }
    }
}

fn fates(rows: &[Value]) -> Vec<String> {
    let fate = |row: &Value| match row["reason"].as_str() {
        Some(reason) => format!("{}: {reason}", row["fate"].as_str().unwrap()),
        None => row["fate"].as_str().unwrap().to_owned(),
    };
    rows.iter().map(fate).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_overlaps_pauses_and_plans_are_told() {
    let server = Server::start().await;
    let admin = server.admin();
    let every = json!({"schedule": [{"every": "50ms"}]});
    let made = admin.put(JOB, &manifest(every)).await.expect(201);
    let from = made["created"].as_str().unwrap().to_owned();
    eventually("a time was held back by the run", async || {
        let job = admin.get(JOB).await.expect(200);
        (job["last_unfired"]["reason"] == "overlap").then_some(())
    })
    .await;
    let paused = admin
        .post(&format!("{JOB}/pause"), &Value::Null)
        .await
        .expect(200);
    let decided = paused["fired_through"].as_str().unwrap();
    let ahead = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let told = rows(&admin, &format!("from={from}&to={ahead:.3}")).await;
    let fates = fates(&told);
    assert_eq!(&fates[..2], ["run", "unfired: overlap"], "{told:#?}");
    assert_eq!(fates.last().unwrap(), "planned: paused", "{told:#?}");
    assert_eq!(
        (&told[0]["state"], &told[0]["count"]),
        (&json!("PENDING"), &json!(1))
    );
    assert_eq!(told[1]["last"], decided, "{told:#?}");
    assert_eq!(told[1]["text"], "a run of it had not ended");
    let times: u64 = told.iter().filter_map(|row| row["count"].as_u64()).sum();
    assert!(times >= 10_000, "an hour has 72,000 times: {times}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_without_a_hole() {
    let server = Server::start().await;
    let admin = server.admin();
    let every = json!({"schedule": [{"every": "20ms"}], "overlap": "allow"});
    let made = admin.put(JOB, &manifest(every)).await.expect(201);
    eventually("there are runs", async || {
        let job = admin.get(JOB).await.expect(200);
        (job["fires"].as_u64() >= Some(25)).then_some(())
    })
    .await;
    let job = admin
        .post(&format!("{JOB}/pause"), &Value::Null)
        .await
        .expect(200);
    let from = made["created"].as_str().unwrap();
    let to = job["fired_through"].as_str().unwrap();
    let query = format!("from={from}&to={to}");
    let whole = rows(&admin, &query).await;
    let paged = rows(&admin, &format!("{query}&limit=3")).await;
    assert_eq!(whole, paged);
    assert!(
        whole.iter().all(|row| row["fate"] != "unknown"),
        "{whole:#?}"
    );
    let times = |row: &Value| row["count"].as_u64().unwrap();
    let span: jiff::Timestamp = to.parse().unwrap();
    let span = span.as_millisecond() - from.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let told: u64 = whole.iter().map(times).sum();
    assert!(told.abs_diff(span as u64 / 20) <= 1, "{told} of {span} ms");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_calendars_take_away_is_told_by_name() {
    let server = Server::start().await;
    let admin = server.admin();
    let days = json!({"kind": "Calendar", "include": ["2030-05-01"]});
    admin
        .put("/api/v1/namespaces/default/calendars/holidays", &days)
        .await
        .expect(201);
    let spec = json!({
        "schedule": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}],
        "calendar": {"minus": ["holidays"]},
    });
    admin.put(JOB, &manifest(spec)).await.expect(201);
    let told = rows(&admin, "from=2030-04-30T00:00:00Z&to=2030-05-03T00:00:00Z").await;
    assert_eq!(fates(&told), ["planned", "excluded: calendar", "planned"]);
    assert_eq!(told[1]["calendar"], "holidays");
    assert_eq!(told[1]["local"], "2030-05-01T02:30:00");
    let told = rows(&admin, "from=2030-03-30T12:00:00Z&to=2030-04-01T00:00:00Z").await;
    assert_eq!(fates(&told), ["excluded: dst_gap", "planned"], "{told:#?}");
    assert_eq!(told[0]["moved_to"], told[1]["first"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_questions_are_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    admin
        .get(&format!("{JOB}/explain"))
        .await
        .problem(404, "no_such_job");
    admin.put(JOB, &manifest(json!({}))).await.expect(201);
    assert_eq!(rows(&admin, "").await, Vec::<Value>::new());
    for (query, field) in [
        ("from=yesterday", "from"),
        ("to=2026-01-01", "to"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("limit=0", "limit"),
        ("limit=10001", "limit"),
        ("cursor=zz", "cursor"),
        ("cursor=31", "cursor"),
    ] {
        let problem = admin
            .get(&format!("{JOB}/explain?{query}"))
            .await
            .problem(400, "invalid_parameter");
        assert_eq!(problem["field"], field, "{problem}");
    }
    admin
        .get(&format!("{JOB}/explain?form=now"))
        .await
        .problem(400, "unknown_parameter");
    server.stop().await;
}
