//! How late the engine is: how long the oldest thing has waited that it could have seen to.
//!
//! That is a job whose time has come and that has not fired, or a run that no limit holds back and that no worker has been
//! given, be it that none is there, that all are full, or that the engine has not come to it. Only the front of each line is
//! looked at, where the oldest is; what the store holds beyond it came later.

use crate::model::{Now, WallMs};

use super::Engine;

impl Engine {
    pub(super) fn lag_ms(&self, raw: Now) -> u64 {
        let now = self.believed(raw);
        let jobs = self.late_jobs();
        let due = jobs.filter_map(|job| self.jobs.get(job)?.schedule.next_due);
        let heads = self.lines.all().flat_map(|(_, line)| line.firsts());
        let ready = heads.filter_map(|run| Some(self.runs.get(run)?.run.ready()));
        let oldest: Option<WallMs> = due.chain(ready).min();
        let lag = oldest.map_or(0, |since| now.wall.0.saturating_sub(since.0));
        u64::try_from(lag).unwrap_or(0)
    }
}
