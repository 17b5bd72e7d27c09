//! A process that dies at any point leaves a store that opens and holds everything it acknowledged, whole.
//!
//! The test starts itself again as a program that commits and says so, with one failpoint armed.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

use drumtower_core::change::{ChangeSet, Prune, RunChange};
use drumtower_core::model::{Member, Run, RunState, SegmentId, WallMs, id_floor};
use drumtower_store::conformance::all_runs;
use drumtower_store::conformance::sample::{self, T0};
use drumtower_store::sqlite::{self, FILE, Options, backup};
use drumtower_store::{Commit, Read, RunFilter, Store};
use libtest_mimic::{Arguments, Failed, Trial};

const CHILD: &str = "DRUMTOWER_TEST_COMMIT_INTO";
const RESTORE: &str = "DRUMTOWER_TEST_RESTORE_IN";
const COMMITS: u64 = 60;
const BATCH: u64 = 20;

fn main() -> ExitCode {
    if let Some(directory) = std::env::var_os(CHILD) {
        commit_and_say(Path::new(&directory));
        return ExitCode::SUCCESS;
    }
    if let Some(directory) = std::env::var_os(RESTORE) {
        let site = Path::new(&directory);
        restore(site).expect("it is restored");
        return ExitCode::SUCCESS;
    }
    let points: [(&'static str, &'static [u32]); 5] = [
        ("at_start", &[1, 2]),
        ("in_migration", &[1, 7, 20, 33, 35, 36]),
        ("before_commit", &[1, 2, 17, 40]),
        ("after_commit", &[1, 2, 17, 40]),
        ("in_checkpoint", &[1, 2, 3, 5]),
    ];
    let trials = points
        .into_iter()
        .map(|(point, passages)| Trial::test(point, move || die_at(point, passages)))
        .chain([Trial::test("in_restore", die_in_restore)]);
    let mut arguments = Arguments::from_args();
    // One after another: a process that one trial forks holds, until it has become its program, the lock on the directory
    // that another trial has just let go.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn options() -> Options {
    Options {
        blobs_a_commit: 2,
        bucket_rows: 64,
        rollup_rows: 100,
        checkpoint_pages: 40,
        ..Options::default()
    }
}

/// The runs of commit `seq`: made in it, finished in the next.
fn batch(seq: u64) -> Vec<Run> {
    (0..BATCH)
        .map(|n| sample::run(seq as i64 * 1_500, n, sample::job_id(n % 5)))
        .collect()
}

/// Goes on from where the store stands, in a new session.
fn commit_and_say(directory: &Path) {
    let (mut writer, reader) = sqlite::open(directory, options()).expect("the store opens");
    let session = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    let first = next_batch(&reader);
    for (seq, number) in (1..).zip(first..first + COMMITS) {
        let inserts = batch(number)
            .into_iter()
            .map(|run| RunChange::Insert(Box::new(sample::running(run))));
        let ends = if number > 1 {
            batch(number - 1)
        } else {
            Vec::new()
        };
        let ends = ends
            .into_iter()
            .map(|run| RunChange::Finish(Box::new(sample::ended(run, RunState::Completed, 9))));
        let mut changes = ChangeSet {
            session,
            seq,
            extend_ms: 3_000,
            ..sample::runs(inserts.chain(ends))
        };
        changes.prune = Some(Prune { now: T0, limit: 10 });
        assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
        let mut out = std::io::stdout().lock();
        writeln!(out, "{number}")
            .and_then(|()| out.flush())
            .expect("it is said");
    }
}

/// The number after the newest batch that is stored.
fn next_batch(reader: &impl Read) -> u64 {
    let newest = reader
        .runs(&RunFilter::default(), None, 1)
        .expect("they are read")
        .runs;
    newest
        .first()
        .map_or(1, |run| run.created.since(T0) as u64 / 1_500 + 1)
}

fn die_at(point: &str, passages: &[u32]) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (mut acknowledged, mut deaths) = (0, 0);
    for passage in passages {
        // Migrations run only in a new store.
        let data = if point == "in_migration" {
            format!("data-{passage}")
        } else {
            "data".to_owned()
        };
        let data = directory.path().join(data);
        let mut child = Command::new(std::env::current_exe()?);
        child
            .env(CHILD, &data)
            .env("DRUMTOWER_FAILPOINT", format!("{point}:{passage}"));
        let output = child.output()?;
        deaths += usize::from(output.status.code().is_none());
        let said = String::from_utf8(output.stdout)?;
        acknowledged = said.lines().last().map_or(Ok(acknowledged), str::parse)?;
        inspect(&data, acknowledged).map_err(|why| format!("{point}:{passage}: {why}"))?;
    }
    if deaths == passages.len() {
        Ok(())
    } else {
        Err(format!("{deaths} deaths of {}", passages.len()).into())
    }
}

