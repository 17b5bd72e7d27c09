//! The figures of `bench precision`, for programs and for people.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::figures::{delay_words, megabytes, rounded};
use super::super::prepared::Prepared;
use super::super::usage::Usage;
use super::fires::Fires;
use crate::failure::{Failure, Result};

/// One number of jobs.
pub fn fires(
    prepared: &Prepared,
    duration: Duration,
    fires: &Fires,
    unfired: BTreeMap<String, u64>,
    usage: &Usage,
) -> Value {
    let seconds = duration.as_secs_f64();
    let recorded: u64 = unfired.values().sum();
    let missing = fires.missing.len() as u64;
    let cpu_us = usage.server.map(|cpu| cpu.total_us() as f64);
    let per_run = |us: f64| rounded(us / usage.ran.max(1) as f64);
    json!({
        "jobs": prepared.plan.jobs,
        "active": prepared.plan.active,
        "prepared_s": prepared.took_s.map(rounded),
        "due": fires.due,
        "due_per_s": rounded(fires.due as f64 / seconds),
        "started": fires.started,
        "lost": missing.saturating_sub(recorded),
        "duplicated": fires.duplicated,
        "unfired": unfired,
        "early": fires.early,
        "strange": fires.strange,
        "start_delay_ms": fires.delays.value(),
        "server_cpu_percent": cpu_us.map(|us| rounded(us / seconds / 1e4)),
        "server_cpu_us_per_run": cpu_us.map(per_run),
        "worker_cpu_us_per_run": usage.workers.map(|cpu| per_run(cpu.total_us() as f64)),
        "server_rss_bytes": usage.server_rss_bytes,
        "server_peak_rss_bytes": usage.server_peak_bytes,
    })
}

/// The delays with the last number of jobs over those with the first; null when there is only one.
pub fn ratio(measured: &[Value]) -> Value {
    let [first, .., last] = measured else {
        return Value::Null;
    };
    let over = |quantile: &str| {
        let delay = |one: &Value| one["start_delay_ms"][quantile].as_f64();
        let (first, last) = delay(first).zip(delay(last))?;
        (first > 0.0).then(|| rounded(last / first))
    };
    json!({
        "jobs": [first["jobs"], last["jobs"]],
        "p50": over("p50"),
        "p99": over("p99"),
        "p999": over("p999"),
        "max": over("max"),
    })
}

/// A bench that lost or doubled a due time has failed, and so has one that fired before its time.
pub fn verdict(report: &Value) -> Result<()> {
    let measured = report["measured"].as_array().into_iter().flatten();
    let storm = Some(&report["storm"]).filter(|storm| !storm.is_null());
    for one in measured.chain(storm) {
        let count = |field: &str| one[field].as_u64().unwrap_or(0);
        let wrong = ["lost", "duplicated", "early", "strange"];
        if wrong.iter().any(|field| count(field) > 0) {
            let words: Vec<String> = wrong
                .iter()
                .map(|field| format!("{} {field}", count(field)))
                .collect();
            return Err(Failure::failed(format!(
                "of {} jobs' due times: {}",
                one["jobs"],
                words.join(", ")
            )));
        }
    }
    Ok(())
}

/// The figures that matter, for people.
pub fn words(report: &Value) -> String {
    let mut lines = Vec::new();
    for one in report["measured"].as_array().into_iter().flatten() {
        lines.push((
            "jobs",
            format!(
                "{}, of which {} fire {} times/s",
                one["jobs"], one["active"], one["due_per_s"]
            ),
        ));
        lines.push(("start delay", delay_words(&one["start_delay_ms"])));
        lines.push(("fates", fates(one)));
        lines.push(("server", server(one)));
    }
    let ratio = &report["ratio"];
    if !ratio.is_null() {
        lines.push((
            "last/first",
            format!(
                "p50 {} · p99 {} · p99.9 {} · max {}",
                ratio["p50"], ratio["p99"], ratio["p999"], ratio["max"]
            ),
        ));
    }
    let storm = &report["storm"];
    if !storm.is_null() {
        lines.push((
            "storm",
            format!(
                "{} jobs, all started after {} ms",
                storm["jobs"], storm["all_started_ms"]
            ),
        ));
        lines.push(("start delay", delay_words(&storm["start_delay_ms"])));
        let inverted = storm["inverted_pairs"].as_f64().unwrap_or(0.0) * 100.0;
        lines.push(("out of order", format!("{} % of pairs", rounded(inverted))));
        for row in storm["priorities"].as_array().into_iter().flatten() {
            lines.push((
                "priority",
                format!(
                    "{}: {} ms to {} ms",
                    row["priority"], row["first_ms"], row["last_ms"]
                ),
            ));
        }
        lines.push(("fates", fates(storm)));
        lines.push(("server", server(storm)));
    }
    crate::output::pairs(&lines)
}

fn fates(one: &Value) -> String {
    let unfired = one["unfired"].as_object().map_or(0, |reasons| {
        reasons.values().filter_map(Value::as_u64).sum::<u64>()
    });
    format!(
        "{} lost, {} duplicated, {unfired} recorded as unfired",
        one["lost"], one["duplicated"]
    )
}

fn server(one: &Value) -> String {
    format!(
        "{} µs of CPU a run, {} resident, {} at most",
        one["server_cpu_us_per_run"],
        megabytes(&one["server_rss_bytes"]),
        megabytes(&one["server_peak_rss_bytes"])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_is_compared_with_the_first() {
        let one = |jobs: u32, p99: f64| json!({ "jobs": jobs, "start_delay_ms": { "p50": 1.0, "p99": p99 } });
        let ratio = ratio(&[one(1, 4.0), one(2, 9.0), one(3, 5.0)]);
        assert_eq!(ratio["p99"], 1.25);
        assert_eq!(ratio["jobs"], json!([1, 3]));
        assert_eq!(ratio["max"], Value::Null);
        assert_eq!(super::ratio(&[one(1, 4.0)]), Value::Null);
    }

    #[test]
    fn anything_lost_fails_the_bench() {
        let report = |lost: u32, storm: Value| json!({ "measured": [{ "jobs": 1, "lost": lost }], "storm": storm });
        assert!(verdict(&report(0, Value::Null)).is_ok());
        assert!(verdict(&report(1, Value::Null)).is_err());
        assert!(verdict(&report(0, json!({ "duplicated": 1 }))).is_err());
    }
}
