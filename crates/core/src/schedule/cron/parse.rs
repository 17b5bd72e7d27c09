//! The text of a cron line: fields, lists, ranges, steps, names and nicknames.

use super::super::error::{CronFault, Problem, shown};
use super::field::{DAY, Field, HOUR, Kind, MINUTE, MONTH, SECOND, WEEKDAY, YEAR};
use super::line::{Item, Line};
use super::remedy;

/// No line needs more; it bounds the work and the messages.
const MOST_CHARS: usize = 1000;

/// A part of the line, and the position of its first character there, from 1.
#[derive(Clone, Copy)]
struct Text<'a> {
    text: &'a str,
    position: usize,
    /// How many fields the whole line has, which tells some mistakes apart.
    fields: usize,
}

impl<'a> Text<'a> {
    fn split_once(self, separator: char) -> Option<(Text<'a>, Text<'a>)> {
        let (left, right) = self.text.split_once(separator)?;
        let right = Text {
            text: right,
            position: self.position + left.chars().count() + 1,
            ..self
        };
        Some((Text { text: left, ..self }, right))
    }

    fn without_last(self, suffix: char) -> Option<Text<'a>> {
        let text = self
            .text
            .strip_suffix([suffix, suffix.to_ascii_uppercase()])?;
        Some(Text { text, ..self })
    }

    fn is(self, text: &str) -> bool {
        self.text.eq_ignore_ascii_case(text)
    }

    fn fault(self, field: &Field, problem: fn(String) -> Problem, remedy: String) -> CronFault {
        CronFault::Item {
            field: field.name,
            position: self.position,
            problem: problem(shown(self.text)),
            remedy,
        }
    }

    fn missing(self, field: &Field, remedy: String) -> CronFault {
        self.fault(field, |_| Problem::Missing, remedy)
    }

    fn misplaced(self, field: &Field, remedy: impl Into<String>) -> CronFault {
        self.fault(field, Problem::Misplaced, remedy.into())
    }

    fn not_understood(self, field: &Field) -> CronFault {
        let remedy = remedy::not_understood(field, self.text, self.fields);
        self.fault(field, Problem::NotUnderstood, remedy)
    }
}

impl Line {
    pub(in crate::schedule) fn parse(line: &str) -> Result<Self, CronFault> {
        let chars = line.chars().count();
        if chars > MOST_CHARS {
            return Err(CronFault::TooLong {
                chars,
                most: MOST_CHARS,
            });
        }
        match line.trim().starts_with('@') {
            true => fields(nickname(line.trim())?),
            false => fields(line),
        }
    }
}

fn nickname(name: &str) -> Result<&'static str, CronFault> {
    match name.to_ascii_lowercase().as_str() {
        "@hourly" => Ok("0 * * * *"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@monthly" => Ok("0 0 1 * *"),
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        _ => Err(CronFault::Nickname {
            remedy: remedy::nickname(name),
        }),
    }
}

fn fields(line: &str) -> Result<Line, CronFault> {
    let texts = split(line);
    let (second, rest, year) = match texts.as_slice() {
        rest @ [_, _, _, _, _] => (None, rest, None),
        [second, rest @ ..] if rest.len() == 5 => (Some(*second), rest, None),
        [second, rest @ .., year] if rest.len() == 5 => (Some(*second), rest, Some(*year)),
        _ => return Err(wrong_count(line, texts.len())),
    };
    let &[minute, hour, day, month, weekday] = rest else {
        return Err(wrong_count(line, texts.len()));
    };
    Ok(Line {
        second: second.map_or(Ok(vec![Item::Value(0)]), |text| items(&SECOND, text))?,
        minute: items(&MINUTE, minute)?,
        hour: items(&HOUR, hour)?,
        day: items(&DAY, day)?,
        month: items(&MONTH, month)?,
        weekday: items(&WEEKDAY, weekday)?,
        year: year.map_or(Ok(vec![Item::Any]), |text| items(&YEAR, text))?,
    })
}

fn wrong_count(line: &str, found: usize) -> CronFault {
    CronFault::FieldCount {
        found,
        remedy: remedy::field_count(line.trim()),
    }
}

/// The words of a line with their positions.
fn split(line: &str) -> Vec<Text<'_>> {
    let fields = line.split_whitespace().count();
    let mut texts = Vec::new();
    let mut position = 1;
    for text in line.split(char::is_whitespace) {
        if !text.is_empty() {
            texts.push(Text {
                text,
                position,
                fields,
            });
        }
        position += text.chars().count() + 1;
    }
    texts
}

fn items(field: &Field, text: Text<'_>) -> Result<Vec<Item>, CronFault> {
    let mut items = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (item, tail) = match text.split_once(',') {
            Some((item, tail)) => (item, Some(tail)),
            None => (text, None),
        };
        items.push(item_of(field, item)?);
        rest = tail;
    }
    Ok(items)
}

