//! One value in a table, and how it looks.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use serde_json::Value;

use super::View;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Text(String),
    /// A state of a run or a worker: its colour says whether to look.
    State(String),
    /// An instant as the API writes it; `None` when there is none.
    Time(Option<String>),
}

impl Cell {
    /// The text of a field, empty when it is missing or null.
    pub fn text(value: &Value, field: &str) -> Self {
        Self::Text(text(value, field))
    }

    pub fn state(value: &Value, field: &str) -> Self {
        Self::State(text(value, field))
    }

    pub fn time(value: &Value, field: &str) -> Self {
        Self::Time(
            value
                .pointer(&pointer(field))
                .and_then(Value::as_str)
                .map(str::to_owned),
        )
    }

    /// The words without any colour, safe for a terminal: whatever was stored cannot move its cursor.
    pub fn words(&self, view: View) -> String {
        match self {
            Self::Text(text) | Self::State(text) => tame(text),
            Self::Time(None) => if view.terminal { "-" } else { "" }.to_owned(),
            Self::Time(Some(time)) if view.terminal => relative(time, view.now_ms),
            Self::Time(Some(time)) => tame(time),
        }
    }

    pub fn style(&self) -> Style {
        let Self::State(state) = self else {
            return Style::new();
        };
        let color = match state.as_str() {
            "COMPLETED" | "ONLINE" | "active" => AnsiColor::Green,
            "FAILED" | "OFFLINE" | "FAULTY" | "unknown" | "broken" => AnsiColor::Red,
            "RUNNING" | "SCHEDULED" | "BUSY" | "planned" | "pending" => AnsiColor::Cyan,
            "CANCELLED" | "MAINTENANCE" | "paused" | "probing" | "unfired" | "excluded" => {
                AnsiColor::Yellow
            }
            _ => return Style::new(),
        };
        color.on_default()
    }
}

/// A dotted path into a JSON value.
fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

/// A field as text: strings as they are, anything else as JSON, nothing for null.
pub fn text(value: &Value, field: &str) -> String {
    match value.pointer(&pointer(field)) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Text without anything that could move a terminal's cursor.
pub fn tame(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// An instant as the API writes it, without milliseconds that say nothing.
pub fn exact(time: &str) -> String {
    match time.strip_suffix(".000Z") {
        Some(seconds) => format!("{seconds}Z"),
        None => time.to_owned(),
    }
}

fn relative(time: &str, now_ms: i64) -> String {
    let Ok(at) = time.parse::<Timestamp>() else {
        return tame(time);
    };
    let ago = now_ms.saturating_sub(at.as_millisecond());
    let span = span(ago.unsigned_abs());
    if ago.unsigned_abs() < 1000 {
        "now".to_owned()
    } else if ago > 0 {
        format!("{span} ago")
    } else {
        format!("in {span}")
    }
}

/// A length of time in its largest unit, or two.
fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// How long something took.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => span(ms),
    }
}

/// An amount of memory or disk.
pub fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{size:.1} {}", units[unit])
    }
}
