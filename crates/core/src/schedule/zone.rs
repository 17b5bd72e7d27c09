//! Time zones as a row of segments, each with one offset from UTC.
//!
//! Within a segment civil time and real time run side by side, so searching a pattern is plain
//! calendar arithmetic; only the borders need rules. The database is the bundled one: two servers
//! of one build agree whatever their machines have installed.

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use super::error::Error;

#[derive(Debug, Clone)]
pub(super) struct Zone {
    tz: TimeZone,
}

/// The longest stretch of instants around one instant that share an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// The first instant; `None` when the zone has no earlier change.
    pub(super) start: Option<Timestamp>,
    /// The first instant of the following segment.
    pub(super) end: Option<Timestamp>,
    pub(super) offset: Offset,
    /// The offset before `start`.
    pub(super) before: Offset,
}

impl Zone {
    pub(super) fn utc() -> Self {
        Self { tz: TimeZone::UTC }
    }

    pub(super) fn named(name: &str) -> Result<Self, Error> {
        let name = name.trim();
        match TimeZoneDatabase::bundled().get(name) {
            Ok(tz) if !tz.is_unknown() => Ok(Self { tz }),
            _ => Err(Error::Zone {
                name: name.to_owned(),
            }),
        }
    }

    pub(super) fn segment(&self, at: Timestamp) -> Segment {
        let second = SignedDuration::from_secs(1);
        let offset = self.tz.to_offset(at);
        let end = self.tz.following(at).next().map(|t| t.timestamp());
        // `preceding` excludes its argument, but a segment holds its own first instant.
        let search = at.checked_add(second).unwrap_or(at);
        let start = self.tz.preceding(search).next().map(|t| t.timestamp());
        let before = start.and_then(|start| start.checked_sub(second).ok());
        Segment {
            start,
            end,
            offset,
            before: before.map_or(offset, |before| self.tz.to_offset(before)),
        }
    }
}

impl Segment {
    /// Where the times that clocks skipped on entering the segment end up when they are moved by
    /// the gap's length: before this instant. `None` when nothing was skipped.
    pub(super) fn gap_end(&self) -> Option<Timestamp> {
        let gap = self.offset.seconds() - self.before.seconds();
        self.border(gap)
    }

    /// The end of the times that clocks show for the second time. `None` when nothing repeats.
    pub(super) fn fold_end(&self) -> Option<Timestamp> {
        let fold = self.before.seconds() - self.offset.seconds();
        self.border(fold)
    }

    fn border(&self, seconds: i32) -> Option<Timestamp> {
        if seconds <= 0 {
            return None;
        }
        self.start?
            .checked_add(SignedDuration::from_secs(seconds.into()))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules at a border look at that border alone; that is right only while no zone changes
    /// twice within the length of one gap or fold.
    #[test]
    fn no_zone_changes_again_within_a_gap_or_fold() {
        let last = Timestamp::from_second(2_300_000_000).unwrap();
        for name in TimeZoneDatabase::bundled().available() {
            let Ok(zone) = Zone::named(name.as_str()) else {
                continue;
            };
            let mut at = Timestamp::UNIX_EPOCH;
            while at < last {
                let segment = zone.segment(at);
                let Some(end) = segment.end else { break };
                for border in [segment.gap_end(), segment.fold_end()]
                    .into_iter()
                    .flatten()
                {
                    assert!(border <= end, "{name} changes again at {end}");
                }
                let following = zone.segment(end);
                let fold = segment.offset.seconds() - following.offset.seconds();
                if let Some(start) = segment.start {
                    let length = end.duration_since(start).as_secs();
                    assert!(length >= fold.into(), "{name} repeats before {start}");
                }
                at = end;
            }
        }
    }
}
