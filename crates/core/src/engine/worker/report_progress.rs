//! A worker tells how far an attempt is.
//!
//! The newest report is held in memory and goes to the store with the run's next change, or alone: the first one at once,
//! later ones a second apart, and where many runs report, five. A report that only moves the time is not worth a write.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{MonoMs, Now, ProcessId, Progress, RunId};

use super::super::{AttemptRef, Engine};

/// Between two writes of one run.
const WRITE_EVERY_MS: u64 = 1_000;
/// The same while more than [`FEW`] runs report.
const WRITE_EVERY_OF_MANY_MS: u64 = 5_000;
const FEW: usize = 100;

/// Runs whose progress was written lately, and when it may be written again.
#[derive(Debug, Default)]
pub(in super::super) struct Reports {
    /// Whether there is something new since then.
    lately: BTreeMap<RunId, bool>,
    next: VecDeque<(MonoMs, RunId)>,
}

impl Reports {
    pub(in super::super) fn next_at(&self) -> Option<MonoMs> {
        self.next.front().map(|(at, _)| *at)
    }

    fn wait(&mut self, now: Now, run: RunId) {
        let every = match self.lately.len() {
            ..=FEW => WRITE_EVERY_MS,
            _ => WRITE_EVERY_OF_MANY_MS,
        };
        // In order, however long the others wait.
        let last = self.next.back().map_or(now.mono, |(at, _)| *at);
        self.next.push_back((now.mono.plus(every).max(last), run));
        self.lately.insert(run, false);
    }
}

impl Engine {
    pub(super) fn report_progress(
        &mut self,
        now: Now,
        process: ProcessId,
        attempt: AttemptRef,
        percent: u8,
        message: Option<String>,
    ) {
        let Some(resident) = self.runs.held_by(process, attempt) else {
            return;
        };
        let before = resident.run.progress.as_ref();
        let same = before.is_some_and(|it| it.percent == percent && it.message == message);
        resident.run.progress = Some(Progress {
            percent,
            message,
            at: now.wall,
        });
        if same {
            return;
        }
        match self.reports.lately.get_mut(&attempt.run) {
            Some(news) => *news = true,
            None => {
                self.building.run_updated(attempt.run);
                self.reports.wait(now, attempt.run);
            }
        }
    }

    /// Writes the progress that has waited for long enough.
    pub(in super::super) fn write_progress(&mut self, now: Now) {
        while let Some((at, run)) = self.reports.next.front().copied() {
            if at > now.mono || self.is_full() {
                break;
            }
            self.reports.next.pop_front();
            let news = self.reports.lately.remove(&run).unwrap_or(false);
            let reported = |held: &super::super::runs::Resident| held.run.progress.is_some();
            if news && self.runs.get(run).is_some_and(reported) {
                self.building.run_updated(run);
                self.reports.wait(now, run);
            }
        }
    }
}
