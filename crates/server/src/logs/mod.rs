//! The output of attempts, in append-only files shared by all of them.
//!
//! One thread writes ([`writer`]). A record ([`record`]) points back at the one before it of the same attempt, so the
//! place of the last record is all that a run's row has to keep, and silent runs cost nothing. The places of attempts
//! that still write are the [`tails`]; they are found again at start by scanning the newest files ([`files`]). Reading
//! walks a chain back and hands it out forwards ([`chain`]). Where servers share a store, the output of one attempt may lie
//! with several of them: each directory has a name ([`home`]), and what one server has of it goes to another whole ([`part`]).
//!
//! Output is outside the durability promise: a chunk is acknowledged when it is written, not when it is synced, and what
//! cannot be written is dropped with the mark `truncated`. It never holds a run back. Files go, whole, when
//! their last record is old, the oldest first when all of them outgrow their bound; what pointed into them reads as
//! expired.

mod chain;
mod files;
mod home;
mod part;
mod record;
mod tails;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use drumtower_core::model::{Home, LogLocator, RunId, WallMs};

pub use chain::{Chain, Expired};
pub use part::{Numbered, Part};
pub use record::{Place, Record};
pub use tails::LogWatch;

use tails::Tails;
use writer::Writer;

/// Which of its two outputs an attempt wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Stdout),
            2 => Some(Self::Stderr),
            _ => None,
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// A piece of output on its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub source: Source,
    /// From 1 within the attempt; one that was seen is dropped.
    pub seq: u64,
    pub stream: Stream,
    pub wall: WallMs,
    pub data: Bytes,
}

/// The attempt that output belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    pub run: RunId,
    pub attempt: u32,
}

/// How the files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The size at which a file is closed and the next begun.
    pub file_bytes: u64,
    /// How many of the newest files are scanned at start for attempts that may still write.
    pub scanned_files: usize,
    /// The age of its last record at which a file goes.
    pub kept_ms: u64,
    /// What all files may take together; the oldest go first.
    pub max_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            scanned_files: 4,
            kept_ms: 30 * 86_400_000,
            max_bytes: None,
        }
    }
}

/// What the rest of the server holds of the logs.
#[derive(Clone)]
pub struct Logs {
    directory: Arc<PathBuf>,
    /// What the files are called by other servers; `None` where there are none.
    home: Option<Home>,
    tails: Tails,
    writer: Writer,
}

impl Logs {
    /// Opens the directory, makes it if need be, mends a torn end, and starts the writing thread.
    pub fn open(directory: &Path, options: Options) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let tails = Tails::default();
        let newest = files::recover(directory, options.scanned_files, &tails)?;
        let writer = Writer::start(directory.to_owned(), options, newest, tails.clone())?;
        Ok(Self {
            directory: Arc::new(directory.to_owned()),
            home: None,
            tails,
            writer,
        })
    }

    /// Gives the directory a name, so that servers that share a store can say whose files they mean.
    pub fn shared(mut self) -> io::Result<Self> {
        self.home = Some(home::of(&self.directory)?);
        Ok(self)
    }

    pub fn home(&self) -> Option<Home> {
        self.home
    }

    /// Writes chunks in order; returns when they are written, or dropped because they cannot be.
    pub async fn append(&self, chunks: Vec<Chunk>) {
        self.writer.append(chunks).await;
    }

    /// Where the attempt's output ends so far; `None` when it was silent.
    pub fn locator(&self, source: Source) -> Option<LogLocator> {
        let locator = self.tails.locator(source)?;
        Some(LogLocator {
            home: self.home,
            ..locator
        })
    }

    /// Where the attempt's output ends here, by looking through the files that were written to since. Blocks on files: for
    /// attempts that went to another server, of which no row tells the place.
    pub fn search(&self, source: Source, since: WallMs) -> io::Result<Option<Place>> {
        files::search(&self.directory, source, since)
    }

    /// The attempt writes nothing more, and its run's row holds the place.
    pub fn ended(&self, source: Source) {
        self.tails.ended(source);
    }

    /// Learns of output as it comes. Register first, then read, then wait: nothing is missed.
    pub fn watch(&self, run: RunId) -> LogWatch {
        self.tails.watch(run)
    }

    /// A reader of one attempt's output, from its beginning.
    pub fn chain(&self, source: Source) -> Chain {
        Chain::new(Arc::clone(&self.directory), source)
    }

    /// Removes files whose last record is too old, and the oldest beyond the bound.
    pub async fn sweep(&self) {
        self.writer.sweep().await;
    }
}

#[cfg(test)]
mod tests;
