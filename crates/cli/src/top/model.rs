//! What is shown: the last answer, the rates between it and the one before, and where the user is.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::feed::Question;
use crate::output::{bytes, tame, text};

/// One of the three tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    Lines,
    Workers,
    Failing,
}

impl Pane {
    pub const ALL: [Self; 3] = [Self::Lines, Self::Workers, Self::Failing];

    pub fn title(self) -> &'static str {
        match self {
            Self::Lines => "waiting",
            Self::Workers => "workers",
            Self::Failing => "failing jobs",
        }
    }

    pub fn heads(self) -> &'static [&'static str] {
        match self {
            Self::Lines => &[
                "NAMESPACE",
                "NEEDS",
                "PRIORITY",
                "WEIGHT",
                "WAITING",
                "HELD",
                "OLDEST",
                "WORKERS",
            ],
            Self::Workers => &[
                "WORKER", "STATE", "WEIGHT", "ATTEMPTS", "CPU", "MEMORY", "CLOCK",
            ],
            Self::Failing => &["NAMESPACE", "JOB", "FAILED", "COMPLETED"],
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Workers => "workers",
            Self::Failing => "failing",
        }
    }
}

/// One line of a table: what is shown, and what it is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub cells: Vec<String>,
    keys: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum Key {
    Text(String),
    /// The largest first.
    Number(f64),
}

/// Rates of one second, and the start delay of the starts between two answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    pub made: Option<f64>,
    pub started: f64,
    pub completed: f64,
    pub failed: f64,
    /// The bound under which half, and 99 of 100, of the starts lay; `None` without starts.
    pub p50_s: Option<Bound>,
    pub p99_s: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    Within(f64),
    Above(f64),
}

impl Bound {
    pub fn words(self) -> String {
        let span = |seconds: f64| {
            if seconds < 1.0 {
                format!("{:.0}ms", seconds * 1e3)
            } else {
                format!("{seconds:.0}s")
            }
        };
        match self {
            Self::Within(seconds) => format!("≤{}", span(seconds)),
            Self::Above(seconds) => format!(">{}", span(seconds)),
        }
    }
}

pub struct Model {
    pub now: Value,
    pub rates: Rates,
    pub lost: Option<String>,
    pub held: bool,
    pub pane: Pane,
    pub chosen: [usize; 3],
    pub sorted: [usize; 3],
    pub filter: String,
    pub typing: bool,
    pub popup: Option<Vec<String>>,
}

impl Model {
    pub fn new(first: Value) -> Self {
        Self {
            now: first,
            rates: Rates::default(),
            lost: None,
            held: false,
            pane: Pane::Workers,
            chosen: [0; 3],
            // The longest line and the most failures stand first.
            sorted: [4, 0, 2],
            filter: String::new(),
            typing: false,
            popup: None,
        }
    }

    pub fn heard(&mut self, overview: Value) {
        self.lost = None;
        if !self.held {
            self.rates = rates(&self.now, &overview);
            self.now = overview;
        }
    }

    pub fn lost(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// Details came of the row that was asked about, unless the user went on.
    pub fn details(&mut self, lines: Vec<String>) {
        if self.popup.is_some() {
            self.popup = Some(lines);
        }
    }

    /// What programs get.
    pub fn json(&self) -> Value {
        let rates = &self.rates;
        let second = |bound: Option<Bound>| match bound {
            Some(Bound::Within(seconds)) => json!(seconds),
            _ => Value::Null,
        };
        let mut all = self.now.clone();
        all["rates"] = json!({
            "made": rates.made,
            "started": rates.started,
            "completed": rates.completed,
            "failed": rates.failed,
            "start_delay_p50_s": second(rates.p50_s),
            "start_delay_p99_s": second(rates.p99_s),
        });
        all
    }

    /// The rows of a table, filtered and sorted as the user wants them.
    pub fn rows(&self, pane: Pane) -> Vec<Row> {
        let items = self.now.get(pane.field()).and_then(Value::as_array);
        let now_ms = millis(&self.now, "now");
        let made = items.into_iter().flatten().map(|item| match pane {
            Pane::Lines => line(item, now_ms),
            Pane::Workers => worker(item),
            Pane::Failing => failing(item),
        });
        let mut rows: Vec<Row> = made
            .filter(|row| {
                self.filter.is_empty() || row.cells.iter().any(|cell| cell.contains(&self.filter))
            })
            .collect();
        let column = self.sorted[pane as usize];
        rows.sort_by(|one, other| {
            let (a, b) = (&one.keys[column], &other.keys[column]);
            match (a, b) {
                (Key::Number(a), Key::Number(b)) => b.total_cmp(a),
                _ => a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal),
            }
        });
        rows
    }

