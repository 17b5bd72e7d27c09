//! Scripts, requests, results and limits on a real worker: what is told of them, and that nothing of them stays.

use drumtower_e2e::process::none_alive;
use drumtower_e2e::web::{Web, reply};
use drumtower_e2e::{Api, Cli, Server, Site, Worker, WorkerOptions, eventually, once, shell};
use serde_json::{Value, json};

struct World {
    // The worker goes first: it would dial a server that is gone.
    _worker: Worker,
    server: Server,
    api: Api,
    site: Site,
}

fn world(arguments: &[&str]) -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let options = WorkerOptions {
        arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
        ..Default::default()
    };
    let worker = Worker::start_with(&site, &server, "agent", options);
    World {
        _worker: worker,
        api: server.api(),
        server,
        site,
    }
}

impl World {
    #[track_caller]
    fn start(&self, name: &str, task: Value) -> String {
        self.api
            .put_job(&once(json!({"kind": "Job", "name": name, "task": task})));
        self.api.trigger(name, &json!({}))
    }

    #[track_caller]
    fn ended(&self, name: &str, task: Value) -> Value {
        self.api.ended(&self.start(name, task))
    }
}

#[test]
fn a_command_leaves_a_result_as_json() {
    let world = world(&[]);
    let left = |script: &str| world.ended("leaves", json!({"exec": {"shell": script}}));
    let fine = left("echo '{\"rows\": 3}' > $DRUMTOWER_RESULT_FILE");
    assert_eq!(
        (&fine["state"], &fine["result"]),
        (&json!("COMPLETED"), &json!({"rows": 3}))
    );
    let failed = left("echo '[1]' > $DRUMTOWER_RESULT_FILE; exit 2");
    assert_eq!(
        (&failed["state"], &failed["result"]),
        (&json!("FAILED"), &json!([1]))
    );
    for (script, words) in [
        ("echo rows > $DRUMTOWER_RESULT_FILE", "is not JSON"),
        (
            "yes | head -c 70000 > $DRUMTOWER_RESULT_FILE",
            "it has 70000 bytes, the limit is 65536",
        ),
        ("ln -s /etc/passwd $DRUMTOWER_RESULT_FILE", "cannot be used"),
    ] {
        let run = left(script);
        let error = run["error"].as_str().unwrap_or_default();
        assert!(
            run["state"] == "FAILED" && error.contains(words),
            "{script}: {run:#}"
        );
        assert_eq!(run["result"], Value::Null, "{script}");
    }
}

#[test]
fn a_request_to_this_machine_is_refused_unless_it_is_allowed() {
    let web = Web::start(|_| Some(reply(200, &[], "inner")));
    let closed = world(&[]);
    let run = closed.ended("asks", json!({"http": {"url": web.url("/")}}));
    let error = run["error"].as_str().unwrap_or_default();
    assert!(error.contains("127.0.0.1 is a loopback address"), "{error}");
    assert!(error.contains("--allow-outbound 127.0.0.1"), "{error}");
    // A proxy named in the environment changes nothing.
    let site = Site::new();
    let server = Server::start(&site);
    let options = WorkerOptions {
        env: ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"]
            .map(|name| (name.to_owned(), web.url("")))
            .into(),
        ..Default::default()
    };
    let _worker = Worker::start_with(&site, &server, "agent", options);
    let api = server.api();
    let asks =
        json!({"kind": "Job", "name": "asks", "task": {"http": {"url": "http://10.1.2.3/"}}});
    api.put_job(&once(asks));
    let run = api.ended(&api.trigger("asks", &json!({})));
    let error = run["error"].as_str().unwrap_or_default();
    assert!(error.contains("10.1.2.3 is a private address"), "{error}");
    assert_eq!(web.count(), 0, "nobody was asked");
}

#[test]
fn a_request_ends_when_its_run_is_cancelled_or_takes_too_long() {
    let web = Web::start(|_| None);
    let world = world(&["--allow-outbound", "127.0.0.0/8"]);
    let asks = json!({"http": {"url": web.url("/"), "timeout": "1h"}});
    let id = world.start("asks", asks.clone());
    world.api.running(&id);
    world.api.cancel(&id);
    assert_eq!(world.api.ended(&id)["state"], "CANCELLED");
    let job = json!({"kind": "Job", "name": "slow", "task": asks, "timeout": "300ms"});
    world.api.put_job(&once(job));
    let run = world.api.ended(&world.api.trigger("slow", &json!({})));
    assert_eq!(run["attempts"][0]["end"]["outcome"], "timed_out", "{run:#}");
}

#[test]
fn a_tree_beyond_its_limits_is_killed_whole_and_that_is_told() {
    let world = world(&[]);
    let marker = world.site.marker();
    let many = format!("for i in 1 2 3 4 5 6; do sleep {marker} & done; wait");
    let task = json!({"exec": {"shell": many, "limits": {"processes": 3}}});
    let run = world.ended("forks", task);
    let error = run["error"].as_str().unwrap_or_default();
    assert!(error.contains("3 processes"), "{run:#}");
    none_alive(&marker);
    // Eight processes, each within the limit, are beyond it together.
    let grow = format!(
        "s=0123456789abcdef; n=0; while [ $n -lt 20 ]; do s=$s$s; n=$((n+1)); done; sleep {marker}"
    );
    let all = format!("for i in 1 2 3 4 5 6 7 8; do ({grow}) & done; wait");
    let task = json!({"exec": {"shell": all, "limits": {"memory": "60MiB"}}});
    let run = world.ended("grows", task);
    assert_eq!(
        run["error"], "killed for exceeding 60 MiB of memory",
        "{run:#}"
    );
    let peak = &run["attempts"][0]["end"]["peak_memory_bytes"];
    assert!(peak.as_u64() > Some(60 << 20), "{run:#}");
    none_alive(&marker);
}

#[test]
fn a_worker_is_shown_with_what_it_offers_and_runs() {
    let world = world(&["--label", "zone=a", "--capacity", "7"]);
    let marker = world.site.marker();
    world
        .api
        .put_job(&shell("sleeps", &format!("sleep {marker}")));
    let id = world.api.trigger("sleeps", &json!({}));
    world.api.running(&id);
    let worker = eventually("the worker is shown with its run", || {
        let worker = world.api.get("/api/v1/workers/agent");
        (worker["running"].as_array().map(Vec::len) == Some(1)).then_some(worker)
    });
    assert_eq!(worker["executors"], json!(["exec", "script", "http"]));
    assert_eq!(worker["running"][0]["run"], id.as_str());
    assert_eq!(worker["running"][0]["job"], "sleeps");
    let by = worker["limits"]["by"].as_str();
    assert!(matches!(by, Some("cgroup2" | "rlimits")), "{worker:#}");
    assert_ne!(worker["limits"]["why"], "");
    let cli = Cli::new(world.site.dir("home"))
        .env("DRUMTOWER_URL", world.server.url())
        .env("DRUMTOWER_TOKEN", world.server.token("looks", "viewer"));
    let words = cli.ok(&["worker", "show", "agent"]);
    for part in [
        "zone=a",
        "exec, script, http",
        "limits:",
        "capacity:",
        &id,
        "default/sleeps",
    ] {
        assert!(words.contains(part), "{part} in\n{words}");
    }
    let unknown = cli.run(&["worker", "show", "nobody"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
    assert!(
        unknown.stderr.contains("there is no worker `nobody`"),
        "{unknown:?}"
    );
    world.api.cancel(&id);
}
