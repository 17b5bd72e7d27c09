//! Many worlds, on as many threads as are given.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{Coverage, Story, simulate};

/// Which worlds, and how.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    pub start: u64,
    pub seeds: u64,
    pub threads: usize,
    /// How many failing worlds are enough.
    pub failures: usize,
}

/// What they came to.
#[derive(Default)]
pub struct Result {
    pub worlds: u64,
    pub virtual_us: u64,
    pub runs: u64,
    pub tasks: u64,
    pub coverage: Coverage,
    /// Worlds in which a promise was broken, in order of seed.
    pub failed: Vec<Story>,
}

impl Campaign {
    /// Runs them all, or until enough have failed. `progress` hears of each one.
    pub fn run(&self, progress: impl Fn(u64, &Story) + Sync) -> Result {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let result = Mutex::new(Result::default());
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= self.seeds {
                    return;
                }
                let story = simulate(self.start.wrapping_add(index), false);
                let mut result = result.lock().unwrap_or_else(|it| it.into_inner());
                result.worlds += 1;
                result.virtual_us += story.virtual_us;
                result.runs += story.runs;
                result.tasks += story.tasks;
                result.coverage.add(&story.coverage);
                progress(result.worlds, &story);
                if !story.findings.is_empty() {
                    result.failed.push(story);
                    if result.failed.len() >= self.failures {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.max(1) {
                scope.spawn(work);
            }
            work();
        });
        let mut result = result.into_inner().unwrap_or_else(|it| it.into_inner());
        result.failed.sort_by_key(|story| story.seed);
        result
    }
}
