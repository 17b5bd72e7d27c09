//! Time zones as a row of segments, each with one offset from UTC.
//!
//! Within a segment civil time and real time run side by side, so searching a pattern is plain calendar arithmetic; only
//! the borders need rules. The database is the bundled one: two servers of one build agree whatever their machines have
//! installed. A zone's segments are computed once in a process and shared by all that use the zone.

use std::sync::{Arc, LazyLock, OnceLock};

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::error::{Error, shown};
use super::spec::{DstFold, DstGap};

/// The seconds in which offsets are known: the years of patterns, and two days on either side for zones ahead of UTC or
/// behind.
pub(super) const FIRST_SECOND: i64 = -2 * 86_400;
pub(super) const LAST_SECOND: i64 = 7_258_118_400 + 2 * 86_400;

/// More than the offsets of a zone ever differ by, and more than any is, in seconds.
const MARGIN: i64 = 3 * 86_400;

#[derive(Debug, Clone)]
pub(super) struct Zone {
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    name: String,
    /// The first second of each segment; the first of them stands for all times before, too.
    starts: Box<[i64]>,
    offsets: Box<[i32]>,
}

/// The longest stretch of instants around one instant that share an offset. All in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// The first instant; the smallest number when there is no earlier change.
    pub(super) start: i64,
    /// The first instant of the following segment; the largest number when there is none.
    pub(super) end: i64,
    pub(super) offset: i64,
    /// The offsets of the neighbours.
    pub(super) before: i64,
    pub(super) after: i64,
}

/// A place for every zone of the database, in the order of their names; filled when the zone is first used.
static TABLES: LazyLock<Vec<(String, OnceLock<Arc<Table>>)>> = LazyLock::new(|| {
    let database = TimeZoneDatabase::bundled();
    let names = database.available();
    let mut names: Vec<String> = names.map(|name| name.as_str().to_owned()).collect();
    names.sort_unstable();
    let places = names.into_iter().map(|name| (name, OnceLock::new()));
    places.collect()
});
static UTC: LazyLock<Arc<Table>> = LazyLock::new(|| Arc::new(Table::of(&TimeZone::UTC, "UTC")));

impl Zone {
    pub(super) fn utc() -> Self {
        Self { table: UTC.clone() }
    }

    pub(super) fn named(name: &str) -> Result<Self, Error> {
        let name = name.trim();
        if let Some(table) = place(name).and_then(OnceLock::get) {
            let table = table.clone();
            return Ok(Self { table });
        }
        let tz = match TimeZoneDatabase::bundled().get(name) {
            Ok(tz) if !tz.is_unknown() => tz,
            _ => return Err(Error::Zone { name: shown(name) }),
        };
        // The database finds names in any case of letters.
        let name = tz.iana_name().unwrap_or("UTC");
        let compute = || Arc::new(Table::of(&tz, name));
        let table = match place(name) {
            Some(place) => place.get_or_init(compute).clone(),
            None => compute(),
        };
        Ok(Self { table })
    }

    /// The name in the database.
    pub(super) fn name(&self) -> &str {
        &self.table.name
    }

    pub(super) fn segment(&self, second: i64) -> Segment {
        let following = self.table.starts.partition_point(|start| *start <= second);
        self.table.segment(following.saturating_sub(1))
    }

    pub(super) fn offset(&self, second: i64) -> i64 {
        self.segment(second).offset
    }

    /// The instants of a civil time, both in milliseconds.
    pub(super) fn instants(&self, civil_ms: i64, gap: DstGap, fold: DstFold) -> Instants {
        let civil = civil_ms.div_euclid(1000);
        let mut found = Instants::default();
        let mut segment = self.segment(civil - MARGIN);
        loop {
            if civil < segment.start.saturating_add(segment.offset) {
                if found.first.is_none() {
                    found.first = match gap {
                        DstGap::Skip => None,
                        DstGap::AtTransition => Some(segment.start * 1000),
                        DstGap::Shift => Some(civil_ms - segment.before * 1000),
                    };
                }
                break;
            }
            if civil < segment.end.saturating_add(segment.offset) {
                found.take(civil_ms - segment.offset * 1000, fold);
            }
            if segment.end > civil.saturating_add(MARGIN) {
                break;
            }
            segment = self.segment(segment.end);
        }
        found
    }
}

