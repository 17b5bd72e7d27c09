//! `bench growth`: whether a run costs more when there is more of everything else.
//!
//! The same load is offered to four stores that differ in one thing each: few jobs or many, no finished runs or many, few
//! workers or many. Each is measured on a copy of what was prepared, so that none finds what another left. Half of the jobs
//! that are named here are triggered, and the finished runs belong to the other half: the audit expects a start for each
//! run of a job that was seen to start.

mod measure;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::fleet;
use super::load::Pack;
use super::room::Room;
use super::{audited, interrupt, machine, part, progress_done};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Whether a run costs more with many jobs, with a long history, or with many workers
///
/// Measures the same load on a small system, and on three that have more of one thing: --jobs,
/// --runs (finished ones, put into the store without being carried out) and --workers. Each is a pair
/// with the small one, and the table says by which factor its figures grow. With --rounds the four take
/// turns, and the round with the median CPU counts. With --at-most the command fails beyond that factor
/// of CPU a run.
///
///     drumtower bench growth --data /var/tmp/bench
///     drumtower bench growth --only runs --runs 50000000 --rate 10000 --duration 60s
///     drumtower bench growth --rounds 3 --at-most 1.5 -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Growth {
    /// Jobs of the small system and of the large one
    #[arg(
        long,
        default_value = "1000,1000000",
        value_delimiter = ',',
        num_args = 1,
        value_name = "FEW,MANY"
    )]
    jobs: Vec<u32>,
    /// Finished runs that lie in the history of the large system; there are none in the small one
    #[arg(long, default_value_t = 10_000_000, value_name = "COUNT")]
    runs: u64,
    /// Workers of the small system and of the large one
    #[arg(
        long,
        default_value = "10,10000",
        value_delimiter = ',',
        num_args = 1,
        value_name = "FEW,MANY"
    )]
    workers: Vec<u32>,
    /// Processes that host the workers, at most
    #[arg(long, default_value_t = 4, value_name = "COUNT")]
    processes: u32,
    /// Only these pairs
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PAIR")]
    only: Vec<Grown>,
    /// Runs a second to offer
    #[arg(long, default_value_t = 5000, value_name = "COUNT")]
    rate: u32,
    /// How long to measure
    #[arg(long, default_value = "30s", value_parser = crate::duration::parse, value_name = "DURATION")]
    duration: Duration,
    /// How long to offer the load before that, and as long before it to see what the system uses when idle
    #[arg(long, default_value = "5s", value_parser = crate::duration::parse, value_name = "DURATION")]
    warm_up: Duration,
    /// How often a second to list the runs of one job meanwhile
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    lists: u32,
    /// How often to measure each system
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    rounds: u32,
    /// Fail when a pair's CPU a run grows by more than this factor
    #[arg(long, value_name = "FACTOR")]
    at_most: Option<f64>,
    /// A directory to prepare jobs in, or in which they were prepared before; it stays. A temporary one unless given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Leave everything where it is
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    output: Output,
}

/// What there is more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Grown {
    Jobs,
    Runs,
    Workers,
}

impl Grown {
    const ALL: [Self; 3] = [Self::Jobs, Self::Runs, Self::Workers];

    fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Runs => "runs",
            Self::Workers => "workers",
        }
    }
}

/// A system under the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    jobs: u32,
    runs: u64,
    workers: u32,
}

impl Growth {
    pub fn run(self) -> Result<()> {
        self.check()?;
        let most = self.workers.iter().copied().max().unwrap_or(1);
        fleet::make_room(most, self.processes, Pack::Batch.connections())?;
        interrupt::listen()?;
        let room = Room::new(self.data.as_deref(), self.keep)?;
        let cases = self.cases();
        let mut rounds = vec![Vec::new(); cases.len()];
        for round in 1..=self.rounds {
            for ((name, size), measured) in cases.iter().zip(&mut rounds) {
                part(&format!("round {round} of {}: {name}", self.rounds));
                measured.push(self.measure(&room, &format!("{name}-{round}"), *size)?);
            }
        }
        progress_done();
        let report = self.report(&cases, rounds, &room);
        self.output.one(&report, |_| report::words(&report))?;
        for one in report["rounds"].as_array().into_iter().flatten() {
            audited::verdict(one)?;
        }
        report::verdict(&report, self.at_most)
    }

    fn check(&self) -> Result<()> {
        let pair =
            |numbers: &[u32], least| matches!(numbers, [few, many] if least <= *few && few <= many);
        if !pair(&self.jobs, 2) || !pair(&self.workers, 1) {
            return Err(Failure::usage(
                "--jobs and --workers are two numbers each, the smaller one first, as in --jobs 1000,1000000",
            ));
        }
        let zero = [self.processes, self.rate, self.rounds].contains(&0);
        let short = self.duration < Duration::from_secs(1) || self.warm_up.is_zero();
        if zero || short {
            return Err(Failure::usage(
                "--processes, --rate and --rounds must be at least 1, --duration at least 1s, --warm-up more than 0s",
            ));
        }
        Ok(())
    }

    /// The small system first, then what it is compared with.
    fn cases(&self) -> Vec<(&'static str, Size)> {
        let small = Size {
            jobs: self.jobs[0],
            runs: 0,
            workers: self.workers[0],
        };
        let wanted = |pair: &Grown| self.only.is_empty() || self.only.contains(pair);
        let large = Grown::ALL.into_iter().filter(wanted).map(|pair| {
            let size = match pair {
                Grown::Jobs => Size {
                    jobs: self.jobs[1],
                    ..small
                },
                Grown::Runs => Size {
                    runs: self.runs,
                    ..small
                },
                Grown::Workers => Size {
                    workers: self.workers[1],
                    ..small
                },
            };
            (pair.name(), size)
        });
        std::iter::once(("small", small)).chain(large).collect()
    }

    fn report(
        &self,
        cases: &[(&'static str, Size)],
        rounds: Vec<Vec<Value>>,
        room: &Room,
    ) -> Value {
        let medians: Vec<Value> = rounds.iter().map(|all| report::median(all)).collect();
        let small = &medians[0];
        let pairs: Vec<Value> = cases
            .iter()
            .zip(&medians)
            .skip(1)
            .map(|((name, _), large)| report::pair(name, small, large))
            .collect();
        json!({
            "scenario": "growth",
            "rate": self.rate,
            "duration_s": self.duration.as_secs_f64(),
            "pairs": pairs,
            "measured": medians,
            "rounds": rounds.into_iter().flatten().collect::<Vec<_>>(),
            "machine": machine::facts(Some(&room.data)),
        })
    }
}
