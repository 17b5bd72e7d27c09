//! Cron lines: a pattern on civil time, carried over to real time through a zone.
//!
//! `parse` reads the text, `pattern` searches the calendar, and this file applies the rules for
//! the two daylight-saving changes. A *fixed* line (second, minute and hour hold no `*`) fires once
//! for each civil time it names: a skipped time is moved by the length of the gap, a repeated one
//! counts at its first pass. Any other line follows the clock on the wall: nothing in a gap, both
//! passes of a fold.

mod parse;
mod pattern;

use jiff::{SignedDuration, Timestamp};

use self::pattern::Pattern;
use super::error::Error;
use super::zone::{Segment, Zone};

const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// More than civil time and UTC, or the clocks of two segments of a zone, ever differ by.
const MARGIN: SignedDuration = SignedDuration::from_hours(72);

/// Two days more than the years of a pattern on either side, for zones ahead of UTC or behind.
const FIRST_SECOND: i64 = -2 * 86_400;
const LAST_SECOND: i64 = 7_258_118_400 + 2 * 86_400;

#[derive(Debug, Clone)]
pub(super) struct Cron {
    pattern: Pattern,
    zone: Zone,
}

impl Cron {
    pub(super) fn parse(line: &str, zone: Zone) -> Result<Self, Error> {
        match parse::parse(line) {
            Ok(pattern) => Ok(Self { pattern, zone }),
            Err(fault) => Err(Error::Cron {
                line: line.to_owned(),
                fault,
            }),
        }
    }

    pub(super) fn next_from(&self, from_ms: i64) -> Option<i64> {
        let second = from_ms.div_euclid(1000) + i64::from(from_ms.rem_euclid(1000) > 0);
        if second > LAST_SECOND {
            return None;
        }
        let mut from = Timestamp::from_second(second.max(FIRST_SECOND)).ok()?;
        loop {
            let segment = self.zone.segment(from);
            if let Some(found) = self.next_in(&segment, from) {
                return Some(found.as_millisecond());
            }
            let end = segment.end?;
            from = end.max(self.nothing_before(end)?);
        }
    }

    pub(super) fn prev_from(&self, from_ms: i64) -> Option<i64> {
        let second = from_ms.div_euclid(1000);
        if second < FIRST_SECOND {
            return None;
        }
        let mut from = Timestamp::from_second(second.min(LAST_SECOND)).ok()?;
        loop {
            let segment = self.zone.segment(from);
            if let Some(found) = self.prev_in(&segment, from) {
                return Some(found.as_millisecond());
            }
            let last = segment.start?.checked_sub(SECOND).ok()?;
            from = last.min(self.nothing_after(last)?);
        }
    }

    /// The first time of a segment at or after `from`, which lies in it.
    fn next_in(&self, segment: &Segment, from: Timestamp) -> Option<Timestamp> {
        let shown_from = from.max(self.first_pass_from(segment).unwrap_or(from));
        let shown = self
            .pattern
            .next_from(segment.offset.to_datetime(shown_from));
        let shown = shown
            .and_then(|civil| segment.offset.to_timestamp(civil).ok())
            .filter(|at| segment.end.is_none_or(|end| *at < end));
        let moved = self.moved_until(segment).and_then(|until| {
            let civil = self.pattern.next_from(segment.before.to_datetime(from))?;
            let at = segment.before.to_timestamp(civil).ok()?;
            (at < until).then_some(at)
        });
        [shown, moved].into_iter().flatten().min()
    }

    /// The last time of a segment at or before `from`, which lies in it.
    fn prev_in(&self, segment: &Segment, from: Timestamp) -> Option<Timestamp> {
        let shown_from = self.first_pass_from(segment).or(segment.start);
        let shown = self.pattern.prev_from(segment.offset.to_datetime(from));
        let shown = shown
            .and_then(|civil| segment.offset.to_timestamp(civil).ok())
            .filter(|at| shown_from.is_none_or(|start| *at >= start));
        let moved = self.moved_until(segment).and_then(|until| {
            let from = from.min(until.checked_sub(SECOND).ok()?);
            let civil = self.pattern.prev_from(segment.before.to_datetime(from))?;
            let at = segment.before.to_timestamp(civil).ok()?;
            (at >= segment.start?).then_some(at)
        });
        [shown, moved].into_iter().flatten().max()
    }

    /// Where a segment that begins by repeating civil times begins to count for a fixed line.
    fn first_pass_from(&self, segment: &Segment) -> Option<Timestamp> {
        segment.fold_end().filter(|_| self.pattern.is_fixed())
    }

    /// How far into a segment the moved times of a fixed line reach.
    fn moved_until(&self, segment: &Segment) -> Option<Timestamp> {
        segment.gap_end().filter(|_| self.pattern.is_fixed())
    }

    /// An instant before which the pattern cannot match from `at` on; `None` when it never will.
    /// This is what keeps rare and impossible patterns from being searched segment by segment.
    fn nothing_before(&self, at: Timestamp) -> Option<Timestamp> {
        let civil = jiff::tz::Offset::UTC.to_datetime(at).saturating_sub(MARGIN);
        let civil = self.pattern.next_from(civil)?.saturating_sub(MARGIN);
        jiff::tz::Offset::UTC.to_timestamp(civil).ok()
    }

    /// As `nothing_before`, towards the past.
    fn nothing_after(&self, at: Timestamp) -> Option<Timestamp> {
        let civil = jiff::tz::Offset::UTC.to_datetime(at).saturating_add(MARGIN);
        let civil = self.pattern.prev_from(civil)?.saturating_add(MARGIN);
        jiff::tz::Offset::UTC.to_timestamp(civil).ok()
    }
}
