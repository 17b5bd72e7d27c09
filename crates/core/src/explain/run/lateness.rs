//! How late a run started, and where the time went.

use crate::model::{Run, WallMs};

use super::words::span;

/// What nobody minds.
const TOLERATED_MS: i64 = 1_000;

/// Where the time between due and start went; each part is one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lateness {
    total: u64,
    /// Until the server made the run.
    unmade: u64,
    /// Until it was given to a worker.
    in_line: u64,
    /// Until it began there.
    starting: u64,
}

impl Lateness {
    /// `None` for a run that has not started, or in time.
    pub(super) fn of(run: &Run) -> Option<Self> {
        let started = run.attempts.iter().find_map(|attempt| attempt.started)?;
        let total = started.since(run.due);
        if total < TOLERATED_MS {
            return None;
        }
        let assigned = run.attempts.first()?.assigned;
        let ready = run.created.max(run.due);
        let part = |from: WallMs, to: WallMs| u64::try_from(to.since(from)).unwrap_or(0);
        Some(Self {
            total: u64::try_from(total).unwrap_or(0),
            unmade: part(run.due, run.created),
            in_line: part(ready, assigned),
            starting: part(assigned.max(ready), started),
        })
    }

    pub(super) fn total(self) -> String {
        span(self.total)
    }

    pub(super) fn text(self) -> String {
        let parts = [
            (
                self.unmade,
                "until the server made the run, which means that it was down or behind, or the job was paused",
            ),
            (
                self.in_line,
                "waiting for its turn or for a worker with room",
            ),
            (self.starting, "from the first assignment to the start"),
        ];
        let told = parts.iter().filter(|(ms, _)| *ms >= 100);
        let told: Vec<String> = told
            .map(|(ms, what)| format!("{} {what}", span(*ms)))
            .collect();
        format!(
            "That was {} after its due time: {}.",
            self.total(),
            told.join("; ")
        )
    }
}
