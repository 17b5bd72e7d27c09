//! From the reports of benches to ratios.

use std::fmt::Write;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

/// What is compared of one bench.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub per_s: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// CPU of the server; `None` where the system does not tell.
    pub cpu_us: Option<f64>,
    pub refused: u64,
}

pub struct Round {
    pub old: Figures,
    pub new: Figures,
}

impl Figures {
    /// Reads the report of `drumtower bench throughput`.
    pub fn read(report: &Value) -> Result<Self> {
        let at = |pointer: &str| {
            let found = report.pointer(pointer).and_then(Value::as_f64);
            found.ok_or_else(|| anyhow!("the bench's report has no number at {pointer}"))
        };
        Ok(Self {
            per_s: at("/completed_per_s")?,
            p50_ms: at("/start_delay_ms/p50")?,
            p99_ms: at("/start_delay_ms/p99")?,
            cpu_us: at("/server_cpu_us_per_run").ok(),
            refused: report["refused"].as_u64().unwrap_or(0),
        })
    }

    pub fn line(&self) -> String {
        let cpu = self.cpu_us.map_or("-".to_owned(), |us| format!("{us:.1}"));
        format!(
            "{:.0} runs/s, start delay p50 {:.1} ms, p99 {:.1} ms, {cpu} µs of CPU a run",
            self.per_s, self.p50_ms, self.p99_ms
        )
    }

    fn value(&self) -> Value {
        json!({
            "completed_per_s": self.per_s,
            "start_delay_p50_ms": self.p50_ms,
            "start_delay_p99_ms": self.p99_ms,
            "server_cpu_us_per_run": self.cpu_us,
            "refused": self.refused,
        })
    }
}

impl Round {
    pub fn value(&self) -> Value {
        json!({"old": self.old.value(), "new": self.new.value()})
    }
}

/// One figure of both builds in every round, as new over old.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.retain(|ratio| ratio.is_finite());
        ratios.sort_by(f64::total_cmp);
        let (least, most) = (*ratios.first()?, *ratios.last()?);
        let middle = ratios.len() / 2;
        let median = match ratios.len() % 2 {
            0 => (ratios[middle - 1] + ratios[middle]) / 2.0,
            _ => ratios[middle],
        };
        Some(Self {
            median,
            least,
            most,
        })
    }

    fn value(self) -> Value {
        let rounded = |ratio: f64| (ratio * 1000.0).round() / 1000.0;
        json!({"median": rounded(self.median), "least": rounded(self.least), "most": rounded(self.most)})
    }
}

type Figure = (&'static str, &'static str, fn(&Figures) -> Option<f64>);

/// Its key in JSON, its name for people, and where it is found.
const COMPARED: [Figure; 4] = [
    ("throughput", "runs/s", |it| Some(it.per_s)),
    ("start_delay_p50", "p50 ms", |it| Some(it.p50_ms)),
    ("start_delay_p99", "p99 ms", |it| Some(it.p99_ms)),
    ("server_cpu", "CPU µs/run", |it| it.cpu_us),
];

fn spread(rounds: &[Round], of: fn(&Figures) -> Option<f64>) -> Option<Spread> {
    let ratio = |round: &Round| Some(of(&round.new)? / of(&round.old)?);
    Spread::of(rounds.iter().filter_map(ratio).collect())
}

/// The median of new over old; nothing measured is no throughput.
pub fn throughput_ratio(rounds: &[Round]) -> f64 {
    spread(rounds, |it| Some(it.per_s)).map_or(0.0, |spread| spread.median)
}

pub fn summary(rounds: &[Round]) -> Value {
    let ratios = COMPARED.iter().map(|(key, _, of)| {
        let value = spread(rounds, *of).map_or(Value::Null, Spread::value);
        ((*key).to_owned(), value)
    });
    Value::Object(ratios.collect())
}

