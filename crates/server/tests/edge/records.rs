//! Settings and the audit log.

use serde_json::{Value, json};

use crate::server::Server;

const NOTIFY: &str = "/api/v1/namespaces/default/settings/notify";

fn rules(address: &str) -> Value {
    json!({"rules": [{"on": ["failure"], "email": [address]}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_is_edited_under_its_etag() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.get(NOTIFY).await.problem(404, "no_such_setting");
    let made = admin.put(NOTIFY, &rules("ops@example.com")).await;
    assert_eq!(made.header("etag"), "\"s1\"");
    let made = made.expect(201);
    assert_eq!(made["value"], rules("ops@example.com"));
    assert_eq!(
        (&made["revision"], &made["actor"]),
        (&json!(1), &json!("local"))
    );
    let edit = |tag: &'static str, value: Value| {
        let admin = &admin;
        async move {
            let headers = [("If-Match", tag)];
            admin
                .call("PUT", NOTIFY, &headers, Some(value.to_string()))
                .await
        }
    };
    edit("\"s9\"", rules("a@b")).await.problem(412, "stale");
    edit("\"1\"", rules("a@b"))
        .await
        .problem(400, "invalid_header");
    edit("\"s1\"", rules("a@b")).await.expect(200);
    let listed = admin
        .get("/api/v1/namespaces/default/settings")
        .await
        .expect(200);
    assert_eq!(listed["items"][0]["value"], rules("a@b"));
    assert_eq!(listed["items"][0]["revision"], 2);
    let refused = admin
        .put(NOTIFY, &json!({"rules": [{"on": ["late"]}]}))
        .await;
    let problem = refused.problem(422, "invalid_field");
    assert_eq!(problem["field"], "value.rules[0]");
    let unknown = "/api/v1/namespaces/default/settings/notfy";
    let problem = admin.get(unknown).await.problem(400, "invalid_parameter");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("there is notify")
    );
    admin.delete(NOTIFY).await.success();
    admin.delete(NOTIFY).await.problem(404, "no_such_setting");
    server.stop().await;
}

const JOBS: &str = "/api/v1/settings/jobs";

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_of_the_installation_holds_for_what_is_put_from_then_on() {
    let server = Server::start().await;
    let admin = server.admin();
    let path = |name: &str| format!("/api/v1/namespaces/default/jobs/{name}");
    let plain = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}});
    let before = admin.put(&path("before"), &plain).await.expect(201);
    admin.get(JOBS).await.problem(404, "no_such_setting");
    let value =
        json!({"defaults": {"timeout": "10m", "retention": "30d"}, "limits": {"timeout": "1h"}});
    let made = admin.put(JOBS, &value).await;
    assert_eq!(made.header("etag"), "\"s1\"");
    assert_eq!(made.expect(201)["namespace"], Value::Null);
    let put = admin.put(&path("after"), &plain).await.expect(201);
    assert_eq!(
        (&put["spec"]["timeout"], &put["spec"]["retention"]),
        (&json!("10m"), &json!("30d"))
    );
    // Nobody touched it, so it goes on as it was.
    let still = admin.get(&path("before")).await.expect(200);
    assert_eq!(still["spec"], before["spec"]);
    let mut long = plain.clone();
    long["timeout"] = json!("61m");
    let refused = admin.put(&path("after"), &long).await;
    let problem = refused.problem(422, "invalid_field");
    assert_eq!(problem["field"], "timeout");
    let tried = admin
        .post(&format!("{}/validate", path("after")), &long)
        .await;
    tried.problem(422, "invalid_field");
    // A value is looked at as a whole, and both kinds of settings are where they belong.
    let unknown = json!({"defaults": {"timeuot": "1m"}});
    let refused = admin.put(JOBS, &unknown).await;
    let problem = refused.problem(422, "invalid_field");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`timeuot`"), "{detail}");
    for misplaced in [
        "/api/v1/settings/notify",
        "/api/v1/namespaces/default/settings/jobs",
    ] {
        let refused = admin.put(misplaced, &json!({})).await;
        refused.problem(400, "invalid_parameter");
    }
    let bound = server.client("admin", Some("default")).await;
    bound.get(JOBS).await.expect(200);
    let refused = bound.put(JOBS, &json!({})).await;
    refused.problem(403, "forbidden_namespace");
    let audit = admin.get("/api/v1/audit?kind=setting").await.expect(200);
    assert_eq!(audit["items"][0]["name"], "jobs");
    assert_eq!(audit["items"].as_array().unwrap().len(), 1);
    let edit = [("If-Match", "\"s1\"")];
    admin.call("DELETE", JOBS, &edit, None).await.success();
    let put = admin.put(&path("after"), &plain).await.expect(200);
    assert_eq!(put["spec"].get("timeout"), None);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_tells_who_changed_what_from_what_to_what() {
    let server = Server::start().await;
    let ann = server.client("operator", None).await;
    let job = "/api/v1/namespaces/default/jobs/report";
    let manifest =
        |weight| json!({"kind": "Job", "weight": weight, "task": {"exec": {"argv": ["true"]}}});
    ann.put(job, &manifest(2)).await.expect(201);
    ann.put(job, &manifest(3)).await.expect(200);
    ann.post(&format!("{job}/pause"), &json!({}))
        .await
        .expect(200);
    ann.delete(job).await.success();
    let admin = server.admin();
    let entries = |query: &'static str| {
        let admin = &admin;
        async move {
            let page = admin
                .get(&format!("/api/v1/audit?{query}"))
                .await
                .expect(200);
            (
                page["items"].as_array().unwrap().clone(),
                page["next"].clone(),
            )
        }
    };
    let (of_job, next) = entries("kind=job&name=report").await;
    let actions: Vec<&str> = of_job
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["deleted", "paused", "changed", "created"]);
    assert_eq!(next, Value::Null);
    assert_eq!(
        of_job[2]["changes"],
        json!([{"field": "weight", "before": 2, "after": 3}])
    );
    assert_eq!(of_job[2]["version"], 2);
    assert_eq!(
        of_job[1]["changes"],
        json!([{"field": "paused", "before": false, "after": true}])
    );
    let gone = of_job[0]["changes"].as_array().unwrap();
    assert!(
        gone.contains(&json!({"field": "weight", "before": 3, "after": null})),
        "{gone:?}"
    );
    let who = of_job[0]["actor"].as_str().unwrap();
    let (hers, _) = entries("action=paused").await;
    assert_eq!(hers[0]["actor"], who);
    let (page, next) = entries("name=report&limit=3").await;
    assert_eq!(page.len(), 3);
    let rest = format!(
        "/api/v1/audit?name=report&limit=3&cursor={}",
        next.as_str().unwrap()
    );
    let rest = admin.get(&rest).await.expect(200);
    assert_eq!(rest["items"][0]["action"], "created");
    let (later, _) = entries("since=2999-01-01T00:00:00Z").await;
    assert!(later.is_empty());
    admin
        .get("/api/v1/audit?action=painted")
        .await
        .problem(400, "invalid_parameter");
    admin
        .get("/api/v1/audit?cursor=00")
        .await
        .problem(400, "invalid_parameter");
    server.stop().await;
}
