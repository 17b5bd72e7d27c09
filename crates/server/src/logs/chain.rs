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

use super::record::{HEADER_BYTES, Header};
use super::{Place, Record, Source, files};

/// The output was kept once; its files are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log has expired")]
pub struct Expired;

/// A reader of one attempt's output that remembers how far it has come.
pub struct Chain {
    directory: Arc<PathBuf>,
    source: Source,
    /// The last record handed out by [`Chain::advance`].
    reached: Option<Place>,
    open: BTreeMap<u32, File>,
}

/// Records found by one [`Chain::advance`], oldest first.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    pub places: Vec<Place>,
    /// Whether the beginning is gone with its file.
    pub beginning_expired: bool,
}

impl Chain {
    pub(super) fn new(directory: Arc<PathBuf>, source: Source) -> Self {
        Self {
            directory,
            source,
            reached: None,
            open: BTreeMap::new(),
        }
    }

    /// Whether there is a record of this attempt at `place`.
    pub fn holds(&mut self, place: Place) -> io::Result<bool> {
        Ok(self.header(place)?.is_some())
    }

    /// Finds what lies between the last call and the record at `end`.
    pub fn advance(&mut self, end: Place) -> io::Result<Result<Found, Expired>> {
        let mut found = Found {
            places: Vec::new(),
            beginning_expired: false,
        };
        let mut next = Some(end);
        while let Some(place) = next.filter(|place| Some(*place) != self.reached) {
            match self.header(place)? {
                Some(header) => {
                    found.places.push(place);
                    // Chains only ever lead back: anything else is damage, and would be a walk without end.
                    next = header.previous.filter(|previous| *previous < place);
                }
                None if found.places.is_empty() => return Ok(Err(Expired)),
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

    /// Reads a record that [`Chain::advance`] found; `None` when it has gone since.
    pub fn load(&mut self, place: Place) -> io::Result<Option<Record>> {
        let Some(header) = self.header(place)? else {
            return Ok(None);
        };
        let mut data = vec![0; header.length as usize];
        if !self.read(place.file, place.offset + HEADER_BYTES as u64, &mut data)?
            || !header.holds(&data)
        {
            return Ok(None);
        }
        Ok(Some(Record {
            stream: header.stream,
            wall: header.wall,
            data,
        }))
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
