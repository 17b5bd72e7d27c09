//! A server whose wall clock is set while it runs: nothing is lost, nothing happens twice, nothing happens early.
//!
//! The worker keeps the true time and writes down when things happened. Steps are a second, an hour and a day, forward
//! and back. A step forward of more than a minute is held back for a minute, so each case is a server of its own and all
//! of them go at once.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use drumtower_audit::{Journaled, Options};
use drumtower_core::model::WallMs;
use drumtower_e2e::{
    Api, Books, Cli, Clock, Server, Site, Worker, WorkerOptions, eventually, shell, within,
};
use serde_json::{Value, json};

const SECOND: i64 = 1000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// A minute in which a step is held back, and time for a busy machine.
const HELD: Duration = Duration::from_secs(120);
const CALM: Duration = Duration::from_secs(60);
/// What the jobs go by: each a time a second.
const JOBS: [&str; 3] = ["each", "lone", "spread"];

struct World {
    server: Server,
    worker: Worker,
    api: Api,
    clock: Clock,
    site: Arc<Site>,
}

/// A server by a clock of its own, a worker by the true one, and jobs that fire every second.
fn world() -> Option<World> {
    let site = Site::new();
    let clock = Clock::new(&site)?;
    let server = Server::start_by(&site, &clock);
    let journal = site.dir("journal").display().to_string();
    let options = WorkerOptions {
        program: Some(env!("CARGO_BIN_EXE_journal-handlers").into()),
        arguments: vec!["handlers".into(), journal],
        ..Default::default()
    };
    let worker = Worker::start_with(&site, &server, "handlers", options);
    let api = server.api();
    let world = World {
        server,
        worker,
        api,
        clock,
        site: Arc::new(site),
    };
    world.job(
        "each",
        json!({"schedule": [{"cron": "* * * * * *"}], "overlap": "allow", "misfire": {"policy": "all"}}),
    );
    world.job(
        "lone",
        json!({"schedule": [{"every": "1s"}], "overlap": "skip", "params": {"ms": 300}}),
    );
    world.job(
        "spread",
        json!({"schedule": [{"every": "1s"}], "overlap": "allow", "jitter": "700ms"}),
    );
    world.await_fires();
    Some(world)
}

impl World {
    fn job(&self, name: &str, keys: Value) {
        let task = json!({"handler": {"name": "journal"}});
        let mut job = json!({"kind": "Job", "name": name, "task": task});
        let keys = keys.as_object().expect("keys").clone();
        job.as_object_mut().expect("a job").extend(keys);
        self.api.put_job(&job);
    }

    fn fires(&self, job: &str) -> u64 {
        self.api.job(job)["fires"].as_u64().expect("a number")
    }

    /// Waits until every job has fired three times more.
    fn await_fires(&self) {
        for job in JOBS {
            let wanted = self.fires(job) + 3;
            eventually(&format!("{job} fires three times more"), || {
                (self.fires(job) >= wanted).then_some(())
            });
        }
    }

    /// Waits until the server's log says something for the `count`th time.
    fn await_word(&mut self, patience: Duration, word: &str, count: usize) {
        let what = format!("the server says `{word}`");
        within(patience, &what, || {
            let log = self.server.process().log();
            (log.matches(word).count() >= count).then_some(())
        });
    }

    /// Sets the clock forward and sees that the step is held back: jobs go on by the time that was.
    fn forward_held(&mut self, ms: i64, count: usize) {
        let was = self.clock.offset_ms();
        self.clock.step(ms);
        self.await_word(CALM, "the wall clock went forward by", count);
        if was < 0 {
            return;
        }
        self.await_fires();
        let steady = jiff::Timestamp::now().as_millisecond() + was;
        for job in JOBS {
            for run in self.api.runs(&format!("job={job}")) {
                assert!(
                    ms_of(&run["nominal"]) <= steady,
                    "it fired in the future: {run}"
                );
                assert!(
                    ms_of(&run["due"]) <= ms_of(&run["created"]),
                    "it is early: {run}"
                );
            }
        }
    }

    /// Jobs that are ahead of the clock wait for it; one that is made now, and what people ask for, does not.
    fn waits(&self) {
        let before = JOBS.map(|job| self.fires(job));
        self.job("fresh", json!({"schedule": [{"every": "1s"}]}));
        eventually("a job made now fires", || {
            (self.fires("fresh") >= 3).then_some(())
        });
        let run = self.api.trigger("spread", &json!({}));
        assert_eq!(self.api.ended(&run)["state"], "COMPLETED");
        assert_eq!(JOBS.map(|job| self.fires(job)), before);
    }

    /// Waits until the worker is listed as so far off the server.
    fn await_skew(&mut self, expected: i64) {
        let home = self.site.dir("home");
        let token = self.server.token("watcher", "viewer");
        let cli = Cli::new(home)
            .env("DRUMTOWER_URL", self.server.url())
            .env("DRUMTOWER_TOKEN", token);
        eventually("the skew is listed", || {
            let workers = cli.json(&["worker", "list"]);
            let workers = workers["items"].as_array().or(workers.as_array())?;
            let skew = workers.first()?["skew_ms"].as_i64()?;
            ((skew - expected).abs() < 10 * SECOND).then_some(())
        });
        self.await_word(CALM, "the clock of worker `handlers` is", 1);
    }

