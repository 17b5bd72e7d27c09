//! Opening: one process at a time, what is not ours is refused, and a store comes back as it was left.

use std::path::Path;

use drumtower_core::change::{ChangeSet, RunChange, ScheduleChange};
use drumtower_core::model::{
    JobRecord, Member, RunState, ScheduleRow, SegmentSet, UnfiredReason, WallMs,
};
use drumtower_store::conformance::sample;
use drumtower_store::sqlite::{self, FILE, Options};
use drumtower_store::{Commit, Error, Read, RunFilter, Store};
use rusqlite::Connection;
use tempfile::tempdir;

fn refusal(directory: &Path) -> Error {
    match sqlite::open(directory, Options::default()) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

#[test]
fn a_directory_has_one_owner() {
    let directory = tempdir().expect("a directory is made");
    let owner = sqlite::open(directory.path(), Options::default()).expect("it opens");
    let refusal = refusal(directory.path());
    assert!(
        matches!(&refusal, Error::Locked(path) if path.contains(directory.path().to_str().expect("it is text")))
    );
    drop(owner);
    sqlite::open(directory.path(), Options::default()).expect("it opens once its owner is gone");
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let directory = tempdir().expect("a directory is made");
    drop(sqlite::open(directory.path(), Options::default()).expect("it opens"));
    let file = Connection::open(directory.path().join(FILE)).expect("it opens");
    file.pragma_update(None, "user_version", 99)
        .expect("it is set");
    drop(file);
    assert!(matches!(
        refusal(directory.path()),
        Error::Newer { found: 99, .. }
    ));
}

#[test]
fn a_store_that_only_newer_servers_may_write_is_refused() {
    let directory = tempdir().expect("a directory is made");
    drop(sqlite::open(directory.path(), Options::default()).expect("it opens"));
    let file = Connection::open(directory.path().join(FILE)).expect("it opens");
    file.execute("UPDATE meta SET oldest_server = 99", [])
        .expect("it is set");
    drop(file);
    assert!(matches!(
        refusal(directory.path()),
        Error::Newer { found: 99, .. }
    ));
}

#[test]
fn another_count_of_segments_is_refused() {
    let directory = tempdir().expect("a directory is made");
    drop(sqlite::open(directory.path(), Options::default()).expect("it opens"));
    let file = Connection::open(directory.path().join(FILE)).expect("it opens");
    file.execute("UPDATE meta SET segment_count = 512", [])
        .expect("it is set");
    drop(file);
    assert!(
        matches!(refusal(directory.path()), Error::Corrupt(text) if text.contains("512 segments"))
    );
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = tempdir().expect("a directory is made");
    std::fs::write(
        directory.path().join(FILE),
        "not a database at all\n".repeat(400),
    )
    .expect("it is written");
    assert!(
        matches!(refusal(directory.path()), Error::Corrupt(text) if text.contains("not a Drumtower store"))
    );
}

#[test]
fn a_foreign_database_is_refused_and_left_alone() {
    let directory = tempdir().expect("a directory is made");
    let path = directory.path().join(FILE);
    let foreign = Connection::open(&path).expect("it opens");
    foreign
        .execute("CREATE TABLE theirs(x)", [])
        .expect("it is made");
    drop(foreign);
    assert!(
        matches!(refusal(directory.path()), Error::Corrupt(text) if text.contains("not a Drumtower store"))
    );
    let tables: i64 = Connection::open(&path)
        .and_then(|file| file.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)))
        .expect("it is read");
    assert_eq!(tables, 1);
}

#[test]
fn a_damaged_row_is_told_apart() {
    let directory = tempdir().expect("a directory is made");
    let (mut writer, _) = sqlite::open(directory.path(), Options::default()).expect("it opens");
    let session = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    let run = sample::run(0, 1, sample::job_id(1));
    let changes = ChangeSet {
        session,
        seq: 1,
        ..sample::runs([RunChange::Insert(Box::new(run.clone()))])
    };
    writer.commit(&changes).expect("it commits");
    writer.close().expect("it closes");
    drop(writer);
    let file = Connection::open(directory.path().join(FILE)).expect("it opens");
    file.execute("UPDATE run SET body = x'0001ff'", [])
        .expect("it is damaged");
    drop(file);
    let (_writer, reader) = sqlite::open(directory.path(), Options::default()).expect("it opens");
    assert!(matches!(reader.run(run.id), Err(Error::Corrupt(_))));
    assert!(matches!(
        reader.active_runs(&SegmentSet::ALL, None, 9),
        Err(Error::Corrupt(_))
    ));
    assert!(reader.meta().is_ok(), "the reader goes on");
}

#[test]
fn the_same_store_comes_back() {
    let directory = tempdir().expect("a directory is made");
    let (mut writer, reader) =
        sqlite::open(directory.path(), Options::default()).expect("it opens");
    let meta = reader.meta().expect("it is read");
    let first = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    let done = sample::ended(sample::run(0, 1, sample::job_id(1)), RunState::Failed, 9);
    let changes = ChangeSet {
        session: first,
        seq: 1,
        ..sample::finished([done.clone()])
    };
    assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
    writer.close().expect("it closes");
    drop((writer, reader));
    assert_eq!(
        std::fs::metadata(directory.path().join("drumtower.db-wal")).map_or(0, |file| file.len()),
        0
    );
    let (mut writer, reader) =
        sqlite::open(directory.path(), Options::default()).expect("it opens");
    assert_eq!(reader.meta().expect("it is read"), meta);
    assert_eq!(reader.run(done.id).expect("it is read"), Some(done));
    let second = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    assert!(second > first);
    assert_eq!(
        writer.commit(&changes).expect("it is answered"),
        Commit::Fenced
    );
}

