//! Stores that older servers left behind: backed up, then brought up to date; a process that dies on the way leaves the
//! old schema or the new one, and the way back is always there.
//!
//! The test starts itself again as a program that opens a store, with one failpoint armed.

use drumtower_core::model::SegmentSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use drumtower_store::sqlite::backup::{self, Found, Reason};
use drumtower_store::sqlite::{self, FILE, Options};
use drumtower_store::{Error, Read};
use libtest_mimic::{Arguments, Failed, Trial};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

const CHILD: &str = "DRUMTOWER_TEST_UPGRADE";

const STORES: [(u32, &str); 4] = [
    (1, include_str!("stores/version-1.sql")),
    (2, include_str!("stores/version-2.sql")),
    (3, include_str!("stores/version-3.sql")),
    (4, include_str!("stores/version-4.sql")),
];

fn main() -> ExitCode {
    if let Some(directory) = std::env::var_os(CHILD) {
        let opened = sqlite::open(Path::new(&directory), Options::default());
        return ExitCode::from(u8::from(opened.is_err()));
    }
    let mut trials = Vec::new();
    for (version, sql) in STORES {
        let trial = |name: &str, test: fn(Old) -> Result<(), Failed>| {
            let name = format!("version_{version}_{name}");
            Trial::test(name, move || test(Old::new(version, sql)))
        };
        trials.push(trial("is_backed_up_and_upgraded", is_upgraded));
        trials.push(trial("comes_back_from_the_backup", comes_back));
        trials.push(trial("survives_death_on_the_way", survives_death));
        trials.push(trial("is_left_alone_without_a_backup", is_left_alone));
        trials.push(trial("can_do_without_a_backup", does_without));
    }
    let mut arguments = Arguments::from_args();
    // One after another: a process that one trial forks holds, until it has become its program, the lock on the directory
    // that another trial has just let go.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

struct Old {
    directory: TempDir,
    version: u32,
    sql: &'static str,
}

impl Old {
    fn new(version: u32, sql: &'static str) -> Self {
        let directory = tempdir().expect("a directory is made");
        let old = Self {
            directory,
            version,
            sql,
        };
        old.fill(&old.data());
        old
    }

    fn fill(&self, data: &Path) {
        std::fs::create_dir_all(data).expect("it is made");
        let file = Connection::open(data.join(FILE)).expect("it opens");
        file.execute_batch(self.sql).expect("it is filled");
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn backups(&self) -> Vec<Found> {
        backup::list(&self.data().join(backup::DIRECTORY)).expect("they are listed")
    }
}

fn schema_of(data: &Path) -> u32 {
    let file = Connection::open(data.join(FILE)).expect("it opens");
    let version = file.pragma_query_value(None, "user_version", |row| row.get(0));
    version.expect("it has a version")
}

fn opens(data: &Path) -> (u32, usize, usize) {
    let (_writer, reader) = sqlite::open(data, Options::default()).expect("it opens");
    let jobs = reader
        .jobs_by_id(&SegmentSet::ALL, None, 99)
        .expect("they are read");
    let runs = reader
        .active_runs(&SegmentSet::ALL, None, 99)
        .expect("they are read");
    let meta = reader.meta().expect("it is read");
    (meta.schema_version, jobs.len(), runs.len())
}

fn is_upgraded(old: Old) -> Result<(), Failed> {
    let first = opens(&old.data());
    assert!(
        first.0 > old.version && first.1 > 0 && first.2 > 0,
        "{first:?}"
    );
    assert_eq!(opens(&old.data()), first);
    let backups = old.backups();
    assert_eq!(backups.len(), 1, "one, and only of the old state");
    let made = &backups[0];
    let name = format!("before-upgrade-v{}-", old.version);
    assert!(made.name.starts_with(&name), "{}", made.name);
    assert_eq!(made.manifest.schema_version, old.version);
    assert_eq!(made.manifest.reason, Reason::Upgrade);
    assert_eq!(made.manifest.counts.jobs, first.1 as u64);
    backup::verify(&made.path, &mut |_| {})?;
    Ok(())
}

fn comes_back(old: Old) -> Result<(), Failed> {
    let upgraded = opens(&old.data());
    let made = old.backups().remove(0);
    backup::restore(&made.path, &old.data(), true, &mut |_| {})?;
    assert_eq!(schema_of(&old.data()), old.version, "it is the old store");
    assert_eq!(opens(&old.data()), upgraded, "and can be upgraded again");
    Ok(())
}

fn survives_death(old: Old) -> Result<(), Failed> {
    let expected = opens(&old.data());
    let (mut deaths, mut upgraded) = (0, 0);
    let places = [("in_backup", 2), ("in_migration", 80)];
    for (place, passages) in places {
        for passage in 1..=passages {
            let data = old.directory.path().join(format!("{place}-{passage}"));
            old.fill(&data);
            let mut child = Command::new(std::env::current_exe()?);
            child
                .env(CHILD, &data)
                .env("DRUMTOWER_FAILPOINT", format!("{place}:{passage}"));
            let status = child.status()?;
            if status.code().is_some() {
                assert!(status.success(), "{place}:{passage}");
                break;
            }
            deaths += 1;
            upgraded += usize::from(schema_of(&data) == expected.0);
            assert_eq!(opens(&data), expected, "{place}:{passage}");
            let made = backup::list(&data.join(backup::DIRECTORY))?;
            assert!(!made.is_empty(), "{place}:{passage}");
            for backup in made {
                backup::verify(&backup.path, &mut |_| {})?;
            }
        }
    }
    assert!(
        deaths > 4 && upgraded == 1,
        "{deaths} deaths, {upgraded} after the end"
    );
    Ok(())
}

fn is_left_alone(old: Old) -> Result<(), Failed> {
    std::fs::write(old.data().join(backup::DIRECTORY), "in the way")?;
    let refusal = sqlite::open(&old.data(), Options::default()).err();
    let version = old.version;
    assert!(
        matches!(refusal, Some(Error::NotUpgraded { found, .. }) if found == version),
        "{refusal:?}"
    );
    assert_eq!(schema_of(&old.data()), old.version);
    Ok(())
}

fn does_without(old: Old) -> Result<(), Failed> {
    let options = Options {
        backup_before_upgrade: false,
        ..Options::default()
    };
    drop(sqlite::open(&old.data(), options)?);
    assert!(schema_of(&old.data()) > old.version);
    assert!(!old.data().join(backup::DIRECTORY).exists());
    Ok(())
}
