//! The load every layout gets: the same runs, in the same batches, from the same seed.
//!
//! Time is virtual: `runs_per_second` only decides how many ids lie between a run's creation and its end.
//! Most runs end within seconds. A share ends late, spread evenly on a log scale between two minutes and two
//! hours, which is far behind the right edge of anything ordered by run id.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// 2026-07-01 on the run id's clock, which starts in 2025.
const START_MS: i64 = 47_174_400_000;
const LATE_FROM_MS: f64 = 120_000.0;
const LATE_SPAN: f64 = 60.0;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    pub id: i64,
    pub job: u32,
}

impl Run {
    pub fn created_ms(self) -> i64 {
        self.id >> 22
    }
}

/// What one transaction holds.
pub struct Batch {
    pub seq: i64,
    pub now_ms: i64,
    pub created: Vec<Run>,
    /// Ordered by run id, because that is what a store would do before it writes.
    pub finished: Vec<Run>,
    /// Runs with a smaller id are past their retention.
    pub cutoff_id: i64,
}

#[derive(Clone)]
pub struct Load {
    pub jobs: u32,
    pub keep_rows: u64,
    /// Mean of an exponential distribution.
    pub short_ms: f64,
    pub late_percent: f64,
    pub runs_per_second: u64,
    pub seed: u64,
}

pub struct Workload {
    load: Load,
    random: Random,
    made: u64,
    seq: i64,
    pending: BinaryHeap<Reverse<(i64, Run)>>,
}

impl Workload {
    pub fn new(load: Load) -> Self {
        let random = Random(load.seed);
        Self {
            load,
            random,
            made: 0,
            seq: 0,
            pending: BinaryHeap::new(),
        }
    }

    pub fn made(&self) -> u64 {
        self.made
    }

    pub fn next_batch(&mut self) -> Batch {
        let size = 1_000 + self.random.below(1_001);
        let now_ms = self.clock(self.made + size);
        let mut finished = Vec::with_capacity(2_000);
        while let Some(&Reverse((due, run))) = self.pending.peek() {
            if due > now_ms {
                break;
            }
            self.pending.pop();
            finished.push(run);
        }
        finished.sort_unstable();
        let mut created: Vec<Run> = (0..size).map(|_| self.create()).collect();
        created.sort_unstable();
        self.seq += 1;
        let keep_ms = (self.load.keep_rows * 1_000 / self.load.runs_per_second) as i64;
        let cutoff_ms = (now_ms - keep_ms).max(START_MS);
        Batch {
            seq: self.seq,
            now_ms,
            created,
            finished,
            cutoff_id: cutoff_ms << 22,
        }
    }

    fn create(&mut self) -> Run {
        let created_ms = self.clock(self.made);
        let job = self.random.skewed(self.load.jobs);
        let segment = (u64::from(job).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as i64;
        let counter = (self.made % 4_096) as i64;
        let run = Run {
            id: created_ms << 22 | segment << 12 | counter,
            job,
        };
        let late = self.random.unit() * 100.0 < self.load.late_percent;
        let lasts_ms = if late {
            LATE_FROM_MS * LATE_SPAN.powf(self.random.unit())
        } else {
            -self.load.short_ms * (1.0 - self.random.unit()).ln()
        };
        self.pending
            .push(Reverse((created_ms + 1 + lasts_ms as i64, run)));
        self.made += 1;
        run
    }

    fn clock(&self, made: u64) -> i64 {
        START_MS + (made * 1_000 / self.load.runs_per_second) as i64
    }
}

/// SplitMix64: small, seeded, the same on every machine.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Log-uniform over `0..bound`, close to Zipf with exponent one.
    pub fn skewed(&mut self, bound: u32) -> u32 {
        (f64::from(bound).powf(self.unit()) as u32)
            .saturating_sub(1)
            .min(bound - 1)
    }
}