    /// Stops everything and holds what the worker saw against the store. Jobs go on firing to the end, so that no time is
    /// excused. The server's clock was never further ahead of the worker's than `bound_ms`.
    fn end(mut self, bound_ms: i64) -> Books {
        let status = self.worker.process().stop();
        assert!(status.success(), "{}", self.worker.process().log());
        let status = self.server.stop();
        assert!(status.success(), "{}", self.server.process().log());
        let now = self.clock.now_ms();
        let books = Books::open(self.server.data());
        let options = Options {
            now: Some(WallMs(now)),
            grace_ms: 5 * SECOND,
            clock_bound_ms: bound_ms,
            journaled: Journaled::All,
            ..Options::default()
        };
        let report = books.audit(Some(&journal(&self.site)), &options);
        assert!(report.is_clean(), "{:#?}", report.violations);
        assert_eq!((report.lost, report.duplicated, report.early), (0, 0, 0));
        assert!(report.counts.started >= 12, "{:?}", report.counts);
        books
    }
}

fn journal(site: &Site) -> std::path::PathBuf {
    Path::new(site.path()).join("journal")
}

fn ms_of(time: &Value) -> i64 {
    let time: jiff::Timestamp = time.as_str().expect("a time").parse().expect("a time");
    time.as_millisecond()
}

/// A second is believed at once, in either direction.
fn a_second() {
    let Some(world) = world() else { return };
    for step in [1, -1, -1, 1] {
        world.clock.step(step * SECOND);
        world.await_fires();
    }
    world.end(SECOND);
}

/// A step that stands for a minute is believed, and jobs go on from there. When it is undone after that they wait.
fn forward_and_back(ms: i64) {
    let Some(mut world) = world() else { return };
    world.forward_held(ms, 1);
    world.await_word(HELD, "is believed: it has stood for a minute", 1);
    world.await_fires();
    world.await_skew(-ms);
    world.clock.step(-ms);
    world.await_word(CALM, "the wall clock went back by", 1);
    world.waits();
    let books = world.end(ms);
    let skipped: u64 = books.unfired("each").iter().map(|range| range.count).sum();
    let expected = (ms / SECOND).unsigned_abs().min(10_000);
    assert!(
        skipped + 100 + 90 >= expected && skipped < expected + 10,
        "all but the hundred newest times are recorded: {skipped} of {expected}"
    );
    let lone = books.ranges("lone");
    let missed = lone
        .iter()
        .filter(|(reason, .., count)| reason == "misfire" && *count > 1000);
    assert_eq!(
        missed.count(),
        1,
        "`latest` leaves one range for all that was missed: {lone:?}"
    );
}

/// A step back is believed at once: jobs wait. When the clock is set right again they go on, and times that had fired do
/// not fire again.
fn back_and_forward(ms: i64) {
    let Some(mut world) = world() else { return };
    world.clock.step(-ms);
    world.await_word(CALM, "the wall clock went back by", 1);
    world.await_skew(ms);
    world.waits();
    world.forward_held(ms, 1);
    world.await_word(HELD, "is believed: it has stood for a minute", 1);
    world.await_fires();
    world.end(0);
}

/// A step that is undone within the minute is as if it had never been.
fn undone() {
    let Some(mut world) = world() else { return };
    for (count, step) in [HOUR, DAY].into_iter().enumerate() {
        world.forward_held(step, count + 1);
        world.clock.step(-step);
        world.await_word(CALM, "the wall clock is back where it was", count + 1);
        world.await_fires();
    }
    let log = world.server.process().log();
    assert!(!log.contains("is believed"), "{log}");
    let books = world.end(0);
    assert!(
        books.ranges("each").is_empty(),
        "{:?}",
        books.ranges("each")
    );
    let times: Vec<i64> = books
        .fires("each")
        .iter()
        .filter_map(|run| Some(run.nominal?.0))
        .collect();
    assert!(
        times.windows(2).all(|pair| pair[1] - pair[0] == SECOND),
        "{times:?}"
    );
}

/// A server that has nothing to do looks at its clock all the same: a step brings the next time near.
fn noticed_while_idle() {
    let site = Site::new();
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    let server = Server::start_by(&site, &clock);
    let api = server.api();
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(55);
    let mut job = shell("soon", "true");
    job["schedule"] = json!([{"at": format!("{soon:.3}")}]);
    api.put_job(&job);
    clock.step(58 * SECOND);
    within(Duration::from_secs(15), "the job fires", || {
        (!api.runs("job=soon").is_empty()).then_some(())
    });
}

#[test]
fn a_step_of_the_clock_loses_doubles_and_hastens_nothing() {
    let cases: [(&str, fn()); 7] = [
        ("a second", a_second),
        ("an hour forward", || forward_and_back(HOUR)),
        ("a day forward", || forward_and_back(DAY)),
        ("an hour back", || back_and_forward(HOUR)),
        ("a day back", || back_and_forward(DAY)),
        ("undone", undone),
        ("noticed while idle", noticed_while_idle),
    ];
    let cases = cases.map(|(name, case)| {
        let thread = thread::Builder::new().name(name.to_owned());
        (name, thread.spawn(case).expect("a thread"))
    });
    let failed: Vec<&str> = cases
        .into_iter()
        .filter_map(|(name, case)| case.join().is_err().then_some(name))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
