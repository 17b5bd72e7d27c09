//! A line for each stretch of a soak, and the drift from the first third of them to the last.

use std::time::Duration;

use drumtower_core::model::RunId;
use serde_json::{Value, json};

use super::super::figures::{Delays, delay_words, megabytes, rounded};
use super::super::load::Triggered;
use super::super::samples::Sample;
use super::super::usage::Usage;
use crate::failure::Result;

/// The server at one moment.
pub struct Mark {
    pub usage: Usage,
    pub store_bytes: u64,
}

pub struct Measured {
    pub every: Duration,
    pub triggered: Triggered,
    /// In order of run.
    pub samples: Vec<Sample>,
    /// One at the beginning, then one at the end of each line.
    pub marks: Vec<Mark>,
}

impl Measured {
    /// When each run was meant, and when it started.
    fn starts(&self) -> impl Iterator<Item = (u64, u64)> {
        let start = |run: &RunId| {
            let place = self.samples.binary_search_by_key(run, |sample| sample.run);
            place.ok().map(|place| self.samples[place].started_us)
        };
        let runs = self.triggered.runs.iter();
        runs.filter_map(move |(run, meant_us)| Some((*meant_us, start(run)?)))
    }

    pub fn whole(&self) -> Result<Delays> {
        let mut delays = Delays::new()?;
        for (meant_us, started_us) in self.starts() {
            delays.add(meant_us, started_us);
        }
        Ok(delays)
    }

    pub fn lines(&self) -> Result<Vec<Value>> {
        let count = self.marks.len().saturating_sub(1);
        let mut delays = (0..count)
            .map(|_| Delays::new())
            .collect::<Result<Vec<_>>>()?;
        let every_us = self.every.as_micros().max(1);
        for (meant_us, started_us) in self.starts() {
            let since = u128::from(meant_us.saturating_sub(self.triggered.window.from_us));
            let line = usize::try_from(since / every_us).unwrap_or(usize::MAX);
            if let Some(delays) = delays.get_mut(line) {
                delays.add(meant_us, started_us);
            }
        }
        let pairs = self.marks.windows(2).zip(delays);
        Ok(pairs
            .map(|(pair, delays)| self.line(&pair[0], &pair[1], &delays))
            .collect())
    }

    fn line(&self, before: &Mark, after: &Mark, delays: &Delays) -> Value {
        let usage = after.usage.clone().since(&before.usage);
        let ran = usage.ran.max(1) as f64;
        json!({
            "ran_per_s": rounded(usage.ran as f64 / self.every.as_secs_f64()),
            "start_delay_ms": delays.value(),
            "server_cpu_us_per_run": usage.server.map(|cpu| rounded(cpu.total_us() as f64 / ran)),
            "server_rss_bytes": usage.server_rss_bytes,
            "store_bytes": after.store_bytes,
        })
    }
}

const DRIFTING: [(&str, &str); 5] = [
    ("start_delay_p50", "/start_delay_ms/p50"),
    ("start_delay_p99", "/start_delay_ms/p99"),
    ("server_cpu", "/server_cpu_us_per_run"),
    ("server_rss", "/server_rss_bytes"),
    ("store", "/store_bytes"),
];

/// The mean of the last third of the lines over that of the first; null when there is nothing to compare.
pub fn drift(lines: &[Value]) -> Value {
    let third = lines.len() / 3;
    let (first, last) = (&lines[..third], &lines[lines.len() - third..]);
    let mean = |lines: &[Value], pointer| {
        let numbers: Option<Vec<f64>> = lines
            .iter()
            .map(|line| line.pointer(pointer)?.as_f64())
            .collect();
        numbers
            .filter(|numbers| !numbers.is_empty())
            .map(|numbers| numbers.iter().sum::<f64>() / numbers.len() as f64)
    };
    let ratio = |pointer| {
        let (first, last) = mean(first, pointer).zip(mean(last, pointer))?;
        (first > 0.0).then(|| rounded(last / first))
    };
    let ratios = DRIFTING.map(|(figure, pointer)| (figure.to_owned(), json!(ratio(pointer))));
    Value::Object(ratios.into_iter().collect())
}

pub fn words(report: &Value) -> String {
    let mut lines = vec![
        (
            "offered",
            format!("{} runs/s for {} s", report["rate"], report["duration_s"]),
        ),
        ("start delay", delay_words(&report["start_delay_ms"])),
    ];
    for line in report["lines"].as_array().into_iter().flatten() {
        let words = format!(
            "{} runs/s, {}, {} µs of CPU a run, {} resident, store {}",
            line["ran_per_s"],
            delay_words(&line["start_delay_ms"]),
            line["server_cpu_us_per_run"],
            megabytes(&line["server_rss_bytes"]),
            megabytes(&line["store_bytes"])
        );
        lines.push(("line", words));
    }
    let drift = &report["drift"];
    let words = format!(
        "p50 ×{}, p99 ×{}, CPU ×{}, memory ×{}, store ×{}",
        drift["start_delay_p50"],
        drift["start_delay_p99"],
        drift["server_cpu"],
        drift["server_rss"],
        drift["store"]
    );
    lines.push(("drift", words));
    lines.push((
        "history",
        format!("{} runs put, {} gone", report["put"], report["pruned"]),
    ));
    if !report["lists"].is_null() {
        lines.push(("lists", delay_words(&report["lists"]["delay_ms"])));
    }
    let seen = &report["workers_seen"];
    lines.push((
        "workers",
        format!(
            "at most {} suspected, {} lost",
            seen["suspected_at_most"], seen["losses"]
        ),
    ));
    lines.push((
        "fates",
        format!(
            "{} lost, {} duplicated",
            report["lost"], report["duplicated"]
        ),
    ));
    crate::output::pairs(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_third_is_compared_with_the_first() {
        let line = |rss: f64| json!({ "server_rss_bytes": rss, "store_bytes": 5 });
        let lines = [1.0, 3.0, 9.0, 9.0, 9.0, 4.0, 4.0].map(line);
        let drift = drift(&lines);
        assert_eq!(drift["server_rss"], 2.0);
        assert_eq!(drift["store"], 1.0);
        assert_eq!(drift["start_delay_p99"], Value::Null);
        assert_eq!(super::drift(&lines[..2])["store"], Value::Null);
    }

    #[test]
    fn a_run_belongs_to_the_line_in_which_it_was_meant() {
        let mark = || Mark {
            usage: Usage::default(),
            store_bytes: 7,
        };
        let sample = |run, started_us| Sample {
            run: RunId(run),
            job: 0,
            due_us: 0,
            started_us,
            ended_us: started_us,
        };
        let measured = Measured {
            every: Duration::from_secs(1),
            triggered: Triggered {
                runs: vec![
                    (RunId(1), 10_000),
                    (RunId(2), 1_990_000),
                    (RunId(3), 1_000_000),
                ],
                ..Triggered::default()
            },
            samples: vec![sample(1, 15_000), sample(2, 2_020_000)],
            marks: vec![mark(), mark(), mark()],
        };
        let lines = measured.lines().expect("lines");
        let max = |line: &Value| line["start_delay_ms"]["max"].as_f64().map(f64::round);
        assert_eq!([max(&lines[0]), max(&lines[1])], [Some(5.0), Some(30.0)]);
    }
}
