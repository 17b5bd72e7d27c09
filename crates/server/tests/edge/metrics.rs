//! Figures as Prometheus reads them, and the page that promises them.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_proto::worker::v1 as wire;
use serde_json::json;

use crate::client::Client;
use crate::server::{Server, eventually};
use crate::worker::{Worker, hello};

/// Families with their type and the labels of their samples, and the samples by name and labels.
#[derive(Debug, Default)]
struct Scrape {
    families: BTreeMap<String, (String, BTreeSet<String>)>,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    async fn of(client: &Client) -> Self {
        let answer = client.get("/metrics").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(
            answer
                .header("content-type")
                .starts_with("text/plain; version=0.0.4")
        );
        Self::read(&answer.text())
    }

    fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                family = name.to_owned();
                let before = scrape
                    .families
                    .insert(family.clone(), (kind.to_owned(), BTreeSet::new()));
                assert!(before.is_none(), "{name} is told twice");
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.starts_with(&family), "{series} within {family}");
                let labels = &mut scrape.families.get_mut(&family).unwrap().1;
                labels.extend(keys(series));
                let before = scrape
                    .samples
                    .insert(series.to_owned(), value.parse().unwrap());
                assert!(before.is_none(), "{series} is told twice");
            }
        }
        scrape
    }

    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        *self
            .samples
            .get(series)
            .unwrap_or_else(|| panic!("no {series} in {self:#?}"))
    }

    fn mentions(&self, text: &str) -> bool {
        self.samples.keys().any(|series| series.contains(text))
    }
}

/// The keys of a series' labels, but for a bucket's bound. No value in these tests holds a comma.
fn keys(series: &str) -> Vec<String> {
    let Some((_, labels)) = series.split_once('{') else {
        return Vec::new();
    };
    let pairs = labels.trim_end_matches('}').split(',');
    let keys = pairs.map(|pair| pair.split_once('=').unwrap().0.to_owned());
    keys.filter(|key| key != "le").collect()
}

