//! A disk that is full and then is not: nothing acknowledged is lost and nobody has to restart anything.
//!
//! Needs the right to mount a small file system, which root on Linux has. Elsewhere the test says that it was skipped.

#![cfg(target_os = "linux")]

use std::path::Path;

use drumtower_e2e::{Api, Server, ServerOptions, Site, SmallDisk, eventually};
use serde_json::json;
use ureq::http::Method;

/// One trigger under a key: the id of the run, or the code of the refusal.
fn trigger(api: &Api, key: &str) -> Result<String, String> {
    let path = "/api/v1/namespaces/default/jobs/order/runs";
    // Parameters that do not fit into what is left of a page.
    let body = json!({"params": {"filler": "x".repeat(20_000)}});
    let answer = api
        .call_with(Method::POST, path, Some(&body), &[("idempotency-key", key)])
        .expect("an answer");
    match answer.body["id"].as_str() {
        Some(id) if answer.is_success() => Ok(id.to_owned()),
        _ => {
            assert_eq!(answer.status, 503, "{answer:?}");
            Err(answer.code().to_owned())
        }
    }
}

fn start(disk: &Path, site: &Site) -> Server {
    let mut server = Server::launch(
        &disk.join("data"),
        &site.path().join("server.log"),
        &ServerOptions::default(),
    );
    server.await_ready();
    server
}

#[test]
fn a_full_disk_refuses_and_loses_nothing_and_heals_by_itself() {
    let site = Site::new();
    let Some(disk) = SmallDisk::mount(site.dir("disk"), 8) else {
        eprintln!(
            "SKIPPED: a full disk needs a small file system, and this user may not mount one"
        );
        return;
    };
    let mut server = start(disk.path(), &site);
    let api = server.api();
    api.put_job(&json!({"kind": "Job", "name": "order", "task": {"handler": {"name": "nobody"}}}));
    let mut told = vec![(
        "before".to_owned(),
        trigger(&api, "before").expect("room on the disk"),
    )];
    disk.fill();
    // What was allocated before may take a few more; then the answer is no, and says so.
    let mut number = 0;
    let refused = eventually("a trigger is refused", || {
        number += 1;
        let key = format!("full-{number}");
        match trigger(&api, &key) {
            Ok(id) => {
                told.push((key, id));
                None
            }
            Err(code) => Some((key, code)),
        }
    });
    assert!(
        ["store_failed", "outcome_unknown", "not_ready"].contains(&refused.1.as_str()),
        "{refused:?}"
    );
    eventually("the server says that it is impaired", || {
        (!api.is_ready()).then_some(())
    });
    assert_eq!(
        api.call(Method::GET, "/healthz", None)
            .expect("an answer")
            .status,
        200,
        "it lives all the same"
    );
    assert_eq!(api.run(&told[0].1)["state"], "PENDING", "and can be read");
    disk.free();
    eventually("the server is ready by itself", || {
        api.is_ready().then_some(())
    });
    let again = eventually("the refused trigger is taken", || {
        trigger(&api, &refused.0).ok()
    });
    told.push((refused.0, again));
    server.kill();
    server.restart();
    let api = server.api();
    for (key, id) in &told {
        assert_eq!(
            &trigger(&api, key).expect("an answer"),
            id,
            "{key} still stands for the same run"
        );
        assert_eq!(api.run(id)["idempotency_key"], json!(key));
    }
    assert_eq!(
        api.runs("job=order").len(),
        told.len(),
        "and there are no others"
    );
}
