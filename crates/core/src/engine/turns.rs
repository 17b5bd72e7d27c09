//! Runs that wait for their turn because as many runs of their job, or key, are under way as may be.
//!
//! They lie in the store only, parked under the queue's key, in the order of their ids; memory knows how many there are from
//! the job's tallies. A queue is looked at when a run of it has ended or something else changed what it may do: then as
//! many rows are read from its head as have their turn, or have to go. What is read may be older than what was decided, so
//! a queue is looked at again until nothing is left to do.
//!
//! Who has to stop for those that wait under `cancel_old` is decided in `supersede.rs`, from what a look at the queue saw.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::fault::{Fault, armed};
use crate::model::{
    BreakerRow, CancelRequest, JobId, Keep, Limits, Now, OnFull, Pass, Reason, Run, RunId,
    RunState, WallMs,
};

use super::enter_line::Enter;
use super::jobs::Job;
use super::{Engine, LOAD_ROWS, LoadKey};

/// Rows of one queue that are read at once.
const ROWS: usize = 100;
/// Queues that are read at the same time.
const READS: usize = 64;

/// One queue: that of a job, or of one key of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TurnRef {
    pub(super) job: JobId,
    pub(super) key: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Queues whose head is to be read, once this batch is visible.
    wanted: BTreeMap<TurnRef, u64>,
    reading: BTreeSet<TurnRef>,
    /// Queues of which those under way are to be read, because some that are ready wait for them to stop.
    pub(super) contested: BTreeMap<TurnRef, Contest>,
    /// The same, being read; nobody stops for what was seen before the queue changed.
    pub(super) contending: BTreeMap<TurnRef, Contest>,
}

/// What a look at a queue saw of those that wait for others to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contest {
    /// So many are ready.
    pub(super) ready: u32,
    /// From when on: before it, by a clock that was set back, not all of them are.
    pub(super) since: WallMs,
}

impl Turns {
    pub(super) fn want(&mut self, queue: TurnRef, seq: u64) {
        let entry = self.wanted.entry(queue).or_default();
        *entry = seq.max(*entry);
    }
}

/// What there is to do for a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Todo {
    /// So many at its head have to go.
    drop: u32,
    /// So many after them have their turn.
    promote: u32,
    /// So many after those have no place, and one is made for each that is ready.
    pub(super) contend: u32,
    /// So many places are not taken.
    pub(super) free: u32,
    /// The breaker holds it back until then.
    rest: Option<WallMs>,
}

impl TurnRef {
    /// What its runs are parked under.
    fn park_key(&self) -> String {
        let job = self.job.0;
        match &self.key {
            None => format!("queue/{job}"),
            Some(key) => format!("queue/{job}/{key}"),
        }
    }

    /// Reads a park key back. A namespace may be called `queue`, but no number follows it.
    pub(super) fn from_park_key(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("queue/")?;
        let (job, key) = match rest.split_once('/') {
            Some((job, key)) => (job, Some(key.to_owned())),
            None => (rest, None),
        };
        let job = JobId(job.parse().ok()?);
        Some(Self { job, key })
    }

    pub(super) fn of(run: &Run) -> Self {
        Self {
            job: run.job,
            key: run.standing.key.clone(),
        }
    }
}

/// What there is to do, as the job's definition and its tallies say.
fn todo(job: &Job, key: Option<&str>, now: WallMs) -> Todo {
    let places = job.tallies.of(key);
    if job.row.deleted {
        return Todo {
            drop: places.queued,
            ..Todo::default()
        };
    }
    let policy = &job.compiled.overlap;
    let limit = policy.most().unwrap_or(u32::MAX);
    let free = limit.saturating_sub(places.live);
    let drop = match (policy.on_full, policy.keep) {
        // A place that is free is that of the one that waited longest.
        (OnFull::Queue, Keep::Newest) => places
            .queued
            .saturating_sub(policy.depth.saturating_add(free)),
        // Who of these has to go also depends on when they are to start (`supersede.rs`). One look sees no more.
        (OnFull::CancelOld, _) => places.queued.saturating_sub(limit.max(LOAD_ROWS as u32)),
        _ => 0,
    };
    let waiting = places.queued - drop;
    let ready = waiting.min(free);
    let pass = match job.compiled.breaker {
        Some(_) => BreakerRow::pass(job.breaker.as_ref(), now),
        None => Pass::Closed,
    };
    let (promote, rest) = match pass {
        Pass::Closed => (ready, None),
        Pass::Probe => (ready.min(1), None),
        Pass::Cooling(until) => (0, Some(until)),
        Pass::Probing(_) => (0, None),
    };
    Todo {
        drop,
        promote,
        contend: match policy.on_full {
            OnFull::CancelOld => waiting - ready,
            _ => 0,
        },
        free,
        rest: rest.filter(|_| ready > 0),
    }
}

