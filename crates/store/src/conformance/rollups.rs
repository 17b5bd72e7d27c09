//! Roll-ups by minute and job.

use std::collections::BTreeMap;

use drumtower_core::model::{JobId, Run, RunState};

use super::World;
use super::sample::{self, T0, job_id};
use crate::Rollup;

const MINUTE_MS: i64 = 60_000;

fn minute(offset: i64) -> i64 {
    T0.0 / MINUTE_MS + offset
}

pub fn counts(world: &mut World) {
    let states = [
        RunState::Completed,
        RunState::Completed,
        RunState::Failed,
        RunState::Cancelled,
    ];
    let runs = states
        .iter()
        .zip(1..)
        .map(|(state, n)| sample::ended(sample::run(0, n, job_id(1)), *state, 100));
    world.commit(sample::finished(runs));
    let mut never_started = sample::run(0, 9, job_id(1));
    never_started.transition(
        RunState::Cancelled,
        T0.plus(1),
        drumtower_core::model::Reason::Cancelled,
    );
    world.commit(sample::finished([never_started]));
    let mut delay = vec![0; 4];
    delay[3] = 4;
    let mut duration = vec![0; 8];
    duration[7] = 4;
    let expected = Rollup {
        job: job_id(1),
        minute: minute(0),
        completed: 2,
        failed: 1,
        cancelled: 2,
        delay_ms: delay,
        duration_ms: duration,
    };
    let read = |job, from, to| world.read().rollups(job, from, to).expect("they are read");
    assert_eq!(read(None, minute(0), minute(1)), vec![expected.clone()]);
    assert_eq!(read(Some(job_id(1)), minute(-5), minute(5)), [expected]);
    assert_eq!(read(Some(job_id(2)), minute(-5), minute(5)), []);
    assert_eq!(read(None, minute(1), minute(5)), []);
    assert_eq!(read(None, minute(5), minute(-5)), []);
}

/// Minutes pass, some runs end long after they were made, and a minute that was written is added to again.
pub fn many(world: &mut World) {
    let mut expected = BTreeMap::<(i64, JobId), u64>::new();
    let mut number = 0;
    for step in 0..40i64 {
        let lasts = |n: u64| {
            if n.is_multiple_of(7) {
                5 * MINUTE_MS
            } else {
                20
            }
        };
        let runs: Vec<Run> = (0..6)
            .map(|_| {
                number += 1;
                let run = sample::run(step % 20 * 20_000, number, job_id(number % 4));
                sample::ended(run, RunState::Completed, lasts(number))
            })
            .collect();
        for run in &runs {
            let ended = run.finished().expect("it has ended");
            *expected.entry((ended.0 / MINUTE_MS, run.job)).or_default() += 1;
        }
        world.commit(sample::finished(runs));
        let found = world
            .read()
            .rollups(None, minute(-1), minute(100))
            .expect("they are read");
        let found: Vec<_> = found
            .iter()
            .map(|row| ((row.minute, row.job), row.completed))
            .collect();
        assert_eq!(
            found,
            expected.clone().into_iter().collect::<Vec<_>>(),
            "after {} commits",
            step + 1
        );
    }
    let of_one = world
        .read()
        .rollups(Some(job_id(3)), minute(2), minute(4))
        .expect("they are read");
    let wanted = expected
        .iter()
        .filter(|((at, job), _)| *job == job_id(3) && (minute(2)..minute(4)).contains(at));
    assert_eq!(
        of_one.iter().map(|row| row.completed).collect::<Vec<_>>(),
        wanted.map(|(_, n)| *n).collect::<Vec<_>>()
    );
}
