//! What the coming clock changes do to an entry.
//!
//! Lines that go round the clock are not warned of: an hour of every five minutes less, or more, is what the day has.

use super::super::Entry;
use super::super::Schedule;
use super::super::cron::{Cron, Line};
use super::super::excluded::{Excluded, Exclusion};
use super::super::spec::{DstFold, ScheduleEntry};
use super::super::zone::{LAST_SECOND, Zone};
use super::{Warning, WarningCode, clock, spoken};

/// The first coming gap that touches each entry. `excluded` are the rows of the stretch that is looked at.
pub(super) fn gaps(
    schedule: &Schedule,
    entries: &[ScheduleEntry],
    excluded: &[Excluded],
) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    for row in excluded {
        let is_gap = matches!(
            row.why,
            Exclusion::DstGapSkipped | Exclusion::DstGapMoved { .. }
        );
        let told = warnings
            .iter()
            .any(|warning| warning.entry == Some(row.entry));
        if !is_gap || told || !concerns(entries, row.entry - 1) {
            continue;
        }
        let zone = schedule.entries.get(row.entry - 1).and_then(Entry::zone);
        warnings.extend(zone.map(|zone| Warning {
            code: WarningCode::DstGap,
            entry: Some(row.entry),
            text: gap_text(row, zone),
        }));
    }
    warnings
}

fn gap_text(row: &Excluded, zone: &Zone) -> String {
    let (date, first) = row
        .local_first
        .split_once('T')
        .unwrap_or(("", &row.local_first));
    let last = row.local_last.split_once('T').map_or("", |(_, last)| last);
    let first = super::short(first);
    let times = match row.count {
        1 => format!("{first} on {date} does"),
        count => format!(
            "{first} to {} on {date}, {count} times, do",
            super::short(last)
        ),
    };
    let it = if row.count == 1 { "it" } else { "the first" };
    let fate = match row.why {
        Exclusion::DstGapMoved { to } => {
            let second = to.div_euclid(1000);
            format!(
                "{it} happens at {} instead",
                clock(second + zone.offset(second))
            )
        }
        _ if row.count == 1 => "it is left out".to_owned(),
        _ => "they are left out".to_owned(),
    };
    format!(
        "{times} not exist in {}, clocks go forward: {fate}",
        zone.name()
    )
}

/// The first coming fold in which the entry happens twice. Instants in milliseconds.
pub(super) fn fold(
    schedule: &Schedule,
    entries: &[ScheduleEntry],
    index: usize,
    from: i64,
    until: i64,
) -> Option<Warning> {
    let Entry::Cron(cron) = schedule.entries.get(index)? else {
        return None;
    };
    let both = entries.get(index)?.dst_fold == Some(DstFold::Both) || !cron.is_fixed();
    if !both || !concerns(entries, index) {
        return None;
    }
    let civil = repeated(schedule, cron, index, from, until)?;
    Some(Warning {
        code: WarningCode::DstFold,
        entry: Some(index + 1),
        text: format!(
            "clocks in {} go back and show {} twice: it happens at both passes",
            cron.zone().name(),
            spoken(civil)
        ),
    })
}

/// The first civil time after `from` that the entry has at both passes of a fold.
fn repeated(schedule: &Schedule, cron: &Cron, index: usize, from: i64, until: i64) -> Option<i64> {
    let entry = &schedule.entries[index];
    let mut segment = cron.zone().segment(from.div_euclid(1000));
    while segment.end < until.div_euclid(1000) && segment.end < LAST_SECOND {
        segment = cron.zone().segment(segment.end);
        let start = segment.start * 1000;
        if segment.fold() == 0 || start <= from {
            continue;
        }
        let rest = schedule.rest.as_ref();
        let filter = rest.and_then(|rest| rest.filter(start, start));
        let second = entry.next_from(start, filter.as_ref());
        if let Some(second) = second.filter(|at| *at < segment.fold_end() * 1000) {
            return Some(second.div_euclid(1000) + segment.offset);
        }
    }
    None
}

/// Whether the entry names hours, so that a change takes from it or adds to it.
fn concerns(entries: &[ScheduleEntry], index: usize) -> bool {
    let Some(entry) = entries.get(index) else {
        return false;
    };
    let Some(line) = &entry.cron else {
        return entry.at.is_some();
    };
    Line::parse(line).is_ok_and(|line| !line.hour.iter().any(|item| item.has_star()))
}
