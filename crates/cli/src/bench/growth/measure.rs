//! One system under the load: prepared, copied, filled, measured, audited.

use std::path::Path;
use std::time::{Duration, Instant};

use drumtower_core::model::{Retention, WallMs};
use drumtower_server::driver::wall_now;
use drumtower_store::Address;
use serde_json::{Value, json};

use super::super::audited::{self, Scope};
use super::super::figures::{Delays, rounded};
use super::super::fleet::{self, Fleet, Setup};
use super::super::lists::Lists;
use super::super::load::{Load, Pack, Triggered};
use super::super::prepared::{Past, Plan, Prepared, job_name};
use super::super::progress;
use super::super::room::{self, Room};
use super::super::samples::{self, Sample};
use super::super::usage::{self, Usage};
use super::{Growth, Size};
use crate::failure::Result;

/// Jobs that are triggered, and as many that have a past.
const NAMED: u32 = 500;
/// How far the past reaches back: less than finished runs are kept.
const PAST_MS: i64 = 5 * 86_400_000;
/// Between the end of the past and the moment at which the jobs were prepared, at least.
const APART_MS: i64 = 60_000;
/// How long the last runs may take to end.
const DRAIN: Duration = Duration::from_secs(60);

/// What was seen while the server ran.
struct Seen {
    triggered: Triggered,
    lists: Option<Value>,
    workers: Value,
    idle: Usage,
    busy: Usage,
    busy_s: f64,
}

impl Growth {
    pub(super) fn measure(&self, room: &Room, name: &str, size: Size) -> Result<Value> {
        let plan = Plan {
            jobs: size.jobs,
            active: 0,
            shortest_ms: 1000,
            longest_ms: 2000,
        };
        let prepared = Prepared::find_or_make(&room.data, plan)?;
        let home = room::temporary(&room.data, self.keep)?;
        let data = home.path().join("data");
        progress(|| "copying what was prepared".to_owned());
        prepared.copy_to(&data)?;
        let (triggered, aside) = named(size.jobs);
        let filled = fill(&data, &aside, size.runs)?;
        let before_bytes = usage::directory_bytes(&data);
        let notes = room.notes(name)?;
        let seen = self.look(&data, &notes, size, triggered, aside)?;
        let scope = Scope {
            settled: true,
            has_a_past: size.runs > 0,
            ..Scope::default()
        };
        let (audited, ()) = audited::check(&data, &Address::default(), &notes, scope, |_| Ok(()))?;
        let mut measured = self.figures(&seen, &samples::read_all(&notes)?)?;
        let more = json!({
            "jobs": size.jobs,
            "finished_runs": size.runs,
            "workers": size.workers,
            "filled_s": filled.map(|took| rounded(took.as_secs_f64())),
            "store_bytes_before": before_bytes,
            "lost": audited.report.lost,
            "duplicated": audited.report.duplicated,
            "audit": audited::value(&audited.report),
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut measured, more) {
            all.extend(more);
        }
        Ok(measured)
    }

    fn look(
        &self,
        data: &Path,
        notes: &Path,
        size: Size,
        triggered: Vec<String>,
        aside: Vec<String>,
    ) -> Result<Seen> {
        let mut fleet = Fleet::start(&Setup {
            data,
            store: None,
            notes,
            servers: 1,
            workers: size.workers,
            processes: self.processes,
            capacity: fleet::capacity(size.workers),
            journal: true,
        })?;
        let before = fleet.usage();
        watch_for(&mut fleet, self.warm_up, "seeing what idling costs")?;
        let idle = fleet.usage().since(&before);
        let asked = triggered.iter().zip(&aside);
        let asked = asked.flat_map(|(one, other)| [one.clone(), other.clone()]);
        let lists = Lists::start(fleet.target(), asked.take(40).collect(), self.lists);
        let load = Load {
            targets: fleet.callers().to_vec(),
            pack: Pack::Batch,
            rate: self.rate,
            duration: self.warm_up + self.duration,
            connections: Pack::Batch.connections(),
            jobs: triggered,
            journals: notes.to_owned(),
        };
        let offering = load.start()?;
        watch_for(&mut fleet, self.warm_up, "warming up")?;
        let (before, began) = (fleet.usage(), Instant::now());
        while !offering.is_finished() {
            fleet.watch(|ran| format!("{} triggered, {ran} ran", offering.answered()))?;
        }
        let triggered = offering.finish()?;
        fleet.drain(triggered.runs.len() as u64, DRAIN)?;
        let (busy, busy_s) = (fleet.usage().since(&before), began.elapsed().as_secs_f64());
        let seen = Seen {
            triggered,
            lists: lists.map(Lists::finish).transpose()?,
            workers: fleet.workers()?,
            idle,
            busy,
            busy_s,
        };
        fleet.stop()?;
        Ok(seen)
    }

    fn figures(&self, seen: &Seen, samples: &[Sample]) -> Result<Value> {
        let from_us = seen.triggered.window.from_us
            + u64::try_from(self.warm_up.as_micros()).unwrap_or(u64::MAX / 2);
        let mut delays = Delays::new()?;
        for (run, meant_us) in seen
            .triggered
            .runs
            .iter()
            .filter(|(_, meant)| *meant >= from_us)
        {
            if let Ok(place) = samples.binary_search_by_key(run, |sample| sample.run) {
                delays.add(*meant_us, samples[place].started_us);
            }
        }
        let ran = seen.busy.ran.max(1) as f64;
        let idle_us_per_s = seen
            .idle
            .server
            .map(|cpu| cpu.total_us() as f64 / self.warm_up.as_secs_f64());
        let busy_us = seen.busy.server.map(|cpu| cpu.total_us() as f64);
        let beyond_idle = busy_us
            .zip(idle_us_per_s)
            .map(|(busy, idle)| rounded((busy - idle * seen.busy_s).max(0.0) / ran));
        Ok(json!({
            "ran": seen.busy.ran,
            "ran_per_s": rounded(ran / seen.busy_s),
            "refused": seen.triggered.refused,
            "unanswered": seen.triggered.unknown,
            "server_cpu_us_per_run": busy_us.map(|us| rounded(us / ran)),
            "server_cpu_us_per_run_beyond_idle": beyond_idle,
            "server_idle_cpu_percent": idle_us_per_s.map(|us| rounded(us / 1e4)),
            "written_bytes_per_run": seen.busy.written_bytes.map(|bytes| rounded(bytes as f64 / ran)),
            "server_rss_bytes": seen.busy.server_rss_bytes,
            "start_delay_ms": delays.value(),
            "lists": seen.lists,
            "workers_seen": seen.workers,
        }))
    }
}

fn watch_for(fleet: &mut Fleet, duration: Duration, words: &str) -> Result<()> {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        fleet.watch(|_| words.to_owned())?;
    }
    Ok(())
}

