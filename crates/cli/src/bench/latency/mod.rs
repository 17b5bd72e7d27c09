//! `bench latency`: from a trigger by the API to the first line of the handler, on a system that does nothing else.
//!
//! Runs are triggered one after another, each when the one before has been carried out and a pause has passed, so no run
//! waits for another and none shares a commit. The clock begins before the request is sent.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use drumtower_core::model::RunId;
use serde_json::{Value, json};

use super::audited::{self, Scope};
use super::figures::{Delays, delay_words, rounded};
use super::fleet::{self, Fleet, Setup};
use super::load::{Batch, Connection, Pack};
use super::places::Places;
use super::samples::{self, Sample};
use super::usage::Usage;
use super::worker::wall_us;
use super::{interrupt, jobs, machine, progress, progress_done};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// How long one run may take to be carried out.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// From a trigger by the API to the first line of the handler, one run after another on an idle system
///
/// Three delays of each run, all from before its request is sent: to the answer, to the first line of
/// the handler, and to the moment at which COMPLETED was recorded (rounded up to the millisecond).
///
///     drumtower bench latency
///     drumtower bench latency --runs 2000 --pause 50ms --store sqlite:/var/tmp/bench -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Latency {
    /// Runs to time
    #[arg(long, default_value_t = 500, value_name = "COUNT")]
    runs: u32,
    /// Runs before those, which are not timed
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    warm_up: u32,
    /// How long nothing happens between two of them
    #[arg(long, default_value = "20ms", value_parser = crate::duration::parse, value_name = "DURATION")]
    pause: Duration,
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

/// When each run was meant, and when its trigger was answered, in order of run.
type Triggers = Vec<(RunId, u64, u64)>;

impl Latency {
    pub fn run(self) -> Result<()> {
        if self.runs == 0 {
            return Err(Failure::usage("--runs must be at least 1"));
        }
        interrupt::listen()?;
        let places = Places::new(self.store.as_deref(), self.journals.as_deref(), self.keep)?;
        let mut fleet = Fleet::start(&Setup {
            data: &places.data,
            store: places.store.as_deref(),
            notes: &places.journals,
            servers: 1,
            workers: 1,
            processes: 1,
            capacity: fleet::capacity(1),
            journal: true,
        })?;
        jobs::put_plain(fleet.target(), 1)?;
        let before = fleet.usage();
        let triggers = self.trigger(&mut fleet, &places)?;
        let usage = fleet.usage().since(&before);
        fleet.stop()?;
        let report = self.report(&places, triggers, &usage)?;
        progress_done();
        let verdict = audited::verdict(&report);
        self.output.one(&report, |_| words(&report))?;
        verdict
    }

    fn trigger(&self, fleet: &mut Fleet, places: &Places) -> Result<Triggers> {
        let names = jobs::names(1);
        let mut connection =
            Connection::new(fleet.target(), Pack::Single, &names, &places.journals)?;
        let count = u64::from(self.warm_up) + u64::from(self.runs);
        let mut answered_us = Vec::new();
        for number in 0..count {
            progress(|| format!("{number} of {count} runs"));
            std::thread::sleep(self.pause);
            connection.send(&Batch {
                meant_us: wall_us(),
                first: number,
                count: 1,
            })?;
            answered_us.push(wall_us());
            if connection.runs().len() as u64 <= number {
                return Err(Failure::failed("a trigger was not answered with a run"));
            }
            wait_until_ran(fleet, number + 1)?;
        }
        let runs = connection.done().runs.into_iter().zip(answered_us);
        let timed = runs.skip(self.warm_up as usize);
        let mut triggers: Triggers = timed
            .map(|((run, meant_us), answered_us)| (run, meant_us, answered_us))
            .collect();
        triggers.sort_unstable();
        Ok(triggers)
    }

    fn report(&self, places: &Places, triggers: Triggers, usage: &Usage) -> Result<Value> {
        let scope = Scope {
            settled: true,
            ..Scope::default()
        };
        let (audited, ends) = audited::check(
            &places.data,
            &places.address,
            &places.journals,
            scope,
            super::figures::ends,
        )?;
        let samples = samples::read_all(&places.journals)?;
        let delays = delays(&triggers, &samples, &ends)?;
        let cpu = usage.server.map(|cpu| cpu.total_us() as f64);
        Ok(json!({
            "scenario": "latency",
            "runs": self.runs,
            "pause_ms": rounded(self.pause.as_secs_f64() * 1000.0),
            "answer_ms": delays[0].value(),
            "start_delay_ms": delays[1].value(),
            "end_to_end_ms": delays[2].value(),
            "server_cpu_us_per_run": cpu.map(|us| rounded(us / usage.ran.max(1) as f64)),
            "lost": audited.report.lost,
            "duplicated": audited.report.duplicated,
            "audit": audited::value(&audited.report),
            "machine": machine::facts(Some(&places.data)),
        }))
    }
}

fn wait_until_ran(fleet: &mut Fleet, count: u64) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while fleet.ran() < count {
        fleet.check()?;
        if Instant::now() > until {
            let seconds = PATIENCE.as_secs();
            return Err(Failure::failed(format!(
                "a run was not carried out within {seconds} s"
            )));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// To the answer, to the start, to the end.
fn delays(triggers: &Triggers, samples: &[Sample], ends: &[(RunId, u64)]) -> Result<[Delays; 3]> {
    let mut delays = [Delays::new()?, Delays::new()?, Delays::new()?];
    for (run, meant_us, answered_us) in triggers {
        delays[0].add(*meant_us, *answered_us);
        if let Ok(place) = samples.binary_search_by_key(run, |sample| sample.run) {
            delays[1].add(*meant_us, samples[place].started_us);
        }
        if let Ok(place) = ends.binary_search_by_key(run, |(run, _)| *run) {
            delays[2].add(*meant_us, ends[place].1);
        }
    }
    Ok(delays)
}

fn words(report: &Value) -> String {
    crate::output::pairs(&[
        ("runs", format!("{}, one after another", report["runs"])),
        ("answer", delay_words(&report["answer_ms"])),
        ("start delay", delay_words(&report["start_delay_ms"])),
        ("end to end", delay_words(&report["end_to_end_ms"])),
        (
            "server",
            format!("{} µs of CPU a run", report["server_cpu_us_per_run"]),
        ),
        ("lost", report["lost"].to_string()),
        ("duplicated", report["duplicated"].to_string()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_delay_counts_from_before_the_request() {
        let sample = Sample {
            run: RunId(7),
            job: 0,
            due_us: 0,
            started_us: 1_004_000,
            ended_us: 1_004_000,
        };
        let triggers = vec![
            (RunId(7), 1_000_000, 1_002_000),
            (RunId(9), 1_000_000, 1_003_000),
        ];
        let delays = delays(&triggers, &[sample], &[(RunId(7), 1_009_000)]).expect("delays");
        let max = delays.map(|delays| delays.value()["max"].as_f64().unwrap_or(0.0).round());
        assert_eq!(max, [3.0, 4.0, 9.0]);
    }
}
