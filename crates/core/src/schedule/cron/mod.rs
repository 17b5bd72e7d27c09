//! Cron lines: a pattern on civil time, carried over to real time through a zone.
//!
//! `parse` reads the text into a `line`, `pattern` is its sets of days and times, and this file applies the rules for the
//! two daylight-saving changes. A *fixed* line (second, minute and hour hold no `*`) names civil times: one that clocks
//! skip is moved or left out, one that they show twice counts at the pass that was chosen. Any other line follows the
//! clock on the wall: nothing in a gap, both passes of a fold.
//!
//! Calendars change the days of a line and nothing else, so they are asked where days are searched.

mod field;
pub(super) mod lapses;
pub(super) mod line;
mod parse;
mod pattern;
mod remedy;

use self::pattern::Pattern;
use super::civil::{join, split};
use super::filter::{Filter, Named};
use super::spec::{DayRule, DstFold, DstGap};
use super::zone::{FIRST_SECOND, LAST_SECOND, Segment, Zone};

pub(super) use self::line::{Item, Line};

/// More than civil time and UTC, or the clocks of two segments of a zone, ever differ by.
const MARGIN: i64 = 72 * 3600;

#[derive(Debug, Clone)]
pub(super) struct Cron {
    pattern: Pattern,
    zone: Zone,
    gap: DstGap,
    fold: DstFold,
}

impl Cron {
    pub(super) fn new(line: &Line, rule: DayRule, zone: Zone, gap: DstGap, fold: DstFold) -> Self {
        Self {
            pattern: Pattern::new(line, rule),
            zone,
            gap,
            fold,
        }
    }

    pub(super) fn zone(&self) -> &Zone {
        &self.zone
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.pattern.is_fixed()
    }

    /// The first time at or after `from_ms`.
    pub(super) fn next_from(&self, from_ms: i64, filter: Option<&Filter<'_>>) -> Option<i64> {
        let second = from_ms.div_euclid(1000) + i64::from(from_ms.rem_euclid(1000) > 0);
        if second > LAST_SECOND {
            return None;
        }
        let days = self.days(filter);
        let mut from = second.max(FIRST_SECOND);
        loop {
            let segment = self.zone.segment(from);
            if let Some(found) = self.next_in(&segment, from, days) {
                return Some(found * 1000);
            }
            if segment.end > LAST_SECOND {
                return None;
            }
            // What keeps rare and impossible patterns from being searched segment by segment.
            let nothing_before = days.next_from(segment.end - MARGIN)? - MARGIN;
            from = segment.end.max(nothing_before);
        }
    }

    /// The last time at or before `from_ms`.
    pub(super) fn prev_from(&self, from_ms: i64, filter: Option<&Filter<'_>>) -> Option<i64> {
        let second = from_ms.div_euclid(1000);
        if second < FIRST_SECOND {
            return None;
        }
        let days = self.days(filter);
        let mut from = second.min(LAST_SECOND);
        loop {
            let segment = self.zone.segment(from);
            if let Some(found) = self.prev_in(&segment, from, days) {
                return Some(found * 1000);
            }
            if segment.start < FIRST_SECOND {
                return None;
            }
            let nothing_after = days.prev_from(segment.start + MARGIN)? + MARGIN;
            from = (segment.start - 1).min(nothing_after);
        }
    }

    /// How many times lie in `(after_ms, through_ms]`. Days are counted, not times.
    pub(super) fn count(&self, after_ms: i64, through_ms: i64, filter: Option<&Filter<'_>>) -> u64 {
        let days = self.days(filter);
        let mut from = (after_ms.div_euclid(1000) + 1).max(FIRST_SECOND);
        let through = through_ms.div_euclid(1000).min(LAST_SECOND);
        let mut count = 0;
        while from <= through {
            let segment = self.zone.segment(from);
            let last = through.min(segment.end - 1);
            count += self.count_in(&segment, from, last, days);
            from = last + 1;
        }
        count
    }

