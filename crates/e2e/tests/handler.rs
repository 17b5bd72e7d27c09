//! The example of the Rust SDK, as a process, against a real server.

use drumtower_e2e::{Server, Site, Worker, WorkerOptions, example};
use serde_json::json;

fn word_counter(site: &Site, server: &Server) -> Worker {
    let program = Some(example("drumtower-sdk", "handler"));
    Worker::start_with(
        site,
        server,
        "word-counter",
        WorkerOptions {
            program,
            ..Default::default()
        },
    )
}

fn job() -> serde_json::Value {
    json!({
        "kind": "Job", "name": "word-count", "task": {"handler": {"name": "count-words"}},
        "params": {"texts": ["the drum tower", "at dusk"]},
    })
}

#[test]
fn a_handler_takes_typed_parameters_and_returns_a_typed_result() {
    let site = Site::new();
    let server = Server::start(&site);
    let _worker = word_counter(&site, &server);
    let api = server.api();
    api.put_job(&job());
    let ended = api.ended(&api.trigger("word-count", &json!({})));
    assert_eq!(ended["state"], "COMPLETED", "{ended:#}");
    assert_eq!(
        ended["result"],
        json!({"words": 5, "lengths": {"2": 1, "3": 1, "4": 2, "5": 1}})
    );
    let id = ended["id"].as_str().expect("an id");
    assert_eq!(api.output(id), "text 1: 14 bytes\ntext 2: 7 bytes\n");
    let other = api.ended(&api.trigger("word-count", &json!({"params": {"texts": ["one"]}})));
    assert_eq!(
        other["result"]["words"], 1,
        "a trigger's own parameters win"
    );
}

#[test]
fn a_handler_that_fails_says_why() {
    let site = Site::new();
    let server = Server::start(&site);
    let _worker = word_counter(&site, &server);
    let api = server.api();
    api.put_job(&job());
    let silent = api.ended(&api.trigger("word-count", &json!({"params": {"texts": [" "]}})));
    assert_eq!(
        (&silent["state"], &silent["attempts"][0]["end"]["outcome"]),
        (&json!("FAILED"), &json!("failed"))
    );
    assert_eq!(
        silent["error"],
        "there is not one word in `texts`: give some"
    );
    let wrong = api.ended(&api.trigger("word-count", &json!({"params": {"text": "one"}})));
    let error = wrong["error"].as_str().unwrap_or_default();
    assert!(error.contains("missing field `texts`"), "{wrong:#}");
}

#[test]
fn a_run_whose_handler_nobody_has_waits_for_a_worker_that_does() {
    let site = Site::new();
    let server = Server::start(&site);
    let api = server.api();
    api.put_job(&job());
    let run = api.trigger("word-count", &json!({}));
    let _agent = Worker::start(&site, &server, "agent");
    assert_eq!(
        api.run(&run)["state"],
        "PENDING",
        "an agent has no handlers"
    );
    let _worker = word_counter(&site, &server);
    let ended = api.ended(&run);
    assert_eq!(
        (&ended["state"], &ended["attempts"][0]["worker"]),
        (&json!("COMPLETED"), &json!("word-counter"))
    );
}
