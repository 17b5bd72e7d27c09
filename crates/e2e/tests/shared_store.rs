//! Servers that keep their state in PostgreSQL: alone, and two of them on one database.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use drumtower_audit::journal::wall_now;
use drumtower_audit::{Journal, Journaled, Options, Record, Report};
use drumtower_e2e::{
    Api, Clock, Server, ServerOptions, Site, Worker, WorkerOptions, await_calm, eventually, shell,
    within,
};
use drumtower_store::postgres;
use drumtower_testpg::Cluster;
use serde_json::{Value, json};
use ureq::http::Method;

/// Short, so that what a dead server's worker ran is soon given to another.
const LEASE: &str = "5s";
/// A lease with its margin, and time for a busy machine.
const CALM: Duration = Duration::from_secs(120);

struct Database {
    url: String,
}

impl Database {
    fn new() -> Self {
        let url = Cluster::shared().database().expect("a database");
        Self { url }
    }

    fn options(&self) -> ServerOptions {
        ServerOptions {
            env: vec![
                ("DRUMTOWER_STORE", self.url.clone()),
                ("DRUMTOWER_LEASE", LEASE.to_owned()),
            ],
            ..Default::default()
        }
    }

    fn launch(&self, site: &Site, name: &str) -> Server {
        let log = site.path().join(format!("{name}.log"));
        Server::launch(&site.dir(name), &log, &self.options())
    }

    fn audit(&self, journals: &Path) -> Report {
        let files = drumtower_audit::journal::files(journals).expect("journals");
        let target = self.url.parse().expect("an address");
        let (_, reader) = postgres::open(&target, postgres::Options::default()).expect("a store");
        let options = Options {
            grace_ms: 5_000,
            settled: true,
            journaled: Journaled::All,
            ..Options::default()
        };
        drumtower_audit::check(&files, &reader, &options).expect("readable journals and store")
    }
}

/// What `/readyz` says, of a server that has announced itself.
fn status(server: &mut Server) -> Option<String> {
    if let Some(ended) = server.process().ended() {
        panic!("the server ended with {ended}:\n{}", server.process().log());
    }
    if !server.data().join("server.url").exists() {
        return None;
    }
    let answer = Api::new(server.url(), None).call(Method::GET, "/readyz", None);
    answer.ok()?.body["status"].as_str().map(str::to_owned)
}

/// Waits until so many servers own everything together, as one of them sees it.
#[track_caller]
fn await_active(server: &Server, count: usize) {
    within(CALM, &format!("{count} servers own everything"), || {
        let answer = server.api().call(Method::GET, "/api/v1/cluster", None);
        let body = answer.ok()?.body;
        let servers = body["servers"].as_array()?;
        let active = servers.iter().filter(|it| it["state"] == "active").count();
        (body["segments"]["unowned"] == 0 && active == count).then_some(())
    });
}

#[track_caller]
fn await_status(server: &mut Server, wanted: &str) {
    eventually(&format!("the server is {wanted}"), || {
        (status(server)? == wanted).then_some(())
    });
}

fn handlers(site: &Site, server: &Server, token: &str, name: &str, journals: &Path) -> Worker {
    let options = WorkerOptions {
        program: Some(env!("CARGO_BIN_EXE_journal-handlers").into()),
        arguments: vec![name.into(), journals.display().to_string()],
        ..Default::default()
    };
    Worker::spawn(site, &server.url(), token.to_owned(), name, options)
}

fn often(name: &str, interval: &str) -> Value {
    json!({
        "kind": "Job", "name": name, "overlap": "allow", "params": {"ms": 20},
        "task": {"handler": {"name": "journal"}}, "schedule": [{"every": interval}],
        "misfire": {"policy": "all", "max": 1000},
    })
}

/// Waits until a run that was made after now has started.
#[track_caller]
fn await_fire(api: &Api) {
    let since = wall_now();
    within(CALM, "a run starts", || {
        let answer = api.call(Method::GET, "/api/v1/runs?limit=50", None).ok()?;
        let runs = answer.body["items"].as_array()?.clone();
        let fresh = |run: &&Value| {
            let created = run["created"]
                .as_str()
                .and_then(|at| at.parse::<jiff::Timestamp>().ok());
            created.is_some_and(|at| at.as_millisecond() > since.0) && !run["started"].is_null()
        };
        runs.iter().find(fresh).map(|_| ())
    });
}

