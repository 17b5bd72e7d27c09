//! Who holds which lock, until when, and who waits for it.
//!
//! ```text
//! free ──acquire──► held ──release | term over──► the longest waiting holds it, or free
//!                     └─renew─┘
//! ```
//!
//! Invariants
//! - A lock has one holder at a time, and each hold has a fence greater than all before it.
//! - A term runs on the monotonic clock from when the request arrived, which is later than when the holder sent it, and a
//!   hundredth longer: the holder stops believing in its hold before anyone else gets it.
//! - Every answer, also to a renewal, is an effect of a commit: a server that lost its session gives and renews nothing.
//! - Who waits is in memory only. After a restart the waiting ask again, and find their hold if they had got it.
//! - Who is gone before the answer reached it leaves the line, and what it was given is free again, unless its owner has
//!   been heard of since: then somebody may believe in the hold.

use std::collections::{BTreeMap, VecDeque};

use crate::fault::{Fault, armed};
use crate::model::{
    Actor, Fence, Limits, LockRef, LockRequest, LockRow, MonoMs, NamespaceName, Now,
};
use crate::wheel;

use super::time::Timer;
use super::{Effect, Engine, Refusal, Reply, Ticket};

#[derive(Debug, Default)]
pub(super) struct Locks {
    held: BTreeMap<LockRef, Held>,
    /// How many a namespace holds.
    counts: BTreeMap<NamespaceName, usize>,
    /// Which lock a hold is of.
    holds: BTreeMap<Fence, LockRef>,
    /// Which lock a caller waits for.
    waiting: BTreeMap<Ticket, LockRef>,
    /// How many wait for locks of a namespace.
    crowds: BTreeMap<NamespaceName, usize>,
    /// Which hold a caller was given, as long as nothing but the answer to it can have told of the hold.
    untold: BTreeMap<Ticket, Fence>,
}

#[derive(Debug)]
struct Held {
    row: LockRow,
    until: MonoMs,
    /// Rings when the term is over.
    timer: wheel::Key,
    queue: VecDeque<Waiter>,
    /// The caller whose answer alone tells of the hold.
    untold: Option<Ticket>,
}

#[derive(Debug)]
struct Waiter {
    asks: Asks,
    timer: wheel::Key,
}

/// Who asks for a lock, and for how long.
#[derive(Debug)]
struct Asks {
    ticket: Ticket,
    actor: Actor,
    owner: String,
    ttl_ms: u64,
}

impl Locks {
    fn enter_line(&mut self, ticket: Ticket, lock: LockRef) {
        *self.crowds.entry(lock.namespace.clone()).or_default() += 1;
        self.waiting.insert(ticket, lock);
    }

    /// The lock that the caller waited for.
    fn leave_line(&mut self, ticket: Ticket) -> Option<LockRef> {
        let lock = self.waiting.remove(&ticket)?;
        if let Some(crowd) = self.crowds.get_mut(&lock.namespace) {
            *crowd -= 1;
            if *crowd == 0 {
                self.crowds.remove(&lock.namespace);
            }
        }
        Some(lock)
    }

    /// The callers who wait.
    pub(super) fn waiting(&self) -> Vec<Ticket> {
        self.waiting.keys().copied().collect()
    }

    pub(super) fn row(&self, lock: &LockRef) -> Option<&LockRow> {
        self.held.get(lock).map(|held| &held.row)
    }
}

/// A hundredth longer than its holder counts, for clocks that do not run alike.
fn term(ttl_ms: u64) -> u64 {
    ttl_ms + ttl_ms / 100 + 1
}

impl Engine {
    /// How many callers wait for each of these locks.
    pub fn lock_waiters(&self, locks: &[LockRef]) -> Vec<usize> {
        let waiting = |lock: &LockRef| self.locks.held.get(lock).map_or(0, |held| held.queue.len());
        locks.iter().map(waiting).collect()
    }

    /// A lock that was held when the last engine ended: its whole term begins anew.
    pub(super) fn revive_lock(&mut self, now: Now, row: LockRow) {
        if !armed(Fault::LockForgotten) {
            self.hold(now, row, VecDeque::new(), None);
        }
    }

