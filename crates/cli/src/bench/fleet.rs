//! The server and the workers under test, as processes of their own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::interrupt;
use super::process::Process;
use super::samples;
use super::usage::Usage;
use crate::client::{Call, Client};
use crate::connect::{Connect, Target};
use crate::failure::{Failure, Result};

const UP_WITHIN: Duration = Duration::from_secs(60);
const DOWN_WITHIN: Duration = Duration::from_secs(90);

pub struct Fleet {
    target: Target,
    workers: Vec<Process>,
    server: Process,
    samples: Vec<PathBuf>,
    began: Instant,
}

/// Where and with what a fleet works.
pub struct Setup<'a> {
    pub data: &'a Path,
    /// The address of a database, if the state is not kept in `data`.
    pub store: Option<&'a str>,
    /// The directory of samples, journals and what the processes say.
    pub notes: &'a Path,
    pub workers: u32,
    /// Runs that one worker takes at once.
    pub capacity: u32,
    /// Whether the workers keep journals for the audit.
    pub journal: bool,
}

impl Setup<'_> {
    /// Starts one worker. It dials until the server answers.
    pub fn start_worker(&self, number: u32, target: &Target) -> Result<(Process, PathBuf)> {
        let name = format!("worker-{number}");
        let samples = samples::path(self.notes, &name);
        let worker = Process::start(&name, self.notes, |command| {
            command.args(["bench", "__worker", "--url", &target.url, "--name", &name]);
            command.args(["--capacity", &self.capacity.to_string()]);
            command.arg("--samples").arg(&samples);
            if self.journal {
                command.arg("--journals").arg(self.notes);
            }
            if let Some(token) = &target.token {
                command.env("DRUMTOWER_TOKEN", token);
            }
        })?;
        Ok((worker, samples))
    }

    /// Starts the server. Port 0 takes a free one.
    pub fn start_server(&self, port: u16) -> Result<Process> {
        Process::start("server", self.notes, |command| {
            command.arg("serve").arg("--data").arg(self.data);
            command.env("DRUMTOWER_STORE", self.store.unwrap_or("sqlite"));
            command.args(["--listen", &format!("127.0.0.1:{port}")]);
        })
    }
}

impl Fleet {
    /// Starts everything and returns when every worker is connected.
    pub fn start(setup: &Setup<'_>) -> Result<Self> {
        let began = Instant::now();
        let mut server = setup.start_server(0)?;
        let target = wait_for_server(&mut server, setup.data)?;
        let mut fleet = Self {
            target,
            workers: Vec::new(),
            server,
            samples: Vec::new(),
            began,
        };
        for number in 1..=setup.workers {
            let (worker, samples) = setup.start_worker(number, &fleet.target)?;
            fleet.workers.push(worker);
            fleet.samples.push(samples);
        }
        fleet.wait_for_workers()?;
        Ok(fleet)
    }

    fn wait_for_workers(&mut self) -> Result<()> {
        let client = Client::to(self.target.clone());
        let until = Instant::now() + UP_WITHIN;
        loop {
            self.check()?;
            let fleet = client.value(Call::get("/api/v1/workers"))?;
            let connected = fleet
                .get("items")
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            if connected >= self.workers.len() {
                return Ok(());
            }
            wait(until, "the workers do not connect")?;
        }
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// How many runs were carried out, as far as the workers have written it down.
    pub fn ran(&self) -> u64 {
        self.samples.iter().map(|path| samples::count(path)).sum()
    }

    /// A moment of looking on: fails when a process has ended or someone interrupts.
    pub fn watch(&mut self, line: impl FnOnce(u64) -> String) -> Result<()> {
        self.check()?;
        let ran = self.ran();
        super::progress(|| line(ran));
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        interrupt::check()?;
        self.server.check()?;
        self.workers.iter_mut().try_for_each(Process::check)
    }

    pub fn usage(&self) -> Usage {
        Usage::read(
            self.server.pid(),
            self.workers.iter().map(Process::pid),
            self.ran(),
        )
    }

    /// Stops the workers, then the server, each in good order, and says how long the server lived.
    pub fn stop(self) -> Result<Duration> {
        super::progress(|| "stopping".to_owned());
        for worker in self.workers {
            worker.stop(DOWN_WITHIN)?;
        }
        self.server.stop(DOWN_WITHIN)?;
        Ok(self.began.elapsed())
    }
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
        // Until it has announced itself there is no target. The address is announced last.
        if let Ok(target) = connect.target()
            && target.token.is_some()
            && Client::to(target.clone())
                .value(Call::get("/readyz"))
                .is_ok()
        {
            return Ok(target);
        }
        wait(until, "the server does not become ready")?;
    }
}

fn wait(until: Instant, what: &str) -> Result<()> {
    if Instant::now() > until {
        return Err(Failure::failed(format!(
            "{what} within {} s",
            UP_WITHIN.as_secs()
        )));
    }
    std::thread::sleep(Duration::from_millis(20));
    Ok(())
}
