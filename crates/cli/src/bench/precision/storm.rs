//! Jobs that are all due at one instant, a tenth of them at each priority.

use std::time::Duration;

use drumtower_core::model::{JobSpec, WallMs};
use serde_json::{Value, json};

use super::super::figures::{Delays, rounded};
use super::super::prepared::{instant, manifest, put_all};
use super::super::room::{self, Room};
use super::super::samples::{self, Sample};
use super::super::usage::Usage;
use super::super::{part, progress};
use super::order::{Order, PRIORITIES};
use super::{Precision, millis, now_ms, watch_until};
use crate::failure::{Failure, Result};

/// From now until the instant: what starting takes, and as much for each job as putting it may take.
const LEAD: Duration = Duration::from_secs(8);
const LEAD_PER_JOB: Duration = Duration::from_micros(400);
/// Everything must stand this long before the instant.
const CALM: Duration = Duration::from_secs(1);
const TRIES: u32 = 4;
/// How long all of them may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn measure(bench: &Precision, room: &Room, count: u32) -> Result<Value> {
    let mut lead = LEAD + LEAD_PER_JOB * count;
    for number in 1..=TRIES {
        if let Some(measured) = attempt(bench, room, count, lead, number)? {
            return Ok(measured);
        }
        part("preparing took longer than expected: once more, with more time");
        lead *= 2;
    }
    Err(Failure::failed(format!(
        "{count} jobs could not be prepared in time, in {TRIES} tries"
    )))
}

/// `None` when the instant came too soon.
fn attempt(
    bench: &Precision,
    room: &Room,
    count: u32,
    lead: Duration,
    number: u32,
) -> Result<Option<Value>> {
    let now = now_ms();
    let due_ms = (now + millis(lead)).div_euclid(1000) * 1000;
    part(&format!("preparing {count} jobs that are due at once"));
    // Never used again: the instant passes. So it is no directory that a caller would want to find.
    let data = room::temporary(&room.data, bench.keep)?;
    put_all(data.path(), WallMs(now), count, |job| {
        storm_job(job, due_ms)
    })?;
    let ready_by = due_ms - millis(CALM);
    if now_ms() > ready_by {
        return Ok(None);
    }
    let notes = room.notes(&format!("storm-{number}"))?;
    let mut fleet = bench.start(data.path(), &notes)?;
    if now_ms() > ready_by {
        fleet.stop()?;
        return Ok(None);
    }
    part(&format!("waiting for the storm of {count}"));
    watch_until(&mut fleet, ready_by)?;
    let before = fleet.usage();
    let until_ms = due_ms + millis(PATIENCE);
    while fleet.ran() < u64::from(count) && now_ms() < until_ms {
        fleet.watch(|ran| format!("{ran} of {count} ran"))?;
    }
    let usage = fleet.usage().since(&before);
    fleet.stop()?;
    progress(|| "counting".to_owned());
    let samples = samples::read_all(&notes)?;
    report(&samples, count, due_ms, &usage).map(Some)
}

fn storm_job(number: u32, due_ms: i64) -> Result<JobSpec> {
    manifest(
        number,
        json!({ "schedule": [{ "at": instant(due_ms)? }], "priority": priority_of(number.into()) }),
    )
}

fn priority_of(job: u64) -> usize {
    (job % PRIORITIES as u64) as usize
}

fn report(samples: &[Sample], count: u32, due_ms: i64, usage: &Usage) -> Result<Value> {
    let due_us = u64::try_from(due_ms).unwrap_or(0) * 1000;
    let mut started = vec![0_u32; count as usize];
    let mut delays = Delays::new()?;
    let mut starts = Vec::with_capacity(samples.len());
    let mut early = 0;
    for sample in samples {
        let Some(times) = usize::try_from(sample.job)
            .ok()
            .and_then(|job| started.get_mut(job))
        else {
            continue;
        };
        *times += 1;
        early += u64::from(sample.started_us < due_us);
        delays.add(due_us, sample.started_us);
        starts.push((sample.started_us, priority_of(sample.job)));
    }
    let last_us = starts.iter().map(|(us, _)| *us).max();
    let all_ms = last_us.map(|us| rounded(us.saturating_sub(due_us) as f64 / 1000.0));
    let order = Order::new(starts);
    let lost = started.iter().filter(|times| **times == 0).count();
    let duplicated: u32 = started.iter().map(|times| times.saturating_sub(1)).sum();
    Ok(json!({
        "jobs": count,
        "all_started_ms": all_ms,
        "lost": lost,
        "duplicated": duplicated,
        "early": early,
        "start_delay_ms": delays.value(),
        "inverted_pairs": (order.inversions() * 1e6).round() / 1e6,
        "priorities": order.by_priority(due_us),
        "server_cpu_us_per_run": usage.server.map(|cpu| rounded(cpu.total_us() as f64 / f64::from(count))),
        "server_rss_bytes": usage.server_rss_bytes,
        "server_peak_rss_bytes": usage.server_peak_bytes,
    }))
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::RunId;

    use super::*;

    #[test]
    fn a_job_that_did_not_start_is_lost_and_one_that_did_twice_is_doubled() {
        let sample = |job, started_us| Sample {
            run: RunId(job),
            job,
            due_us: 5_000_000,
            started_us,
            ended_us: started_us,
        };
        let samples = [
            sample(9, 5_001_000),
            sample(0, 5_003_000),
            sample(0, 5_004_000),
        ];
        let report = report(&samples, 10, 5000, &Usage::default()).expect("a report");
        assert_eq!(
            (&report["lost"], &report["duplicated"]),
            (&json!(8), &json!(1))
        );
        assert_eq!(report["all_started_ms"], 4.0);
        assert_eq!(report["inverted_pairs"], 0.0);
    }

    #[test]
    fn storm_jobs_are_valid_and_share_the_priorities() {
        for number in 0..20 {
            let spec = storm_job(number, 1_790_000_000_000).expect("a manifest");
            spec.check().expect("valid");
        }
        assert_eq!((priority_of(0), priority_of(9), priority_of(13)), (0, 9, 3));
    }
}
