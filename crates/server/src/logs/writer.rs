//! The one thread that writes, and the channel to it.
//!
//! It takes whatever is queued, writes it with one call, moves the tails and answers. When the disk does not take it, the
//! chunks are dropped and their attempts marked as truncated: output never holds a run back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use drumtower_core::model::Limits;
use tokio::sync::{mpsc, oneshot};

use super::record::{HEADER_BYTES, Header};
use super::tails::{Tail, Tails};
use super::{Chunk, Options, Place, Source, files};

/// Frames of chunks that may wait; a stream that finds it full waits too.
const QUEUED_APPENDS: usize = 256;
/// Records an attempt may write, so that a reader's memory has a bound as well.
const ATTEMPT_RECORDS: u64 = 163_840;

enum Message {
    Append {
        chunks: Vec<Chunk>,
        done: oneshot::Sender<()>,
    },
    Sweep {
        done: oneshot::Sender<()>,
    },
}

#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
}

impl Writer {
    /// The thread ends when the last handle is dropped.
    pub fn start(
        directory: PathBuf,
        options: Options,
        newest: Place,
        tails: Tails,
    ) -> io::Result<Self> {
        let (queue, queued) = mpsc::channel(QUEUED_APPENDS);
        let file = open(&directory, newest.file)?;
        let state = State {
            directory,
            options,
            file,
            at: newest,
            tails,
            failing: false,
        };
        std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || state.run(queued))?;
        Ok(Self { queue })
    }

    pub async fn append(&self, chunks: Vec<Chunk>) {
        let (done, written) = oneshot::channel();
        if self
            .queue
            .send(Message::Append { chunks, done })
            .await
            .is_ok()
        {
            let _ = written.await;
        }
    }

    pub async fn sweep(&self) {
        let (done, swept) = oneshot::channel();
        if self.queue.send(Message::Sweep { done }).await.is_ok() {
            let _ = swept.await;
        }
    }
}

fn open(directory: &std::path::Path, number: u32) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(files::path(directory, number))
}

struct State {
    directory: PathBuf,
    options: Options,
    file: File,
    /// The file being written and its length.
    at: Place,
    tails: Tails,
    /// Whether the last write failed, to say so once and not for every chunk.
    failing: bool,
}

/// What a turn of the loop wants written, and the tails that will be true then.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    tails: BTreeMap<Source, Tail>,
    /// Attempts that have bytes in this batch.
    written: BTreeSet<Source>,
}

impl State {
    fn run(mut self, mut queued: mpsc::Receiver<Message>) {
        let mut messages = Vec::new();
        while queued.blocking_recv_many(&mut messages, QUEUED_APPENDS) > 0 {
            let mut batch = Batch::default();
            let mut answers = Vec::with_capacity(messages.len());
            for message in messages.drain(..) {
                match message {
                    Message::Append { chunks, done } => {
                        for chunk in chunks {
                            self.add(&mut batch, chunk);
                        }
                        answers.push(done);
                    }
                    Message::Sweep { done } => {
                        self.sweep();
                        answers.push(done);
                    }
                }
            }
            self.write(&mut batch);
            for answer in answers {
                let _ = answer.send(());
            }
        }
    }

    fn add(&mut self, batch: &mut Batch, chunk: Chunk) {
        let known = batch
            .tails
            .get(&chunk.source)
            .copied()
            .or_else(|| self.tails.get(chunk.source));
        let mut tail = known.unwrap_or(Tail {
            next_seq: 1,
            ..Tail::default()
        });
        if chunk.seq < tail.next_seq {
            return;
        }
        tail.next_seq = chunk.seq.saturating_add(1);
        let room = usize::try_from(Limits::LOG_ATTEMPT_BYTES.saturating_sub(tail.bytes))
            .unwrap_or(usize::MAX);
        let kept = chunk.data.len().min(Limits::LOG_LINE_BYTES).min(room);
        tail.truncated |= kept < chunk.data.len() || chunk.seq > ATTEMPT_RECORDS;
        if kept > 0 && chunk.seq <= ATTEMPT_RECORDS {
            let end = self.at.offset + batch.bytes.len() as u64;
            if end > 0 && end + kept as u64 > self.options.file_bytes {
                self.write(batch);
                self.roll();
                // A failed write has dropped the records that this tail would point back at.
                let known = self.tails.get(chunk.source).unwrap_or_default();
                tail = Tail {
                    next_seq: tail.next_seq,
                    truncated: tail.truncated | known.truncated,
                    ..known
                };
            }
            tail.bytes += kept as u64;
            let place = (self.at.file, self.at.offset + batch.bytes.len() as u64);
            let total = u32::try_from(tail.bytes).unwrap_or(u32::MAX);
            let header = Header::new(
                chunk.source,
                chunk.stream,
                chunk.seq,
                chunk.wall,
                tail.place(),
                total,
            );
            header.encode(&chunk.data[..kept], &mut batch.bytes);
            tail.last = Some(place);
            batch.written.insert(chunk.source);
        }
        batch.tails.insert(chunk.source, tail);
    }

