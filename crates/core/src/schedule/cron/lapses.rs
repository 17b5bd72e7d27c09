//! The times that a line names and that clock changes take away or move, for whoever asks why.

use super::super::civil::join;
use super::super::filter::{Filter, Named};
use super::super::spec::{DstFold, DstGap};
use super::super::zone::{FIRST_SECOND, LAST_SECOND, Segment};
use super::{Cron, Days};

/// Times around one change. Instants and civil times in seconds.
pub(in crate::schedule) struct Lapse {
    pub(in crate::schedule) first: i64,
    pub(in crate::schedule) last: i64,
    pub(in crate::schedule) civil_first: i64,
    pub(in crate::schedule) civil_last: i64,
    pub(in crate::schedule) count: u64,
    pub(in crate::schedule) kind: LapseKind,
}

pub(in crate::schedule) enum LapseKind {
    Skipped,
    /// The first of them happens at this instant instead.
    Moved(i64),
    OtherPass,
}

impl Cron {
    /// What happens to times of the line at the changes in `(after_ms, through_ms]`, at most `cap` of them in order.
    pub(in crate::schedule) fn lapses(
        &self,
        after_ms: i64,
        through_ms: i64,
        filter: Option<&Filter<'_>>,
        cap: usize,
    ) -> Vec<Lapse> {
        let days = self.days(filter);
        let first = (after_ms.div_euclid(1000) + 1).max(FIRST_SECOND);
        let last = through_ms.div_euclid(1000).min(LAST_SECOND);
        let mut lapses = Vec::new();
        let mut segment = self.zone.segment(first);
        while lapses.len() < cap && segment.start.saturating_sub(segment.fold()) <= last {
            lapses.extend(
                self.gap_lapse(&segment, days)
                    .filter(|lapse| (first..=last).contains(&lapse.first)),
            );
            lapses.extend(self.fold_lapse(&segment, first, last, days));
            if segment.end > LAST_SECOND {
                break;
            }
            segment = self.zone.segment(segment.end);
        }
        lapses
    }

    fn gap_lapse(&self, segment: &Segment, days: Days<'_>) -> Option<Lapse> {
        if segment.gap() == 0 {
            return None;
        }
        let (from, until) = (
            segment.start + segment.before,
            segment.start + segment.offset - 1,
        );
        let civil_first = days.next_from(from).filter(|civil| *civil <= until)?;
        Some(Lapse {
            first: segment.start,
            last: segment.start,
            civil_first,
            civil_last: days.prev_from(until)?,
            count: days.count(from, until),
            kind: match self.gap_rule() {
                DstGap::Skip => LapseKind::Skipped,
                DstGap::AtTransition => LapseKind::Moved(segment.start),
                DstGap::Shift => LapseKind::Moved(civil_first - segment.before),
            },
        })
    }

    /// The pass that was not chosen, as far as it lies from `first` to `last`.
    fn fold_lapse(
        &self,
        segment: &Segment,
        first: i64,
        last: i64,
        days: Days<'_>,
    ) -> Option<Lapse> {
        if segment.fold() == 0 {
            return None;
        }
        let (start, offset) = match self.fold_rule() {
            DstFold::Both => return None,
            DstFold::First => (segment.start, segment.offset),
            DstFold::Last => (segment.start - segment.fold(), segment.before),
        };
        let from = start.max(first) + offset;
        let until = (start + segment.fold() - 1).min(last) + offset;
        let civil_first = days.next_from(from).filter(|civil| *civil <= until)?;
        let civil_last = days.prev_from(until)?;
        Some(Lapse {
            first: civil_first - offset,
            last: civil_last - offset,
            civil_first,
            civil_last,
            count: days.count(from, until),
            kind: LapseKind::OtherPass,
        })
    }

    /// The first day at or after `from` that the line names, whatever calendars say.
    pub(in crate::schedule) fn named_day(&self, from: i32) -> Option<i32> {
        self.pattern.next_day(from)
    }

    /// The first time of the line on a day, named or not.
    pub(in crate::schedule) fn first_on(&self, day: i32) -> Option<i64> {
        let civil = join(day, self.pattern.next_time(0)?);
        let instants = self
            .zone
            .instants(civil * 1000, self.gap_rule(), self.fold_rule());
        instants.first
    }
}
