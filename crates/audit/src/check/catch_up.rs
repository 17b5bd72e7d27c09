//! V10: how many missed times one decision makes up for, how old they may be, and how many runs a schedule makes in all.
//!
//! Runs of one version of a job that were made at the same millisecond were made by one decision: a decision leaves
//! nothing that is due, but an edit may follow it at once, and then another. All but the newest of them, and the newest
//! when it is older than its grace, were made up for. When a job was paused nobody has written down; so of a job that
//! ever was, a run may be one of `misfire` or one of `on_resume`.

use drumtower_core::model::JobRecord;

use super::life::{CatchUp, Chapter, Life};
use super::options::Options;
use super::report::{Class, Report};
use super::scan::Occurrence;

/// The longest that a time counts as on time.
const GRACE_MS: i64 = 60_000;

pub(super) struct Decisions<'a> {
    pub record: &'a JobRecord,
    pub life: &'a Life,
    /// In order of time.
    pub fired: &'a [Occurrence],
    pub options: &'a Options,
}

impl Decisions<'_> {
    pub fn check(&self, report: &mut Report) {
        let mut made: Vec<&Occurrence> = self
            .fired
            .iter()
            .filter(|run| run.nominal > self.life.floor)
            .collect();
        let decided = |run: &Occurrence| (run.created, run.version);
        made.sort_by_key(|run| (decided(run), run.nominal));
        let one = |a: &Occurrence, b: &Occurrence| decided(a) == decided(b) && !self.in_turn(a);
        for decision in made.chunk_by(|a, b| one(a, b)) {
            self.decision(decision, report);
        }
        self.not_while_paused(&made, report);
        self.fires(report);
    }

    /// Whether its schedule counts from the end of the run before: no decision makes two of them, and those that bear one
    /// millisecond were made by a clock that was set back in between.
    fn in_turn(&self, run: &Occurrence) -> bool {
        let chapter = self.life.chapter(run.version);
        chapter.is_some_and(|chapter| chapter.plan.after_end_ms().is_some())
    }

    fn decision(&self, runs: &[&Occurrence], report: &mut Report) {
        let Some((newest, older)) = runs.split_last() else {
            return;
        };
        let Some(chapter) = self.life.chapter(newest.version) else {
            return;
        };
        let policies = self.policies(chapter);
        let most: u64 = policies.iter().map(|policy| policy.runs).sum();
        let window = policies
            .iter()
            .filter(|policy| policy.runs > 0)
            .map(|policy| policy.window_ms)
            .max();
        let window = window
            .unwrap_or(0)
            .saturating_add(self.options.clock_bound_ms);
        let age = |run: &Occurrence| run.created.since(run.due);
        let mut made_up = older.len() as u64;
        // Whether the newest was on time need not be known if it may be late.
        let newest_fits = made_up < most && age(newest) <= window;
        if !newest_fits && !self.on_time(newest, chapter) {
            made_up += 1;
            if most > 0 && age(newest) > window {
                self.too_old(newest, window, report);
            }
        }
        if made_up > most {
            report.add_many(made_up - most, Class::Other, "V10", newest.run, || {
                format!(
                    "it was made at {} for {}, in a decision that made up for {made_up} times of {}; its policy allows {most}",
                    newest.created.0, newest.nominal.0, self.record.row.id
                )
            });
        }
        for run in older.iter().filter(|run| most > 0 && age(run) > window) {
            self.too_old(run, window, report);
        }
    }

    fn too_old(&self, run: &Occurrence, window: i64, report: &mut Report) {
        report.add(Class::Other, "V10", run.run, || {
            format!(
                "it was made {} ms after it was due, the window is {window} ms",
                run.created.since(run.due)
            )
        });
    }

    /// Every edit raises version and revision, a pause and its end only the revision.
    fn policies(&self, chapter: &Chapter) -> Vec<CatchUp> {
        let row = &self.record.row;
        let edits = u64::from(row.version) + u64::from(row.deleted);
        if row.revision > edits {
            vec![chapter.misfire, chapter.on_resume]
        } else {
            vec![chapter.misfire]
        }
    }

    fn on_time(&self, run: &Occurrence, chapter: &Chapter) -> bool {
        let bound = self.options.clock_bound_ms;
        let late = run.created.since(run.due);
        if late > GRACE_MS + bound {
            return false;
        }
        let period = match chapter.plan.after_end_ms() {
            Some(delay) => Some(delay),
            None => chapter
                .plan
                .times(run.nominal.plus(1), run.nominal.plus(GRACE_MS))
                .first()
                .map(|next| next.since(run.nominal)),
        };
        late <= period.unwrap_or(GRACE_MS).min(GRACE_MS) + bound
    }

    fn not_while_paused(&self, made: &[&Occurrence], report: &mut Report) {
        let Some(pause) = &self.record.row.paused else {
            return;
        };
        let since = pause.at.plus(self.options.clock_step_ms);
        let first = made.partition_point(|run| run.created <= since);
        for run in &made[first..] {
            report.add(Class::Other, "V10", run.run, || {
                format!(
                    "it was made by its schedule at {}, the job is paused since {}",
                    run.created.0, pause.at.0
                )
            });
        }
    }

    /// A schedule makes no more runs than it may in the life of the job, by its row and by the runs that are there.
    fn fires(&self, report: &mut Report) {
        let found = self.fired.len() as u64;
        let counted = self.record.schedule.fires;
        if found > counted {
            report.add(Class::Other, "V8", self.record.row.id, || {
                format!("its schedule made {counted} runs by its row, {found} are there")
            });
        }
        if self
            .life
            .chapters
            .iter()
            .all(|c| c.plan.max_fires().is_none())
        {
            return;
        }
        // Ids grow in the order in which runs are made, whatever clocks do.
        let mut made: Vec<&Occurrence> = self.fired.iter().collect();
        made.sort_unstable_by_key(|run| run.run);
        for (before, run) in made.into_iter().enumerate() {
            let chapter = self.life.chapter(run.version);
            let max = chapter.and_then(|chapter| chapter.plan.max_fires());
            if let Some(max) = max.filter(|max| before as u64 >= *max) {
                report.add(Class::Other, "V10", run.run, || {
                    format!("{before} runs were made before it, its schedule may make {max}")
                });
            }
        }
    }
}
