//! Where the output of attempts that may still write ends, and who waits for more of it.
//!
//! Bounded: past the bound the tails of ended attempts go first, the longest silent ones before the others. A tail that
//! went is missed only by an attempt that writes again, whose log then begins anew, and by the log of an attempt that
//! was lost with its worker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drumtower_core::model::{LogLocator, RunId};
use tokio::sync::watch;

use super::{Place, Source};

const MAX_TAILS: usize = 65_536;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The last record; `None` while everything that came was dropped.
    pub last: Option<(u32, u64)>,
    pub next_seq: u64,
    pub bytes: u64,
    pub truncated: bool,
    pub ended: bool,
    /// Grows with every write, to find the longest silent.
    pub touched: u64,
}

impl Tail {
    pub fn place(&self) -> Option<Place> {
        self.last.map(|(file, offset)| Place { file, offset })
    }
}

#[derive(Default)]
struct Shared {
    tails: BTreeMap<Source, Tail>,
    watched: BTreeMap<RunId, watch::Sender<u64>>,
    clock: u64,
}

#[derive(Clone, Default)]
pub(super) struct Tails(Arc<Mutex<Shared>>);

impl Tails {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, source: Source) -> Option<Tail> {
        self.lock().tails.get(&source).copied()
    }

    /// Takes over tails that have become true, and tells who waits for those runs.
    pub fn advance(&self, changed: BTreeMap<Source, Tail>) {
        let mut shared = self.lock();
        for (source, mut tail) in changed {
            shared.clock += 1;
            tail.touched = shared.clock;
            tail.ended |= shared.tails.get(&source).is_some_and(|known| known.ended);
            shared.tails.insert(source, tail);
            if let Some(sender) = shared.watched.get(&source.run) {
                sender.send_modify(|count| *count += 1);
            }
        }
        if shared.tails.len() > MAX_TAILS {
            shared.shrink();
        }
    }

    pub fn locator(&self, source: Source) -> Option<LogLocator> {
        let tail = self.get(source)?;
        let (file, offset) = tail.last?;
        Some(LogLocator {
            file,
            offset,
            bytes: tail.bytes,
            truncated: tail.truncated,
            home: None,
        })
    }

    pub fn ended(&self, source: Source) {
        if let Some(tail) = self.lock().tails.get_mut(&source) {
            tail.ended = true;
        }
    }

    pub fn watch(&self, run: RunId) -> LogWatch {
        let changes = self
            .lock()
            .watched
            .entry(run)
            .or_insert_with(|| watch::channel(0).0)
            .subscribe();
        LogWatch {
            run,
            changes,
            tails: self.clone(),
        }
    }
}

impl Shared {
    fn shrink(&mut self) {
        let mut order: Vec<(bool, u64, Source)> = self
            .tails
            .iter()
            .map(|(source, tail)| (!tail.ended, tail.touched, *source))
            .collect();
        order.sort_unstable();
        for (_, _, source) in order.into_iter().take(MAX_TAILS / 4) {
            self.tails.remove(&source);
        }
    }
}

/// A wait for output of one run.
pub struct LogWatch {
    run: RunId,
    changes: watch::Receiver<u64>,
    tails: Tails,
}

impl LogWatch {
    /// Returns when there was output since the last call, or at once if there was before.
    pub async fn changed(&mut self) {
        let _ = self.changes.changed().await;
    }
}

impl Drop for LogWatch {
    fn drop(&mut self) {
        let mut shared = self.tails.lock();
        if shared
            .watched
            .get(&self.run)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            shared.watched.remove(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_the_bound_the_ended_and_the_silent_go_first() {
        let tails = Tails::default();
        let source = |number: usize| Source {
            run: RunId(number as u64),
            attempt: 1,
        };
        for number in 0..MAX_TAILS {
            tails.advance(BTreeMap::from([(source(number), Tail::default())]));
        }
        tails.ended(source(MAX_TAILS - 1));
        tails.advance(BTreeMap::from([(source(0), Tail::default())]));
        tails.advance(BTreeMap::from([(source(MAX_TAILS), Tail::default())]));
        assert!(tails.get(source(0)).is_some(), "written to a moment ago");
        assert!(tails.get(source(1)).is_none(), "silent for longest");
        assert!(tails.get(source(MAX_TAILS - 1)).is_none(), "ended");
        assert!(tails.get(source(MAX_TAILS)).is_some());
    }

    #[test]
    fn nobody_waits_for_ever_in_the_table() {
        let tails = Tails::default();
        let (one, other) = (tails.watch(RunId(1)), tails.watch(RunId(1)));
        drop(one);
        assert_eq!(tails.lock().watched.len(), 1);
        drop(other);
        assert!(tails.lock().watched.is_empty());
    }
}