/// Jobs to trigger, spread over all there are, and as many beside them.
fn named(jobs: u32) -> (Vec<String>, Vec<String>) {
    let step = (jobs / NAMED).max(2);
    let numbers = (0..jobs / step).map(|number| number * step);
    numbers
        .map(|number| (job_name(number), job_name(number + 1)))
        .unzip()
}

/// How long it took; `None` when there is nothing to put.
fn fill(data: &Path, jobs: &[String], runs: u64) -> Result<Option<Duration>> {
    if runs == 0 {
        return Ok(None);
    }
    let began = Instant::now();
    let to = wall_now().plus(-APART_MS);
    let past = Past {
        jobs: jobs.to_vec(),
        runs,
        from: WallMs(to.0 - PAST_MS),
        to,
        retention: Retention::Week,
    };
    past.put(data)?;
    Ok(Some(began.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_triggered_has_no_past_and_is_spread_over_all_jobs() {
        for jobs in [2, 3, 999, 1000, 1_000_000] {
            let (triggered, aside) = named(jobs);
            assert!(!triggered.is_empty() && triggered.len() == aside.len());
            assert!(triggered.iter().all(|name| !aside.contains(name)));
            assert!(aside.iter().all(|name| *name < job_name(jobs)), "{jobs}");
        }
        let (triggered, _) = named(1_000_000);
        assert_eq!(triggered.len(), 500);
        assert_eq!(triggered[1], job_name(2000));
    }
}