    /// Writes the batch and empties it.
    fn write(&mut self, batch: &mut Batch) {
        let Batch {
            bytes,
            mut tails,
            written,
        } = std::mem::take(batch);
        if !bytes.is_empty() {
            match self.file.write_all(&bytes) {
                Ok(()) => {
                    self.at.offset += bytes.len() as u64;
                    self.failing = false;
                }
                Err(error) => {
                    self.give_up(&error);
                    for source in written {
                        self.drop_unwritten(&mut tails, source);
                    }
                }
            }
        }
        self.tails.advance(tails);
    }

    /// Puts a tail back to what is really on disk.
    fn drop_unwritten(&self, tails: &mut BTreeMap<Source, Tail>, source: Source) {
        if let Some(tail) = tails.get_mut(&source) {
            let known = self.tails.get(source).unwrap_or_default();
            *tail = Tail {
                next_seq: tail.next_seq,
                truncated: true,
                ..known
            };
        }
    }

    fn give_up(&mut self, error: &io::Error) {
        if !self.failing {
            tracing::error!(%error, "output of runs cannot be written and is dropped; free some space");
        }
        self.failing = true;
        // A part of the batch may have been written. Where it cannot be cut off, the next file is clean.
        if self.file.set_len(self.at.offset).is_err() {
            self.roll();
        }
    }

    fn roll(&mut self) {
        let next = self.at.file.saturating_add(1);
        match open(&self.directory, next) {
            Ok(file) => {
                self.file = file;
                self.at = Place {
                    file: next,
                    offset: 0,
                };
                // The bound holds at any time, the age is looked at now and then.
                if self.options.max_bytes.is_some() {
                    self.sweep();
                }
            }
            Err(error) => {
                tracing::error!(%error, file = next, "the next log file cannot be opened")
            }
        }
    }

    fn sweep(&mut self) {
        let oldest = SystemTime::now().checked_sub(Duration::from_millis(self.options.kept_ms));
        let numbers = match files::numbers(&self.directory) {
            Ok(numbers) => numbers,
            Err(error) => return tracing::error!(%error, "the log directory cannot be read"),
        };
        // Newest first, so that the sum says what is kept so far. The file being written may fill up.
        let mut kept = self.options.file_bytes;
        for number in numbers.into_iter().rev().filter(|it| *it < self.at.file) {
            let path = files::path(&self.directory, number);
            let Ok(metadata) = fs::metadata(&path) else {
                continue;
            };
            kept = kept.saturating_add(metadata.len());
            let written = metadata.modified().ok();
            let old = written.is_some_and(|written| oldest.is_some_and(|oldest| written < oldest));
            let beyond = self.options.max_bytes.is_some_and(|most| kept > most);
            if (old || beyond)
                && let Err(error) = fs::remove_file(&path)
            {
                tracing::error!(%error, file = number, "an expired log file cannot be removed");
            }
        }
    }
}

const _: () = assert!(HEADER_BYTES as u64 * ATTEMPT_RECORDS <= Limits::LOG_ATTEMPT_BYTES);

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use drumtower_core::model::{RunId, WallMs};

    use super::super::Stream;
    use super::*;

    #[test]
    fn a_full_disk_drops_output_and_the_next_write_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let source = Source {
            run: RunId(1),
            attempt: 1,
        };
        let chunk = |seq, data: &'static [u8]| Chunk {
            source,
            seq,
            stream: Stream::Stdout,
            wall: WallMs(0),
            data: data.into(),
        };
        let mut state = State {
            directory: directory.path().to_owned(),
            options: Options::default(),
            file: File::options().write(true).open("/dev/full").unwrap(),
            at: Place { file: 1, offset: 0 },
            tails: Tails::default(),
            failing: false,
        };
        let mut batch = Batch::default();
        state.add(&mut batch, chunk(1, b"lost"));
        state.write(&mut batch);
        assert_eq!(state.tails.locator(source), None, "nothing was kept");

        state.add(&mut batch, chunk(1, b"repeated"));
        state.add(&mut batch, chunk(2, b"kept"));
        state.write(&mut batch);
        let kept = state.tails.locator(source).unwrap();
        assert_eq!((kept.file, kept.offset, kept.bytes), (2, 0, 4));
        assert!(kept.truncated, "and it is known that something is missing");
    }
}
