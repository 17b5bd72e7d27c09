//! Reading journals back.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::{EXTENSION, Record};
use crate::Error;

/// The journal files of a directory, in order of name.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Journal {
        path: dir.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The records of one file. A last line without its end is left out; any other that is not a record is an error.
pub struct Reader {
    path: PathBuf,
    lines: BufReader<File>,
    buffer: Vec<u8>,
    number: u64,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Journal {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            lines: BufReader::with_capacity(1 << 16, file),
            buffer: Vec::new(),
            number: 0,
        })
    }

    fn read(&mut self) -> Result<Option<Record>, Error> {
        self.buffer.clear();
        self.lines
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| Error::Journal {
                path: self.path.clone(),
                source,
            })?;
        if self.buffer.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.number += 1;
        serde_json::from_slice(&self.buffer)
            .map(Some)
            .map_err(|error| Error::Line {
                path: self.path.clone(),
                line: self.number,
                message: error.to_string(),
            })
    }
}

impl Iterator for Reader {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