    /// Gives the lock to whoever asks; `None` when the caller waits for it.
    pub(super) fn acquire_lock(
        &mut self,
        now: Now,
        ticket: Ticket,
        actor: &Actor,
        request: LockRequest,
    ) -> Option<Result<Reply, Refusal>> {
        if let Err(fault) = request.check() {
            return Some(Err(Refusal::Invalid(fault)));
        }
        let Some(held) = self.locks.held.get_mut(&request.lock) else {
            return Some(self.acquire_free(now, ticket, actor, request));
        };
        if held.row.owner == request.owner {
            let fence = held.row.fence;
            return Some(self.renew_lock(now, &request.lock, fence, Some(request.ttl_ms)));
        }
        if request.wait_ms == 0 {
            return Some(Err(Refusal::LockHeld(Box::new(held.row.clone()))));
        }
        self.wait_for_lock(now, ticket, actor, request)
    }

    fn acquire_free(
        &mut self,
        now: Now,
        ticket: Ticket,
        actor: &Actor,
        request: LockRequest,
    ) -> Result<Reply, Refusal> {
        let namespace = &request.lock.namespace;
        if self.locks.counts.get(namespace).copied().unwrap_or(0) >= Limits::LOCKS {
            return Err(Refusal::TooManyLocks(Limits::LOCKS));
        }
        let asks = Asks {
            ticket,
            actor: actor.clone(),
            owner: request.owner,
            ttl_ms: request.ttl_ms,
        };
        let row = self.give_lock(now, request.lock, asks, VecDeque::new());
        Ok(Reply::Lock(Box::new(row)))
    }

    fn wait_for_lock(
        &mut self,
        now: Now,
        ticket: Ticket,
        actor: &Actor,
        request: LockRequest,
    ) -> Option<Result<Reply, Refusal>> {
        let most = Limits::LOCK_WAITERS_NAMESPACE;
        let crowd = self.locks.crowds.get(&request.lock.namespace);
        let crowded = crowd.is_some_and(|crowd| *crowd >= most);
        let at = now.mono.plus(request.wait_ms);
        let held = self.locks.held.get_mut(&request.lock)?;
        let same = |waiter: &&mut Waiter| waiter.asks.owner == request.owner;
        let is_new = held.queue.iter_mut().find(same).is_none();
        if is_new && held.queue.len() >= Limits::LOCK_WAITERS {
            return Some(Err(Refusal::TooManyWaiters(Limits::LOCK_WAITERS)));
        }
        if is_new && crowded {
            return Some(Err(Refusal::TooManyWaitersInNamespace(most)));
        }
        let waiter = Waiter {
            asks: Asks {
                ticket,
                actor: actor.clone(),
                owner: request.owner.clone(),
                ttl_ms: request.ttl_ms,
            },
            timer: self.wheel.insert(at.0, Timer::LockWait(ticket)),
        };
        let row = held.row.clone();
        match held.queue.iter_mut().find(same) {
            // The one before has lost its connection: the place in the queue is kept.
            Some(place) => {
                let gone = std::mem::replace(place, waiter);
                self.wheel.cancel(gone.timer);
                let ticket = gone.asks.ticket;
                self.locks.leave_line(ticket);
                self.effect(Effect::Reply {
                    ticket,
                    reply: Err(Refusal::LockHeld(Box::new(row))),
                });
            }
            None => held.queue.push_back(waiter),
        }
        self.locks.enter_line(ticket, request.lock);
        None
    }

    /// Lets the holder of `fence` hold on for another term, which may be longer than the one before, but not shorter: a
    /// request that comes late, or once more, must not end a hold that its holder believes in.
    pub(super) fn renew_lock(
        &mut self,
        now: Now,
        lock: &LockRef,
        fence: Fence,
        ttl_ms: Option<u64>,
    ) -> Result<Reply, Refusal> {
        let held = self.locks.held.get_mut(lock);
        let Some(held) = held.filter(|held| held.row.fence == fence) else {
            return Err(Refusal::LockLost(lock.clone()));
        };
        if let Some(ticket) = held.untold.take() {
            self.locks.untold.remove(&ticket);
        }
        if let Some(ttl_ms) = ttl_ms {
            crate::model::check_ttl(ttl_ms).map_err(Refusal::Invalid)?;
            if ttl_ms > held.row.ttl_ms || armed(Fault::LockShortened) && ttl_ms != held.row.ttl_ms
            {
                held.row.ttl_ms = ttl_ms;
                self.building.lock(lock);
            }
        }
        if !armed(Fault::LockNotProlonged) {
            held.until = now.mono.plus(term(held.row.ttl_ms));
            self.wheel.cancel(held.timer);
            held.timer = self.wheel.insert(held.until.0, Timer::LockOver(fence));
        }
        let row = held.row.clone();
        self.building.want_renewal();
        Ok(Reply::Lock(Box::new(row)))
    }

