//! Listings that a loop reads for itself bring what lies in its segments, in full pages.

use drumtower_core::change::RunChange::Insert;
use drumtower_core::change::{BackfillChange, ChangeSet};
use drumtower_core::model::{JobId, JobRecord, JobRow, Run, RunId, SegmentId, SegmentSet, WallMs};

use super::World;
use super::sample::{self, T0, raw_id};
use crate::BackfillFilter;

const OURS: u16 = 3;
const THEIRS: u16 = 900;

fn ours() -> SegmentSet {
    [SegmentId(OURS), SegmentId(4)].into_iter().collect()
}

fn job(segment: u16) -> JobRow {
    JobRow {
        id: JobId(raw_id(-1_000, segment, 1)),
        segment: SegmentId(segment),
        ..sample::job_row(1, "default", &format!("in-{segment}"))
    }
}

fn run(segment: u16, counter: u64, parked: bool) -> Run {
    let id = RunId(raw_id(0, segment, counter));
    Run {
        id,
        parked: parked.then(|| "k".to_owned()),
        start_by: parked.then(|| T0.plus(counter as i64)),
        ..sample::run(0, counter, job(segment).id)
    }
}

fn ids(runs: Vec<Run>) -> Vec<RunId> {
    runs.into_iter().map(|run| run.id).collect()
}

pub fn confined(world: &mut World) {
    let (ours, theirs) = (ours(), SegmentSet::ALL.without(&ours()));
    let mut jobs = sample::new_jobs([job(OURS), job(THEIRS)]);
    for segment in [OURS, THEIRS] {
        let id = job(segment).id;
        let version = jobs.versions.remove(&(id, 1)).expect("a job has a version");
        jobs.versions
            .insert((id, 1), sample::uses(version, &["days"], &[]));
        jobs.schedules
            .get_mut(&id)
            .expect("a job has a schedule")
            .row = sample::schedule(id, Some(5));
    }
    world.commit(jobs);
    // Theirs lie between and before ours, so that a page that counts them is short.
    let all = [
        run(OURS, 3, false),
        run(THEIRS, 1, false),
        run(THEIRS, 2, false),
        run(OURS, 9, true),
        run(THEIRS, 7, true),
        run(THEIRS, 8, true),
    ];
    world.commit(sample::runs(all.map(|run| Insert(Box::new(run)))));
    let read = world.read();
    for (within, segment) in [(&ours, OURS), (&theirs, THEIRS)] {
        let owner = vec![job(segment).id];
        let named = |rows: Result<Vec<_>, _>| -> Vec<JobId> {
            let rows: Vec<JobRecord> = rows.expect("they are read");
            rows.into_iter().map(|record| record.row.id).collect()
        };
        assert_eq!(
            named(read.jobs_due(within, WallMs(i64::MAX), None, 9)),
            owner
        );
        assert_eq!(named(read.jobs_by_id(within, None, 1)), owner);
        let days = sample::calendar("default", "days");
        assert_eq!(named(read.calendar_users(within, &days, None, 1)), owner);
    }
    let active = read.active_runs(&ours, None, 1).expect("they are read");
    assert_eq!(ids(active), [RunId(raw_id(0, OURS, 3))]);
    let parked = read
        .parked_runs(&ours, "k", None, 1)
        .expect("they are read");
    assert_eq!(ids(parked), [RunId(raw_id(0, OURS, 9))]);
    let page = read
        .parked_starts(&ours, T0.plus(99), None, 1)
        .expect("they are read");
    assert_eq!(
        (ids(page.runs), page.next),
        (vec![RunId(raw_id(0, OURS, 9))], None)
    );
    let beyond = read
        .parked_starts(&theirs, T0, None, 9)
        .expect("they are read");
    assert_eq!(beyond.next, Some(T0.plus(7)));
    let counts = |within| {
        let keys = read.parked_keys(within).expect("they are read");
        keys.iter().map(|key| key.runs).collect::<Vec<_>>()
    };
    assert_eq!(counts(&ours), [1]);
    assert_eq!(counts(&theirs), [2]);
    assert_eq!(counts(&SegmentSet::ALL), [3]);
    assert!(counts(&SegmentSet::NONE).is_empty());
    let mut backfills = ChangeSet::default();
    for (counter, segment) in [(1, OURS), (2, THEIRS)] {
        let row = sample::backfill(counter, job(segment).id.0);
        let change = BackfillChange {
            expected: None,
            row,
        };
        backfills.backfills.insert(change.row.id, change);
    }
    world.commit(backfills);
    let filter = BackfillFilter {
        within: Some(ours),
        ..BackfillFilter::default()
    };
    let found = world
        .read()
        .backfills(&filter, None, 9)
        .expect("they are read");
    assert_eq!(
        found.iter().map(|row| row.job).collect::<Vec<_>>(),
        [job(OURS).id]
    );
}
