//! The open loop: triggers at the offered rate, whatever the server answers.
//!
//! One thread keeps the time and hands out batches, each stamped with the moment it is meant for; connections, a thread
//! each, send them. When all connections wait for answers, batches queue up and their stamps grow old: a slow server
//! cannot slow its own load down, and the delays show it. A batch that is refused for overload is not repeated; it counts
//! as refused. With several servers the connections are theirs in turn.

mod connection;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};
use drumtower_core::model::{Limits, RunId};

use super::interrupt;
use super::worker::wall_us;
use crate::connect::Target;
use crate::failure::{Failure, Result};

pub use connection::Connection;

/// How triggers are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pack {
    /// What is due every few milliseconds together.
    Batch,
    /// Each in a request of its own.
    Single,
}

impl Pack {
    fn tick(self) -> Duration {
        match self {
            Self::Batch => Duration::from_millis(4),
            Self::Single => Duration::from_millis(1),
        }
    }

    fn most(self) -> u64 {
        match self {
            Self::Batch => Limits::BATCH_RUNS as u64,
            Self::Single => 1,
        }
    }

    /// As many as keep up with the server. A request of its own waits for its commit, so more of them share one.
    pub fn connections(self) -> u32 {
        match self {
            Self::Batch => 8,
            Self::Single => 64,
        }
    }
}

pub struct Load {
    pub targets: Vec<Target>,
    pub pack: Pack,
    pub rate: u32,
    pub duration: Duration,
    pub connections: u32,
    /// Names of the jobs that are triggered in turn.
    pub jobs: Vec<String>,
    pub journals: PathBuf,
}

/// When the offer began and ended, in microseconds of the wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    pub from_us: u64,
    pub to_us: u64,
}

/// What became of the offer.
#[derive(Debug, Default)]
pub struct Triggered {
    pub window: Window,
    pub sent: u64,
    /// Runs that the server said yes to, and the moment each was meant for, in order of run.
    pub runs: Vec<(RunId, u64)>,
    pub refused: u64,
    pub unknown: u64,
}

/// Triggers that belong together, with numbers from `first` on.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub meant_us: u64,
    pub first: u64,
    pub count: u64,
}

impl Batch {
    fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.count
    }
}

/// The load while it lasts.
pub struct Offering {
    answered: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    pacing: JoinHandle<Window>,
    sending: Vec<JoinHandle<Result<Triggered>>>,
}

impl Load {
    pub fn start(self) -> Result<Offering> {
        let (batches, waiting) = unbounded();
        let answered = Arc::new(AtomicU64::new(0));
        let mut sending = Vec::new();
        let targets = self.targets.iter().cycle();
        for (_, target) in (0..self.connections).zip(targets) {
            let mut connection = Connection::new(target, self.pack, &self.jobs, &self.journals)?;
            connection.count_into(Arc::clone(&answered));
            let waiting = waiting.clone();
            sending.push(std::thread::spawn(move || {
                for batch in waiting {
                    connection.send(&batch)?;
                }
                Ok(connection.done())
            }));
        }
        let over = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&over);
        let pacing =
            std::thread::spawn(move || pace(self.pack, self.rate, self.duration, &batches, &cut));
        Ok(Offering {
            answered,
            over,
            pacing,
            sending,
        })
    }
}

impl Offering {
    pub fn is_finished(&self) -> bool {
        self.pacing.is_finished() && self.sending.iter().all(JoinHandle::is_finished)
    }

    /// Ends the offer before its time.
    pub fn cut_short(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    pub fn finish(self) -> Result<Triggered> {
        let panicked = |_| Failure::failed("a thread of the load panicked");
        let window = self.pacing.join().map_err(panicked)?;
        let mut all = Triggered {
            window,
            ..Triggered::default()
        };
        for sending in self.sending {
            let part = sending.join().map_err(panicked)??;
            all.sent += part.sent;
            all.refused += part.refused;
            all.unknown += part.unknown;
            all.runs.extend(part.runs);
        }
        all.runs.sort_unstable();
        Ok(all)
    }
}

/// Hands out batches until the time is over; closing the channel ends the connections.
fn pace(
    pack: Pack,
    rate: u32,
    duration: Duration,
    batches: &Sender<Batch>,
    over: &AtomicBool,
) -> Window {
    let (begun, from_us) = (Instant::now(), wall_us());
    let mut offered = 0;
    let mut tick = Duration::ZERO;
    while tick < duration && !over.load(Ordering::Relaxed) && interrupt::check().is_ok() {
        tick = (tick + pack.tick()).min(duration);
        std::thread::sleep((begun + tick).saturating_duration_since(Instant::now()));
        let meant_us = from_us + tick.as_micros() as u64;
        let due = (tick.as_secs_f64() * f64::from(rate)) as u64;
        while offered < due {
            let count = (due - offered).min(pack.most());
            // The receivers outlive this thread unless all of them failed, which they report themselves.
            let _ = batches.send(Batch {
                meant_us,
                first: offered,
                count,
            });
            offered += count;
        }
    }
    Window {
        from_us,
        to_us: from_us + tick.as_micros() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paced(pack: Pack) -> (Window, Vec<Batch>) {
        let (batches, waiting) = unbounded();
        let over = AtomicBool::new(false);
        let window = pace(pack, 100_000, Duration::from_millis(50), &batches, &over);
        drop(batches);
        (window, waiting.iter().collect())
    }

    #[test]
    fn the_pace_offers_exactly_the_rate_and_stamps_each_tick() {
        let (window, all) = paced(Pack::Batch);
        assert_eq!(all.iter().map(|batch| batch.count).sum::<u64>(), 5000);
        assert_eq!(all[0].meant_us, window.from_us + 4000);
        assert_eq!(all.last().map(|batch| batch.meant_us), Some(window.to_us));
        for pair in all.windows(2) {
            assert_eq!(pair[1].first, pair[0].first + pair[0].count);
        }
    }

    #[test]
    fn single_triggers_are_handed_out_one_by_one() {
        let (window, all) = paced(Pack::Single);
        assert_eq!(all.len(), 5000);
        assert!(all.iter().all(|batch| batch.count == 1));
        assert_eq!(all[0].meant_us, window.from_us + 1000);
    }
}
