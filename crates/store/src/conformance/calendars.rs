//! Calendars, who uses them, and the sweeps that plan jobs anew.

use drumtower_core::change::{ChangeSet, JobChange};
use drumtower_core::model::{
    Actor, CalendarRef, CalendarVersion, JobRow, Limits, SegmentSet, SweepCause, SweepRow,
};

use super::World;
use super::sample::{self, T0, calendar, calendar_version, job_id, job_row, new_jobs, uses};

fn set(versions: impl IntoIterator<Item = CalendarVersion>) -> ChangeSet {
    let calendars = versions
        .into_iter()
        .map(|version| ((version.calendar(), version.version), version));
    ChangeSet {
        calendars: calendars.collect(),
        ..ChangeSet::default()
    }
}

fn versions(world: &World, calendar: &CalendarRef) -> Vec<u32> {
    let kept = world
        .read()
        .calendar_versions(calendar)
        .expect("they are read");
    kept.iter().map(|version| version.version).collect()
}

pub fn versioned(world: &mut World) {
    assert_eq!(world.read().calendars().expect("they are read"), []);
    let first = calendar_version("team-b", "workdays", 1);
    let other = calendar_version("team-a", "workdays", 1);
    world.commit(set([first.clone(), other.clone()]));
    // Versions are immutable and follow each other.
    world.refuse(set([first.clone()]));
    world.refuse(set([calendar_version("team-b", "workdays", 3)]));
    world.refuse(set([calendar_version("team-b", "holidays", 2)]));
    let second = CalendarVersion {
        deleted: true,
        actor: Actor::new("ann"),
        created: T0.plus(5),
        ..calendar_version("team-b", "workdays", 2)
    };
    let third = calendar_version("team-b", "workdays", 3);
    let dotted = calendar_version("team-b", "work.days", 1);
    world.commit(set([second.clone(), third.clone(), dotted.clone()]));
    assert_eq!(
        world.read().calendars().expect("they are read"),
        [other, dotted, first.clone(), second.clone(), third.clone()]
    );
    let kept = world
        .read()
        .calendar_versions(&calendar("team-b", "workdays"))
        .expect("they are read");
    assert_eq!(kept, [first, second, third]);
    assert!(versions(world, &calendar("team-c", "workdays")).is_empty());
    let mut foreign = ChangeSet::default();
    foreign.calendars.insert(
        (calendar("team-b", "holidays"), 1),
        calendar_version("team-b", "workdays", 4),
    );
    world.refuse(foreign);
}

pub fn bounded(world: &mut World) {
    let kept = Limits::CALENDAR_VERSIONS as u32;
    world.commit(set([calendar_version("default", "other", 1)]));
    let made = |number| calendar_version("default", "workdays", number);
    world.commit(set((1..kept).map(made)));
    let workdays = calendar("default", "workdays");
    assert_eq!(
        versions(world, &workdays).len(),
        Limits::CALENDAR_VERSIONS - 1
    );
    world.commit(set((kept..kept + 3).map(made)));
    assert_eq!(
        versions(world, &workdays),
        (3..kept + 3).collect::<Vec<_>>()
    );
    assert_eq!(versions(world, &calendar("default", "other")), [1]);
}

/// An edit of a job: its next version, with these calendars.
fn edited(row: &JobRow, only: &[&str], minus: &[&str]) -> (JobRow, ChangeSet) {
    let row = JobRow {
        version: row.version + 1,
        revision: row.revision + 1,
        ..row.clone()
    };
    let mut changes = changed(row.clone());
    let version = uses(sample::version(&row), only, minus);
    changes.versions.insert((row.id, row.version), version);
    (row, changes)
}

fn changed(row: JobRow) -> ChangeSet {
    ChangeSet {
        jobs: [(row.id, JobChange::Update(row))].into(),
        ..ChangeSet::default()
    }
}

