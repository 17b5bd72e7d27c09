//! Which version's schedule was in force when.
//!
//! Times up to an edit belong to the version before it. A version that cannot be compiled any more has no times of its
//! own; what is recorded is told all the same.

use crate::model::{CatchUp, JobId, JobRecord, JobVersion, MisfirePolicy, WallMs};
use crate::schedule::{Calendars, Excluded, Schedule, parse_duration};

/// The latest that a time is decided when nothing is missed.
pub(super) const GRACE_MS: i64 = 60_000;

/// The times after one instant, through another, that one version decides.
pub(super) struct Reign<'a> {
    pub(super) after: WallMs,
    pub(super) through: WallMs,
    pub(super) version: &'a JobVersion,
    schedule: Option<Schedule>,
    job: JobId,
    /// The one time that a schedule which counts from the end of the last run has planned.
    planned: Option<WallMs>,
}

impl<'a> Reign<'a> {
    pub(super) fn compile(
        record: &JobRecord,
        versions: &'a [JobVersion],
        calendars: &dyn Calendars,
    ) -> Vec<Self> {
        let mut reigns: Vec<Self> = Vec::new();
        for version in versions {
            let begins = reigns
                .last()
                .map_or(version.created, |last| version.created.max(last.after));
            if let Some(last) = reigns.last_mut() {
                last.through = begins;
            }
            let schedule = version.spec.compiled_schedule(calendars).ok().flatten();
            let planned = schedule.as_ref().and_then(Schedule::after_end_ms);
            reigns.push(Self {
                after: begins,
                through: WallMs(i64::MAX),
                version,
                planned: planned.and(record.schedule.next_nominal),
                schedule,
                job: record.row.id,
            });
        }
        reigns
    }

    pub(super) fn next_after(&self, t: WallMs) -> Option<WallMs> {
        let after = t.max(self.after);
        let next = match self.planned {
            Some(planned) => Some(planned).filter(|planned| *planned > after),
            None => self.schedule.as_ref()?.next_after(after.0).map(WallMs),
        };
        next.filter(|next| *next <= self.through)
    }

    pub(super) fn last_until(&self, t: WallMs) -> Option<WallMs> {
        let until = t.min(self.through);
        let last = match self.planned {
            Some(planned) => Some(planned).filter(|planned| *planned <= until),
            None => self
                .schedule
                .as_ref()?
                .prev_at_or_before(until.0)
                .map(WallMs),
        };
        last.filter(|last| *last > self.after)
    }

    pub(super) fn count(&self, after: WallMs, through: WallMs, cap: u64) -> u64 {
        let (after, through) = (after.max(self.after), through.min(self.through));
        if after >= through {
            return 0;
        }
        match (self.planned, &self.schedule) {
            (Some(planned), _) => u64::from(planned > after && planned <= through),
            (None, Some(schedule)) => schedule.count_between(after.0, through.0, cap),
            (None, None) => 0,
        }
    }

    /// What is taken away from the schedule in `(after, through]`, in order.
    pub(super) fn excluded(&self, after: WallMs, through: WallMs, limit: usize) -> Vec<Excluded> {
        let (after, through) = (after.max(self.after), through.min(self.through));
        match &self.schedule {
            Some(schedule) if after < through => {
                schedule.excluded_between(after.0, through.0, limit)
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn due_of(&self, nominal: WallMs) -> WallMs {
        let due = |schedule: &Schedule| WallMs(schedule.due_of(self.job.0, nominal.0));
        self.schedule.as_ref().map_or(nominal, due)
    }

    pub(super) fn max_fires(&self) -> Option<u64> {
        self.schedule.as_ref().and_then(Schedule::max_fires)
    }

    pub(super) fn misfire(&self) -> CatchUp {
        let given = self.version.spec.parsed_misfire();
        given.unwrap_or(CatchUp::with(MisfirePolicy::Latest))
    }

    pub(super) fn latest_ms(&self) -> i64 {
        let spec = &self.version.spec;
        let window = |parsed: Result<CatchUp, _>| parsed.map_or(0, |parsed| parsed.window_ms);
        let jitter = spec.jitter.as_deref().map(parse_duration);
        let jitter = jitter.and_then(Result::ok).unwrap_or(0);
        let late = window(spec.parsed_misfire()).max(window(spec.parsed_on_resume()));
        late.max(GRACE_MS)
            .saturating_add(i64::try_from(jitter).unwrap_or(i64::MAX))
    }
}
