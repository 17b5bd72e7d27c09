//! One job: each time of its schedule has exactly one fate.

use drumtower_core::model::{JobId, Unfired, WallMs};

use super::report::{Class, Report};
use super::scan::Occurrence;

/// A time of the schedule. One that is not required lies on the edge of an edit, a pause or the present: it may have a
/// fate, and need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time {
    pub at: WallMs,
    pub required: bool,
}

pub(super) struct Fates<'a> {
    pub job: JobId,
    /// Nothing is said about times before.
    pub floor: WallMs,
    pub times: Vec<Time>,
    /// In order of time.
    pub fired: &'a [Occurrence],
    /// In order of first time.
    pub unfired: &'a [Unfired],
}

impl Fates<'_> {
    pub fn check(mut self, report: &mut Report) {
        self.times.sort_unstable();
        // A time that two versions hold is required if either of them requires it: sorted last, kept.
        self.times.reverse();
        self.times.dedup_by_key(|time| time.at);
        self.times.reverse();
        self.one_run_a_time(report);
        self.ranges_apart(report);
        self.one_fate(report);
        self.on_schedule(report);
        self.ranges_count(report);
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

    fn one_fate(&self, report: &mut Report) {
        for time in self.times.iter().filter(|time| time.at >= self.floor) {
            report.counts.due_times += u64::from(time.required);
            match (self.run_at(time.at), self.range_at(time.at)) {
                (None, None) if time.required => report.add(Class::Lost, "V1", self.job, || {
                    format!(
                        "its time {} has neither a run nor a place in an unfired range",
                        time.at.0
                    )
                }),
                (Some(run), Some(range)) => report.add(Class::Duplicated, "V1", self.job, || {
                    let (at, first, last) = (time.at.0, range.first.0, range.last.0);
                    format!(
                        "its time {at} has {} and lies in the unfired range {first}..{last}",
                        run.run
                    )
                }),
                _ => {}
            }
        }
    }

    fn on_schedule(&self, report: &mut Report) {
        for run in self.fired.iter().filter(|run| run.nominal > self.floor) {
            if self
                .times
                .binary_search_by_key(&run.nominal, |time| time.at)
                .is_err()
            {
                report.add(Class::Other, "V1", run.run, || {
                    format!("{} has no time {} in its schedule", self.job, run.nominal.0)
                });
            }
        }
    }

    fn ranges_count(&self, report: &mut Report) {
        for range in self.unfired {
            report.counts.unfired_times += range.count;
            if range.first <= self.floor {
                continue;
            }
            let first = self.times.partition_point(|time| time.at < range.first);
            let held = &self.times[first..self.times.partition_point(|time| time.at <= range.last)];
            let required = held.iter().filter(|time| time.required).count() as u64;
            if range.count < required || range.count > held.len() as u64 {
                report.add(Class::Other, "V1", self.job, || {
                    let (count, first, last) = (range.count, range.first.0, range.last.0);
                    format!(
                        "unfired range {first}..{last} says {count} times, the schedule has {}",
                        held.len()
                    )
                });
            }
        }
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
