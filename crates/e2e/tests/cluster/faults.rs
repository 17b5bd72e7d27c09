//! Three servers, five workers and thousands of jobs, callers who trigger runs at any server, and every fault that a cluster is
//! for. The audit says whether anything was lost, doubled or early, or answered and then not done; how late starts were after
//! each fault is printed and not judged.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use drumtower_audit::journal::{self, wall_now};
use drumtower_audit::{Journal, Journaled, Options, Record};
use drumtower_core::model::WallMs;
use drumtower_e2e::{Api, Caller, Site, Way, Worker, WorkerOptions, await_calm, long, within};
use drumtower_store::postgres;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::world::{CALM, Database, Member, await_shared, jobs_in};

/// Short, so that what was lost is soon given to another.
const LEASE: &str = "5s";
/// Jobs that fire every one to two seconds, and jobs that fire every twenty to thirty-two.
const QUICK: usize = 150;
const SLOW: usize = 2_000;
/// Jobs that are triggered, each by a caller of its own.
const CALLED: [&str; 3] = ["called-a", "called-b", "called-c"];
/// How many jobs one call may pause.
const PAGE: usize = 1_000;

struct World {
    site: Site,
    database: Database,
    members: Vec<Member>,
    journals: PathBuf,
    journal: Journal,
    /// What was done, and from when until when the work did not go on as before.
    faults: Vec<(String, WallMs, WallMs)>,
    stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
    _workers: Vec<Worker>,
}

impl World {
    fn start() -> Self {
        let (site, database) = (Site::new(), Database::start());
        let journals = site.dir("journal");
        let lease = [("DRUMTOWER_LEASE", LEASE.to_owned())];
        let launch = |name| Member::launch(&site, &database, name, "http", &lease);
        let mut members = Vec::from(["a", "b", "c"].map(launch));
        members.iter_mut().for_each(Member::await_ready);
        await_shared(&members.iter().collect::<Vec<_>>());
        let token = members[0].server.token("workers", "worker");
        let worker = |number: usize| {
            let name = format!("worker-{number}");
            let options = WorkerOptions {
                program: Some(env!("CARGO_BIN_EXE_journal-handlers").into()),
                arguments: vec![name.clone(), journals.display().to_string()],
                ..Default::default()
            };
            let url = members[number % 3].to_it.url();
            Worker::spawn(&site, &url, token.clone(), &name, options)
        };
        let workers = (0..5).map(worker).collect();
        let journal = Journal::create(&journals, "faults").expect("a journal");
        put_jobs(&members);
        let stop = Arc::new(AtomicBool::new(false));
        let callers = callers(&members, &journals, &stop);
        Self {
            site,
            database,
            members,
            journals,
            journal,
            faults: Vec::new(),
            stop,
            callers,
            _workers: workers,
        }
    }

    /// Those that are there but for one.
    fn others(&self, but: Option<usize>) -> Vec<&Member> {
        let numbered = self.members.iter().enumerate();
        let others = numbered.filter(|(number, _)| Some(*number) != but);
        others.map(|(_, member)| member).collect()
    }

    /// Waits until everybody has a share, or everybody but one.
    fn await_shared(&self, but: Option<usize>) {
        await_shared(&self.others(but));
    }

    /// Does something bad, waits until work goes on, and remembers when that was. What is done says when all that was lost
    /// was owned again.
    fn fault(&mut self, what: &str, mut act: impl FnMut(&mut Self, &Instant) -> Duration) {
        let (began, since) = (wall_now(), Instant::now());
        let killed = Record::Killed {
            what: "server".into(),
            point: what.into(),
            wall_ms: began,
        };
        self.journal.write(&killed).expect("a line in the journal");
        let owned = act(self, &since);
        self.await_shared(None);
        self.await_fire();
        let words = format!(
            "{what}: owned again after {owned:.1?}, shared by all after {:.1?}",
            since.elapsed()
        );
        self.faults.push((words, began, wall_now()));
    }

