//! The servers and the workers under test, as processes of their own.
//!
//! Usually there is one server. Several share a database; each has a data directory of its own, and workers know them all.
//! A process hosts one worker or many, each with a name, an identity and a connection of its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::Process;
use super::samples;
use super::suspicion::Suspicion;
use super::usage::Usage;
use super::worker::wall_us;
use super::{database, interrupt, open_files};
use crate::client::{Call, Client};
use crate::connect::{Connect, Target};
use crate::failure::{Exit, Failure, Result};

const UP_WITHIN: Duration = Duration::from_secs(60);
/// What each worker adds to that.
const UP_PER_WORKER: Duration = Duration::from_millis(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);
const DOWN_WITHIN: Duration = Duration::from_secs(90);

pub struct Fleet {
    /// As administrators reach the servers.
    targets: Vec<Target>,
    /// As the load does.
    callers: Vec<Target>,
    hosts: Vec<Process>,
    servers: Vec<Process>,
    workers: u32,
    samples: Vec<PathBuf>,
    database: database::Watch,
    suspicion: Suspicion,
    began: Instant,
}

/// Where and with what a fleet works.
pub struct Setup<'a> {
    pub data: &'a Path,
    /// The address of a database, if the state is not kept in `data`.
    pub store: Option<&'a str>,
    /// The directory of samples, journals and what the processes say.
    pub notes: &'a Path,
    pub servers: u32,
    pub workers: u32,
    /// Processes that host them; as many as there are workers at most.
    pub processes: u32,
    /// Runs that one worker takes at once.
    pub capacity: u32,
    /// Whether the workers keep journals for the audit.
    pub journal: bool,
}

impl Setup<'_> {
    /// Starts one process that hosts so many workers. They dial until a server answers.
    pub fn start_host(
        &self,
        number: u32,
        workers: u32,
        servers: &[Target],
    ) -> Result<(Process, PathBuf)> {
        let name = format!("worker-{number}");
        let samples = samples::path(self.notes, &name);
        let host = Process::start(&name, self.notes, |command| {
            command.args(["bench", "__worker", "--name", &name]);
            for server in servers {
                command.args(["--url", &server.url]);
            }
            command.args(["--count", &workers.to_string()]);
            command.args(["--capacity", &self.capacity.to_string()]);
            command.arg("--samples").arg(&samples);
            if self.journal {
                command.arg("--journals").arg(self.notes);
            }
            if let Some(token) = servers.first().and_then(|server| server.token.as_ref()) {
                command.env("DRUMTOWER_TOKEN", token);
            }
        })?;
        Ok((host, samples))
    }

    /// Starts the server with this number. Port 0 takes a free one.
    pub fn start_server(&self, number: u32, port: u16) -> Result<Process> {
        let name = format!("server-{number}");
        Process::start(&name, self.notes, |command| {
            command.arg("serve").arg("--data").arg(self.home(number));
            command.env("DRUMTOWER_STORE", self.store.unwrap_or("sqlite"));
            command.args(["--listen", &format!("127.0.0.1:{port}")]);
        })
    }

    /// The data directory of a server: of the only one, the one that was given.
    fn home(&self, number: u32) -> PathBuf {
        match self.servers {
            0 | 1 => self.data.to_owned(),
            _ => self.data.join(format!("server-{number}")),
        }
    }

    /// How many workers each process hosts; the first ones have one more where it does not come out even.
    fn shares(&self) -> Vec<u32> {
        let processes = self.processes.clamp(1, self.workers.max(1));
        let (each, more) = (self.workers / processes, self.workers % processes);
        (0..processes)
            .map(|number| each + u32::from(number < more))
            .collect()
    }
}

impl Fleet {
    /// Starts everything and returns when every worker is connected.
    pub fn start(setup: &Setup<'_>) -> Result<Self> {
        let mut fleet = Self::start_servers(setup)?;
        fleet.start_workers(setup)?;
        fleet.wait_for_workers()?;
        Ok(fleet)
    }

