//! A server, two workers and a load, all of which can die at any moment, freeze, or lose each other.

mod figures;
mod load;
mod spells;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use drumtower_audit::journal::wall_now;
use drumtower_audit::{Journal, Record};
use drumtower_e2e::{
    Clock, Proxy, Server, ServerOptions, Site, SmallDisk, Way, Worker, WorkerOptions, await_calm,
    eventually,
};
use serde_json::Value;
use ureq::http::Method;

use load::Load;
use spells::Spell;

pub use figures::first_fires;

/// Short, so that many leases end.
const LEASE: Duration = Duration::from_secs(5);

/// One of the two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The agent with the commands it runs.
    Agent,
    /// The worker with handlers in its own process.
    Handlers,
}

/// Which process dies, and where; or what else goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    AtStart,
    BeforeCommit,
    /// Durable, and nobody was told yet.
    AfterCommit,
    InCheckpoint,
    /// The server, whatever it is doing.
    Server,
    Worker(Who),
    /// Nobody: the server's clock is set so many seconds forward or back, and right again later.
    Step(i64),
    /// The server stands still, mostly for longer than a lease.
    FreezeServer,
    Freeze(Who),
    /// A worker's connections break.
    Cut(Who),
    /// What goes one way between a worker and the server is held up, mostly for longer than a lease.
    Hold(Who, Way),
    /// Everything between a worker and the server takes longer.
    Slow(Who),
    /// There is no room on the server's disk for a while.
    FullDisk,
}

const HELD: &str = "the wall clock went forward by";

/// A server that does not come to its failpoint by then is killed where it is.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Chaos<'a> {
    server: Server,
    /// Where the server keeps everything, if it can be filled.
    disk: Option<&'a SmallDisk>,
    agent: Worker,
    handlers: Worker,
    /// The ways of the two workers to the server.
    ways: [Proxy; 2],
    spells: Vec<Spell>,
    load: Load,
    began: Instant,
    /// How often each thing went wrong that killed nobody.
    troubles: BTreeMap<String, u64>,
    journal: Journal,
    migrations: u64,
    /// The server's clock; workers and callers keep the true time.
    clock: Option<Clock>,
}

pub fn journal_dir(site: &Site) -> PathBuf {
    site.dir("journal")
}

impl<'a> Chaos<'a> {
    /// Brings a store to life over many deaths in its migration, then workers and load.
    pub fn begin(site: &Site, disk: Option<&'a SmallDisk>) -> Self {
        let dir = journal_dir(site);
        let mut journal = Journal::create(&dir, "killer").expect("a journal");
        let clock = Clock::new(site);
        let (mut server, migrations) = migrate(site, clock.as_ref(), &mut journal);
        server.await_ready();
        let ways = [(); 2].map(|()| Proxy::start(server.listen()));
        let options = WorkerOptions::default();
        let agent = Worker::start_by(site, &server, &ways[0].url(), "agent", options);
        let options = WorkerOptions {
            program: Some(env!("CARGO_BIN_EXE_journal-handlers").into()),
            arguments: vec!["handlers".into(), dir.display().to_string()],
            ..Default::default()
        };
        let handlers = Worker::start_by(site, &server, &ways[1].url(), "handlers", options);
        let load = Load::start(&server, &dir);
        Self {
            server,
            disk,
            agent,
            handlers,
            ways,
            spells: Vec::new(),
            load,
            began: Instant::now(),
            troubles: BTreeMap::new(),
            journal,
            migrations,
            clock,
        }
    }

    pub fn migrations(&self) -> u64 {
        self.migrations
    }

    pub fn troubles(&self) -> &BTreeMap<String, u64> {
        &self.troubles
    }

    /// How long the load has gone on.
    pub fn lasted(&self) -> Duration {
        self.began.elapsed()
    }

