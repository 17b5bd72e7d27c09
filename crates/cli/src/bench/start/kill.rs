//! `bench start --kill`: the server dies under load and comes back while the load goes on.
//!
//! While there is no server, runs that were on their way to a worker start, and nothing else does; that is over long before
//! it is started again. So the first start after that is the first that the new process gave away. The load is told nothing:
//! what it sends meanwhile is refused or goes unanswered, and is not sent again.

use std::time::{Duration, Instant};

use drumtower_audit::{Journal, Record};
use drumtower_core::model::WallMs;
use drumtower_store::Address;
use serde_json::{Value, json};

use super::super::audited::{self, Scope};
use super::super::figures::rounded;
use super::super::fleet::{self, Fleet, Setup};
use super::super::load::{Load, Offering, Pack, Triggered};
use super::super::prepared::{Plan, Prepared};
use super::super::room::{self, Room};
use super::super::samples::{self, Sample};
use super::super::worker::wall_us;
use super::super::{interrupt, jobs, machine, part, progress, progress_done, usage};
use super::Start;
use crate::failure::Result;

/// Jobs that are triggered, beside those that lie there.
const TRIGGERED: u32 = 100;
const WORKERS: u32 = 2;
/// The load is to last until the server is back, however long that takes; it is told how long beforehand.
const BACK_WITHIN: Duration = Duration::from_secs(15);
/// How long the last runs may take to end. What a worker held is given up only when its lease is over.
const SETTLE: Duration = Duration::from_secs(90);
const FIGURES: [&str; 4] = ["ready_ms", "first_start_ms", "silent_ms", "caught_up_ms"];

pub(super) fn run(bench: &Start, room: &Room) -> Result<()> {
    let plan = Plan {
        jobs: bench.jobs,
        active: 0,
        shortest_ms: 1000,
        longest_ms: 2000,
    };
    let prepared = Prepared::find_or_make(&room.data, plan)?;
    let mut rounds = Vec::new();
    for number in 1..=bench.rounds {
        part(&format!("kill {number} of {}", bench.rounds));
        rounds.push(round(bench, room, &prepared, number)?);
    }
    progress_done();
    let report = json!({
        "scenario": "start",
        "killed": true,
        "jobs": bench.jobs,
        "rate": bench.rate,
        "down_ms": rounded(bench.down.as_secs_f64() * 1000.0),
        "worst": super::worst(&FIGURES, &rounds),
        "rounds": rounds,
        "machine": machine::facts(Some(&room.data)),
    });
    bench.output.one(&report, |_| words(&report))?;
    let mut rounds = report["rounds"].as_array().into_iter().flatten();
    rounds.try_for_each(audited::verdict)
}

fn round(bench: &Start, room: &Room, prepared: &Prepared, number: u32) -> Result<Value> {
    let home = room::temporary(&room.data, bench.keep)?;
    let data = home.path().join("data");
    progress(|| "copying what was prepared".to_owned());
    prepared.copy_to(&data)?;
    let notes = room.notes(&format!("kill-{number}"))?;
    let setup = Setup {
        data: &data,
        store: None,
        notes: &notes,
        servers: 1,
        workers: WORKERS,
        processes: WORKERS,
        capacity: fleet::capacity(WORKERS),
        journal: true,
    };
    let mut fleet = Fleet::start(&setup)?;
    jobs::put_plain(fleet.target(), TRIGGERED)?;
    let load = Load {
        targets: fleet.callers().to_vec(),
        pack: Pack::Batch,
        rate: bench.rate,
        duration: bench.load * 2 + bench.down + BACK_WITHIN,
        connections: Pack::Batch.connections(),
        jobs: jobs::names(TRIGGERED),
        journals: notes.clone(),
    };
    let offering = load.start()?;
    watch_for(&mut fleet, &offering, bench.load)?;
    let mut journal = Journal::create(&notes, "bench")?;
    fleet.kill_server()?;
    let killed_us = wall_us();
    journal.write(&Record::Killed {
        what: "server".to_owned(),
        point: "under-load".to_owned(),
        wall_ms: WallMs(i64::try_from(killed_us / 1000).unwrap_or(i64::MAX)),
    })?;
    wait(bench.down)?;
    let began_us = wall_us();
    let ready = fleet.restart_server(&setup)?;
    watch_for(&mut fleet, &offering, bench.load)?;
    offering.cut_short();
    while !offering.is_finished() {
        fleet.watch(|ran| format!("{} triggered, {ran} ran", offering.answered()))?;
    }
    let triggered = offering.finish()?;
    fleet.settle(SETTLE)?;
    let bytes = usage::directory_bytes(&data);
    fleet.stop()?;
    let scope = Scope {
        settled: true,
        ..Scope::default()
    };
    let (audited, ()) = audited::check(&data, &Address::default(), &notes, scope, |_| Ok(()))?;
    let moments = Moments {
        killed_us,
        began_us,
    };
    let mut measured = moments.figures(&samples::read_all(&notes)?, &triggered);
    let more = json!({
        "ready_ms": rounded(ready.as_secs_f64() * 1000.0),
        "answered": triggered.runs.len(),
        "refused": triggered.refused,
        "unanswered": triggered.unknown,
        "store_bytes": bytes,
        "lost": audited.report.lost,
        "duplicated": audited.report.duplicated,
        "audit": audited::value(&audited.report),
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut measured, more) {
        all.extend(more);
    }
    Ok(measured)
}

fn watch_for(fleet: &mut Fleet, offering: &Offering, duration: Duration) -> Result<()> {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        fleet.watch(|ran| format!("{} triggered, {ran} ran", offering.answered()))?;
    }
    Ok(())
}

