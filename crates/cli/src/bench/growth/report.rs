//! From what was measured of each system to factors of growth.

use serde_json::{Value, json};

use super::super::figures::{delay_words, megabytes, rounded};
use crate::failure::{Failure, Result};

const CPU: &str = "/server_cpu_us_per_run";
/// What is compared, and where it stands.
const FIGURES: [(&str, &str); 6] = [
    ("server_cpu", CPU),
    (
        "server_cpu_beyond_idle",
        "/server_cpu_us_per_run_beyond_idle",
    ),
    ("written", "/written_bytes_per_run"),
    ("start_delay_p50", "/start_delay_ms/p50"),
    ("start_delay_p99", "/start_delay_ms/p99"),
    ("list_p99", "/lists/delay_ms/p99"),
];

fn number(measured: &Value, pointer: &str) -> Option<f64> {
    measured.pointer(pointer)?.as_f64()
}

/// The round whose CPU a run is in the middle.
pub fn median(rounds: &[Value]) -> Value {
    let mut order: Vec<&Value> = rounds.iter().collect();
    order.sort_by(|one, other| {
        let cpu = |value| number(value, CPU).unwrap_or(0.0);
        cpu(one).total_cmp(&cpu(other))
    });
    let middle = order.len().saturating_sub(1) / 2;
    order
        .get(middle)
        .map_or(Value::Null, |value| (*value).clone())
}

/// The large system's figures over the small one's; null where there is nothing to compare.
pub fn pair(name: &str, small: &Value, large: &Value) -> Value {
    let ratio = |pointer| {
        let (small, large) = number(small, pointer).zip(number(large, pointer))?;
        (small > 0.0).then(|| rounded(large / small))
    };
    let ratios = FIGURES.map(|(figure, pointer)| (figure.to_owned(), json!(ratio(pointer))));
    json!({ "grown": name, "ratio": Value::Object(ratios.into_iter().collect()) })
}

pub fn verdict(report: &Value, at_most: Option<f64>) -> Result<()> {
    let Some(most) = at_most else {
        return Ok(());
    };
    for pair in report["pairs"].as_array().into_iter().flatten() {
        let ratio = pair["ratio"]["server_cpu"].as_f64();
        if ratio.is_none_or(|ratio| ratio > most) {
            return Err(Failure::failed(format!(
                "with more {} a run takes {} times the CPU, and {most} was asked for",
                pair["grown"].as_str().unwrap_or_default(),
                pair["ratio"]["server_cpu"],
            )));
        }
    }
    Ok(())
}

pub fn words(report: &Value) -> String {
    let mut lines = Vec::new();
    for one in report["measured"].as_array().into_iter().flatten() {
        let sizes = format!(
            "{} jobs, {} finished runs, {} workers: {} runs/s",
            one["jobs"], one["finished_runs"], one["workers"], one["ran_per_s"]
        );
        let cpu = format!(
            "{} µs of CPU a run, {} beyond idling at {} %, {} resident",
            one["server_cpu_us_per_run"],
            one["server_cpu_us_per_run_beyond_idle"],
            one["server_idle_cpu_percent"],
            megabytes(&one["server_rss_bytes"])
        );
        lines.push(("system", sizes));
        lines.push(("server", cpu));
        lines.push(("start delay", delay_words(&one["start_delay_ms"])));
        lines.push(("lists", delay_words(&one["lists"]["delay_ms"])));
        let seen = &one["workers_seen"];
        let doubts = format!(
            "at most {} suspected, {} lost",
            seen["suspected_at_most"], seen["losses"]
        );
        lines.push(("workers", doubts));
        lines.push((
            "fates",
            format!("{} lost, {} duplicated", one["lost"], one["duplicated"]),
        ));
    }
    for pair in report["pairs"].as_array().into_iter().flatten() {
        let ratio = &pair["ratio"];
        let words = format!(
            "{}: CPU ×{}, beyond idle ×{}, delay p50 ×{} p99 ×{}, lists p99 ×{}",
            pair["grown"].as_str().unwrap_or_default(),
            ratio["server_cpu"],
            ratio["server_cpu_beyond_idle"],
            ratio["start_delay_p50"],
            ratio["start_delay_p99"],
            ratio["list_p99"]
        );
        lines.push(("more", words));
    }
    crate::output::pairs(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(cpu: f64) -> Value {
        json!({ "server_cpu_us_per_run": cpu, "start_delay_ms": { "p50": 2.0, "p99": 8.0 } })
    }

    #[test]
    fn the_median_round_counts_and_its_figures_are_compared() {
        let small = median(&[measured(30.0), measured(10.0), measured(20.0)]);
        assert_eq!(small, measured(20.0));
        let pair = pair("jobs", &small, &measured(25.0));
        assert_eq!(pair["ratio"]["server_cpu"], 1.25);
        assert_eq!(pair["ratio"]["start_delay_p99"], 1.0);
        assert_eq!(pair["ratio"]["list_p99"], Value::Null);
    }

    #[test]
    fn only_what_was_asked_for_is_held_to_a_factor() {
        let report = |ratio: Value| json!({ "pairs": [{ "grown": "jobs", "ratio": { "server_cpu": ratio } }] });
        assert!(verdict(&report(json!(9.0)), None).is_ok());
        assert!(verdict(&report(json!(1.5)), Some(1.5)).is_ok());
        assert!(verdict(&report(json!(1.51)), Some(1.5)).is_err());
        assert!(verdict(&report(Value::Null), Some(1.5)).is_err());
    }
}
