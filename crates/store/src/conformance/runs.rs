//! Runs before and at their end.

use drumtower_core::change::RunChange::{Finish, Insert, InsertFinished, Update};
use drumtower_core::model::{
    Actor, BackfillId, BackfillMark, CancelRequest, Home, JobId, JsonText, Limits, LogLocator,
    Origin, Retention, Run, RunId, RunState, SegmentSet, WallMs,
};

use super::World;
use super::sample::{self, T0, job_id, run_id, runs};
use crate::RunFilter;

fn get(world: &World, id: RunId) -> Option<Run> {
    world.read().run(id).expect("it is read")
}

pub fn life(world: &mut World) {
    let pending = sample::run(0, 1, job_id(1));
    world.commit(runs([Insert(Box::new(pending.clone()))]));
    assert_eq!(get(world, pending.id), Some(pending.clone()));
    let running = sample::running(pending.clone());
    world.commit(runs([Update(Box::new(running.clone()))]));
    assert_eq!(get(world, pending.id), Some(running));
    let done = sample::ended(pending.clone(), RunState::Completed, 40);
    world.commit(runs([Finish(Box::new(done.clone()))]));
    assert_eq!(get(world, pending.id), Some(done));
    assert!(
        world
            .read()
            .active_runs(&SegmentSet::ALL, None, 10)
            .expect("they are read")
            .is_empty()
    );
    assert_eq!(get(world, run_id(0, 2)), None);
}

