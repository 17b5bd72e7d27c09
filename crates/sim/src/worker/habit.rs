//! How a task behaves: what it says while it runs, what it saves, and what it says at its end.
//!
//! A task counts steps. What it saves is how far it has counted, so that whoever goes on from there shows whether the
//! right thing was handed on.

use std::sync::Arc;

use drumtower_core::model::RunId;
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::Attempt;
use wire::finished::Verdict;

use super::World;
use crate::clock::MS;
use crate::plan::Figures;
use crate::random::Random;
use crate::world::event::{Event, Process};
use crate::world::note;

/// What a task does between its start and its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habit {
    /// Between two steps; 0 when it never says anything.
    every_us: u64,
    /// Whether it saves at each step.
    saves: bool,
    /// How far it has counted, over all attempts of its run.
    steps: u64,
}

impl Habit {
    pub(super) fn draw(figures: &Figures, lasts_us: u64, random: &mut Random) -> Self {
        if !random.chance(figures.telling_permille) {
            return Self::default();
        }
        Self {
            every_us: (lasts_us / random.between(2, 12)).max(300 * MS),
            saves: random.chance(700),
            steps: 0,
        }
    }
}

/// How a task ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    pub(super) outcome: wire::Outcome,
    verdict: Option<Verdict>,
    exit_code: Option<i32>,
}

impl End {
    pub(super) const STOPPED: Self = Self {
        outcome: wire::Outcome::Cancelled,
        verdict: None,
        exit_code: None,
    };

    pub(super) fn draw(fail_permille: u64, command: bool, random: &mut Random) -> Self {
        let outcome = match random.chance(fail_permille) {
            true => wire::Outcome::Failed,
            false => wire::Outcome::Succeeded,
        };
        let (mut verdict, mut exit_code) = (None, None);
        if outcome == wire::Outcome::Failed && command {
            exit_code = Some(i32::try_from(random.between(1, 5)).unwrap_or(1));
        } else if outcome == wire::Outcome::Failed {
            verdict = match random.below(8) {
                0 => Some(Verdict::GiveUp(true)),
                1 | 2 => Some(Verdict::RetryAfterMs(random.skewed(0, 15_000))),
                3 | 4 => Some(Verdict::SnoozeMs(random.skewed(0, 15_000))),
                _ => None,
            };
        }
        Self {
            outcome,
            verdict,
            exit_code,
        }
    }

    pub(super) fn words(self, duration_ms: u64) -> wire::Finished {
        let mut end = wire::Finished {
            duration_ms,
            verdict: self.verdict,
            exit_code: self.exit_code,
            ..wire::Finished::default()
        };
        end.set_outcome(self.outcome);
        if self.outcome == wire::Outcome::Failed {
            end.error = "it was drawn to fail".to_owned();
        }
        end
    }
}

/// What a task saves: whose it is, and how far it has come.
fn saved(run: RunId, steps: u64) -> Arc<[u8]> {
    Arc::from(format!("{run} {steps}").into_bytes())
}

/// How far whoever saved this had come; `None` when it is not what a task saves.
pub(crate) fn steps_in(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?;
    text.split_once(' ')?.1.parse().ok()
}

impl World {
    /// A task that has just started takes up what was handed to it, and begins to count.
    pub(super) fn resume_task(&mut self, worker: usize, process: Process, attempt: Attempt) {
        let Some(task) = self.workers[worker]
            .live(process)
            .and_then(|live| live.tasks.get(&attempt))
        else {
            return;
        };
        let (run, mark) = (task.run, task.mark);
        let steps = self.check_resumed(run, attempt.number, mark);
        let live = self.workers[worker].live(process);
        if let Some(task) = live.and_then(|live| live.tasks.get_mut(&attempt)) {
            task.habit.steps = steps;
        }
        self.next_step(worker, process, attempt);
    }

    fn next_step(&mut self, worker: usize, process: Process, attempt: Attempt) {
        let task = self.workers[worker]
            .live(process)
            .and_then(|live| live.tasks.get(&attempt));
        let Some(every_us) = task.map(|task| task.habit.every_us).filter(|us| *us > 0) else {
            return;
        };
        self.push(
            self.at.plus(every_us),
            Event::TaskSays {
                worker,
                process,
                attempt,
            },
        );
    }

    pub(crate) fn task_says(&mut self, worker: usize, process: Process, attempt: Attempt) {
        let mono = self.workers[worker].clock.mono(self.at);
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        let Some(task) = live.tasks.get_mut(&attempt) else {
            return;
        };
        task.habit.steps += 1;
        let (steps, saves) = (task.habit.steps, task.habit.saves);
        let run = task.run;
        let percent = u32::try_from(steps.min(100)).unwrap_or(100);
        let words = format!("step {steps}");
        live.session.report_progress(mono, attempt, percent, words);
        if saves {
            let body = saved(run, steps);
            let number = live.session.save_checkpoint(mono, attempt, body);
            if let Some(number) = number {
                note!(
                    self,
                    "worker {worker} saves {run} attempt {} as {number}",
                    attempt.number
                );
            }
        }
        self.serve(worker, process);
        self.next_step(worker, process, attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read_back() {
        assert_eq!(steps_in(&saved(RunId(7), 12)), Some(12));
        assert_eq!(steps_in(b"nonsense"), None);
    }
}
