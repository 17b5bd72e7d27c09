//! From what a manifest says to a schedule, with every check on the way.
//!
//! A key that would have no effect is refused, since its author expected one.

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::model::Limits;

use super::at::At;
use super::calendars::Calendars;
use super::civil::{FIRST_YEAR, LAST_YEAR, join, number_of};
use super::cron::{Cron, Line};
use super::duration::parse_duration;
use super::eras::Eras;
use super::error::{Error, shown};
use super::interval::Interval;
use super::spec::{Bounds, Roll, ScheduleEntry, ScheduleSpec};
use super::zone::Zone;
use super::{Entry, Rest, Schedule};

/// Longer ones would outgrow the years that schedules know.
const LONGEST_MS: u64 = 36_500 * 86_400_000;

const NOT_FIXED: &str = "the line holds `*` in its second, minute or hour, so it follows the clock on the wall: nothing while it skips, both passes while it repeats";
const ELAPSED: &str = "`every` counts elapsed time, whatever clocks show";
const HAS_OFFSET: &str = "the time has an offset, so it happens exactly once";

pub(super) fn schedule(
    spec: &ScheduleSpec<'_>,
    calendars: &dyn Calendars,
) -> Result<Option<Schedule>, Error> {
    if spec.entries.is_empty() {
        return refuse_all_but_entries(spec).map(|()| None);
    }
    let (found, most) = (spec.entries.len(), Limits::SCHEDULE_ENTRIES);
    if found > most {
        return Err(Error::TooMany { found, most });
    }
    let mut rest = Rest::default();
    if let Some(delay) = after_end(spec.entries)? {
        refuse_beside_after_end(spec)?;
        rest.after_end = Some(delay);
    }
    if let Some(bounds) = spec.bounds {
        read_bounds(bounds, &mut rest)?;
    }
    if let Some(jitter) = spec.jitter {
        let jitter = duration("jitter", jitter).map_err(|error| error.under("jitter"))?;
        rest.jitter = Some(jitter);
    }
    if let Some(used) = spec.calendar {
        rest.eras = Some(Eras::compile(used, calendars)?);
    }
    let entries = match rest.after_end {
        Some(_) => Vec::new(),
        None => read_entries(spec)?,
    };
    Ok(Some(Schedule {
        entries: entries.into(),
        rest: rest.is_needed().then(|| Box::new(rest)),
    }))
}

fn refuse_all_but_entries(spec: &ScheduleSpec<'_>) -> Result<(), Error> {
    let given = [
        ("calendar", spec.calendar.is_some()),
        ("jitter", spec.jitter.is_some()),
        ("bounds", spec.bounds.is_some()),
    ];
    refuse_given(&given, "there is no `schedule`")
}

fn refuse_beside_after_end(spec: &ScheduleSpec<'_>) -> Result<(), Error> {
    let given = [("calendar", spec.calendar.is_some())];
    refuse_given(&given, "`after_end` counts from the end of the last run")
}

fn refuse_given(keys: &[(&'static str, bool)], reason: &'static str) -> Result<(), Error> {
    match keys.iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(Error::Stray { field, reason }.under(*field)),
        None => Ok(()),
    }
}

fn read_bounds(bounds: &Bounds, rest: &mut Rest) -> Result<(), Error> {
    let read = |key: &'static str, value: &Option<String>| {
        let at = value.as_deref().map(|value| instant(key, value));
        at.transpose()
            .map_err(|error| error.under(format!("bounds.{key}")))
    };
    rest.start = read("start", &bounds.start)?.unwrap_or(i64::MIN);
    rest.end = read("end", &bounds.end)?.unwrap_or(i64::MAX);
    if let (Some(start), Some(end)) = (&bounds.start, &bounds.end)
        && rest.start >= rest.end
    {
        let (start, end) = (shown(start), shown(end));
        return Err(Error::EmptyBounds { start, end }.under("bounds.end"));
    }
    if bounds.max_fires == Some(0) {
        return Err(Error::NoFires.under("bounds.max_fires"));
    }
    rest.max_fires = bounds.max_fires;
    Ok(())
}

