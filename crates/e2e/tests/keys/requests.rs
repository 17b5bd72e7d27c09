//! Keys of HTTP requests.

use drumtower_e2e::web::{Web, reply};
use serde_json::{Value, json};

use super::world::{World, id, world};

/// A server that answers with what was asked of it, and a world whose worker may reach it.
fn echo() -> (World, Web) {
    let web = Web::start(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        match path.as_str() {
            "/silent" => None,
            "/moved" => Some(reply(302, &[("location", "/landed")], "moved")),
            "/busy" => Some(reply(503, &[], "try later")),
            _ => Some(reply(
                200,
                &[("content-type", "text/plain")],
                &format!("asked for {path}"),
            )),
        }
    });
    let world = world().agent_with(&["--allow-outbound", "127.0.0.1"]);
    (world, web)
}

#[track_caller]
fn ended(world: &World, task: Value) -> Value {
    world.ended(json!({"task": {"http": task}, "params": {"a": 1}}))
}

#[track_caller]
fn error(world: &World, task: Value) -> String {
    let run = ended(world, task);
    assert_eq!(run["state"], "FAILED", "{run:#}");
    run["error"].as_str().expect("an error").to_owned()
}

#[track_caller]
fn completed(world: &World, task: Value) -> Value {
    let run = ended(world, task);
    assert_eq!(run["state"], "COMPLETED", "{run:#}");
    run
}

/// The answer is the run's output, and its result tells of it.
pub fn url() {
    let (world, web) = echo();
    let run = completed(&world, json!({"url": web.url("/x?y=z")}));
    let output = world.api.output(id(&run));
    assert!(output.contains("asked for /x?y=z"), "{output}");
    assert_eq!(run["result"]["status"], 200);
    assert_eq!(run["result"]["body"], "asked for /x?y=z");
    assert_eq!(run["result"]["headers"]["content-type"], "text/plain");
    let asked = web.last().to_lowercase();
    for part in [
        format!("drumtower-run: {}", id(&run)),
        "drumtower-attempt: 1".to_owned(),
        "drumtower-fence: ".to_owned(),
        format!("drumtower-idempotency-key: {}", id(&run)),
        "drumtower-due-ms: ".to_owned(),
    ] {
        assert!(asked.contains(&part.to_lowercase()), "{part} in {asked}");
    }
}

/// The parameters are the body of what takes one.
pub fn method() {
    let (world, web) = echo();
    for (method, body) in [("DELETE", ""), ("POST", "{\"a\":1}")] {
        completed(&world, json!({"method": method, "url": web.url("/")}));
        let asked = web.last();
        assert!(asked.starts_with(&format!("{method} / ")), "{asked}");
        assert_eq!(asked.split("\r\n\r\n").nth(1), Some(body), "{asked}");
    }
}

pub fn headers() {
    let (world, web) = echo();
    completed(
        &world,
        json!({"url": web.url("/"), "headers": {"X-Team": "payments"}}),
    );
    assert!(
        web.last().to_lowercase().contains("x-team: payments"),
        "{}",
        web.last()
    );
}

pub fn body() {
    let (world, web) = echo();
    completed(
        &world,
        json!({"method": "PUT", "url": web.url("/"), "body": "as it is"}),
    );
    assert!(web.last().ends_with("\r\n\r\nas it is"), "{}", web.last());
}

pub fn status() {
    let (world, web) = echo();
    let error = error(&world, json!({"url": web.url("/busy")}));
    assert!(error.starts_with("expected status 2xx, got 503"), "{error}");
    assert!(error.contains("try later"), "{error}");
    completed(
        &world,
        json!({"url": web.url("/busy"), "expect": {"status": [200, "5xx"]}}),
    );
}

pub fn pattern() {
    let (world, web) = echo();
    let expect = |pattern: &str| json!({"url": web.url("/x"), "expect": {"body": pattern}});
    completed(&world, expect("^asked .* /x$"));
    let error = error(&world, expect("nothing"));
    assert!(error.contains("matches `nothing`"), "{error}");
}

pub fn timeout() {
    let (world, web) = echo();
    let error = error(
        &world,
        json!({"url": web.url("/silent"), "timeout": "300ms"}),
    );
    assert_eq!(error, "no complete answer within 300 ms");
}

pub fn follow_redirects() {
    let (world, web) = echo();
    let run = completed(&world, json!({"url": web.url("/moved")}));
    assert_eq!(run["result"]["body"], "asked for /landed");
    let error = error(
        &world,
        json!({"url": web.url("/moved"), "follow_redirects": 0}),
    );
    assert!(error.contains("got 302"), "{error}");
}
