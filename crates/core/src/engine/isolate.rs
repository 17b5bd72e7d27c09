//! What follows from how far a worker is trusted: who stands in line, and who is told.
//!
//! The rules are in `health.rs`. Here is when they are asked: at each heartbeat, when a lease has ended, when an attempt on
//! probation came to its end, and when someone resets a name.

use crate::fault::{Fault, armed};
use crate::model::{MonoMs, Now, ProcessId, WorkerRef};
use crate::schedule::format_duration;

use super::fleet::Worker;
use super::health::{Kin, LATE_MS, Trust};
use super::{Effect, Engine};

impl Worker {
    pub(super) fn kin(&self) -> Kin {
        Kin {
            name: self.hello.worker.clone(),
            namespace: self.hello.namespace.clone(),
        }
    }

    /// Whether `other` could be given everything that this one is, of what waits and weighs no more than `heaviest`.
    fn is_replaced_by(&self, other: &Self, heaviest: u32) -> bool {
        let (mine, theirs) = (&self.hello, &other.hello);
        let scope = theirs.namespace.is_none() || theirs.namespace == mine.namespace;
        let tasks = (theirs.exec || !mine.exec) && (theirs.http || !mine.http);
        let large = theirs.capacity >= heaviest;
        scope && tasks && large && mine.handlers.iter().all(|it| theirs.handlers.contains(it))
    }
}

impl Engine {
    /// A heartbeat came after `silence_ms` without one.
    pub(super) fn count_beat(&mut self, now: Now, process: ProcessId, silence_ms: u64) {
        let suspected = silence_ms >= self.options.terms.suspect_ms();
        let worker = self.fleet.expect_mut(process);
        let doubted = suspected || (worker.beats == 0 && worker.beat > 1);
        worker.beats = match suspected {
            _ if doubted && armed(Fault::SuspicionNeverLifted) => 0,
            true => 1,
            false => worker.beats.saturating_add(1),
        };
        self.weigh(now.mono, process);
    }

    /// Asks anew what a process may be given.
    fn weigh(&mut self, now: MonoMs, process: ProcessId) {
        let Some(worker) = self.fleet.get(process) else {
            return;
        };
        let (kin, beats) = (worker.kin(), worker.beats);
        let fleet = &self.fleet;
        let terms = &self.options.terms;
        let lines = &self.lines;
        // Whoever is heard of, takes work and is trusted could stand in.
        let alone = || {
            let heaviest = worker.heaviest_waiting(lines);
            let mut others = fleet.all().filter(|(id, _)| **id != process);
            !others.any(|(_, other)| {
                other.takes_work()
                    && terms.fresh(other.leased_from, now)
                    && worker.is_replaced_by(other, heaviest)
            })
        };
        let trust = self.health.trust(now, &kin, beats, alone);
        self.fleet.expect_mut(process).trust = trust;
    }

    /// The same for every process of a name, which then stands in line or does not.
    fn weigh_kin(&mut self, now: MonoMs, kin: &Kin) {
        for process in self.fleet.of(kin) {
            self.weigh(now, process);
            self.place_in_lines(process);
        }
    }

    /// The lease of a process is over and it is lost: that is held against its name, unless it was on its way out or the
    /// server itself was away. Of one that has not dialled in since this server came to life nobody knows whose token it had.
    pub(super) fn note_loss(&mut self, now: Now, process: ProcessId) {
        let Some(worker) = self.fleet.get(process) else {
            return;
        };
        let over = worker.over_at(&self.options.terms);
        let late = now.mono.0.saturating_sub(over.0) > LATE_MS;
        let away = late || !worker.has_dialled();
        if away || worker.draining || worker.maintenance {
            return;
        }
        let (kin, mut seen) = (worker.kin(), self.plain_view(worker));
        (seen.alive, seen.attempts, seen.credit) = (false, 0, 0);
        seen.running.clear();
        let processes = self.fleet.of(&kin).len();
        let Some(period) = self.health.lost(now.mono, kin.clone(), processes, seen) else {
            return;
        };
        let name = &kin.name;
        let text = format!(
            "worker `{name}` was lost again and again and gets no work for {}: see why it dies; `drumtower worker reset {name}` trusts it at once",
            format_duration(period)
        );
        self.effect(Effect::Alarm { text });
        self.weigh_kin(now.mono, &kin);
    }

    /// An attempt on this process has come to its end, reported by itself.
    pub(super) fn note_survival(&mut self, now: Now, process: ProcessId) {
        let Some(worker) = self.fleet.get(process) else {
            return;
        };
        if worker.trust == Trust::OneRun {
            let kin = worker.kin();
            self.health.survived(&kin);
            self.weigh_kin(now.mono, &kin);
        }
    }

    /// Forgets what is held against these workers. Returns whether there was anything.
    pub(super) fn forgive(&mut self, now: Now, workers: &WorkerRef) -> bool {
        let forgiven = self.health.reset(workers);
        for kin in &forgiven {
            self.weigh_kin(now.mono, kin);
        }
        !forgiven.is_empty()
    }
}
