//! Runs that are over in a moment are given to one worker several in a row.
//!
//! What leaves for one worker after a commit leaves in one message, and what it tells of the ends comes back in one. With
//! thousands of workers, strict rotation would give each run a message of its own, which costs both sides many times what the
//! run does. So runs of a job whose attempts are [brief](Pace::is_brief) go to the worker of the one before them, up to
//! [`ROW`] of them, if that one has room and they are given out for the same commit. Then it is the next worker's turn.
//!
//! What is known of a job's pace is gone with the job's place in memory; it is rotated strictly until the first attempt ends.
//! A run that takes longer than a moment is never put behind another.

use crate::model::ProcessId;

/// How many brief runs one worker is given before the next has its turn.
const ROW: u32 = 8;
/// Up to this a run is over before a row of them could have been spread: a few commits.
const BRIEF_US: u64 = 10_000;
/// How much of what was known counts beside what is new: seven to one.
const MEMORY: u64 = 8;

/// How long the attempts of a job take, the last ones counting most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    typical_us: Option<u64>,
}

impl Pace {
    pub(super) fn note(&mut self, duration_ms: u64) {
        let took = duration_ms.saturating_mul(1000).min(u64::MAX / MEMORY);
        self.typical_us = Some(match self.typical_us {
            None => took,
            Some(known) => known - known / MEMORY + took / MEMORY,
        });
    }

    pub(super) fn is_brief(self) -> bool {
        self.typical_us.is_some_and(|typical| typical < BRIEF_US)
    }
}

/// The worker that is given runs in a row, for one commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    process: ProcessId,
    /// The commits that were taken before the one that is built.
    taken: u64,
    left: u32,
}

impl Row {
    /// `process` was given a run, and may be given more.
    pub(super) fn behind(process: ProcessId, taken: u64) -> Self {
        Self {
            process,
            taken,
            left: ROW - 1,
        }
    }

    /// Who is to have the next run, if it is given out for the same commit.
    pub(super) fn next(&mut self, taken: u64) -> Option<ProcessId> {
        let goes_on = self.taken == taken && self.left > 0;
        goes_on.then(|| {
            self.left -= 1;
            self.process
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_brief_when_it_was_lately() {
        let mut pace = Pace::default();
        assert!(!pace.is_brief(), "nothing is known");
        pace.note(0);
        assert!(pace.is_brief());
        pace.note(1_000);
        assert!(!pace.is_brief(), "one long run is enough");
        (0..50).for_each(|_| pace.note(1));
        assert!(pace.is_brief());
        pace.note(u64::MAX);
        assert!(!pace.is_brief());
    }

    #[test]
    fn a_row_ends_by_number_and_with_its_commit() {
        let worker = ProcessId(7);
        let mut row = Row::behind(worker, 3);
        let given = std::iter::from_fn(|| row.next(3)).count();
        assert_eq!(given as u32, ROW - 1);
        assert_eq!(Row::behind(worker, 3).next(4), None);
    }
}
