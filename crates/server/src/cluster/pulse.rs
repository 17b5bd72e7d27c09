//! Whether the servers that owe an answer are there.
//!
//! An answer may take as long as the other needs, for some requests wait there, and output that is followed comes when it comes.
//! But a machine that is gone, frozen or cut off says nothing for as long as the system goes on sending, which is a quarter of
//! an hour. So while anybody awaits something of a server, that one is asked again and again whether it is there, over a
//! connection of its own. It is asked once for all who wait, however many they are, and not at all when nobody does.
//!
//! One that is silent twice in a row is given up by whoever waits: a busy machine may miss one. Who comes to wait later is told
//! by the next silence.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// How often whoever owes an answer is asked whether it is there.
const EVERY: Duration = Duration::from_secs(3);
/// How soon it has to say so.
const WITHIN: Duration = Duration::from_secs(2);
/// Silent so often in a row, it is given up.
const SILENT_TIMES: u32 = 2;

/// How often each has been silent in a row, for those that somebody waits for.
type Beats = BTreeMap<String, watch::Sender<u32>>;

#[derive(Clone)]
pub struct Pulses {
    beats: Arc<Mutex<Beats>>,
    every: Duration,
}

impl Default for Pulses {
    fn default() -> Self {
        Self::new(EVERY)
    }
}

impl Pulses {
    pub fn new(every: Duration) -> Self {
        Self {
            beats: Arc::default(),
            every,
        }
    }

    /// Until the server does not even say that it is there; `ask` asks it for a sign of life.
    pub async fn silent<F>(self, server: String, ask: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let mut beat = self.follow(server, ask);
        // The one who asks is there as long as anybody follows.
        while beat.changed().await.is_ok() {
            if *beat.borrow_and_update() >= SILENT_TIMES {
                return;
            }
        }
    }

    fn follow<F>(
        &self,
        server: String,
        ask: impl Fn() -> F + Send + 'static,
    ) -> watch::Receiver<u32>
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let mut beats = self.beats();
        if let Some(beat) = beats.get(&server) {
            return beat.subscribe();
        }
        let (beat, follower) = watch::channel(0);
        beats.insert(server.clone(), beat.clone());
        tokio::spawn(self.clone().watch(server, beat, ask));
        follower
    }

    async fn watch<F: Future<Output = bool>>(
        self,
        server: String,
        beat: watch::Sender<u32>,
        ask: impl Fn() -> F,
    ) {
        loop {
            tokio::time::sleep(self.every).await;
            {
                // Under the lock: whoever comes to follow finds either this one or none.
                let mut beats = self.beats();
                if beat.is_closed() {
                    beats.remove(&server);
                    return;
                }
            }
            let asked = tokio::time::timeout(WITHIN, ask()).await;
            let silent = *beat.borrow();
            beat.send_replace(match asked.unwrap_or(false) {
                true => 0,
                false => silent.saturating_add(1),
            });
        }
    }

    fn beats(&self) -> MutexGuard<'_, Beats> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    #[tokio::test(start_paused = true)]
    async fn one_asks_for_all_who_wait_and_nobody_when_none_does() {
        let pulses = Pulses::new(TICK);
        let asked = Arc::new(AtomicUsize::new(0));
        let wait = || {
            let asked = Arc::clone(&asked);
            let ask = move || {
                asked.fetch_add(1, Ordering::Relaxed);
                async { true }
            };
            tokio::spawn(pulses.clone().silent("a".to_owned(), ask))
        };
        let waiting: Vec<_> = (0..100).map(|_| wait()).collect();
        tokio::time::sleep(TICK * 10).await;
        let count = asked.load(Ordering::Relaxed);
        assert!((1..=10).contains(&count), "{count}");
        for one in waiting {
            assert!(!one.is_finished());
            one.abort();
        }
        tokio::time::sleep(TICK * 2).await;
        let count = asked.load(Ordering::Relaxed);
        tokio::time::sleep(TICK * 10).await;
        assert_eq!(asked.load(Ordering::Relaxed), count);
        assert!(pulses.beats().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_silent_twice_is_given_up_by_all_who_wait() {
        let pulses = Pulses::new(TICK);
        let wait = || pulses.clone().silent("a".to_owned(), || async { false });
        tokio::join!(wait(), wait());
        // Also by who comes later.
        wait().await;
        // One of two is not enough.
        let turn = Arc::new(AtomicUsize::new(0));
        let ask = move || {
            let answers = turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
            async move { answers }
        };
        let waited = tokio::time::timeout(TICK * 50, pulses.silent("b".to_owned(), ask)).await;
        assert!(waited.is_err());
    }
}