/// A server that has run one job well and badly, with a worker that is still there.
async fn used() -> (Server, Worker) {
    let server = Server::start().await;
    let admin = server.admin();
    let manifest =
        json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}, "retry": {"max_attempts": 1}});
    admin
        .put("/api/v1/namespaces/a/jobs/one", &manifest)
        .await
        .expect(201);
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    for outcome in [wire::Outcome::Succeeded, wire::Outcome::Failed] {
        admin
            .post("/api/v1/namespaces/a/jobs/one/runs", &json!({}))
            .await
            .expect(201);
        let attempt = worker.assignment().await.attempt.unwrap();
        worker
            .finish_with(attempt, |end| {
                end.outcome = outcome.into();
                end.duration_ms = 2000;
                end.cpu_ms = 500;
                end.peak_memory_bytes = 4096;
            })
            .await;
    }
    (server, worker)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_is_counted() {
    let (server, _worker) = used().await;
    server
        .admin()
        .get("/api/v1/runs?limt=1")
        .await
        .problem(400, "unknown_parameter");
    let viewer = server.client("viewer", None).await;
    let ended = |outcome| {
        format!(
            "drumtower_runs_ended_total{{namespace=\"a\",job_name=\"one\",outcome=\"{outcome}\"}}"
        )
    };
    let scrape = eventually("both runs are counted", async || {
        let scrape = Scrape::of(&viewer).await;
        let failed = scrape.samples.get(&ended("failed")).copied();
        (failed == Some(1.0)).then_some(scrape)
    })
    .await;
    let job = "{namespace=\"a\",job_name=\"one\"}";
    assert_eq!(scrape.value(&ended("completed")), 1.0);
    assert_eq!(scrape.value(&ended("cancelled")), 0.0);
    assert_eq!(
        scrape.value(&format!("drumtower_run_duration_seconds_sum{job}")),
        4.0
    );
    assert_eq!(
        scrape.value(&format!("drumtower_run_start_delay_seconds_count{job}")),
        2.0
    );
    assert_eq!(
        scrape.value(&format!("drumtower_run_cpu_seconds_total{job}")),
        1.0
    );
    assert_eq!(
        scrape.value(&format!("drumtower_run_peak_memory_bytes{job}")),
        4096.0
    );
    assert_eq!(
        scrape.value(&format!("drumtower_run_last_failed{job}")),
        1.0
    );
    assert_eq!(
        scrape.value("drumtower_scheduling_delay_seconds_count"),
        2.0
    );
    assert_eq!(scrape.value("drumtower_runs_made_total"), 2.0);
    assert_eq!(scrape.value("drumtower_worker_up{worker=\"w1\"}"), 1.0);
    assert_eq!(scrape.value("drumtower_workers{state=\"online\"}"), 1.0);
    assert_eq!(
        scrape.value("drumtower_refused_requests_total{code=\"unknown_parameter\"}"),
        1.0
    );
    assert_eq!(scrape.value("drumtower_live_runs"), 0.0);
    assert_eq!(scrape.value("drumtower_ready"), 1.0);
    assert_eq!(scrape.value("drumtower_facts_missed_total"), 0.0);
    for positive in [
        "commits_total",
        "store_bytes",
        "disk_free_bytes",
        "tokens",
        "uptime_seconds",
    ] {
        assert!(
            scrape.value(&format!("drumtower_{positive}")) > 0.0,
            "{positive}"
        );
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_sees_its_own_jobs_and_nothing_of_the_server() {
    let (server, _worker) = used().await;
    let (own, stranger) = (
        server.client("viewer", Some("a")).await,
        server.client("viewer", Some("b")).await,
    );
    eventually("the owner sees its job", async || {
        Scrape::of(&own)
            .await
            .mentions("job_name=\"one\"")
            .then_some(())
    })
    .await;
    let seen = Scrape::of(&stranger).await;
    assert!(!seen.mentions("one"), "{seen:?}");
    assert!(!seen.families.contains_key("drumtower_commits_total"));
    assert!(seen.mentions("worker=\"w1\""), "it serves every namespace");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_job_has_no_series_and_its_namesake_has_its_own() {
    let (server, mut worker) = used().await;
    let admin = server.admin();
    let path = "/api/v1/namespaces/a/jobs/one";
    let runs = format!("{path}/runs");
    admin.post(&runs, &json!({})).await.expect(201);
    let late = worker.assignment().await.attempt.unwrap();
    assert_eq!(admin.delete(path).await.status, 204);
    let manifest = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}});
    let count = |namespace, job, outcome| {
        format!(
            "drumtower_runs_ended_total{{namespace=\"{namespace}\",job_name=\"{job}\",outcome=\"{outcome}\"}}"
        )
    };
    worker
        .finish_with(late, |end| end.outcome = wire::Outcome::Failed.into())
        .await;
    let ghost = eventually("the late run is counted", async || {
        let scrape = Scrape::of(&admin).await;
        let failed = scrape.samples.get(&count("_other", "_other", "failed"));
        (failed == Some(&1.0)).then_some(scrape)
    })
    .await;
    assert!(!ghost.mentions("job_name=\"one\""), "{ghost:?}");
    let other = "{namespace=\"_other\",job_name=\"_other\"}";
    assert_eq!(
        ghost.value(&format!("drumtower_run_last_failed{other}")),
        0.0,
        "of nobody in particular"
    );
    admin.put(path, &manifest).await.expect(201);
    admin.post(&runs, &json!({})).await.expect(201);
    let attempt = worker.assignment().await.attempt.unwrap();
    worker
        .finish_with(attempt, |end| end.outcome = wire::Outcome::Succeeded.into())
        .await;
    let scrape = eventually("the namesake is counted", async || {
        let scrape = Scrape::of(&admin).await;
        let completed = scrape.samples.get(&count("a", "one", "completed"));
        (completed == Some(&1.0)).then_some(scrape)
    })
    .await;
    assert_eq!(scrape.value(&count("a", "one", "failed")), 0.0);
    server.stop().await;
}

/// The rows of the tables on the page: name, type, labels.
fn promised() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/metrics.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let plain = |text: &str| text.trim_matches('`').to_owned();
        let labels = cells[2].split(", ").filter(|label| !label.is_empty());
        (
            plain(cells[0]),
            (cells[1].to_owned(), labels.map(plain).collect()),
        )
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_promises_what_the_server_tells() {
    let (server, _worker) = used().await;
    let queue = json!({"kind": "Queue", "concurrency": 1});
    let path = "/api/v1/namespaces/a/queues/mail";
    server.admin().put(path, &queue).await.expect(201);
    server
        .with(None)
        .get("/api/v1/jobs")
        .await
        .problem(401, "unauthenticated");
    let scrape = eventually("the job is counted", async || {
        let scrape = Scrape::of(&server.admin()).await;
        scrape.mentions("job_name=\"one\"").then_some(scrape)
    })
    .await;
    let promised = promised();
    for (name, told) in &scrape.families {
        assert_eq!(
            promised.get(name),
            Some(told),
            "{name} on the page and as told"
        );
    }
    for name in promised.keys() {
        assert!(
            scrape.families.contains_key(name),
            "{name} is promised and not told"
        );
    }
    server.stop().await;
}