    /// Starts the servers and returns when they are ready.
    pub fn start_servers(setup: &Setup<'_>) -> Result<Self> {
        let began = Instant::now();
        let mut servers = Vec::new();
        let mut targets = Vec::new();
        for number in 1..=setup.servers.max(1) {
            let mut server = setup.start_server(number, 0)?;
            targets.push(wait_for_server(&mut server, &setup.home(number))?);
            servers.push(server);
        }
        let mut fleet = Self {
            database: database::Watch::of(setup.store),
            suspicion: Suspicion::of(setup.workers),
            targets,
            callers: Vec::new(),
            hosts: Vec::new(),
            servers,
            workers: setup.workers,
            samples: Vec::new(),
            began,
        };
        fleet.callers = fleet.with_token("operator")?;
        Ok(fleet)
    }

    /// Starts the workers, which dial from then on.
    pub fn start_workers(&mut self, setup: &Setup<'_>) -> Result<()> {
        let mut known = self.with_token("worker")?;
        for (number, workers) in (1..).zip(setup.shares()) {
            let (host, samples) = setup.start_host(number, workers, &known)?;
            self.hosts.push(host);
            self.samples.push(samples);
            // The next one dials another server first.
            known.rotate_left(1);
        }
        Ok(())
    }

    /// The servers, with a token that lies in their store: the one that each leaves on its machine dies with its process.
    fn with_token(&self, role: &str) -> Result<Vec<Target>> {
        let order = json!({ "name": format!("bench-{role}-{}", wall_us()), "role": role });
        let made =
            Client::to(self.target().clone()).value(Call::post("/api/v1/tokens").json(order))?;
        let secret = made["secret"]
            .as_str()
            .ok_or_else(|| Failure::failed("the answer to a new token holds none"))?;
        let mut targets = self.targets.clone();
        for target in &mut targets {
            target.token = Some(secret.to_owned());
        }
        Ok(targets)
    }

    fn wait_for_workers(&mut self) -> Result<()> {
        let client = Client::to(self.target().clone());
        let within = UP_WITHIN + UP_PER_WORKER * self.workers;
        let until = Instant::now() + within;
        let mut connected = 0;
        loop {
            self.check()?;
            // A server that thousands dial at once may be too busy to say.
            match client.value(Call::get("/api/v1/overview")) {
                Ok(overview) => connected = overview["workers_total"].as_u64().unwrap_or(0),
                Err(failure) if failure.exit == Exit::Unavailable => {}
                Err(failure) => return Err(failure),
            }
            if connected >= u64::from(self.workers) {
                return Ok(());
            }
            // A look costs the server more with each of them.
            std::thread::sleep(LOOK_EVERY + self.workers * Duration::from_micros(200));
            let words = format!("{connected} of {} workers connect", self.workers);
            super::progress(|| words.clone());
            wait(until, within, &words)?;
        }
    }

    /// The first server, for its administrator.
    pub fn target(&self) -> &Target {
        &self.targets[0]
    }

    /// Every server, for the load.
    pub fn callers(&self) -> &[Target] {
        &self.callers
    }

    /// How many runs were carried out, as far as the workers have written it down.
    pub fn ran(&self) -> u64 {
        self.samples.iter().map(|path| samples::count(path)).sum()
    }

    /// A moment of looking on: fails when a process has ended or someone interrupts.
    pub fn watch(&mut self, line: impl FnOnce(u64) -> String) -> Result<()> {
        self.check()?;
        self.suspicion.look(&self.targets[0]);
        let ran = self.ran();
        super::progress(|| line(ran));
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }

    /// Watches until as many runs were carried out, or the patience is over.
    pub fn drain(&mut self, expected: u64, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        while self.ran() < expected && Instant::now() < until {
            self.watch(|ran| format!("{expected} triggered, {ran} ran"))?;
        }
        Ok(())
    }

    pub fn check(&mut self) -> Result<()> {
        interrupt::check()?;
        self.servers.iter_mut().try_for_each(Process::check)?;
        self.hosts.iter_mut().try_for_each(Process::check)
    }

    /// How the server sees its workers, and saw them at worst while this looked on.
    pub fn workers(&self) -> Result<Value> {
        self.suspicion.value(&self.targets[0])
    }

    pub fn usage(&self) -> Usage {
        let servers: Vec<u32> = self.servers.iter().map(Process::pid).collect();
        let hosts = self.hosts.iter().map(Process::pid);
        let usage = Usage::read(&servers, hosts, self.ran());
        Usage {
            database: self.database.cpu(),
            ..usage
        }
    }