/// The delay, when it is the only entry.
fn after_end(entries: &[ScheduleEntry]) -> Result<Option<i64>, Error> {
    let Some(index) = entries.iter().position(|entry| entry.after_end.is_some()) else {
        return Ok(None);
    };
    let read = |entry: &ScheduleEntry, text: &str| {
        if forms(entry).len() > 1 {
            return Err(wrong_form(entry));
        }
        if entries.len() > 1 {
            return Err(Error::NotAlone);
        }
        refuse(
            entry,
            &EVERY_OPTION,
            "`after_end` counts from the end of the last run",
        )?;
        duration("after_end", text)
    };
    let text = entries[index].after_end.as_deref().unwrap_or_default();
    let delay = read(&entries[index], text).map_err(|error| error.in_entry(index + 1))?;
    Ok(Some(delay as i64))
}

fn read_entries(spec: &ScheduleSpec<'_>) -> Result<Vec<Entry>, Error> {
    let roll = spec.calendar.map_or(Roll::None, |used| used.roll);
    let mut entries = Vec::with_capacity(spec.entries.len());
    for (index, entry) in spec.entries.iter().enumerate() {
        let read = read_entry(entry, spec.calendar.is_some());
        let read = read.map_err(|error| error.in_entry(index + 1))?;
        if roll != Roll::None && !read.names_times_of_day() {
            let number = index + 1;
            return Err(Error::Roll { number }.under("calendar.roll"));
        }
        entries.push(read);
    }
    Ok(entries)
}

fn read_entry(entry: &ScheduleEntry, has_calendar: bool) -> Result<Entry, Error> {
    match (&entry.cron, &entry.every, &entry.at, &entry.after_end) {
        (Some(line), None, None, None) => read_cron(entry, line),
        (None, Some(every), None, None) => read_every(entry, every, has_calendar),
        (None, None, Some(at), None) => read_at(entry, at, has_calendar),
        _ => Err(wrong_form(entry)),
    }
}

fn read_cron(entry: &ScheduleEntry, text: &str) -> Result<Entry, Error> {
    refuse(entry, &["anchor"], "it belongs to `every`")?;
    let zone = zone_of(entry)?;
    let line = Line::parse(text).map_err(|fault| Error::Cron {
        line: shown(text),
        fault,
    })?;
    if !line.is_fixed() {
        refuse(entry, &["dst_gap", "dst_fold"], NOT_FIXED)?;
    }
    let rule = entry.day_rule.unwrap_or_default();
    let (gap, fold) = (
        entry.dst_gap.unwrap_or_default(),
        entry.dst_fold.unwrap_or_default(),
    );
    let cron = Cron::new(&line, rule, zone, gap, fold);
    Ok(Entry::Cron(Box::new(cron)))
}

fn read_every(entry: &ScheduleEntry, every: &str, has_calendar: bool) -> Result<Entry, Error> {
    refuse(entry, &["day_rule"], "it belongs to `cron`")?;
    refuse(entry, &["dst_gap", "dst_fold"], ELAPSED)?;
    if !has_calendar {
        refuse(
            entry,
            &["timezone"],
            "`every` needs it only with a `calendar`, to tell the date",
        )?;
    }
    let anchor = match &entry.anchor {
        Some(anchor) => instant("anchor", anchor)?,
        None => 0,
    };
    let zone = zone_of(entry)?;
    match Interval::new(parse_duration(every)?, anchor, zone) {
        Some(interval) => Ok(Entry::Every(Box::new(interval))),
        None => Err(Error::Zero { what: "every" }),
    }
}

fn read_at(entry: &ScheduleEntry, text: &str, has_calendar: bool) -> Result<Entry, Error> {
    refuse(entry, &["anchor"], "it belongs to `every`")?;
    refuse(entry, &["day_rule"], "it belongs to `cron`")?;
    let text = text.trim();
    if let Some(civil_ms) = local(text)? {
        if entry.timezone.is_none() {
            return Err(Error::NoOffset { value: shown(text) });
        }
        let (gap, fold) = (
            entry.dst_gap.unwrap_or_default(),
            entry.dst_fold.unwrap_or_default(),
        );
        let at = At::local(civil_ms, zone_of(entry)?, gap, fold);
        return Ok(Entry::Local(Box::new(at)));
    }
    let at = instant("at", text)?;
    refuse(entry, &["dst_gap", "dst_fold"], HAS_OFFSET)?;
    if !has_calendar {
        refuse(
            entry,
            &["timezone"],
            "the time has an offset; a zone matters only with a `calendar`, to tell the date",
        )?;
        return Ok(Entry::At(at));
    }
    let known = FIRST_MS..=LAST_MS;
    if !known.contains(&at) {
        return Err(Error::Year { value: shown(text) });
    }
    Ok(Entry::Local(Box::new(At::instant(at, zone_of(entry)?))))
}

