//! The text of a cron line: fields, lists, ranges, steps, names and nicknames.

use super::super::error::CronFault;
use super::pattern::{FIRST_YEAR, LAST_YEAR, Pattern, Years};

/// What one field accepts.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    /// Where `*` and open steps end; Sunday is 0 and also 7, but only once in a week.
    last: u32,
    /// Names of the values from `min` on.
    names: &'static [&'static str],
    /// Whether `?` may stand for `*`.
    blank: bool,
}

const fn number(name: &'static str, min: u32, max: u32) -> Field {
    Field {
        name,
        min,
        max,
        last: max,
        names: &[],
        blank: false,
    }
}

const SECOND: Field = number("second", 0, 59);
const MINUTE: Field = number("minute", 0, 59);
const HOUR: Field = number("hour", 0, 23);
const DAY: Field = Field {
    blank: true,
    ..number("day of month", 1, 31)
};
const MONTH: Field = Field {
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
    ..number("month", 1, 12)
};
const WEEKDAY: Field = Field {
    last: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    blank: true,
    ..number("day of week", 0, 7)
};
const YEAR: Field = number("year", FIRST_YEAR, LAST_YEAR);

/// The text of one field, and the position of its first character in the line, from 1.
#[derive(Clone, Copy)]
struct Text<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Text<'a> {
    fn split_once(self, separator: char) -> Option<(Text<'a>, Text<'a>)> {
        let (left, right) = self.text.split_once(separator)?;
        let right = Text {
            text: right,
            position: self.position + left.chars().count() + 1,
        };
        Some((Text { text: left, ..self }, right))
    }

    /// Whether the field says nothing, in the sense of Vixie cron: `*/2` counts as `*` here.
    fn is_unrestricted(self) -> bool {
        self.text.starts_with(['*', '?'])
    }

    fn has_star(self) -> bool {
        self.text.contains('*')
    }
}

/// `first`, `first + step`, … up to `last`.
struct Span {
    first: u32,
    last: u32,
    step: u32,
}

pub(super) fn parse(line: &str) -> Result<Pattern, CronFault> {
    let trimmed = line.trim();
    if trimmed.starts_with('@') {
        return fields(nickname(trimmed)?);
    }
    fields(line)
}

fn nickname(name: &str) -> Result<&'static str, CronFault> {
    match name.to_ascii_lowercase().as_str() {
        "@hourly" => Ok("0 * * * *"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@monthly" => Ok("0 0 1 * *"),
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        _ => Err(CronFault::Nickname),
    }
}

fn fields(line: &str) -> Result<Pattern, CronFault> {
    let texts = split(line);
    let implied = |text| Text { text, position: 1 };
    let (second, rest, year) = match texts.as_slice() {
        rest @ [_, _, _, _, _] => (implied("0"), rest, implied("*")),
        [second, rest @ ..] if rest.len() == 5 => (*second, rest, implied("*")),
        [second, rest @ .., year] if rest.len() == 5 => (*second, rest, *year),
        _ => return Err(CronFault::FieldCount { found: texts.len() }),
    };
    let &[minute, hour, day, month, weekday] = rest else {
        return Err(CronFault::FieldCount { found: texts.len() });
    };
    let mut years = Years::NONE;
    each_value(&YEAR, year, |value| years.insert(value))?;
    Ok(Pattern {
        seconds: bits(&SECOND, second)?,
        minutes: bits(&MINUTE, minute)?,
        hours: bits(&HOUR, hour)?,
        days: bits(&DAY, day)?,
        months: bits(&MONTH, month)?,
        weekdays: fold_sunday(bits(&WEEKDAY, weekday)?),
        years,
        either_day: !day.is_unrestricted() && !weekday.is_unrestricted(),
        fixed: ![second, minute, hour].iter().any(|text| text.has_star()),
    })
}

