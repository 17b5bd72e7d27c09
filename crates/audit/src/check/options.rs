//! What the checker must be told, because neither journals nor store can know it.

use drumtower_core::model::WallMs;

#[derive(Clone, Debug)]
pub struct Options {
    /// Until when the servers were up. `None` takes the newest time that a journal or the store speaks of.
    pub now: Option<WallMs>,
    /// How long before `now` everything must have its fate.
    pub grace_ms: i64,
    /// How far the clocks of servers and workers may differ.
    pub clock_bound_ms: i64,
    /// How far a server's wall clock was set forward or back while it ran.
    pub clock_step_ms: i64,
    /// How far a server's wall clock was set back between two things that it wrote down of one run.
    pub clock_back_ms: i64,
    /// The lease that workers hold, for how long an attempt may outlive its timeout.
    pub lease_ms: i64,
    pub journaled: Journaled,
    /// Whether everything due has had the time and the workers to end: then whatever is live and due is a violation.
    pub settled: bool,
    /// Times in which nothing was disturbed: runs due then must have started within `start_within_ms`.
    pub healthy: Vec<(WallMs, WallMs)>,
    pub start_within_ms: i64,
}

/// Whose tasks write journals, so that a completed run without a start is a lost one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journaled {
    /// Those of every job that has at least one start in a journal.
    #[default]
    Seen,
    All,
    None,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            now: None,
            grace_ms: 60_000,
            clock_bound_ms: 0,
            clock_step_ms: 0,
            clock_back_ms: 0,
            lease_ms: 15_000,
            journaled: Journaled::Seen,
            settled: false,
            healthy: Vec::new(),
            start_within_ms: 1_000,
        }
    }
}
