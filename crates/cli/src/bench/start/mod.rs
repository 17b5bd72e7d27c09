//! `bench start`: a server with many jobs, from the start of its process to its first run.
//!
//! A worker is already dialling when the server is started, and some of the jobs have come due while there was none. Each
//! round is a new process on the same data; with `--cold`, after the system was told to forget what it holds of the files.
//! With `--kill` the server dies under load instead, see [`kill`].

mod kill;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use drumtower_sdk::tls::Trust;
use serde_json::{Value, json};

use super::figures::{megabytes, rounded};
use super::fleet::Setup;
use super::prepared::{Plan, Prepared};
use super::process::Process;
use super::room::Room;
use super::usage::Cpu;
use super::{interrupt, machine, part, progress, progress_done, samples, worker};
use crate::client::{Call, Client};
use crate::connect::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;

const UP_WITHIN: Duration = Duration::from_secs(120);
const DOWN_WITHIN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(2);
const CAPACITY: u32 = 4000;

/// From the start of a server with many jobs to its first run, and the memory it takes
///
/// Some of the jobs came due while there was no server, and a worker is already dialling. With --kill the
/// server is killed (kill -9) under a load by batches instead, and started again on the same port while the
/// load goes on; then everything is audited.
///
///     drumtower bench start --jobs 1000000 --due 1000 --data /var/tmp/bench
///     drumtower bench start --jobs 1000000 --due 1000 --cold
///     drumtower bench start --kill --rate 23148 --rounds 3 --data /var/tmp/bench -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Start {
    /// How many jobs the store holds
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT")]
    jobs: u32,
    /// How many of them are due when the server starts, and every one or two seconds from then on
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    due: u32,
    /// How often to start
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: u32,
    /// How long after the first run to look at the memory
    #[arg(long, default_value = "10s", value_parser = crate::duration::parse, value_name = "DURATION")]
    settle: Duration,
    /// Let the system forget the files before each start, as if the machine had been off; only on Linux
    #[arg(long)]
    cold: bool,
    /// Kill the server under load and start it again, on a copy of the jobs
    #[arg(long, conflicts_with_all = ["due", "settle", "cold"])]
    kill: bool,
    /// With --kill: runs a second to offer
    #[arg(long, default_value_t = 5000, requires = "kill", value_name = "COUNT")]
    rate: u32,
    /// With --kill: how long to offer them before the server dies, and as long after it is ready again
    #[arg(long, default_value = "10s", requires = "kill", value_parser = crate::duration::parse, value_name = "DURATION")]
    load: Duration,
    /// With --kill: how long there is no server
    #[arg(long, default_value = "1s", requires = "kill", value_parser = crate::duration::parse, value_name = "DURATION")]
    down: Duration,
    /// A directory to prepare jobs in, or in which they were prepared before; it stays. A temporary one unless given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Leave everything where it is
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    output: Output,
}

impl Start {
    pub fn run(self) -> Result<()> {
        if self.rounds == 0 || self.due == 0 || (self.jobs < self.due && !self.kill) {
            return Err(Failure::usage(
                "--rounds and --due must be at least 1, --jobs at least as many as --due",
            ));
        }
        if self.rate == 0 || self.load < Duration::from_secs(1) {
            return Err(Failure::usage(
                "--rate must be at least 1, --load at least 1s",
            ));
        }
        interrupt::listen()?;
        let room = Room::new(self.data.as_deref(), self.keep)?;
        if self.kill {
            return kill::run(&self, &room);
        }
        let plan = Plan {
            jobs: self.jobs,
            active: self.due,
            // As `bench precision` has them unless told otherwise, so that both can use the same directory.
            shortest_ms: 1000,
            longest_ms: 2000,
        };
        let prepared = Prepared::find_or_make(&room.data, plan)?;
        let mut rounds = Vec::new();
        for number in 1..=self.rounds {
            part(&format!("start {number} of {}", self.rounds));
            let notes = room.notes(&format!("start-{number}"))?;
            if self.cold {
                forget(&prepared.data)?;
            }
            rounds.push(self.round(&prepared, &notes)?);
        }
        progress_done();
        let report = json!({
            "scenario": "start",
            "jobs": self.jobs,
            "due": self.due,
            "cold": self.cold,
            "prepared_s": prepared.took_s.map(rounded),
            "worst": worst(&FIGURES, &rounds),
            "rounds": rounds,
            "store_bytes": super::usage::directory_bytes(&prepared.data),
            "machine": machine::facts(Some(&room.data)),
        });
        self.output.one(&report, |_| words(&report))
    }

