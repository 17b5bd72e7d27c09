//! Schedules that count from the end of the last run: they have no times that could be computed, so each is held against
//! the run before it.

use drumtower_core::model::{JobRecord, Unfired, WallMs};

use super::life::Life;
use super::options::Options;
use super::report::{Class, Report};
use super::scan::Occurrence;

pub(super) struct Chain<'a> {
    pub record: &'a JobRecord,
    pub life: &'a Life,
    /// In order of time.
    pub fired: &'a [Occurrence],
    /// In order of first time.
    pub unfired: &'a [Unfired],
    pub now: WallMs,
    pub options: &'a Options,
}

impl Chain<'_> {
    pub fn check(&self, report: &mut Report) {
        let delay_of = |run: &Occurrence| self.life.chapter(run.version)?.plan.after_end_ms();
        for pair in self.fired.windows(2) {
            let (before, run) = (&pair[0], &pair[1]);
            if let (Some(_), Some(_)) = (delay_of(before), delay_of(run)) {
                self.one_at_a_time(before, run, report);
                self.after_the_delay(before, run, report);
            }
        }
        self.goes_on(report);
    }

    fn one_at_a_time(&self, before: &Occurrence, run: &Occurrence, report: &mut Report) {
        // Both are the server's word, and its clock may have been set back in between.
        let made = run.created.plus(self.options.clock_back_ms);
        if before.ended > made {
            report.add(Class::Duplicated, "V11", run.run, || {
                let ended = match before.ended {
                    Occurrence::LIVE => "has not ended".to_owned(),
                    ended => format!("ended at {}", ended.0),
                };
                let (made, before) = (run.created.0, before.run);
                format!("it was made at {made} while {before} was live, which {ended}")
            });
        }
    }

    fn after_the_delay(&self, before: &Occurrence, run: &Occurrence, report: &mut Report) {
        if before.ended == Occurrence::LIVE {
            return;
        }
        let versions = before.version.min(run.version)..=before.version.max(run.version);
        let mut chapters = self
            .life
            .chapters
            .iter()
            .filter(|chapter| versions.contains(&chapter.version));
        // Another kind of schedule in between counts from nothing.
        let delay = chapters
            .try_fold(i64::MAX, |least, chapter| {
                Some(least.min(chapter.plan.after_end_ms()?))
            })
            .unwrap_or(0);
        let earliest = before.ended.plus(delay);
        if run.nominal.plus(self.options.clock_back_ms) < earliest {
            report.add(Class::Early, "V3", run.run, || {
                let (at, ended) = (run.nominal.0, before.ended.0);
                format!(
                    "its time is {at}, {} ended at {ended} and the delay is {delay} ms",
                    before.run
                )
            });
        }
        // A clock that was set back does not make times go back.
        let expected = earliest.max(before.nominal.plus(1));
        if run.nominal > expected && !self.disturbed(before, run) {
            report.add(Class::Other, "V4", run.run, || {
                let at = run.nominal.0;
                format!(
                    "its time is {at}, and should be {} after {}",
                    expected.0, before.run
                )
            });
        }
    }

    /// Whether an edit, a pause or a time that made no run may have put the next one off.
    fn disturbed(&self, before: &Occurrence, run: &Occurrence) -> bool {
        let row = &self.record.row;
        let paused = row.revision > u64::from(row.version) + u64::from(row.deleted);
        let ranges = self
            .unfired
            .iter()
            .any(|range| range.last >= before.nominal && range.first <= run.nominal);
        paused || ranges || before.version != run.version
    }

    /// An active job without a live run has a next time, and it has not long passed.
    fn goes_on(&self, report: &mut Report) {
        let (row, schedule) = (&self.record.row, &self.record.schedule);
        let Some(plan) = self.life.chapter(row.version).map(|chapter| &chapter.plan) else {
            return;
        };
        let used_up = plan.max_fires().is_some_and(|max| schedule.fires >= max);
        let live = self.fired.iter().any(|run| run.ended == Occurrence::LIVE);
        if plan.after_end_ms().is_none() || row.paused.is_some() || row.deleted || used_up || live {
            return;
        }
        match schedule.next_due {
            None => report.add(Class::Lost, "V1", row.id, || {
                "it is active, none of its runs is live, and it has no next time".to_owned()
            }),
            Some(due) if due < self.now.plus(-self.options.grace_ms) => {
                report.add(Class::Lost, "V1", row.id, || {
                    format!("its next time {} has passed and made nothing", due.0)
                });
            }
            Some(_) => {}
        }
    }
}