    /// Ends a hold: that of `fence`, or whichever there is.
    pub(super) fn release_lock(
        &mut self,
        now: Now,
        lock: &LockRef,
        fence: Option<Fence>,
    ) -> Result<LockRow, Refusal> {
        let row = self.locks.row(lock);
        let mine = |row: &&LockRow| fence.is_none_or(|fence| fence == row.fence);
        let Some(row) = row.filter(mine).cloned() else {
            return Err(Refusal::LockLost(lock.clone()));
        };
        self.free_lock(now, lock);
        Ok(row)
    }

    /// The term of a hold is over, unless it was renewed after the timer rang.
    pub(super) fn lock_over(&mut self, now: Now, fence: Fence) {
        let over = |held: &Held| held.until <= now.mono;
        if let Some(lock) = self.locks.holds.get(&fence).cloned()
            && self.locks.held.get(&lock).is_some_and(over)
        {
            self.free_lock(now, &lock);
        }
    }

    /// The caller has waited for as long as it wanted to.
    pub(super) fn lock_wait_over(&mut self, ticket: Ticket) {
        let Some(lock) = self.locks.leave_line(ticket) else {
            return;
        };
        if let Some(held) = self.locks.held.get_mut(&lock) {
            held.queue.retain(|waiter| waiter.asks.ticket != ticket);
            let row = Box::new(held.row.clone());
            self.effect(Effect::Reply {
                ticket,
                reply: Err(Refusal::LockHeld(row)),
            });
        }
    }

    /// The caller is gone and has not been answered.
    pub(super) fn withdraw_from_locks(&mut self, now: Now, ticket: Ticket) {
        if armed(Fault::GoneWaitsOn) {
            return;
        }
        if let Some(lock) = self.locks.leave_line(ticket)
            && let Some(held) = self.locks.held.get_mut(&lock)
        {
            let gone = |waiter: &Waiter| waiter.asks.ticket == ticket;
            let place = held.queue.iter().position(gone);
            if let Some(waiter) = place.and_then(|place| held.queue.remove(place)) {
                self.wheel.cancel(waiter.timer);
            }
        }
        if let Some(fence) = self.locks.untold.get(&ticket)
            && let Some(lock) = self.locks.holds.get(fence).cloned()
        {
            self.free_lock(now, &lock);
        }
    }

    fn free_lock(&mut self, now: Now, lock: &LockRef) {
        let Some(mut held) = self.locks.held.remove(lock) else {
            return;
        };
        self.wheel.cancel(held.timer);
        self.locks.holds.remove(&held.row.fence);
        if let Some(ticket) = held.untold {
            self.locks.untold.remove(&ticket);
        }
        if let Some(count) = self.locks.counts.get_mut(&lock.namespace) {
            *count -= 1;
            if *count == 0 {
                self.locks.counts.remove(&lock.namespace);
            }
        }
        self.building.lock(lock);
        let Some(next) = held.queue.pop_front() else {
            return;
        };
        self.wheel.cancel(next.timer);
        let ticket = next.asks.ticket;
        self.locks.leave_line(ticket);
        let row = self.give_lock(now, lock.clone(), next.asks, held.queue);
        self.effect(Effect::Reply {
            ticket,
            reply: Ok(Reply::Lock(Box::new(row))),
        });
    }

    fn give_lock(
        &mut self,
        now: Now,
        lock: LockRef,
        asks: Asks,
        queue: VecDeque<Waiter>,
    ) -> LockRow {
        let fence = match armed(Fault::LockFenceReused) {
            true => Fence(u64::from(lock.segment().0) + 1),
            false => self.segments.fence(lock.segment(), now.wall),
        };
        let row = LockRow {
            fence,
            lock,
            owner: asks.owner,
            ttl_ms: asks.ttl_ms,
            acquired: now.wall,
            actor: asks.actor,
        };
        self.building.lock(&row.lock);
        self.locks.untold.insert(asks.ticket, fence);
        self.hold(now, row.clone(), queue, Some(asks.ticket));
        row
    }

    fn hold(&mut self, now: Now, row: LockRow, queue: VecDeque<Waiter>, untold: Option<Ticket>) {
        let until = now.mono.plus(term(row.ttl_ms));
        let timer = self.wheel.insert(until.0, Timer::LockOver(row.fence));
        let lock = row.lock.clone();
        self.locks.holds.insert(row.fence, lock.clone());
        *self.locks.counts.entry(lock.namespace.clone()).or_default() += 1;
        let held = Held {
            row,
            until,
            timer,
            queue,
            untold,
        };
        self.locks.held.insert(lock, held);
    }
}
