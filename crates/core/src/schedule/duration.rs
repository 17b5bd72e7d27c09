//! Durations as text: whole numbers with units, largest first, such as `1h30m` or `250ms`.

use super::error::Error;

/// Largest first, which is also the order in which they are written.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Milliseconds of a duration such as `5s`, `1h30m` or `250ms`.
pub fn parse_duration(text: &str) -> Result<u64, Error> {
    let value = text.trim();
    parse(value).map_err(|problem| Error::Duration {
        value: value.to_owned(),
        problem,
    })
}

fn parse(value: &str) -> Result<u64, &'static str> {
    if value.is_empty() {
        return Err("is empty: write a number and a unit, such as `5s`");
    }
    let mut rest = value;
    let mut total: u64 = 0;
    let mut smaller = &UNITS[..];
    while !rest.is_empty() {
        let (number, tail) = split_at_end(rest, |c| c.is_ascii_digit());
        let (unit, tail) = split_at_end(tail, |c| c.is_ascii_alphabetic());
        if number.is_empty() {
            return Err("a number is missing: write whole numbers with units, such as `1h30m`");
        }
        let unit_ms = take_unit(&mut smaller, unit)?;
        let number: u64 = number.parse().map_err(|_| TOO_LONG)?;
        let part = number.checked_mul(unit_ms).ok_or(TOO_LONG)?;
        total = total.checked_add(part).ok_or(TOO_LONG)?;
        rest = tail;
    }
    Ok(total)
}

const TOO_LONG: &str = "is too long: the limit is 2^64 milliseconds";

/// Looks the unit up and leaves only the smaller ones for the rest of the text.
fn take_unit(units: &mut &[(&str, u64)], unit: &str) -> Result<u64, &'static str> {
    if unit.is_empty() {
        return Err("a unit is missing: use whole numbers followed by d, h, m, s or ms");
    }
    if !UNITS.iter().any(|(name, _)| *name == unit) {
        return Err("unknown unit: use d, h, m, s or ms");
    }
    let Some(found) = units.iter().position(|(name, _)| *name == unit) else {
        return Err("units are out of order: write each once, largest first, as in `1h30m`");
    };
    let (_, unit_ms) = units[found];
    *units = &units[found + 1..];
    Ok(unit_ms)
}

fn split_at_end(text: &str, inside: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !inside(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// The shortest text that [`parse_duration`] reads as `ms`.
pub fn format_duration(ms: u64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    let mut rest = ms;
    let mut text = String::new();
    for (unit, unit_ms) in UNITS {
        let number = rest / unit_ms;
        if number > 0 {
            text.push_str(&format!("{number}{unit}"));
        }
        rest %= unit_ms;
    }
    text
}