impl Engine {
    /// Takes a run that has just been made and has to wait for its turn.
    pub(super) fn queue_run(&mut self, mut run: Run) {
        let queue = TurnRef::of(&run);
        run.parked = Some(queue.park_key());
        self.building.run_parked(run);
        let seq = self.building_seq();
        self.tend_queue(queue, seq);
    }

    /// The store holds runs of a queue, known by its key alone.
    pub(super) fn queue_found(&mut self, queue: TurnRef) {
        self.turns.want(queue, 0);
    }

    /// Looks after every queue of a job: its definition or its breaker changed.
    pub(super) fn tend_queues(&mut self, id: JobId) {
        for key in self.jobs.expect(id).tallies.queues() {
            self.tend_queue(TurnRef { job: id, key }, 0);
        }
    }

    /// Looks after a queue, of whose rows those up to batch `seq` matter.
    pub(super) fn tend_queue(&mut self, queue: TurnRef, seq: u64) {
        let Some(todo) = self.todo_of(&queue) else {
            return;
        };
        if let Some(until) = todo.rest {
            self.rest_queue(queue.clone(), until);
        }
        if todo.drop + todo.promote + todo.contend > 0 {
            self.turns.want(queue, seq);
        }
    }

    /// What there is to do for a queue; `None` when its job is not in memory.
    pub(super) fn todo_of(&self, queue: &TurnRef) -> Option<Todo> {
        let job = self.jobs.get(queue.job)?;
        Some(todo(job, queue.key.as_deref(), self.now.wall))
    }

    /// How many rows of a queue one look needs. Whoever is to go, or has its turn, stands at the head, so a look that does not
    /// see the end is followed by another. Who of those that contend is ready only their rows say: of them all must be seen,
    /// or one behind many that are to start later would wait for them. There are no more than the limit.
    fn rows_of(&self, queue: &TurnRef) -> usize {
        let todo = self.todo_of(queue);
        let most = match todo {
            Some(todo) if todo.contend > 0 => Limits::OVERLAP_RUNS as usize,
            _ => LOAD_ROWS,
        };
        let needed = todo.map_or(0, |todo| todo.drop + todo.promote + todo.contend);
        ROWS.max(needed as usize).min(most)
    }

    /// Reads the queues that are to be looked at and whose rows can be seen.
    pub(super) fn read_queues(&mut self) {
        let room = READS.saturating_sub(self.turns.reading.len());
        if self.turns.wanted.is_empty() || room == 0 || armed(Fault::QueueForgotten) {
            return;
        }
        let acknowledged = self.acknowledged;
        let reading = &self.turns.reading;
        let visible = self.turns.wanted.iter().filter(|(queue, seq)| {
            // What is being read is looked at again when that has come.
            **seq <= acknowledged && !reading.contains(*queue)
        });
        let looks: Vec<_> = visible.map(|(queue, _)| queue.clone()).take(room).collect();
        for queue in looks {
            self.turns.wanted.remove(&queue);
            self.want(LoadKey::Queued {
                key: queue.park_key(),
                rows: self.rows_of(&queue),
            });
            self.turns.reading.insert(queue);
        }
    }

    /// The head of a queue, in order: some have to go, some have their turn.
    pub(super) fn take_queued(&mut self, now: Now, tag: u64, key: &str, runs: Vec<Run>) {
        let Some(queue) = TurnRef::from_park_key(key) else {
            panic!("`{key}` is not the key of a queue");
        };
        self.turns.reading.remove(&queue);
        let seen: Vec<_> = runs.iter().map(|run| (run.id, run.ready())).collect();
        let spare = self.spare(now, tag, &queue, &seen);
        let (mut going, mut done) = (spare.len(), 0);
        let mut runs = VecDeque::from(runs);
        runs.make_contiguous()
            .sort_by_key(|run| !spare.contains(&run.id));
        let mut in_order = !self.stops_old(&queue);
        loop {
            let Some(todo) = self.todo_of(&queue) else {
                return;
            };
            let must_go = going > 0 || todo.drop > 0;
            if !must_go && todo.promote == 0 || self.building.is_full() {
                break;
            }
            if !must_go && !in_order {
                // One that is to start later takes no place that another was stopped for.
                let later = |run: &Run| run.ready() > now.wall;
                runs.make_contiguous().sort_by_key(later);
                in_order = true;
            }
            let Some(run) = runs.pop_front() else {
                break;
            };
            let id = run.id;
            going = going.saturating_sub(1);
            if !self.adopt_queued(run, tag) {
                continue;
            }
            done += 1;
            if must_go {
                self.drop_queued(now, id);
            } else {
                self.promote(now, id);
            }
        }
        self.contend(now, tag, &queue, &seen);
        if going > 0 {
            self.turns.want(queue.clone(), 0);
        } else if seen.len() == ROWS && self.rows_of(&queue) > ROWS {
            // The job was not in memory when they were asked for, and nobody could say how many are needed.
            let seq = self.decided();
            self.turns.want(queue.clone(), seq);
        }
        self.look_again(queue, tag, done);
    }