/// None, one or two instants in milliseconds, the earlier first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Instants {
    pub(super) first: Option<i64>,
    pub(super) second: Option<i64>,
}

impl Instants {
    fn take(&mut self, at: i64, fold: DstFold) {
        match (self.first, fold) {
            (None, _) | (Some(_), DstFold::Last) => self.first = Some(at),
            (Some(_), DstFold::Both) => self.second = Some(at),
            (Some(_), DstFold::First) => {}
        }
    }

    pub(super) fn next_from(self, from: i64) -> Option<i64> {
        [self.first, self.second]
            .into_iter()
            .flatten()
            .find(|at| *at >= from)
    }

    pub(super) fn prev_from(self, from: i64) -> Option<i64> {
        [self.second, self.first]
            .into_iter()
            .flatten()
            .find(|at| *at <= from)
    }
}

fn place(name: &str) -> Option<&'static OnceLock<Arc<Table>>> {
    let index = TABLES.binary_search_by(|(known, _)| known.as_str().cmp(name));
    index.ok().map(|index| &TABLES[index].1)
}

impl Table {
    fn of(tz: &TimeZone, name: &str) -> Self {
        let first = Timestamp::from_second(FIRST_SECOND).unwrap_or(Timestamp::UNIX_EPOCH);
        let mut starts = vec![i64::MIN];
        let mut offsets = vec![tz.to_offset(first).seconds()];
        for change in tz.following(first) {
            let start = change.timestamp().as_second();
            if start > LAST_SECOND {
                break;
            }
            // Some changes are of the name alone.
            let offset = change.offset().seconds();
            if offsets.last() != Some(&offset) {
                starts.push(start);
                offsets.push(offset);
            }
        }
        Self {
            name: name.to_owned(),
            starts: starts.into(),
            offsets: offsets.into(),
        }
    }

    fn segment(&self, index: usize) -> Segment {
        let offset = |index: usize| i64::from(self.offsets[index]);
        let last = index + 1 == self.starts.len();
        Segment {
            start: self.starts[index],
            end: if last {
                i64::MAX
            } else {
                self.starts[index + 1]
            },
            offset: offset(index),
            before: offset(index.saturating_sub(1)),
            after: offset(if last { index } else { index + 1 }),
        }
    }
}

impl Segment {
    /// How many seconds clocks skipped on entering the segment.
    pub(super) fn gap(&self) -> i64 {
        (self.offset - self.before).max(0)
    }

    /// How many seconds clocks show for the second time from the start on.
    pub(super) fn fold(&self) -> i64 {
        (self.before - self.offset).max(0)
    }

    /// How many seconds at the end will be shown again.
    pub(super) fn fold_ahead(&self) -> i64 {
        (self.offset - self.after).max(0)
    }

    /// Where the times that clocks skipped on entering end up when they are moved by the gap's length: before this.
    pub(super) fn gap_end(&self) -> i64 {
        self.start.saturating_add(self.gap())
    }

    pub(super) fn fold_end(&self) -> i64 {
        self.start.saturating_add(self.fold())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules at a border look at that border alone; that is right only while no zone changes twice within the length
    /// of one gap or fold.
    #[test]
    fn no_zone_changes_again_within_a_gap_or_fold() {
        for name in TimeZoneDatabase::bundled().available() {
            let Ok(zone) = Zone::named(name.as_str()) else {
                continue;
            };
            for index in 0..zone.table.starts.len() {
                let segment = zone.table.segment(index);
                let end = segment.end;
                assert!(segment.gap_end() <= end, "{name} changes again at {end}");
                let reach = segment.fold_end().saturating_add(segment.fold_ahead());
                assert!(reach <= end, "{name} repeats before {end}");
            }
        }
    }

    #[test]
    fn offsets_agree_with_the_database() {
        for name in [
            "Europe/Berlin",
            "America/New_York",
            "Africa/Casablanca",
            "Pacific/Apia",
        ] {
            let zone = Zone::named(name).unwrap();
            let tz = TimeZoneDatabase::bundled().get(name).unwrap();
            for step in 0..20_000 {
                let second = step * 362_881;
                let theirs = tz.to_offset(Timestamp::from_second(second).unwrap());
                assert_eq!(
                    zone.offset(second),
                    i64::from(theirs.seconds()),
                    "{name} {second}"
                );
            }
        }
    }
}
