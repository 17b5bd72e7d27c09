//! The tap on what was committed: facts, in the order in which they became true, for whoever in the server listens.
//!
//! ```text
//! driver: commit done ─► Outlet (keeps a reference, counts bytes) ─► thread: change set ─► facts ─► ring ◄─ Subscription
//! ```
//!
//! How to listen:
//!
//! ```ignore
//! let mut facts = handle.tap().subscribe(Interest::Committed); // from now on; `subscribe_after(seq)` resumes
//! while let Some(heard) = facts.next().await {
//!     match heard {
//!         Heard::Facts(chunk) => chunk.facts.iter().for_each(|fact| …), // numbered from chunk.first
//!         Heard::Missed(n) => …, // n facts are gone: read from the store what matters
//!     }
//! }
//! ```
//!
//! What a run's facts say: one when it was made (`made`, perhaps assigned already), and one for each commit that changed
//! it. Short runs go from assigned to ended without RUNNING between: RUNNING is committed alone only once an attempt is
//! half a second old, and otherwise with the end. An ended run's fact has the whole story: times, attempts, outcome and
//! the beginning of its error. To judge lateness compare `started` (or the time of the fact while it is not) with `due`.
//!
//! Invariants:
//! - the driver never waits here: it hands over a reference to the change set that it has anyway. What the thread has not
//!   read yet is bounded in bytes, the ring in facts; beyond either, facts are missed and their number is known;
//! - a running server always has a listener, its metrics, so change sets are handed over all the time. Where there is none
//!   nothing is handed over; facts are still numbered, so that whoever resumes sees the hole;
//! - a fact is published after its commit, never before; a commit whose outcome stays unknown counts as missed;
//! - all listeners share one ring: ten cost no more memory than one, and a slow one holds nothing back.
//!
//! Where several servers share a store, each tells the others its facts while somebody there [wants](Wanting) to hear of them
//! ([`cluster`](crate::cluster)); they lie in the same ring as *foreign* ones. Whoever counts, notifies or tells other servers hears only what this server committed; streams
//! of changes hear all. What another server did not get across is missed by those alone.
//!
//! Facts about workers come from a look at the fleet twice a second while someone wants them, not from commits.

mod digest;
mod fact;
mod outlet;
mod ring;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use fact::{
    BackfillFact, BreakerFact, BreakerTurn, CalendarFact, Chunk, Fact, JobDeed, JobFact, JobKey,
    QueueFact, RunEnd, RunFact, UnfiredFact, WorkerDeed, WorkerFact,
};
pub(super) use outlet::{Outlet, Told};

use ring::Ring;
use tokio::sync::watch;

/// Facts that are kept for those who come late or come back.
pub const RING_FACTS: usize = 65_536;

/// What is wanted beside facts of commits, because it costs the engine a look at its fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    Committed,
    CommittedAndWorkers,
}

/// What a listener hears next.
#[derive(Clone, Debug)]
pub enum Heard {
    Facts(Arc<Chunk>),
    /// So many facts are gone for this listener.
    Missed(u64),
}

/// How many listen; read by the driver before every batch.
#[derive(Default)]
pub(super) struct Listeners {
    all: AtomicUsize,
    of_workers: AtomicUsize,
}

impl Listeners {
    pub(super) fn any(&self) -> bool {
        self.all.load(Ordering::SeqCst) > 0
    }

    pub(super) fn any_of_workers(&self) -> bool {
        self.of_workers.load(Ordering::SeqCst) > 0
    }
}

/// Where to listen.
#[derive(Clone)]
pub struct Tap {
    ring: Arc<Ring>,
    listeners: Arc<Listeners>,
    /// How many want to hear of other servers.
    wanting: watch::Sender<usize>,
}

/// Somebody who wants to hear what other servers commit, as long as this lives. They tell nothing while there is nobody.
pub struct Wanting(watch::Sender<usize>);

impl Drop for Wanting {
    fn drop(&mut self) {
        self.0.send_if_modified(|count| {
            *count -= 1;
            *count == 0
        });
    }
}

