//! Fixed intervals of elapsed time: `anchor + k · period` for every whole `k`, negative ones too.
//!
//! With calendars, the times whose local date counts, from 1970 to 2199. The search goes from day to day, so that a
//! stretch of days that do not count costs the same whatever the period.

use super::civil::{DAY_S, split};
use super::filter::Filter;
use super::zone::{FIRST_SECOND, LAST_SECOND, Zone};

/// More days than clocks ever go back, so that a day which is over may return.
const BACK_DAYS: i32 = 2;

#[derive(Debug, Clone)]
pub(super) struct Interval {
    period: u64,
    anchor: i64,
    /// Where it is which date.
    zone: Zone,
}

impl Interval {
    /// `None` when the period is zero.
    pub(super) fn new(period_ms: u64, anchor_ms: i64, zone: Zone) -> Option<Self> {
        (period_ms > 0).then_some(Self {
            period: period_ms,
            anchor: anchor_ms,
            zone,
        })
    }

    pub(super) fn zone(&self) -> &Zone {
        &self.zone
    }

    pub(super) fn next_from(&self, from: i64, filter: Option<&Filter<'_>>) -> Option<i64> {
        let Some(filter) = filter else {
            return self.next_beat(from);
        };
        let (mut from, mut last) = (from.max(FIRST_SECOND * 1000), filter.last);
        loop {
            let at = self
                .next_beat(from)
                .filter(|at| *at <= LAST_SECOND * 1000)?;
            let day = self.day(at);
            if day.number > last.saturating_add(BACK_DAYS) {
                return None;
            }
            if filter.counts(day.number) {
                return Some(at);
            }
            // A later segment may show an earlier day again: the search leaps over no start of one.
            from = match filter.next_counting(day.number + 1, last) {
                Some(number) => day.start_of(number).min(day.segment_end),
                None => {
                    last = last.min(day.number);
                    day.segment_end
                }
            };
        }
    }

    pub(super) fn prev_from(&self, from: i64, filter: Option<&Filter<'_>>) -> Option<i64> {
        let Some(filter) = filter else {
            return self.prev_beat(from);
        };
        let (mut from, mut first) = (from.min(LAST_SECOND * 1000), filter.first);
        loop {
            let at = self
                .prev_beat(from)
                .filter(|at| *at >= FIRST_SECOND * 1000)?;
            let day = self.day(at);
            if day.number < first.saturating_sub(BACK_DAYS) {
                return None;
            }
            if filter.counts(day.number) {
                return Some(at);
            }
            from = match filter.prev_counting(day.number - 1, first) {
                Some(number) => day.start_of(number + 1).max(day.segment_start) - 1,
                None => {
                    first = first.max(day.number);
                    day.segment_start.checked_sub(1)?
                }
            };
        }
    }

    /// How many times lie in `(after, through]`.
    pub(super) fn count(&self, after: i64, through: i64, filter: Option<&Filter<'_>>) -> u64 {
        if filter.is_none() {
            return self.beats(after, through);
        }
        let (mut count, mut after) = (0, after);
        while let Some(from) = after.checked_add(1)
            && let Some(at) = self.next_from(from, filter)
            && at <= through
        {
            let day = self.day(at);
            let end = day.start_of(day.number + 1).min(day.segment_end) - 1;
            after = end.min(through);
            count += self.beats(at - 1, after);
        }
        count
    }

    pub(super) fn next_beat(&self, from: i64) -> Option<i64> {
        let last = self.index_at(i128::from(from) - 1);
        self.beat(last + 1)
    }

    pub(super) fn prev_beat(&self, from: i64) -> Option<i64> {
        self.beat(self.index_at(from.into()))
    }

    pub(super) fn beats(&self, after: i64, through: i64) -> u64 {
        let count = self.index_at(through.into()) - self.index_at(after.into());
        u64::try_from(count.max(0)).unwrap_or(u64::MAX)
    }

    fn beat(&self, index: i128) -> Option<i64> {
        let at = index.checked_mul(self.period.into())?;
        i64::try_from(at.checked_add(self.anchor.into())?).ok()
    }

    /// The `k` of the last time at or before `t`.
    fn index_at(&self, t: i128) -> i128 {
        (t - i128::from(self.anchor)).div_euclid(self.period.into())
    }

    pub(super) fn day(&self, at: i64) -> LocalDay {
        let second = at.div_euclid(1000);
        let segment = self.zone.segment(second);
        LocalDay {
            number: split(second + segment.offset).0,
            offset: segment.offset,
            segment_start: segment.start.saturating_mul(1000),
            segment_end: segment.end.saturating_mul(1000),
        }
    }
}

/// The local date at an instant, and the stretch of one offset that the instant is in. Instants in milliseconds.
pub(super) struct LocalDay {
    pub(super) number: i32,
    offset: i64,
    pub(super) segment_start: i64,
    pub(super) segment_end: i64,
}

impl LocalDay {
    /// When another day begins, as far as the offset lasts.
    pub(super) fn start_of(&self, number: i32) -> i64 {
        (i64::from(number) * DAY_S - self.offset) * 1000
    }
}
