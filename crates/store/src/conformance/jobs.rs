//! Jobs, their versions and schedules, and what did not fire.

use drumtower_core::change::{ChangeSet, JobChange, RunChange, ScheduleChange};
use drumtower_core::model::{
    Actor, BreakerRow, JobId, JobRow, JsonText, Open, Origin, Pause, Places, Run, RunState,
    ScheduleRow, SegmentSet, Standing, Unfired, UnfiredReason, WallMs,
};

use super::World;
use super::sample::{self, T0, job_id, job_name, job_row, namespace, new_jobs};
use crate::JobFilter;

fn update(row: JobRow) -> ChangeSet {
    ChangeSet {
        jobs: [(row.id, JobChange::Update(row))].into(),
        ..ChangeSet::default()
    }
}

pub fn read(world: &mut World) {
    let row = job_row(1, "team-a", "nightly");
    let mut changes = new_jobs([row.clone()]);
    let params = JsonText::parse("params", r#"{"z": 1, "a": 1.50, "z": 2}"#).expect("it is JSON");
    changes
        .versions
        .get_mut(&(row.id, 1))
        .expect("it is there")
        .spec
        .params = Some(params);
    world.commit(changes.clone());
    let record = world
        .read()
        .job_named(&row.namespace, &row.name)
        .expect("it is read")
        .expect("it is there");
    assert_eq!(record.row, row);
    assert_eq!(
        record.version,
        changes.versions[&(row.id, 1)],
        "the text of its parameters too"
    );
    assert_eq!(record.schedule, sample::schedule(row.id, Some(10_000)));
    assert_eq!((record.live_scheduled, &record.last_unfired), (0, &None));
    assert_eq!(world.read().job(row.id).expect("it is read"), Some(record));
    assert_eq!(
        world
            .read()
            .job_named(&namespace("team-b"), &row.name)
            .expect("it is read"),
        None
    );
    assert_eq!(world.read().job(job_id(2)).expect("it is read"), None);
    assert_eq!(world.read().job(JobId(u64::MAX)).expect("it is read"), None);
    world.refuse(new_jobs([row.clone()]));
    world.refuse(update(job_row(2, "team-a", "other")));
}

pub fn names(world: &mut World) {
    world.commit(new_jobs([job_row(1, "default", "one")]));
    world.refuse(new_jobs([job_row(2, "default", "one")]));
    world.commit(new_jobs([job_row(2, "other", "one")]));
    let gone = JobRow {
        deleted: true,
        revision: 2,
        ..job_row(1, "default", "one")
    };
    // The name passes to another job in the set that frees it.
    let mut changes = new_jobs([job_row(3, "default", "one")]);
    changes.jobs.extend(update(gone.clone()).jobs);
    world.commit(changes);
    let named = world
        .read()
        .job_named(&gone.namespace, &gone.name)
        .expect("it is read")
        .expect("it is there");
    assert_eq!(named.row.id, job_id(3));
    let old = world
        .read()
        .job(job_id(1))
        .expect("it is read")
        .expect("its row stays");
    assert_eq!(old.row, gone);
    let page = world
        .read()
        .jobs(&JobFilter::default(), None, 10)
        .expect("they are read");
    assert_eq!(
        page.jobs.iter().map(|job| job.row.id).collect::<Vec<_>>(),
        [job_id(3), job_id(2)]
    );
    world.refuse(update(JobRow {
        deleted: false,
        ..gone
    }));
}

pub fn versions(world: &mut World) {
    let row = job_row(1, "default", "one");
    world.commit(new_jobs([row.clone()]));
    let next = JobRow {
        version: 2,
        revision: 2,
        ..row.clone()
    };
    let mut second = sample::version(&next);
    second.spec.description = "edited".to_owned();
    let mut changes = update(next);
    changes.versions.insert((row.id, 2), second.clone());
    world.commit(changes);
    let record = world
        .read()
        .job(row.id)
        .expect("it is read")
        .expect("it is there");
    assert_eq!(record.version, second);
    let first = world.read().job_version(row.id, 1).expect("it is read");
    assert_eq!(first, Some(sample::version(&row)));
    assert_eq!(
        world.read().job_version(row.id, 3).expect("it is read"),
        None
    );
    world.refuse(ChangeSet {
        versions: [((row.id, 2), second)].into(),
        ..ChangeSet::default()
    });
}

pub fn version_list(world: &mut World) {
    let rows = [job_row(1, "default", "one"), job_row(2, "default", "two")];
    world.commit(new_jobs(rows.clone()));
    let mut expected = vec![sample::version(&rows[0])];
    for version in 2..=5 {
        let row = JobRow {
            version,
            revision: u64::from(version),
            ..rows[0].clone()
        };
        let next = sample::version(&row);
        let mut changes = update(row);
        changes.versions.insert((next.job, version), next.clone());
        world.commit(changes);
        expected.insert(0, next);
    }
    let listed = |before, limit| {
        let versions = world.read().job_versions(rows[0].id, before, limit);
        versions.expect("they are read")
    };
    assert_eq!(listed(None, 100), expected);
    assert_eq!(listed(None, 2), expected[..2]);
    assert_eq!(listed(Some(4), 2), expected[2..4]);
    assert_eq!(listed(Some(1), 2), []);
}

pub fn cursor(world: &mut World) {
    let row = job_row(1, "default", "one");
    world.commit(new_jobs([row.clone()]));
    let moved = |expected: Option<i64>, to: i64| {
        let schedule = ScheduleRow {
            job: job_id(1),
            fired_through: T0.plus(to),
            next_nominal: Some(T0.plus(to + 10)),
            next_due: None,
            fires: 3,
            paused_through: (to > 10).then(|| T0.plus(to - 5)),
        };
        let change = ScheduleChange {
            expected: expected.map(|ms| T0.plus(ms)),
            row: schedule,
        };
        ChangeSet {
            schedules: [(job_id(1), change)].into(),
            ..ChangeSet::default()
        }
    };
    world.refuse(moved(Some(1), 10));
    world.refuse(moved(None, 10));
    let stands = |world: &World, to| {
        let record = world
            .read()
            .job(row.id)
            .expect("it is read")
            .expect("it is there");
        assert_eq!(record.schedule, moved(None, to).schedules[&row.id].row);
    };
    world.commit(moved(Some(0), 10));
    world.refuse(moved(Some(0), 20));
    stands(world, 10);
    world.commit(moved(Some(10), 20));
    stands(world, 20);
    world.commit(moved(Some(20), 5));
    stands(world, 5);
    let mut other = moved(Some(0), 10);
    let change = other.schedules.remove(&row.id).expect("it is there");
    let stranger = ScheduleRow {
        job: job_id(2),
        ..change.row
    };
    other.schedules.insert(
        job_id(2),
        ScheduleChange {
            row: stranger,
            ..change
        },
    );
    world.refuse(other);
}

pub fn list(world: &mut World) {
    let names = ["a", "b", "c", "d", "e"];
    let rows = names
        .iter()
        .zip(1..)
        .flat_map(|(name, n)| [job_row(n, "x", name), job_row(100 - n, "y", name)]);
    let mut changes = new_jobs(rows);
    let paused = Pause {
        at: T0,
        actor: Actor::new("ann"),
    };
    for (id, change) in &mut changes.jobs {
        if let JobChange::Insert(row) = change
            && row.name == job_name("c")
        {
            row.paused = Some(paused.clone());
            let version = changes.versions.get_mut(&(*id, 1)).expect("it is there");
            version
                .spec
                .labels
                .insert("team".to_owned(), "billing".to_owned());
        }
    }
    world.commit(changes);
    let listed = |filter: &JobFilter, limit| {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = world
                .read()
                .jobs(filter, after.as_ref(), limit)
                .expect("they are read");
            assert!(page.jobs.len() <= limit);
            all.extend(
                page.jobs
                    .into_iter()
                    .map(|job| format!("{}/{}", job.row.namespace, job.row.name)),
            );
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    };
    let everything: Vec<String> = ["x", "y"]
        .iter()
        .flat_map(|ns| names.iter().map(move |n| format!("{ns}/{n}")))
        .collect();
    for limit in [1, 3, 10, 100] {
        assert_eq!(listed(&JobFilter::default(), limit), everything);
        let only = JobFilter {
            namespace: Some(namespace("y")),
            ..JobFilter::default()
        };
        assert_eq!(listed(&only, limit), everything[5..]);
        let labelled = JobFilter {
            labels: vec![("team".to_owned(), "billing".to_owned())],
            ..JobFilter::default()
        };
        assert_eq!(listed(&labelled, limit), ["x/c", "y/c"]);
        let labelled = JobFilter {
            labels: vec![("team".to_owned(), "other".to_owned())],
            ..JobFilter::default()
        };
        assert!(listed(&labelled, limit).is_empty());
        let awake = JobFilter {
            namespace: Some(namespace("x")),
            paused: Some(false),
            ..JobFilter::default()
        };
        assert_eq!(listed(&awake, limit), ["x/a", "x/b", "x/d", "x/e"]);
        let beginning = |prefix: &str, within: Option<&str>| JobFilter {
            namespace: within.map(namespace),
            prefix: Some(prefix.to_owned()),
            ..JobFilter::default()
        };
        assert_eq!(listed(&beginning("c", None), limit), ["x/c", "y/c"]);
        assert_eq!(listed(&beginning("c", Some("x")), limit), ["x/c"]);
        assert_eq!(listed(&beginning("", Some("y")), limit), everything[5..]);
        assert!(listed(&beginning("cc", Some("x")), limit).is_empty());
        let found = |search: &str, within: Option<&str>| JobFilter {
            namespace: within.map(namespace),
            search: Some(search.to_owned()),
            ..JobFilter::default()
        };
        assert_eq!(listed(&found("/a", None), limit), ["x/a", "y/a"]);
        assert_eq!(listed(&found("y/", None), limit), everything[5..]);
        assert_eq!(listed(&found("eam=bill", None), limit), ["x/c", "y/c"]);
        assert_eq!(listed(&found("billing", Some("y")), limit), ["y/c"]);
        assert!(listed(&found("nobody", None), limit).is_empty());
        let both = JobFilter {
            labels: vec![("team".to_owned(), "other".to_owned())],
            ..found("c", None)
        };
        assert!(listed(&both, limit).is_empty());
    }
}

pub fn due(world: &mut World) {
    let mut changes = new_jobs((1..=6).map(|n| job_row(n, "default", &format!("job-{n}"))));
    for (n, due) in [
        (1, Some(50)),
        (2, Some(10)),
        (3, None),
        (4, Some(10)),
        (5, Some(90)),
        (6, Some(-5)),
    ] {
        changes
            .schedules
            .get_mut(&job_id(n))
            .expect("it is there")
            .row = sample::schedule(job_id(n), due);
    }
    world.commit(changes);
    let ids = |after, limit| {
        let jobs = world
            .read()
            .jobs_due(&SegmentSet::ALL, T0.plus(90), after, limit)
            .expect("they are read");
        jobs.iter().map(|job| job.row.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, 10), [6, 2, 4, 1].map(job_id));
    assert_eq!(ids(None, 2), [6, 2].map(job_id));
    assert_eq!(ids(Some((T0.plus(10), job_id(2))), 10), [4, 1].map(job_id));
    assert_eq!(ids(Some((T0.plus(50), job_id(1))), 10), []);
}

pub fn live_scheduled(world: &mut World) {
    world.commit(new_jobs([
        job_row(1, "default", "one"),
        job_row(2, "default", "two"),
    ]));
    let scheduled = |counter, job| {
        let mut run = sample::run(0, counter, job_id(job));
        run.origin = Origin::Schedule;
        run.nominal = Some(T0);
        run
    };
    let mut parked = scheduled(2, 1);
    parked.parked = Some("default/exec/1".to_owned());
    let runs = [
        scheduled(1, 1),
        parked.clone(),
        scheduled(3, 2),
        sample::run(0, 4, job_id(1)),
    ];
    world.commit(sample::runs(
        runs.map(|run| RunChange::Insert(Box::new(run))),
    ));
    let live = |world: &World, job| {
        world
            .read()
            .job(job_id(job))
            .expect("it is read")
            .expect("it is there")
            .live_scheduled
    };
    assert_eq!((live(world, 1), live(world, 2)), (2, 1));
    let due = world
        .read()
        .jobs_due(&SegmentSet::ALL, WallMs(i64::MAX), None, 10)
        .expect("they are read");
    assert_eq!(
        due.iter().map(|job| job.live_scheduled).collect::<Vec<_>>(),
        [2, 1]
    );
    world.commit(sample::runs([RunChange::Finish(Box::new(sample::ended(
        scheduled(1, 1),
        RunState::Failed,
        9,
    )))]));
    assert_eq!((live(world, 1), live(world, 2)), (1, 1));
}

pub fn tallies(world: &mut World) {
    world.commit(new_jobs([
        job_row(1, "default", "one"),
        job_row(2, "default", "two"),
    ]));
    let run = |counter, job, origin, standing: Standing| Run {
        origin,
        standing,
        ..sample::run(0, counter, job_id(job))
    };
    let usual = Standing::of(Origin::Schedule);
    let keyed = |key: &str| Standing {
        key: Some(key.to_owned()),
        ..usual.clone()
    };
    let queued = |standing: Standing| Standing {
        queued: true,
        ..standing
    };
    let waits = Run {
        parked: Some("queue/1".to_owned()),
        ..run(5, 1, Origin::Schedule, queued(usual.clone()))
    };
    let runs = [
        run(1, 1, Origin::Schedule, usual.clone()),
        run(2, 1, Origin::Api, usual.clone()),
        run(3, 1, Origin::Api, Standing::of(Origin::Api)),
        run(4, 1, Origin::Schedule, Standing::of(Origin::Api)),
        waits.clone(),
        run(6, 1, Origin::Api, keyed("7")),
        run(7, 1, Origin::Schedule, keyed("\"a:b\"")),
        run(8, 1, Origin::Api, queued(keyed("7"))),
        run(9, 2, Origin::Schedule, usual.clone()),
    ];
    world.commit(sample::runs(
        runs.clone().map(|run| RunChange::Insert(Box::new(run))),
    ));
    let record = |world: &World, job| {
        let record = world.read().job(job_id(job)).expect("it is read");
        record.expect("it is there")
    };
    let places = |live, queued| Places { live, queued };
    let one = record(world, 1);
    assert_eq!(one.tallies.own, places(2, 1));
    assert_eq!(one.tallies.of(Some("7")), places(1, 1));
    assert_eq!(one.tallies.of(Some("\"a:b\"")), places(1, 0));
    assert_eq!((one.tallies.keyed.len(), one.live_scheduled), (2, 4));
    assert_eq!(record(world, 2).tallies.own, places(1, 0));
    let live = |world: &World, key, limit| {
        let runs = world.read().live_runs(job_id(1), key, limit);
        let runs = runs.expect("they are read");
        runs.iter().map(|run| run.id).collect::<Vec<_>>()
    };
    let ids = |counters: &[u64]| {
        counters
            .iter()
            .map(|n| sample::run_id(0, *n))
            .collect::<Vec<_>>()
    };
    assert_eq!(live(world, None, 9), ids(&[1, 2]));
    assert_eq!(live(world, None, 1), ids(&[1]));
    assert_eq!(live(world, Some("7"), 9), ids(&[6]));
    assert_eq!(live(world, Some("8"), 9), ids(&[]));
    // Its turn has come.
    let turn = Run {
        parked: None,
        standing: usual.clone(),
        ..waits
    };
    world.commit(sample::runs([RunChange::Update(Box::new(turn))]));
    assert_eq!(record(world, 1).tallies.own, places(3, 0));
    assert_eq!(live(world, None, 9), ids(&[1, 2, 5]));
    let ended = sample::ended(runs[1].clone(), RunState::Completed, 9);
    world.commit(sample::runs([RunChange::Finish(Box::new(ended))]));
    assert_eq!(live(world, None, 9), ids(&[1, 5]));
}

pub fn breakers(world: &mut World) {
    world.commit(new_jobs([
        job_row(1, "default", "one"),
        job_row(2, "default", "two"),
    ]));
    let row = |failures, open| BreakerRow {
        job: job_id(1),
        failures,
        open,
    };
    let set = |row: Option<BreakerRow>| ChangeSet {
        breakers: [(job_id(1), row)].into(),
        ..ChangeSet::default()
    };
    let found = |world: &World| {
        let jobs = world
            .read()
            .jobs_by_id(&SegmentSet::ALL, None, 9)
            .expect("they are read");
        jobs.into_iter().map(|job| job.breaker).collect::<Vec<_>>()
    };
    assert_eq!(found(world), [None, None]);
    let open = Open {
        since: T0,
        at: T0.plus(7),
        cooldown_ms: 60_000,
        probe: Some(sample::run_id(0, 3)),
        passed: 1,
    };
    for row in [row(1, None), row(5, Some(open))] {
        world.commit(set(Some(row.clone())));
        assert_eq!(found(world), [Some(row), None]);
    }
    world.commit(set(None));
    world.commit(set(None));
    assert_eq!(found(world), [None, None]);
}

pub fn unfired(world: &mut World) {
    world.commit(new_jobs([job_row(1, "default", "one")]));
    let range = |job, first: i64, last: i64| Unfired {
        job: job_id(job),
        first: T0.plus(first),
        last: T0.plus(last),
        version: 1,
        count: 4,
        reason: UnfiredReason::Overlap,
        server: Actor::new("server-1"),
    };
    let set = |ranges: &[Unfired]| ChangeSet {
        unfired: ranges
            .iter()
            .map(|range| ((range.job, range.first), range.clone()))
            .collect(),
        ..ChangeSet::default()
    };
    world.commit(set(&[range(1, 0, 10), range(1, 20, 30), range(2, 0, 99)]));
    world.commit(set(&[range(1, 20, 45)]));
    let found = |from, to, limit| {
        let ranges = world
            .read()
            .unfired(job_id(1), T0.plus(from), T0.plus(to), limit)
            .expect("they are read");
        ranges
            .iter()
            .map(|range| (range.first.since(T0), range.last.since(T0)))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(-100, 100, 9), [(0, 10), (20, 45)]);
    assert_eq!(found(-100, 100, 1), [(0, 10)]);
    assert_eq!(found(11, 19, 9), []);
    assert_eq!(found(10, 20, 9), [(0, 10), (20, 45)]);
    assert_eq!(found(40, 41, 9), [(20, 45)]);
    let record = world
        .read()
        .job(job_id(1))
        .expect("it is read")
        .expect("it is there");
    assert_eq!(record.last_unfired, Some(range(1, 20, 45)));
}
