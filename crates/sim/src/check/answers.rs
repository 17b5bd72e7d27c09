//! What is told must be so, and stay so.

use drumtower_core::engine::{AttemptRef, Effect, Refusal, Reply, ToWorker, Triggered};
use drumtower_core::model::{JobRecord, Run, RunId};
use drumtower_store::Read;

use crate::client::Deed;
use crate::world::World;

impl World {
    /// An effect is performed: the store must know what it tells.
    pub(crate) fn check_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Send {
                message: ToWorker::Assign(assign),
                ..
            } => self.check_assigned(assign.attempt),
            Effect::Send {
                message: ToWorker::FinishAck { attempt },
                ..
            } => self.check_acknowledged(*attempt),
            Effect::Reply {
                reply: Ok(reply), ..
            } => self.check_reply(reply),
            _ => {}
        }
    }

    fn stored(&self, run: RunId) -> Option<Run> {
        self.reader.run(run).ok().flatten()
    }

    fn check_assigned(&mut self, attempt: AttemptRef) {
        let known = self.stored(attempt.run).is_some_and(|run| {
            let mut attempts = run.attempts.iter();
            attempts.any(|it| it.number == attempt.attempt && it.fence == attempt.fence)
        });
        if !known {
            let words = format!(
                "{} is given out and the store does not know it",
                attempt.run
            );
            self.checks.find("V9", words);
        }
    }

    fn check_acknowledged(&mut self, attempt: AttemptRef) {
        let open = self.stored(attempt.run).is_some_and(|run| {
            let current = run.current_attempt();
            current.is_some_and(|it| it.number == attempt.attempt && it.fence == attempt.fence)
        });
        if open {
            let words = format!(
                "the end of {} is acknowledged and is not stored",
                attempt.run
            );
            self.checks.find("V9", words);
        }
    }

    fn check_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Triggered(results) => {
                for triggered in results.iter().flatten() {
                    self.check_triggered(triggered.run);
                }
            }
            Reply::Run(run) => self.check_cancelled(run),
            Reply::Job { record, .. } => self.check_job(record),
            Reply::Backfill { row, .. } => self.check_backfill_told(row),
            _ => {}
        }
    }

    pub(crate) fn check_triggered(&mut self, run: RunId) {
        if self.stored(run).is_none() {
            let words = format!("a caller is told of {run}, which the store does not know");
            self.checks.find("V9", words);
        }
    }

    pub(crate) fn check_cancelled(&mut self, run: &Run) {
        let kept = self
            .stored(run.id)
            .is_some_and(|stored| stored.cancel.is_some() || stored.state.is_terminal());
        if !kept {
            let words = format!(
                "a caller is told that {} is to be cancelled, which is not stored",
                run.id
            );
            self.checks.find("V9", words);
        }
    }

    pub(crate) fn check_job(&mut self, record: &JobRecord) {
        let stored = self.reader.job(record.row.id).ok().flatten();
        let kept = stored.is_some_and(|stored| stored.row.revision >= record.row.revision);
        if !kept {
            let words = format!(
                "a caller is told of revision {} of {}, which is not stored",
                record.row.revision, record.row.name
            );
            self.checks.find("V9", words);
        }
    }

    /// A key that was used for one request made no run for another.
    pub(crate) fn check_misused(&mut self, results: &[Result<Triggered, Refusal>]) {
        for taken in results.iter().flatten() {
            let words = format!("{} was made under a key of another request", taken.run);
            self.checks.find("V2", words);
        }
    }

    /// A run that is there may not be denied.
    pub(crate) fn check_refusal(&mut self, deed: &Deed, refusal: &Refusal) {
        if let (Deed::Cancel(_), Refusal::NoSuchRun(run)) = (deed, refusal)
            && self.stored(*run).is_some()
        {
            self.checks
                .find("V9", format!("{run} is there and was denied"));
        }
    }
}
