//! How much the engine holds, in numbers.

use crate::model::Limits;

use super::Engine;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub resident_jobs: u64,
    pub resident_runs: u64,
    /// Runs that have not ended, wherever they are.
    pub live_runs: u64,
    /// Runs that wait in memory for a worker, by priority.
    pub waiting: [u64; Limits::PRIORITY as usize + 1],
}

impl Engine {
    pub fn figures(&self) -> Figures {
        let mut waiting = [0; Limits::PRIORITY as usize + 1];
        for (_, line) in self.lines.all() {
            let priority = line.requirement.priority.min(Limits::PRIORITY) as usize;
            waiting[priority] += line.waiting() as u64;
        }
        Figures {
            resident_jobs: self.jobs.len() as u64,
            resident_runs: self.runs.len() as u64,
            live_runs: self.counters.values().map(|row| row.live()).sum(),
            waiting,
        }
    }
}