const FIRST_MS: i64 = 0;
const LAST_MS: i64 = 7_258_118_400_000 - 1;

fn zone_of(entry: &ScheduleEntry) -> Result<Zone, Error> {
    match &entry.timezone {
        Some(name) => Zone::named(name),
        None => Ok(Zone::utc()),
    }
}

const EVERY_OPTION: [&str; 5] = ["timezone", "anchor", "day_rule", "dst_gap", "dst_fold"];

fn refuse(
    entry: &ScheduleEntry,
    fields: &[&'static str],
    reason: &'static str,
) -> Result<(), Error> {
    let given = |field: &&&str| match **field {
        "timezone" => entry.timezone.is_some(),
        "anchor" => entry.anchor.is_some(),
        "day_rule" => entry.day_rule.is_some(),
        "dst_gap" => entry.dst_gap.is_some(),
        "dst_fold" => entry.dst_fold.is_some(),
        _ => false,
    };
    match fields.iter().find(given) {
        Some(field) => Err(Error::Stray { field, reason }),
        None => Ok(()),
    }
}

fn forms(entry: &ScheduleEntry) -> Vec<&'static str> {
    let given = [
        ("`cron`", entry.cron.is_some()),
        ("`every`", entry.every.is_some()),
        ("`at`", entry.at.is_some()),
        ("`after_end`", entry.after_end.is_some()),
    ];
    let given = given.into_iter().filter(|(_, given)| *given);
    given.map(|(name, _)| name).collect()
}

fn wrong_form(entry: &ScheduleEntry) -> Error {
    let forms = forms(entry);
    let found = match forms.is_empty() {
        true => "none".to_owned(),
        false => forms.join(" and "),
    };
    Error::Form { found }
}

fn duration(what: &'static str, text: &str) -> Result<u64, Error> {
    match parse_duration(text)? {
        0 => Err(Error::Zero { what }),
        ms if ms > LONGEST_MS => Err(Error::TooLong {
            what,
            value: shown(text),
            most: "36500d",
        }),
        ms => Ok(ms),
    }
}

/// Finer instants are refused rather than cut: a cut one would fire early.
fn instant(field: &'static str, value: &str) -> Result<i64, Error> {
    let value = value.trim();
    match value.parse::<Timestamp>() {
        Ok(at) if at.as_nanosecond() % 1_000_000 == 0 => Ok(at.as_millisecond()),
        _ => Err(Error::Instant {
            field,
            value: shown(value),
        }),
    }
}

/// A date and a time without an offset, in civil milliseconds; `None` when the text is something else.
fn local(text: &str) -> Result<Option<i64>, Error> {
    let bytes = text.as_bytes();
    let separated = bytes
        .get(10)
        .is_some_and(|byte| matches!(byte, b'T' | b't' | b' '));
    let plain = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.');
    if !separated || !bytes[11..].iter().all(plain) {
        return Ok(None);
    }
    let Ok(civil) = text.parse::<DateTime>() else {
        return Ok(None);
    };
    if civil.subsec_nanosecond() % 1_000_000 != 0 {
        return Ok(None);
    }
    if !(FIRST_YEAR..=LAST_YEAR).contains(&civil.year().into()) {
        return Err(Error::Year { value: shown(text) });
    }
    let time = civil.time();
    let second = time.hour() as u32 * 3600 + time.minute() as u32 * 60 + time.second() as u32;
    let civil_s = join(number_of(civil.date()), second);
    Ok(Some(
        civil_s * 1000 + i64::from(time.subsec_nanosecond() / 1_000_000),
    ))
}
