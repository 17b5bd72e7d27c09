//! What the author of a schedule may not expect.

use super::super::civil::days_in_month;
use super::super::cron::{Item, Line};
use super::super::duration::{format_duration, parse_duration};
use super::super::excluded::{Excluded, Exclusion};
use super::super::spec::{DayRule, ScheduleEntry, ScheduleSpec};
use super::super::{Entry, Schedule};
use super::{Warning, WarningCode, clock_changes, local_text};

const DAY_MS: i64 = 86_400_000;
/// How far warnings look ahead: every yearly date, and both clock changes of a year.
const AHEAD_MS: i64 = 400 * DAY_MS;
/// More rows than a schedule of many entries has in that time.
const MOST_ROWS: usize = 20_000;
/// How many coming times are looked at for the distance between them.
const NEXT_TIMES: usize = 50;

pub(super) fn warnings(schedule: &Schedule, spec: &ScheduleSpec<'_>, from: i64) -> Vec<Warning> {
    if schedule.after_end_ms().is_some() {
        return Vec::new();
    }
    let until = from.saturating_add(AHEAD_MS);
    let excluded = schedule.excluded_between(from, until, MOST_ROWS);
    let mut warnings = Vec::new();
    warnings.extend(whole(schedule, spec, from, until, &excluded));
    for (index, entry) in spec.entries.iter().enumerate() {
        let about = |(code, text)| Warning {
            code,
            entry: Some(index + 1),
            text,
        };
        warnings.extend(never(schedule, index).map(about));
        warnings.extend(entry_warnings(entry).into_iter().map(about));
        warnings.extend(clock_changes::fold(
            schedule,
            spec.entries,
            index,
            from,
            until,
        ));
    }
    warnings.extend(clock_changes::gaps(schedule, spec.entries, &excluded));
    // By entry, and within one by kind; the whole comes first.
    warnings.sort_by_key(|warning| (warning.entry, warning.code));
    warnings
}

type Told = (WarningCode, String);

/// That an entry has no times, whatever calendars and bounds say.
fn never(schedule: &Schedule, index: usize) -> Option<Told> {
    let entry = schedule.entries.get(index)?;
    if entry.next_from(i64::MIN, None).is_some() {
        return None;
    }
    let text = match entry {
        Entry::Local(_) => "never: clocks skip this time",
        _ => "never: no date has these days, months and years together",
    };
    Some((WarningCode::NeverFires, text.to_owned()))
}

fn ended(schedule: &Schedule, from: i64) -> Option<Told> {
    if let Some(last) = schedule.prev_at_or_before(from) {
        let source = super::Source::of(schedule, last);
        let last = local_text(last, source.as_ref());
        let text = format!("nothing is due any more: the last time was {last}");
        return Some((WarningCode::NoMoreTimes, text));
    }
    // Entries that are empty by themselves are told of one by one.
    let named = (0..schedule.entries.len()).any(|index| never(schedule, index).is_none());
    let text = "nothing is ever due: calendars and bounds leave none of the times";
    named.then(|| (WarningCode::NeverFires, text.to_owned()))
}

fn whole(
    schedule: &Schedule,
    spec: &ScheduleSpec<'_>,
    from: i64,
    until: i64,
    excluded: &[Excluded],
) -> Vec<Warning> {
    let next = schedule.next_after(from);
    let mut told = Vec::new();
    if next.is_none() {
        told.extend(ended(schedule, from));
    }
    if spec.calendar.is_some() {
        let any = next.is_some_and(|next| next <= until);
        told.extend(calendar(any, excluded));
    }
    told.extend(jitter(schedule, spec, from));
    let about = |(code, text)| Warning {
        code,
        entry: None,
        text,
    };
    told.into_iter().map(about).collect()
}

fn calendar(any_left: bool, excluded: &[Excluded]) -> Option<Told> {
    let by_calendar = |row: &&Excluded| matches!(row.why, Exclusion::Calendar { .. });
    let rows: Vec<&Excluded> = excluded.iter().filter(by_calendar).collect();
    let (first, count) = (rows.first()?, rows.iter().map(|row| row.count).sum::<u64>());
    let Exclusion::Calendar { name, rolled_to } = &first.why else {
        return None;
    };
    if !any_left {
        let text = format!(
            "nothing is due for a year: calendars exclude every day, the first time because of `{name}`"
        );
        return Some((WarningCode::CalendarExcludesAll, text));
    }
    let (times, fall) = if count == 1 {
        ("time", "falls")
    } else {
        ("times", "fall")
    };
    let fate = match rolled_to {
        Some(_) => "moved to another day",
        None => "left out",
    };
    let (at, zone) = (&first.local_first, &first.timezone);
    let text = format!(
        "in the coming 400 days {count} {times} {fall} on days that do not count; the first, {at} in {zone}, is {fate} because of `{name}`"
    );
    Some((WarningCode::CalendarExcludesSome, text))
}

fn jitter(schedule: &Schedule, spec: &ScheduleSpec<'_>, from: i64) -> Option<Told> {
    let jitter = parse_duration(spec.jitter?).ok()?;
    let next = |at: &i64| schedule.next_after(*at);
    let times: Vec<i64> = std::iter::successors(next(&from), next)
        .take(NEXT_TIMES)
        .collect();
    let shortest = times
        .windows(2)
        .map(|pair| pair[1].abs_diff(pair[0]))
        .min()?;
    (shortest < jitter).then(|| {
        let (jitter, shortest) = (format_duration(jitter), format_duration(shortest));
        let text = format!("a jitter of {jitter} is longer than the {shortest} between times, and ends with the next one");
        (WarningCode::JitterCut, text)
    })
}

