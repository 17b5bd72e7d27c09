//! The runs held in memory: ready or leased. Parked and finished ones are in the store only.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fault::{Fault, armed};
use crate::model::{
    Actor, Counters, DeadLetter, NamespaceName, Now, Origin, ProcessId, Reason, Run, RunId,
    RunState, SegmentId, Standing, Transition,
};

use super::jobs::{Compiled, Job};
use super::lines::{LineIx, Rank, Waiting};
use super::marks::Marks;
use super::pens::PenId;
use super::turns::TurnRef;
use super::{AttemptRef, Effect, Engine};

#[derive(Debug)]
pub(super) struct Resident {
    /// Boxed: it goes from here into a batch, and its place in the tree moves often.
    pub(super) run: Box<Run>,
    /// The job version it is pinned to.
    pub(super) compiled: Arc<Compiled>,
    /// Where it waits, or waited before it was leased, when limits concern it.
    pub(super) pen: Option<PenId>,
    /// It holds a place at each gate of its pen.
    pub(super) holds: bool,
}

#[derive(Debug, Default)]
pub(super) struct Runs {
    resident: BTreeMap<RunId, Resident>,
    /// Runs that left memory, ended or put back, with the batch that says so: a load older than that brings them as they
    /// were, and must not.
    pub(super) left: Marks<RunId, ()>,
}