fn item_of(field: &Field, item: Text<'_>) -> Result<Item, CronFault> {
    let special = match field.kind {
        Kind::Day => special_day(field, item)?,
        Kind::Weekday => special_weekday(field, item)?,
        Kind::Plain => None,
    };
    if let Some(special) = special {
        return Ok(special);
    }
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (item, None),
    };
    let star = range.text == "*";
    let (first, last) = match range.text {
        "*" if step.is_none() => return Ok(Item::Any),
        "*" => (field.min, field.last),
        "?" if field.kind != Kind::Plain && step.is_none() => return Ok(Item::Blank),
        "" if step.is_some() => {
            return Err(range.missing(field, format!("write `*{}`", shown(item.text))));
        }
        _ => match range.split_once('-') {
            Some((low, high)) => ends(field, range, low, high)?,
            None => {
                let first = value(field, range)?;
                let open = step.is_some();
                (first, if open { field.last.max(first) } else { first })
            }
        },
    };
    let step = step.map(|step| step_of(field, step)).transpose()?;
    Ok(match step {
        _ if first == last => Item::Value(field.once(first)),
        None => Item::Range { first, last },
        Some(step) => Item::Step {
            first,
            last,
            step,
            star,
        },
    })
}

/// `L`, `L-3`, `LW`, `L-3W` and `15W`.
fn special_day(field: &Field, item: Text<'_>) -> Result<Option<Item>, CronFault> {
    if item.text.contains('#') {
        return Err(item.misplaced(field, remedy::NTH));
    }
    let (text, nearest) = match item.without_last('w') {
        Some(text) => (text, true),
        None => (item, false),
    };
    let to_last = |before| match nearest {
        true => Item::NearestWeekdayToLast { before },
        false => Item::Last { before },
    };
    if text.is("l") {
        return Ok(Some(to_last(0)));
    }
    if let Some((last, before)) = text.split_once('-')
        && last.is("l")
    {
        return Ok(Some(to_last(days_before(field, before)?)));
    }
    if nearest {
        if text.text.is_empty() {
            return Err(item.not_understood(field));
        }
        if text.text.contains(['-', '/', '*']) {
            return Err(item.misplaced(field, "give each day its own `W`, as in `1W,15W`"));
        }
        return value(field, text).map(|day| Some(Item::NearestWeekday { day }));
    }
    Ok(None)
}

fn days_before(field: &Field, text: Text<'_>) -> Result<u32, CronFault> {
    match number(text.text) {
        Some(before) if (1..=30).contains(&before) => Ok(before),
        _ if text.text.is_empty() => Err(text.missing(
            field,
            "write `L-3` for three days before the last".to_owned(),
        )),
        _ => Err(text.fault(
            field,
            Problem::OutOfRange,
            "use 1-30 days before the last, or `L` alone".to_owned(),
        )),
    }
}

/// `friL`, `5L`, `fri#2` and `5#2`.
fn special_weekday(field: &Field, item: Text<'_>) -> Result<Option<Item>, CronFault> {
    if let Some((weekday, nth)) = item.split_once('#') {
        let weekday = field.once(value(field, weekday)?);
        return match number(nth.text) {
            Some(nth) if (1..=5).contains(&nth) => Ok(Some(Item::Nth { weekday, nth })),
            _ => Err(nth.fault(field, Problem::OutOfRange, remedy::nth(item.text))),
        };
    }
    if item.is("l") {
        return Err(item.misplaced(field, remedy::LAST_WEEKDAY));
    }
    let Some(weekday) = item.without_last('l') else {
        return Ok(None);
    };
    if weekday.text.contains(['-', '/', '*']) {
        return Err(item.misplaced(field, "give each weekday its own `L`, as in `friL,satL`"));
    }
    let weekday = field.once(value(field, weekday)?);
    Ok(Some(Item::LastOf { weekday }))
}

fn ends(
    field: &Field,
    range: Text<'_>,
    low: Text<'_>,
    high: Text<'_>,
) -> Result<(u32, u32), CronFault> {
    let first = value(field, low)?;
    if field.kind == Kind::Day && high.is("l") {
        let instead = format!("write `{first}-31`: days that a month lacks are passed over");
        return Err(high.misplaced(field, instead));
    }
    let mut last = value(field, high)?;
    if last == 0 && field.max > field.last && high.is("sun") {
        last = field.max;
    }
    if first <= last {
        return Ok((first, last));
    }
    let instead = remedy::backwards(field, low.text, high.text);
    Err(range.fault(field, Problem::Backwards, instead))
}

fn value(field: &Field, text: Text<'_>) -> Result<u32, CronFault> {
    if text.text.is_empty() {
        return Err(text.missing(field, remedy::missing(field)));
    }
    if let Some(value) = field.named(text.text) {
        return Ok(value);
    }
    if !text.text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(text.not_understood(field));
    }
    match number(text.text) {
        Some(number) if (field.min..=field.max).contains(&number) => Ok(number),
        _ => {
            let remedy = remedy::out_of_range(field, text.text, text.fields);
            Err(text.fault(field, Problem::OutOfRange, remedy))
        }
    }
}

/// Digits alone: no sign, which `parse` would take.
fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// A step longer than the field would silently mean "once", so it is refused.
fn step_of(field: &Field, text: Text<'_>) -> Result<u32, CronFault> {
    let most = field.last - field.min + 1;
    match number(text.text) {
        Some(step) if (1..=most).contains(&step) => Ok(step),
        _ if text.text.is_empty() => {
            Err(text.missing(field, format!("use a step from 1 to {most}")))
        }
        _ => Err(text.fault(field, Problem::Step, remedy::step(field, text.text, most))),
    }
}
