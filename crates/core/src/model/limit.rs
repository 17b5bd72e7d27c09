//! Limits on what runs at once and on how fast runs start, as a job or a queue gives them.
//!
//! A concurrency counts leased attempts: from the assignment until the worker has confirmed the end, or its lease is over.
//! A rate counts assignments, those of further attempts too, since it protects what the task calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rate::Rate;
use crate::schedule::parse_duration;

use super::{JsonText, Limits, SpecError};

/// Limits of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobLimits {
    /// How many attempts of the job may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub concurrency: Option<u32>,
    /// Where in the parameters the value stands that `per_key` counts by, as a JSON pointer such as `/customer`. Runs without
    /// such a value count together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = r"^(/.*)?$"))]
    pub key: Option<String>,
    /// How many attempts of the job with the same value of `key` may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub per_key: Option<u32>,
    /// How many attempts may start in which time, such as `100/1m`; evenly spread, unless `burst` says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// How many attempts may start at once after a rest, before `rate` spreads them: 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub burst: Option<u32>,
}

/// Limits as they are reckoned with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedLimits {
    pub concurrency: Option<u32>,
    pub per_key: Option<PerKey>,
    pub rate: Option<Rate>,
}

/// A limit for each value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerKey {
    /// A JSON pointer into the parameters.
    pub pointer: String,
    pub most: u32,
}

impl JobLimits {
    pub fn parsed(&self, field: &str) -> Result<ParsedLimits, SpecError> {
        if *self == Self::default() {
            let message = "limits nothing: give it `concurrency`, `key` with `per_key`, or `rate`, or leave it out";
            return Err(SpecError::new(field, message));
        }
        self.read(&format!("{field}."))
    }

    /// The same without the demand that there be any; `prefix` stands before the names of the keys.
    pub(super) fn read(&self, prefix: &str) -> Result<ParsedLimits, SpecError> {
        Ok(ParsedLimits {
            concurrency: count(&format!("{prefix}concurrency"), self.concurrency)?,
            per_key: self.read_per_key(prefix)?,
            rate: self.read_rate(prefix)?,
        })
    }

    fn read_per_key(&self, prefix: &str) -> Result<Option<PerKey>, SpecError> {
        let (key, per_key) = (format!("{prefix}key"), format!("{prefix}per_key"));
        match (&self.key, count(&per_key, self.per_key)?) {
            (None, None) => Ok(None),
            (Some(pointer), Some(most)) => {
                check_pointer(&key, pointer)?;
                Ok(Some(PerKey {
                    pointer: pointer.clone(),
                    most,
                }))
            }
            (Some(_), None) => Err(SpecError::new(
                key,
                "has no effect alone: say with `per_key` how many may run for each value",
            )),
            (None, Some(_)) => Err(SpecError::new(
                per_key,
                "needs `key`: the place in the parameters that it counts by, such as `/customer`",
            )),
        }
    }

    fn read_rate(&self, prefix: &str) -> Result<Option<Rate>, SpecError> {
        let burst = count(&format!("{prefix}burst"), self.burst)?;
        match (&self.rate, burst) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(SpecError::new(
                format!("{prefix}burst"),
                "needs `rate`: how many may start in which time, such as `100/1m`",
            )),
            (Some(text), burst) => {
                let (count, period_ms) = parse_rate(&format!("{prefix}rate"), text)?;
                let burst = burst.unwrap_or(1);
                if burst > count {
                    let message = format!("`{burst}` is more than the {count} of `rate`: lower it");
                    return Err(SpecError::new(format!("{prefix}burst"), message));
                }
                Ok(Some(Rate::new(count, period_ms, burst)))
            }
        }
    }
}

fn count(field: &str, value: Option<u32>) -> Result<Option<u32>, SpecError> {
    match value {
        Some(value) if value == 0 || value > Limits::CONCURRENCY => Err(SpecError::new(
            field,
            format!("`{value}` is not between 1 and {}", Limits::CONCURRENCY),
        )),
        value => Ok(value),
    }
}

fn check_pointer(field: &str, pointer: &str) -> Result<(), SpecError> {
    let fault = |message: String| Err(SpecError::new(field, message));
    if pointer.len() > Limits::POINTER_BYTES {
        return fault(format!(
            "may have {} bytes, has {}",
            Limits::POINTER_BYTES,
            pointer.len()
        ));
    }
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return fault(format!(
            "`{pointer}` is not a JSON pointer: begin with a slash, as in `/{pointer}`"
        ));
    }
    Ok(())
}