impl Runs {
    pub(super) fn get(&self, id: RunId) -> Option<&Resident> {
        self.resident.get(&id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Resident> {
        self.resident.values()
    }

    #[cfg(test)]
    pub(super) fn ids(&self) -> Vec<RunId> {
        self.resident.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.resident.len()
    }

    pub(super) fn expect(&self, id: RunId) -> &Resident {
        self.resident
            .get(&id)
            .unwrap_or_else(|| panic!("{id} is not resident"))
    }

    pub(super) fn expect_mut(&mut self, id: RunId) -> &mut Resident {
        self.resident
            .get_mut(&id)
            .unwrap_or_else(|| panic!("{id} is not resident"))
    }

    pub(super) fn insert(&mut self, resident: Resident) {
        let id = resident.run.id;
        assert!(
            self.resident.insert(id, resident).is_none(),
            "{id} is resident twice"
        );
    }

    /// The run whose current attempt is exactly this one.
    pub(super) fn with_attempt(&mut self, attempt: AttemptRef) -> Option<&mut Resident> {
        self.resident.get_mut(&attempt.run).filter(|resident| {
            let current = resident.run.current_attempt();
            current.is_some_and(|current| {
                current.number == attempt.attempt && current.fence == attempt.fence
            })
        })
    }

    /// The same, if it is `process` that the attempt was given to: no worker has a say in another's work.
    pub(super) fn held_by(
        &mut self,
        process: ProcessId,
        attempt: AttemptRef,
    ) -> Option<&mut Resident> {
        self.with_attempt(attempt).filter(|resident| {
            let current = resident.run.current_attempt();
            current.is_some_and(|current| current.process == process)
        })
    }
}

/// A run of `job` that has just been made, due at once; whoever makes it adds what is particular.
pub(super) fn fresh_run(id: RunId, job: &Job, origin: Origin, actor: Actor, now: Now) -> Run {
    let version = &job.compiled.version;
    Run {
        id,
        namespace: job.row.namespace.clone(),
        job: job.row.id,
        job_version: version.version,
        state: RunState::Pending,
        origin,
        actor,
        nominal: None,
        due: now.wall,
        created: now.wall,
        retention: version.spec.retention(),
        params: None,
        idempotency_key: None,
        parent_run: None,
        root_run: None,
        rerun_of: None,
        backfill: None,
        shard: None,
        not_before: None,
        start_by: None,
        parked: None,
        standing: Standing::of(origin),
        progress: None,
        checkpoint: None,
        cancel: None,
        attempts: Vec::new(),
        transitions: vec![Transition {
            to: RunState::Pending,
            at: now.wall,
            reason: Reason::Created,
            attempt: 0,
        }],
        result: None,
        error: None,
    }
}

impl Engine {
    /// Makes a run and puts it in line, or parks it when the line is longer than memory should hold. One that is not due
    /// yet waits.
    pub(super) fn create_run(&mut self, mut run: Run, compiled: &Arc<Compiled>) {
        self.note_made(&run);
        run.start_by = compiled.start_timeout_ms.map(|ms| {
            let from = run.due.max(run.created);
            from.plus(i64::try_from(ms).unwrap_or(i64::MAX))
        });
        if run.standing.queued {
            self.queue_run(run);
            return;
        }
        if run.ready() > self.now.wall {
            self.delay_run(run, compiled);
            return;
        }
        let gates = self.gates_of(&run, compiled);
        if !gates.is_empty() {
            self.create_penned(run, compiled, &gates);
            return;
        }
        let line = self.line_of(compiled, Rank::of(&run));
        if self.lines.must_park(line) {
            let seq = self.building_seq();
            run.parked = Some(self.lines.line(line).key().to_owned());
            self.lines.parked(line, seq, run.id);
            self.park_new(run);
        } else {
            let waiting = Waiting::of(&run);
            self.building.run_inserted(&run);
            self.hold_run(run, Arc::clone(compiled));
            self.lines.push(line, waiting);
        }
    }

    /// A run that was just made goes into the store instead of memory. The backfill of one may ask for it before it is
    /// there: an answer from before that is dropped.
    pub(super) fn park_new(&mut self, run: Run) {
        if run.backfill.is_some() {
            let seq = self.building_seq();
            self.runs.left.put(run.id, seq, ());
        }
        self.building.run_parked(run);
    }

    /// Makes a run that has failed.
    pub(super) fn create_failed(
        &mut self,
        now: Now,
        run: Run,
        compiled: &Arc<Compiled>,
        (reason, error): (Reason, String),
    ) {
        let id = run.id;
        self.note_made(&run);
        self.building.run_inserted(&run);
        self.hold_run(run, Arc::clone(compiled));
        self.end_run(now, id, RunState::Failed, reason, Some(error));
    }

    fn note_made(&mut self, run: &Run) {
        self.count(run.id.segment(), &run.namespace, |counters| {
            counters.created += 1
        });
        self.effect(Effect::RunChanged { run: run.id });
        let scheduled = run.origin == Origin::Schedule;
        if scheduled || run.standing.counts {
            let job = self.jobs.expect_mut(run.job);
            job.live_scheduled += u32::from(scheduled);
            job.tallies.add(&run.standing, 1);
            self.mark_job(run.job);
        }
    }

    /// Ends a resident run for ever: it leaves memory and moves to the history.
    pub(super) fn end_run(
        &mut self,
        now: Now,
        id: RunId,
        state: RunState,
        reason: Reason,
        error: Option<String>,
    ) {
        let seq = self.building_seq();
        self.free_places(id);
        self.leave_pen(id);
        let Some(Resident {
            mut run, compiled, ..
        }) = self.runs.resident.remove(&id)
        else {
            panic!("{id} ended but is not resident");
        };
        run.transition(state, now.wall, reason);
        run.error = error;
        run.parked = None;
        self.runs.left.put(id, seq, ());
        self.count(id.segment(), &run.namespace, |counters| match state {
            RunState::Completed if armed(Fault::EndNotCounted) => {}
            RunState::Completed => counters.completed += 1,
            RunState::Failed => counters.failed += 1,
            RunState::Cancelled => counters.cancelled += 1,
            RunState::Pending | RunState::Scheduled | RunState::Running => {
                panic!("{id} ended in {}", state.as_str())
            }
        });
        // A failed run may be made once more from where it was.
        if run.checkpoint.is_some() && state != RunState::Failed {
            run.checkpoint = None;
            self.building.no_checkpoint(id);
        }
        self.let_go(now, &run);
        self.tell_breaker(now, &run, state, reason);
        if state == RunState::Failed && compiled.retry.dead_letter == DeadLetter::Keep {
            self.keep_letter(&run);
        }
        match run.backfill {
            Some(mark) => self.backfilled_run_ended(now, &run, mark),
            None => self.note_ending(now, &run),
        }
        self.building.run_finished(run);
        self.effect(Effect::RunChanged { run: id });
    }

    /// Ends a resident run that waits: it leaves its line too.
    pub(super) fn end_waiting(
        &mut self,
        now: Now,
        id: RunId,
        state: RunState,
        reason: Reason,
        error: Option<String>,
    ) {
        self.leave_line(id);
        self.end_run(now, id, state, reason, error);
    }

    /// Takes a run into memory, which keeps its job there.
    pub(super) fn hold_run(&mut self, run: Run, compiled: Arc<Compiled>) {
        self.jobs.expect_mut(run.job).resident_runs += 1;
        let forgotten = run.parked.is_some() && armed(Fault::ParkedStartsForgotten);
        if let Some(by) = run.must_start_by().filter(|_| !forgotten) {
            self.watch_start(run.id, by);
        }
        self.runs.insert(Resident {
            run: Box::new(run),
            compiled,
            pen: None,
            holds: false,
        });
    }

    /// Parks a resident run that is ready: its line is longer than memory should hold.
    pub(super) fn park_resident(&mut self, id: RunId, line: LineIx) {
        let seq = self.building_seq();
        let key = self.lines.line(line).key().to_owned();
        self.lines.parked(line, seq, id);
        self.put_back(id, key);
    }

    /// A resident run that waits leaves memory for the store, where it lies under `key`.
    pub(super) fn put_back(&mut self, id: RunId, key: String) {
        let seq = self.building_seq();
        self.leave_pen(id);
        let Some(Resident { mut run, .. }) = self.runs.resident.remove(&id) else {
            panic!("{id} is parked but is not resident");
        };
        run.parked = Some(key);
        self.runs.left.put(id, seq, ());
        self.forget_start(id, run.start_by);
        self.jobs.expect_mut(run.job).resident_runs -= 1;
        self.mark_job(run.job);
        self.consider(run.job);
        self.building.run_put_back(run);
    }

    /// What the end of a run means for its job.
    fn let_go(&mut self, now: Now, run: &Run) {
        self.forget_delay(run.id);
        self.forget_start(run.id, run.start_by);
        let job = self.jobs.expect_mut(run.job);
        assert!(job.resident_runs > 0, "{} was not counted", run.id);
        job.resident_runs -= 1;
        if run.standing.counts {
            let counted = job.tallies.take(&run.standing);
            assert!(counted, "{} was not counted for its overlap", run.id);
            let waiting = job.tallies.of(run.standing.key.as_deref()).queued > 0;
            let queue = TurnRef::of(run);
            self.mark_job(run.job);
            if run.standing.queued {
                self.forget_contenders(&queue);
            }
            if waiting {
                self.tend_queue(queue, 0);
            }
        }
        let job = self.jobs.expect_mut(run.job);
        if run.origin == Origin::Schedule {
            assert!(job.live_scheduled > 0, "{} was not counted as live", run.id);
            job.live_scheduled -= 1;
            let last = job.live_scheduled == 0 && job.after_end_ms().is_some();
            self.mark_job(run.job);
            if last {
                self.plan_after_end(now, run.job);
                self.arm_job(run.job);
            }
        }
        self.consider(run.job);
    }

    fn count(
        &mut self,
        segment: SegmentId,
        namespace: &NamespaceName,
        change: impl FnOnce(&mut Counters),
    ) {
        change(
            self.counters
                .entry((segment, namespace.clone()))
                .or_default(),
        );
        self.building.counters(segment, namespace);
    }
}
