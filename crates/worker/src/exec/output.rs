//! Carries a command's output from its two pipes to the reader, in chunks of whole lines where lines allow it.
//!
//! - A chunk holds at most [`CHUNK_MAX`] bytes: a longer line is cut. A line not ended yet is held back for
//!   [`HOLD`], then passed on as it is, so that a prompt or a progress bar is seen.
//! - An attempt has at most [`OUTPUT_MAX`] bytes, both streams and the closing [`TRUNCATED`] together. What follows
//!   is read and thrown away, so that the command does not block.
//! - The reader sets the pace: when its channel is full nothing is read, the pipe fills, and the command waits.

use std::future;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::supervisor::clock::wall_ms;

pub const CHUNK_MAX: usize = 64 * 1024;
pub const OUTPUT_MAX: usize = 10 * 1024 * 1024;
/// The last chunk of an output that was too long.
pub const TRUNCATED: &[u8] = b"\n[drumtower: output truncated at 10 MiB]\n";
const HOLD: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub stream: Stream,
    /// When the agent read it.
    pub wall_ms: u64,
    pub bytes: Vec<u8>,
}

pub struct Pump {
    stdout: Source,
    stderr: Source,
    sink: Sink,
}

struct Source {
    stream: Stream,
    /// `None` after the end.
    pipe: Option<pipe::Receiver>,
    held: Vec<u8>,
    flush_at: Option<Instant>,
}

struct Sink {
    /// `None` once the reader has gone.
    chunks: Option<mpsc::Sender<Chunk>>,
    /// `None` once the output was truncated.
    left: Option<usize>,
}

impl Pump {
    pub fn new(
        stdout: PipeReader,
        stderr: PipeReader,
        chunks: mpsc::Sender<Chunk>,
    ) -> io::Result<Self> {
        Ok(Self {
            stdout: Source::new(Stream::Stdout, stdout)?,
            stderr: Source::new(Stream::Stderr, stderr)?,
            sink: Sink {
                chunks: Some(chunks),
                left: Some(OUTPUT_MAX - TRUNCATED.len()),
            },
        })
    }

    /// Ends with both pipes, or with what they hold when `tree_gone` resolves: somebody outside the tree who was
    /// given a pipe cannot keep the attempt open.
    pub async fn run(mut self, mut tree_gone: oneshot::Receiver<()>) {
        while self.stdout.pipe.is_some() || self.stderr.pipe.is_some() {
            tokio::select! {
                () = self.stdout.ready() => self.stdout.advance(&mut self.sink).await,
                () = self.stderr.ready() => self.stderr.advance(&mut self.sink).await,
                _ = &mut tree_gone => break,
            }
        }
        self.stdout.finish(&mut self.sink).await;
        self.stderr.finish(&mut self.sink).await;
    }
}

