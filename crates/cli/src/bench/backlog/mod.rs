//! `bench backlog`: how fast workers carry out what was waiting for them.
//!
//! Runs are triggered while no worker is there. Then workers are started, and the clock runs from just before the first of
//! their processes is started to the moment at which the last run was recorded as COMPLETED (rounded up to the millisecond).

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use drumtower_core::model::RunId;
use serde_json::{Value, json};

use super::audited::{self, Scope};
use super::figures::{self, rounded};
use super::fleet::{self, Fleet, Setup};
use super::load::{Load, Pack, Triggered};
use super::places::Places;
use super::usage::{Cpu, Usage};
use super::worker::wall_us;
use super::{interrupt, jobs, machine, progress_done};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// How fast workers carry out what was waiting for them
///
/// Triggers runs while no worker is there, starts workers, and times them from the start of their
/// processes to the record of the last end.
///
///     drumtower bench backlog
///     drumtower bench backlog --runs 100000 --workers 10 --store sqlite:/var/tmp/bench -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Backlog {
    /// Runs that wait for the workers
    #[arg(long, default_value_t = 20_000, value_name = "COUNT")]
    runs: u32,
    /// Jobs that they belong to
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    jobs: u32,
    /// Triggers to offer a second beforehand
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    rate: u32,
    /// Servers; more than one share the database of --store
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    servers: u32,
    /// Workers, each a process of its own
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    workers: u32,
    /// Runs that one worker takes at once; 8000 shared by all of them, at least 16 each, unless given
    #[arg(long, value_name = "COUNT")]
    capacity: Option<u32>,
    /// How long to wait for the last run
    #[arg(long, default_value = "3m", value_parser = crate::duration::parse, value_name = "DURATION")]
    patience: Duration,
    /// A directory to make the store in, such as sqlite:/mnt/disk/bench, or the URL of an empty database of PostgreSQL, in
    /// which the tables stay; a temporary directory unless given
    #[arg(long, value_name = "sqlite:PATH|postgres://…")]
    store: Option<String>,
    /// Where the journals for the audit are written; in memory where there is such a place
    #[arg(long, value_name = "DIR")]
    journals: Option<PathBuf>,
    /// Leave the store and the journals where they are
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    output: Output,
}

/// What was seen while the servers ran.
struct Seen {
    triggered: Triggered,
    /// Just before the first worker was started.
    began_us: u64,
    usage: Usage,
}

impl Backlog {
    pub fn run(self) -> Result<()> {
        self.check()?;
        fleet::make_room(self.workers, self.workers, Pack::Batch.connections())?;
        interrupt::listen()?;
        let places = Places::new(self.store.as_deref(), self.journals.as_deref(), self.keep)?;
        places.shared_by(self.servers)?;
        let seen = self.look(&places)?;
        let report = self.report(&places, &seen)?;
        progress_done();
        let verdict = audited::verdict(&report);
        self.output.one(&report, |_| words(&report))?;
        verdict
    }

    fn check(&self) -> Result<()> {
        let capacity = self.capacity.unwrap_or(1);
        let counts = [
            self.runs,
            self.jobs,
            self.rate,
            self.servers,
            self.workers,
            capacity,
        ];
        match counts.contains(&0) {
            true => Err(Failure::usage(
                "--runs, --jobs, --rate, --servers, --workers and --capacity must be at least 1",
            )),
            false => Ok(()),
        }
    }

    fn look(&self, places: &Places) -> Result<Seen> {
        let setup = Setup {
            data: &places.data,
            store: places.store.as_deref(),
            notes: &places.journals,
            servers: self.servers,
            workers: self.workers,
            processes: self.workers,
            capacity: self.capacity.unwrap_or(fleet::capacity(self.workers)),
            journal: true,
        };
        let mut fleet = Fleet::start_servers(&setup)?;
        jobs::put_plain(fleet.target(), self.jobs)?;
        let triggered = self.trigger(&mut fleet, places)?;
        let before = fleet.usage();
        let began_us = wall_us();
        fleet.start_workers(&setup)?;
        fleet.drain(triggered.runs.len() as u64, self.patience)?;
        let usage = fleet.usage().since(&before);
        fleet.stop()?;
        Ok(Seen {
            triggered,
            began_us,
            usage,
        })
    }