pub fn users(world: &mut World) {
    let rows = [1, 2, 3, 4].map(|n| job_row(n, "default", &format!("job-{n}")));
    let mut changes = new_jobs(rows.clone());
    changes
        .jobs
        .extend(new_jobs([job_row(5, "team-b", "job-5")]).jobs);
    let stranger = new_jobs([job_row(5, "team-b", "job-5")]);
    changes.versions.extend(stranger.versions);
    changes.schedules.extend(stranger.schedules);
    for (n, only, minus) in [
        (1, &["workdays"][..], &["holidays"][..]),
        (2, &[], &["workdays"]),
        (3, &["workdays"], &["workdays"]),
        (5, &["workdays"], &[]),
    ] {
        let version = changes.versions.get_mut(&(job_id(n), 1));
        let version = version.expect("it is there");
        *version = uses(version.clone(), only, minus);
    }
    world.commit(changes);
    let found = |world: &World, name: &str, after: Option<u64>, limit| {
        let of = calendar("default", name);
        let jobs = world
            .read()
            .calendar_users(&SegmentSet::ALL, &of, after.map(job_id), limit)
            .expect("they are read");
        for job in &jobs {
            let same = world.read().job(job.row.id).expect("it is read");
            assert_eq!(same.as_ref(), Some(job));
        }
        jobs.iter().map(|job| job.row.id).collect::<Vec<_>>()
    };
    assert_eq!(found(world, "workdays", None, 9), [1, 2, 3].map(job_id));
    assert_eq!(found(world, "workdays", None, 2), [1, 2].map(job_id));
    assert_eq!(found(world, "workdays", Some(1), 1), [2].map(job_id));
    assert_eq!(found(world, "workdays", Some(3), 9), []);
    assert_eq!(found(world, "holidays", None, 9), [1].map(job_id));
    assert_eq!(found(world, "nobody", None, 9), []);
    // An edit takes the place of the uses before it; anything else leaves them.
    let (second, changes) = edited(&rows[0], &["holidays"], &[]);
    world.commit(changes);
    world.commit(changed(JobRow {
        revision: 9,
        ..rows[1].clone()
    }));
    assert_eq!(found(world, "workdays", None, 9), [2, 3].map(job_id));
    assert_eq!(found(world, "holidays", None, 9), [1].map(job_id));
    let (last, changes) = edited(&rows[3], &[], &["holidays"]);
    world.commit(changes);
    assert_eq!(found(world, "holidays", None, 9), [1, 4].map(job_id));
    // Deleted jobs use none, whatever else the set holds.
    world.commit(changed(JobRow {
        deleted: true,
        ..second
    }));
    let (gone, mut changes) = edited(&last, &["workdays"], &[]);
    let gone = JobRow {
        deleted: true,
        ..gone
    };
    changes.jobs.insert(gone.id, JobChange::Update(gone));
    world.commit(changes);
    assert_eq!(found(world, "holidays", None, 9), []);
    assert_eq!(found(world, "workdays", None, 9), [2, 3].map(job_id));
}

pub fn by_id(world: &mut World) {
    world.commit(new_jobs(
        [5, 3, 1, 4, 2].map(|n| job_row(n, "default", &format!("job-{n}"))),
    ));
    world.commit(changed(JobRow {
        deleted: true,
        ..job_row(2, "default", "job-2")
    }));
    let ids = |after: Option<u64>, limit| {
        let jobs = world
            .read()
            .jobs_by_id(&SegmentSet::ALL, after.map(job_id), limit)
            .expect("they are read");
        for job in &jobs {
            let same = world.read().job(job.row.id).expect("it is read");
            assert_eq!(same.as_ref(), Some(job));
        }
        jobs.iter().map(|job| job.row.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, 9), [1, 3, 4, 5].map(job_id));
    assert_eq!(ids(None, 2), [1, 3].map(job_id));
    assert_eq!(ids(Some(1), 2), [3, 4].map(job_id));
    assert_eq!(ids(Some(2), 1), [3].map(job_id));
    assert_eq!(ids(Some(5), 9), []);
    let none = world
        .read()
        .jobs_by_id(
            &SegmentSet::ALL,
            Some(drumtower_core::model::JobId(u64::MAX)),
            9,
        )
        .expect("they are read");
    assert_eq!(none, []);
}

pub fn sweeps(world: &mut World) {
    let row = |cause, looked| SweepRow {
        cause,
        version: "7".to_owned(),
        after: (looked > 0).then(|| job_id(looked)),
        looked,
        changed: looked / 2,
        started: T0,
        finished: (looked > 5).then(|| T0.plus(50)),
    };
    let set = |rows: &[SweepRow]| ChangeSet {
        sweeps: rows
            .iter()
            .map(|row| (row.cause.clone(), row.clone()))
            .collect(),
        ..ChangeSet::default()
    };
    let of = |name| SweepCause::Calendar(calendar("default", name));
    assert_eq!(world.read().sweeps().expect("they are read"), []);
    let dashed = SweepCause::Calendar(calendar("default-2", "workdays"));
    world.commit(set(&[
        row(SweepCause::TimeZones, 0),
        row(of("workdays"), 3),
        row(of("holidays"), 4),
        row(dashed.clone(), 5),
    ]));
    world.commit(set(&[row(of("workdays"), 6)]));
    assert_eq!(
        world.read().sweeps().expect("they are read"),
        [
            row(of("holidays"), 4),
            row(of("workdays"), 6),
            row(dashed, 5),
            row(SweepCause::TimeZones, 0)
        ]
    );
    let mut foreign = ChangeSet::default();
    foreign
        .sweeps
        .insert(of("workdays"), row(SweepCause::TimeZones, 1));
    world.refuse(foreign);
}

pub fn tz_version(world: &mut World) {
    let before = world.read().meta().expect("it is read");
    world.commit(ChangeSet::default());
    assert_eq!(world.read().meta().expect("it is read"), before);
    world.commit(ChangeSet {
        tz_version: Some("2099z".to_owned()),
        ..ChangeSet::default()
    });
    let after = world.read().meta().expect("it is read");
    assert_eq!(after.tz_version, "2099z");
    assert_eq!(after.cluster, before.cluster);
}
