//! Jobs that run after others, what has come of those, and ends that have yet to be told.

use drumtower_core::change::{ChangeSet, JobChange};
use drumtower_core::model::{
    After, AfterOn, AfterRow, Arrival, Ending, JobId, JobName, JobRow, JobVersion, Need, RunId,
    RunState, SegmentId, SegmentSet, UnfiredReason, Unmade, WallMs,
};

use super::World;
use super::sample::{self, T0, job_id, job_row, namespace, new_jobs};

fn name(text: &str) -> JobName {
    JobName::new(text).expect("a name")
}

fn after(version: JobVersion, jobs: &[&str]) -> JobVersion {
    let mut version = version;
    version.spec.after = (!jobs.is_empty()).then(|| After {
        jobs: jobs.iter().map(|job| name(job)).collect(),
        need: Need::Any,
        on: AfterOn::Either,
    });
    version
}

fn changed(row: JobRow) -> ChangeSet {
    ChangeSet {
        jobs: [(row.id, JobChange::Update(row))].into(),
        ..ChangeSet::default()
    }
}

/// The next version of a job, which runs after these.
fn edited(row: &JobRow, jobs: &[&str]) -> (JobRow, ChangeSet) {
    let row = JobRow {
        version: row.version + 1,
        ..row.clone()
    };
    let mut changes = changed(row.clone());
    let version = after(sample::version(&row), jobs);
    changes.versions.insert((row.id, row.version), version);
    (row, changes)
}

fn found(world: &World, job: &str, above: Option<u64>, limit: usize) -> Vec<JobId> {
    let (of, within) = (namespace("default"), SegmentSet::ALL);
    let jobs = world
        .read()
        .followers(&within, &of, &name(job), above.map(job_id), limit)
        .expect("they are read");
    for job in &jobs {
        let same = world.read().job(job.row.id).expect("it is read");
        assert_eq!(same.as_ref(), Some(job));
    }
    jobs.iter().map(|job| job.row.id).collect()
}

fn is_followed(world: &World, job: u64) -> bool {
    let record = world.read().job(job_id(job)).expect("it is read");
    record.expect("it is there").followed
}

pub fn followed(world: &mut World) {
    let rows = [1, 2, 3, 4].map(|n| job_row(n, "default", &format!("job-{n}")));
    let mut changes = new_jobs(rows.clone());
    let stranger = new_jobs([job_row(5, "team-b", "job-5")]);
    changes.jobs.extend(stranger.jobs);
    changes.versions.extend(stranger.versions);
    changes.schedules.extend(stranger.schedules);
    for (n, jobs) in [
        (2, &["job-1", "later"][..]),
        (3, &["job-1"]),
        (4, &["job-3"]),
        (5, &["job-1"]),
    ] {
        let version = changes.versions.get_mut(&(job_id(n), 1));
        let version = version.expect("it is there");
        *version = after(version.clone(), jobs);
    }
    world.commit(changes);
    assert_eq!(found(world, "job-1", None, 9), [2, 3].map(job_id));
    assert_eq!(found(world, "job-1", None, 1), [2].map(job_id));
    assert_eq!(found(world, "job-1", Some(2), 9), [3].map(job_id));
    assert_eq!(found(world, "later", None, 9), [2].map(job_id));
    assert_eq!(found(world, "job-2", None, 9), []);
    assert_eq!(
        [1, 2, 3, 4, 5].map(|job| is_followed(world, job)),
        [true, false, true, false, false]
    );
    // Only what lies in the segments that were asked for.
    let own: SegmentSet = [job_id(2).segment()].into_iter().collect();
    let rest = SegmentSet::ALL.without(&own);
    for (within, expected) in [(own, 2), (rest, 3)] {
        let jobs = world
            .read()
            .followers(&within, &namespace("default"), &name("job-1"), None, 9)
            .expect("they are read");
        let ids: Vec<JobId> = jobs.iter().map(|job| job.row.id).collect();
        let same = job_id(2).segment() == job_id(3).segment();
        assert!(same || ids == [job_id(expected)], "{ids:?}");
    }
    // An edit takes the place of what was before; anything else leaves it.
    let (second, changes) = edited(&rows[1], &["job-4"]);
    world.commit(changes);
    world.commit(changed(JobRow {
        revision: 9,
        ..rows[2].clone()
    }));
    assert_eq!(found(world, "job-1", None, 9), [3].map(job_id));
    assert_eq!(found(world, "later", None, 9), []);
    assert_eq!(found(world, "job-4", None, 9), [2].map(job_id));
    assert!(is_followed(world, 4) && is_followed(world, 1));
    let (_, changes) = edited(&rows[2], &[]);
    world.commit(changes);
    assert!(!is_followed(world, 1));
    // One set may make a job and edit it.
    let made = job_row(6, "default", "job-6");
    let mut changes = new_jobs([made.clone()]);
    let first = after(sample::version(&made), &["job-1"]);
    changes.versions.insert((made.id, 1), first);
    let (second_of_made, edit) = edited(&made, &["later"]);
    changes.versions.extend(edit.versions);
    changes
        .jobs
        .insert(made.id, JobChange::Insert(second_of_made));
    world.commit(changes);
    assert_eq!(found(world, "job-1", None, 9), []);
    assert_eq!(found(world, "later", None, 9), [6].map(job_id));
    // Deleted jobs follow none, and are followed by those that wait for the name.
    world.commit(changed(JobRow {
        deleted: true,
        ..second
    }));
    assert_eq!(found(world, "job-4", None, 9), []);
    assert!(!is_followed(world, 4));
}

