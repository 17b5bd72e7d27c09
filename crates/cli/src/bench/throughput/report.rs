//! From samples to figures.
//!
//! A delay runs from the moment a trigger was meant to be sent (or a schedule was due) to the start of the handler by the
//! worker's clock, `end_to_end` to the moment at which the engine recorded COMPLETED; all of it is one machine's clock.
//! Minutes count from the beginning of the offer: delays by when a run was meant, completions by when handlers ended.

use std::time::Duration;

use drumtower_core::model::RunId;
use drumtower_store::TableSize;
use serde_json::{Value, json};

use super::super::audited;
use super::super::figures::{Delays, delay_words, rounded};
use super::super::load::{Triggered, Window};
use super::super::samples::Sample;
use super::super::usage::{Cpu, Usage};
use crate::failure::Result;

const MINUTE_US: u64 = 60_000_000;

pub struct Measured {
    pub path: String,
    pub rate: u32,
    pub duration: Duration,
    pub workers: u32,
    pub window: Window,
    /// `None` when schedules did the triggering.
    pub triggered: Option<Triggered>,
    /// How long listing took meanwhile.
    pub lists: Option<Value>,
    /// How the server saw its workers.
    pub workers_seen: Value,
    /// In order of run.
    pub samples: Vec<Sample>,
    /// Completed runs of the store and when that was recorded, in microseconds, in order of run.
    pub ends: Vec<(RunId, u64)>,
    pub usage: Usage,
    /// How long the server ran, with setting up and stopping.
    pub life: Duration,
    pub commits: u64,
    pub store_bytes: u64,
    /// What the tables of a shared database take.
    pub tables: Vec<TableSize>,
    pub audit: drumtower_audit::Report,
}

fn table(size: &TableSize) -> Value {
    json!({
        "name": size.name,
        "rows": size.rows,
        "dead_rows": size.dead_rows,
        "vacuums": size.vacuums,
        "table_bytes": size.table_bytes,
        "index_bytes": size.index_bytes,
    })
}

/// The figures of one stretch of time.
struct Stretch {
    start: Delays,
    end: Delays,
    completed: u64,
}

impl Stretch {
    fn new() -> Result<Self> {
        Ok(Self {
            start: Delays::new()?,
            end: Delays::new()?,
            completed: 0,
        })
    }
}

impl Measured {
    pub fn report(&self, machine: Value) -> Result<Value> {
        let mut whole = Stretch::new()?;
        let count = (self.window.to_us - self.window.from_us)
            .div_ceil(MINUTE_US)
            .max(1);
        let mut minutes = (0..count)
            .map(|_| Stretch::new())
            .collect::<Result<Vec<_>>>()?;
        let last_us = self.fill(&mut whole, &mut minutes);
        let offered_s = (self.window.to_us - self.window.from_us) as f64 / 1e6;
        // Schedules cannot be slowed down: what was due was offered, whether or not it made a run in time.
        let offered = match &self.triggered {
            Some(triggered) => triggered.sent as f64,
            None => f64::from(self.rate) * offered_s,
        };
        let busy_s = (last_us.max(self.window.to_us) - self.window.from_us) as f64 / 1e6;
        let minutes: Vec<Value> = minutes
            .iter()
            .enumerate()
            .map(|(index, minute)| self.minute(index, minute))
            .collect();
        let runs = self.audit.counts.completed.max(1) as f64;
        let per_run = |total: u64| rounded(total as f64 / self.usage.ran.max(1) as f64);
        let cpu = |cpu: Option<Cpu>| cpu.map(|cpu| per_run(cpu.total_us()));
        let threads = self
            .usage
            .threads_us
            .iter()
            .map(|(name, us)| (name.clone(), json!(per_run(*us))));
        Ok(json!({
            "scenario": "throughput",
            "path": self.path,
            "rate": self.rate,
            "duration_s": self.duration.as_secs_f64(),
            "workers": self.workers,
            "offered_per_s": rounded(offered / offered_s),
            "completed_per_s": rounded(whole.completed as f64 / busy_s),
            "completed": whole.completed,
            "refused": self.triggered.as_ref().map(|triggered| triggered.refused),
            "unanswered": self.triggered.as_ref().map(|triggered| triggered.unknown),
            "start_delay_ms": whole.start.value(),
            "end_to_end_ms": whole.end.value(),
            "lists": self.lists,
            "workers_seen": self.workers_seen,
            "lost": self.audit.lost,
            "duplicated": self.audit.duplicated,
            "server_cpu_us_per_run": cpu(self.usage.server),
            "servers_cpu_us_per_run": self.usage.servers.iter().copied().map(cpu).collect::<Vec<_>>(),
            "database_cpu_us_per_run": cpu(self.usage.database),
            "server_rss_bytes": self.usage.server_rss_bytes,
            "store_bytes_per_run": rounded(self.store_bytes as f64 / runs),
            "tables": self.tables.iter().map(table).collect::<Vec<_>>(),
            "written_bytes_per_run": self.usage.written_bytes.map(per_run),
            "fsync_per_s": rounded(self.commits as f64 / self.life.as_secs_f64()),
            "runs_per_commit": rounded(runs / self.commits.max(1) as f64),
            "server_system_cpu_us_per_run": self.usage.server.map(|cpu| per_run(cpu.system_us)),
            "server_threads_cpu_us_per_run": Value::Object(threads.collect()),
            "worker_cpu_us_per_run": cpu(self.usage.workers),
            "load_cpu_us_per_run": cpu(self.usage.load),
            "minutes": minutes,
            "audit": audited::value(&self.audit),
            "machine": machine,
        }))
    }

