//! What a worker measures of each run, in microseconds of the machine's one wall clock: fixed records in a file of its
//! own, beside the journal, which is about order and not about speed.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use drumtower_core::model::RunId;

use crate::failure::{Failure, Result};

const EXTENSION: &str = "samples";
const BYTES: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub run: RunId,
    /// The number in the job's name.
    pub job: u64,
    pub due_us: u64,
    pub started_us: u64,
    pub ended_us: u64,
}

pub struct Recorder {
    file: File,
    buffer: Vec<u8>,
}

impl Recorder {
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::create_new(path)?,
            buffer: Vec::new(),
        })
    }

    pub fn push(&mut self, sample: Sample) {
        for number in [
            sample.run.0,
            sample.job,
            sample.due_us,
            sample.started_us,
            sample.ended_us,
        ] {
            self.buffer.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written
    }
}

pub fn path(dir: &Path, worker: &str) -> PathBuf {
    dir.join(format!("{worker}.{EXTENSION}"))
}

/// How many samples a file holds by now.
pub fn count(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len() / BYTES as u64)
}

/// The samples of all workers, in order of run and start.
pub fn read_all(dir: &Path) -> Result<Vec<Sample>> {
    let wrong = |error: io::Error| Failure::file(dir, &error);
    let mut samples = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            let bytes = std::fs::read(&path).map_err(|error| Failure::file(&path, &error))?;
            samples.extend(bytes.as_chunks::<BYTES>().0.iter().map(decode));
        }
    }
    samples.sort_unstable_by_key(|sample: &Sample| (sample.run, sample.started_us));
    Ok(samples)
}

fn decode(bytes: &[u8; BYTES]) -> Sample {
    let words = bytes.as_chunks::<8>().0;
    let word = |index: usize| words.get(index).map_or(0, |word| u64::from_le_bytes(*word));
    Sample {
        run: RunId(word(0)),
        job: word(1),
        due_us: word(2),
        started_us: word(3),
        ended_us: word(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_in_order_of_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let sample = |run| Sample {
            run: RunId(run),
            job: run + 7,
            due_us: 1,
            started_us: run + 2,
            ended_us: u64::MAX,
        };
        for (worker, runs) in [("a", [5, 1]), ("b", [4, 2])] {
            let mut recorder = Recorder::create(&path(dir.path(), worker)).expect("a file");
            runs.iter().for_each(|run| recorder.push(sample(*run)));
            recorder.flush().expect("written");
            assert_eq!(count(&path(dir.path(), worker)), 2);
        }
        assert_eq!(
            read_all(dir.path()).expect("read"),
            [1, 2, 4, 5].map(sample)
        );
    }
}