/// A line for each round, old and new side by side, and the ratios below.
pub fn table(commit: &str, rounds: &[Round]) -> String {
    let short: String = commit.chars().take(10).collect();
    let mut text = format!("old: {short}, new: the working tree\n\n{:<8}", "round");
    for (_, name, _) in COMPARED {
        let _ = write!(text, "{:>24}", format!("{name} old, new"));
    }
    let shown = |figure: Option<f64>| figure.map_or("-".to_owned(), |it| format!("{it:.1}"));
    for (number, round) in rounds.iter().enumerate() {
        let _ = write!(text, "\n{:<8}", number + 1);
        for (_, _, of) in COMPARED {
            let pair = format!("{}, {}", shown(of(&round.old)), shown(of(&round.new)));
            let _ = write!(text, "{pair:>24}");
        }
    }
    let _ = write!(
        text,
        "\n\nnew / old, median of the rounds (least to most):\n"
    );
    for (_, name, of) in COMPARED {
        let ratio = spread(rounds, of).map_or("-".to_owned(), |it| {
            format!("{:.3} ({:.3} to {:.3})", it.median, it.least, it.most)
        });
        let _ = writeln!(text, "  {name:<12} {ratio}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(per_s: f64) -> Figures {
        Figures {
            per_s,
            p50_ms: 2.0,
            p99_ms: 10.0,
            cpu_us: Some(30.0),
            refused: 0,
        }
    }

    fn rounds(pairs: &[(f64, f64)]) -> Vec<Round> {
        let round = |(old, new): &(f64, f64)| Round {
            old: figures(*old),
            new: figures(*new),
        };
        pairs.iter().map(round).collect()
    }

    #[test]
    fn a_report_is_read_and_what_is_missing_is_named() {
        let mut report = serde_json::json!({
            "completed_per_s": 23148.5, "refused": 3, "server_cpu_us_per_run": 29.0,
            "start_delay_ms": {"p50": 2.1, "p99": 14.7, "p999": 48.0, "max": 110.0},
        });
        let read = Figures::read(&report).unwrap();
        assert_eq!((read.per_s, read.p99_ms, read.refused), (23148.5, 14.7, 3));
        report["server_cpu_us_per_run"] = Value::Null;
        assert_eq!(Figures::read(&report).unwrap().cpu_us, None);
        report["start_delay_ms"] = Value::Null;
        let refused = Figures::read(&report).unwrap_err().to_string();
        assert!(refused.contains("/start_delay_ms/p50"), "{refused}");
    }

    #[test]
    fn the_ratio_is_taken_within_a_round_and_its_median_is_the_answer() {
        // A machine that is three times slower in the second round says nothing about either build.
        let measured = rounds(&[(3000.0, 2850.0), (1000.0, 900.0), (3000.0, 3300.0)]);
        assert!((throughput_ratio(&measured) - 0.95).abs() < 1e-9);
        let value = &summary(&measured)["throughput"];
        assert_eq!(
            (&value["least"], &value["most"]),
            (&json!(0.9), &json!(1.1))
        );
    }

    #[test]
    fn an_even_number_of_rounds_has_a_median_between_two() {
        let measured = rounds(&[(100.0, 90.0), (100.0, 100.0)]);
        assert!((throughput_ratio(&measured) - 0.95).abs() < 1e-9);
    }

    #[test]
    fn nothing_measured_is_never_good_enough() {
        assert_eq!(throughput_ratio(&[]), 0.0);
        assert_eq!(throughput_ratio(&rounds(&[(0.0, 0.0)])), 0.0);
        let mut unknown = rounds(&[(1.0, 1.0)]);
        unknown[0].old.cpu_us = None;
        assert_eq!(summary(&unknown)["server_cpu"], Value::Null);
    }

    #[test]
    fn the_table_shows_every_round_and_the_ratios() {
        let text = table(
            "0123456789abcdef",
            &rounds(&[(100.0, 90.0), (100.0, 100.0)]),
        );
        assert!(text.contains("old: 0123456789, new"), "{text}");
        assert!(text.contains("100.0, 90.0"), "{text}");
        assert!(text.contains("0.950 (0.900 to 1.000)"), "{text}");
    }
}
