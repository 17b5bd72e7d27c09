//! Gives every due time of a job its fate: a run, or a place in one recorded range of times that made none.
//!
//! `decide` says which; this file carries it out. The cursor moves in the same commit, compared with its old value, so no
//! time is decided twice.

use std::sync::Arc;

use crate::fault::{Fault, armed};
use crate::model::{CatchUp, JobId, Now, Origin, Reason, Run, Unfired, UnfiredReason, WallMs};

use super::Engine;
use super::admit_run::Admission;
use super::decide::{COUNT_CAP, Decision, Fate, Pending, decide_after_end};
use super::jobs::Compiled;
use super::runs::fresh_run;

/// Whether runs that catch up keep their distance.
#[derive(Clone, Copy)]
enum Pace {
    Spaced,
    AtOnce,
}

impl Pace {
    fn of(self, policy: CatchUp) -> CatchUp {
        match self {
            Self::Spaced => policy,
            Self::AtOnce => CatchUp {
                gap_ms: 0,
                ..policy
            },
        }
    }
}

impl Engine {
    /// Decides every nominal time up to now. Does nothing when none is due.
    pub(super) fn fire_job(&mut self, now: Now, id: JobId) {
        self.refresh_plan(id);
        if self.jobs.expect(id).schedule.next_due > Some(now.wall) {
            return;
        }
        self.decide_job(now, id, Pace::Spaced);
    }

    /// The same, with those that are being caught up with: their schedule ends here.
    pub(super) fn fire_all(&mut self, now: Now, id: JobId) {
        self.refresh_plan(id);
        self.decide_job(now, id, Pace::AtOnce);
    }

    fn decide_job(&mut self, now: Now, id: JobId, pace: Pace) {
        let job = self.jobs.expect(id);
        let (Some(oldest), Some(due)) = (job.schedule.next_nominal, job.schedule.next_due) else {
            return;
        };
        let compiled = Arc::clone(&job.compiled);
        let Some(schedule) = &compiled.schedule else {
            return;
        };
        if let Some(delay_ms) = schedule.after_end_ms() {
            if due > now.wall {
                return;
            }
            let fate = decide_after_end((oldest, due), delay_ms, compiled.misfire, now.wall);
            self.carry_out(now, id, fate);
            self.plan_after_end(now, id);
            return;
        }
        // The plan may be older than the calendars or the time-zone data: a time added since lies before it.
        let oldest = schedule
            .next_after(job.schedule.fired_through.0)
            .map_or(oldest, WallMs);
        let decision = Pending {
            job: id,
            schedule,
            oldest,
            paused_through: job.schedule.paused_through,
            misfire: pace.of(compiled.misfire),
            on_resume: pace.of(compiled.on_resume),
            now: now.wall,
        }
        .decide();
        self.carry_out_all(now, id, decision);
    }

    fn carry_out_all(&mut self, now: Now, id: JobId, decision: Decision) {
        for fate in decision.fates {
            if self.jobs.expect(id).is_used_up() {
                break;
            }
            self.carry_out(now, id, fate);
        }
        self.plan_next(id);
        let row = &mut self.jobs.expect_mut(id).schedule;
        if let (Some(due), Some(wait_until)) = (row.next_due, decision.wait_until) {
            row.next_due = Some(due.max(wait_until));
        }
    }

    fn carry_out(&mut self, now: Now, id: JobId, fate: Fate) {
        let last = match fate {
            Fate::Run(nominal) => {
                self.fire_time(now, id, nominal);
                nominal
            }
            Fate::Unfired {
                first,
                last,
                count,
                reason,
            } => {
                self.record_unfired(id, (first, last), count, reason);
                last
            }
        };
        let row = &mut self.jobs.expect_mut(id).schedule;
        row.fired_through = row.fired_through.max(last);
        if row
            .paused_through
            .is_some_and(|paused| paused <= row.fired_through)
        {
            row.paused_through = None;
        }
        self.building.schedule(id);
        self.mark_job(id);
    }

    fn fire_time(&mut self, now: Now, id: JobId, nominal: WallMs) {
        let standing = self.jobs.expect(id).compiled.standing(None);
        let reason = match self.admit(now.wall, id, &standing, false) {
            Admission::Full => UnfiredReason::Overlap,
            Admission::QueueFull => UnfiredReason::QueueFull,
            Admission::Shut(_) => UnfiredReason::Breaker,
            made @ (Admission::Go | Admission::Queue | Admission::Fail) => {
                self.make_occurrence(now, id, nominal, made);
                return;
            }
        };
        self.record_unfired(id, (nominal, nominal), 1, reason);
    }

    fn make_occurrence(&mut self, now: Now, id: JobId, nominal: WallMs, admission: Admission) {
        let run_id = self.segments.run_id(id.segment(), now.wall);
        let server = self.options.server.clone();
        let job = self.jobs.expect_mut(id);
        job.schedule.fires += 1;
        let compiled = Arc::clone(&job.compiled);
        let due = compiled
            .schedule
            .as_ref()
            .map_or(nominal, |schedule| WallMs(schedule.due_of(id.0, nominal.0)));
        let run = Run {
            nominal: Some(nominal),
            due,
            standing: compiled.standing(None),
            ..fresh_run(run_id, job, Origin::Schedule, server, now)
        };
        self.make_admitted(now, run, &compiled, admission);
    }

    /// Makes a run of a job by what was said of it.
    pub(super) fn make_admitted(
        &mut self,
        now: Now,
        mut run: Run,
        compiled: &Arc<Compiled>,
        admission: Admission,
    ) {
        if admission == Admission::Fail {
            let limit = compiled.overlap.limit;
            let words = format!("{limit} of its job had not ended when it was due (overlap: fail)");
            self.create_failed(now, run, compiled, (Reason::Overlap, words));
            return;
        }
        run.standing.queued = admission == Admission::Queue;
        let (job, id, due) = (run.job, run.id, run.due);
        self.create_run(run, compiled);
        if admission == Admission::Go {
            self.note_probe(now, job, id, due);
        }
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
        if !armed(Fault::MisfireNotRecorded) {
            self.building.unfired(range);
        }
        self.mark_job(id);
    }

    /// Gives the times above the cursor up to now one reason for making no run: those of a pause that an edit ends, or
    /// those that an edit overtook.
    pub(super) fn record_passed(&mut self, now: Now, id: JobId, reason: UnfiredReason) {
        let job = self.jobs.expect(id);
        let Some(schedule) = &job.compiled.schedule else {
            return;
        };
        let after = job.schedule.fired_through;
        let (Some(first), Some(last)) = (
            schedule.next_after(after.0),
            schedule.prev_at_or_before(now.wall.0),
        ) else {
            return;
        };
        if first <= last && !job.is_used_up() {
            let count = schedule.count_between(after.0, last, COUNT_CAP);
            self.record_unfired(id, (WallMs(first), WallMs(last)), count, reason);
            self.jobs.expect_mut(id).schedule.fired_through = WallMs(last);
        }
    }
}
