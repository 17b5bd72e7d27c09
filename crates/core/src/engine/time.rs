//! What time does: due jobs, leases that end, starts worth writing down.
//!
//! Timers run on the monotonic clock. Those of schedules are placed by the wall clock's offset from it, and placed anew
//! when that offset moves; a timer that comes early by the wall clock simply waits again, so no job fires before its time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use crate::fault::{Fault, armed};
use crate::model::{Fence, JobId, Limits, MonoMs, Now, ProcessId, RunId, RunState, WallMs};

use super::gates::GateId;
use super::{AttemptRef, Engine, Ticket};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    JobDue(JobId),
    LeaseOver(ProcessId),
    ReadAhead,
    Evict,
    Sweep,
    RunDue(RunId),
    Minutes,
    LockOver(Fence),
    LockWait(Ticket),
    Gate(GateId),
    Drains,
    Starts,
    QueueRested(JobId),
    IdleLines,
}

/// A start is written with the run's next change, or alone once the attempt is this old.
const WRITE_START_AFTER_MS: u64 = 500;

/// Jobs that are due, the most urgent first and among equals in the order in which they became due.
#[derive(Debug, Default)]
pub(super) struct Due {
    jobs: BTreeMap<(Reverse<u32>, u64), JobId>,
    arrivals: u64,
}

impl Due {
    fn push(&mut self, priority: u32, job: JobId) {
        self.arrivals += 1;
        self.jobs.insert((Reverse(priority), self.arrivals), job);
    }

    fn pop(&mut self) -> Option<JobId> {
        self.jobs.pop_first().map(|(_, job)| job)
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The one of each priority that became due first.
    fn firsts(&self) -> impl Iterator<Item = JobId> + '_ {
        (0..=Limits::PRIORITY).filter_map(|priority| {
            let key = |arrival| (Reverse(priority), arrival);
            let mut of_priority = self.jobs.range(key(0)..=key(u64::MAX));
            of_priority.next().map(|(_, job)| *job)
        })
    }
}

/// Attempts that started and whose start is not written yet, oldest first; what is due, and when a commit last was.
#[derive(Debug, Default)]
pub(super) struct Starting {
    unwritten: VecDeque<(MonoMs, AttemptRef)>,
    /// Timers that came due and wait for room in the batch.
    backlog: VecDeque<Timer>,
    /// Attempts whose worker is gone and whose runs wait for room in the batch.
    pub(super) losing: VecDeque<AttemptRef>,
    last_commit: MonoMs,
}

impl Engine {
    /// When the next tick is worth while; at once when timers wait for room in a batch.
    pub fn next_wakeup(&self, raw: Now) -> Option<MonoMs> {
        let now = self.believed(raw);
        let waiting = !self.starting.backlog.is_empty() || !self.starting.losing.is_empty();
        let due = self.due.len() > 0 && !self.building.is_nearly_full();
        let stirred = !self.backfills.stirred.is_empty() && !self.building.is_nearly_full();
        if waiting || due || stirred || self.has_overdue(now) {
            return Some(now.mono);
        }
        let wheel = self.wheel.next_at().map(MonoMs);
        let start = self
            .starting
            .unwritten
            .front()
            .map(|(at, _)| at.plus(WRITE_START_AFTER_MS));
        let idle = self
            .options
            .idle_commit_ms
            .map(|idle| self.starting.last_commit.plus(idle));
        let progress = self.reports.next_at();
        [wheel, start, progress, idle].into_iter().flatten().min()
    }

