//! Reads of the store beside the loop, on a few threads.
//!
//! A page of the times of a backfill may take long to be read, and as many backfills may be under way as people ask for. Such
//! pages have their turn one after another, so that all threads but one are left for the rows that runs and callers wait for.

use std::sync::Arc;

use drumtower_core::engine::{LoadKey, LoadRequest};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// How many loads are read at the same time.
pub(super) const THREADS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    Long,
}

impl Length {
    pub(super) fn of(request: &LoadRequest) -> Self {
        let times = |key: &LoadKey| matches!(key, LoadKey::Times(_));
        match request.keys.iter().any(times) {
            true => Self::Long,
            false => Self::Short,
        }
    }
}

pub(super) struct Reads {
    /// Whose turn it is among the long ones.
    turn: Arc<Semaphore>,
}

impl Reads {
    pub(super) fn new() -> Self {
        Self {
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Reads on one of the runtime's threads, as soon as there is one for it.
    pub(super) fn start(&self, length: Length, read: impl FnOnce() + Send + 'static) {
        if length == Length::Short {
            spawn_blocking(read);
            return;
        }
        let turn = Arc::clone(&self.turn);
        tokio::spawn(async move {
            let _turn = turn.acquire_owned().await;
            let _ = spawn_blocking(read).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn long_reads_leave_threads_to_short_ones() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(THREADS)
            .build()
            .expect("a runtime");
        let (began, begins) = tokio::sync::mpsc::unbounded_channel();
        let gates = runtime.block_on(async {
            let reads = Reads::new();
            let mut gates = Vec::new();
            for number in 0..2 * THREADS {
                let (open, gate) = channel::<()>();
                let began = began.clone();
                reads.start(Length::Long, move || {
                    let _ = began.send(number);
                    let _ = gate.recv();
                });
                gates.push(open);
            }
            let (tell, told) = tokio::sync::oneshot::channel();
            reads.start(Length::Short, move || {
                let _ = tell.send(());
            });
            let short = tokio::time::timeout(Duration::from_secs(20), told).await;
            (gates, begins, short)
        });
        let (gates, mut begins, short) = gates;
        // Whatever came of it, the threads are let go.
        let count = gates.len();
        let one_by_one = runtime.block_on(async {
            for (number, gate) in gates.into_iter().enumerate() {
                let next = begins.recv().await;
                if next != Some(number) || begins.try_recv().is_ok() {
                    return number;
                }
                drop(gate);
            }
            count
        });
        assert!(matches!(short, Ok(Ok(()))), "the short one waited");
        assert_eq!(one_by_one, count, "each in its turn");
    }
}