/// Everything acknowledged is there, at most one batch more, every batch whole, and all that is derived agrees.
fn inspect(data: &Path, acknowledged: u64) -> Result<(), String> {
    let (_writer, reader) = sqlite::open(data, options()).map_err(|error| error.to_string())?;
    let stored = next_batch(&reader) - 1;
    if stored != acknowledged && stored != acknowledged + 1 {
        return Err(format!(
            "{stored} batches are stored, {acknowledged} were acknowledged"
        ));
    }
    let everything = RunFilter::default();
    let ids = |filter: &RunFilter| {
        all_runs(&reader, filter, 100)
            .into_iter()
            .map(|run| run.id)
            .collect::<Vec<_>>()
    };
    let found = ids(&everything);
    let of_job = |job| RunFilter {
        job: Some(sample::job_id(job)),
        ..RunFilter::default()
    };
    let by_job: BTreeSet<_> = (0..5).flat_map(|job| ids(&of_job(job))).collect();
    let wanted: BTreeSet<_> = (1..=stored).flat_map(batch).map(|run| run.id).collect();
    let finished = stored.saturating_sub(1) * BATCH;
    let minutes = (T0.0 / 60_000, T0.0 / 60_000 + 10_000);
    let rollups = reader
        .rollups(None, minutes.0, minutes.1)
        .map_err(|error| error.to_string())?;
    let counted: u64 = rollups.iter().map(|row| row.completed).sum();
    let agree =
        found.iter().copied().collect::<BTreeSet<_>>() == wanted && found.len() == wanted.len();
    if agree && by_job == wanted && counted == finished {
        return Ok(());
    }
    let (all, jobs, wanted) = (found.len(), by_job.len(), wanted.len());
    Err(format!(
        "{all} runs, {jobs} by job, {counted} counted; expected {wanted} of which {finished} finished"
    ))
}

fn restore(site: &Path) -> Result<backup::Restored, backup::Error> {
    let data = site.join("data");
    backup::restore(&site.join("backup"), &data, true, &mut |_| {})
}

/// Dies at every passage, and once more in the repetition. What comes out is the backup, with the marks of the store that
/// was replaced, which lies whole in one directory. From the moves on the backup itself is not needed any more.
fn die_in_restore() -> Result<(), Failed> {
    let mut passage = 0;
    loop {
        passage += 1;
        let site = tempfile::tempdir()?;
        let ahead = occupied_site(site.path())?;
        if !dies_restoring(site.path(), passage)? {
            break;
        }
        let data = site.path().join("data");
        let stage = data.join(".restoring");
        if stage.exists() {
            if sqlite::open(&data, Options::default()).is_ok() {
                return Err(format!("a half restore was opened, passage {passage}").into());
            }
            if stage.join("ready").exists() {
                std::fs::remove_dir_all(site.path().join("backup"))?;
            }
            dies_restoring(site.path(), 1)?;
            if stage.exists() {
                restore(site.path())?;
            }
        }
        restored(&data, ahead).map_err(|error| format!("passage {passage}: {error:?}"))?;
    }
    match passage {
        0..7 => Err(format!("there were only {passage} passages").into()),
        _ => Ok(()),
    }
}

fn dies_restoring(site: &Path, passage: u32) -> Result<bool, Failed> {
    let status = Command::new(std::env::current_exe()?)
        .env(RESTORE, site)
        .env("DRUMTOWER_FAILPOINT", format!("in_restore:{passage}"))
        .status()?;
    Ok(!status.success())
}

/// A backup, and a data directory with a store whose clock was ahead, its log not yet emptied.
fn occupied_site(site: &Path) -> Result<u64, Failed> {
    let data = site.join("data");
    drop(sqlite::open(&data, Options::default())?);
    let request = backup::Request {
        data: data.clone(),
        directory: site.join("backups"),
        reason: backup::Reason::Asked,
        logs: false,
    };
    let made = backup::make(&request, &mut |_| std::ops::ControlFlow::Continue(()))?;
    std::fs::rename(made.path, site.join("backup"))?;
    std::fs::create_dir_all(data.join("logs"))?;
    std::fs::write(data.join("logs/00000001.log"), "old")?;
    let live = rusqlite::Connection::open(data.join(FILE))?;
    let tomorrow = jiff::Timestamp::now().as_millisecond() + 86_400_000;
    let ahead = id_floor(WallMs(tomorrow), SegmentId(9));
    let sql = "UPDATE segment SET id_mark = ?1 WHERE id = 9";
    live.execute(sql, [ahead.cast_signed()])?;
    let wal = format!("{FILE}-wal");
    let kept = std::fs::read(data.join(&wal))?;
    let database = std::fs::read(data.join(FILE))?;
    drop(live);
    std::fs::write(data.join(FILE), database)?;
    std::fs::write(data.join(wal), kept)?;
    Ok(ahead)
}

fn restored(data: &Path, ahead: u64) -> Result<(), Failed> {
    let mut asides = Vec::new();
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("replaced-") {
            asides.push(entry.path());
        }
    }
    let [aside] = &asides[..] else {
        return Err(format!("what was there lies in {asides:?}").into());
    };
    for name in [FILE, "drumtower.db-wal", "logs/00000001.log"] {
        if !aside.join(name).exists() {
            return Err(format!("{name} is not in {}", aside.display()).into());
        }
    }
    if data.join("logs/00000001.log").metadata()?.len() > 0 {
        return Err("old output is in the place of new".into());
    }
    let (_, reader) = sqlite::open(data, Options::default())?;
    let mark = reader.segments()?[9].id_mark;
    if mark < ahead {
        return Err(format!("the mark of the old store was lost: {mark}").into());
    }
    Ok(())
}
