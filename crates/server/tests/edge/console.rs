//! The console's door: its page and files, and sessions that stand for tokens.

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::runs::{put_exec, trigger};
use crate::server::Server;

const SESSION: &str = "/api/v1/session";
const JOB: &str = "/api/v1/namespaces/default/jobs/x";

/// Signs in and gives back what a browser would keep.
async fn sign_in(client: &Client) -> String {
    let answer = client.post(SESSION, &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let cookie = answer.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    cookie.split(';').next().unwrap().to_owned()
}

/// A request as the console sends it.
async fn browse(server: &Server, method: &str, path: &str, cookie: &str) -> Answer {
    let headers = [("cookie", cookie), ("x-drumtower-console", "1")];
    server.with(None).call(method, path, &headers, None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_may_what_its_token_may_and_ends_with_it() {
    let server = Server::start().await;
    put_exec(&server.admin(), "x").await;
    let made = json!({"name": "ann", "role": "viewer"});
    let token = server
        .admin()
        .post("/api/v1/tokens", &made)
        .await
        .expect(201);
    let viewer = server.with(token["secret"].as_str());
    let cookie = sign_in(&viewer).await;
    let session = browse(&server, "GET", SESSION, &cookie).await.expect(200);
    assert_eq!(
        (&session["name"], &session["role"]),
        (&json!("ann"), &json!("viewer"))
    );
    let may = |session: &Value, name: &str| {
        let names = session["may"].as_array().unwrap();
        names.iter().any(|it| it == name)
    };
    assert!(may(&session, "ShowJob") && !may(&session, "PauseJob"));
    browse(&server, "GET", JOB, &cookie).await.expect(200);
    let pause = format!("{JOB}/pause");
    browse(&server, "POST", &pause, &cookie)
        .await
        .problem(403, "forbidden_role");
    let id = token["id"].as_str().unwrap();
    let revoke = format!("/api/v1/tokens/{id}");
    server.admin().delete(&revoke).await.success();
    browse(&server, "GET", JOB, &cookie)
        .await
        .problem(401, "unauthenticated");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_a_restart_and_a_forged_one_is_none() {
    let server = Server::start().await;
    let token = server.token("operator", None).await;
    let cookie = sign_in(&server.with(Some(&token))).await;
    let local = sign_in(&server.admin()).await;
    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    browse(&server, "GET", SESSION, &cookie).await.expect(200);
    // The machine's own token is drawn anew at each start.
    browse(&server, "GET", SESSION, &local)
        .await
        .problem(401, "unauthenticated");
    let later = cookie.replacen(".1", ".9", 1);
    let broken = cookie.replace("drumtower_session=tok_", "drumtower_session=tok_0");
    let (short, _) = cookie.rsplit_once('.').unwrap();
    for forged in [
        later.as_str(),
        &broken,
        short,
        "drumtower_session=local.9.aa",
    ] {
        assert_ne!(forged, cookie);
        browse(&server, "GET", SESSION, forged)
            .await
            .problem(401, "unauthenticated");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_ended_alone_and_stays_so_over_a_restart() {
    let server = Server::start().await;
    let token = server.token("operator", None).await;
    let client = server.with(Some(&token));
    let (here, there) = (sign_in(&client).await, sign_in(&client).await);
    assert_ne!(here, there);
    let out = browse(&server, "DELETE", SESSION, &here).await;
    assert_eq!(out.status, 204);
    // Whoever has a copy of the cookie has nothing; the other session and the token go on.
    let is_ended = async |server: &Server| {
        browse(server, "GET", SESSION, &here)
            .await
            .problem(401, "unauthenticated");
        browse(server, "GET", SESSION, &there).await.expect(200);
        server.with(Some(&token)).get(SESSION).await.expect(200);
    };
    is_ended(&server).await;
    let server = Server::start_in(server.stop().await).await;
    is_ended(&server).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_speaks_tls_to_a_proxy_may_send_its_cookie_over_tls_only() {
    let server = Server::start().await;
    let cookie = async |headers: &[(&str, &str)]| {
        let client = server.admin();
        let answer = client.call("POST", SESSION, headers, None).await;
        answer.header("set-cookie").to_owned()
    };
    assert!(!cookie(&[]).await.contains("Secure"));
    let http = [("x-forwarded-proto", "http, https")];
    assert!(!cookie(&http).await.contains("Secure"));
    let https = [("x-forwarded-proto", "https")];
    assert!(cookie(&https).await.ends_with("; Secure"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_site_can_change_nothing() {
    let server = Server::start().await;
    put_exec(&server.admin(), "x").await;
    let cookie = sign_in(&server.admin()).await;
    let only = [("cookie", cookie.as_str())];
    let pause = format!("{JOB}/pause");
    server
        .with(None)
        .call("POST", &pause, &only, None)
        .await
        .problem(403, "other_site");
    assert_eq!(
        server.admin().get(JOB).await.expect(200)["paused"],
        Value::Null
    );
    // A page of another origin has to ask whether it may send the header, and is told nothing.
    let asked = [
        ("origin", "https://evil.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "x-drumtower-console"),
    ];
    let answer = server
        .with(None)
        .call("OPTIONS", &pause, &asked, None)
        .await;
    assert_eq!(answer.header("access-control-allow-origin"), "");
    assert_eq!(answer.header("access-control-allow-headers"), "");
    browse(&server, "POST", &pause, &cookie).await.expect(200);
    let out = browse(&server, "DELETE", SESSION, &cookie).await;
    assert!(
        out.header("set-cookie").contains("Max-Age=0"),
        "{}",
        out.text()
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_loads_nothing_from_elsewhere_and_no_script_in_it_runs() {
    let server = Server::start().await;
    let html = [("accept", "text/html")];
    for path in ["/", "/runs/run_0000000000001?x=%3Cscript%3E"] {
        let page = server.with(None).call("GET", path, &html, None).await;
        assert_eq!(page.status, 200);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
        assert!(!policy.contains("unsafe") && !policy.contains("http"));
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        let text = page.text();
        assert!(!text.contains("<script>") && !text.contains("style="));
    }
    // Whoever does not look for a page is told that there is none.
    let plain = server.with(None).get("/jobs").await;
    plain.problem(404, "no_such_route");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_can_be_tried_without_being_applied() {
    let server = Server::start().await;
    let admin = server.admin();
    let tried = format!("{JOB}/validate");
    let good = json!({
        "kind": "Job", "task": {"exec": {"argv": ["true"]}},
        "schedule": [{"cron": "0 9 * * *", "timezone": "Europe/Berlin"}],
    });
    let answer = admin.post(&tried, &good).await.expect(200);
    assert_eq!(answer["times"].as_array().unwrap().len(), 10);
    admin.get(JOB).await.problem(404, "no_such_job");
    let bad = json!({"kind": "Job", "task": {"exec": {"argv": []}}});
    let problem = admin.post(&tried, &bad).await.problem(422, "invalid_field");
    assert_eq!(problem["field"], "task.exec.argv");
    let late =
        json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}, "schedule": [{"cron": "9"}]});
    admin
        .post(&tried, &late)
        .await
        .problem(422, "invalid_field");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rollups_count_ends_and_show_each_caller_its_own() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    for _ in 0..3 {
        let run = trigger(&admin, "x", json!({})).await;
        let cancel = format!("/api/v1/runs/{run}/cancel");
        admin.post(&cancel, &json!({})).await.success();
    }
    let sum = async |client: &Client, query: &str| {
        let path = format!("/api/v1/rollups{query}");
        let answer = client.get(&path).await.expect(200);
        let points = answer["points"].as_array().unwrap().clone();
        let cancelled = points.iter().map(|point| point["cancelled"].as_u64());
        (points.len(), cancelled.flatten().sum::<u64>())
    };
    let (points, cancelled) = sum(&admin, "").await;
    assert!((60..=61).contains(&points), "{points}");
    assert_eq!(cancelled, 3);
    assert_eq!(sum(&admin, "?job=x&step=1h").await.1, 3);
    assert_eq!(sum(&admin, "?namespace=default").await.1, 3);
    assert_eq!(sum(&admin, "?namespace=other").await.1, 0);
    let stranger = server.client("viewer", Some("b")).await;
    assert_eq!(sum(&stranger, "").await.1, 0);
    for (query, field) in [
        ("?step=30s", "step"),
        ("?step=90s", "step"),
        ("?since=2020-01-01T00:00:00Z", "since"),
        ("?job=x&since=2020-01-01T00:00:00Z", "step"),
        (
            "?since=2020-01-01T00:00:00Z&until=2019-01-01T00:00:00Z",
            "until",
        ),
    ] {
        let problem = admin.get(&format!("/api/v1/rollups{query}")).await;
        let problem = problem.problem(400, "invalid_parameter");
        assert_eq!(problem["field"], field, "{query}");
    }
    let none = admin.get("/api/v1/rollups?job=nobody").await;
    none.problem(404, "no_such_job");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fires_next_comes_soonest_first() {
    let server = Server::start().await;
    let admin = server.admin();
    for (namespace, name, every) in [("a", "late", "9h"), ("b", "soon", "1h"), ("a", "mid", "2h")] {
        let path = format!("/api/v1/namespaces/{namespace}/jobs/{name}");
        let manifest = json!({
            "kind": "Job", "task": {"exec": {"argv": ["true"]}}, "schedule": [{"every": every}],
        });
        admin.put(&path, &manifest).await.expect(201);
    }
    let names = async |client: &Client, query: &str| {
        let path = format!("/api/v1/upcoming{query}");
        let items = client.get(&path).await.expect(200)["items"].clone();
        let items = items.as_array().unwrap().clone();
        let due: Vec<&str> = items.iter().map(|it| it["due"].as_str().unwrap()).collect();
        assert!(due.is_sorted(), "{due:?}");
        let names = items
            .iter()
            .map(|it| it["job"].as_str().unwrap().to_owned());
        names.collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(names(&admin, "").await.len(), 3);
    assert_eq!(names(&admin, "?limit=1").await.len(), 1);
    assert_eq!(
        names(&admin, "?namespace=b").await,
        ["soon".to_owned()].into()
    );
    let stranger = server.client("viewer", Some("a")).await;
    let own = ["late".to_owned(), "mid".to_owned()];
    assert_eq!(names(&stranger, "").await, own.into());
    server.stop().await;
}