    /// Sorts every run into its places and returns when the last handler ended.
    fn fill(&self, whole: &mut Stretch, minutes: &mut [Stretch]) -> u64 {
        let mut last_us = self.window.from_us;
        let mut previous = None;
        for sample in &self.samples {
            // A run that was started twice is the audit's affair.
            if previous.replace(sample.run) == Some(sample.run) {
                continue;
            }
            let Some(meant_us) = self.meant_us(sample) else {
                continue;
            };
            last_us = last_us.max(sample.ended_us);
            let minute = self.minute_of(meant_us).min(minutes.len() - 1);
            for stretch in [&mut *whole, &mut minutes[minute]] {
                stretch.start.add(meant_us, sample.started_us);
                if let Some(end_us) = find(&self.ends, sample.run) {
                    stretch.end.add(meant_us, end_us);
                }
            }
            whole.completed += 1;
            if let Some(minute) = minutes.get_mut(self.minute_of(sample.ended_us)) {
                minute.completed += 1;
            }
        }
        last_us
    }

    /// When the run was meant to start; `None` for one that lies outside of what is measured.
    fn meant_us(&self, sample: &Sample) -> Option<u64> {
        match &self.triggered {
            Some(triggered) => find(&triggered.runs, sample.run),
            None => Some(sample.due_us)
                .filter(|due| (self.window.from_us..self.window.to_us).contains(due)),
        }
    }

    fn minute_of(&self, at_us: u64) -> usize {
        (at_us.saturating_sub(self.window.from_us) / MINUTE_US) as usize
    }

    fn minute(&self, index: usize, minute: &Stretch) -> Value {
        let from_us = self.window.from_us + index as u64 * MINUTE_US;
        let length_us = (self.window.to_us - from_us).clamp(1, MINUTE_US);
        json!({
            "completed_per_s": rounded(minute.completed as f64 / (length_us as f64 / 1e6)),
            "start_delay_ms": minute.start.value(),
            "end_to_end_ms": minute.end.value(),
        })
    }
}

fn find(sorted: &[(RunId, u64)], run: RunId) -> Option<u64> {
    sorted
        .binary_search_by_key(&run, |(run, _)| *run)
        .ok()
        .map(|index| sorted[index].1)
}