    fn round(&self, prepared: &Prepared, notes: &Path) -> Result<Value> {
        let setup = Setup {
            data: &prepared.data,
            store: None,
            notes,
            servers: 1,
            workers: 1,
            processes: 1,
            capacity: CAPACITY,
            journal: false,
        };
        let port = free_port()?;
        let target = prepared.worker_target(port);
        let (worker, samples) = setup.start_host(1, 1, std::slice::from_ref(&target))?;
        let (began, began_us) = (Instant::now(), worker::wall_us());
        let server = setup.start_server(1, port)?;
        let mut pair = Pair { worker, server };
        pair.wait_until_ready(&target)?;
        let ready_ms = rounded(began.elapsed().as_secs_f64() * 1000.0);
        pair.wait(UP_WITHIN, "no job fires", || samples::count(&samples) > 0)?;
        let all = samples::read_all(notes)?;
        let first_us = all.iter().map(|sample| sample.started_us).min();
        let first_us = first_us.unwrap_or_else(worker::wall_us);
        let settled = Instant::now() + self.settle;
        while Instant::now() < settled {
            pair.check()?;
            progress(|| format!("ready after {ready_ms} ms, settling"));
            std::thread::sleep(Duration::from_millis(50));
        }
        let pid = pair.server.pid();
        let measured = json!({
            "ready_ms": ready_ms,
            "first_fire_ms": rounded(first_us.saturating_sub(began_us) as f64 / 1000.0),
            "server_rss_bytes": machine::resident_bytes_of(pid),
            "server_peak_rss_bytes": machine::peak_bytes_of(pid),
            "server_cpu_ms": Cpu::of(pid).map(|cpu| cpu.total_us() / 1000),
        });
        pair.stop()?;
        Ok(measured)
    }
}

/// The processes of one round.
struct Pair {
    worker: Process,
    server: Process,
}

impl Pair {
    fn check(&mut self) -> Result<()> {
        interrupt::check()?;
        self.server.check()?;
        self.worker.check()
    }

    fn wait(
        &mut self,
        patience: Duration,
        what: &str,
        mut over: impl FnMut() -> bool,
    ) -> Result<()> {
        let until = Instant::now() + patience;
        while !over() {
            self.check()?;
            if Instant::now() > until {
                let seconds = patience.as_secs();
                return Err(Failure::failed(format!("{what} within {seconds} s")));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// The server listens before it is ready, so most of the time the question waits at its door.
    fn wait_until_ready(&mut self, target: &Target) -> Result<()> {
        let client = Client::to(Target {
            url: target.url.clone(),
            token: None,
            trust: Trust::default(),
        });
        self.wait(UP_WITHIN, "the server does not become ready", || {
            client.value(Call::get("/readyz")).is_ok()
        })
    }

    fn stop(self) -> Result<()> {
        self.worker.stop(DOWN_WITHIN)?;
        self.server.stop(DOWN_WITHIN)
    }
}

/// Drops the pages of all files below a directory from the system's cache.
#[cfg(target_os = "linux")]
fn forget(dir: &Path) -> Result<()> {
    use std::os::fd::AsRawFd;
    let wrong = |path: &Path, error: &std::io::Error| Failure::file(path, error);
    for entry in std::fs::read_dir(dir).map_err(|error| wrong(dir, &error))? {
        let path = entry.map_err(|error| wrong(dir, &error))?.path();
        if path.is_dir() {
            forget(&path)?;
            continue;
        }
        let file = std::fs::File::open(&path).map_err(|error| wrong(&path, &error))?;
        // Pages that are not written yet would stay.
        file.sync_all().map_err(|error| wrong(&path, &error))?;
        // SAFETY: the descriptor is open, and no memory is touched.
        let code =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if code != 0 {
            return Err(wrong(&path, &std::io::Error::from_raw_os_error(code)));
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn forget(_: &Path) -> Result<()> {
    Err(Failure::usage("--cold works on Linux only"))
}

/// A port that was free a moment ago: the worker must know it before the server has it.
fn free_port() -> Result<u16> {
    let taken = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    taken
        .map(|address| address.port())
        .map_err(|error| Failure::failed(format!("no free port: {error}")))
}

const FIGURES: [&str; 5] = [
    "ready_ms",
    "first_fire_ms",
    "server_rss_bytes",
    "server_peak_rss_bytes",
    "server_cpu_ms",
];

/// The largest of each figure.
fn worst(figures: &[&str], rounds: &[Value]) -> Value {
    let largest = |figure: &&str| {
        let values = rounds.iter().map(|round| &round[figure]);
        let largest = values.max_by(|one, other| {
            let number = |value: &Value| value.as_f64().unwrap_or(-1.0);
            number(one).total_cmp(&number(other))
        });
        (
            (*figure).to_owned(),
            largest.cloned().unwrap_or(Value::Null),
        )
    };
    Value::Object(figures.iter().map(largest).collect())
}

fn words(report: &Value) -> String {
    let round = |round: &Value| {
        format!(
            "ready after {} ms, first run after {} ms, {} resident, {} at most",
            round["ready_ms"],
            round["first_fire_ms"],
            megabytes(&round["server_rss_bytes"]),
            megabytes(&round["server_peak_rss_bytes"])
        )
    };
    let mut lines = vec![(
        "jobs",
        format!(
            "{}, of which {} are due at once",
            report["jobs"], report["due"]
        ),
    )];
    for one in report["rounds"].as_array().into_iter().flatten() {
        lines.push(("start", round(one)));
    }
    lines.push(("worst", round(&report["worst"])));
    crate::output::pairs(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_each_figure_counts() {
        let rounds = [
            json!({ "ready_ms": 10.5, "first_fire_ms": 20, "server_rss_bytes": 7 }),
            json!({ "ready_ms": 9.0, "first_fire_ms": 30, "server_rss_bytes": null }),
        ];
        let worst = worst(&FIGURES, &rounds);
        assert_eq!(
            (&worst["ready_ms"], &worst["first_fire_ms"]),
            (&json!(10.5), &json!(30))
        );
        assert_eq!(worst["server_rss_bytes"], 7);
        assert_eq!(worst["server_cpu_ms"], Value::Null);
    }
}