    pub fn next_pane(&mut self) {
        self.pane = Pane::ALL[(self.pane as usize + 1) % Pane::ALL.len()];
    }

    pub fn sort_by_next(&mut self) {
        let sorted = &mut self.sorted[self.pane as usize];
        *sorted = (*sorted + 1) % self.pane.heads().len();
    }

    pub fn choose(&mut self, step: isize) {
        let last = self.rows(self.pane).len().saturating_sub(1);
        let chosen = &mut self.chosen[self.pane as usize];
        *chosen = chosen.saturating_add_signed(step).min(last);
    }

    /// What to ask for the details of the chosen row.
    pub fn question(&mut self) -> Option<Question> {
        let rows = self.rows(self.pane);
        let row = rows.get(self.chosen[self.pane as usize])?;
        let question = match self.pane {
            Pane::Workers => Question::Worker(row.cells[0].clone()),
            Pane::Failing => Question::Job {
                namespace: row.cells[0].clone(),
                name: row.cells[1].clone(),
            },
            Pane::Lines => {
                let words = Pane::Lines.heads().iter().zip(&row.cells);
                self.popup = Some(
                    words
                        .map(|(head, cell)| format!("{head:<10} {cell}"))
                        .collect(),
                );
                return None;
            }
        };
        self.popup = Some(vec!["…".to_owned()]);
        Some(question)
    }
}

fn number(value: &Value, field: &str) -> f64 {
    let field = format!("/{}", field.replace('.', "/"));
    value
        .pointer(&field)
        .and_then(Value::as_f64)
        .unwrap_or_default()
}

fn millis(value: &Value, field: &str) -> Option<i64> {
    let time: Timestamp = value.get(field)?.as_str()?.parse().ok()?;
    Some(time.as_millisecond())
}

fn rates(before: &Value, after: &Value) -> Rates {
    let span = match (millis(before, "now"), millis(after, "now")) {
        (Some(before), Some(after)) if after > before => (after - before) as f64 / 1e3,
        _ => return Rates::default(),
    };
    // A server that was restarted counts from the beginning.
    let restarted = number(after, "uptime_ms") < number(before, "uptime_ms");
    let grown = |field: &str| {
        let base = if restarted {
            0.0
        } else {
            number(before, field)
        };
        (number(after, field) - base).max(0.0)
    };
    let rate = |field: &str| grown(field) / span;
    let made = after.pointer("/counters/made").and_then(Value::as_u64);
    let starts = starts(if restarted { &Value::Null } else { before }, after);
    Rates {
        made: made.map(|_| rate("counters.made")),
        started: rate("counters.started"),
        completed: rate("counters.completed"),
        failed: rate("counters.failed"),
        p50_s: quantile(&starts, 0.5),
        p99_s: quantile(&starts, 0.99),
    }
}

/// Starts between two answers: how many at or below each bound.
fn starts(before: &Value, after: &Value) -> Vec<(Option<f64>, f64)> {
    let buckets = |value: &Value| -> Vec<(Option<f64>, f64)> {
        let all = value.get("start_delay").and_then(Value::as_array);
        all.into_iter()
            .flatten()
            .map(|bucket| {
                let bound = bucket.get("up_to_s").and_then(Value::as_f64);
                (bound, number(bucket, "count"))
            })
            .collect()
    };
    let before = buckets(before);
    buckets(after)
        .into_iter()
        .enumerate()
        .map(|(at, (bound, count))| {
            let base = before.get(at).map_or(0.0, |(_, count)| *count);
            (bound, count - base)
        })
        .collect()
}

fn quantile(starts: &[(Option<f64>, f64)], share: f64) -> Option<Bound> {
    let all = starts.last().map(|(_, count)| *count)?;
    if all <= 0.0 {
        return None;
    }
    let enough = starts.iter().find(|(_, count)| *count >= all * share)?;
    match enough.0 {
        Some(bound) => Some(Bound::Within(bound)),
        None => starts
            .iter()
            .rev()
            .find_map(|(bound, _)| *bound)
            .map(Bound::Above),
    }
}

fn row(cells: Vec<(String, Key)>) -> Row {
    let (cells, keys) = cells
        .into_iter()
        .map(|(cell, key)| (tame(&cell), key))
        .unzip();
    Row { cells, keys }
}

fn words(item: &Value, field: &str) -> (String, Key) {
    let text = text(item, field);
    (text.clone(), Key::Text(text))
}

