//! The files by number, and what is done with them at start.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use drumtower_core::model::WallMs;

use super::record::{HEADER_BYTES, Header};
use super::tails::{Tail, Tails};
use super::{Place, Source};

/// The file being written: its number and how long it is.
pub(super) type Newest = Place;

pub(super) fn path(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("{number:08}.log"))
}

/// The numbers of all files, in order. Anything else in the directory is left alone.
pub(super) fn numbers(directory: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_suffix(".log"))
            .filter(|digits| digits.len() == 8);
        if let Some(number) = number
            .and_then(|digits| digits.parse().ok())
            .filter(|number| *number > 0)
        {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Finds the tails in the newest files, cuts off a torn end, and says where writing goes on.
pub(super) fn recover(directory: &Path, scanned: usize, tails: &Tails) -> io::Result<Newest> {
    let numbers = numbers(directory)?;
    let Some(newest) = numbers.last().copied() else {
        return Ok(Place { file: 1, offset: 0 });
    };
    let mut found = BTreeMap::new();
    let mut end = 0;
    for number in numbers.iter().rev().take(scanned.max(1)).rev() {
        end = scan(directory, *number, &mut found)?;
    }
    tails.advance(found);
    let file = File::options().write(true).open(path(directory, newest))?;
    let length = file.metadata()?.len();
    if length > end {
        tracing::warn!(
            file = newest,
            from = end,
            to = length,
            "the log file has a torn end, which is cut off"
        );
        file.set_len(end)?;
    }
    Ok(Place {
        file: newest,
        offset: end,
    })
}

/// The last record of an attempt, in the files that were written to at or after `since`, newest first.
pub(super) fn search(directory: &Path, source: Source, since: WallMs) -> io::Result<Option<Place>> {
    let since = UNIX_EPOCH + Duration::from_millis(u64::try_from(since.0).unwrap_or(0));
    for number in numbers(directory)?.into_iter().rev() {
        let file = match File::open(path(directory, number)) {
            Ok(file) => file,
            // It has just expired, and so have those before it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if file.metadata()?.modified()? < since {
            return Ok(None);
        }
        if let Some(offset) = last_of(file, source)? {
            return Ok(Some(Place {
                file: number,
                offset,
            }));
        }
    }
    Ok(None)
}

/// Goes from header to header; what they head is not looked at.
fn last_of(file: File, source: Source) -> io::Result<Option<u64>> {
    let mut file = BufReader::with_capacity(1 << 20, file);
    let (mut offset, mut last) = (0, None);
    let mut bytes = [0; HEADER_BYTES];
    while fill(&mut file, &mut bytes)?
        && let Some(header) = Header::decode(&bytes)
    {
        if header.source == source {
            last = Some(offset);
        }
        file.seek_relative(i64::from(header.length))?;
        offset += header.record_bytes();
    }
    Ok(last)
}

/// Reads a file's records up to the first that is not whole, and returns where that is.
fn scan(directory: &Path, number: u32, found: &mut BTreeMap<Source, Tail>) -> io::Result<u64> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path(directory, number))?);
    file.seek(SeekFrom::Start(0))?;
    let mut offset = 0;
    let mut data = Vec::new();
    loop {
        let mut bytes = [0; HEADER_BYTES];
        if !fill(&mut file, &mut bytes)? {
            return Ok(offset);
        }
        let Some(header) = Header::decode(&bytes) else {
            return Ok(offset);
        };
        data.resize(header.length as usize, 0);
        if !fill(&mut file, &mut data)? || !header.holds(&data) {
            return Ok(offset);
        }
        let tail = found.entry(header.source).or_default();
        tail.last = Some((number, offset));
        tail.next_seq = header.seq + 1;
        tail.bytes = u64::from(header.total);
        offset += header.record_bytes();
    }
}

/// Whether the whole buffer could be filled; the end of the file is no error.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
