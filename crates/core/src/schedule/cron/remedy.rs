//! What to write instead: the mistakes that people make with cron lines, and their corrections.

use super::super::duration::parse_duration;
use super::super::error::shown;
use super::field::{DAY, Field, HOUR, Kind, MINUTE, MONTH, SECOND, WEEKDAY};

pub(super) const NTH: &str = "`#` goes into the day of week field, as in `fri#2`";
pub(super) const LAST_WEEKDAY: &str =
    "write `6` or `sat` for every Saturday, or `satL` for the last one of the month";

const COUNTS: &str = "write 5 (minute, hour, day of month, month, day of week), 6 with seconds first, or 7 with years last";
const NAMES: &str =
    "use @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, or five fields";

pub(super) fn field_count(line: &str) -> String {
    if parse_duration(line).is_ok() {
        return format!("for an interval give `every: {line}` instead of `cron`");
    }
    let starts_with_date =
        line.len() > 9 && line.as_bytes()[4] == b'-' && line.as_bytes()[7] == b'-';
    if starts_with_date && line.as_bytes()[..4].iter().all(u8::is_ascii_digit) {
        return format!(
            "for a single instant give `at: {}` instead of `cron`",
            shown(line)
        );
    }
    COUNTS.to_owned()
}

pub(super) fn nickname(name: &str) -> String {
    let mut words = name.split_whitespace();
    let first = words.next().unwrap_or_default();
    if first.eq_ignore_ascii_case("@every") {
        let interval = words.next().filter(|text| parse_duration(text).is_ok());
        let interval = interval.unwrap_or("5m");
        return format!("for an interval give `every: {interval}` instead of `cron`");
    }
    if first.eq_ignore_ascii_case("@reboot") {
        return format!("a schedule knows times, not starts of machines: {NAMES}");
    }
    NAMES.to_owned()
}

pub(super) fn missing(field: &Field) -> String {
    format!("use {}; lists are written without spaces", field.allowed())
}

pub(super) fn out_of_range(field: &Field, text: &str, fields: usize) -> String {
    let allowed = format!("use {}", field.allowed());
    match (field.name, text.trim_start_matches('0')) {
        (name, "24") if name == HOUR.name => format!("{allowed}; midnight is `0`"),
        (name, "60") if name == MINUTE.name => format!("{allowed}; the full hour is `0`"),
        (name, "60") if name == SECOND.name => format!("{allowed}; the full minute is `0`"),
        (name, year) if name == WEEKDAY.name && year.len() == 4 && fields == 6 => {
            "a year needs all seven fields: put the second, such as `0`, in front".to_owned()
        }
        _ => allowed,
    }
}

pub(super) fn not_understood(field: &Field, text: &str, fields: usize) -> String {
    if let Some(instead) = instead(field, text, fields) {
        return instead;
    }
    let special = match field.kind {
        Kind::Plain => "",
        Kind::Day => ", `L` (last), `15W` (weekday nearest to the 15th)",
        Kind::Weekday => ", `fri#2` (second Friday), `friL` (last Friday)",
    };
    format!(
        "use {}, a range `a-b`, a step `/n`, a list `a,b`{special}, or `*`",
        field.allowed()
    )
}

/// The correction of a mistake that can be told from the text.
fn instead(field: &Field, text: &str, fields: usize) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let name = field.names.iter().find(|name| is_longer(&lower, name));
    if let Some(name) = name {
        return Some(format!("write `{name}`"));
    }
    if let Some(owner) = [&MONTH, &WEEKDAY]
        .into_iter()
        .find(|owner| names(owner, &lower))
    {
        return Some(format!("the name goes into the {} field", owner.name));
    }
    let number = lower.strip_prefix('*').filter(|rest| is_number(rest));
    if let Some(step) = number {
        return Some(format!(
            "write `*/{step}` for a step, or `{step}` for the value"
        ));
    }
    match lower.as_str() {
        "?" if field.name == MONTH.name && fields == 6 => Some(
            "in a line of six fields the first is the second; a line with a year has seven: put `0` in front"
                .to_owned(),
        ),
        "?" => Some("write `*`: `?` is for the day fields".to_owned()),
        "h" => Some("give the value, and `jitter` beside `schedule` to spread jobs".to_owned()),
        "w" if field.name == DAY.name => Some("write `15W` for the weekday nearest to the 15th, or `LW`".to_owned()),
        _ => special(field, &lower),
    }
}

fn special(field: &Field, lower: &str) -> Option<String> {
    let bare = |suffix| {
        lower
            .strip_suffix(suffix)
            .filter(|rest| rest.is_empty() || is_number(rest) || names(&WEEKDAY, rest))
    };
    if field.kind == Kind::Weekday && bare('w').is_some() {
        return Some(
            "write `mon-fri` for weekdays; `W` goes into the day of month field".to_owned(),
        );
    }
    if field.kind == Kind::Day && bare('l').is_some() {
        return Some("write `L` for the last day of the month; the last of a weekday, as in `friL`, goes into the day of week field".to_owned());
    }
    if field.kind == Kind::Plain
        && (bare('l').is_some() || bare('w').is_some() || lower.contains('#'))
    {
        return Some(format!(
            "use {}; `L`, `W` and `#` are for the day fields",
            field.allowed()
        ));
    }
    None
}

/// Whether a word is a name written out: `monday`, `sept`.
fn is_longer(word: &str, name: &str) -> bool {
    word.starts_with(name) && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn names(owner: &Field, word: &str) -> bool {
    owner.names.iter().any(|name| is_longer(word, name))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn backwards(field: &Field, low: &str, high: &str) -> String {
    let named = !is_number(low);
    let end = |value: u32| match field.names.get((value - field.min) as usize) {
        Some(name) if named => (*name).to_owned(),
        _ => value.to_string(),
    };
    let part = |first: String, last: String| match first.eq_ignore_ascii_case(&last) {
        true => first,
        false => format!("{first}-{last}"),
    };
    let early = part(low.to_owned(), end(field.last));
    let late = part(end(field.min), high.to_owned());
    format!("write `{early},{late}`")
}

pub(super) fn nth(item: &str) -> String {
    match item.rsplit_once('#') {
        Some((weekday, last)) if last.eq_ignore_ascii_case("l") => {
            format!("write `{weekday}L` for the last one of the month")
        }
        _ => "use 1-5, as in `fri#2` for the second Friday of the month".to_owned(),
    }
}

pub(super) fn step(field: &Field, text: &str, most: u32) -> String {
    let unit = match field.name {
        name if name == SECOND.name => "s",
        name if name == MINUTE.name => "m",
        name if name == HOUR.name => "h",
        _ => "",
    };
    let longer = is_number(text) && text.len() < 6 && !text.bytes().all(|byte| byte == b'0');
    match longer && !unit.is_empty() {
        true => {
            format!("use 1 to {most}, or for an interval `every: {text}{unit}` instead of `cron`")
        }
        false => format!("use 1 to {most}"),
    }
}