#[test]
fn a_server_on_postgresql_outlives_stops_and_deaths() {
    let (site, database) = (Site::new(), Database::new());
    let mut server = database.launch(&site, "alone");
    await_status(&mut server, "ready");
    let _worker = Worker::start(&site, &server, "agent");
    let api = server.api();
    api.put_job(&shell("greet", "echo hello"));
    let first = api.trigger("greet", &json!({}));
    assert_eq!(api.ended(&first)["state"], "COMPLETED");
    assert_eq!(server.stop().code(), Some(0), "{}", server.process().log());
    server.respawn(&database.options());
    await_status(&mut server, "ready");
    let second = server.api().trigger("greet", &json!({}));
    server.api().ended(&second);
    server.kill();
    server.respawn(&database.options());
    await_status(&mut server, "ready");
    let api = server.api();
    assert_eq!(api.output(&first), "hello\n");
    assert_eq!(api.run(&second)["state"], "COMPLETED");
    let third = api.trigger("greet", &json!({}));
    assert_eq!(api.ended(&third)["state"], "COMPLETED");
    let log = std::fs::read_to_string(site.path().join("alone.log")).expect("a log");
    assert!(
        log.contains("store=postgres://drumtower@127.0.0.1"),
        "{log}"
    );
    assert!(
        !log.contains("let%20me%20in") && !log.contains("let me in"),
        "{log}"
    );
    let refused = api.call(Method::POST, "/api/v1/backups", Some(&json!({})));
    let refused = refused.expect("an answer");
    assert!(
        refused.body["detail"]
            .as_str()
            .is_some_and(|it| it.contains("pg_dump"))
    );
}

struct Two {
    site: Site,
    database: Database,
    journals: PathBuf,
    journal: Journal,
    a: Server,
    b: Server,
    _workers: [Worker; 2],
}

impl Two {
    /// Two servers, a worker at each, and jobs that fire often.
    fn start() -> Self {
        let (site, database) = (Site::new(), Database::new());
        let journals = site.dir("journal");
        let mut a = database.launch(&site, "a");
        await_status(&mut a, "ready");
        let token = a.token("workers", "worker");
        let mut b = database.launch(&site, "b");
        await_status(&mut b, "ready");
        await_active(&a, 2);
        let workers = [
            handlers(&site, &a, &token, "at-a", &journals),
            handlers(&site, &b, &token, "at-b", &journals),
        ];
        a.api().worker("at-a");
        for (name, interval) in [("fast", "50ms"), ("steady", "200ms"), ("slow", "1s")] {
            a.api().put_job(&often(name, interval));
        }
        await_fire(&a.api());
        let journal = Journal::create(&journals, "killer").expect("a journal");
        Self {
            site,
            database,
            journals,
            journal,
            a,
            b,
            _workers: workers,
        }
    }

    fn note(&mut self, what: &str, point: &str) {
        let killed = Record::Killed {
            what: what.into(),
            point: point.into(),
            wall_ms: wall_now(),
        };
        self.journal.write(&killed).expect("a line in the journal");
    }

    /// Ends the load at `owner`, waits until everything has ended, and checks what happened.
    fn check(mut self, owner: Api) {
        for job in ["fast", "steady", "slow"] {
            let path = format!("/api/v1/namespaces/default/jobs/{job}/pause");
            owner.send(Method::POST, &path, None);
        }
        await_calm(&owner, CALM);
        for server in [&mut self.a, &mut self.b] {
            let status = server.stop();
            assert!(status.success(), "{status}:\n{}", server.process().log());
        }
        let report = self.database.audit(&self.journals);
        println!(
            "{} runs, the latest start {} ms after its due time, in {}",
            report.checked,
            report.latest_start_ms.unwrap_or_default(),
            self.site.path().display()
        );
        assert!(report.is_clean(), "{:#?}", report.violations);
        assert_eq!((report.lost, report.duplicated, report.early), (0, 0, 0));
        assert!(report.counts.started > 10, "{:?}", report.counts);
    }
}

