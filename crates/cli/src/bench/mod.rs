//! `drumtower bench`: figures that anyone can measure again, one file or directory a scenario.
//!
//! Scenarios print one JSON object with `-o json`. They start real processes from this very program, end them by their
//! ids, and clean up after themselves. The worker that they start is a verb of its own, hidden from the help.

mod figures;
mod fleet;
mod interrupt;
mod machine;
mod precision;
mod prepared;
mod process;
mod random;
mod room;
mod samples;
mod start;
mod throughput;
mod usage;
mod wheel;
mod worker;

use clap::Subcommand;

use crate::failure::Result;
use crate::output::overwrite as progress;

#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Runs a second through a real server and real workers, with the delays, and an audit of what was lost or doubled
    Throughput(throughput::Throughput),
    /// From the due time of a schedule to the first line of the handler, with few jobs and with many, or all at once
    Precision(precision::Precision),
    /// From the start of a server with many jobs to its first run, and the memory it takes
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
