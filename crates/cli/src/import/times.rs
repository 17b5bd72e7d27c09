//! A cron line of another scheduler: whether it is understood, and what clock changes do to it.

use drumtower_core::schedule::{
    AnyDay, Direction, DstFold, DstGap, Schedule, ScheduleEntry, ScheduleSpec, WarningCode, preview,
};
use jiff::Timestamp;

/// What the coming clock changes do to a line at fixed times. A line that follows the clock is concerned by neither, and the
/// keys that choose are refused there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockChanges {
    /// One of its times is skipped.
    pub gap: bool,
    /// One of its times is shown twice.
    pub fold: bool,
}

/// Reads a line; the fault in words.
pub fn read(times: &str, zone: &str) -> Result<ClockChanges, String> {
    warnings(&entry(times, zone))?;
    let chosen = ScheduleEntry {
        dst_gap: Some(DstGap::Skip),
        dst_fold: Some(DstFold::Both),
        ..entry(times, zone)
    };
    // The line itself is sound, so what is refused now are the two keys.
    let warnings = warnings(&chosen).unwrap_or_default();
    Ok(ClockChanges {
        gap: warnings.contains(&WarningCode::DstGap),
        fold: warnings.contains(&WarningCode::DstFold),
    })
}

fn entry(times: &str, zone: &str) -> ScheduleEntry {
    ScheduleEntry {
        cron: Some(times.to_ascii_lowercase()),
        timezone: Some(zone.to_owned()),
        ..ScheduleEntry::default()
    }
}

fn warnings(entry: &ScheduleEntry) -> Result<Vec<WarningCode>, String> {
    let spec = ScheduleSpec {
        entries: std::slice::from_ref(entry),
        calendar: None,
        jitter: None,
        bounds: None,
    };
    let schedule = Schedule::compile(&spec, &AnyDay).map_err(|error| error.fault().to_string())?;
    let Some(schedule) = schedule else {
        return Ok(Vec::new());
    };
    let now = Timestamp::now().as_millisecond();
    let warnings = preview(&schedule, &spec, None, now, 1, Direction::Forwards).warnings;
    Ok(warnings.into_iter().map(|warning| warning.code).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fixed_times_are_concerned_by_clock_changes() {
        let both = ClockChanges {
            gap: true,
            fold: true,
        };
        assert_eq!(read("30 2 * * *", "Europe/Berlin"), Ok(both));
        let neither = Ok(ClockChanges::default());
        assert_eq!(read("*/15 2 * * *", "Europe/Berlin"), neither);
        assert_eq!(read("30 2 * * *", "UTC"), neither);
        assert_eq!(read("30 12 * * *", "Europe/Berlin"), neither);
        assert!(read("61 * * * *", "UTC").is_err());
    }
}
