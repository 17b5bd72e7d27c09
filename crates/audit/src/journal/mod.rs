//! The journal: what a process saw, written before it answers.
//!
//! One directory holds one file for each process that writes, `ROLE.PID.N.jsonl`, and each line of a file is one
//! [`Record`] in JSON. Lines are only appended. A process may be killed at any moment, so:
//! - [`Journal::write`] hands its lines to the kernel before it returns, and the kernel outlives the process. It does
//!   not wait for the disk: journals are about processes that die, not about machines that do.
//! - no two processes share a file, so only the last line of a file can be torn, and readers leave that one out.

mod read;
mod record;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use drumtower_core::model::WallMs;

use crate::Error;

pub use read::{Reader, files};
pub use record::{Outcome, Record};

const EXTENSION: &str = "jsonl";

/// This process's own journal file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl Journal {
    /// Makes the directory if need be, and in it a file of its own for this process. The role says who writes.
    pub fn create(dir: &Path, role: &str) -> Result<Self, Error> {
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        if role.is_empty() || role.len() > 128 || !role.chars().all(allowed) {
            return Err(Error::Role(role.to_owned()));
        }
        std::fs::create_dir_all(dir).map_err(|source| Error::Journal {
            path: dir.to_owned(),
            source,
        })?;
        // Process ids come back, and one process may write as several roles: count until the name is free.
        for number in 0_u64.. {
            let path = dir.join(format!(
                "{role}.{}.{number}.{EXTENSION}",
                std::process::id()
            ));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => {
                    return Ok(Self {
                        path,
                        file,
                        buffer: Vec::new(),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Journal { path, source }),
            }
        }
        Err(Error::Role(role.to_owned()))
    }

    /// Writes one record, and whatever was pushed before it. When this returns, the death of the process loses nothing.
    pub fn write(&mut self, record: &Record) -> Result<(), Error> {
        self.push(record);
        self.flush()
    }

    /// Adds a record to the next [`Journal::flush`]: several records for the price of one call.
    pub fn push(&mut self, record: &Record) {
        record.encode(&mut self.buffer);
        self.buffer.push(b'\n');
    }

    /// Hands everything pushed to the kernel.
    pub fn flush(&mut self) -> Result<(), Error> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|source| Error::Journal {
            path: self.path.clone(),
            source,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The wall clock, as records carry it.
pub fn wall_now() -> WallMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    WallMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumtower_core::model::RunId;

    fn answered(raw: u64) -> Record {
        Record::Answered {
            key: format!("k{raw}"),
            run: RunId(raw),
        }
    }

    fn read_all(dir: &Path) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        for path in files(dir)? {
            for record in Reader::open(&path)? {
                records.push(record?);
            }
        }
        Ok(records)
    }

    #[test]
    fn records_come_back_and_each_journal_has_its_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let all = [
            Record::Sent {
                key: "a\"\n\t".into(),
                job: "default/hello".into(),
                wall_ms: WallMs(5),
            },
            answered(7),
            Record::Refused {
                key: "b".into(),
                code: "overloaded".into(),
            },
            Record::Unknown { key: "c".into() },
            Record::Started {
                run: RunId(9),
                attempt: 1,
                fence: 3,
                nominal_ms: Some(WallMs(1000)),
                due_ms: None,
                wall_ms: WallMs(1001),
                pid: 4,
            },
            Record::Ended {
                run: RunId(9),
                attempt: 1,
                wall_ms: WallMs(1002),
                outcome: Outcome::Succeeded,
            },
            Record::Killed {
                what: "server".into(),
                point: "before-commit".into(),
                wall_ms: WallMs(8),
            },
            Record::Restarted {
                what: "server".into(),
                wall_ms: WallMs(9),
            },
        ];
        let mut first = Journal::create(dir.path(), "load").expect("a journal");
        let mut second = Journal::create(dir.path(), "load").expect("a second one");
        assert_ne!(first.path(), second.path());
        for record in &all {
            first.write(record).expect("written");
        }
        second.push(&answered(1));
        second.push(&answered(2));
        assert_eq!(read_all(dir.path()).expect("read").len(), all.len());
        second.flush().expect("flushed");
        let mut records = read_all(dir.path()).expect("read");
        assert_eq!(records.split_off(all.len()), [answered(1), answered(2)]);
        assert_eq!(records, all);
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_any_other_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::create(dir.path(), "load").expect("a journal");
        journal.write(&answered(1)).expect("written");
        let whole = std::fs::read(journal.path()).expect("read");
        for cut in 0..whole.len() {
            let torn = [&whole[..], &whole[..cut]].concat();
            std::fs::write(journal.path(), torn).expect("written");
            assert_eq!(
                read_all(dir.path()).expect("read"),
                [answered(1)],
                "cut at {cut}"
            );
        }
        let broken = [&whole[..4], b"\n", &whole[..]].concat();
        std::fs::write(journal.path(), broken).expect("written");
        let error = read_all(dir.path())
            .expect_err("a broken line in the middle")
            .to_string();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn a_role_that_could_leave_the_directory_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        for role in ["", "../x", "a/b", "A"] {
            assert!(
                matches!(Journal::create(dir.path(), role), Err(Error::Role(_))),
                "{role}"
            );
        }
    }
}