fn wait(duration: Duration) -> Result<()> {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        interrupt::check()?;
        progress(|| "there is no server".to_owned());
        std::thread::sleep(Duration::from_millis(20).min(duration));
    }
    Ok(())
}

/// In microseconds of the wall clock.
struct Moments {
    killed_us: u64,
    /// When the new process was started.
    began_us: u64,
}

impl Moments {
    fn figures(&self, samples: &[Sample], triggered: &Triggered) -> Value {
        let ms = |from: u64, to: u64| rounded(to.saturating_sub(from) as f64 / 1000.0);
        let starts = || samples.iter().map(|sample| sample.started_us);
        let first = starts().filter(|at| *at >= self.began_us).min();
        let last_before = starts().filter(|at| *at < self.began_us).max();
        // What had been accepted when the server died, and had to wait for the new one.
        let accepted = triggered
            .runs
            .iter()
            .filter(|(_, meant)| *meant < self.killed_us);
        let waited = accepted.filter_map(|(run, _)| {
            let place = samples
                .binary_search_by_key(run, |sample| sample.run)
                .ok()?;
            Some(samples[place].started_us).filter(|at| *at >= self.began_us)
        });
        let (waiting, caught_up) = waited.fold((0_u64, self.began_us), |(count, latest), at| {
            (count + 1, latest.max(at))
        });
        json!({
            "first_start_ms": first.map(|at| ms(self.began_us, at)),
            "silent_ms": last_before.zip(first).map(|(last, first)| ms(last, first)),
            "waiting_when_killed": waiting,
            "caught_up_ms": ms(self.began_us, caught_up),
        })
    }
}

fn words(report: &Value) -> String {
    let round = |round: &Value| {
        format!(
            "ready after {} ms, first run after {} ms, {} ms without a start, what had waited was started after {} ms",
            round["ready_ms"], round["first_start_ms"], round["silent_ms"], round["caught_up_ms"]
        )
    };
    let offered = format!(
        "{} runs/s beside {} jobs, no server for {} ms",
        report["rate"], report["jobs"], report["down_ms"]
    );
    let mut lines = vec![("load", offered)];
    for one in report["rounds"].as_array().into_iter().flatten() {
        lines.push(("kill", round(one)));
        let fates = format!(
            "{} answered, {} refused, {} unanswered, {} lost, {} duplicated",
            one["answered"], one["refused"], one["unanswered"], one["lost"], one["duplicated"]
        );
        lines.push(("fates", fates));
    }
    lines.push(("worst", round(&report["worst"])));
    crate::output::pairs(&lines)
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::RunId;

    use super::*;

    #[test]
    fn what_started_before_the_new_process_is_not_its_own() {
        let sample = |run, started_us| Sample {
            run: RunId(run),
            job: 0,
            due_us: 0,
            started_us,
            ended_us: started_us,
        };
        let moments = Moments {
            killed_us: 10_000,
            began_us: 1_010_000,
        };
        let samples = [
            sample(1, 9_000),
            sample(2, 11_000),
            sample(3, 1_090_000),
            sample(4, 1_060_000),
        ];
        let triggered = Triggered {
            runs: vec![(RunId(1), 8_000), (RunId(3), 9_900), (RunId(4), 1_055_000)],
            ..Triggered::default()
        };
        let figures = moments.figures(&samples, &triggered);
        assert_eq!(figures["first_start_ms"], 50.0);
        assert_eq!(figures["silent_ms"], 1049.0);
        assert_eq!(figures["waiting_when_killed"], 1);
        assert_eq!(figures["caught_up_ms"], 80.0);
    }
}
