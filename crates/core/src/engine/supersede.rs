//! `overlap: cancel_old`: those that are under way make room for those that wait.
//!
//! The newest win, counted from when they are ready: of those that wait and are ready as many stay as there are places, and
//! the older ones go. A look at the queue (`turns.rs`) says how many of those without a place are ready. Then those under way
//! are read too, and as many of the oldest are asked to stop. They keep their place until their worker has confirmed or
//! their lease has ended, so the limit holds all the time. For a run that is to start later nobody stops and nobody goes:
//! the queue rests until that is ready. Where the clock is set back between the two looks, the queue is looked at again.

use std::collections::BTreeSet;

use crate::fault::{Fault, armed};
use crate::model::{CancelRequest, Now, OnFull, Reason, Run, RunId, RunState, WallMs};

use super::turns::{Contest, TurnRef};
use super::{Engine, LoadKey};

/// Queues of which those under way are read at the same time.
const READS: usize = 64;

impl Engine {
    /// Those of a queue, of which a look saw these in order, that go because newer ones that are ready wait too.
    pub(super) fn spare(
        &self,
        now: Now,
        tag: u64,
        queue: &TurnRef,
        seen: &[(RunId, WallMs)],
    ) -> BTreeSet<RunId> {
        let job = self.jobs.get(queue.job);
        let Some(job) = job.filter(|job| self.stops_old(queue) && !job.row.deleted) else {
            return BTreeSet::new();
        };
        let ready = |(id, at): &&(RunId, WallMs)| {
            let late = *at > now.wall && !armed(Fault::LaterOnesPush);
            !late && self.waits_in_queue(*id, tag)
        };
        let ready: Vec<RunId> = seen.iter().filter(ready).map(|(id, _)| *id).collect();
        let spare = ready
            .len()
            .saturating_sub(job.compiled.overlap.limit as usize);
        ready.into_iter().take(spare).collect()
    }

    /// A look at a queue saw these, each with when it is ready.
    pub(super) fn contend(
        &mut self,
        now: Now,
        tag: u64,
        queue: &TurnRef,
        seen: &[(RunId, WallMs)],
    ) {
        self.forget_contenders(queue);
        if self.todo_of(queue).is_none_or(|todo| todo.contend == 0) {
            return;
        }
        let waiting = seen.iter().filter(|(id, _)| self.waits_in_queue(*id, tag));
        let (ready, later): (Vec<WallMs>, Vec<WallMs>) =
            waiting.map(|(_, at)| *at).partition(|at| *at <= now.wall);
        if let Some(next) = later.into_iter().min() {
            self.rest_queue(queue.clone(), next);
        }
        if let Some(since) = ready.iter().max().copied() {
            let ready = u32::try_from(ready.len()).unwrap_or(u32::MAX);
            let contest = Contest { ready, since };
            self.turns.contested.insert(queue.clone(), contest);
        }
    }

    /// Whether those under way stop for those that wait in the queue.
    pub(super) fn stops_old(&self, queue: &TurnRef) -> bool {
        let job = self.jobs.get(queue.job);
        job.is_some_and(|job| job.compiled.overlap.on_full == OnFull::CancelOld)
    }

    /// What was seen of a queue does not hold any more: it is looked at again.
    pub(super) fn forget_contenders(&mut self, queue: &TurnRef) {
        self.turns.contested.remove(queue);
        if let Some(contest) = self.turns.contending.get_mut(queue) {
            *contest = Contest::default();
        }
    }

    /// Reads those under way of the queues in which some that are ready wait for them to stop.
    pub(super) fn read_contested(&mut self) {
        let (contested, contending) = (&self.turns.contested, &self.turns.contending);
        let room = READS.saturating_sub(contending.len());
        let idle = contested.keys().filter(|it| !contending.contains_key(it));
        for queue in idle.take(room).cloned().collect::<Vec<_>>() {
            if let Some(contest) = self.turns.contested.remove(&queue) {
                self.turns.contending.insert(queue.clone(), contest);
                let TurnRef { job, key } = queue;
                self.want(LoadKey::Live { job, key });
            }
        }
    }

    /// Whether a run that a load of batch `tag` brought as waiting for its turn does so still.
    fn waits_in_queue(&self, id: RunId, tag: u64) -> bool {
        match self.runs.get(id) {
            Some(resident) => resident.run.standing.queued,
            None => !self.left_since(id, tag),
        }
    }

    /// How many of those under way have to stop: one for each that waits, is ready and has no place.
    fn to_stop(&self, queue: &TurnRef, ready: u32) -> usize {
        let Some(todo) = self.todo_of(queue) else {
            return 0;
        };
        todo.contend.min(ready.saturating_sub(todo.free)) as usize
    }

    /// The runs of a key that are under way, oldest first: as many are asked to stop as newer ones wait.
    pub(super) fn take_live(&mut self, now: Now, tag: u64, queue: TurnRef, runs: Vec<Run>) {
        let contest = self.turns.contending.remove(&queue).unwrap_or_default();
        if contest.since > now.wall {
            self.tend_queue(queue, tag);
            return;
        }
        let Some(job) = self.jobs.get(queue.job) else {
            return;
        };
        let places = job.tallies.of(queue.key.as_deref());
        let stop = self.to_stop(&queue, contest.ready);
        let (mut seen, mut stopping, mut going) = (0, 0, Vec::new());
        for row in runs {
            let run = match self.runs.get(row.id) {
                Some(resident) => &resident.run,
                None if self.left_since(row.id, tag) => continue,
                None => &row,
            };
            if run.standing.queued {
                continue;
            }
            seen += 1;
            match run.cancel {
                Some(_) => stopping += 1,
                None => going.push(row),
            }
        }
        let all = seen >= places.live;
        for row in going.into_iter().take(stop.saturating_sub(stopping)) {
            self.supersede(now, row, tag);
        }
        let seq = self.decided();
        if !all && stop > 0 && seq > tag {
            self.tend_queue(queue, seq);
        }
    }

    /// Asks a run to stop because a newer one waits for its place.
    fn supersede(&mut self, now: Now, mut row: Run, tag: u64) {
        let id = row.id;
        if self.runs.get(id).is_none() {
            if row.state != RunState::Pending || self.left_since(id, tag) {
                return;
            }
            row.parked = None;
            let compiled = self.pinned(row.job, row.job_version);
            self.hold_run(row, compiled);
        }
        let actor = self.options.server.clone();
        self.runs.expect_mut(id).run.standing.superseded = true;
        let request = CancelRequest {
            at: now.wall,
            actor,
        };
        let words = "a newer run of its job took its place before it started";
        self.stop_run(now, id, request, (Reason::Superseded, words.to_owned()));
    }
}