    fn days<'a>(&'a self, filter: Option<&'a Filter<'a>>) -> Days<'a> {
        Days {
            pattern: &self.pattern,
            filter,
        }
    }

    /// The first time of a segment at or after `from`, which lies in it.
    fn next_in(&self, segment: &Segment, from: i64, days: Days<'_>) -> Option<i64> {
        let (first, end) = self.shown(segment);
        let shown = days.next_from(from.max(first) + segment.offset);
        let shown = shown
            .map(|civil| civil - segment.offset)
            .filter(|at| *at < end);
        if from >= segment.gap_end() {
            return shown;
        }
        let moved = match self.gap_rule() {
            DstGap::Skip => None,
            DstGap::AtTransition => self.in_gap(segment, days).filter(|_| from <= segment.start),
            DstGap::Shift => {
                let civil = days.next_from(from + segment.before);
                let at = civil.map(|civil| civil - segment.before);
                at.filter(|at| *at < segment.gap_end())
            }
        };
        [shown, moved].into_iter().flatten().min()
    }

    /// The last time of a segment at or before `from`, which lies in it.
    fn prev_in(&self, segment: &Segment, from: i64, days: Days<'_>) -> Option<i64> {
        let (first, end) = self.shown(segment);
        let shown = days.prev_from(from.min(end - 1) + segment.offset);
        let shown = shown
            .map(|civil| civil - segment.offset)
            .filter(|at| *at >= first);
        if segment.gap() == 0 {
            return shown;
        }
        let moved = match self.gap_rule() {
            DstGap::Skip => None,
            DstGap::AtTransition => self.in_gap(segment, days),
            DstGap::Shift => {
                let from = from.min(segment.gap_end() - 1);
                let at = days
                    .prev_from(from + segment.before)
                    .map(|civil| civil - segment.before);
                at.filter(|at| *at >= segment.start)
            }
        };
        [shown, moved].into_iter().flatten().max()
    }

    /// How many times of a segment lie from `first` to `last`, both in it.
    fn count_in(&self, segment: &Segment, first: i64, last: i64, days: Days<'_>) -> u64 {
        let mut count = 0;
        let mut from = first;
        let moved = self.gap_rule() != DstGap::Skip;
        // Moved times may coincide with shown ones, so these few are looked at one by one.
        while moved && from <= last && from < segment.gap_end() {
            let found = self.next_in(segment, from, days);
            match found.filter(|at| *at <= last && *at < segment.gap_end()) {
                Some(at) => from = at + 1,
                None => {
                    from = segment.gap_end();
                    break;
                }
            }
            count += 1;
        }
        let (shown_first, shown_end) = self.shown(segment);
        let (from, last) = (from.max(shown_first), last.min(shown_end - 1));
        count + days.count(from + segment.offset, last + segment.offset)
    }

    /// The instants of a segment that count as what clocks show at them: the first, and the end.
    fn shown(&self, segment: &Segment) -> (i64, i64) {
        match self.fold_rule() {
            DstFold::Both => (segment.start, segment.end),
            DstFold::First => (segment.fold_end(), segment.end),
            DstFold::Last => (segment.start, segment.end - segment.fold_ahead()),
        }
    }

    /// The start of a segment, if a time falls into the gap before it.
    fn in_gap(&self, segment: &Segment, days: Days<'_>) -> Option<i64> {
        let civil = days.next_from(segment.start + segment.before)?;
        (civil < segment.start + segment.offset).then_some(segment.start)
    }

    fn gap_rule(&self) -> DstGap {
        match self.pattern.is_fixed() {
            true => self.gap,
            false => DstGap::Skip,
        }
    }

    fn fold_rule(&self) -> DstFold {
        match self.pattern.is_fixed() {
            true => self.fold,
            false => DstFold::Both,
        }
    }
}

/// The days of a pattern, less or moved by calendars, with the pattern's times of day. In civil seconds.
#[derive(Clone, Copy)]
struct Days<'a> {
    pattern: &'a Pattern,
    filter: Option<&'a Filter<'a>>,
}

impl Days<'_> {
    fn next_from(self, from: i64) -> Option<i64> {
        let (day, second) = split(from);
        let mut found = self.next_day(day)?;
        if found == day {
            if let Some(time) = self.pattern.next_time(second) {
                return Some(join(day, time));
            }
            found = self.next_day(day + 1)?;
        }
        Some(join(found, self.pattern.next_time(0)?))
    }

    fn prev_from(self, from: i64) -> Option<i64> {
        let (day, second) = split(from);
        let mut found = self.prev_day(day)?;
        if found == day {
            if let Some(time) = self.pattern.prev_time(second) {
                return Some(join(day, time));
            }
            found = self.prev_day(day - 1)?;
        }
        Some(join(found, self.pattern.prev_time(86_399)?))
    }

    /// How many times lie from `first` to `last`, both included.
    fn count(self, first: i64, last: i64) -> u64 {
        if first > last {
            return 0;
        }
        let ((first, from), (last, until)) = (split(first), split(last));
        let has = |day| u64::from(self.has_day(day));
        let (before, through) = (
            self.pattern.times_before(from),
            self.pattern.times_before(until + 1),
        );
        if first == last {
            return has(first) * (through - before);
        }
        let per_day = self.pattern.times_per_day();
        let between = self.count_days(first + 1, last - 1);
        has(first) * (per_day - before) + between * per_day + has(last) * through
    }

    fn count_days(self, first: i32, last: i32) -> u64 {
        let Some(filter) = self.filter else {
            return self.pattern.count_days(first, last);
        };
        let next = |from| filter.next_day(self.pattern, from, last);
        std::iter::successors(next(first), |day| next(day + 1)).count() as u64
    }

    fn has_day(self, day: i32) -> bool {
        match self.filter {
            Some(filter) => filter.takes(self.pattern, day),
            None => self.pattern.next_day(day) == Some(day),
        }
    }

    fn next_day(self, from: i32) -> Option<i32> {
        match self.filter {
            Some(filter) => filter.next_day(self.pattern, from, filter.last),
            None => self.pattern.next_day(from),
        }
    }

    fn prev_day(self, until: i32) -> Option<i32> {
        match self.filter {
            Some(filter) => filter.prev_day(self.pattern, until),
            None => self.pattern.prev_day(until),
        }
    }
}