    /// After a look at a queue that changed so many of its runs. One that changed none saw rows that are older than what
    /// was decided; what has been decided will be visible. For those that only contend it has seen what there is.
    fn look_again(&mut self, queue: TurnRef, tag: u64, done: usize) {
        let Some(todo) = self.todo_of(&queue) else {
            return;
        };
        if let Some(until) = todo.rest {
            self.rest_queue(queue.clone(), until);
        }
        let job = queue.job;
        if todo.drop + todo.promote > 0 {
            let seq = self.decided();
            let before = self.turns.wanted.contains_key(&queue);
            assert!(
                done > 0 || before || seq > tag,
                "runs of the queue {} are not in the store",
                queue.park_key()
            );
            let seq = if done > 0 { 0 } else { seq };
            self.turns.want(queue, seq);
        }
        self.consider(job);
    }

    /// The last batch that holds anything that has been decided.
    pub(super) fn decided(&self) -> u64 {
        match self.building.needs_commit() {
            true => self.building_seq(),
            false => self.taken,
        }
    }

    /// Takes a loaded run of a queue into memory; false when it is not in the queue any more.
    fn adopt_queued(&mut self, mut run: Run, tag: u64) -> bool {
        if let Some(resident) = self.runs.get(run.id) {
            return resident.run.standing.queued;
        }
        if self.left_since(run.id, tag) || !run.standing.queued {
            return false;
        }
        run.parked = None;
        let compiled = self.pinned(run.job, run.job_version);
        self.hold_run(run, compiled);
        true
    }

    /// A run at the head of its queue has to go.
    fn drop_queued(&mut self, now: Now, id: RunId) {
        let row = &self.jobs.expect(self.runs.expect(id).run.job).row;
        let (reason, words) = match row.deleted {
            true => {
                // Nothing is done to a job after its deletion: that is the last word in its row.
                let request = CancelRequest {
                    at: row.updated,
                    actor: row.actor.clone(),
                };
                self.runs.expect_mut(id).run.cancel = Some(request);
                (Reason::Cancelled, CancelRequest::JOB_DELETED)
            }
            false => (
                Reason::Superseded,
                "a newer run took its place in the queue",
            ),
        };
        let words = Some(words.to_owned());
        self.end_run(now, id, RunState::Cancelled, reason, words);
    }

    /// A run at the head of its queue has its turn, unless it has waited too long.
    fn promote(&mut self, now: Now, id: RunId) {
        let run = &self.runs.expect(id).run;
        let (job, due) = (run.job, run.due);
        let window_ms = self.jobs.expect(job).compiled.misfire.window_ms;
        if now.wall.since(due) > window_ms {
            let words = "it had waited for longer than the job's misfire window when its turn came";
            let (state, words) = (RunState::Cancelled, Some(words.to_owned()));
            self.end_run(now, id, state, Reason::Expired, words);
            return;
        }
        let resident = self.runs.expect_mut(id);
        let before = resident.run.standing.clone();
        resident.run.standing.queued = false;
        let after = resident.run.standing.clone();
        let ready = resident.run.ready();
        let tallies = &mut self.jobs.expect_mut(job).tallies;
        assert!(tallies.take(&before), "{id} was not counted as waiting");
        if !armed(Fault::PromotionNotCounted) {
            tallies.add(&after, 1);
        }
        self.mark_job(job);
        self.note_probe(now, job, id, ready);
        self.building.run_updated(id);
        self.effect(super::Effect::RunChanged { run: id });
        if ready > now.wall {
            self.delay_resident(id);
            return;
        }
        self.enter_line(id, Enter::Fresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn park_keys_come_back_and_are_nobody_elses() {
        for key in [None, Some("7"), Some("\"a/b\""), Some("#0f")] {
            let queue = TurnRef {
                job: JobId(81),
                key: key.map(str::to_owned),
            };
            assert_eq!(TurnRef::from_park_key(&queue.park_key()), Some(queue));
        }
        for other in [
            "queue/exec/1",
            "queue/handler:x/1p9",
            "due/7",
            "default/exec/1",
        ] {
            assert_eq!(TurnRef::from_park_key(other), None, "{other}");
        }
    }
}
