//! A world in virtual time that attacks the real engine.
//!
//! One number draws a world: servers, workers, jobs, users, and everything that goes wrong. The engine, the store's model,
//! the worker's session and the words between them are the real ones; time, the network and chance are not. First comes
//! trouble, with every step checked; then calm, in which everything must come to its end.
//!
//! The same seed gives the same world, byte for byte: [`simulate`] returns the hash of all that happened.

mod check;
mod client;
mod clock;
mod coverage;
mod plan;
mod random;
mod server;
mod trace;
mod worker;
mod world;

pub mod campaign;

pub use check::Finding;
pub use coverage::Coverage;

use world::World;

/// What became of one world.
pub struct Story {
    pub seed: u64,
    /// Empty when every promise was kept.
    pub findings: Vec<Finding>,
    /// Of every line of the trace.
    pub hash: u64,
    pub lines: u64,
    /// The lines themselves, if they were asked for.
    pub trace: Vec<String>,
    pub coverage: Coverage,
    pub virtual_us: u64,
    pub runs: u64,
    pub tasks: u64,
}

/// Lets one world happen.
pub fn simulate(seed: u64, keep_trace: bool) -> Story {
    let mut world = World::new(seed, keep_trace);
    world.run();
    Story {
        seed,
        findings: std::mem::take(&mut world.checks.findings),
        hash: world.trace.hash(),
        lines: world.trace.lines(),
        trace: world.trace.take(),
        coverage: world.coverage.clone(),
        virtual_us: world.at.0,
        runs: world.checks.runs_made,
        tasks: world.checks.tasks_run,
    }
}
