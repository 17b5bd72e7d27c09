//! Wrong tokens: whoever shows many is answered slower and slower.
//!
//! Counted by address (an IPv6 network of 64 bits counts as one), loopback included. The first few cost nothing; then each
//! answer waits twice as long as the one before, up to a bound. A right token is never delayed, wherever it comes from, and
//! does not forgive the wrong ones either. What is remembered is bounded, and so are the answers that wait: past that there
//! is a refusal at once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// Mistakes happen.
const FREE: u32 = 5;
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// An address that was quiet for this long begins anew.
const FORGET_AFTER: Duration = Duration::from_secs(15 * 60);
const ADDRESSES: usize = 10_000;
/// Answers that wait at once.
const WAITING: usize = 256;
const LOG_EVERY: Duration = Duration::from_secs(60);

/// What was seen of wrong tokens. Clones share it.
#[derive(Clone)]
pub struct Guesses {
    shared: Arc<Shared>,
}

struct Shared {
    memory: Mutex<Memory>,
    waiting: Semaphore,
    total: AtomicU64,
    began: Instant,
}

/// Too many answers wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    pub retry_after_s: u64,
}

impl Default for Guesses {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                memory: Mutex::default(),
                waiting: Semaphore::new(WAITING),
                total: AtomicU64::new(0),
                began: Instant::now(),
            }),
        }
    }
}

impl Guesses {
    /// Notes a wrong token and waits as long as its answer has to.
    pub async fn wrong(&self, from: IpAddr) -> Result<(), TooMany> {
        self.shared.total.fetch_add(1, Ordering::Relaxed);
        let (delay, report) = {
            let mut memory = self
                .shared
                .memory
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let now = self.shared.began.elapsed();
            (memory.note(network(from), now), memory.report(now))
        };
        if let Some(count) = report {
            tracing::warn!(count, last_from = %from, "wrong tokens were shown");
        }
        if delay.is_zero() {
            return Ok(());
        }
        let Ok(_place) = self.shared.waiting.try_acquire() else {
            return Err(TooMany {
                retry_after_s: delay.as_secs().max(1),
            });
        };
        tokio::time::sleep(delay).await;
        Ok(())
    }

    /// How many wrong tokens were shown since the start.
    pub fn total(&self) -> u64 {
        self.shared.total.load(Ordering::Relaxed)
    }
}

/// What counts as one address: a network of IPv6 holds more of them than could be remembered.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

/// Times are since the start, given by the caller.
#[derive(Default)]
struct Memory {
    seen: HashMap<IpAddr, Seen>,
    unreported: u64,
    reported_at: Option<Duration>,
}

#[derive(Clone, Copy)]
struct Seen {
    wrong: u32,
    last: Duration,
}

impl Memory {
    /// Counts one and says how long its answer waits.
    fn note(&mut self, from: IpAddr, now: Duration) -> Duration {
        self.unreported += 1;
        if !self.seen.contains_key(&from) && self.seen.len() >= ADDRESSES {
            self.forget(now);
        }
        let seen = self.seen.entry(from).or_insert(Seen {
            wrong: 0,
            last: now,
        });
        if now.saturating_sub(seen.last) >= FORGET_AFTER {
            seen.wrong = 0;
        }
        seen.wrong = seen.wrong.saturating_add(1);
        seen.last = now;
        delay(seen.wrong)
    }

    /// Makes room: those that were quiet for long, and if that is none, the older tenth.
    fn forget(&mut self, now: Duration) {
        self.seen
            .retain(|_, seen| now.saturating_sub(seen.last) < FORGET_AFTER);
        if self.seen.len() < ADDRESSES {
            return;
        }
        let mut times: Vec<Duration> = self.seen.values().map(|seen| seen.last).collect();
        let (_, limit, _) = times.select_nth_unstable(ADDRESSES / 10);
        let limit = *limit;
        self.seen.retain(|_, seen| seen.last > limit);
    }

    /// How many there were since the last report, if it is time for another.
    fn report(&mut self, now: Duration) -> Option<u64> {
        let due = self
            .reported_at
            .is_none_or(|at| now.saturating_sub(at) >= LOG_EVERY);
        if !due {
            return None;
        }
        self.reported_at = Some(now);
        Some(std::mem::take(&mut self.unreported))
    }
}

fn delay(wrong: u32) -> Duration {
    match wrong.checked_sub(FREE + 1) {
        None => Duration::ZERO,
        Some(doublings) => SHORTEST.saturating_mul(1 << doublings.min(16)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_are_free_and_then_each_waits_twice_as_long_up_to_a_bound() {
        let mut memory = Memory::default();
        let waits: Vec<u128> = (0..14)
            .map(|second| memory.note(address(1), at(second)).as_millis())
            .collect();
        let expected = [
            0, 0, 0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000,
        ];
        assert_eq!(waits, expected);
        assert_eq!(delay(u32::MAX), LONGEST);
    }

    #[test]
    fn others_are_not_delayed_and_quiet_ones_begin_anew() {
        let mut memory = Memory::default();
        (0..20).for_each(|second| {
            memory.note(address(1), at(second));
        });
        assert_eq!(memory.note(address(2), at(20)), Duration::ZERO);
        assert_eq!(memory.note(address(1), at(21)), LONGEST);
        assert_eq!(
            memory.note(address(1), at(21) + FORGET_AFTER),
            Duration::ZERO
        );
    }

    #[test]
    fn memory_is_bounded_and_keeps_the_newest() {
        let mut memory = Memory::default();
        for number in 0..50_000 {
            memory.note(
                address(number),
                at(1) + Duration::from_millis(number.into()),
            );
            assert!(memory.seen.len() <= ADDRESSES);
        }
        assert!(memory.seen.contains_key(&address(49_999)));
        assert!(!memory.seen.contains_key(&address(0)));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_and_a_mapped_address_as_what_it_maps() {
        let same = ["2001:db8::1", "2001:db8::ffff:1"].map(|text| network(text.parse().unwrap()));
        assert_eq!(same[0], same[1]);
        let mapped = network("::ffff:10.0.0.1".parse().unwrap());
        assert_eq!(mapped, "10.0.0.1".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn a_report_comes_once_a_minute_with_what_was_missed() {
        let mut memory = Memory::default();
        let mut told = Vec::new();
        for second in 0..130 {
            memory.note(address(1), at(second));
            told.extend(memory.report(at(second)));
        }
        assert_eq!(told, [1, 60, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_wait_are_bounded() {
        let guesses = Guesses::default();
        for _ in 0..FREE {
            assert_eq!(guesses.wrong(address(1)).await, Ok(()));
        }
        let waiting: Vec<_> = (0..WAITING)
            .map(|_| {
                let guesses = guesses.clone();
                tokio::spawn(async move { guesses.wrong(address(1)).await })
            })
            .collect();
        while guesses.shared.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(guesses.wrong(address(1)).await.is_err());
        for answer in waiting {
            assert_eq!(answer.await.unwrap(), Ok(()));
        }
        assert_eq!(guesses.wrong(address(1)).await, Ok(()));
        assert_eq!(guesses.total(), u64::from(FREE) + WAITING as u64 + 2);
    }
}
