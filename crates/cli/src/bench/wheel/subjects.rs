//! The ways to keep timers that are compared, behind one face.
//!
//! Each is used as a scheduler would: deadlines in milliseconds, a timer that can be taken back by a key, and time that
//! moves on by one tick after another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::poll_fn;
use std::time::Duration;

use drumtower_core::wheel::{self, Wheel};
use tokio::runtime::Runtime;
use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

pub trait Timers {
    type Key: Clone;

    fn insert(&mut self, at: u64, value: u64) -> Self::Key;
    fn cancel(&mut self, key: Self::Key);
    /// Returns when the clock of these timers has reached `end`. It is not measured.
    fn wait(&mut self, _end: u64) {}
    /// Hands out everything that is due by `end`, millisecond by millisecond, and says how much it was.
    fn fire(&mut self, end: u64) -> u64;
}

pub struct Ours {
    wheel: Wheel<u64>,
    out: Vec<(u64, u64)>,
}

impl Ours {
    pub fn new() -> Self {
        Self {
            wheel: Wheel::new(0),
            out: Vec::new(),
        }
    }
}

impl Timers for Ours {
    type Key = wheel::Key;

    fn insert(&mut self, at: u64, value: u64) -> wheel::Key {
        self.wheel.insert(at, value)
    }

    fn cancel(&mut self, key: wheel::Key) {
        self.wheel.cancel(key);
    }

    fn fire(&mut self, end: u64) -> u64 {
        let mut fired = 0;
        for now in 0..=end {
            self.wheel.advance(now, &mut self.out);
            fired += self.out.len() as u64;
            self.out.clear();
        }
        fired
    }
}

/// A heap cannot remove from its middle: what is cancelled is marked, and skipped when it comes up. Until then it takes
/// its room.
#[derive(Default)]
pub struct Heap {
    heap: BinaryHeap<Reverse<(u64, u64, u64)>>,
    cancelled: Vec<u64>,
    count: u64,
}

impl Timers for Heap {
    type Key = u64;

    fn insert(&mut self, at: u64, value: u64) -> u64 {
        let number = self.count;
        self.count += 1;
        if number.is_multiple_of(64) {
            self.cancelled.push(0);
        }
        self.heap.push(Reverse((at, number, value)));
        number
    }

    fn cancel(&mut self, number: u64) {
        self.cancelled[(number / 64) as usize] |= 1 << (number % 64);
    }

    fn fire(&mut self, end: u64) -> u64 {
        let mut fired = 0;
        for now in 0..=end {
            while let Some(Reverse((at, number, _))) = self.heap.peek().copied()
                && at <= now
            {
                self.heap.pop();
                let skipped = self.cancelled[(number / 64) as usize] >> (number % 64) & 1;
                fired += 1 - skipped;
            }
        }
        fired
    }
}

#[derive(Default)]
pub struct Tree {
    tree: BTreeMap<(u64, u64), u64>,
    count: u64,
}

impl Timers for Tree {
    type Key = (u64, u64);

    fn insert(&mut self, at: u64, value: u64) -> (u64, u64) {
        let key = (at, self.count);
        self.count += 1;
        self.tree.insert(key, value);
        key
    }

    fn cancel(&mut self, key: (u64, u64)) {
        self.tree.remove(&key);
    }

    fn fire(&mut self, end: u64) -> u64 {
        let mut fired = 0;
        for now in 0..=end {
            while self
                .tree
                .first_key_value()
                .is_some_and(|((at, _), _)| *at <= now)
            {
                self.tree.pop_first();
                fired += 1;
            }
        }
        fired
    }
}

/// The queue of tokio-util is bound to the real clock, so its timers are waited for and then drained; the others are
/// told the time. It has no deadlines beyond 2.2 years.
pub struct Delays {
    runtime: Runtime,
    start: Instant,
    queue: DelayQueue<u64>,
}

impl Delays {
    pub fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let (start, queue) = runtime.block_on(async { (Instant::now(), DelayQueue::new()) });
        Ok(Self {
            runtime,
            start,
            queue,
        })
    }
}

impl Timers for Delays {
    type Key = delay_queue::Key;

    fn insert(&mut self, at: u64, value: u64) -> delay_queue::Key {
        let _context = self.runtime.enter();
        self.queue
            .insert_at(value, self.start + Duration::from_millis(at))
    }

    fn cancel(&mut self, key: delay_queue::Key) {
        self.queue.try_remove(&key);
    }

    fn wait(&mut self, end: u64) {
        let until = self.start + Duration::from_millis(end + 2);
        self.runtime
            .block_on(async { tokio::time::sleep_until(until).await });
    }

    fn fire(&mut self, _end: u64) -> u64 {
        let mut fired = 0;
        let queue = &mut self.queue;
        // Within a task it gives way after 128 items; here it may go on.
        self.runtime.block_on(tokio::task::unconstrained(async {
            while poll_fn(|context| queue.poll_expired(context))
                .await
                .is_some()
            {
                fired += 1;
            }
        }));
        fired
    }
}
