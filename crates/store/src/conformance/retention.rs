//! Retention: what goes, what stays, and how much goes at once.

use drumtower_core::change::{ChangeSet, Prune};
use drumtower_core::model::{
    Actor, IdempotencyEntry, IdempotencyHash, JsonText, Retention, Run, RunState, Unfired,
    UnfiredReason,
};

use super::sample::{self, T0, job_id, run_id};
use super::{World, all_runs};
use crate::{PrunedRow, RunFilter};

const DAY_MS: i64 = 86_400_000;

fn prune(after_ms: i64, limit: usize) -> ChangeSet {
    ChangeSet {
        prune: Some(Prune {
            now: T0.plus(after_ms),
            limit,
        }),
        ..ChangeSet::default()
    }
}

fn run(ms: i64, counter: u64, retention: Retention, state: RunState) -> Run {
    sample::ended(
        Run {
            retention,
            ..sample::run(ms, counter, job_id(1))
        },
        state,
        10,
    )
}

fn left(world: &World) -> Vec<u64> {
    let runs = all_runs(world.read(), &RunFilter::default(), 100);
    let mut left: Vec<u64> = runs.iter().map(|run| run.id.0 & 0xfff).collect();
    left.sort_unstable();
    left
}

pub fn runs(world: &mut World) {
    let classes = [
        Retention::Day,
        Retention::Week,
        Retention::Month,
        Retention::Keep,
    ];
    let states = [
        RunState::Completed,
        RunState::Failed,
        RunState::Cancelled,
        RunState::Completed,
    ];
    let made = (0..12u64).map(|n| {
        run(
            n as i64 * 10,
            n,
            classes[n as usize % 4],
            states[n as usize / 3],
        )
    });
    world.commit(sample::finished(made));
    world.commit(prune(DAY_MS - 1, 100));
    assert_eq!(left(world).len(), 12);
    world.commit(prune(DAY_MS + 40, 100));
    assert_eq!(
        left(world),
        [1, 2, 3, 5, 6, 7, 8, 9, 10, 11],
        "the first two of a day"
    );
    world.commit(prune(7 * DAY_MS + 1_000, 100));
    assert_eq!(left(world), [2, 3, 6, 7, 10, 11]);
    world.commit(prune(3_000 * DAY_MS, 100));
    assert_eq!(left(world), [3, 7, 11]);
    assert_eq!(world.read().run(run_id(0, 0)).expect("it is read"), None);
    let failed = RunFilter {
        job: Some(job_id(1)),
        states: vec![RunState::Failed],
        ..RunFilter::default()
    };
    let page = world.read().runs(&failed, None, 9).expect("they are read");
    assert_eq!(
        page.runs
            .iter()
            .map(|run| run.id.0 & 0xfff)
            .collect::<Vec<_>>(),
        [3]
    );
    let by_job = RunFilter {
        job: Some(job_id(1)),
        ..RunFilter::default()
    };
    assert_eq!(
        world
            .read()
            .runs(&by_job, None, 9)
            .expect("they are read")
            .runs
            .len(),
        3
    );
    let row = PrunedRow {
        namespace: Default::default(),
        completed: 5,
        failed: 2,
        cancelled: 2,
    };
    assert_eq!(world.read().pruned().expect("they are read"), [row]);
}

pub fn bounded(world: &mut World) {
    let made = (0..30u64).map(|n| {
        let class = if n < 20 {
            Retention::Day
        } else {
            Retention::Week
        };
        run(n as i64, n, class, RunState::Completed)
    });
    world.commit(sample::finished(made));
    let mut before = 30;
    let mut week = false;
    while before > 0 {
        world.commit(prune(30 * DAY_MS, 4));
        let now = left(world);
        assert!(
            before - now.len() <= 4 && now.len() < before,
            "a step takes one to four"
        );
        week |= now.iter().filter(|n| **n < 20).count() > 0
            && now.iter().filter(|n| **n >= 20).count() < 10;
        before = now.len();
    }
    assert!(
        week,
        "a class with many old runs does not keep another from its turn"
    );
    world.commit(prune(30 * DAY_MS, 0));
}

pub fn the_rest(world: &mut World) {
    let text = JsonText::from_value(&serde_json::Value::String("x".repeat(5_000)));
    let long = Run {
        params: Some(text.clone()),
        result: Some(text),
        ..run(0, 1, Retention::Day, RunState::Completed)
    };
    let mut changes = sample::finished([long.clone()]);
    let entry = |key, created| IdempotencyEntry {
        hash: IdempotencyHash::of("default", "one", key),
        fingerprint: IdempotencyHash::fingerprint(&[key]),
        run: long.id,
        created,
    };
    let entries = [entry("a", T0), entry("b", T0.plus(DAY_MS))];
    changes.keys = entries
        .iter()
        .map(|entry| (entry.hash, entry.clone()))
        .collect();
    let range = |first: i64, last: i64| Unfired {
        job: job_id(1),
        first: T0.plus(first),
        last: T0.plus(last),
        version: 1,
        count: 1,
        reason: UnfiredReason::Misfire,
        server: Actor::new("server-1"),
    };
    let ranges = [range(0, 10), range(20, 31 * DAY_MS)];
    changes.unfired = ranges
        .iter()
        .map(|range| ((range.job, range.first), range.clone()))
        .collect();
    world.commit(changes);
    world.commit(prune(32 * DAY_MS, 100));
    let ranges = world
        .read()
        .unfired(job_id(1), T0, T0.plus(99 * DAY_MS), 9)
        .expect("they are read");
    assert_eq!(ranges, [range(20, 31 * DAY_MS)]);
    let found = world
        .read()
        .idempotency(&entries[0].hash, T0.plus(1))
        .expect("it is read");
    assert_eq!(found, None, "its hour is gone");
    let minute = T0.0 / 60_000;
    assert!(
        world
            .read()
            .rollups(None, minute - 9, minute + 9)
            .expect("they are read")
            .is_empty()
    );
    assert_eq!(world.read().run(long.id).expect("it is read"), None);
    // The same id may come again only because its row is gone with all that belonged to it.
    world.commit(sample::finished([run(
        0,
        1,
        Retention::Keep,
        RunState::Completed,
    )]));
    assert_eq!(
        world
            .read()
            .run(long.id)
            .expect("it is read")
            .map(|run| run.params),
        Some(None)
    );
}

pub fn at_once(world: &mut World) {
    let minute = T0.0 / 60_000;
    for (days, n) in [2, 2, 2, 2, 40, 40].into_iter().zip(0..) {
        let mut changes = sample::finished([run(n, n as u64, Retention::Day, RunState::Failed)]);
        changes.prune = prune(days * DAY_MS, 10).prune;
        world.commit(changes);
        assert!(left(world).is_empty());
        let rollups = world
            .read()
            .rollups(None, minute, minute + 1)
            .expect("they are read");
        let counted: u64 = rollups.iter().map(|row| row.failed).sum();
        assert_eq!(
            counted,
            if days == 2 { n as u64 + 1 } else { 0 },
            "roll-ups outlive their runs"
        );
    }
    let row = PrunedRow {
        namespace: Default::default(),
        completed: 0,
        failed: 6,
        cancelled: 0,
    };
    assert_eq!(world.read().pruned().expect("they are read"), [row]);
}
