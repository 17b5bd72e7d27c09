//! Backups: whole or not there, of one moment while commits go on, and back again without handing anything out twice.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{
    Counters, Member, NamespaceName, RunState, SegmentId, SegmentSet, SessionId, WallMs, id_floor,
};
use drumtower_store::conformance::sample;
use drumtower_store::sqlite::backup::{self, Error, Found, MANIFEST, Reason, Request, Stage};
use drumtower_store::sqlite::{self, FILE, Options, Reader, Writer};
use drumtower_store::{Commit, Read, Store};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

/// A store to which runs are added, a few a commit, half of them ended.
struct World {
    directory: TempDir,
    writer: Writer,
    reader: Reader,
    session: SessionId,
    seq: u64,
    counters: Counters,
}

const RUNS: u64 = 10;
const GO: ControlFlow<()> = ControlFlow::Continue(());

impl World {
    fn new() -> Self {
        let directory = tempdir().expect("a directory is made");
        let data = directory.path().join("data");
        let (mut writer, reader) = sqlite::open(&data, Options::default()).expect("it opens");
        let session = writer.begin_session(&Member::alone("server-1"), 3_000);
        let session = session.expect("a session begins");
        let jobs = (0..RUNS).map(|n| sample::job_row(n, "default", &format!("job-{n}")));
        let changes = ChangeSet {
            session,
            seq: 1,
            ..sample::new_jobs(jobs)
        };
        assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
        Self {
            directory,
            writer,
            reader,
            session,
            seq: 1,
            counters: Counters::default(),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn backups(&self) -> PathBuf {
        self.directory.path().join("backups")
    }

    fn commit(&mut self) {
        self.seq += 1;
        let runs = (0..RUNS).map(|n| {
            let run = sample::run(self.seq as i64, n, sample::job_id(n));
            match n % 2 {
                0 => RunChange::Insert(Box::new(run)),
                _ => {
                    RunChange::InsertFinished(Box::new(sample::ended(run, RunState::Completed, 9)))
                }
            }
        });
        let mut changes = ChangeSet {
            session: self.session,
            seq: self.seq,
            ..sample::runs(runs)
        };
        self.counters.created += RUNS;
        self.counters.completed += RUNS / 2;
        let key = (SegmentId(7), NamespaceName::default());
        changes.counters.insert(key, self.counters);
        let done = self.writer.commit(&changes).expect("it commits");
        assert_eq!(done, Commit::Done);
    }

    fn request(&self) -> Request {
        Request {
            data: self.data(),
            directory: self.backups(),
            reason: Reason::Asked,
            logs: true,
        }
    }

    fn back_up(&self) -> Found {
        backup::make(&self.request(), &mut |_| GO).expect("it is made")
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("it is read");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn restore(backup: &Path, data: &Path) -> Result<backup::Restored, Error> {
    backup::restore(backup, data, false, &mut |_| {})
}

fn logs(data: &Path) -> PathBuf {
    let logs = data.join("logs");
    std::fs::create_dir_all(&logs).expect("it is made");
    std::fs::write(logs.join("00000003.log"), b"some output").expect("it is written");
    std::fs::write(logs.join("notes.txt"), b"not ours").expect("it is written");
    logs
}

#[test]
fn a_backup_is_one_moment_of_a_store_that_goes_on() {
    let mut world = World::new();
    (0..20).for_each(|_| world.commit());
    let request = world.request();
    let made = std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let making = scope.spawn(move || {
            let mut steps = 0;
            let made = backup::make(&request, &mut |_| {
                steps += 1;
                let _ = tell.send(());
                GO
            });
            assert!(steps > 0, "progress is told");
            made.expect("it is made")
        });
        told.recv().expect("it has begun");
        while !making.is_finished() {
            world.commit();
        }
        making.join().expect("it ends")
    });
    assert!(world.seq > 21, "commits went on");
    let counts = made.manifest.counts;
    assert_eq!(counts.live_runs, counts.finished_runs, "no half commit");
    assert_eq!(counts.live_runs, (made.manifest.seq - 1) * RUNS / 2);
    assert_eq!(made.manifest.session, world.session.0);
    let verified = backup::verify(&made.path, &mut |_| {}).expect("it is verified");
    assert_eq!(verified, made.manifest);
    let meta = world.reader.meta().expect("it is read");
    assert_eq!(made.manifest.cluster, meta.cluster);
    assert_eq!(made.manifest.schema_version, meta.schema_version);
    assert_eq!(names(&made.path), [FILE, MANIFEST]);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_a_backup() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    logs(&world.data());
    let made = world.back_up();
    let mode = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode(&world.backups()), 0o700);
    assert_eq!(mode(&made.path), 0o700);
    assert_eq!(mode(&made.path.join("logs")), 0o700);
    for file in [FILE, MANIFEST, "logs/00000003.log"] {
        assert_eq!(mode(&made.path.join(file)), 0o600, "{file}");
    }
}

/// Root backs up and restores for the server's user, who must be able to go on.
#[cfg(unix)]
#[test]
fn what_root_makes_belongs_to_the_owner_of_the_place() {
    use std::os::unix::fs::{MetadataExt, chown};
    let world = World::new();
    let place = world.directory.path().join("theirs");
    std::fs::create_dir(&place).expect("it is made");
    if chown(&place, Some(12_345), Some(12_345)).is_err() {
        return eprintln!("skipped: only root can give files away");
    }
    let request = Request {
        directory: place.join("deep/backups"),
        ..world.request()
    };
    let made = backup::make(&request, &mut |_| GO).expect("it is made");
    let target = place.join("data");
    restore(&made.path, &target).expect("it is restored");
    let mut open = vec![place.clone()];
    while let Some(path) = open.pop() {
        let owner = std::fs::symlink_metadata(&path).expect("it is there").uid();
        assert_eq!(owner, 12_345, "{}", path.display());
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("it is read");
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
    }
}

#[test]
fn one_is_made_at_a_time_and_what_a_crash_left_is_cleared() {
    let world = World::new();
    let stale = world.backups().join(".part-drumtower-1");
    std::fs::create_dir_all(&stale).expect("it is made");
    let mut second = None;
    let mut first = true;
    let request = world.request();
    let made = backup::make(&request, &mut |_| {
        if std::mem::take(&mut first) {
            second = Some(backup::make(&request, &mut |_| GO));
        }
        GO
    });
    let made = made.expect("the first is made");
    assert!(matches!(second, Some(Err(Error::Busy(_)))), "{second:?}");
    assert!(!stale.exists());
    assert_eq!(names(&world.backups()), [".lock", &made.name]);
    let again = world.back_up();
    assert_ne!(again.name, made.name);
}

#[test]
fn one_that_is_given_up_leaves_nothing() {
    let world = World::new();
    let stopped = backup::make(&world.request(), &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert_eq!(names(&world.backups()), [".lock"]);
}

#[test]
fn no_store_no_backup() {
    let directory = tempdir().expect("a directory is made");
    let request = Request {
        data: directory.path().join("nothing"),
        directory: directory.path().join("backups"),
        reason: Reason::Asked,
        logs: false,
    };
    let refusal = backup::make(&request, &mut |_| GO).expect_err("there is nothing");
    assert!(matches!(refusal, Error::NoStore(_)), "{refusal}");
    assert!(!request.directory.exists());
}

#[test]
fn a_store_whose_counters_lie_is_not_backed_up() {
    let mut world = World::new();
    world.counters.failed += 1;
    world.commit();
    let refusal = backup::make(&world.request(), &mut |_| GO).expect_err("it is refused");
    assert!(
        matches!(&refusal, Error::Unsound(why) if why.contains("default")),
        "{refusal}"
    );
    assert_eq!(names(&world.backups()), [".lock"], "nothing is left");
}

#[test]
fn any_change_of_a_backup_is_found() {
    let mut world = World::new();
    world.commit();
    logs(&world.data());
    for file in [FILE, "logs/00000003.log"] {
        let made = world.back_up();
        let path = made.path.join(file);
        let mut bytes = std::fs::read(&path).expect("it is read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).expect("it is damaged");
        let refusal = backup::verify(&made.path, &mut |_| {}).expect_err("it is damaged");
        assert!(
            matches!(&refusal, Error::Damaged { why, .. } if why.contains(file)),
            "{refusal}"
        );
        let target = world.directory.path().join("restored");
        let refusal = restore(&made.path, &target).expect_err("it is damaged");
        assert!(matches!(refusal, Error::Damaged { .. }), "{refusal}");
        assert_eq!(names(&target), ["lock"], "nothing is left");
    }
}

#[test]
fn a_manifest_cannot_lead_out_of_its_backup() {
    let world = World::new();
    let made = world.back_up();
    let path = made.path.join(MANIFEST);
    let text = std::fs::read_to_string(&path).expect("it is read");
    for name in ["../drumtower.db", "/etc/passwd", "logs/../../x", ""] {
        let changed = text.replace(&format!("\"{FILE}\""), &format!("\"{name}\""));
        std::fs::write(&path, changed).expect("it is written");
        let refusal = backup::verify(&made.path, &mut |_| {}).expect_err("it is refused");
        assert!(matches!(refusal, Error::NotABackup { .. }), "{refusal}");
    }
}

#[test]
fn a_restored_store_is_as_it_was_and_repeats_no_number() {
    let mut world = World::new();
    (0..5).for_each(|_| world.commit());
    logs(&world.data());
    let made = world.back_up();
    world.commit();
    let target = world.directory.path().join("restored");
    let before = WallMs(jiff_now());
    let restored = restore(&made.path, &target).expect("it is restored");
    assert_eq!(restored.replaced, None);
    assert_eq!(names(&target), [FILE, "lock", "logs"]);
    assert_eq!(
        names(&target.join("logs")),
        ["00000003.log", "00000004.log"]
    );
    let (mut writer, reader) = sqlite::open(&target, Options::default()).expect("it opens");
    let active = reader
        .active_runs(&SegmentSet::ALL, None, 999)
        .expect("they are read");
    assert_eq!(active.len() as u64, made.manifest.counts.live_runs);
    assert_eq!(writer.live_sessions().expect("they are read"), []);
    let session = writer.begin_session(&Member::alone("server-1"), 3_000);
    assert!(session.expect("a session begins").0 > world.session.0 + 1_000);
    let old = world.reader.segments().expect("they are read");
    for (row, old) in reader.segments().expect("they are read").iter().zip(&old) {
        assert!(row.id_mark >= id_floor(before.plus(30_000), row.id));
        assert!(row.epoch.0 > old.epoch.0 + 1_000);
    }
}

fn jiff_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[test]
fn without_output_its_files_keep_their_numbers() {
    let world = World::new();
    logs(&world.data());
    let request = Request {
        logs: false,
        ..world.request()
    };
    let made = backup::make(&request, &mut |_| GO).expect("it is made");
    assert_eq!(names(&made.path), [FILE, MANIFEST]);
    let target = world.directory.path().join("restored");
    restore(&made.path, &target).expect("it is restored");
    assert_eq!(names(&target.join("logs")), ["00000004.log"]);
}

#[test]
fn what_is_there_is_refused_or_moved_aside_and_its_marks_are_kept() {
    let mut world = World::new();
    world.commit();
    let made = world.back_up();
    world.commit();
    let refusal = restore(&made.path, &world.data()).expect_err("it is in use");
    assert!(
        matches!(refusal, Error::Store(drumtower_store::Error::Locked(_))),
        "{refusal}"
    );
    let (data, directory) = (world.data(), world.directory);
    drop((world.writer, world.reader));
    let ahead = id_floor(WallMs(jiff_now()).plus(3_600_000), SegmentId(9));
    let file = Connection::open(data.join(FILE)).expect("it opens");
    let sql = "UPDATE segment SET id_mark = ?1, epoch = 5000000 WHERE id = 9";
    file.execute(sql, [ahead.cast_signed()]).expect("it is set");
    drop(file);
    std::fs::write(data.join("drumtower.toml"), "# mine\n").expect("it is written");
    let refusal = restore(&made.path, &data).expect_err("it is not empty");
    assert!(matches!(refusal, Error::Occupied(_)), "{refusal}");
    let restored = backup::restore(&made.path, &data, true, &mut |_| {}).expect("it is restored");
    let aside = restored.replaced.expect("it was moved aside");
    assert!(names(&aside).contains(&FILE.to_owned()));
    assert!(data.join("drumtower.toml").exists(), "it is the user's");
    let (_, reader) = sqlite::open(&data, Options::default()).expect("it opens");
    let active = reader
        .active_runs(&SegmentSet::ALL, None, 99)
        .expect("they are read");
    assert_eq!(active.len() as u64, RUNS / 2, "it is the older state");
    let nine = &reader.segments().expect("they are read")[9];
    assert!(nine.id_mark >= ahead && nine.epoch.0 > 5_000_000);
    drop(directory);
}

#[test]
fn a_restore_that_was_interrupted_is_told_and_can_be_repeated() {
    let world = World::new();
    let made = world.back_up();
    let target = world.directory.path().join("restored");
    std::fs::create_dir_all(target.join(".restoring")).expect("it is made");
    std::fs::write(target.join("server.url"), "left over").expect("it is written");
    let error = sqlite::open(&target, Options::default()).err();
    let error = error.expect("it is refused").to_string();
    assert!(error.contains("interrupted"), "{error}");
    restore(&made.path, &target).expect("it is restored");
    sqlite::open(&target, Options::default()).expect("it opens");
}

/// What the first half of a restore leaves when its process dies: the mark, and no word that all is ready.
fn interrupted(data: &Path) {
    std::fs::create_dir_all(data.join(".restoring/logs")).expect("it is made");
    std::fs::write(data.join(".restoring").join(FILE), b"half").expect("it is written");
}

#[test]
fn a_repetition_that_fails_leaves_the_mark_of_the_interrupted_restore() {
    let world = World::new();
    let made = world.back_up();
    let target = world.directory.path().join("restored");
    interrupted(&target);
    let database = made.path.join(FILE);
    let sound = std::fs::read(&database).expect("it is read");
    std::fs::write(&database, &sound[..sound.len() / 2]).expect("it is damaged");
    let refusal = restore(&made.path, &target).expect_err("it is damaged");
    assert!(matches!(refusal, Error::Damaged { .. }), "{refusal}");
    assert_eq!(names(&target), [".restoring", "lock"]);
    assert_eq!(names(&target.join(".restoring")), Vec::<String>::new());
    let error = sqlite::open(&target, Options::default()).err();
    let error = error.expect("it is no fresh store").to_string();
    assert!(error.contains("interrupted"), "{error}");
    std::fs::write(&database, sound).expect("it is mended");
    restore(&made.path, &target).expect("it is restored");
    assert_eq!(names(&target), [FILE, "lock", "logs"]);
}

#[test]
fn what_is_no_data_directory_is_left_as_it_is() {
    let world = World::new();
    let made = world.back_up();
    let home = world.directory.path().join("home");
    std::fs::create_dir(&home).expect("it is made");
    std::fs::write(home.join("letters"), "dear").expect("it is written");
    for replace in [false, true] {
        let refused = backup::restore(&made.path, &home, replace, &mut |_| {});
        let refusal = refused.expect_err("it is somebody's home");
        assert!(matches!(refusal, Error::Foreign(_)), "{refusal}");
        assert_eq!(names(&home), ["letters"], "no file of ours either");
    }
}

#[cfg(unix)]
#[test]
fn what_a_link_points_at_is_not_given_away() {
    use std::os::unix::fs::{MetadataExt, chown, symlink};
    let world = World::new();
    let outside = world.directory.path().join("outside");
    std::fs::write(&outside, "").expect("it is written");
    std::fs::create_dir(world.backups()).expect("it is made");
    symlink(&outside, world.backups().join(".lock")).expect("it is linked");
    if chown(world.backups(), Some(12_345), Some(12_345)).is_err() {
        return eprintln!("skipped: only root can give files away");
    }
    world.back_up();
    let owner = std::fs::metadata(&outside).expect("it is there").uid();
    assert_ne!(owner, 12_345);
}

#[test]
fn one_is_given_up_at_any_step_of_its_making() {
    let world = World::new();
    logs(&world.data());
    let mut steps = 0;
    let counted = backup::make(&world.request(), &mut |_| {
        steps += 1;
        GO
    });
    std::fs::remove_dir_all(counted.expect("it is made").path).expect("it goes");
    let mut stages = Vec::new();
    for last in 1..=steps {
        let mut step = 0;
        let stopped = backup::make(&world.request(), &mut |progress| {
            step += 1;
            match step == last {
                true => {
                    stages.push(progress.stage);
                    ControlFlow::Break(())
                }
                false => GO,
            }
        });
        // A check may ask less often than the one that was counted.
        match stopped {
            Err(Error::Stopped) => assert_eq!(names(&world.backups()), [".lock"]),
            Ok(made) if step < last => std::fs::remove_dir_all(made.path).expect("it goes"),
            other => panic!("at step {last} of {steps}: {other:?}"),
        }
    }
    for stage in [Stage::Copying, Stage::Checking, Stage::Logs] {
        assert!(stages.contains(&stage), "{stages:?}");
    }
}

/// A clock that is set back leaves backups from the future behind; those made since must not go before them.
#[test]
fn backups_from_the_future_go_first() {
    let world = World::new();
    let request = Request {
        reason: Reason::Scheduled,
        ..world.request()
    };
    let make = || backup::make(&request, &mut |_| GO).expect("it is made");
    let (future, present) = (make(), make());
    let path = future.path.join(MANIFEST);
    let text = std::fs::read_to_string(&path).expect("it is read");
    let text = text.replace(&future.manifest.created, "2999-01-01T00:00:00.000Z");
    std::fs::write(&path, text).expect("it is written");
    let cluster = &present.manifest.cluster;
    let gone = backup::keep(&world.backups(), cluster, 1).expect("they are kept");
    assert_eq!(gone, [future.name]);
}

#[test]
fn only_scheduled_backups_of_the_same_cluster_go_and_never_the_last() {
    let world = World::new();
    let asked = world.back_up();
    let request = Request {
        reason: Reason::Scheduled,
        ..world.request()
    };
    let mut made: Vec<Found> = (0..4)
        .map(|_| backup::make(&request, &mut |_| GO).expect("it is made"))
        .collect();
    let cluster = asked.manifest.cluster.clone();
    let gone = backup::keep(&world.backups(), "another", 1).expect("it is kept");
    assert_eq!(gone, Vec::<String>::new());
    let gone = backup::keep(&world.backups(), &cluster, 3).expect("they are kept");
    assert_eq!(gone, [made.remove(0).name]);
    backup::keep(&world.backups(), &cluster, 0).expect("they are kept");
    let left: Vec<String> = backup::list(&world.backups())
        .expect("they are listed")
        .into_iter()
        .map(|found| found.name)
        .collect();
    assert_eq!(left.len(), 2);
    assert!(
        left.contains(&asked.name) && left.contains(&made[2].name),
        "{left:?}"
    );
}

/// A file system of its own, gone with the test; `None` where we may not mount.
#[cfg(target_os = "linux")]
struct SmallDisk(PathBuf);

#[cfg(target_os = "linux")]
impl SmallDisk {
    fn mount(path: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&path).expect("it is made");
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"]);
        let mounted = mount.arg(&path).output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(Self(path))
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mut unmount = std::process::Command::new("umount");
        let _ = unmount.arg("-l").arg(&self.0).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_nothing_is_left() {
    let mut world = World::new();
    (0..5).for_each(|_| world.commit());
    let Some(disk) = SmallDisk::mount(world.directory.path().join("small")) else {
        return eprintln!("skipped: this needs the right to mount");
    };
    let request = Request {
        directory: disk.0.join("backups"),
        ..world.request()
    };
    let refusal = backup::make(&request, &mut |_| GO).expect_err("there is no room");
    assert!(matches!(refusal, Error::Full { .. }), "{refusal}");
    assert_eq!(names(&request.directory), [".lock"], "nothing is left");
    let made = world.back_up();
    let target = disk.0.join("data");
    let refusal = restore(&made.path, &target).expect_err("there is no room");
    assert!(matches!(refusal, Error::Full { .. }), "{refusal}");
    assert_eq!(names(&target), ["lock"], "nothing is left");
}