    /// Kills the first server at once, as `kill -9` does.
    pub fn kill_server(&mut self) -> Result<()> {
        self.servers[0].kill()
    }

    /// Starts the first server again where it was, and says after how long it was ready.
    pub fn restart_server(&mut self, setup: &Setup<'_>) -> Result<Duration> {
        let url = &self.targets[0].url;
        let port = url.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.ok_or_else(|| Failure::failed(format!("{url} names no port")))?;
        let began = Instant::now();
        self.servers[0] = setup.start_server(1, port)?;
        let client = Client::to(self.targets[0].clone());
        while client.value(Call::get("/readyz")).is_err() {
            self.check()?;
            wait(
                began + UP_WITHIN,
                UP_WITHIN,
                "the server does not become ready",
            )?;
        }
        let ready = began.elapsed();
        self.targets[0] = wait_for_server(&mut self.servers[0], &setup.home(1))?;
        Ok(ready)
    }

    /// Watches until no run is left, or the patience is over.
    pub fn settle(&mut self, patience: Duration) -> Result<()> {
        let client = Client::to(self.target().clone());
        let until = Instant::now() + patience;
        loop {
            let live = match client.value(Call::get("/api/v1/overview")) {
                Ok(overview) => overview["runs"]["live"].as_u64().unwrap_or(0),
                Err(failure) if failure.exit == Exit::Unavailable => 1,
                Err(failure) => return Err(failure),
            };
            if live == 0 || Instant::now() > until {
                return Ok(());
            }
            self.watch(|ran| format!("{live} runs are left, {ran} ran"))?;
        }
    }

    /// Stops the workers, then the servers, each in good order, and says how long they lived.
    pub fn stop(self) -> Result<Duration> {
        super::progress(|| "stopping".to_owned());
        for host in &self.hosts {
            host.ask_to_end();
        }
        for process in self.hosts.into_iter().chain(self.servers) {
            process.stop(DOWN_WITHIN)?;
        }
        Ok(self.began.elapsed())
    }
}

/// How many processes host so many workers unless told otherwise.
pub fn processes(workers: u32) -> u32 {
    workers.min(8)
}

/// How much each of so many workers takes at once unless told otherwise: few take much, and many need no more together.
pub fn capacity(workers: u32) -> u32 {
    (8000 / workers.max(1)).clamp(16, 4000)
}

/// Room for the open files of a fleet and its load.
pub fn make_room(workers: u32, processes: u32, connections: u32) -> Result<()> {
    open_files::make_room(workers, processes.min(workers), connections)
}

/// Reads where the server listens, and the token it made, from its data directory.
fn wait_for_server(server: &mut Process, data: &Path) -> Result<Target> {
    let until = Instant::now() + UP_WITHIN;
    let connect = Connect {
        url: None,
        token: None,
        data: Some(data.to_owned()),
        ..Connect::default()
    };
    loop {
        interrupt::check()?;
        server.check()?;
        // Until it has announced itself there is no target, or that of the process before it.
        if let Ok(target) = connect.target()
            && target.token.is_some()
            && is_ready(&Client::to(target.clone()))
        {
            return Ok(target);
        }
        wait(until, UP_WITHIN, "the server does not become ready")?;
    }
}

fn is_ready(client: &Client) -> bool {
    ["/readyz", "/api/v1/overview"]
        .iter()
        .all(|path| client.value(Call::get(*path)).is_ok())
}

fn wait(until: Instant, within: Duration, what: &str) -> Result<()> {
    if Instant::now() > until {
        let seconds = within.as_secs();
        return Err(Failure::failed(format!("{what} within {seconds} s")));
    }
    std::thread::sleep(LOOK_EVERY);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_shared_out_evenly() {
        let shares = |workers, processes| {
            let setup = Setup {
                data: Path::new("d"),
                store: None,
                notes: Path::new("n"),
                servers: 1,
                workers,
                processes,
                capacity: 1,
                journal: false,
            };
            setup.shares()
        };
        assert_eq!(shares(1000, 2), [500, 500]);
        assert_eq!(shares(7, 3), [3, 2, 2]);
        assert_eq!(shares(2, 8), [1, 1], "no process without a worker");
    }
}
