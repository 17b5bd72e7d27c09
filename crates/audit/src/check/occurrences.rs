//! One job: each time of its schedule has exactly one fate.
//!
//! A job of every second that was paused for a year has one range and 31 million times. So a range is counted only until
//! it is certain that it holds as many times as it says, and what lies in a range is not asked for its fate again.

use drumtower_core::model::{JobId, Unfired, WallMs};

use super::life::{Chapter, Life};
use super::options::Options;
use super::report::{Class, Report};
use super::scan::Occurrence;

/// From here on the count of a range is only a lower bound.
const COUNTED: u64 = 10_000;
/// So many times are listed to count those of one range, and so many windows looked at for them.
const LISTED: u64 = 20_000;
const WINDOWS: u64 = 5_000;
/// After so many lost times nobody needs to see the next.
const LOST: u64 = 100_000;

pub(super) struct Fates<'a> {
    pub job: JobId,
    pub life: &'a Life,
    /// In order of time.
    pub fired: &'a [Occurrence],
    /// In order of first time.
    pub unfired: &'a [Unfired],
    pub options: &'a Options,
}

impl Fates<'_> {
    pub fn check(&self, report: &mut Report) {
        self.one_run_a_time(report);
        self.ranges_apart(report);
        let mut lost = 0;
        for chapter in &self.life.chapters {
            self.none_lost(chapter, &mut lost, report);
        }
        self.on_schedule(report);
        for run in self.told() {
            self.one_fate(run, report);
            self.due_in_bounds(run, report);
        }
        for range in self.unfired {
            self.range_counts(range, report);
        }
    }

    /// Runs that lie in the time that something is said about.
    fn told(&self) -> impl Iterator<Item = &Occurrence> {
        self.fired
            .iter()
            .filter(|run| run.nominal > self.life.floor)
    }

    fn one_run_a_time(&self, report: &mut Report) {
        for pair in self
            .fired
            .windows(2)
            .filter(|pair| pair[0].nominal == pair[1].nominal)
        {
            report.add(Class::Duplicated, "V2", pair[1].run, || {
                format!(
                    "{} of {} already stands for {}",
                    pair[0].run, self.job, pair[0].nominal.0
                )
            });
        }
    }

    fn ranges_apart(&self, report: &mut Report) {
        for pair in self
            .unfired
            .windows(2)
            .filter(|pair| pair[0].last >= pair[1].first)
        {
            report.add(Class::Duplicated, "V1", self.job, || {
                let (a, b) = (&pair[0], &pair[1]);
                format!(
                    "unfired ranges {}..{} and {}..{} overlap",
                    a.first.0, a.last.0, b.first.0, b.last.0
                )
            });
        }
    }

    /// Each time that needs a fate and lies in no range has a run.
    fn none_lost(&self, chapter: &Chapter, lost: &mut u64, report: &mut Report) {
        let (first, end) = self.life.required_in(chapter);
        let mut at = first.max(self.life.floor);
        let window = self.life.window_ms();
        while at <= end {
            if let Some(range) = self.range_at(at) {
                at = range.last.plus(1);
                continue;
            }
            if *lost >= LOST {
                report.counts.sampled_spans += 1;
                return;
            }
            let next_range = self.unfired.partition_point(|range| range.first <= at);
            let before = self.unfired.get(next_range).map(|range| range.first);
            let through = end
                .min(at.plus(window))
                .min(before.map_or(end, |first| first.plus(-1)));
            for time in self.life.certain_times(chapter, at, through) {
                report.counts.due_times += 1;
                if self.run_at(time).is_none() {
                    *lost += 1;
                    report.add(Class::Lost, "V1", self.job, || {
                        format!(
                            "its time {} has neither a run nor a place in an unfired range",
                            time.0
                        )
                    });
                }
            }
            at = through.plus(1);
        }
    }

    /// Each run stands for a time of the schedule. They are held against it window by window.
    fn on_schedule(&self, report: &mut Report) {
        let first = self
            .fired
            .partition_point(|run| run.nominal <= self.life.floor);
        let mut rest = &self.fired[first..];
        while let Some(first) = rest.first() {
            let end = first.nominal.plus(self.life.window_ms());
            let (group, after) = rest.split_at(rest.partition_point(|run| run.nominal <= end));
            rest = after;
            let Some(last) = group.last() else { return };
            let times = self.life.times(first.nominal, last.nominal);
            for run in group {
                let found = times.binary_search_by_key(&run.nominal, |time| time.at);
                if found.is_err() && !self.life.follows_ends(run.nominal) {
                    report.add(Class::Other, "V1", run.run, || {
                        format!("{} has no time {} in its schedule", self.job, run.nominal.0)
                    });
                }
            }
        }
    }

    fn one_fate(&self, run: &Occurrence, report: &mut Report) {
        if let Some(range) = self.range_at(run.nominal) {
            report.add(Class::Duplicated, "V1", self.job, || {
                let (at, first, last) = (run.nominal.0, range.first.0, range.last.0);
                format!(
                    "its time {at} has {} and lies in the unfired range {first}..{last}",
                    run.run
                )
            });
        }
    }

    /// A run is made when it is due, and due at its time or within the jitter after it, before the next time.
    fn due_in_bounds(&self, run: &Occurrence, report: &mut Report) {
        let (nominal, due) = (run.nominal, run.due);
        if run.created.plus(self.options.clock_bound_ms) < due {
            report.add(Class::Early, "V3", run.run, || {
                format!("it is due at {} and was made at {}", due.0, run.created.0)
            });
        }
        if due < nominal {
            report.add(Class::Early, "V3", run.run, || {
                format!("it is due at {}, before its time {}", due.0, nominal.0)
            });
        }
        if due <= nominal {
            return;
        }
        let own = self.life.chapter(run.version);
        let jitter = self
            .life
            .chapters_at(nominal)
            .chain(own)
            .map(|chapter| chapter.plan.jitter_ms())
            .max();
        if due.since(nominal) >= jitter.unwrap_or(0).max(1) {
            report.add(Class::Other, "V4", run.run, || {
                format!("it is due {} ms after its time", due.since(nominal))
            });
            return;
        }
        // What the next time is depends on calendars: whoever edits one moves it.
        const EDIT_MS: i64 = 86_400_000;
        let plan = own.map(|chapter| &chapter.plan);
        let next = plan
            .filter(|plan| !plan.changes_within(nominal.plus(-EDIT_MS), due.plus(EDIT_MS)))
            .and_then(|plan| plan.times(nominal.plus(1), due).first().copied());
        if let Some(next) = next {
            report.add(Class::Other, "V4", run.run, || {
                format!(
                    "it is due at {}, not before the next time {}",
                    due.0, next.0
                )
            });
        }
    }

    /// A range begins and ends at a time of the schedule and holds as many as it says; of 10,000 and more, at least so many.
    fn range_counts(&self, range: &Unfired, report: &mut Report) {
        report.counts.unfired_times = report.counts.unfired_times.saturating_add(range.count);
        if range.first <= self.life.floor || self.life.follows_ends(range.first) {
            return;
        }
        let (first, last) = (range.first.0, range.last.0);
        for end in [range.first, range.last] {
            if !self.life.has(end) {
                report.add(Class::Other, "V1", self.job, || {
                    format!(
                        "unfired range {first}..{last} ends at {}, which is no time of its schedule",
                        end.0
                    )
                });
                return;
            }
        }
        let seen = self.count(range);
        report.counts.due_times += seen.required;
        report.counts.sampled_spans += u64::from(seen.cut);
        let too_few = range.count < seen.required && range.count < COUNTED;
        let too_many = range.count > seen.times && !seen.cut;
        if too_few || too_many {
            report.add(Class::Other, "V1", self.job, || {
                let (count, seen) = (range.count, seen.times);
                format!("unfired range {first}..{last} says {count} times, the schedule has {seen}")
            });
        }
    }

    fn count(&self, range: &Unfired) -> Seen {
        let mut seen = Seen::default();
        let mut at = range.first;
        for _ in 0..WINDOWS {
            let through = range.last.min(at.plus(self.life.window_ms()));
            for time in self.life.times(at, through) {
                seen.times += 1;
                seen.required += u64::from(time.required);
            }
            at = through.plus(1);
            let done = at > range.last;
            if done || seen.times >= LISTED {
                seen.cut = !done;
                return seen;
            }
        }
        seen.cut = true;
        seen
    }

    fn run_at(&self, at: WallMs) -> Option<&Occurrence> {
        let index = self
            .fired
            .binary_search_by_key(&at, |run| run.nominal)
            .ok()?;
        self.fired.get(index)
    }

    fn range_at(&self, at: WallMs) -> Option<&Unfired> {
        let after = self.unfired.partition_point(|range| range.first <= at);
        self.unfired[..after]
            .last()
            .filter(|range| at <= range.last)
    }
}

/// How many times of a range were seen, and whether there may be more.
#[derive(Default)]
struct Seen {
    times: u64,
    required: u64,
    cut: bool,
}
