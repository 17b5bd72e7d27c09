//! What runs on a worker: time passes, it says how far it is, and then it has succeeded or failed.

use drumtower_core::fault::{Fault, armed};
use drumtower_core::model::{MonoMs, RunId, WallMs};
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::{Attempt, StopReason};

use super::World;
use super::habit::{End, Habit};
use crate::clock::{At, MS};
use crate::world::event::{Event, Process};
use crate::world::note;

#[derive(Clone, Debug)]
pub struct Task {
    pub(crate) run: RunId,
    pub(crate) attempt: u32,
    pub(crate) fence: u64,
    pub(crate) weight: u32,
    /// The server that gave it.
    pub(crate) from: Option<usize>,
    pub(crate) nominal: Option<WallMs>,
    pub(crate) due: WallMs,
    /// It must not run beyond this on its worker's clock.
    pub(crate) deadline: MonoMs,
    pub(crate) started: Option<(At, WallMs)>,
    ends: At,
    end: End,
    pub(super) habit: Habit,
    /// The checkpoint that the assignment named.
    pub(crate) mark: Option<u64>,
    pub(crate) timeout_ms: u64,
    /// It does not hear that it should stop.
    pub(crate) deaf: bool,
}

impl World {
    pub(super) fn begin_task(
        &mut self,
        worker: usize,
        process: Process,
        assign: &wire::Assign,
        deadline: MonoMs,
    ) {
        let Some(named) = assign.attempt else { return };
        let attempt = Attempt::from(named);
        let (longest, quiet) = (
            self.plan.figures.longest_task_ms,
            self.plan.shape.is_quiet(),
        );
        let node = &mut self.workers[worker];
        let home = node.live(process).and_then(|it| it.session.home(attempt));
        let from = home.and_then(|home| node.server_of(home));
        let (refused, deaf) = (node.random.chance(8), node.shape.deaf_permille);
        let starts_us = node.random.skewed(10, 80 * MS);
        let lasts_us = match quiet {
            true => node.random.between(50, longest * MS),
            false => node.random.skewed(50, longest * MS),
        };
        let supervised = !matches!(assign.task, Some(wire::assign::Task::Handler(_)));
        let deaf = !supervised && node.random.chance(deaf);
        let end = End::draw(
            self.plan.figures.fail_permille,
            supervised,
            &mut node.random,
        );
        let habit = Habit::draw(&self.plan.figures, lasts_us, &mut node.random);
        // It would go on for ever if nobody stopped it.
        let bounded = assign.timeout_ms <= 30_000 || assign.progress_timeout_ms > 0;
        let stuck = bounded && !deaf && node.random.chance(self.plan.figures.stuck_permille);
        let (lasts_us, habit) = match stuck {
            true => (3_600_000 * MS, Habit::default()),
            false => (lasts_us, habit),
        };
        let task = Task {
            run: RunId(named.run),
            attempt: named.attempt,
            fence: named.fence,
            weight: assign.weight,
            from,
            nominal: assign.nominal_wall_ms.map(WallMs),
            due: WallMs(assign.due_wall_ms),
            deadline,
            started: None,
            ends: self.at.plus(starts_us + lasts_us),
            end,
            habit,
            mark: assign.checkpoint.as_ref().map(|mark| mark.number),
            timeout_ms: assign.timeout_ms,
            deaf,
        };
        note!(
            self,
            "worker {worker} is given {} attempt {} fence {}",
            task.run,
            task.attempt,
            task.fence
        );
        self.check_start(worker, &task);
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        if refused {
            live.session
                .attempt_refused(attempt, "there is no such program here");
            return;
        }
        live.tasks.insert(attempt, task);
        self.push(
            self.at.plus(starts_us),
            Event::TaskStarts {
                worker,
                process,
                attempt,
            },
        );
        if supervised {
            self.watch_deadline(worker, process, attempt, deadline);
        }
    }

    fn watch_deadline(
        &mut self,
        worker: usize,
        process: Process,
        attempt: Attempt,
        deadline: MonoMs,
    ) {
        let at = self.workers[worker].clock.when(deadline);
        self.push(
            at,
            Event::Deadline {
                worker,
                process,
                attempt,
            },
        );
    }