impl Tap {
    /// Makes the tap and the driver's end of it, and starts the thread between them, which ends with the driver.
    pub(super) fn start() -> std::io::Result<(Self, Outlet)> {
        let tap = Self {
            ring: Arc::new(Ring::new(RING_FACTS)),
            listeners: Arc::default(),
            wanting: watch::channel(0).0,
        };
        let outlet = Outlet::start(Arc::clone(&tap.ring), Arc::clone(&tap.listeners))?;
        Ok((tap, outlet))
    }

    /// Listens from now on to what this server commits.
    pub fn subscribe(&self, interest: Interest) -> Subscription {
        // First counted, then placed: facts of the next commit are not missed.
        let listening = Listening::new(&self.listeners, interest);
        Subscription {
            ring: Arc::clone(&self.ring),
            next: self.ring.next(),
            of_others: None,
            _listening: listening,
        }
    }

    /// Listens from now on, also to what other servers tell. Until they do, which takes a moment where nobody has listened
    /// to them before, something may be missed: that is said when they begin.
    pub fn subscribe_to_all(&self, interest: Interest) -> Subscription {
        Subscription {
            of_others: Some(self.want_others()),
            ..self.subscribe(interest)
        }
    }

    /// Has other servers tell what they commit.
    pub(super) fn want_others(&self) -> Wanting {
        self.wanting.send_if_modified(|count| {
            *count += 1;
            *count == 1
        });
        Wanting(self.wanting.clone())
    }

    /// How many want to hear of other servers; it changes when somebody does, and when nobody does any more.
    pub(super) fn wanting(&self) -> watch::Receiver<usize> {
        self.wanting.subscribe()
    }

    /// Listens to all again after fact `seq`; what is no longer kept is told as missed.
    pub fn subscribe_after(&self, seq: u64, interest: Interest) -> Subscription {
        let mut subscription = self.subscribe_to_all(interest);
        subscription.next = (seq.saturating_add(1)).min(subscription.next);
        subscription
    }

    /// Another server tells facts of its own.
    pub(super) fn hear(&self, facts: Vec<Fact>) {
        self.ring.publish_foreign(facts);
    }

    /// Another server has told, or may have told, facts that did not come here.
    pub(super) fn lose(&self, count: u64) {
        self.ring.lose_foreign(count.max(1));
    }

    /// The number that the next fact will have.
    pub fn next(&self) -> u64 {
        self.ring.next()
    }
}

/// One listener. It holds a place in the ring and nothing else.
pub struct Subscription {
    ring: Arc<Ring>,
    next: u64,
    /// `None` when only what this server commits is wanted.
    of_others: Option<Wanting>,
    _listening: Listening,
}

impl Subscription {
    /// Waits for what comes next; `None` when the driver has ended.
    pub async fn next(&mut self) -> Option<Heard> {
        let mut published = self.ring.published();
        loop {
            published.borrow_and_update();
            if let Some(heard) = self.ready() {
                return Some(heard);
            }
            if self.ring.is_closed() || published.changed().await.is_err() {
                return None;
            }
        }
    }

    /// The number of the last fact that was heard or missed.
    pub fn place(&self) -> u64 {
        self.next - 1
    }

    /// What is there already.
    pub fn ready(&mut self) -> Option<Heard> {
        loop {
            let heard = self.ring.after(self.next)?;
            self.next = match &heard {
                Heard::Facts(chunk) => chunk.end(),
                Heard::Missed(count) => self.next + count,
            };
            match &heard {
                Heard::Facts(chunk) if chunk.foreign && self.of_others.is_none() => {}
                Heard::Facts(chunk) if chunk.lost > 0 => return Some(Heard::Missed(chunk.lost)),
                _ => return Some(heard),
            }
        }
    }
}

/// Counts a listener while it lives.
struct Listening {
    listeners: Arc<Listeners>,
    interest: Interest,
}

impl Listening {
    fn new(listeners: &Arc<Listeners>, interest: Interest) -> Self {
        listeners.all.fetch_add(1, Ordering::SeqCst);
        if interest == Interest::CommittedAndWorkers {
            listeners.of_workers.fetch_add(1, Ordering::SeqCst);
        }
        Self {
            listeners: Arc::clone(listeners),
            interest,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.listeners.all.fetch_sub(1, Ordering::SeqCst);
        if self.interest == Interest::CommittedAndWorkers {
            self.listeners.of_workers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
