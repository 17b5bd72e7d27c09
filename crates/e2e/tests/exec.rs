//! Commands on a real worker: what they see, what is seen of them, and that nothing of them stays.

use std::collections::BTreeMap;
use std::time::Duration;

use drumtower_e2e::process::{alive, none_alive};
use drumtower_e2e::{Api, Server, Site, Worker, WorkerOptions, eventually, once, shell};
use serde_json::{Value, json};

struct World {
    site: Site,
    // The worker goes first: it would dial a server that is gone.
    worker: Worker,
    server: Server,
    api: Api,
}

fn world() -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let options = WorkerOptions {
        env: vec![("TOP_SECRET".into(), "of the agent".into())],
        ..Default::default()
    };
    let worker = Worker::start_with(&site, &server, "agent", options);
    let api = server.api();
    World {
        site,
        worker,
        server,
        api,
    }
}

impl World {
    #[track_caller]
    fn start(&self, spec: &Value) -> String {
        self.api.put_job(spec);
        self.api
            .trigger(spec["name"].as_str().expect("a name"), &json!({}))
    }
}

/// A shell script that leaves behind an orphan with a session of its own, an empty environment and no descriptors, which
/// has a child; it says so and goes on for ever.
fn escaper(marker: &str, up: &std::path::Path) -> String {
    let up = up.display();
    format!(
        "(setsid env -i /bin/sh -c 'exec 0<&- 1>&- 2>&-; (sleep {marker} &); : > {up}; sleep {marker}; :' &)
         while [ ! -e {up} ]; do sleep 0.01; done
         echo escaped; sleep {marker}; :"
    )
}