    /// Waits until a run that was made after now has started.
    fn await_fire(&self) {
        let (since, api) = (wall_now(), self.members[0].server.api());
        within(CALM, "a run starts", || {
            let answer = api.call(Method::GET, "/api/v1/runs?limit=100", None).ok()?;
            let runs = answer.body["items"].as_array()?.clone();
            let fresh = |run: &&Value| {
                let created = run["created"].as_str();
                let created = created.and_then(|at| at.parse::<jiff::Timestamp>().ok());
                created.is_some_and(|at| at.as_millisecond() > since.0) && !run["started"].is_null()
            };
            runs.iter().find(fresh).map(|_| ())
        });
    }

    /// Ends the load, waits until everything has ended, and checks what happened.
    fn check(mut self) {
        let api = self.members[0].server.api();
        self.stop.store(true, Ordering::Relaxed);
        for caller in self.callers.drain(..) {
            caller.join().expect("a caller that was answered");
        }
        pause_all(&api);
        await_calm(&api, CALM);
        for member in &mut self.members {
            let status = member.server.stop();
            let log = member.server.process().log();
            assert!(status.success(), "{status}:\n{log}");
        }
        let files = journal::files(&self.journals).expect("journals");
        let starts = starts(&files);
        for (what, began, over) in &self.faults {
            let during = starts
                .iter()
                .filter(|(due, _)| (began.0..=over.0).contains(due));
            let latest = during.map(|(due, at)| at - due).max().unwrap_or_default();
            println!("{what}; the latest start {latest} ms after its due time");
        }
        let target = self.database.url.parse().expect("an address");
        let (_, reader) = postgres::open(&target, postgres::Options::default()).expect("a store");
        let options = Options {
            grace_ms: 5_000,
            settled: true,
            journaled: Journaled::All,
            ..Options::default()
        };
        let report = drumtower_audit::check(&files, &reader, &options).expect("a report");
        println!("{} runs, in {}", report.checked, self.site.path().display());
        assert!(report.is_clean(), "{:#?}", report.violations);
        assert_eq!((report.lost, report.duplicated, report.early), (0, 0, 0));
        assert!(report.counts.started > 100, "{:?}", report.counts);
    }
}

/// Many at a time, through every server.
fn put_jobs(members: &[Member]) {
    let quick =
        (0..QUICK).map(|number| scheduled(number, 1_000 + 1_000 * (number % 11) as u64 / 10));
    let slow = (QUICK..QUICK + SLOW).map(|number| scheduled(number, 20_000 + number as u64 * 6));
    let called = CALLED.iter().map(|name| job(name, json!([])));
    let items: Vec<Value> = quick.chain(slow).chain(called).collect();
    std::thread::scope(|scope| {
        for (number, part) in items.chunks(items.len() / 12 + 1).enumerate() {
            let api = members[number % members.len()].server.api();
            scope.spawn(move || part.iter().for_each(|item| drop(api.put_job(item))));
        }
    });
}

fn scheduled(number: usize, every_ms: u64) -> Value {
    job(
        &format!("job-{number}"),
        json!([{"every": format!("{every_ms}ms")}]),
    )
}

fn job(name: &str, schedule: Value) -> Value {
    json!({
        "kind": "Job", "name": name, "overlap": "allow", "params": {"ms": 20}, "labels": {"of": "test"},
        "task": {"handler": {"name": "journal"}}, "schedule": schedule,
        "misfire": {"policy": "all", "max": 1000},
    })
}

fn pause_all(api: &Api) {
    let mut cursor = Value::Null;
    for _ in 0..=(QUICK + SLOW + CALLED.len()) / PAGE {
        let body = json!({"labels": {"of": "test"}, "cursor": cursor});
        let paused = api.post("/api/v1/namespaces/default/jobs:pause", &body);
        let items = paused["items"].as_array().expect("items");
        let failed: Vec<&Value> = items.iter().filter(|it| it["result"] == "failed").collect();
        assert!(failed.is_empty(), "{failed:?}");
        cursor = paused["next"].clone();
    }
    assert!(cursor.is_null(), "more jobs than were put");
}

/// Each asks all servers in turn, whatever has become of them.
fn callers(members: &[Member], journals: &Path, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let token = members[0].server.token("callers", "operator");
    let caller = |(number, job)| {
        let api = |member: &Member| Api::new(member.server.url(), Some(token.clone()));
        let journal = Journal::create(journals, "caller").expect("a journal");
        let caller = Caller::new(members.iter().map(api).collect(), journal, job);
        let stop = Arc::clone(stop);
        std::thread::spawn(move || caller.ask(number, &stop))
    };
    CALLED.into_iter().enumerate().map(caller).collect()
}