pub fn waits(world: &mut World) {
    world.commit(new_jobs([
        job_row(1, "default", "one"),
        job_row(2, "default", "two"),
    ]));
    let set = |row: Option<AfterRow>| ChangeSet {
        waits: [(job_id(1), row)].into(),
        ..ChangeSet::default()
    };
    let found = |world: &World| {
        let jobs = world.read().jobs_by_id(&SegmentSet::ALL, None, 9);
        let jobs = jobs.expect("they are read").into_iter();
        jobs.map(|job| job.waits).collect::<Vec<_>>()
    };
    assert_eq!(found(world), [None, None]);
    let arrival = Arrival {
        run: sample::run_id(0, 3),
        state: RunState::Failed,
        at: T0.plus(7),
    };
    let first = AfterRow {
        arrived: [(name("three"), arrival), (name("four"), arrival)].into(),
        unmade: None,
    };
    let second = AfterRow {
        arrived: [].into(),
        unmade: Some(Unmade {
            count: 3,
            run: sample::run_id(0, 4),
            at: WallMs(5),
            reason: UnfiredReason::Breaker,
        }),
    };
    for row in [first, second] {
        world.commit(set(Some(row.clone())));
        assert_eq!(found(world), [Some(row), None]);
    }
    world.commit(set(None));
    world.commit(set(None));
    assert_eq!(found(world), [None, None]);
}

pub fn endings(world: &mut World) {
    let ending = |n: u64, through: Option<u64>| Ending {
        run: sample::run_id(0, n),
        root: sample::run_id(0, 1),
        namespace: namespace("default"),
        name: name("one"),
        state: RunState::Completed,
        at: T0.plus(5),
        through: through.map(job_id),
    };
    let set = |rows: &[(RunId, Option<Ending>)]| ChangeSet {
        endings: rows.iter().cloned().collect(),
        ..ChangeSet::default()
    };
    let put = |ending: Ending| (ending.run, Some(ending));
    let found = |world: &World, within: &SegmentSet, limit| {
        let read = world.read().endings(within, limit);
        read.expect("they are read")
    };
    let all = SegmentSet::ALL;
    assert_eq!(found(world, &all, 9), []);
    world.commit(set(&[put(ending(3, None)), put(ending(2, None))]));
    assert_eq!(found(world, &all, 9), [ending(2, None), ending(3, None)]);
    assert_eq!(found(world, &all, 1), [ending(2, None)]);
    let own: SegmentSet = [ending(2, None).run.segment()].into_iter().collect();
    assert!(found(world, &own, 9).contains(&ending(2, None)));
    let other = SegmentId((ending(2, None).run.segment().0 + 1) % SegmentId::COUNT);
    let other: SegmentSet = [other].into_iter().collect();
    assert!(!found(world, &other, 9).contains(&ending(2, None)));
    world.commit(set(&[put(ending(2, Some(7))), (ending(3, None).run, None)]));
    assert_eq!(found(world, &all, 9), [ending(2, Some(7))]);
    // Gone is gone, also when it never was.
    world.commit(set(&[
        (ending(2, None).run, None),
        (ending(9, None).run, None),
    ]));
    assert_eq!(found(world, &all, 9), []);
    let wrong = ChangeSet {
        endings: [(ending(2, None).run, Some(ending(3, None)))].into(),
        ..ChangeSet::default()
    };
    world.refuse(wrong);
}