/// The figures that matter, for people.
pub fn words(report: &Value) -> String {
    let mut lines = vec![
        (
            "offered",
            format!(
                "{} runs/s by {}",
                report["offered_per_s"],
                report["path"].as_str().unwrap_or_default()
            ),
        ),
        ("completed", format!("{} runs/s", report["completed_per_s"])),
        ("start delay", delay_words(&report["start_delay_ms"])),
        ("end to end", delay_words(&report["end_to_end_ms"])),
        ("lost", report["lost"].to_string()),
        ("duplicated", report["duplicated"].to_string()),
        (
            "server",
            format!(
                "{} µs of CPU a run, {} bytes resident",
                report["server_cpu_us_per_run"], report["server_rss_bytes"]
            ),
        ),
        (
            "store",
            format!(
                "{} bytes a run, {} written, {} commits/s",
                report["store_bytes_per_run"],
                report["written_bytes_per_run"],
                report["fsync_per_s"]
            ),
        ),
    ];
    let servers = report["servers_cpu_us_per_run"].as_array();
    if let Some(servers @ [_, _, ..]) = servers.map(Vec::as_slice) {
        let each: Vec<String> = servers.iter().map(Value::to_string).collect();
        lines.push((
            "each server",
            format!("{} µs of CPU a run", each.join(", ")),
        ));
    }
    if !report["database_cpu_us_per_run"].is_null() {
        let cpu = &report["database_cpu_us_per_run"];
        lines.push(("database", format!("{cpu} µs of CPU a run")));
    }
    let workers = &report["workers_seen"];
    lines.push((
        "workers",
        format!(
            "{}, at most {} suspected, {} lost",
            report["workers"], workers["suspected_at_most"], workers["losses"]
        ),
    ));
    if !report["lists"].is_null() {
        lines.push(("lists", delay_words(&report["lists"]["delay_ms"])));
    }
    for minute in report["minutes"].as_array().into_iter().flatten() {
        lines.push((
            "minute",
            format!(
                "{} runs/s, start delay {}",
                minute["completed_per_s"],
                delay_words(&minute["start_delay_ms"])
            ),
        ));
    }
    crate::output::pairs(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(samples: Vec<Sample>, triggered: Vec<(RunId, u64)>) -> Measured {
        let window = Window {
            from_us: 1_000_000,
            to_us: 121_000_000,
        };
        let sent = triggered.len() as u64;
        Measured {
            path: "batch".into(),
            rate: 1,
            duration: Duration::from_secs(120),
            workers: 1,
            window,
            triggered: Some(Triggered {
                window,
                sent,
                runs: triggered,
                refused: 0,
                unknown: 0,
            }),
            lists: None,
            workers_seen: Value::Null,
            ends: vec![(RunId(1), 1_013_000), (RunId(2), 61_030_000)],
            samples,
            usage: Usage::default(),
            life: Duration::from_secs(120),
            commits: 4,
            store_bytes: 400,
            tables: Vec::new(),
            audit: drumtower_audit::Report::default(),
        }
    }

    /// Histograms keep three digits.
    fn near(value: &Value, expected: f64) -> bool {
        value
            .as_f64()
            .is_some_and(|value| (value / expected - 1.0).abs() < 0.002)
    }

    #[test]
    fn runs_are_joined_with_their_triggers_and_sorted_into_minutes() {
        let sample = |run, started_us: u64| Sample {
            run: RunId(run),
            job: 0,
            due_us: 0,
            started_us,
            ended_us: started_us + 1000,
        };
        let samples = vec![
            sample(1, 1_005_000),
            sample(1, 1_006_000),
            sample(2, 61_020_000),
            sample(9, 5_000_000),
        ];
        let triggered = vec![(RunId(1), 1_000_000), (RunId(2), 60_990_000)];
        let report = measured(samples, triggered)
            .report(Value::Null)
            .expect("a report");
        assert_eq!(report["completed"], 2);
        assert!(near(&report["start_delay_ms"]["p50"], 5.0), "{report}");
        assert!(near(&report["start_delay_ms"]["max"], 30.0), "{report}");
        assert!(near(&report["end_to_end_ms"]["p50"], 13.0), "{report}");
        assert_eq!(report["offered_per_s"], 0.02);
        assert!(
            near(&report["minutes"][0]["start_delay_ms"]["max"], 30.0),
            "{report}"
        );
        assert_eq!(report["minutes"][1]["start_delay_ms"], Value::Null);
        assert_eq!(report["minutes"][1]["completed_per_s"], 0.02);
        assert!(audited::verdict(&report).is_ok());
    }

    #[test]
    fn a_lost_run_fails_the_bench() {
        let mut measured = measured(Vec::new(), Vec::new());
        measured.audit.lost = 1;
        let report = measured.report(Value::Null).expect("a report");
        assert!(audited::verdict(&report).is_err());
    }
}