    /// Of the jobs whose time has come and that have not fired, those that waited longest.
    pub(super) fn late_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        let mut backlog = self.starting.backlog.iter();
        let first = backlog.find_map(|timer| match timer {
            Timer::JobDue(job) => Some(*job),
            _ => None,
        });
        self.due.firsts().chain(first)
    }

    pub(super) fn tick(&mut self, now: Now) {
        let mut due = Vec::new();
        self.wheel.advance(now.mono.0, &mut due);
        self.starting
            .backlog
            .extend(due.into_iter().map(|(_, timer)| timer));
        while !self.is_full() {
            let Some(timer) = self.starting.backlog.pop_front() else {
                break;
            };
            match timer {
                Timer::JobDue(job) => self.became_due(job),
                Timer::LeaseOver(process) => self.lease_over(now, process),
                Timer::ReadAhead => self.read_ahead_due(now),
                Timer::Evict => self.evict_jobs(now),
                Timer::Sweep => self.read_page(),
                Timer::RunDue(run) => self.run_due(now, run),
                Timer::Minutes => self.read_minutes_timed(),
                Timer::LockOver(hold) => self.lock_over(now, hold),
                Timer::LockWait(ticket) => self.lock_wait_over(ticket),
                Timer::Gate(gate) => self.gate_due(gate),
                Timer::Drains => self.drains_due(now),
                Timer::Starts => self.starts_due(now),
                Timer::QueueRested(job) => self.queues_rested(job),
                Timer::IdleLines => self.drop_idle_lines(),
            }
        }
        while !self.building.is_nearly_full()
            && let Some(job) = self.due.pop()
        {
            self.job_due(now, job);
        }
        self.lose_some(now);
        self.fail_overdue(now);
        self.write_starts(now);
        self.write_progress(now);
    }

    /// Sets the timer of a job's next due time, or clears it; one that is far away lets the job leave memory.
    pub(super) fn arm_job(&mut self, id: JobId) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(id) else {
            return;
        };
        if let Some(timer) = job.timer.take() {
            self.wheel.cancel(timer);
        }
        if let Some(due) = job.schedule.next_due
            && job.compiled.schedule.is_some()
        {
            job.timer = Some(self.wheel.insert(now.mono_at(due).0, Timer::JobDue(id)));
        }
        self.consider(id);
    }

    pub(super) fn arm_lease(&mut self, now: Now, process: ProcessId) {
        let terms = self.options.terms;
        let Some(worker) = self.fleet.get_mut(process) else {
            return;
        };
        if worker.timer.is_none() {
            let mut at = worker.over_at(&terms).max(now.mono.plus(1));
            if armed(Fault::TermNotAwaited) && !worker.has_dialled() {
                at = now.mono.plus(1);
            }
            worker.timer = Some(self.wheel.insert(at.0, Timer::LeaseOver(process)));
        }
    }

    fn became_due(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.timer = None;
            self.due.push(job.compiled.requirement.priority, id);
        }
    }

    fn job_due(&mut self, now: Now, id: JobId) {
        if self.jobs.get(id).is_some() {
            self.fire_job(now, id);
            self.arm_job(id);
        }
    }

    /// A worker's lease may be over: unless it was renewed meanwhile, everything it held is lost.
    fn lease_over(&mut self, now: Now, process: ProcessId) {
        let Some(worker) = self.fleet.get_mut(process) else {
            return;
        };
        worker.timer = None;
        let given_up = armed(Fault::TermNotAwaited) && !worker.has_dialled();
        if worker.over_at(&self.options.terms) > now.mono && !given_up {
            self.arm_lease(now, process);
        } else {
            self.note_loss(now, process);
            self.drop_worker(now, process);
        }
    }

    /// Remembers a start that may soon be followed by its end.
    pub(super) fn note_start(&mut self, now: Now, attempt: AttemptRef) {
        self.starting.unwritten.push_back((now.mono, attempt));
    }

    fn write_starts(&mut self, now: Now) {
        while let Some((at, attempt)) = self.starting.unwritten.front().copied() {
            if at.plus(WRITE_START_AFTER_MS) > now.mono || self.is_full() {
                break;
            }
            self.starting.unwritten.pop_front();
            let running = self
                .runs
                .with_attempt(attempt)
                .is_some_and(|held| held.run.state == RunState::Running);
            if running {
                self.building.run_updated(attempt.run);
                self.effect(super::Effect::RunChanged { run: attempt.run });
            }
        }
    }

    /// The time by which things grow old. What is deleted does not come back when a clock that ran ahead is set right, so
    /// a step forward since the engine was booted does not count.
    pub(super) fn age_clock(&self, now: Now) -> WallMs {
        let passed = now.mono.0.saturating_sub(self.booted.mono.0);
        let steady = self
            .booted
            .wall
            .plus(i64::try_from(passed).unwrap_or(i64::MAX));
        now.wall.min(steady)
    }

    pub(super) fn idle_too_long(&self, now: Now) -> bool {
        self.options
            .idle_commit_ms
            .is_some_and(|idle| now.mono >= self.starting.last_commit.plus(idle))
    }

    pub(super) fn committed_at(&mut self, now: Now) {
        self.starting.last_commit = now.mono;
    }
}
