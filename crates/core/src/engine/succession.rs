//! From one engine to the next in the same session: segments come or go while the server works on.
//!
//! An engine lives with the segments that it was booted with. When its share changes, everything that it decided is made
//! durable, one commit moves the segments, and an engine for the new share is booted from the store. What no store has goes
//! from hand to hand: the workers with their streams and credit, what is held against their names, and which attempts have
//! begun but are not written as running. So workers and callers notice a pause and nothing else.
//!
//! Leases of what stays run on as they did. What comes was given out by another server: it is waited for as long as one of
//! its assignments may be on its way (`worker/heartbeat.rs`).

use crate::change::ChangeSet;
use crate::model::{Now, ProcessId, RunState, SegmentRow, SegmentSet, SessionId, WallMs};

use super::fleet::Fleet;
use super::health::Health;
use super::{AttemptRef, Batch, Boot, Engine, Options, Ticket, take_over};

/// A change of the share that an engine has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer {
    /// Rows of segments that nobody has whose session holds.
    pub take: Vec<SegmentRow>,
    /// Sessions that have ended and are to be revoked.
    pub revoke: Vec<SessionId>,
    /// What belongs to another server.
    pub give: SegmentSet,
}

impl Transfer {
    pub fn is_nothing(&self) -> bool {
        self.take.is_empty() && self.revoke.is_empty() && self.give.is_empty()
    }
}

/// What an engine leaves to the next one of its session.
#[derive(Debug, Default)]
pub struct Legacy {
    pub(super) fleet: Fleet,
    pub(super) health: Health,
    begun: Vec<(ProcessId, AttemptRef, WallMs)>,
    /// Callers who wait for a lock: they have to ask again.
    pub waiting: Vec<Ticket>,
}

impl Engine {
    /// Closes the batch that was being built without giving anything out: after it nothing is left to commit, unless
    /// something is stepped.
    ///
    /// Call it only when no commit is in flight.
    pub fn take_last_batch(&mut self, now: Now) -> Option<Batch> {
        let now = self.follow_clock(now);
        let due = self.building.needs_commit();
        if !due && self.building.effects.is_empty() {
            return None;
        }
        Some(self.close_batch(now, due))
    }

    /// The change set that moves segments.
    ///
    /// Call it when every batch is acknowledged and the last one has been taken; the engine is not to be stepped until the
    /// outcome is known, and goes on when nothing came of it.
    pub fn moves(&self, change: &Transfer) -> ChangeSet {
        assert_eq!(
            self.taken, self.acknowledged,
            "whoever hands over has nothing in flight"
        );
        let mut changes = take_over(
            self.session,
            self.taken + 1,
            self.options.session_ms,
            change.revoke.clone(),
            change.take.clone(),
        );
        let given = self.segments.given_up().into_iter();
        let given = given.filter(|(id, _)| change.give.contains(*id));
        changes.segments.extend(given);
        changes
    }

    /// What it owns once that is durable.
    pub fn owns_after(&self, change: &Transfer) -> SegmentSet {
        let taken = change.take.iter().map(|row| row.id).collect();
        self.segments.owned().without(&change.give).union(&taken)
    }

    /// What the engine leaves to the next one when `given` is gone; it is of no use after it.
    pub fn bequeath(&mut self, given: &SegmentSet) -> Legacy {
        let kept = self.segments.owned().without(given);
        let running = self
            .runs
            .all()
            .filter(|it| it.run.state == RunState::Running);
        let begun = running.filter_map(|resident| {
            let run = &resident.run;
            let attempt = run.current_attempt()?;
            let named = AttemptRef {
                run: run.id,
                attempt: attempt.number,
                fence: attempt.fence,
            };
            let started = attempt
                .started
                .filter(|_| kept.contains(run.id.segment()))?;
            Some((attempt.process, named, started))
        });
        let begun = begun.collect();
        let mut fleet = std::mem::take(&mut self.fleet);
        fleet.leave_engine(&kept);
        Legacy {
            fleet,
            health: std::mem::take(&mut self.health),
            begun,
            waiting: self.locks.waiting(),
        }
    }

    /// An engine that goes on where one of the same session handed over.
    pub fn succeed(options: Options, now: Now, boot: Boot, legacy: Legacy) -> Self {
        let begun = legacy.begun;
        let mut engine = Self::boot_with(options, now, boot, legacy.fleet, legacy.health);
        let now = engine.now;
        for (process, attempt, at) in begun {
            engine.start_attempt(now, process, attempt, at);
        }
        engine.drop_strays();
        let processes: Vec<ProcessId> = engine.fleet.all().map(|(id, _)| *id).collect();
        for process in processes {
            engine.keep_maintenance(process);
            engine.arm_lease(now, process);
        }
        engine
    }

    /// Attempts that workers hold are those of runs that are active here.
    fn drop_strays(&mut self) {
        let runs = &self.runs;
        self.fleet.retain_attempts(|run, held| {
            let current = runs.get(run).and_then(|it| it.run.current_attempt());
            current.is_some_and(|it| it.number == held.attempt && it.fence == held.fence)
        });
    }
}
