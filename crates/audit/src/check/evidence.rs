//! Journals, read into arrays of numbers.
//!
//! A test of fifteen million runs must fit: a start takes 32 bytes, an end 24, an answer 16. Keys are kept as 64-bit
//! hashes; the chance that any two of fifteen million agree by accident is below one in a hundred thousand.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use drumtower_core::model::{RunId, WallMs};
use xxhash_rust::xxh3::xxh3_64;

use super::report::{Class, Report};
use crate::Error;
use crate::journal::{Outcome, Reader, Record};

#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub run: RunId,
    pub wall: WallMs,
    pub fence: u64,
    pub attempt: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub run: RunId,
    pub wall: WallMs,
    pub attempt: u32,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Answer {
    pub key: u64,
    pub run: RunId,
}

/// Everything the journals say, sorted by run.
#[derive(Default)]
pub(super) struct Evidence {
    pub starts: Vec<Start>,
    pub ends: Vec<End>,
    pub answers: Vec<Answer>,
    /// Keys whose every request was refused.
    pub refused: BTreeSet<u64>,
    /// The newest time in any journal.
    pub latest: Option<WallMs>,
}

pub(super) fn key_hash(key: &str) -> u64 {
    xxh3_64(key.as_bytes())
}

/// Reads all files; what contradicts itself within them goes to the report.
pub(super) fn load(
    files: &[PathBuf],
    clock_bound_ms: i64,
    report: &mut Report,
) -> Result<Evidence, Error> {
    let mut books = Books::new(clock_bound_ms);
    for path in files {
        books.read(path.display().to_string(), Reader::open(path)?, report)?;
    }
    Ok(books.close(report))
}

/// The same from journals that never were files.
pub(super) fn take(
    journals: &[Vec<Record>],
    clock_bound_ms: i64,
    report: &mut Report,
) -> Result<Evidence, Error> {
    let mut books = Books::new(clock_bound_ms);
    for (index, journal) in journals.iter().enumerate() {
        let records = journal.iter().cloned().map(Ok);
        books.read(format!("journal {}", index + 1), records, report)?;
    }
    Ok(books.close(report))
}

/// All journals while they are read.
struct Books {
    evidence: Evidence,
    open: BTreeSet<u64>,
    clock_bound_ms: i64,
}

impl Books {
    fn new(clock_bound_ms: i64) -> Self {
        Self {
            evidence: Evidence::default(),
            open: BTreeSet::new(),
            clock_bound_ms,
        }
    }

    fn read(
        &mut self,
        name: String,
        records: impl Iterator<Item = Result<Record, Error>>,
        report: &mut Report,
    ) -> Result<(), Error> {
        report.counts.journal_files += 1;
        let mut file = File {
            name,
            waiting: HashSet::new(),
            open: &mut self.open,
            clock_bound_ms: self.clock_bound_ms,
        };
        for record in records {
            file.take(record?, &mut self.evidence, report);
        }
        report.counts.unknown += file.waiting.len() as u64;
        let waiting = std::mem::take(&mut file.waiting);
        self.open.extend(waiting);
        Ok(())
    }

    fn close(self, report: &mut Report) -> Evidence {
        let (mut evidence, open) = (self.evidence, self.open);
        evidence
            .starts
            .sort_unstable_by_key(|start| (start.run, start.attempt, start.wall));
        evidence
            .ends
            .sort_unstable_by_key(|end| (end.run, end.attempt, end.wall));
        if !evidence.refused.is_empty() {
            for answer in &evidence.answers {
                evidence.refused.remove(&answer.key);
            }
            evidence.refused.retain(|key| !open.contains(key));
        }
        one_run_a_key(&mut evidence.answers, report);
        evidence
            .answers
            .sort_unstable_by_key(|answer| (answer.run, answer.key));
        evidence
    }
}

/// One file while it is read.
struct File<'a> {
    name: String,
    /// Keys sent and not yet answered.
    waiting: HashSet<u64>,
    /// Keys of all files that may have made a run though nobody said so.
    open: &'a mut BTreeSet<u64>,
    clock_bound_ms: i64,
}

impl File<'_> {
    fn take(&mut self, record: Record, evidence: &mut Evidence, report: &mut Report) {
        match record {
            Record::Sent { key, wall_ms, .. } => {
                report.counts.sent += 1;
                evidence.saw(wall_ms);
                self.waiting.insert(key_hash(&key));
            }
            Record::Answered { key, run } => {
                report.counts.answered += 1;
                self.settle(&key, report);
                evidence.answers.push(Answer {
                    key: key_hash(&key),
                    run,
                });
            }
            Record::Refused { key, .. } => {
                report.counts.refused += 1;
                self.settle(&key, report);
                evidence.refused.insert(key_hash(&key));
            }
            Record::Unknown { key } => {
                report.counts.unknown += 1;
                self.settle(&key, report);
                self.open.insert(key_hash(&key));
            }
            Record::Started {
                run,
                attempt,
                fence,
                due_ms,
                wall_ms,
                ..
            } => {
                report.counts.started += 1;
                evidence.saw(wall_ms);
                if let Some(due) =
                    due_ms.filter(|due| attempt == 1 && wall_ms.plus(self.clock_bound_ms) < *due)
                {
                    report.add(Class::Early, "V3", run, || {
                        format!(
                            "its task started at {} and was told it is due at {}",
                            wall_ms.0, due.0
                        )
                    });
                }
                evidence.starts.push(Start {
                    run,
                    wall: wall_ms,
                    fence,
                    attempt,
                });
            }
            Record::Ended {
                run,
                attempt,
                wall_ms,
                outcome,
            } => {
                report.counts.ended += 1;
                evidence.saw(wall_ms);
                evidence.ends.push(End {
                    run,
                    wall: wall_ms,
                    attempt,
                    outcome,
                });
            }
            Record::Killed {
                what,
                point,
                wall_ms,
            } => {
                evidence.saw(wall_ms);
                *report
                    .counts
                    .kills
                    .entry(format!("{what} at {point}"))
                    .or_default() += 1;
            }
            Record::Restarted { wall_ms, .. } => evidence.saw(wall_ms),
        }
    }

    fn settle(&mut self, key: &str, report: &mut Report) {
        if !self.waiting.remove(&key_hash(key)) {
            let name = &self.name;
            report.add(Class::Other, "journal", key, || {
                format!("{name} has an answer to a request it never sent")
            });
        }
    }
}

impl Evidence {
    fn saw(&mut self, at: WallMs) {
        self.latest = self.latest.max(Some(at));
    }
}

/// A key may be answered often, always with the same run.
fn one_run_a_key(answers: &mut Vec<Answer>, report: &mut Report) {
    answers.sort_unstable();
    answers.dedup();
    for pair in answers.windows(2) {
        if pair[0].key == pair[1].key {
            report.add(Class::Duplicated, "V2", pair[1].run, || {
                format!(
                    "the key that was answered with {} was answered with this run too",
                    pair[0].run
                )
            });
        }
    }
}

/// The part of a sorted array that belongs to `run`.
pub(super) fn of_run<T>(sorted: &[T], run: RunId, run_of: fn(&T) -> RunId) -> &[T] {
    let first = sorted.partition_point(|item| run_of(item) < run);
    let count = sorted[first..]
        .iter()
        .take_while(|item| run_of(item) == run)
        .count();
    &sorted[first..first + count]
}
