//! The times that entries name and that make no occurrence, or happen at another time, and why.
//!
//! Nothing of this is recorded anywhere: it follows from the schedule, and is computed when somebody asks. Each entry is
//! answered for by itself. Times next to each other with the same reason are one row, found by counting days, so that a
//! year of excluded seconds is no more work than a year of excluded days.

use crate::model::CalendarName;

use super::at::At;
use super::civil::text;
use super::cron::Cron;
use super::cron::lapses::{Lapse, LapseKind};
use super::eras::{Eras, days_around};
use super::filter::Filter;
use super::interval::Interval;
use super::spec::{DstFold, DstGap};
use super::zone::{FIRST_SECOND, Zone};
use super::{Entry, Schedule};

/// Times of one entry that share a reason, with none between them that happened or has another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excluded {
    /// Which entry of the list names them, from 1.
    pub entry: usize,
    /// When they would have happened. For times that clocks skip: the instant of the change.
    pub first: i64,
    pub last: i64,
    pub count: u64,
    /// What clocks show then, or would have, such as `2026-03-29T02:30:00`, in `timezone`.
    pub local_first: String,
    pub local_last: String,
    pub timezone: String,
    pub why: Exclusion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusion {
    /// The day does not count. A roll moves its times; `rolled_to` is when the first of the day happens instead.
    Calendar {
        name: CalendarName,
        rolled_to: Option<i64>,
    },
    /// Clocks skip it.
    DstGapSkipped,
    /// Clocks skip it, and the first of the times happens then instead.
    DstGapMoved {
        to: i64,
    },
    /// Clocks show it twice, and this pass was not chosen.
    FoldNotChosen,
    BeforeStart,
    AfterEnd,
}

/// Times in `(after, through]` under the calendars of one era.
struct Slice<'a> {
    after: i64,
    through: i64,
    filter: Option<Filter<'a>>,
}

impl Schedule {
    /// What the entries name in `(after, through]` without an occurrence at that time, in the order of `first`; the first
    /// `cap` rows of it.
    pub fn excluded_between(&self, after: i64, through: i64, cap: usize) -> Vec<Excluded> {
        let mut rows = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let ask = Ask {
                schedule: self,
                entry,
                number: index + 1,
                cap,
            };
            rows.extend(ask.rows(after, through));
        }
        rows.sort_by_key(|row| (row.first, row.entry));
        rows.truncate(cap);
        rows
    }

    fn slices(&self, after: i64, through: i64) -> Vec<Slice<'_>> {
        let eras = self.rest.as_ref().and_then(|rest| rest.eras.as_ref());
        let mut slices = Vec::new();
        let mut after = after;
        while after < through {
            let span = eras.map(|eras| eras.span(after + 1));
            let last = span.map_or(through, |span| span.last.min(through));
            let filter = eras
                .zip(span)
                .map(|(eras, span)| eras.filter(span, after + 1, last));
            slices.push(Slice {
                after,
                through: last,
                filter,
            });
            after = last;
        }
        slices
    }

    fn has(&self, t: i64) -> bool {
        self.prev_at_or_before(t) == Some(t)
    }
}

/// One entry of a schedule, asked about.
struct Ask<'a> {
    schedule: &'a Schedule,
    entry: &'a Entry,
    number: usize,
    cap: usize,
}