#[test]
fn what_a_long_run_prints_can_be_followed_while_it_runs() {
    let world = world();
    let go = world.site.path().join("go");
    let script = format!(
        "echo one; while [ ! -e {} ]; do sleep 0.01; done; echo two >&2; printf three",
        go.display()
    );
    let run = world.start(&shell("talk", &script));
    let mut records = world.api.follow(&run);
    let first = records.next().expect("a first record");
    assert_eq!(
        (&first["text"], &first["stream"], &first["attempt"]),
        (&json!("one\n"), &json!("stdout"), &json!(1))
    );
    // It was printed while the run waits for us.
    world.api.running(&run);
    std::fs::write(&go, "").expect("a file in the site");
    let rest: BTreeMap<String, String> = records
        .map(|record| {
            (
                record["stream"].as_str().unwrap_or_default().to_owned(),
                record["text"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    let expected = [("stderr", "two\n"), ("stdout", "three")]
        .map(|(stream, text)| (stream.to_owned(), text.to_owned()));
    assert_eq!(rest, BTreeMap::from(expected));
    assert_eq!(world.api.ended(&run)["state"], "COMPLETED");
}

#[test]
fn a_command_sees_a_defined_environment_and_nothing_of_the_agent() {
    let world = world();
    let spec = json!({
        "kind": "Job", "name": "env", "namespace": "default", "params": {"month": "2026-01"},
        "task": {"exec": {"argv": ["/usr/bin/env"]}},
    });
    world.api.put_job(&spec);
    let path = "/api/v1/namespaces/default/jobs/env/runs";
    let answer = world
        .api
        .call_with(
            ureq::http::Method::POST,
            path,
            Some(&json!({})),
            &[("idempotency-key", "order-7")],
        )
        .expect("an answer");
    let run = answer.body["id"].as_str().expect("an id").to_owned();
    let ended = world.api.ended(&run);
    let output = world.api.output(&run);
    let seen: BTreeMap<&str, &str> = output
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let attempt = &ended["attempts"][0];
    let expected = [
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("DRUMTOWER_RUN", &run),
        ("DRUMTOWER_ATTEMPT", "1"),
        (
            "DRUMTOWER_FENCE",
            attempt["fence"].as_str().expect("a fence"),
        ),
        ("DRUMTOWER_IDEMPOTENCY_KEY", "order-7"),
        ("DRUMTOWER_PARAMS", "{\"month\":\"2026-01\"}"),
    ];
    for (name, value) in expected {
        assert_eq!(seen.get(name), Some(&value), "{name} in {output}");
    }
    assert_eq!(seen.get("HOME"), seen.get("DRUMTOWER_SCRATCH"), "{output}");
    let known = |name: &&str| {
        name.starts_with("DRUMTOWER_") || ["PATH", "HOME", "LANG", "TZ"].contains(name)
    };
    let strangers: Vec<_> = seen.keys().copied().filter(|name| !known(name)).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
    assert!(
        !seen.contains_key("DRUMTOWER_TOKEN"),
        "a task must not see the worker's token"
    );
}

#[test]
fn a_run_that_takes_too_long_is_killed_with_everything_it_started() {
    let world = world();
    let marker = world.site.marker();
    let mut spec = shell("slow", &escaper(&marker, &world.site.path().join("up")));
    spec["timeout"] = json!("2s");
    let run = world.start(&once(spec));
    let ended = world.api.ended(&run);
    assert_eq!(
        (&ended["state"], &ended["attempts"][0]["end"]["outcome"]),
        (&json!("FAILED"), &json!("timed_out"))
    );
    assert!(
        alive(&marker).is_empty(),
        "the end is told when nothing is left"
    );
}

#[test]
fn cancel_reaches_a_grandchild_that_did_everything_to_get_away() {
    let world = world();
    let marker = world.site.marker();
    let run = world.start(&shell(
        "escape",
        &escaper(&marker, &world.site.path().join("up")),
    ));
    let said = world
        .api
        .follow(&run)
        .next()
        .expect("it says when it has escaped");
    assert_eq!(said["text"], "escaped\n");
    assert!(
        alive(&marker).len() >= 3,
        "the orphan, its child and the command run"
    );
    world.api.cancel(&run);
    let ended = world.api.ended(&run);
    assert_eq!(
        (&ended["state"], &ended["attempts"][0]["end"]["outcome"]),
        (&json!("CANCELLED"), &json!("cancelled"))
    );
    assert!(
        alive(&marker).is_empty(),
        "the end is told when nothing is left"
    );
}

#[test]
fn an_agent_killed_with_9_leaves_nothing_running() {
    let mut world = world();
    let marker = world.site.marker();
    let up = world.site.path().join("up");
    world.start(&shell("escape", &escaper(&marker, &up)));
    eventually("it has escaped", || up.exists().then_some(()));
    world.worker.kill();
    none_alive(&marker);
    world.server.stop();
}

#[test]
fn how_it_went_is_recorded() {
    let world = world();
    // `tail` keeps a line whole, so it holds these 64 MiB.
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; head -c 64M /dev/zero | tail >/dev/null; exit 7";
    let run = world.start(&once(shell("work", script)));
    let ended = world.api.ended(&run);
    let end = &ended["attempts"][0]["end"];
    assert_eq!(
        (&ended["state"], &end["outcome"], &end["exit_code"]),
        (&json!("FAILED"), &json!("failed"), &json!(7))
    );
    assert_eq!(end["signal"], Value::Null);
    let number = |name: &str| {
        end[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name} in {end}"))
    };
    assert!(number("peak_memory_bytes") >= 64 << 20, "{end}");
    assert!(number("cpu_ms") > 0, "{end}");
    assert!(number("duration_ms") >= number("cpu_ms") / 4, "{end}");
    let killed = world.start(&once(shell("suicide", "kill -SEGV $$")));
    let ended = world.api.ended(&killed);
    let end = &ended["attempts"][0]["end"];
    assert_eq!(
        (&ended["state"], &end["signal"], &end["exit_code"]),
        (&json!("FAILED"), &json!(11), &Value::Null)
    );
    let missing =
        json!({"kind": "Job", "name": "missing", "task": {"exec": {"argv": ["/no/such/program"]}}});
    let ended = world.api.until(
        &world.start(&once(missing)),
        Duration::from_secs(60),
        |run| run["state"] == "FAILED",
    );
    assert!(
        ended["error"]
            .as_str()
            .unwrap_or_default()
            .contains("/no/such/program"),
        "{ended}"
    );
}
