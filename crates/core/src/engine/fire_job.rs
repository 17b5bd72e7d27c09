//! Gives every due time of a job its fate: a run, or a place in one recorded range of times that made none.
//!
//! Several times pending at one decision: all but the newest are misfires. The newest is on time within
//! min(60 s, period); older than that it still makes the one run that catches up, unless it lies more than an hour back.
//! The cursor moves in the same commit, compared with its old value, so no time is decided twice.

use std::sync::Arc;

use crate::model::{JobId, Now, Origin, Overlap, Run, Unfired, UnfiredReason, WallMs};

use super::Engine;
use super::jobs::Job;
use super::runs::fresh_run;

/// The oldest that a missed time may be and still be caught up.
const CATCH_UP_MS: i64 = 3_600_000;
const GRACE_MS: i64 = 60_000;
/// Counts of times in a range stop here: nobody reads a larger one, and counting holds everything else up.
pub(super) const COUNT_CAP: u64 = 10_000;

enum Fate {
    Run,
    Unfired(UnfiredReason),
}

impl Engine {
    /// Decides every nominal time up to now. Does nothing when none is due.
    pub(super) fn fire_job(&mut self, now: Now, id: JobId) {
        let job = self.jobs.expect(id);
        let (Some(oldest), Some(due)) = (job.schedule.next_nominal, job.schedule.next_due) else {
            return;
        };
        if due > now.wall {
            return;
        }
        let compiled = Arc::clone(&job.compiled);
        let Some(schedule) = &compiled.schedule else {
            return;
        };
        let newest = schedule
            .prev_at_or_before(now.wall.0)
            .map_or(oldest, |newest| oldest.max(WallMs(newest)));
        if newest > oldest {
            let last = schedule
                .prev_at_or_before(newest.0 - 1)
                .map_or(oldest, WallMs);
            let count = schedule.count_between(oldest.0 - 1, last.0, COUNT_CAP);
            self.record_unfired(id, (oldest, last), count, UnfiredReason::Misfire);
        }
        match fate(self.jobs.expect(id), now.wall, newest) {
            Fate::Run => self.make_occurrence(now, id, newest),
            Fate::Unfired(reason) => self.record_unfired(id, (newest, newest), 1, reason),
        }
        let row = &mut self.jobs.expect_mut(id).schedule;
        row.fired_through = newest;
        row.next_nominal = schedule.next_after(newest.0).map(WallMs);
        row.next_due = row.next_nominal;
        self.building.schedule(id);
    }

    fn make_occurrence(&mut self, now: Now, id: JobId, nominal: WallMs) {
        let run_id = self.segments.run_id(id.segment(), now.wall);
        let server = self.options.server.clone();
        let job = self.jobs.expect_mut(id);
        job.schedule.fires += 1;
        let compiled = Arc::clone(&job.compiled);
        let run = Run {
            nominal: Some(nominal),
            due: nominal,
            ..fresh_run(run_id, job, Origin::Schedule, server, now)
        };
        self.create_run(run, &compiled);
    }

    /// Records times that made no run. A range that follows the last one for the same reason makes it longer.
    pub(super) fn record_unfired(
        &mut self,
        id: JobId,
        times: (WallMs, WallMs),
        count: u64,
        reason: UnfiredReason,
    ) {
        let server = self.options.server.clone();
        let job = self.jobs.expect_mut(id);
        let version = job.compiled.version.version;
        let follows = |last: &Unfired| {
            last.reason == reason
                && last.version == version
                && last.last == job.schedule.fired_through
        };
        let range = match job.last_unfired.take().filter(follows) {
            Some(last) => Unfired {
                last: times.1,
                count: last.count.saturating_add(count),
                ..last
            },
            None => Unfired {
                job: id,
                first: times.0,
                last: times.1,
                version,
                count,
                reason,
                server,
            },
        };
        job.last_unfired = Some(range.clone());
        self.building.unfired(range);
    }

    /// Plans a job's schedule from `now` on, after its definition or pause changed.
    pub(super) fn plan_job(&mut self, now: Now, id: JobId) {
        let job = self.jobs.expect_mut(id);
        let active = job.row.paused.is_none() && !job.row.deleted;
        job.schedule.fired_through = job.schedule.fired_through.max(now.wall);
        let schedule = job.compiled.schedule.as_ref().filter(|_| active);
        let after = job.schedule.fired_through.0;
        job.schedule.next_nominal = schedule
            .and_then(|schedule| schedule.next_after(after))
            .map(WallMs);
        job.schedule.next_due = job.schedule.next_nominal;
        self.building.schedule(id);
        self.arm_job(id);
    }
}

fn fate(job: &Job, now: WallMs, nominal: WallMs) -> Fate {
    let age = now.since(nominal);
    let period = job
        .compiled
        .schedule
        .as_ref()
        .and_then(|schedule| schedule.period_at(nominal.0))
        .unwrap_or(GRACE_MS);
    if age > period.min(GRACE_MS) && age > CATCH_UP_MS {
        return Fate::Unfired(UnfiredReason::Misfire);
    }
    match job.compiled.version.spec.overlap {
        Overlap::Skip if job.live_scheduled > 0 => Fate::Unfired(UnfiredReason::Overlap),
        Overlap::Skip | Overlap::Allow => Fate::Run,
    }
}
