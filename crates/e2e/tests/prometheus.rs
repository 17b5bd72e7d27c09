//! The files under `deploy/` with a real Prometheus: it scrapes a real server, takes the rules, answers every expression
//! of rules and dashboard, and raises an alarm.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use drumtower_e2e::{Process, Server, Site, Worker, WorkerOptions, eventually, once, shell};
use serde_json::{Value, json};
use ureq::http::Method;

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(shipped(name)).expect("a shipped file")
}

struct Prometheus {
    url: String,
    _process: Process,
}

impl Prometheus {
    /// Starts one on the shipped files, with the paths, the port and the patience of a test.
    fn start(site: &Site, server: &Server, token: &str) -> Self {
        let directory = site.path().join("prometheus");
        std::fs::create_dir_all(&directory).expect("a directory");
        let secret = directory.join("drumtower.token");
        std::fs::write(&secret, token).expect("written");
        let target = server.url().replace("http://", "");
        let config = text("prometheus/prometheus.yml");
        let config = config
            .replace("127.0.0.1:7070", &target)
            .replace(
                "/etc/prometheus/drumtower.token",
                secret.to_str().expect("text"),
            )
            .replace("15s", "1s");
        std::fs::write(directory.join("prometheus.yml"), config).expect("written");
        let rules = text("prometheus/drumtower.rules.yml");
        let rules: Vec<&str> = rules
            .lines()
            .map(|line| {
                if line.trim_start().starts_with("for: ") {
                    "        for: 1s"
                } else {
                    line
                }
            })
            .collect();
        std::fs::write(directory.join("drumtower.rules.yml"), rules.join("\n")).expect("written");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let mut command = Command::new("prometheus");
        command
            .arg(format!(
                "--config.file={}",
                directory.join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                directory.join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"));
        Self {
            _process: Process::spawn(command, &site.path().join("prometheus.log")),
            url: format!("http://{address}"),
        }
    }

    /// What a path of its API answers; `None` while it does not, or refuses.
    fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let mut request = ureq::get(format!("{}/api/v1/{path}", self.url));
        for (name, value) in query {
            request = request.query(*name, *value);
        }
        let body = request.call().ok()?.body_mut().read_to_string().ok()?;
        let answer: Value = serde_json::from_str(&body).ok()?;
        (answer["status"] == "success").then(|| answer["data"].clone())
    }

    fn results(&self, expression: &str) -> Vec<Value> {
        let answer = self.get("query", &[("query", expression)]);
        let answer = answer.unwrap_or_else(|| panic!("`{expression}` is refused"));
        answer["result"].as_array().cloned().unwrap_or_default()
    }
}

/// Every expression of the dashboard, with its variables filled in.
fn dashboard() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&text("grafana/drumtower.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let expressions = targets.map(|target| target["expr"].as_str().expect("an expression"));
    expressions
        .map(|expression| {
            ["$namespace", "$job", "$worker"].iter().fold(
                expression.replace("$__rate_interval", "1m"),
                |text, variable| text.replace(variable, ".*"),
            )
        })
        .collect()
}

/// The series that expressions name.
fn series(expressions: &[String]) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expressions
        .iter()
        .flat_map(|text| text.split(move |c| !word(c)));
    let named = words.filter(|name| name.starts_with("drumtower_") || name.starts_with("process_"));
    named.map(str::to_owned).collect()
}

#[test]
fn a_real_prometheus_takes_what_is_shipped_and_raises_an_alarm() {
    let site = Site::new();
    let server = Server::start(&site);
    let worker = Worker::start_with(&site, &server, "agent", WorkerOptions::default());
    let api = server.api();
    let viewer = json!({"name": "prometheus", "role": "viewer"});
    let token = api.post("/api/v1/tokens", &viewer);
    let token = token["secret"].as_str().expect("a secret").to_owned();
    api.put_job(&shell("good", "true"));
    api.put_job(&once(shell("bad", "exit 3")));
    for job in ["good", "bad"] {
        api.trigger(job, &json!({}));
    }
    api.post("/api/v1/backups", &json!({}));
    let refused = api
        .call(Method::GET, "/api/v1/runs?limt=1", None)
        .expect("an answer");
    assert_eq!(refused.code(), "unknown_parameter");
    let prometheus = Prometheus::start(&site, &server, &token);

    eventually("the target is up", || {
        let targets = prometheus.get("targets", &[])?;
        (targets["activeTargets"][0]["health"] == "up").then_some(())
    });
    let rules = eventually("every rule is evaluated and sound", || {
        let rules = prometheus.get("rules", &[])?;
        let rules = rules["groups"][0]["rules"].as_array()?.clone();
        let sound = |rule: &Value| rule["health"] == "ok" && rule["lastError"].is_null();
        rules.iter().all(sound).then_some(rules)
    });
    assert_eq!(
        rules.len(),
        text("prometheus/drumtower.rules.yml")
            .matches("- alert:")
            .count()
    );
    eventually(
        "the failing job is alarmed about, and only that one",
        || {
            let alerts = prometheus.get("alerts", &[])?;
            let alerts = alerts["alerts"].as_array()?;
            let failing = alerts
                .iter()
                .filter(|alert| alert["labels"]["alertname"] == "DrumtowerJobFailing");
            let jobs: Vec<&Value> = failing
                .clone()
                .map(|alert| &alert["labels"]["job_name"])
                .collect();
            assert!(jobs.iter().all(|job| **job == "bad"), "{jobs:?}");
            failing
                .into_iter()
                .any(|alert| alert["state"] == "firing")
                .then_some(())
        },
    );

    let mut expressions = dashboard();
    expressions.extend(
        rules
            .iter()
            .map(|rule| rule["query"].as_str().expect("a query").to_owned()),
    );
    for expression in &expressions {
        prometheus.results(expression);
    }
    let named = series(&expressions);
    assert!(named.len() > 40, "{named:?}");
    for name in named {
        eventually(&format!("there are samples of {name}"), || {
            (!prometheus.results(&format!("count({name})")).is_empty()).then_some(())
        });
    }
    drop(worker);
}

#[test]
fn each_alert_fires_when_it_should_and_only_then() {
    let output = Command::new("promtool")
        .args(["test", "rules"])
        .arg(shipped("prometheus/drumtower.rules.test.yml"))
        .output()
        .expect("promtool starts");
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let (rules, tests) = (
        text("prometheus/drumtower.rules.yml"),
        text("prometheus/drumtower.rules.test.yml"),
    );
    for alert in rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
    {
        let tested = tests.matches(&format!("alertname: {alert}")).count();
        assert_eq!(tested, 2, "{alert} is tested to fire and to be quiet");
    }
}
