//! Listings: exactly newest id first, whichever way the runs are kept.

use drumtower_core::change::RunChange;
use drumtower_core::model::{Origin, Retention, Run, RunId, RunState};

use super::sample::{self, T0, job_id, namespace, run_id};
use super::{World, all_runs};
use crate::RunFilter;

fn ids(runs: &[Run]) -> Vec<RunId> {
    runs.iter().map(|run| run.id).collect()
}

fn of_job(job: u64, states: &[RunState]) -> RunFilter {
    RunFilter {
        job: Some(job_id(job)),
        states: states.to_vec(),
        ..RunFilter::default()
    }
}

/// Checks a listing against the runs it should hold, in pages of several sizes.
fn expect(world: &World, filter: &RunFilter, mut runs: Vec<Run>) {
    runs.sort_by_key(|run| std::cmp::Reverse(run.id));
    for limit in [1, 7, 1_000] {
        let found = all_runs(world.read(), filter, limit);
        assert_eq!(ids(&found), ids(&runs), "{filter:?} in pages of {limit}");
        assert_eq!(found, runs);
    }
}

/// Three jobs, 120 finished runs in commits of eight: more than any small bucket, and one run of each ten does not complete.
fn many(world: &mut World) -> Vec<Run> {
    let states = [RunState::Completed, RunState::Failed, RunState::Cancelled];
    let classes = Retention::ALL;
    let mut all = Vec::new();
    for batch in 0..15i64 {
        let made = (0..8u64).map(|n| {
            let number = batch as u64 * 8 + n;
            let state = if number % 10 == 9 {
                states[1 + (number / 10 % 2) as usize]
            } else {
                states[0]
            };
            let mut run = sample::run(batch * 10, number, job_id(number % 3));
            run.retention = classes[(number / 2 % 4) as usize];
            run.namespace = namespace(if number.is_multiple_of(5) {
                "team-b"
            } else {
                "default"
            });
            sample::ended(run, state, 3)
        });
        let made: Vec<Run> = made.collect();
        all.extend(made.clone());
        world.commit(sample::finished(made));
    }
    all
}

pub fn by_job(world: &mut World) {
    let mut all = many(world);
    let active: Vec<Run> = (0..9)
        .map(|n| sample::run(n * 17, 900 + n as u64, job_id(n as u64 % 3)))
        .collect();
    world.commit(sample::runs(
        active
            .iter()
            .cloned()
            .map(|run| RunChange::Insert(Box::new(run))),
    ));
    all.extend(active);
    for job in 0..3 {
        let of: Vec<Run> = all
            .iter()
            .filter(|run| run.job == job_id(job))
            .cloned()
            .collect();
        expect(world, &of_job(job, &[]), of);
    }
    expect(world, &of_job(9, &[]), Vec::new());
    for run in &all {
        assert_eq!(
            world.read().run(run.id).expect("it is read").as_ref(),
            Some(run)
        );
    }
}

pub fn failed(world: &mut World) {
    let all = many(world);
    let active = sample::running(sample::run(500, 1, job_id(0)));
    world.commit(sample::runs([RunChange::Insert(Box::new(active.clone()))]));
    let wanted: [&[RunState]; 4] = [
        &[RunState::Failed],
        &[RunState::Cancelled],
        &[RunState::Failed, RunState::Cancelled],
        &[RunState::Failed, RunState::Running],
    ];
    for states in wanted {
        let of = all
            .iter()
            .chain([&active])
            .filter(|run| run.job == job_id(0) && states.contains(&run.state));
        expect(world, &of_job(0, states), of.cloned().collect());
    }
}

pub fn everything(world: &mut World) {
    let mut all = many(world);
    let active: Vec<Run> = (0..5)
        .map(|n| sample::run(n * 31, 900 + n as u64, job_id(1)))
        .collect();
    world.commit(sample::runs(
        active
            .iter()
            .cloned()
            .map(|run| RunChange::Insert(Box::new(run))),
    ));
    all.extend(active);
    expect(world, &RunFilter::default(), all.clone());
    let from = run_id(75, 0);
    let page = world
        .read()
        .runs(&RunFilter::default(), Some(from), 3)
        .expect("they are read");
    all.retain(|run| run.id < from);
    all.sort_by_key(|run| std::cmp::Reverse(run.id));
    assert_eq!(
        ids(&page.runs),
        ids(&all[..3]),
        "a cursor need not be a run's id"
    );
}

pub fn late(world: &mut World) {
    let old: Vec<Run> = (0..4)
        .map(|n| sample::run(n, 500 + n as u64, job_id(n as u64 % 3)))
        .collect();
    world.commit(sample::runs(
        old.iter()
            .cloned()
            .map(|run| RunChange::Insert(Box::new(run))),
    ));
    let mut all = many(world);
    for run in old {
        let run = sample::ended(run, RunState::Completed, 3_600_000);
        world.commit(sample::runs([RunChange::Finish(Box::new(run.clone()))]));
        assert_eq!(
            world.read().run(run.id).expect("it is read").as_ref(),
            Some(&run)
        );
        all.push(run);
    }
    expect(world, &RunFilter::default(), all.clone());
    all.retain(|run| run.job == job_id(1));
    expect(world, &of_job(1, &[]), all);
}

pub fn filters(world: &mut World) {
    let mut all = many(world);
    let active = sample::run(60, 900, job_id(2));
    world.commit(sample::runs([RunChange::Insert(Box::new(active.clone()))]));
    all.push(active);
    let mut known = ids(&all);
    known.sort_unstable();
    let middle = known[known.len() / 2];
    let filters = [
        RunFilter {
            namespace: Some(namespace("team-b")),
            ..RunFilter::default()
        },
        RunFilter {
            namespace: Some(namespace("team-b")),
            ..of_job(1, &[RunState::Completed])
        },
        RunFilter {
            states: vec![RunState::Completed],
            ..RunFilter::default()
        },
        RunFilter {
            states: vec![RunState::Failed, RunState::Cancelled],
            ..RunFilter::default()
        },
        RunFilter {
            states: vec![RunState::Pending],
            ..RunFilter::default()
        },
        RunFilter {
            namespace: Some(namespace("nobody")),
            ..RunFilter::default()
        },
        RunFilter {
            origin: Some(Origin::Api),
            ..RunFilter::default()
        },
        RunFilter {
            origin: Some(Origin::Schedule),
            ..RunFilter::default()
        },
        RunFilter {
            since: Some(middle),
            ..RunFilter::default()
        },
        RunFilter {
            since: Some(middle),
            ..of_job(1, &[RunState::Failed])
        },
    ];
    for filter in filters {
        let of = all
            .iter()
            .filter(|run| filter.takes(run))
            .cloned()
            .collect();
        expect(world, &filter, of);
    }
    assert!(all.iter().all(|run| run.created >= T0));
}