impl Ask<'_> {
    fn rows(&self, after: i64, through: i64) -> Vec<Excluded> {
        let (start, end) = match &self.schedule.rest {
            Some(rest) => (rest.start, rest.end),
            None => (i64::MIN, i64::MAX),
        };
        let mut rows = Vec::new();
        let before_start = through.min(start.saturating_sub(1));
        rows.extend(self.out_of_bounds(after, before_start, Exclusion::BeforeStart));
        let last = end.saturating_sub(1);
        let after_start = after.max(start.saturating_sub(1));
        for slice in self.schedule.slices(after_start, through.min(last)) {
            if rows.len() >= self.cap {
                break;
            }
            match self.entry {
                Entry::Cron(cron) => self.cron_rows(cron, &slice, &mut rows),
                Entry::Every(interval) => self.interval_rows(interval, &slice, &mut rows),
                Entry::Local(at) => self.at_rows(at, &slice, &mut rows),
                Entry::At(_) => {}
            }
        }
        if end < i64::MAX {
            rows.extend(self.out_of_bounds(after.max(last), through, Exclusion::AfterEnd));
        }
        rows
    }

    fn out_of_bounds(&self, after: i64, through: i64, why: Exclusion) -> Option<Excluded> {
        let mut found: Option<(i64, i64, u64)> = None;
        for slice in self.schedule.slices(after, through) {
            let filter = slice.filter.as_ref();
            let from = slice.after.saturating_add(1);
            let next = self.entry.next_from(from, filter);
            let Some(next) = next.filter(|at| *at <= slice.through) else {
                continue;
            };
            let last = self.entry.prev_from(slice.through, filter).unwrap_or(next);
            let count = self.entry.count(slice.after, slice.through, filter);
            found = Some(match found {
                Some((first, _, sum)) => (first, last, sum.saturating_add(count)),
                None => (next, last, count),
            });
        }
        let (first, last, count) = found?;
        Some(self.row(first, last, count, why))
    }

    fn cron_rows(&self, cron: &Cron, slice: &Slice<'_>, rows: &mut Vec<Excluded>) {
        let lapses = cron.lapses(slice.after, slice.through, slice.filter.as_ref(), self.cap);
        rows.extend(lapses.into_iter().map(|lapse| self.lapse_row(lapse)));
        let (Some(filter), Some(eras)) = (&slice.filter, self.eras()) else {
            return;
        };
        let limit = rows.len() + self.cap;
        let (first, last) = days_around(slice.after, slice.through);
        let named = |from: i32| cron.named_day(from).filter(|day| *day <= last);
        let mut next = named(first);
        while let Some(day) = next
            && rows.len() < limit
        {
            if filter.counts(day) {
                next = named(day + 1);
                continue;
            }
            let name = eras.excluding(slice.through, day);
            let target = filter.target(day);
            let mut until = day;
            loop {
                next = named(until + 1);
                let alike = next.filter(|day| {
                    !filter.counts(*day)
                        && eras.excluding(slice.through, *day) == name
                        && filter.target(*day) == target
                });
                match alike {
                    Some(day) => until = day,
                    None => break,
                }
            }
            rows.extend(
                name.and_then(|name| self.days_row(cron, slice, (day, until), name, target)),
            );
        }
    }

    /// The times of named days that do not count.
    fn days_row(
        &self,
        cron: &Cron,
        slice: &Slice<'_>,
        days: (i32, i32),
        name: &CalendarName,
        target: Option<i32>,
    ) -> Option<Excluded> {
        let stretch = Filter::stretch(days.0, days.1);
        let first = cron.next_from(slice.after.saturating_add(1), Some(&stretch))?;
        if first > slice.through {
            return None;
        }
        let last = cron.prev_from(slice.through, Some(&stretch))?;
        let count = cron.count(slice.after, slice.through, Some(&stretch));
        let rolled_to = target.and_then(|target| cron.first_on(target));
        let rolled_to = rolled_to.filter(|to| self.schedule.has(*to));
        let name = name.clone();
        Some(self.row(first, last, count, Exclusion::Calendar { name, rolled_to }))
    }

    fn lapse_row(&self, lapse: Lapse) -> Excluded {
        let why = match lapse.kind {
            LapseKind::Skipped => Exclusion::DstGapSkipped,
            LapseKind::Moved(to) => Exclusion::DstGapMoved { to: to * 1000 },
            LapseKind::OtherPass => Exclusion::FoldNotChosen,
        };
        Excluded {
            local_first: text(lapse.civil_first),
            local_last: text(lapse.civil_last),
            ..self.row(lapse.first * 1000, lapse.last * 1000, lapse.count, why)
        }
    }

    fn interval_rows(&self, interval: &Interval, slice: &Slice<'_>, rows: &mut Vec<Excluded>) {
        let (Some(filter), Some(eras)) = (&slice.filter, self.eras()) else {
            return;
        };
        let limit = rows.len() + self.cap;
        let mut from = slice.after.saturating_add(1).max(FIRST_SECOND * 1000);
        let (_, last_day) = days_around(slice.after, slice.through);
        let within = |at: &i64| *at <= slice.through;
        let mut open: Option<Excluded> = None;
        while let Some(at) = interval.next_beat(from).filter(within)
            && rows.len() < limit
        {
            let day = interval.day(at);
            if day.number > last_day {
                break;
            }
            let name = |number| match filter.counts(number) {
                true => None,
                false => eras.excluding(slice.through, number),
            };
            let here = name(day.number);
            let other = (day.number + 1..=last_day).find(|number| name(*number) != here);
            let end = day
                .start_of(other.unwrap_or(last_day + 1))
                .min(day.segment_end)
                - 1;
            let end = end.min(slice.through);
            let row = here.map(|name| {
                let why = Exclusion::Calendar {
                    name: name.clone(),
                    rolled_to: None,
                };
                let last = interval.prev_beat(end).unwrap_or(at);
                self.row(at, last, interval.beats(at - 1, end), why)
            });
            match (&mut open, row) {
                (Some(open), Some(row)) if open.why == row.why => extend(open, row),
                (_, row) => rows.extend(std::mem::replace(&mut open, row)),
            }
            from = end + 1;
        }
        rows.extend(open);
    }

    fn at_rows(&self, at: &At, slice: &Slice<'_>, rows: &mut Vec<Excluded>) {
        let within = |t: &i64| slice.after < *t && *t <= slice.through;
        let day = at.day();
        let change = at
            .zone()
            .instants(at.civil_ms(), DstGap::AtTransition, DstFold::First);
        if let Some(filter) = &slice.filter
            && !filter.counts(day)
        {
            let first = at.instants().first.or(change.first).filter(within);
            let name = self
                .eras()
                .and_then(|eras| eras.excluding(slice.through, day));
            let rolled_to = at
                .placed(Some(filter))
                .first
                .filter(|to| self.schedule.has(*to));
            rows.extend(first.zip(name).map(|(first, name)| {
                let name = name.clone();
                self.at_row(at, first, Exclusion::Calendar { name, rolled_to })
            }));
            return;
        }
        let passes = at.both_passes();
        let (first, why) = match (passes.first, at.instants().first) {
            (None, None) => (change.first, Exclusion::DstGapSkipped),
            (None, Some(to)) => (change.first, Exclusion::DstGapMoved { to }),
            (Some(_), _) => {
                let taken = [at.instants().first, at.instants().second];
                let passes = [passes.first, passes.second];
                let left = passes
                    .into_iter()
                    .flatten()
                    .find(|pass| !taken.contains(&Some(*pass)));
                (left.filter(|_| at.is_local()), Exclusion::FoldNotChosen)
            }
        };
        rows.extend(
            first
                .filter(within)
                .map(|first| self.at_row(at, first, why)),
        );
    }

    fn at_row(&self, at: &At, first: i64, why: Exclusion) -> Excluded {
        let local = text(at.civil_ms().div_euclid(1000));
        Excluded {
            local_first: local.clone(),
            local_last: local,
            ..self.row(first, first, 1, why)
        }
    }

    fn row(&self, first: i64, last: i64, count: u64, why: Exclusion) -> Excluded {
        let utc = Zone::utc();
        let zone = match self.entry {
            Entry::Cron(cron) => cron.zone(),
            Entry::Every(interval) => interval.zone(),
            Entry::Local(at) => at.zone(),
            Entry::At(_) => &utc,
        };
        let local = |t: i64| {
            let second = t.div_euclid(1000);
            text(second.saturating_add(zone.offset(second)))
        };
        Excluded {
            entry: self.number,
            first,
            last,
            count,
            local_first: local(first),
            local_last: local(last),
            timezone: zone.name().to_owned(),
            why,
        }
    }

    fn eras(&self) -> Option<&Eras> {
        self.schedule.rest.as_ref()?.eras.as_ref()
    }
}

fn extend(open: &mut Excluded, row: Excluded) {
    open.last = row.last;
    open.local_last = row.local_last;
    open.count = open.count.saturating_add(row.count);
}
