//! The output of one attempt on its way to the server.
//!
//! Chunks are numbered from 1 and kept until the server acknowledges them; to another home, or on a new stream, they go
//! out again from the first unacknowledged one. An attempt may say so much in all and no more: what exceeds the bound
//! is dropped and the end says that it was. How much may be unacknowledged at once is the reader's to respect
//! ([`WINDOW_BYTES`]).

use std::collections::VecDeque;

use drumtower_core::model::Limits;
use drumtower_proto::worker::v1 as wire;

/// Output that may wait for acknowledgement; beyond it the reader of the output waits.
pub const WINDOW_BYTES: usize = 1024 * 1024;
const CHUNK_BYTES: usize = Limits::LOG_LINE_BYTES;

#[derive(Debug, Default)]
pub(super) struct Log {
    /// Kept, in order, from the first unacknowledged one.
    chunks: VecDeque<wire::LogChunk>,
    /// How many of `chunks` were sent to the present home.
    sent: usize,
    last_seq: u64,
    total_bytes: u64,
    truncated: bool,
}

impl Log {
    /// Takes output in. Returns how many bytes of it were dropped.
    pub(super) fn push(
        &mut self,
        attempt: wire::AttemptRef,
        stream: u32,
        wall_ms: i64,
        data: &[u8],
    ) -> usize {
        let room =
            usize::try_from(Limits::LOG_ATTEMPT_BYTES - self.total_bytes).unwrap_or(usize::MAX);
        let kept = &data[..data.len().min(room)];
        self.truncated |= kept.len() < data.len();
        self.total_bytes += kept.len() as u64;
        for part in kept.chunks(CHUNK_BYTES) {
            self.last_seq += 1;
            self.chunks.push_back(wire::LogChunk {
                attempt: Some(attempt),
                seq: self.last_seq,
                stream,
                wall_ms,
                data: part.to_vec(),
            });
        }
        data.len() - kept.len()
    }

    /// The server keeps everything up to `seq`. Returns how many bytes that frees.
    pub(super) fn acknowledge(&mut self, seq: u64) -> usize {
        let mut freed = 0;
        while let Some(chunk) = self.chunks.front().filter(|chunk| chunk.seq <= seq) {
            freed += chunk.data.len();
            self.chunks.pop_front();
            self.sent = self.sent.saturating_sub(1);
        }
        freed
    }

    /// The next chunk that the present home was not sent.
    pub(super) fn next_unsent(&mut self) -> Option<wire::LogChunk> {
        let chunk = self.chunks.get(self.sent)?.clone();
        self.sent += 1;
        Some(chunk)
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.chunks.len()
    }

    pub(super) fn rewind(&mut self) {
        self.sent = 0;
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub(super) fn truncated(&self) -> bool {
        self.truncated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTEMPT: wire::AttemptRef = wire::AttemptRef {
        run: 1,
        attempt: 1,
        fence: 1,
    };

    fn sent(log: &mut Log) -> Vec<u64> {
        std::iter::from_fn(|| log.next_unsent())
            .map(|chunk| chunk.seq)
            .collect()
    }

    #[test]
    fn a_new_stream_carries_what_was_not_acknowledged() {
        let mut log = Log::default();
        for text in ["a", "b", "c"] {
            assert_eq!(log.push(ATTEMPT, 1, 0, text.as_bytes()), 0);
        }
        assert_eq!(sent(&mut log), [1, 2, 3]);
        assert_eq!(log.acknowledge(2), 2);
        assert!(sent(&mut log).is_empty());
        log.rewind();
        assert_eq!(sent(&mut log), [3]);
    }

    #[test]
    fn an_acknowledgement_of_chunks_that_wait_to_be_repeated_counts() {
        let mut log = Log::default();
        log.push(ATTEMPT, 1, 0, b"a");
        log.push(ATTEMPT, 1, 0, b"b");
        sent(&mut log);
        log.rewind();
        assert_eq!(log.acknowledge(u64::MAX), 2);
        assert!(!log.has_unsent());
    }

    #[test]
    fn long_output_is_cut_into_chunks_and_at_the_bound() {
        let mut log = Log::default();
        let mega = vec![b'x'; 1024 * 1024];
        for _ in 0..10 {
            assert_eq!(log.push(ATTEMPT, 2, 0, &mega), 0);
        }
        assert!(!log.truncated());
        assert_eq!(log.push(ATTEMPT, 2, 0, b"more"), 4);
        assert!(log.truncated());
        assert_eq!(sent(&mut log).len(), 160);
    }
}
