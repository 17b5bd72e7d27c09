//! Who runs what, and with what right.

use drumtower_audit::{Outcome, Record};
use drumtower_core::engine::{Effect, ToWorker};
use drumtower_core::model::{ProcessId, RunId, WallMs};
use drumtower_proto::worker::v1 as wire;
use wire::worker_message::Body;

use super::Checks;
use crate::clock::MS;
use crate::worker::Task;
use crate::world::World;

/// Between being told to stop and being killed, and what a busy worker takes for it.
const GRACE_MS: u64 = 12_000;

impl World {
    /// The worker that runs this attempt and whose lease has not ended by its own clock.
    pub(super) fn authorised(&self, run: RunId, attempt: u32) -> Option<usize> {
        self.holders(run)
            .find(|(_, number)| *number == attempt)
            .map(|(worker, _)| worker)
    }

    /// Everyone who runs any attempt of a run with right: worker and attempt.
    fn holders(&self, run: RunId) -> impl Iterator<Item = (usize, u32)> {
        let nodes = self.workers.iter().enumerate();
        nodes.flat_map(move |(index, worker)| {
            let mono = worker.clock.mono(self.at);
            let tasks = worker.live.iter().flat_map(|live| live.tasks.values());
            tasks
                .filter(move |task| task.run == run && task.deadline > mono)
                .map(move |task| (index, task.attempt))
        })
    }

    /// A task whose lease was over has one again: nobody else may have been given its run since.
    pub(crate) fn check_revived(&mut self, worker: usize, run: RunId) {
        let other = self.holders(run).find(|(other, _)| *other != worker);
        if let Some((other, attempt)) = other {
            let words = format!(
                "{run} runs with right again on worker {worker} while worker {other} runs attempt {attempt} with right"
            );
            self.checks.find("V5", words);
        }
    }

    pub(crate) fn check_start(&mut self, worker: usize, task: &Task) {
        self.checks.idle.remove(&worker);
        let other = self.holders(task.run).next();
        if let Some((other, attempt)) = other {
            let words = format!(
                "{} attempt {} starts on worker {worker} while worker {other} runs attempt {attempt} with right",
                task.run, task.attempt
            );
            self.checks.find("V5", words);
        }
        let last = (task.attempt, task.fence);
        if let Some(before) = self.checks.started.insert(task.run, last)
            && (before.0 >= last.0 || before.1 >= last.1)
        {
            let words = format!("{}: {before:?} was started before {last:?}", task.run);
            self.checks.find("V6", words);
        }
        let running: u32 = self.workers[worker]
            .live
            .iter()
            .flat_map(|live| live.tasks.values())
            .map(|task| task.weight)
            .sum();
        if running + task.weight > self.workers[worker].shape.capacity {
            let words = format!("worker {worker} runs more than its capacity");
            self.checks.find("V11", words);
        }
        self.look_at_clocks();
        let server = task.from;
        let furthest = server.and_then(|server| self.checks.furthest.get(&server).copied());
        if let Some(furthest) = furthest.filter(|it| task.attempt == 1 && task.due > *it) {
            let words = format!(
                "{} is due at {}, the clock of the server that gave it has not been past {}",
                task.run, task.due.0, furthest.0
            );
            self.checks.find("V3", words);
        }
    }

    /// A task has ended: it did not run longer than its job allows, unless nobody could stop it.
    pub(crate) fn check_lasted(&mut self, worker: usize, task: &Task) {
        let Some((started, _)) = task.started else {
            return;
        };
        let node = &self.workers[worker];
        // Who was frozen meanwhile could not stop it in time.
        if task.deaf || node.thawed > started {
            return;
        }
        let most_ms = task.timeout_ms + GRACE_MS;
        let lasted_ms = self.at.since(started) / MS;
        if lasted_ms > most_ms + most_ms / 100 {
            let words = format!(
                "{} attempt {} ran for {lasted_ms} ms of {} that it may",
                task.run, task.attempt, task.timeout_ms
            );
            self.checks.find("V16", words);
        }
    }

    /// Remembers how far clocks have been, and how far apart.
    pub(crate) fn look_at_clocks(&mut self) {
        let servers = self.servers.iter().map(|node| node.clock.now(self.at).wall);
        for (server, wall) in servers.clone().enumerate() {
            let furthest = self.checks.furthest.entry(server).or_insert(wall);
            *furthest = wall.max(*furthest);
        }
        let workers = self.workers.iter().map(|node| node.clock.now(self.at).wall);
        let all = servers.chain(workers);
        let gone_ms = i64::try_from(self.at.0 / MS).unwrap_or(i64::MAX);
        for ahead in all.map(|wall| wall.0 - gone_ms) {
            let (least, most) = self.checks.ahead_ms.unwrap_or((ahead, ahead));
            self.checks.ahead_ms = Some((least.min(ahead), most.max(ahead)));
        }
    }

    /// Effects for which nothing was committed: none of them prolongs a lease, as a deposed server must not.
    pub(crate) fn check_uncommitted(&mut self, effects: &[Effect]) {
        let renews = |effect: &&Effect| matches!(effect, Effect::Send { message, .. } if matches!(message, ToWorker::Renew { .. }));
        if let Some(effect) = effects.iter().find(renews) {
            let words = format!("a lease is prolonged without a commit: {effect:?}");
            self.checks.find("V5", words);
        }
    }

    /// What a worker says shows whether the server kept to what it was granted.
    pub(crate) fn check_said(&mut self, worker: usize, message: &wire::WorkerMessage) {
        if let Some(Body::Refused(refused)) = &message.body
            && refused.reason.contains("not covered by credit")
        {
            let words = format!(
                "worker {worker} was given more than it granted: {}",
                refused.reason
            );
            self.checks.find("V11", words);
        }
    }

    pub(crate) fn check_disconnect(&mut self, worker: usize, reason: &str, again: bool) {
        if reason.contains("broke the protocol") || !again {
            let words = format!("worker {worker} gave up its stream: {reason}");
            self.checks.find("protocol", words);
        }
    }
}

impl Checks {
    pub(crate) fn task_started(&mut self, task: &Task, process: ProcessId, wall: WallMs) {
        self.tasks_run += 1;
        self.tasks.push(Record::Started {
            run: task.run,
            attempt: task.attempt,
            fence: task.fence,
            nominal_ms: task.nominal,
            due_ms: Some(task.due),
            wall_ms: wall,
            pid: process.0 as u32,
        });
    }

    pub(crate) fn task_done(&mut self, task: &Task, outcome: wire::Outcome, wall: WallMs) {
        if task.started.is_none() {
            return;
        }
        self.tasks.push(Record::Ended {
            run: task.run,
            attempt: task.attempt,
            wall_ms: wall,
            outcome: match outcome {
                wire::Outcome::Succeeded => Outcome::Succeeded,
                wire::Outcome::Failed => Outcome::Failed,
                _ => Outcome::Cancelled,
            },
        });
    }
}
