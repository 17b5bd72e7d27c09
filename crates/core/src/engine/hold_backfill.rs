//! Whether the job of a backfill takes one more run, and what a backfill does while it does not: it waits, and no time of it
//! is lost.
//!
//! The breaker is always asked, unless the backfill was forced; the overlap only when the backfill obeys it. What would make
//! a due time vanish, fail, stand in the queue or stop another run makes the backfill wait instead: due times come and go, but
//! its times can be made at any moment. So those that stand in the queue go before it, and under `cancel_old` nobody stops
//! for it.
//!
//! One that waits is looked at again when anything of its job changed, at the end of the step that changed it; while a
//! cooldown lasts, the job rests (`rests.rs`).

use crate::fault::{Fault, armed};
use crate::model::{
    BackfillHold, BackfillId, JobId, Limits, Now, Obedience, Origin, Pass, Standing,
};

use super::Engine;
use super::admit_run::Admission;
use super::backfills::Backfills;

impl Backfills {
    /// Something of the job changed.
    pub(super) fn stir(&mut self, job: JobId) {
        if self.held.contains_key(&job) && !armed(Fault::BackfillNotWoken) {
            self.stirred.insert(job);
        }
    }
}

impl Engine {
    /// The standing of the next run of a backfill; `None` when it has to wait, and then it does.
    pub(super) fn next_standing(&mut self, now: Now, id: BackfillId) -> Option<Standing> {
        let held = self.backfills.open.get(&id)?;
        let (job, row) = (held.row.job, &held.row);
        let standing = match row.overlap {
            Obedience::Obey if !armed(Fault::BackfillNotCounted) => {
                held.compiled.standing(row.params.as_ref())
            }
            _ => Standing::of(Origin::Backfill),
        };
        let forced = row.force || armed(Fault::BackfillPassesBreaker);
        let hold = match self.admit(now.wall, job, &standing, forced) {
            Admission::Go if self.has_key_for(job, &standing) => None,
            Admission::Shut(pass) => {
                if let Pass::Cooling(until) = pass {
                    self.rest_backfills(job, until);
                }
                Some(BackfillHold::Breaker)
            }
            _ => Some(BackfillHold::Overlap),
        };
        match hold {
            Some(hold) => {
                let waiting = self.backfills.held.entry(job).or_default();
                waiting.insert(id);
                self.tell_hold(id, Some(hold));
                None
            }
            None => {
                self.release_backfill(id);
                Some(standing)
            }
        }
    }

    /// Whether memory has room for the key of one more run.
    pub(super) fn has_key_for(&self, id: JobId, standing: &Standing) -> bool {
        let keyed = &self.jobs.expect(id).tallies.keyed;
        let known = |key: &String| keyed.contains_key(key);
        keyed.len() < Limits::OVERLAP_KEYS || standing.key.as_ref().is_none_or(known)
    }

    /// A backfill does not wait for its job, or not any more.
    pub(super) fn release_backfill(&mut self, id: BackfillId) {
        let Some(job) = self.backfills.get(id).map(|row| row.job) else {
            return;
        };
        if let Some(waiting) = self.backfills.held.get_mut(&job) {
            waiting.remove(&id);
            if waiting.is_empty() {
                self.backfills.held.remove(&job);
            }
        }
        self.tell_hold(id, None);
    }

    fn tell_hold(&mut self, id: BackfillId, hold: Option<BackfillHold>) {
        if let Some(held) = self.backfills.open.get_mut(&id)
            && held.row.held != hold
        {
            held.row.held = hold;
            self.note_backfill(id);
        }
    }

    /// Looks again at the backfills that wait for a job that something changed for.
    pub(super) fn advance_stirred(&mut self, now: Now) {
        while !self.building.is_nearly_full()
            && let Some(job) = self.backfills.stirred.pop_first()
        {
            let waiting = self.backfills.held.get(&job).cloned();
            for id in waiting.unwrap_or_default() {
                self.advance_backfill(now, id);
            }
            // What they made is no news to those that still wait.
            self.backfills.stirred.remove(&job);
        }
    }
}