/// How many, and in how many milliseconds.
fn parse_rate(field: &str, text: &str) -> Result<(u32, u64), SpecError> {
    let fault = |message: String| SpecError::new(field, message);
    let form = || {
        fault(format!(
            "`{text}` is not a rate: write how many and in which time, such as `100/1m` or `5/1s`"
        ))
    };
    let (number, duration) = text.split_once('/').ok_or_else(form)?;
    let number: u32 = number.trim().parse().map_err(|_| form())?;
    if number == 0 || number > Limits::CONCURRENCY {
        return Err(fault(format!(
            "`{number}` in `{text}` is not between 1 and {}",
            Limits::CONCURRENCY
        )));
    }
    let period_ms = parse_duration(duration).map_err(|error| fault(error.to_string()))?;
    if !(Limits::RATE_MIN_MS..=Limits::RATE_MAX_MS).contains(&period_ms) {
        return Err(fault(format!(
            "`{duration}` in `{text}` is not between 1s and 30d"
        )));
    }
    Ok((number, period_ms))
}

/// The value that a run counts under, as part of a key: short and free of separators. Parameters that lack the place, and
/// runs without any, count as `null`.
pub fn key_value(params: Option<&JsonText>, pointer: &str) -> String {
    use serde_json::Value;
    let document = params.map_or(Value::Null, JsonText::to_value);
    let text = match document.pointer(pointer) {
        Some(Value::String(text)) => format!("={}", escaped(text)),
        Some(other) => format!("~{}", escaped(&other.to_string())),
        None => "~null".to_owned(),
    };
    if text.len() <= Limits::KEY_VALUE_BYTES {
        return text;
    }
    let hash = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
    format!("#{hash:032x}")
}

/// A key's value as people read it.
pub fn key_words(value: &str) -> String {
    let plain = |text: &str| {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            let hex = |byte: Option<u8>| char::from(byte?).to_digit(16);
            match byte {
                b'%' => {
                    let code = hex(rest.next()).zip(hex(rest.next()));
                    bytes.push(code.map_or(b'?', |(high, low)| (high * 16 + low) as u8));
                }
                byte => bytes.push(byte),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    match value.split_at_checked(1) {
        Some(("=", text)) => format!("\"{}\"", plain(text)),
        Some(("~", text)) => plain(text),
        _ => value.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                escaped.push(char::from(byte));
            }
            byte => escaped.push_str(&format!("%{byte:02x}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn limits(value: serde_json::Value) -> Result<ParsedLimits, SpecError> {
        let limits: JobLimits = serde_json::from_value(value).expect("limits");
        limits.parsed("limits")
    }

    #[track_caller]
    fn refused(value: serde_json::Value, field: &str, words: &str) {
        let fault = limits(value).expect_err("refused");
        assert_eq!(fault.field, field);
        assert!(fault.message.contains(words), "{fault}");
    }

    #[test]
    fn limits_are_read() {
        let read = limits(
            json!({"concurrency": 3, "key": "/a/b", "per_key": 2, "rate": "100/1m", "burst": 10}),
        );
        let read = read.expect("they are read");
        assert_eq!(read.concurrency, Some(3));
        assert_eq!(read.rate, Some(Rate::new(100, 60_000, 10)));
        assert_eq!(read.per_key.map(|it| it.most), Some(2));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_remedy() {
        refused(json!({}), "limits", "limits nothing");
        refused(
            json!({"concurrency": 0}),
            "limits.concurrency",
            "`0` is not between 1",
        );
        refused(json!({"key": "/a"}), "limits.key", "per_key");
        refused(json!({"per_key": 1}), "limits.per_key", "needs `key`");
        refused(
            json!({"key": "a", "per_key": 1}),
            "limits.key",
            "as in `/a`",
        );
        refused(json!({"burst": 2}), "limits.burst", "needs `rate`");
        refused(
            json!({"rate": "3/1s", "burst": 4}),
            "limits.burst",
            "`4` is more than the 3",
        );
        for rate in ["", "1", "x/1s", "-1/1s", "1/", "1/5"] {
            refused(json!({"rate": rate}), "limits.rate", "");
        }
        refused(json!({"rate": "0/1s"}), "limits.rate", "`0` in `0/1s`");
        refused(
            json!({"rate": "1/500ms"}),
            "limits.rate",
            "between 1s and 30d",
        );
        refused(
            json!({"rate": "1/31d"}),
            "limits.rate",
            "between 1s and 30d",
        );
    }

    #[test]
    fn keys_are_short_and_tell_values_apart() {
        let params = |text: &str| JsonText::parse("params", text).expect("JSON");
        let key = |text: &str| key_value(Some(&params(text)), "/c");
        assert_eq!(key(r#"{"c": "eu/1 ä"}"#), "=eu%2f1%20%c3%a4");
        assert_eq!(key_words(&key(r#"{"c": "eu/1 ä"}"#)), "\"eu/1 ä\"");
        assert_eq!(key(r#"{"c": 7}"#), "~7");
        assert_ne!(key(r#"{"c": "7"}"#), key(r#"{"c": 7}"#));
        assert_eq!(key("{}"), "~null");
        assert_eq!(key(r#"{"c": null}"#), "~null");
        assert_eq!(key_value(None, "/c"), "~null");
        let long = format!(r#"{{"c": "{}"}}"#, "x".repeat(500));
        assert_eq!(key(&long).len(), 33);
        assert_eq!(key_words("#0f"), "#0f");
    }
}