    pub(crate) fn task_starts(&mut self, worker: usize, process: Process, attempt: Attempt) {
        let now = self.workers[worker].clock.now(self.at);
        let at = self.at;
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        let Some(task) = live.tasks.get_mut(&attempt) else {
            return;
        };
        task.started = Some((at, now.wall));
        let (ends, id) = (task.ends, live.id);
        let task = task.clone();
        live.session.attempt_started(now, attempt);
        self.checks.task_started(&task, id, now.wall);
        self.resume_task(worker, process, attempt);
        self.push(
            ends,
            Event::TaskEnds {
                worker,
                process,
                attempt,
            },
        );
        self.serve(worker, process);
    }

    pub(crate) fn task_ends(&mut self, worker: usize, process: Process, attempt: Attempt) {
        let due = self.workers[worker]
            .live(process)
            .and_then(|live| live.tasks.get(&attempt))
            .filter(|task| task.ends <= self.at);
        if let Some(end) = due.map(|task| task.end) {
            self.end_task(worker, process, attempt, end);
        }
    }

    /// It ends in a while, unless it does not listen.
    pub(super) fn stop_task(
        &mut self,
        worker: usize,
        process: Process,
        attempt: Attempt,
        reason: StopReason,
    ) {
        note!(
            self,
            "worker {worker} stops {}: {reason:?}",
            attempt.run_id()
        );
        let wait = self.workers[worker].random.skewed(100, 900 * MS);
        let at = self.at.plus(wait);
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        let Some(task) = live.tasks.get_mut(&attempt).filter(|task| !task.deaf) else {
            return;
        };
        if at < task.ends || task.started.is_none() {
            task.ends = at;
            task.end = End::STOPPED;
            self.push(
                at,
                Event::TaskEnds {
                    worker,
                    process,
                    attempt,
                },
            );
        }
    }

    pub(super) fn abort_task(&mut self, worker: usize, process: Process, attempt: Attempt) {
        let task = self.workers[worker]
            .live(process)
            .and_then(|live| live.tasks.get(&attempt));
        if task.is_some_and(|task| !task.deaf) {
            self.end_task(worker, process, attempt, End::STOPPED);
        }
    }

    /// The leases of these are prolonged. What was over when the echoed heartbeat was sent stays over.
    pub(super) fn extend_tasks(
        &mut self,
        worker: usize,
        process: Process,
        attempts: &[Attempt],
        deadline: MonoMs,
    ) {
        let mono = self.workers[worker].clock.mono(self.at);
        let lease_ms = self.plan.longest_lease_ms();
        let sent = MonoMs(deadline.0.saturating_sub(lease_ms));
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        let mut revived = Vec::new();
        for attempt in attempts {
            let Some(task) = live.tasks.get_mut(attempt) else {
                continue;
            };
            if sent < task.deadline || armed(Fault::RenewedAfterExpiry) {
                let revives = task.deadline <= mono && mono < deadline;
                revived.extend(revives.then_some(task.run));
                task.deadline = task.deadline.max(deadline);
            }
        }
        for run in revived {
            self.check_revived(worker, run);
        }
    }

    /// The supervisor's own clock: it kills at the end of the lease, whatever its worker does.
    pub(crate) fn deadline(&mut self, worker: usize, process: Process, attempt: Attempt) {
        let mono = self.workers[worker].clock.mono(self.at);
        let task = self.workers[worker]
            .live(process)
            .and_then(|live| live.tasks.get(&attempt));
        let Some(deadline) = task.map(|task| task.deadline) else {
            return;
        };
        if deadline > mono {
            self.watch_deadline(worker, process, attempt, deadline);
        } else {
            self.end_task(worker, process, attempt, End::STOPPED);
        }
    }

    fn end_task(&mut self, worker: usize, process: Process, attempt: Attempt, ended: End) {
        let at = self.at;
        let now = self.workers[worker].clock.now(at);
        let (wall, mono) = (now.wall, now.mono);
        let frozen = self.workers[worker].frozen > at;
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        let Some(task) = live.tasks.remove(&attempt) else {
            return;
        };
        let lasted = task.started.map_or(0, |(started, _)| at.since(started));
        let outcome = ended.outcome;
        live.session
            .attempt_finished(attempt, ended.words(lasted / MS));
        note!(self, "worker {worker} ends {} as {ended:?}", task.run);
        self.check_lasted(worker, &task);
        self.still_draining();
        // What a task does after its lease is nobody's word any more.
        if mono < task.deadline {
            self.checks.task_done(&task, outcome, wall);
        }
        if !frozen {
            self.serve(worker, process);
        }
    }
}
