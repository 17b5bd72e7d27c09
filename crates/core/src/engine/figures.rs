//! How much the engine holds, in numbers.

use crate::model::{Limits, Requirement, WallMs};

use super::Engine;

/// Lines that are told of, those with most runs first.
const LINES: usize = 100;

/// Runs that wait for the same kind of worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFigures {
    pub requirement: Requirement,
    /// Runs in memory.
    pub waiting: u64,
    /// Whether the store holds more of them.
    pub parked: bool,
    /// When the one at the head was made.
    pub oldest: Option<WallMs>,
    /// Workers that have room for one of them now.
    pub workers: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub resident_jobs: u64,
    pub resident_runs: u64,
    /// Runs that have not ended, wherever they are.
    pub live_runs: u64,
    /// Runs that wait in memory for a worker, by priority.
    pub waiting: [u64; Limits::PRIORITY as usize + 1],
    /// The longest lines that are not empty.
    pub lines: Vec<LineFigures>,
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
            lines: self.longest_lines(),
        }
    }

    fn longest_lines(&self) -> Vec<LineFigures> {
        let mut busy: Vec<_> = self
            .lines
            .all()
            .map(|(_, line)| line)
            .filter(|line| line.waiting() > 0 || line.has_parked())
            .collect();
        busy.sort_by_key(|line| std::cmp::Reverse((line.waiting(), line.has_parked())));
        busy.truncate(LINES);
        let figures = busy.into_iter().map(|line| LineFigures {
            requirement: line.requirement.clone(),
            waiting: line.waiting() as u64,
            parked: line.has_parked(),
            oldest: line.head().map(|run| run.created()),
            workers: line.members().len() as u64,
        });
        figures.collect()
    }
}
