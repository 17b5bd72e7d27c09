//! A server, two workers and a load, all of which can die at any moment.

mod load;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use drumtower_audit::journal::{Reader, files, wall_now};
use drumtower_audit::{Journal, Record};
use drumtower_core::model::WallMs;
use drumtower_e2e::{
    Clock, Server, ServerOptions, Site, Worker, WorkerOptions, await_calm, eventually,
};
use ureq::http::Method;

use load::Load;

/// Which process dies, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    AtStart,
    BeforeCommit,
    /// Durable, and nobody was told yet.
    AfterCommit,
    InCheckpoint,
    /// The server, whatever it is doing.
    Server,
    /// The agent with the commands it runs.
    Agent,
    /// The worker with handlers in its own process.
    Handlers,
    /// Nobody: the server's clock is set so many seconds forward or back, and right again later.
    Step(i64),
}

const HELD: &str = "the wall clock went forward by";

/// A server that does not come to its failpoint by then is killed where it is.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Chaos {
    server: Server,
    agent: Worker,
    handlers: Worker,
    load: Load,
    journal: Journal,
    migrations: u64,
    /// The server's clock; workers and callers keep the true time.
    clock: Option<Clock>,
    steps: u64,
}

pub fn journal_dir(site: &Site) -> PathBuf {
    site.dir("journal")
}

impl Chaos {
    /// Brings a store to life over many deaths in its migration, then workers and load.
    pub fn begin(site: &Site) -> Self {
        let dir = journal_dir(site);
        let mut journal = Journal::create(&dir, "killer").expect("a journal");
        let clock = Clock::new(site);
        let (mut server, migrations) = migrate(site, clock.as_ref(), &mut journal);
        server.await_ready();
        let agent = Worker::start(site, &server, "agent");
        let options = WorkerOptions {
            program: Some(env!("CARGO_BIN_EXE_journal-handlers").into()),
            arguments: vec!["handlers".into(), dir.display().to_string()],
            ..Default::default()
        };
        let handlers = Worker::start_with(site, &server, "handlers", options);
        let load = Load::start(&server, &dir);
        Self {
            server,
            agent,
            handlers,
            load,
            journal,
            migrations,
            clock,
            steps: 0,
        }
    }

    pub fn migrations(&self) -> u64 {
        self.migrations
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// One death. The server stays dead until something needs it.
    pub fn die(&mut self, death: Death, random: &mut fastrand::Rng) {
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
            Death::Agent => kill_worker(&mut self.agent, &mut self.journal, random),
            Death::Handlers => kill_worker(&mut self.handlers, &mut self.journal, random),
            Death::Step(seconds) => self.step(seconds, random),
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
        self.steps += 1;
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
        self.start(&ServerOptions {
            failpoint,
            ..Default::default()
        });
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
            self.start(&ServerOptions::default());
        }
    }

    fn start(&mut self, options: &ServerOptions) {
        let restarted = Record::Restarted {
            what: "server".into(),
            wall_ms: wall_now(),
        };
        self.journal
            .write(&restarted)
            .expect("a line in the journal");
        self.server.respawn(options);
    }

    /// Waits until a run that this server made has been started by a worker.
    pub fn await_fire(&mut self) {
        self.live();
        let since = wall_now();
        self.server.await_ready();
        let api = self.server.api();
        eventually("a run is made and started", || {
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
    pub fn calm(mut self, patience: Duration) -> PathBuf {
        self.await_fire();
        let api = self.server.api();
        self.load.end(&api);
        await_calm(&api, patience);
        // Only the death of its worker fails a run here: what a living worker runs survives the death of the server.
        for run in api.runs("state=FAILED") {
            let error = run["error"].as_str().unwrap_or_default();
            assert!(error.starts_with("worker lost"), "{run:#}");
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
            ..Default::default()
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

fn kill_worker(worker: &mut Worker, journal: &mut Journal, random: &mut fastrand::Rng) {
    std::thread::sleep(Duration::from_millis(random.u64(0..300)));
    worker.kill();
    killed(journal, &worker.name, "random");
    worker.respawn();
}

fn killed(journal: &mut Journal, what: &str, point: &str) {
    let killed = Record::Killed {
        what: what.into(),
        point: point.into(),
        wall_ms: wall_now(),
    };
    journal.write(&killed).expect("a line in the journal");
}

/// For each life of the server that got so far: how long after its start a run was started whose time in the schedule
/// had come since; in order of length.
pub fn first_fires(dir: &Path) -> Vec<i64> {
    let (mut restarts, mut kills, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for path in files(dir).expect("journals") {
        for record in Reader::open(&path).expect("a journal") {
            match record.expect("a record") {
                Record::Restarted { wall_ms, .. } => restarts.push(wall_ms),
                Record::Killed { what, wall_ms, .. } if what == "server" => kills.push(wall_ms),
                Record::Started {
                    nominal_ms: Some(nominal),
                    wall_ms,
                    ..
                } => starts.push((nominal, wall_ms)),
                _ => {}
            }
        }
    }
    let first = |restart: &WallMs| {
        let end = kills
            .iter()
            .filter(|kill| *kill > restart)
            .min()
            .copied()
            .unwrap_or(WallMs(i64::MAX));
        let own = starts
            .iter()
            .filter(|(nominal, start)| nominal > restart && *start < end);
        own.map(|(_, start)| start.since(*restart)).min()
    };
    let mut fires: Vec<i64> = restarts.iter().filter_map(first).collect();
    fires.sort_unstable();
    fires
}
