//! Runs that wait for their turn because as many runs of their job, or key, are under way as may be.
//!
//! They lie in the store only, parked under the queue's key, in the order of their ids; memory knows how many there are from
//! the job's tallies. A queue is looked at when a run of it has ended or something else changed what it may do: then as
//! many rows are read from its head as have their turn, or have to go. What is read may be older than what was decided, so
//! a queue is looked at again until nothing is left to do.
//!
//! Under `cancel_old` those that are under way are read too, and the oldest are asked to stop. They keep their place until
//! their worker has confirmed or their lease has ended, so the limit holds all the time.

use std::collections::{BTreeMap, BTreeSet};

use crate::fault::{Fault, armed};
use crate::model::{
    BreakerRow, CancelRequest, JobId, Keep, Now, OnFull, Pass, Reason, Run, RunId, RunState, WallMs,
};

use super::enter_line::Enter;
use super::jobs::Job;
use super::{Engine, LoadKey};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    /// The head of the queue.
    Waiting,
    /// Those that are under way.
    Live,
}

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// What is to be read, once this batch is visible.
    wanted: BTreeMap<(TurnRef, Side), u64>,
    reading: BTreeSet<(TurnRef, Side)>,
}

/// What there is to do for a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Todo {
    /// So many at its head have to go.
    drop: u32,
    /// So many after them have their turn.
    promote: u32,
    /// So many of those under way have to stop.
    stop: u32,
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

    fn of(run: &Run) -> Self {
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
        (OnFull::CancelOld, _) => places.queued.saturating_sub(limit),
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
        stop: match policy.on_full {
            OnFull::CancelOld => waiting - ready,
            _ => 0,
        },
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
        self.turns.wanted.insert((queue, Side::Waiting), 0);
    }

    /// Looks after every queue of a job: its definition or its breaker changed.
    pub(super) fn tend_queues(&mut self, id: JobId) {
        for key in self.jobs.expect(id).tallies.queues() {
            self.tend_queue(TurnRef { job: id, key }, 0);
        }
    }

    /// Looks after a queue, of whose rows those up to batch `seq` matter.
    pub(super) fn tend_queue(&mut self, queue: TurnRef, seq: u64) {
        let now = self.now;
        let Some(job) = self.jobs.get(queue.job) else {
            return;
        };
        let todo = todo(job, queue.key.as_deref(), now.wall);
        if let Some(until) = todo.rest {
            self.rest_queue(queue.clone(), until);
        }
        let wanted = &mut self.turns.wanted;
        let mut want = |side| {
            let entry = wanted.entry((queue.clone(), side)).or_default();
            *entry = seq.max(*entry);
        };
        if todo.drop + todo.promote > 0 {
            want(Side::Waiting);
        }
        if todo.stop > 0 {
            want(Side::Live);
        }
    }

    /// Reads the queues that are to be looked at and whose rows can be seen.
    pub(super) fn read_queues(&mut self) {
        let room = READS.saturating_sub(self.turns.reading.len());
        if self.turns.wanted.is_empty() || room == 0 || armed(Fault::QueueForgotten) {
            return;
        }
        let acknowledged = self.acknowledged;
        let reading = &self.turns.reading;
        let visible = self.turns.wanted.iter().filter(|(look, seq)| {
            // What is being read is looked at again when that has come.
            **seq <= acknowledged && !reading.contains(*look)
        });
        let looks: Vec<_> = visible.map(|(look, _)| look.clone()).take(room).collect();
        for look in looks {
            self.turns.wanted.remove(&look);
            let (queue, side) = &look;
            let key = match side {
                Side::Waiting => LoadKey::Queued {
                    key: queue.park_key(),
                    rows: ROWS,
                },
                Side::Live => LoadKey::Live {
                    job: queue.job,
                    key: queue.key.clone(),
                },
            };
            self.want(key);
            self.turns.reading.insert(look);
        }
    }

    /// The head of a queue, in order: some have to go, some have their turn.
    pub(super) fn take_queued(&mut self, now: Now, tag: u64, key: &str, runs: Vec<Run>) {
        let Some(queue) = TurnRef::from_park_key(key) else {
            panic!("`{key}` is not the key of a queue");
        };
        self.turns.reading.remove(&(queue.clone(), Side::Waiting));
        let mut done = 0;
        for run in runs {
            let Some(job) = self.jobs.get(queue.job) else {
                return;
            };
            let todo = todo(job, queue.key.as_deref(), now.wall);
            if todo.drop + todo.promote == 0 || self.building.is_full() {
                break;
            }
            let id = run.id;
            if !self.adopt_queued(run, tag) {
                continue;
            }
            done += 1;
            if todo.drop > 0 {
                self.drop_queued(now, id);
            } else {
                self.promote(now, id);
            }
        }
        self.look_again(queue, tag, done);
    }

    /// After a look at a queue that changed so many of its runs. One that changed none saw rows that are older than what
    /// was decided; what has been decided will be visible.
    fn look_again(&mut self, queue: TurnRef, tag: u64, done: usize) {
        let seq = match self.building.needs_commit() {
            true => self.building_seq(),
            false => self.taken,
        };
        let (job, look) = (queue.job, (queue.clone(), Side::Waiting));
        let before = self.turns.wanted.contains_key(&look);
        self.tend_queue(queue, if done > 0 { 0 } else { seq });
        let again = !before && self.turns.wanted.contains_key(&look);
        assert!(
            done > 0 || !again || seq > tag,
            "runs of the queue {} are not in the store",
            look.0.park_key()
        );
        self.consider(job);
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

    /// The runs of a key that are under way, oldest first: as many are asked to stop as newer ones wait.
    pub(super) fn take_live(&mut self, now: Now, tag: u64, queue: TurnRef, runs: Vec<Run>) {
        self.turns.reading.remove(&(queue.clone(), Side::Live));
        let Some(job) = self.jobs.get(queue.job) else {
            return;
        };
        let places = job.tallies.of(queue.key.as_deref());
        let stop = todo(job, queue.key.as_deref(), now.wall).stop as usize;
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
        if !all && stop > 0 {
            let seq = match self.building.needs_commit() {
                true => self.building_seq(),
                false => self.taken,
            };
            if seq > tag {
                self.tend_queue(queue, seq);
            }
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
