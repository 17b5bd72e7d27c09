//! Reading an attempt's output: back along the chain to find the records, then forwards to hand them out.
//!
//! All of it blocks on files; callers keep it off the runtime's threads.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use drumtower_core::model::WallMs;

use super::record::{HEADER_BYTES, Header};
use super::{Place, Record, Source, files};

/// The output was kept once; its files are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log has expired")]
pub struct Expired;

/// How far the stamps of neighbouring records may lie out of order: two streams are gathered apart, and clocks are set.
const DISORDER_MS: i64 = 60_000;

/// A reader of one attempt's output that remembers how far it has come.
pub struct Chain {
    directory: Arc<PathBuf>,
    source: Source,
    /// The last record handed out by [`Chain::advance`].
    reached: Option<Place>,
    /// Records before this are not looked for.
    since: Option<WallMs>,
    open: BTreeMap<u32, File>,
}

/// Records found by one [`Chain::advance`], oldest first.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Each with the number of its chunk.
    pub places: Vec<(u64, Place)>,
    /// How much they hold together.
    pub bytes: u64,
    /// Whether the beginning is gone with its file.
    pub beginning_expired: bool,
}

impl Chain {
    pub(super) fn new(directory: Arc<PathBuf>, source: Source) -> Self {
        Self {
            directory,
            source,
            reached: None,
            since: None,
            open: BTreeMap::new(),
        }
    }

    /// Leaves out what was written before an instant, without walking back much further than that.
    pub fn since(mut self, since: Option<WallMs>) -> Self {
        self.since = since;
        self
    }

    /// Whether there is a record of this attempt at `place`.
    pub fn holds(&mut self, place: Place) -> io::Result<bool> {
        Ok(self.header(place)?.is_some())
    }

    /// Finds what lies between the last call and the record at `end`.
    pub fn advance(&mut self, end: Place) -> io::Result<Result<Found, Expired>> {
        let mut found = Found {
            places: Vec::new(),
            bytes: 0,
            beginning_expired: false,
        };
        let mut next = Some(end);
        while let Some(place) = next.filter(|place| Some(*place) != self.reached) {
            match self.header(place)? {
                Some(header) if self.ends_at(&header) => next = None,
                Some(header) => {
                    if self.wants(&header) {
                        found.places.push((header.seq, place));
                        found.bytes += u64::from(header.length);
                    }
                    next = before(place, &header);
                }
                None if place == end => return Ok(Err(Expired)),
                None => {
                    found.beginning_expired = true;
                    next = None;
                }
            }
        }
        found.places.reverse();
        self.reached = Some(end);
        Ok(Ok(found))
    }

    /// Hands out records from `end` backwards, newest first, until `more` has enough. What lies before counts as found.
    pub fn back(
        &mut self,
        end: Place,
        mut more: impl FnMut(Record) -> bool,
    ) -> io::Result<Result<(), Expired>> {
        let mut next = Some(end);
        while let Some(place) = next {
            match self.record(place)? {
                Some((header, _)) if self.ends_at(&header) => break,
                Some((header, record)) => {
                    if self.wants(&header) && !more(record) {
                        break;
                    }
                    next = before(place, &header);
                }
                None if place == end => return Ok(Err(Expired)),
                None => break,
            }
        }
        self.reached = Some(end);
        Ok(Ok(()))
    }

    fn wants(&self, header: &Header) -> bool {
        self.since.is_none_or(|since| header.wall >= since)
    }

    /// Whether everything before this record is too old.
    fn ends_at(&self, header: &Header) -> bool {
        self.since
            .is_some_and(|since| header.wall.0.saturating_add(DISORDER_MS) < since.0)
    }

    /// Reads a record that [`Chain::advance`] found; `None` when it has gone since.
    pub fn load(&mut self, place: Place) -> io::Result<Option<Record>> {
        Ok(self.record(place)?.map(|(_, record)| record))
    }

    fn record(&mut self, place: Place) -> io::Result<Option<(Header, Record)>> {
        let Some(header) = self.header(place)? else {
            return Ok(None);
        };
        let mut data = vec![0; header.length as usize];
        if !self.read(place.file, place.offset + HEADER_BYTES as u64, &mut data)?
            || !header.holds(&data)
        {
            return Ok(None);
        }
        let record = Record {
            stream: header.stream,
            wall: header.wall,
            data,
        };
        Ok(Some((header, record)))
    }

    /// The header at `place` if it is one of this attempt's.
    fn header(&mut self, place: Place) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER_BYTES];
        if !self.read(place.file, place.offset, &mut bytes)? {
            return Ok(None);
        }
        Ok(Header::decode(&bytes).filter(|header| header.source == self.source))
    }

    /// Whether the bytes are there: a file that is gone, or too short, is no error.
    fn read(&mut self, number: u32, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let absent = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof
            )
        };
        let file = match self.open.entry(number) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match File::open(files::path(&self.directory, number)) {
                Ok(file) => entry.insert(file),
                Err(error) if absent(&error) => return Ok(false),
                Err(error) => return Err(error),
            },
        };
        match file.read_exact_at(buffer, offset) {
            Ok(()) => Ok(true),
            Err(error) if absent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The record before one. Chains only ever lead back: anything else is damage, and would be a walk without end.
fn before(place: Place, header: &Header) -> Option<Place> {
    header.previous.filter(|previous| *previous < place)
}