fn count(item: &Value, field: &str) -> (String, Key) {
    let number = number(item, field);
    (format!("{number:.0}"), Key::Number(number))
}

fn line(item: &Value, now_ms: Option<i64>) -> Row {
    let waits = millis(item, "oldest")
        .zip(now_ms)
        .map(|(oldest, now)| u64::try_from(now - oldest).unwrap_or(0));
    let parked = item.get("parked") == Some(&Value::Bool(true));
    let (waiting, key) = count(item, "waiting");
    let oldest = waits.map_or_else(|| "-".to_owned(), crate::output::duration);
    row(vec![
        words(item, "namespace"),
        words(item, "need"),
        count(item, "priority"),
        count(item, "weight"),
        (format!("{waiting}{}", if parked { "+" } else { "" }), key),
        count(item, "held"),
        (oldest, Key::Number(waits.unwrap_or(0) as f64)),
        count(item, "workers"),
    ])
}

fn worker(item: &Value) -> Row {
    let (weight, capacity) = (
        number(item, "load.running_weight"),
        number(item, "capacity"),
    );
    let cpu = number(item, "load.cpu_permille") / 10.0;
    let memory = |field: &str| number(item, field) as u64;
    let used = memory("load.memory_used_bytes");
    let skew = number(item, "skew_ms");
    row(vec![
        words(item, "name"),
        words(item, "state"),
        (format!("{weight:.0}/{capacity:.0}"), Key::Number(weight)),
        count(item, "attempts"),
        (format!("{cpu:.0} %"), Key::Number(cpu)),
        (
            format!(
                "{} of {}",
                bytes(used),
                bytes(memory("load.memory_total_bytes"))
            ),
            Key::Number(used as f64),
        ),
        (format!("{skew:+.0}ms"), Key::Number(skew.abs())),
    ])
}

fn failing(item: &Value) -> Row {
    row(vec![
        words(item, "namespace"),
        words(item, "job"),
        count(item, "failed"),
        count(item, "completed"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(second: u32, made: u64, buckets: [u64; 3]) -> Value {
        json!({
            "now": format!("2026-01-01T00:00:{second:02}.000Z"),
            "uptime_ms": second * 1000,
            "counters": {"made": made, "started": made, "completed": made, "failed": 0},
            "start_delay": [
                {"up_to_s": 0.005, "count": buckets[0]},
                {"up_to_s": 1.0, "count": buckets[1]},
                {"up_to_s": null, "count": buckets[2]},
            ],
            "lines": [
                {"namespace": "a", "need": "exec", "priority": 2, "weight": 1, "waiting": 5, "held": 4, "parked": true,
                 "oldest": "2026-01-01T00:00:00.000Z", "workers": 0},
                {"namespace": "b", "need": "http", "priority": 2, "weight": 1, "waiting": 50, "held": 0, "parked": false,
                 "oldest": null, "workers": 3},
            ],
        })
    }

    #[test]
    fn two_answers_make_rates_and_delays() {
        let mut model = Model::new(answer(10, 100, [100, 100, 100]));
        model.heard(answer(12, 300, [290, 298, 300]));
        let rates = &model.rates;
        assert_eq!((rates.made, rates.started), (Some(100.0), 100.0));
        assert_eq!(rates.p50_s, Some(Bound::Within(0.005)));
        assert_eq!(rates.p99_s, Some(Bound::Within(1.0)));
        model.heard(answer(13, 300, [290, 298, 300]));
        assert_eq!(model.rates.p50_s, None, "nothing started");
        model.heard(answer(3, 30, [0, 0, 30]));
        assert_eq!(model.rates, Rates::default(), "the clock went back");
    }

    #[test]
    fn a_server_that_was_restarted_counts_anew() {
        let mut model = Model::new(answer(10, 100, [100, 100, 100]));
        let mut restarted = answer(11, 7, [0, 0, 7]);
        restarted["uptime_ms"] = json!(500);
        model.heard(restarted);
        assert_eq!(model.rates.made, Some(7.0));
        assert_eq!(model.rates.p50_s, Some(Bound::Above(1.0)));
    }

    #[test]
    fn rows_are_sorted_and_filtered() {
        let mut model = Model::new(answer(10, 0, [0; 3]));
        let first = |model: &Model| model.rows(Pane::Lines)[0].cells.join(" ");
        assert_eq!(first(&model), "b http 2 1 50 0 - 3");
        model.sorted[Pane::Lines as usize] = 6;
        assert_eq!(first(&model), "a exec 2 1 5+ 4 10.0s 0");
        model.filter = "http".to_owned();
        assert_eq!(model.rows(Pane::Lines).len(), 1);
    }
}