fn entry_warnings(entry: &ScheduleEntry) -> Vec<Told> {
    let mut told = Vec::new();
    told.extend(entry.every.as_deref().and_then(sub_second));
    told.extend(entry.timezone.as_deref().and_then(zone));
    if let Some(line) = entry
        .cron
        .as_deref()
        .and_then(|line| Line::parse(line).ok())
    {
        told.extend(day_rule(&line, entry.day_rule));
        told.extend(short_months(&line));
    }
    told
}

fn sub_second(every: &str) -> Option<Told> {
    let text = match parse_duration(every).ok()? {
        0 | 1000.. => return None,
        period @ 501.. => format!("more than once a second: every {period}ms"),
        period => format!("{} times a second", 1000 / period),
    };
    Some((WarningCode::SubSecond, text))
}

fn zone(name: &str) -> Option<Told> {
    let name = name.trim();
    let same = |other: &str| name.eq_ignore_ascii_case(other);
    let instead = match () {
        () if same("EST") || same("EST5EDT") => "America/New_York",
        () if same("CST6CDT") => "America/Chicago",
        () if same("MST") || same("MST7MDT") => "America/Denver",
        () if same("PST8PDT") => "America/Los_Angeles",
        () if same("HST") => "Pacific/Honolulu",
        () if same("CET") || same("MET") => "Europe/Berlin",
        () if same("EET") => "Europe/Athens",
        () if same("WET") => "Europe/Lisbon",
        () => return zone_sign(name),
    };
    let text = format!(
        "timezone `{name}` is an abbreviation whose rules are not what its place has: write a city such as `{instead}`"
    );
    Some((WarningCode::ZoneAbbreviation, text))
}

fn zone_sign(name: &str) -> Option<Told> {
    let lower = name.to_ascii_lowercase();
    let offset = lower.strip_prefix("etc/gmt")?;
    let (sign, hours) = (offset.get(..1)?, offset.get(1..)?);
    let reverse = match sign {
        "+" if hours != "0" => '-',
        "-" if hours != "0" => '+',
        _ => return None,
    };
    let text = format!(
        "timezone `{name}` is UTC{reverse}{hours}: the sign in these names is the reverse of the usual one"
    );
    Some((WarningCode::ZoneSign, text))
}

fn day_rule(line: &Line, rule: Option<DayRule>) -> Option<Told> {
    if line.restricts_both_days() {
        let text = "a day that matches the day of month or the day of week counts, as in Vixie cron: for days that match both give `day_rule: and`";
        return rule
            .is_none()
            .then(|| (WarningCode::DayRuleOr, text.to_owned()));
    }
    let partly = |field: &[Item]| {
        let whole = field
            .iter()
            .any(|item| matches!(item, Item::Any | Item::Blank));
        let stepped = |item: &Item| matches!(item, Item::Step { step, .. } if *step > 1);
        !whole
            && field
                .first()
                .is_some_and(|first| first.has_star() && stepped(first))
    };
    let limits = |field: &[Item]| {
        !field
            .iter()
            .any(|item| matches!(item, Item::Any | Item::Blank))
    };
    let surprising =
        partly(&line.day) && limits(&line.weekday) || partly(&line.weekday) && limits(&line.day);
    let text = "a day field that begins with `*` does not count as restricted, as in Vixie cron: a day must match both fields";
    (surprising && rule.is_none()).then(|| (WarningCode::DayRuleAnd, text.to_owned()))
}

fn short_months(line: &Line) -> Option<Told> {
    let months: Vec<u32> = (1..=12).filter(|month| has(&line.month, *month)).collect();
    if let Some(day) = line.day.iter().find_map(late_day) {
        // A leap year: the 29th of February is told of by itself.
        let lacking = months
            .iter()
            .filter(|month| days_in_month(2024, **month) < day)
            .count();
        let leap = months.contains(&2) && day == 29;
        let text = match (lacking, leap) {
            (0, false) => return None,
            (0, true) if months.len() == 1 => "29 February is a date of leap years only".to_owned(),
            (0, true) => {
                "a February has a 29th in leap years only; `L` is the last day of every month"
                    .to_owned()
            }
            // That is told of as never.
            (lacking, _) if lacking == months.len() => return None,
            (lacking, _) => format!(
                "{lacking} of these months have no {day}th; `L` is the last day of every month"
            )
            .replace("31th", "31st"),
        };
        return Some((WarningCode::ShortMonths, text));
    }
    let fifth = |item: &Item| matches!(item, Item::Nth { nth: 5, .. });
    let text = "most months have no fifth one of a weekday; `L`, as in `friL`, is the last";
    line.weekday
        .iter()
        .any(fifth)
        .then(|| (WarningCode::ShortMonths, text.to_owned()))
}

/// A day that some months lack, named by itself.
fn late_day(item: &Item) -> Option<u32> {
    match *item {
        Item::Value(day @ 29..=31) | Item::NearestWeekday { day: day @ 29..=31 } => Some(day),
        _ => None,
    }
}

fn has(items: &[Item], value: u32) -> bool {
    items.iter().any(|item| match *item {
        Item::Any | Item::Blank => true,
        Item::Value(own) => own == value,
        Item::Range { first, last } => (first..=last).contains(&value),
        Item::Step {
            first, last, step, ..
        } => (first..=last).contains(&value) && (value - first).is_multiple_of(step),
        _ => false,
    })
}
