//! Local times, carried over to real time.
//!
//! A local time happens once, or never when clocks skip it, or twice when they go back. What becomes of it in the last
//! two cases is the entry's choice.

use drumtower_core::schedule::{DstFold, DstGap};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

#[derive(Clone, Debug)]
pub(super) struct Local {
    zone: TimeZone,
    gap: DstGap,
    fold: DstFold,
}

impl Local {
    pub fn named(zone: &str, gap: DstGap, fold: DstFold) -> Result<Self, String> {
        let zone = match zone.trim() {
            "UTC" => TimeZone::UTC,
            name => TimeZoneDatabase::bundled()
                .get(name)
                .map_err(|error| error.to_string())?,
        };
        Ok(Self { zone, gap, fold })
    }

    /// What clocks show.
    pub fn shown(&self, at_ms: i64) -> Option<DateTime> {
        let at = Timestamp::from_millisecond(at_ms).ok()?;
        Some(self.zone.to_datetime(at))
    }

    pub fn date_at(&self, at_ms: i64) -> Option<Date> {
        self.shown(at_ms).map(DateTime::date)
    }

    /// When the entry says that a local time is: at no, one or two instants.
    pub fn instants(&self, civil: DateTime) -> Vec<i64> {
        let by = |offset: Offset| {
            offset
                .to_timestamp(civil)
                .ok()
                .map(Timestamp::as_millisecond)
        };
        let found = match self.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => vec![by(offset)],
            AmbiguousOffset::Gap { before, after } => match self.gap {
                DstGap::Skip => vec![],
                DstGap::Shift => vec![by(before)],
                // Clocks that had changed already would have shown it earlier, those that had not later.
                DstGap::AtTransition => vec![
                    by(after)
                        .zip(by(before))
                        .and_then(|(low, high)| self.change_between(low, high)),
                ],
            },
            AmbiguousOffset::Fold { before, after } => match self.fold {
                DstFold::First => vec![by(before)],
                DstFold::Last => vec![by(after)],
                DstFold::Both => vec![by(before), by(after)],
            },
        };
        found.into_iter().flatten().collect()
    }

    /// The one instant in `(low, high]` at which clocks change, by halving.
    fn change_between(&self, low: i64, high: i64) -> Option<i64> {
        let offset = |ms: i64| Some(self.zone.to_offset(Timestamp::from_millisecond(ms).ok()?));
        let old = offset(low)?;
        let (mut old_at, mut new_at) = (low, high);
        while new_at - old_at > 1 {
            let middle = old_at + (new_at - old_at) / 2;
            if offset(middle)? == old {
                old_at = middle;
            } else {
                new_at = middle;
            }
        }
        Some(new_at)
    }
}
