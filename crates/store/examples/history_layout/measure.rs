//! What the kernel says this process did, and order statistics.
//!
//! On a shared machine wall time holds the neighbours too, so CPU time and the time spent runnable but not
//! running are read beside it.

use std::fs;
use std::ops::Sub;
use std::time::Instant;

#[derive(Clone, Copy)]
pub struct Counters {
    at: Instant,
    cpu_ns: u64,
    queued_ns: u64,
    written_bytes: u64,
}

#[derive(Clone, Copy, Default)]
pub struct Spent {
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub queued_ns: u64,
    pub written_bytes: u64,
}

impl Counters {
    pub fn read() -> Self {
        let sched = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut sched = sched
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0));
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let written = io
            .lines()
            .find_map(|line| line.strip_prefix("write_bytes: "));
        Self {
            at: Instant::now(),
            cpu_ns: sched.next().unwrap_or(0),
            queued_ns: sched.next().unwrap_or(0),
            written_bytes: written.and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
        }
    }
}

impl Sub for Counters {
    type Output = Spent;

    fn sub(self, before: Self) -> Spent {
        Spent {
            wall_ns: (self.at - before.at).as_nanos() as u64,
            cpu_ns: self.cpu_ns - before.cpu_ns,
            queued_ns: self.queued_ns - before.queued_ns,
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }
}

impl Spent {
    pub fn add(&mut self, more: Spent) {
        self.wall_ns += more.wall_ns;
        self.cpu_ns += more.cpu_ns;
        self.queued_ns += more.queued_ns;
        self.written_bytes += more.written_bytes;
    }
}

/// The value below which `share` of the values lie; sorts them.
pub fn quantile(values: &mut [u64], share: f64) -> u64 {
    values.sort_unstable();
    let at = (values.len() as f64 * share) as usize;
    values
        .get(at.min(values.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}