    /// All of them, before there is anyone to carry them out.
    fn trigger(&self, fleet: &mut Fleet, places: &Places) -> Result<Triggered> {
        let rate = self.rate.min(self.runs);
        let load = Load {
            targets: fleet.callers().to_vec(),
            pack: Pack::Batch,
            rate,
            duration: Duration::from_secs_f64(f64::from(self.runs) / f64::from(rate)),
            connections: Pack::Batch.connections(),
            jobs: jobs::names(self.jobs),
            journals: places.journals.clone(),
        };
        let offering = load.start()?;
        while !offering.is_finished() {
            fleet.watch(|_| format!("{} of {} triggered", offering.answered(), self.runs))?;
        }
        let triggered = offering.finish()?;
        let missing = u64::from(self.runs).saturating_sub(triggered.runs.len() as u64);
        // The last tick may come out one short of a fraction.
        if missing > 1 {
            return Err(Failure::failed(format!(
                "{missing} of {} triggers were not answered with a run",
                self.runs
            ))
            .remedy("offer fewer with --runs, or more slowly with --rate"));
        }
        Ok(triggered)
    }

    fn report(&self, places: &Places, seen: &Seen) -> Result<Value> {
        let scope = Scope {
            settled: true,
            ..Scope::default()
        };
        let (audited, ends) = audited::check(
            &places.data,
            &places.address,
            &places.journals,
            scope,
            figures::ends,
        )?;
        let took_s = took_s(seen.began_us, &ends);
        let per_run = |cpu: Option<Cpu>| {
            cpu.map(|cpu| rounded(cpu.total_us() as f64 / seen.usage.ran.max(1) as f64))
        };
        Ok(json!({
            "scenario": "backlog",
            "runs": seen.triggered.runs.len(),
            "workers": self.workers,
            "servers": self.servers,
            "completed": ends.len(),
            "took_s": rounded(took_s),
            "completed_per_s": rounded(ends.len() as f64 / took_s.max(0.001)),
            "server_cpu_us_per_run": per_run(seen.usage.server),
            "database_cpu_us_per_run": per_run(seen.usage.database),
            "worker_cpu_us_per_run": per_run(seen.usage.workers),
            "server_rss_bytes": seen.usage.server_rss_bytes,
            "lost": audited.report.lost,
            "duplicated": audited.report.duplicated,
            "audit": audited::value(&audited.report),
            "machine": machine::facts(Some(&places.data)),
        }))
    }
}

fn took_s(began_us: u64, ends: &[(RunId, u64)]) -> f64 {
    let last_us = ends.iter().map(|(_, end_us)| *end_us).max();
    last_us.map_or(0, |last_us| last_us.saturating_sub(began_us)) as f64 / 1e6
}

fn words(report: &Value) -> String {
    let cpu = |field: &str| match &report[field] {
        Value::Null => "-".to_owned(),
        cpu => format!("{cpu} µs of CPU a run"),
    };
    crate::output::pairs(&[
        (
            "runs",
            format!(
                "{}, of which {} completed",
                report["runs"], report["completed"]
            ),
        ),
        (
            "took",
            format!(
                "{} s, {} runs/s",
                report["took_s"], report["completed_per_s"]
            ),
        ),
        ("server", cpu("server_cpu_us_per_run")),
        ("database", cpu("database_cpu_us_per_run")),
        ("workers", cpu("worker_cpu_us_per_run")),
        ("lost", report["lost"].to_string()),
        ("duplicated", report["duplicated"].to_string()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_took_until_the_last_end() {
        let ends = [(RunId(1), 3_500_000), (RunId(2), 3_000_000)];
        assert_eq!(took_s(1_000_000, &ends), 2.5);
        assert_eq!(took_s(1_000_000, &[]), 0.0);
    }
}