/// When each first attempt was due and when it began.
fn starts(files: &[PathBuf]) -> Vec<(i64, i64)> {
    let mut starts = Vec::new();
    for file in files {
        for record in journal::Reader::open(file).expect("a journal") {
            if let Ok(Record::Started {
                attempt: 1,
                due_ms: Some(due),
                wall_ms,
                ..
            }) = record
            {
                starts.push((due.0, wall_ms.0));
            }
        }
    }
    starts
}

#[test]
fn through_every_fault_nothing_is_lost_doubled_or_early() {
    let mut world = World::start();
    world.await_fire();
    let rounds = if long() { 3 } else { 1 };
    for round in 0..rounds {
        // Each time another one.
        let victim = |number: usize| (round + number) % 3;
        kill(&mut world, victim(0));
        freeze(&mut world, victim(1));
        cut_from_database(&mut world, victim(2));
        cut_from_others(&mut world, victim(0));
        world.fault(
            "the database crashed and was started again",
            |world, since| {
                let cluster = &mut world.database.cluster;
                cluster.crash_and_restart().expect("it is up");
                world.await_shared(None);
                since.elapsed()
            },
        );
        restart_one_after_another(&mut world);
    }
    world.check();
}

fn kill(world: &mut World, victim: usize) {
    world.fault("a server was killed", |world, since| {
        world.members[victim].server.kill();
        world.await_shared(Some(victim));
        let owned = since.elapsed();
        world.members[victim].respawn();
        world.members[victim].await_ready();
        owned
    });
}

fn freeze(world: &mut World, victim: usize) {
    world.fault("a server was frozen beyond its session", |world, since| {
        world.members[victim].server.process().signal(libc::SIGSTOP);
        world.await_shared(Some(victim));
        let owned = since.elapsed();
        world.members[victim].server.process().signal(libc::SIGCONT);
        owned
    });
}

fn cut_from_database(world: &mut World, victim: usize) {
    world.fault("a server was cut from the database", |world, since| {
        let way = &world.members[victim].to_database;
        way.hold(Way::Up, true);
        way.hold(Way::Down, true);
        world.await_shared(Some(victim));
        let owned = since.elapsed();
        let way = &world.members[victim].to_database;
        way.hold(Way::Up, false);
        way.hold(Way::Down, false);
        way.cut();
        owned
    });
}

/// Its session goes on, so nobody takes over: its workers and callers wait.
fn cut_from_others(world: &mut World, victim: usize) {
    let mine = await_shared(&world.others(None)).of(&world.members[victim]);
    let asked: Vec<Api> = world
        .others(Some(victim))
        .iter()
        .map(|it| it.server.api())
        .collect();
    world.fault(
        "a server was cut from workers and servers",
        |world, since| {
            let way = &world.members[victim].to_it;
            way.hold(Way::Up, true);
            way.hold(Way::Down, true);
            // Long enough for a caller to be refused, which is longer than a lease.
            let [job] = jobs_in(&mine);
            let path = format!("/api/v1/namespaces/default/jobs/{job}/runs");
            // Under a key it is sent again and again, for it can do no harm twice.
            let key = [("idempotency-key", "cut-off")];
            let refused = asked[0].call_with(Method::POST, &path, Some(&json!({})), &key);
            // Whether anything of it got through is not known where it was sent before the silence was noticed.
            let refused = refused.expect("an answer");
            let codes = ["not_ready", "outcome_unknown"];
            assert!(codes.contains(&refused.code()), "{refused:?}");
            assert_eq!(world.members[victim].status().as_deref(), Some("ready"));
            let way = &world.members[victim].to_it;
            way.hold(Way::Up, false);
            way.hold(Way::Down, false);
            way.cut();
            since.elapsed()
        },
    );
}

fn restart_one_after_another(world: &mut World) {
    for number in 0..3 {
        let what = format!("server {number} was restarted in good order");
        world.fault(&what, |world, since| {
            let status = world.members[number].server.stop();
            assert!(status.success(), "{status}");
            world.await_shared(Some(number));
            let owned = since.elapsed();
            world.members[number].respawn();
            world.members[number].await_ready();
            owned
        });
    }
}
