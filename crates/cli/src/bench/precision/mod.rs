//! `bench precision`: from the time a schedule names to the first line of the handler, in another process.
//!
//! For each number of jobs a store is prepared, a server and workers are started on it, and the jobs that are active fire
//! for a while. They are equally many however many jobs there are: what differs is what lies on disk. `--storm` is the
//! opposite: jobs that are all due at one instant, with ten priorities. The bench knows every due time by itself, so it can
//! say which had no start, or two; if any was lost or doubled, it fails.

mod fires;
mod order;
mod report;
mod storm;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::fleet::{Fleet, Setup};
use super::prepared::{Plan, Prepared};
use super::room::Room;
use super::{interrupt, machine, part, progress_done, worker};
use crate::failure::{Failure, Result};
use crate::output::Output;
use fires::Fires;

/// More active jobs than this are a bench of throughput.
const MOST_ACTIVE: u32 = 10_000;
/// How long the last starts may take once the measured time is over.
const DRAIN: Duration = Duration::from_secs(10);

/// From the due time of a schedule to the first line of the handler, with few jobs and with many, or all at once
///
/// The bench computes every due time by itself, so it can say which had no start, or two, or one too
/// early. With --storm there are also, or only, jobs that are all due at one instant.
///
///     drumtower bench precision --jobs 10000 --duration 60s
///     drumtower bench precision --jobs 1000,1000000 --data /var/tmp/bench
///     drumtower bench precision --jobs 100000 --active 100000 --spread 30s..60s --duration 5m --storm 100000
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Precision {
    /// How many jobs there are, one measurement for each number; 10000 unless there is only to be a storm
    #[arg(long, value_delimiter = ',', value_name = "COUNT")]
    jobs: Vec<u32>,
    /// How many of them fire meanwhile; the smallest of the numbers of jobs, at most 10000, unless given
    #[arg(long, value_name = "COUNT")]
    active: Option<u32>,
    /// The shortest and the longest period of those
    #[arg(long, default_value = "1s..2s", value_parser = parse_spread, value_name = "DURATION..DURATION")]
    spread: Spread,
    /// How long to measure
    #[arg(long, default_value = "60s", value_parser = crate::duration::parse, value_name = "DURATION")]
    duration: Duration,
    /// How long to let server and workers settle before that
    #[arg(long, default_value = "5s", value_parser = crate::duration::parse, value_name = "DURATION")]
    warm_up: Duration,
    /// Also, or only: so many jobs that are due at one instant
    #[arg(long, value_name = "COUNT")]
    storm: Option<u32>,
    /// Worker processes
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    workers: u32,
    /// Runs that one worker takes at once
    #[arg(long, default_value_t = 4000, value_name = "COUNT")]
    capacity: u32,
    /// A directory to prepare jobs in, or in which they were prepared before; it stays. A temporary one unless given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Leave everything where it is
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spread {
    shortest_ms: u64,
    longest_ms: u64,
}

fn parse_spread(text: &str) -> std::result::Result<Spread, String> {
    let (shortest, longest) = text.split_once("..").unwrap_or((text, text));
    let ms = |text: &str| {
        crate::duration::parse(text)
            .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    };
    match (ms(shortest)?, ms(longest)?) {
        (shortest_ms, longest_ms) if 0 < shortest_ms && shortest_ms <= longest_ms => Ok(Spread {
            shortest_ms,
            longest_ms,
        }),
        _ => Err("periods are written from the shortest to the longest, as in 1s..2s".to_owned()),
    }
}

impl Precision {
    pub fn run(self) -> Result<()> {
        self.check()?;
        interrupt::listen()?;
        let room = Room::new(self.data.as_deref(), self.keep)?;
        let mut measured = Vec::new();
        for jobs in self.numbers() {
            measured.push(self.measure(&room, jobs)?);
        }
        let storm = self
            .storm
            .map(|count| storm::measure(&self, &room, count))
            .transpose()?;
        progress_done();
        let report = json!({
            "scenario": "precision",
            "duration_s": self.duration.as_secs_f64(),
            "workers": self.workers,
            "spread_ms": [self.spread.shortest_ms, self.spread.longest_ms],
            "ratio": report::ratio(&measured),
            "measured": measured,
            "storm": storm,
            "machine": machine::facts(Some(&room.data)),
        });
        self.output.one(&report, |_| report::words(&report))?;
        report::verdict(&report)
    }

    fn numbers(&self) -> Vec<u32> {
        match (self.jobs.is_empty(), self.storm) {
            (true, None) => vec![MOST_ACTIVE],
            _ => self.jobs.clone(),
        }
    }

    fn check(&self) -> Result<()> {
        let counts = [self.workers, self.capacity, self.storm.unwrap_or(1)];
        let zero = counts.contains(&0) || self.jobs.contains(&0) || self.active == Some(0);
        if zero || self.duration < Duration::from_secs(1) {
            return Err(Failure::usage(
                "--jobs, --active, --storm, --workers and --capacity must be at least 1, --duration at least 1s",
            ));
        }
        Ok(())
    }

    fn plan(&self, jobs: u32) -> Plan {
        let fewest = self.numbers().into_iter().min().unwrap_or(jobs);
        Plan {
            jobs,
            active: self.active.unwrap_or(fewest.min(MOST_ACTIVE)).min(jobs),
            shortest_ms: self.spread.shortest_ms,
            longest_ms: self.spread.longest_ms,
        }
    }

    fn measure(&self, room: &Room, jobs: u32) -> Result<Value> {
        let prepared = Prepared::find_or_make(&room.data, self.plan(jobs))?;
        let plan = &prepared.plan;
        part(&format!(
            "measuring {} of {jobs} jobs for {} s",
            plan.active,
            self.duration.as_secs_f64()
        ));
        let notes = room.notes(&format!("jobs-{jobs}"))?;
        let mut fleet = self.start(&prepared.data, &notes)?;
        watch_until(&mut fleet, now_ms() + millis(self.warm_up))?;
        let before = fleet.usage();
        let from_ms = now_ms();
        let to_ms = from_ms + millis(self.duration);
        watch_until(&mut fleet, to_ms)?;
        let usage = fleet.usage().since(&before);
        // A start is written down at most 50 ms later; what is late is waited for, but not for ever.
        let until_ms = to_ms + millis(DRAIN);
        let fires = loop {
            fleet.watch(|ran| format!("{ran} ran"))?;
            let fires = Fires::tally(plan, &super::samples::read_all(&notes)?, from_ms, to_ms)?;
            if fires.missing.is_empty() || now_ms() > until_ms {
                break fires;
            }
        };
        fleet.stop()?;
        let unfired = fires.recorded_as_unfired(&prepared.data)?;
        Ok(report::fires(
            &prepared,
            self.duration,
            &fires,
            unfired,
            &usage,
        ))
    }

    fn start(&self, data: &std::path::Path, notes: &std::path::Path) -> Result<Fleet> {
        Fleet::start(&Setup {
            data,
            store: None,
            notes,
            servers: 1,
            workers: self.workers,
            processes: self.workers,
            capacity: self.capacity,
            journal: false,
        })
    }
}

fn watch_until(fleet: &mut Fleet, until_ms: i64) -> Result<()> {
    while now_ms() < until_ms {
        fleet.watch(|ran| format!("{ran} ran, {} s to go", (until_ms - now_ms()) / 1000))?;
    }
    Ok(())
}

fn now_ms() -> i64 {
    i64::try_from(worker::wall_us() / 1000).unwrap_or(i64::MAX)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_ranges_of_periods() {
        let spread = |shortest_ms, longest_ms| Spread {
            shortest_ms,
            longest_ms,
        };
        assert_eq!(parse_spread("1s..2s"), Ok(spread(1000, 2000)));
        assert_eq!(parse_spread("500ms"), Ok(spread(500, 500)));
        for wrong in ["2s..1s", "0s..1s", "1s..", "fast"] {
            assert!(parse_spread(wrong).is_err(), "{wrong}");
        }
    }
}
