//! How much the engine holds, in numbers.

use std::collections::BTreeMap;

use crate::model::{Limits, Now, Requirement, WallMs};

use super::Engine;
use super::gates::GateId;
use super::lines::LineIx;

/// Lines that are told of, those with most runs first.
const LINES: usize = 100;

/// Runs that wait for the same kind of worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFigures {
    pub requirement: Requirement,
    /// Runs in memory.
    pub waiting: u64,
    /// Those of them that a limit holds back: they wait for a place, and for a worker after that.
    pub held: u64,
    /// Whether the store holds more of them.
    pub parked: bool,
    /// When the oldest of those in memory was made.
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
    /// Those of them that limits hold back.
    pub held: u64,
    /// The longest lines that are not empty.
    pub lines: Vec<LineFigures>,
    /// How long the oldest has waited of what is due: a job that has not fired, or a run that nothing holds back and that
    /// no worker has been given.
    pub lag_ms: u64,
}

/// What waits in the pens of one line.
#[derive(Clone, Copy, Debug, Default)]
struct Penned {
    held: u64,
    parked: bool,
    oldest: Option<WallMs>,
}

impl Engine {
    pub fn figures(&self, now: Now) -> Figures {
        let mut waiting = [0; Limits::PRIORITY as usize + 1];
        for (_, line) in self.lines.all() {
            let priority = line.requirement.priority.min(Limits::PRIORITY) as usize;
            waiting[priority] += line.waiting() as u64;
        }
        let penned = self.penned_by_line();
        Figures {
            resident_jobs: self.jobs.len() as u64,
            resident_runs: self.runs.len() as u64,
            live_runs: self.counters.values().map(|row| row.live()).sum(),
            waiting,
            held: penned.values().map(|penned| penned.held).sum(),
            lines: self.longest_lines(&penned),
            lag_ms: self.lag_ms(now),
        }
    }

    fn penned_by_line(&self) -> BTreeMap<LineIx, Penned> {
        let mut lines: BTreeMap<LineIx, Penned> = BTreeMap::new();
        // Many pens share a gate, and whether it lets something through is asked of it once.
        let mut closed: BTreeMap<GateId, bool> = BTreeMap::new();
        let mut is_closed = |gate: &GateId| {
            let known = closed.entry(*gate);
            *known.or_insert_with(|| self.obstacle(*gate).is_some())
        };
        for pen in self.pens.all() {
            let line = lines.entry(pen.line).or_default();
            line.parked |= pen.lot().has_parked();
            let Some(first) = pen.queue.front() else {
                continue;
            };
            let oldest = [line.oldest, Some(first.run.created())];
            line.oldest = oldest.into_iter().flatten().min();
            if pen.gates.iter().any(&mut is_closed) {
                line.held += pen.queue.len() as u64;
            }
        }
        lines
    }

    fn longest_lines(&self, penned: &BTreeMap<LineIx, Penned>) -> Vec<LineFigures> {
        let of_pens = |ix| penned.get(&ix).copied().unwrap_or_default();
        let lines = self.lines.all().map(|(ix, line)| (line, of_pens(ix)));
        let mut busy: Vec<_> = lines
            .map(|(line, penned)| (line, penned, line.has_parked() || penned.parked))
            .filter(|(line, _, parked)| line.waiting() > 0 || *parked)
            .collect();
        busy.sort_by_key(|(line, _, parked)| std::cmp::Reverse((line.waiting(), *parked)));
        busy.truncate(LINES);
        let figures = busy.into_iter().map(|(line, penned, parked)| {
            let head = line.head().map(|run| run.created());
            LineFigures {
                requirement: line.requirement.clone(),
                waiting: line.waiting() as u64,
                held: penned.held,
                parked,
                oldest: [head, penned.oldest].into_iter().flatten().min(),
                workers: self.workers_with_room(line) as u64,
            }
        });
        figures.collect()
    }
}
