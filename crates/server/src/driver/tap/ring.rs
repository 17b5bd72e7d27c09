//! The last facts, numbered; readers keep their own places in it.
//!
//! Chunks lie in the order of their numbers. Between two of them numbers may be missing: facts that nobody heard.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Heard;
use super::fact::{Chunk, Fact};

/// A chunk is the grain in which old facts go and readers read.
const CHUNK_FACTS: usize = 256;

struct Kept {
    chunks: VecDeque<Arc<Chunk>>,
    facts: usize,
    next: u64,
}

impl Kept {
    fn add(&mut self, chunk: Chunk) {
        self.facts += chunk.weight();
        self.chunks.push_back(Arc::new(chunk));
    }

    /// Takes out the oldest beyond the capacity.
    fn shrink(&mut self, capacity: usize) -> Vec<Arc<Chunk>> {
        let mut dropped = Vec::new();
        while self.facts > capacity
            && let Some(oldest) = self.chunks.pop_front()
        {
            self.facts -= oldest.weight();
            dropped.push(oldest);
        }
        dropped
    }
}

pub struct Ring {
    kept: Mutex<Kept>,
    capacity: usize,
    /// Facts that nobody heard and that are not numbered yet.
    unheard: AtomicU64,
    published: watch::Sender<u64>,
    closed: AtomicBool,
}

impl Ring {
    pub fn new(capacity: usize) -> Self {
        Self {
            kept: Mutex::new(Kept {
                chunks: VecDeque::new(),
                facts: 0,
                next: 1,
            }),
            capacity,
            unheard: AtomicU64::new(0),
            published: watch::channel(1).0,
            closed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.next += self.unheard.swap(0, Ordering::SeqCst);
        kept
    }

    /// Counts facts that nobody heard, without a lock.
    pub fn unheard(&self, count: u64) {
        self.unheard.fetch_add(count, Ordering::SeqCst);
    }

    pub fn publish(&self, facts: Vec<Fact>) {
        self.put(facts, false);
    }

    /// What another server told.
    pub fn publish_foreign(&self, facts: Vec<Fact>) {
        self.put(facts, true);
    }

    /// So many facts of another server are not known here.
    pub fn lose_foreign(&self, lost: u64) {
        let mut kept = self.lock();
        let first = kept.next;
        kept.next += lost;
        kept.add(Chunk {
            first,
            facts: Vec::new(),
            foreign: true,
            lost,
        });
        let dropped = kept.shrink(self.capacity);
        let next = kept.next;
        drop(kept);
        drop(dropped);
        self.published.send_replace(next);
    }

    fn put(&self, facts: Vec<Fact>, foreign: bool) {
        if facts.is_empty() {
            return;
        }
        let mut kept = self.lock();
        let mut rest = facts.into_iter();
        loop {
            let facts: Vec<Fact> = rest.by_ref().take(CHUNK_FACTS).collect();
            if facts.is_empty() {
                break;
            }
            let first = kept.next;
            kept.next += facts.len() as u64;
            kept.add(Chunk {
                first,
                facts,
                foreign,
                lost: 0,
            });
        }
        // Freed after the lock is.
        let dropped = kept.shrink(self.capacity);
        let next = kept.next;
        drop(kept);
        drop(dropped);
        self.published.send_replace(next);
    }

    /// Numbers that no fact will be found under.
    pub fn skip(&self, count: u64) {
        if count > 0 {
            let next = {
                let mut kept = self.lock();
                kept.next += count;
                kept.next
            };
            self.published.send_replace(next);
        }
    }

    pub fn next(&self) -> u64 {
        self.lock().next
    }

    /// What there is from number `seq` on: the rest of its chunk, or how many are missing before the next one.
    pub fn after(&self, seq: u64) -> Option<Heard> {
        let kept = self.lock();
        if seq >= kept.next {
            return None;
        }
        let place = kept.chunks.partition_point(|chunk| chunk.end() <= seq);
        let Some(chunk) = kept.chunks.get(place) else {
            return Some(Heard::Missed(kept.next - seq));
        };
        if chunk.first > seq {
            return Some(Heard::Missed(chunk.first - seq));
        }
        let chunk = Arc::clone(chunk);
        drop(kept);
        if chunk.first == seq {
            return Some(Heard::Facts(chunk));
        }
        let skipped = usize::try_from(seq - chunk.first).unwrap_or(usize::MAX);
        Some(Heard::Facts(Arc::new(Chunk {
            first: seq,
            facts: chunk.facts.iter().skip(skipped).cloned().collect(),
            foreign: chunk.foreign,
            lost: chunk.lost.saturating_sub(seq - chunk.first),
        })))
    }

    pub fn published(&self) -> watch::Receiver<u64> {
        self.published.subscribe()
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.published.send_modify(|_| ());
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}
