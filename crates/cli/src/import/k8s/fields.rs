//! The fields of a CronJob, each of the type that it must have, and the meaning of its days.

use serde_json::Value;

/// What a CronJob asks for that is refused: the field, and the reason with the remedy.
pub type Refusal = (String, String);

/// Text, or nothing. A value of another type is a mistake that a cluster would refuse, too.
pub fn text<'a>(value: &'a Value, path: &str, key: &str) -> Result<Option<&'a str>, Refusal> {
    match &value[key] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(wrong(other, path, key, "text: put it in quotes")),
    }
}

pub fn number(value: &Value, path: &str, key: &str) -> Result<Option<u64>, Refusal> {
    match &value[key] {
        Value::Null => Ok(None),
        other => match other.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(other, path, key, "a whole number")),
        },
    }
}

pub fn flag(value: &Value, path: &str, key: &str) -> Result<bool, Refusal> {
    match &value[key] {
        Value::Null => Ok(false),
        Value::Bool(on) => Ok(*on),
        other => Err(wrong(other, path, key, "`true` or `false`")),
    }
}

pub fn words(value: &Value, path: &str, key: &str) -> Result<Vec<Value>, Refusal> {
    match &value[key] {
        Value::Null => Ok(Vec::new()),
        Value::Array(words) => match words.iter().find(|word| !word.is_string()) {
            None => Ok(words.clone()),
            Some(word) => Err(wrong(word, path, key, "text: put it in quotes")),
        },
        other => Err(wrong(other, path, key, "a list")),
    }
}

fn wrong(value: &Value, path: &str, key: &str, wanted: &str) -> Refusal {
    let shown: String = value.to_string().chars().take(40).collect();
    (
        format!("{path}.{key}"),
        format!("`{shown}` is not what belongs here, which is {wanted}"),
    )
}

/// The line with the meaning that robfig/cron gives its days: a stepped star restricts, and when both days are restricted
/// either counts. Here a field that begins with a star does not restrict.
pub fn either_day(times: &str) -> String {
    let mut fields: Vec<String> = times.split_whitespace().map(str::to_owned).collect();
    let [_, _, day, _, weekday] = fields.as_mut_slice() else {
        return times.to_owned();
    };
    let free = |part: &str| matches!(part, "*" | "?" | "*/1" | "?/1");
    let restricts = |field: &str| !field.split(',').any(free);
    if restricts(day) && restricts(weekday) {
        let stepped = |field: &str, all: &str| {
            let parts = field.split(',').map(|part| match part.strip_prefix("*/") {
                Some(step) => format!("{all}/{step}"),
                None => part.to_owned(),
            });
            parts.collect::<Vec<_>>().join(",")
        };
        *day = stepped(day, "1-31");
        *weekday = stepped(weekday, "0-6");
        return fields.join(" ");
    }
    times.to_owned()
}