    /// One death. The server stays dead until something needs it.
    pub fn die(&mut self, death: Death, random: &mut fastrand::Rng) {
        self.end_spells(false);
        match death {
            Death::AtStart => self.at("at_start", random.u64(1..=3)),
            Death::BeforeCommit => self.at("before_commit", random.u64(1..=60)),
            Death::AfterCommit => self.at("after_commit", random.u64(1..=90)),
            Death::InCheckpoint => self.at("in_checkpoint", 1),
            Death::Server => {
                self.live();
                std::thread::sleep(Duration::from_millis(random.u64(0..1000)));
                self.kill();
            }
            Death::Worker(who) => {
                std::thread::sleep(Duration::from_millis(random.u64(0..300)));
                let worker = self.worker(who);
                worker.kill();
                let name = worker.name.clone();
                worker.respawn();
                killed(&mut self.journal, &name, "random");
            }
            Death::Step(seconds) => self.step(seconds, random),
            Death::FreezeServer => self.freeze_server(random),
            Death::Freeze(who) => self.freeze(who, random),
            Death::Cut(who) => self.cut(who),
            Death::Hold(who, way) => self.hold(who, way, random),
            Death::Slow(who) => self.slow(who, random),
            Death::FullDisk => self.fill_disk(random),
        }
    }

    /// Sets the clock of the living server. It is never ahead of the workers' unless the engine holds the step back, so
    /// that nothing may look early: what is ahead is undone before anyone dies. What is behind may outlive a death.
    fn step(&mut self, seconds: i64, random: &mut fastrand::Rng) {
        let Some(clock) = self.clock.clone() else {
            return;
        };
        self.live();
        self.server.await_ready();
        self.trouble("the server's clock was set");
        if seconds > 0 {
            let undone = "the wall clock is back where it was";
            let before = self.words(undone);
            let held = self.words(HELD);
            clock.set_offset(seconds * 1000);
            eventually("the step is held back", || {
                (self.words(HELD) > held).then_some(())
            });
            std::thread::sleep(Duration::from_millis(random.u64(0..300)));
            clock.set_offset(0);
            eventually("the step is undone", || {
                (self.words(undone) > before).then_some(())
            });
        } else {
            clock.set_offset(seconds * 1000);
            std::thread::sleep(Duration::from_millis(random.u64(0..300)));
            if random.bool() {
                self.kill();
            }
            self.live();
            // A clock that is set right by more than a minute is held back for one, but not by a server that starts.
            if seconds < -60 && self.server.process().ended().is_none() {
                std::thread::sleep(Duration::from_millis(random.u64(0..300)));
                self.kill();
            }
            clock.set_offset(0);
            self.live();
        }
    }

    fn words(&mut self, words: &str) -> usize {
        self.server.process().log().matches(words).count()
    }

    /// Starts the server so that it dies at a point, and waits until it has.
    fn at(&mut self, point: &str, passage: u64) {
        if self.server.process().ended().is_none() {
            self.kill();
        }
        let failpoint = Some(format!("{point}:{passage}"));
        self.start(failpoint);
        if self.server.died_within(PATIENCE) {
            killed(&mut self.journal, "server", point);
        } else {
            println!("the server did not come to {point}:{passage} in {PATIENCE:?}");
            self.kill();
        }
    }

    fn kill(&mut self) {
        self.server.kill();
        killed(&mut self.journal, "server", "random");
    }

    /// Starts the server if it is dead.
    fn live(&mut self) {
        if self.server.process().ended().is_some() {
            self.start(None);
        }
    }

    fn worker(&mut self, who: Who) -> &mut Worker {
        match who {
            Who::Agent => &mut self.agent,
            Who::Handlers => &mut self.handlers,
        }
    }

    fn trouble(&mut self, what: impl Into<String>) {
        *self.troubles.entry(what.into()).or_default() += 1;
    }

    fn start(&mut self, failpoint: Option<String>) {
        let restarted = Record::Restarted {
            what: "server".into(),
            wall_ms: wall_now(),
        };
        self.journal
            .write(&restarted)
            .expect("a line in the journal");
        self.server.respawn(&ServerOptions {
            failpoint,
            ..lasting()
        });
    }