fn full(counter: u64) -> Run {
    let mut run = sample::run(0, counter, JobId(1));
    run.namespace = sample::namespace("team-a");
    run.job_version = 77;
    run.origin = Origin::Schedule;
    run.actor = Actor::new("the schedule");
    run.nominal = Some(WallMs(i64::MIN));
    run.due = WallMs(i64::MAX);
    run.created = T0.plus(17);
    run.retention = Retention::Keep;
    run.params = Some(JsonText::parse("params", r#"{"b":  1, "a":"ö"}"#).expect("it is JSON"));
    run.idempotency_key = Some("a key".to_owned());
    run.parent_run = Some(RunId(1));
    run.root_run = Some(RunId(u64::MAX));
    run.rerun_of = Some(RunId(0));
    run.shard = Some((3, 8));
    run.start_by = Some(WallMs(-7));
    run.backfill = Some(BackfillMark {
        backfill: BackfillId(u64::MAX),
        priority: 9,
    });
    run.cancel = Some(CancelRequest {
        at: T0,
        actor: Actor::new("ann"),
    });
    run
}

pub fn every_field(world: &mut World) {
    let mut parked = full(1);
    parked.parked = Some("team-a/exec/1".to_owned());
    let mut done = sample::ended(full(2), RunState::Failed, 3_600_000);
    done.result = Some(JsonText::parse("result", "[1, 2]").expect("it is JSON"));
    done.error = Some("it did not work".to_owned());
    let last = done
        .attempts
        .last_mut()
        .and_then(|attempt| attempt.end.as_mut())
        .expect("it has ended");
    last.signal = Some(-9);
    last.exit_code = None;
    last.error = Some("killed".to_owned());
    last.log = Some(LogLocator {
        file: 4,
        offset: 1 << 40,
        bytes: 99,
        truncated: true,
        home: Some(Home(u64::MAX - 3)),
    });
    let mut lost = done.clone();
    lost.id = run_id(0, 3);
    lost.attempts
        .insert(0, sample::running(full(3)).attempts.remove(0));
    lost.attempts[0].started = None;
    lost.transitions.clear();
    world.commit(runs([
        Insert(Box::new(parked.clone())),
        InsertFinished(Box::new(done.clone())),
        InsertFinished(Box::new(lost.clone())),
    ]));
    for run in [parked, done, lost] {
        assert_eq!(get(world, run.id), Some(run));
    }
}

pub fn insert_twice(world: &mut World) {
    let run = sample::run(0, 1, job_id(1));
    let done = sample::ended(run.clone(), RunState::Completed, 1);
    world.commit(runs([Insert(Box::new(run.clone()))]));
    world.refuse(runs([Insert(Box::new(run.clone()))]));
    world.refuse(runs([InsertFinished(Box::new(done.clone()))]));
    world.commit(runs([Finish(Box::new(done.clone()))]));
    world.refuse(runs([Insert(Box::new(run))]));
    world.refuse(runs([InsertFinished(Box::new(done))]));
}

pub fn missing(world: &mut World) {
    let run = sample::run(0, 1, job_id(1));
    let done = sample::ended(run.clone(), RunState::Completed, 1);
    world.refuse(runs([Update(Box::new(run.clone()))]));
    world.refuse(runs([Finish(Box::new(done.clone()))]));
    world.commit(runs([InsertFinished(Box::new(done.clone()))]));
    world.refuse(runs([Update(Box::new(run))]));
    world.refuse(runs([Finish(Box::new(done))]));
}

pub fn insert_finished(world: &mut World) {
    let mut cancelled = sample::run(0, 1, job_id(1));
    cancelled.transition(
        RunState::Cancelled,
        T0.plus(4),
        drumtower_core::model::Reason::Cancelled,
    );
    world.commit(runs([InsertFinished(Box::new(cancelled.clone()))]));
    assert_eq!(get(world, cancelled.id), Some(cancelled.clone()));
    let page = world
        .read()
        .runs(&RunFilter::default(), None, 10)
        .expect("they are read");
    assert_eq!((page.runs, page.next), (vec![cancelled], None));
}

fn parked(counter: u64, key: &str) -> Run {
    Run {
        parked: Some(key.to_owned()),
        ..sample::run(0, counter, job_id(1))
    }
}

fn counters(runs: Vec<Run>) -> Vec<u64> {
    runs.iter().map(|run| run.id.0 & 0xfff).collect()
}

pub fn active(world: &mut World) {
    let plain = (1..=5).map(|n| sample::run(0, n, job_id(1)));
    world.commit(runs(
        plain
            .chain([parked(6, "k")])
            .map(|run| Insert(Box::new(run))),
    ));
    world.commit(runs([Update(Box::new(parked(2, "k")))]));
    let page = |after, limit| {
        counters(
            world
                .read()
                .active_runs(&SegmentSet::ALL, after, limit)
                .expect("they are read"),
        )
    };
    assert_eq!(page(None, 10), [1, 3, 4, 5]);
    assert_eq!(page(None, 2), [1, 3]);
    assert_eq!(page(Some(run_id(0, 3)), 2), [4, 5]);
    assert!(page(Some(run_id(0, 5)), 2).is_empty());
    world.commit(runs([Update(Box::new(sample::run(0, 6, job_id(1))))]));
    assert_eq!(
        counters(
            world
                .read()
                .active_runs(&SegmentSet::ALL, None, 10)
                .expect("they are read")
        ),
        [1, 3, 4, 5, 6]
    );
}

fn parked_page(world: &World, key: &str, after: Option<RunId>, limit: usize) -> Vec<u64> {
    counters(
        world
            .read()
            .parked_runs(&SegmentSet::ALL, key, after, limit)
            .expect("they are read"),
    )
}

fn parked_keys(world: &World) -> Vec<(String, u64)> {
    let keys = world
        .read()
        .parked_keys(&SegmentSet::ALL)
        .expect("they are read");
    keys.into_iter().map(|key| (key.key, key.runs)).collect()
}

/// Parked runs by key, in order of id.
pub fn parked_runs(world: &mut World) {
    world.commit(runs(
        [
            parked(1, "b"),
            parked(2, "a"),
            parked(3, "b"),
            parked(4, "b"),
        ]
        .map(|run| Insert(Box::new(run))),
    ));
    assert_eq!(
        parked_keys(world),
        [("a".to_owned(), 1), ("b".to_owned(), 3)]
    );
    assert_eq!(parked_page(world, "b", None, 10), [1, 3, 4]);
    assert_eq!(parked_page(world, "b", Some(run_id(0, 1)), 1), [3]);
    assert!(parked_page(world, "c", None, 10).is_empty());
    world.commit(runs([
        Update(Box::new(sample::run(0, 3, job_id(1)))),
        Update(Box::new(parked(2, "b"))),
    ]));
    assert_eq!(parked_page(world, "b", None, 10), [1, 2, 4]);
    assert_eq!(parked_keys(world), [("b".to_owned(), 3)]);
    let done = sample::ended(sample::run(0, 1, job_id(1)), RunState::Failed, 1);
    world.commit(runs([Finish(Box::new(done))]));
    assert_eq!(parked_page(world, "b", None, 10), [2, 4]);
}

fn long(letter: &str, bytes: usize) -> Option<JsonText> {
    Some(JsonText::from_value(&serde_json::Value::String(
        letter.repeat(bytes - 2),
    )))
}

pub fn payloads(world: &mut World) {
    let sizes = [
        Limits::INLINE_PAYLOAD_BYTES,
        Limits::INLINE_PAYLOAD_BYTES + 1,
        Limits::PARAMS_BYTES,
    ];
    for (size, n) in sizes.into_iter().zip(1..) {
        let run = Run {
            params: long("p", size),
            ..sample::run(0, n, job_id(1))
        };
        world.commit(runs([Insert(Box::new(run.clone()))]));
        assert_eq!(get(world, run.id), Some(run.clone()));
        world.commit(runs([Update(Box::new(sample::running(run.clone())))]));
        let done = Run {
            result: long("r", size),
            ..sample::ended(run, RunState::Completed, 1)
        };
        world.commit(runs([Finish(Box::new(done.clone()))]));
        assert_eq!(get(world, done.id), Some(done));
    }
}

pub fn beyond(world: &mut World) {
    let far = RunId(u64::MAX);
    assert_eq!(get(world, far), None);
    world.refuse(runs([Insert(Box::new(Run {
        id: far,
        ..sample::run(0, 1, job_id(1))
    }))]));
    let page = world
        .read()
        .runs(&RunFilter::default(), Some(RunId(0)), 10)
        .expect("they are read");
    assert_eq!((page.runs.len(), page.next), (0, None));
}