impl Source {
    fn new(stream: Stream, pipe: PipeReader) -> io::Result<Self> {
        let pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(pipe))?;
        Ok(Self {
            stream,
            pipe: Some(pipe),
            held: Vec::new(),
            flush_at: None,
        })
    }

    /// Resolves when there are bytes, an end, or a line held for long enough; never after the end. Safe to cancel.
    async fn ready(&self) {
        let Some(pipe) = &self.pipe else {
            return future::pending().await;
        };
        match self.flush_at {
            None => drop(pipe.readable().await),
            Some(at) => tokio::select! {
                _ = pipe.readable() => {}
                () = sleep_until(at) => {}
            },
        }
    }

    /// Takes what is there, up to a chunk, and passes on what is complete.
    async fn advance(&mut self, sink: &mut Sink) {
        let Some(pipe) = &self.pipe else { return };
        while self.held.len() < CHUNK_MAX {
            match pull(|bytes| pipe.try_read(bytes), &mut self.held) {
                Pulled::Bytes => {}
                Pulled::Nothing => break,
                Pulled::End => {
                    self.pipe = None;
                    return self.flush(sink).await;
                }
            }
        }
        let whole = whole_lines(&self.held);
        if whole > 0 {
            let rest = self.held.split_off(whole);
            let lines = std::mem::replace(&mut self.held, rest);
            self.flush_at = None;
            sink.pass(self.stream, lines).await;
        }
        if self.flush_at.is_some_and(|at| at <= Instant::now()) {
            self.flush(sink).await;
        } else if !self.held.is_empty() && self.flush_at.is_none() {
            self.flush_at = Some(Instant::now() + HOLD);
        }
    }

    /// Takes what the pipe holds, without asking the runtime, which may not have heard of it yet.
    async fn finish(&mut self, sink: &mut Sink) {
        let mut pipe = self
            .pipe
            .take()
            .and_then(|pipe| pipe.into_nonblocking_fd().ok())
            .map(PipeReader::from);
        while let Some(open) = &mut pipe {
            match pull(|bytes| open.read(bytes), &mut self.held) {
                Pulled::Bytes if self.held.len() >= CHUNK_MAX => self.flush(sink).await,
                Pulled::Bytes => {}
                Pulled::Nothing | Pulled::End => pipe = None,
            }
        }
        self.flush(sink).await;
    }

    /// Passes on all that is held.
    async fn flush(&mut self, sink: &mut Sink) {
        self.flush_at = None;
        while !self.held.is_empty() {
            let cut = match whole_lines(&self.held) {
                0 => self.held.len().min(CHUNK_MAX),
                whole => whole,
            };
            let rest = self.held.split_off(cut);
            sink.pass(self.stream, std::mem::replace(&mut self.held, rest))
                .await;
        }
    }
}

impl Sink {
    async fn pass(&mut self, stream: Stream, mut bytes: Vec<u8>) {
        let Some(left) = self.left else { return };
        let truncated = bytes.len() > left;
        bytes.truncate(left);
        self.left = (!truncated).then(|| left - bytes.len());
        if !bytes.is_empty() {
            self.send(stream, bytes).await;
        }
        if truncated {
            self.send(stream, TRUNCATED.to_vec()).await;
        }
    }

    async fn send(&mut self, stream: Stream, bytes: Vec<u8>) {
        if let Some(chunks) = &self.chunks {
            let chunk = Chunk {
                stream,
                wall_ms: wall_ms(),
                bytes,
            };
            if chunks.send(chunk).await.is_err() {
                self.chunks = None;
            }
        }
    }
}

enum Pulled {
    Bytes,
    Nothing,
    End,
}

/// One read. The buffer is on the stack: an attempt that is silent holds no memory for its output.
fn pull(mut read: impl FnMut(&mut [u8]) -> io::Result<usize>, held: &mut Vec<u8>) -> Pulled {
    let mut bytes = [0; 16 * 1024];
    loop {
        match read(&mut bytes) {
            Ok(0) => return Pulled::End,
            Ok(len) => {
                held.extend_from_slice(&bytes[..len]);
                return Pulled::Bytes;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Pulled::Nothing,
            Err(_) => return Pulled::End,
        }
    }
}

/// How many bytes make whole lines and fit a chunk; a line too long for a chunk counts as far as it fits.
fn whole_lines(held: &[u8]) -> usize {
    let window = &held[..held.len().min(CHUNK_MAX)];
    match window.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => last + 1,
        None if window.len() == CHUNK_MAX => CHUNK_MAX,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_whole_where_they_fit() {
        assert_eq!(whole_lines(b""), 0);
        assert_eq!(whole_lines(b"half"), 0);
        assert_eq!(whole_lines(b"one\ntwo\nhal"), 8);
        let long = vec![b'x'; CHUNK_MAX + 5];
        assert_eq!(whole_lines(&long), CHUNK_MAX);
        assert_eq!(whole_lines(&long[..CHUNK_MAX - 1]), 0);
    }
}
