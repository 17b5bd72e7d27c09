//! `drumtower bench`: figures that anyone can measure again, one file or directory a scenario.
//!
//! Scenarios print one JSON object with `-o json`. They start real processes from this very program, end them by their
//! ids, and clean up after themselves. The worker that they start is a verb of its own, hidden from the help.

mod audited;
mod backlog;
mod database;
mod figures;
mod fleet;
mod growth;
mod interrupt;
mod jobs;
mod latency;
mod lists;
mod load;
mod machine;
mod open_files;
mod places;
mod precision;
mod prepared;
mod process;
mod random;
mod room;
mod samples;
mod soak;
mod start;
mod suspicion;
mod throughput;
mod usage;
mod wheel;
mod worker;

use clap::Subcommand;

use crate::failure::Result;
use crate::output::overwrite as progress;

#[derive(Debug, Subcommand)]
pub enum Bench {
    Throughput(throughput::Throughput),
    Precision(precision::Precision),
    Latency(latency::Latency),
    Backlog(backlog::Backlog),
    Growth(growth::Growth),
    Soak(soak::Soak),
    Start(start::Start),
    /// The worker of the other benches
    #[command(name = "__worker", hide = true)]
    Worker(worker::Worker),
    /// The timing wheel against tokio's DelayQueue, a binary heap and a B-tree
    Wheel(wheel::Wheel),
}

impl Bench {
    pub fn run(self) -> Result<()> {
        match self {
            Self::Throughput(throughput) => throughput.run(),
            Self::Precision(precision) => precision.run(),
            Self::Latency(latency) => latency.run(),
            Self::Backlog(backlog) => backlog.run(),
            Self::Growth(growth) => growth.run(),
            Self::Soak(soak) => soak.run(),
            Self::Start(start) => start.run(),
            Self::Worker(worker) => worker.run(),
            Self::Wheel(wheel) => wheel.run(),
        }
    }
}

fn progress_done() {
    progress(String::new);
}

/// A line that stays: a new part of a long bench begins.
fn part(line: &str) {
    progress_done();
    crate::output::say(line);
}