    /// Waits until a run that this server made has been started by a worker.
    pub fn await_fire(&mut self) {
        self.live();
        let since = wall_now();
        self.server.await_ready();
        let api = self.server.api();
        eventually("a run is made and started", || {
            self.end_spells(false);
            let runs = api
                .call(Method::GET, "/api/v1/runs?limit=50", None)
                .ok()?
                .body;
            let fresh = |run: &&serde_json::Value| {
                let made = run["created"]
                    .as_str()
                    .and_then(|text| text.parse::<jiff::Timestamp>().ok());
                made.is_some_and(|made| made.as_millisecond() > since.0)
                    && !run["started"].is_null()
            };
            runs["items"].as_array()?.iter().find(fresh).map(|_| ())
        });
    }

    /// Ends the load, lets everything end, stops everything. Returns where the store is.
    pub fn calm(&mut self, patience: Duration) -> PathBuf {
        self.end_spells(true);
        self.await_fire();
        let api = self.server.api();
        self.load.end(&api);
        await_calm(&api, patience);
        // Only the death of its worker fails a run that was to succeed: what a living worker runs survives the death of
        // the server.
        let failed = api.runs("state=FAILED");
        let (own, others): (Vec<_>, Vec<_>) = failed
            .iter()
            .partition(|run| run["job"].as_str().is_some_and(Load::fails));
        assert!(!own.is_empty(), "some failed for good, as they should");
        let with_its_worker = |error: &str| {
            error.starts_with("worker lost") || error.starts_with("stopped by its worker")
        };
        let error = |run: &Value| run["error"].as_str().unwrap_or_default().to_owned();
        for run in own {
            let error = error(run);
            assert!(
                error == "it was to fail" || with_its_worker(&error),
                "{run:#}"
            );
        }
        for run in others {
            assert!(with_its_worker(&error(run)), "{run:#}");
        }
        for worker in [&mut self.agent, &mut self.handlers] {
            let (name, status) = (worker.name.clone(), worker.process().stop());
            assert!(
                status.success(),
                "worker {name} ended with {status}:\n{}",
                worker.process().log()
            );
        }
        let status = self.server.stop();
        assert!(
            status.success(),
            "the server ended with {status}:\n{}",
            self.server.process().log()
        );
        self.server.data().to_owned()
    }
}

/// Starts on an empty directory and dies at each place of the migration in turn, until there is none left to die at.
fn migrate(site: &Site, clock: Option<&Clock>, journal: &mut Journal) -> (Server, u64) {
    let (data, log) = (site.data(), site.path().join("server.log"));
    for passage in 1.. {
        let options = ServerOptions {
            failpoint: Some(format!("in_migration:{passage}")),
            clock: clock.cloned(),
            ..lasting()
        };
        let mut server = Server::launch(&data, &log, &options);
        let since = Instant::now();
        while server.process().ended().is_none()
            && !has_announced(&data)
            && since.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        if server.process().ended().is_none() {
            assert!(
                passage > 1,
                "the server passes its failpoint: build it with `cargo build --package drumtower --features failpoints`"
            );
            return (server, passage - 1);
        }
        assert!(server.process().was_killed(), "{}", server.process().log());
        killed(journal, "server", "in_migration");
    }
    unreachable!("a migration has an end")
}

fn has_announced(data: &Path) -> bool {
    data.join("server.url").exists()
}

/// What every life of the server is started with.
fn lasting() -> ServerOptions {
    ServerOptions {
        env: vec![("DRUMTOWER_LEASE", format!("{}s", LEASE.as_secs()))],
        ..Default::default()
    }
}

fn killed(journal: &mut Journal, what: &str, point: &str) {
    let killed = Record::Killed {
        what: what.into(),
        point: point.into(),
        wall_ms: wall_now(),
    };
    journal.write(&killed).expect("a line in the journal");
}