/// The store was written by a server of version 1: four jobs, one of them edited and paused and one deleted, a run under
/// way, five that ended, and due times that an unended run kept from firing.
#[test]
fn a_store_of_version_1_is_taken_over() {
    let directory = tempdir().expect("a directory is made");
    let file = Connection::open(directory.path().join(FILE)).expect("it opens");
    file.execute_batch(include_str!("stores/version-1.sql"))
        .expect("it is filled");
    drop(file);
    for _ in 0..2 {
        let (mut writer, reader) =
            sqlite::open(directory.path(), Options::default()).expect("it opens");
        let meta = reader.meta().expect("it is read");
        assert_eq!((meta.schema_version, meta.oldest_server), (7, 6));
        assert_eq!(
            (meta.cluster.as_str(), meta.tz_version.as_str()),
            ("88bdb6fefd0fdfca", "2026e")
        );
        old_jobs(&reader);
        old_runs(&reader);
        assert_eq!(reader.calendars().expect("they are read"), []);
        assert_eq!(reader.sweeps().expect("they are read"), []);
        assert_eq!(writer.live_sessions().expect("they are read").len(), 1);
    }
    old_schedule_moves(directory.path());
}

fn old_job(reader: &impl Read, namespace: &str, name: &str) -> JobRecord {
    let (namespace, name) = (sample::namespace(namespace), sample::job_name(name));
    let job = reader.job_named(&namespace, &name).expect("it is read");
    job.expect("it is there")
}

fn old_jobs(reader: &impl Read) {
    let nightly = old_job(reader, "team-a", "nightly");
    assert_eq!((nightly.row.version, nightly.row.revision), (2, 3));
    assert!(nightly.row.paused.is_some() && nightly.schedule.next_due.is_none());
    assert_eq!(
        nightly.version.spec.description,
        "closes the books at night"
    );
    assert_eq!(nightly.version.spec.schedule.len(), 2);
    assert_eq!(nightly.version.spec.weight, 3);
    let first = reader
        .job_version(nightly.row.id, 1)
        .expect("it is read")
        .expect("it is there");
    assert_eq!(first.spec.description, "closes the books");
    let slow = old_job(reader, "default", "slow");
    assert_eq!((slow.schedule.fires, slow.live_scheduled), (1, 1));
    let unfired = slow.last_unfired.expect("it is there");
    assert_eq!((unfired.count, unfired.reason), (4, UnfiredReason::Overlap));
    let due = reader
        .jobs_due(&SegmentSet::ALL, WallMs(i64::MAX), None, 9)
        .expect("they are read");
    let names: Vec<_> = due.iter().map(|job| job.row.name.as_str()).collect();
    assert_eq!(names, ["hello", "slow"]);
    assert!(due.iter().all(|job| job.schedule.paused_through.is_none()));
    let all = reader
        .jobs_by_id(&SegmentSet::ALL, None, 9)
        .expect("they are read");
    assert_eq!(all.len(), 3, "one is deleted");
}

fn old_runs(reader: &impl Read) {
    let active = reader
        .active_runs(&SegmentSet::ALL, None, 9)
        .expect("they are read");
    assert_eq!(active.len(), 1);
    assert_eq!(active[0].state, RunState::Running);
    let hello = old_job(reader, "default", "hello").row.id;
    let filter = RunFilter {
        job: Some(hello),
        ..RunFilter::default()
    };
    let page = reader.runs(&filter, None, 9).expect("they are read");
    assert_eq!(page.runs.len(), 5);
    assert!(page.runs.iter().all(|run| run.state == RunState::Completed));
}

fn old_schedule_moves(directory: &Path) {
    let (mut writer, reader) = sqlite::open(directory, Options::default()).expect("it opens");
    let session = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    let old = old_job(&reader, "team-a", "nightly").schedule;
    let row = ScheduleRow {
        paused_through: Some(old.fired_through.plus(9)),
        ..old.clone()
    };
    let expected = Some(old.fired_through);
    let changes = ChangeSet {
        session,
        seq: 1,
        schedules: [(
            row.job,
            ScheduleChange {
                expected,
                row: row.clone(),
            },
        )]
        .into(),
        ..ChangeSet::default()
    };
    assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
    assert_eq!(old_job(&reader, "team-a", "nightly").schedule, row);
}

#[test]
fn a_full_disk_is_told_and_passes() {
    let directory = tempdir().expect("a directory is made");
    let (mut writer, reader) =
        sqlite::open(directory.path(), Options::default()).expect("it opens");
    let session = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    let pages = writer.limit_pages(Some(0)).expect("it is limited");
    let long = "x".repeat(60_000);
    let run = |n| drumtower_core::model::Run {
        params: Some(drumtower_core::model::JsonText::from_value(
            &serde_json::json!(long),
        )),
        ..sample::run(0, n, sample::job_id(1))
    };
    let changes = ChangeSet {
        session,
        seq: 1,
        ..sample::runs(
            (0..200)
                .map(run)
                .map(|run| RunChange::Insert(Box::new(run))),
        )
    };
    assert!(
        matches!(writer.commit(&changes), Err(Error::Full(_))),
        "{pages} pages are enough"
    );
    assert_eq!(
        reader
            .active_runs(&SegmentSet::ALL, None, 9)
            .expect("they are read"),
        []
    );
    writer.limit_pages(None).expect("it is freed");
    assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
    assert_eq!(
        reader
            .active_runs(&SegmentSet::ALL, None, 999)
            .expect("they are read")
            .len(),
        200
    );
}