#[test]
fn a_server_that_is_killed_is_succeeded_and_nothing_is_lost_or_doubled() {
    let mut two = Two::start();
    for _ in 0..2 {
        two.a.kill();
        let killed = Instant::now();
        two.note("server", "random");
        await_active(&two.b, 1);
        println!("taken over after {:.1?}", killed.elapsed());
        await_fire(&two.b.api());
        println!("first start after {:.1?}", killed.elapsed());
        let options = two.database.options();
        two.a.respawn(&options);
        await_active(&two.b, 2);
        std::mem::swap(&mut two.a, &mut two.b);
    }
    let owner = two.a.api();
    two.check(owner);
}

#[test]
fn a_server_that_was_frozen_finds_itself_deposed_and_nothing_is_lost_or_doubled() {
    let mut two = Two::start();
    for _ in 0..2 {
        two.a.process().signal(libc::SIGSTOP);
        let frozen = Instant::now();
        two.note("server", "frozen");
        await_active(&two.b, 1);
        println!("taken over after {:.1?}", frozen.elapsed());
        await_fire(&two.b.api());
        two.a.process().signal(libc::SIGCONT);
        await_active(&two.b, 2);
        std::mem::swap(&mut two.a, &mut two.b);
    }
    let owner = two.a.api();
    two.check(owner);
}

#[test]
fn a_server_that_stops_in_good_order_is_succeeded_at_once() {
    let mut two = Two::start();
    let stopped = two.a.stop();
    assert!(stopped.success(), "{stopped}:\n{}", two.a.process().log());
    let since = Instant::now();
    await_active(&two.b, 1);
    println!("taken over after {:.1?}", since.elapsed());
    await_fire(&two.b.api());
    let options = two.database.options();
    two.a.respawn(&options);
    await_active(&two.b, 2);
    let owner = two.b.api();
    two.check(owner);
}

/// What a newer program does to a server that is left running beside it.
#[test]
fn a_server_under_which_the_database_became_too_new_gives_up_and_ends() {
    let (site, database) = (Site::new(), Database::new());
    let mut server = database.launch(&site, "a");
    await_status(&mut server, "ready");
    let name = database.url.rsplit('/').next().expect("a name");
    let newer = "UPDATE drumtower.meta SET oldest_server = 99";
    let set = Cluster::shared().sql(name, newer);
    set.expect("a newer program was here");
    let status = server.process().wait_for(CALM);
    let log = server.process().log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("may not write to it any more"), "{log}");
    let owned = "SELECT count(*) FROM drumtower.segment WHERE owner <> 0";
    let owned = Cluster::shared().sql(name, owned).expect("it is counted");
    assert_eq!(owned, "0", "it has given everything up");
}

#[test]
fn a_server_whose_clock_is_far_from_the_databases_owns_nothing_until_it_is_right() {
    let (site, database) = (Site::new(), Database::new());
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    let options = ServerOptions {
        clock: Some(clock.clone()),
        ..database.options()
    };
    let log = site.path().join("wrong.log");
    let mut wrong = Server::launch(&site.dir("wrong"), &log, &options);
    await_status(&mut wrong, "ready");
    let mut right = database.launch(&site, "right");
    await_status(&mut right, "ready");
    await_active(&right, 2);
    clock.set_offset(120_000);
    let impaired = |server: &Server| {
        let api = Api::new(server.url(), None);
        let answer = api.call(Method::GET, "/readyz", None).ok()?;
        let told = answer.body["detail"].as_str()?.to_owned();
        told.contains("ahead of the database's").then_some(told)
    };
    let told = within(CALM, "it says why it does nothing", || impaired(&wrong));
    assert!(told.contains("120.") || told.contains("119."), "{told}");
    await_active(&right, 1);
    clock.set_offset(0);
    await_status(&mut wrong, "ready");
    await_active(&right, 2);
}