/// The words of a line with their positions.
fn split(line: &str) -> Vec<Text<'_>> {
    let mut texts = Vec::new();
    let mut position = 1;
    for text in line.split(char::is_whitespace) {
        if !text.is_empty() {
            texts.push(Text { text, position });
        }
        position += text.chars().count() + 1;
    }
    texts
}

fn bits(field: &Field, text: Text<'_>) -> Result<u64, CronFault> {
    let mut set = 0;
    each_value(field, text, |value| set |= 1u64 << value)?;
    Ok(set)
}

fn fold_sunday(weekdays: u64) -> u64 {
    (weekdays | weekdays >> 7) & 0x7f
}

fn each_value(field: &Field, text: Text<'_>, mut take: impl FnMut(u32)) -> Result<(), CronFault> {
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (item, tail) = match text.split_once(',') {
            Some((item, tail)) => (item, Some(tail)),
            None => (text, None),
        };
        let span = item_span(field, item)?;
        (span.first..=span.last)
            .step_by(span.step as usize)
            .for_each(&mut take);
        rest = tail;
    }
    Ok(())
}

fn item_span(field: &Field, item: Text<'_>) -> Result<Span, CronFault> {
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (item, None),
    };
    let (first, last) = match range.text {
        "*" => (field.min, field.last),
        "?" if field.blank && step.is_none() => (field.min, field.last),
        _ => match range.split_once('-') {
            Some((low, high)) => ends(field, range, low, high)?,
            None => {
                let first = value(field, range)?;
                let open = step.is_some();
                (first, if open { field.last.max(first) } else { first })
            }
        },
    };
    let step = match step {
        Some(step) => step_of(field, step)?,
        None => 1,
    };
    Ok(Span { first, last, step })
}

fn ends(
    field: &Field,
    range: Text<'_>,
    low: Text<'_>,
    high: Text<'_>,
) -> Result<(u32, u32), CronFault> {
    let first = value(field, low)?;
    let mut last = value(field, high)?;
    if last == 0 && field.max > field.last && high.text.eq_ignore_ascii_case("sun") {
        last = field.max;
    }
    if first <= last {
        return Ok((first, last));
    }
    Err(CronFault::Backwards {
        field: field.name,
        position: range.position,
        value: range.text.to_owned(),
        instead: format!("{first}-{},{}-{last}", field.last, field.min),
    })
}

fn value(field: &Field, text: Text<'_>) -> Result<u32, CronFault> {
    let (name, position) = (field.name, text.position);
    if text.text.is_empty() {
        return Err(CronFault::Missing {
            field: name,
            position,
            allowed: allowed(field),
        });
    }
    let lower = text.text.to_ascii_lowercase();
    if let Some(index) = field.names.iter().position(|name| *name == lower) {
        return Ok(field.min + index as u32);
    }
    let value = text.text.to_owned();
    if !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CronFault::Unknown {
            field: name,
            position,
            value,
            allowed: allowed(field),
        });
    }
    match value.parse() {
        Ok(number) if (field.min..=field.max).contains(&number) => Ok(number),
        _ => Err(CronFault::OutOfRange {
            field: name,
            position,
            value,
            allowed: allowed(field),
        }),
    }
}

/// A step longer than the field would silently mean "once", so it is refused.
fn step_of(field: &Field, text: Text<'_>) -> Result<u32, CronFault> {
    let most = field.last - field.min + 1;
    let digits = text.text.bytes().all(|byte| byte.is_ascii_digit());
    match text.text.parse() {
        Ok(step) if digits && (1..=most).contains(&step) => Ok(step),
        _ => Err(CronFault::Step {
            field: field.name,
            position: text.position,
            value: text.text.to_owned(),
            most,
        }),
    }
}

fn allowed(field: &Field) -> String {
    let numbers = format!("{}-{}", field.min, field.max);
    match (field.names.first(), field.names.last()) {
        (Some(first), Some(last)) => format!("{numbers} or {first}-{last}"),
        _ => numbers,
    }
}
