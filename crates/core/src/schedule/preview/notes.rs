//! Why a time is not at the place where it was written.

use super::super::Entry;
use super::super::civil::{split, year_month_day};
use super::super::cron::{Cron, Line};
use super::super::filter::Filter;
use super::super::spec::{DstFold, DstGap, Roll, ScheduleEntry, ScheduleSpec};
use super::super::zone::Zone;
use super::{Source, clock};

/// Days on either side in which the day that a time was rolled from is looked for.
const NEAR_DAYS: i32 = 40;

pub(super) fn note(source: &Source<'_>, spec: &ScheduleSpec<'_>, nominal: i64) -> Option<String> {
    let Entry::Cron(cron) = source.entry else {
        return None;
    };
    let entry = spec.entries.get(source.index)?;
    let filter = source.filter.as_ref();
    let second = nominal.div_euclid(1000);
    moved(cron, entry, filter, second)
        .or_else(|| rolled(cron, filter, second))
        .or_else(|| pass(cron.zone(), nominal))
}

/// That a clock change moved the time, if nothing else names it.
fn moved(
    cron: &Cron,
    entry: &ScheduleEntry,
    filter: Option<&Filter<'_>>,
    second: i64,
) -> Option<String> {
    let segment = cron.zone().segment(second);
    if !cron.is_fixed() || second >= segment.gap_end() {
        return None;
    }
    let line = Line::parse(entry.cron.as_deref()?).ok()?;
    let (rule, fold) = (
        entry.day_rule.unwrap_or_default(),
        entry.dst_fold.unwrap_or_default(),
    );
    let unmoved = Cron::new(&line, rule, cron.zone().clone(), DstGap::Skip, fold);
    if unmoved.prev_from(second * 1000, filter) == Some(second * 1000) {
        return None;
    }
    let skipped = match entry.dst_gap.unwrap_or_default() {
        DstGap::Shift => second + segment.before,
        DstGap::AtTransition | DstGap::Skip => {
            let start = segment.start * 1000;
            cron.lapses(start - 1, start, filter, 1)
                .first()?
                .civil_first
        }
    };
    Some(format!("stands for {}, which clocks skip", clock(skipped)))
}

/// That a roll moved the time to this day, and from where.
fn rolled(cron: &Cron, filter: Option<&Filter<'_>>, second: i64) -> Option<String> {
    let filter = filter.filter(|filter| filter.roll != Roll::None)?;
    let day = split(second + cron.zone().offset(second)).0;
    let named = |day: i32| cron.named_day(day) == Some(day);
    if named(day) {
        return None;
    }
    let near = (1..=NEAR_DAYS).flat_map(|distance| [day - distance, day + distance]);
    let mut near = near.filter(|from| named(*from) && filter.target(*from) == Some(day));
    Some(match near.next() {
        Some(from) => {
            let (year, month, day) = year_month_day(from);
            format!("moved from {year:04}-{month:02}-{day:02}, which does not count")
        }
        None => "moved from a day that does not count".to_owned(),
    })
}

/// Which pass it is when clocks show the time twice.
fn pass(zone: &Zone, nominal: i64) -> Option<String> {
    let civil = nominal + zone.offset(nominal.div_euclid(1000)) * 1000;
    let passes = zone.instants(civil, DstGap::Skip, DstFold::Both);
    let second = passes.second?;
    Some(match second == nominal {
        true => "the second pass: clocks show this time twice".to_owned(),
        false => "the first pass: clocks show this time twice".to_owned(),
    })
}
