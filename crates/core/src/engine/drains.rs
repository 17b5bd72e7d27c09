//! Workers in maintenance: names that get nothing new, and what happens at the deadline.
//!
//! ```text
//! in service ──drain──► draining ──nothing runs any more──► drained
//!     ▲                    └─deadline──► stopping ──what ran has ended or is lost──► drained
//!     └──────────────────────────── resume ───────────────────────────────────────────┘
//! ```
//!
//! A drain is a row, written before it is acknowledged, and holds for every process of the name, also one that dials in
//! later. Whether it is done is not stored: it is when no process of the name holds an attempt. At the deadline the
//! attempts are asked to stop, as a cancelled run's is; what a worker stops that nobody cancelled is counted apart
//! from failures and losses, and the run goes to another worker with its checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use crate::fault::{Fault, armed};
use crate::model::{
    DrainRow, MonoMs, NamespaceName, Now, ProcessId, SegmentId, WorkerName, WorkerRef,
};
use crate::wheel;

use super::time::Timer;
use super::{AttemptRef, Effect, Engine, ToWorker};

#[derive(Debug, Default)]
pub(super) struct Drains {
    rows: BTreeMap<WorkerRef, DrainRow>,
    /// Rings at the first deadline that has not come.
    timer: Option<wheel::Key>,
}

impl Drains {
    pub(super) fn row(&self, workers: &WorkerRef) -> Option<&DrainRow> {
        self.rows.get(workers)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The drain that holds for a process of this name; one of all that have it goes before one of a namespace.
    pub(super) fn of(
        &self,
        name: &WorkerName,
        namespace: Option<&NamespaceName>,
    ) -> Option<&DrainRow> {
        if self.rows.is_empty() {
            return None;
        }
        let row = |namespace: Option<NamespaceName>| {
            self.rows.get(&WorkerRef {
                name: name.clone(),
                namespace,
            })
        };
        let (all, own) = (row(None), namespace.and_then(|it| row(Some(it.clone()))));
        match (all, own) {
            // What runs is to stop as soon as one of them says so.
            (Some(all), Some(own)) if all.forced.is_none() && own.forced.is_some() => Some(own),
            (all, own) => all.or(own),
        }
    }

    /// The drains that a resume of these workers ends: those of all namespaces, or of one.
    pub(super) fn ended_by(&self, workers: &WorkerRef) -> Vec<WorkerRef> {
        let named = self.rows.keys();
        let ended = named.filter(|it| match &workers.namespace {
            None => it.name == workers.name,
            Some(_) => *it == workers,
        });
        ended.cloned().collect()
    }
}

impl Engine {
    /// A drain that was in force when the last engine ended.
    pub(super) fn revive_drain(&mut self, row: DrainRow) {
        if armed(Fault::DrainForgotten) {
            return;
        }
        self.drains.rows.insert(row.worker.clone(), row);
        self.arm_drains();
    }

    /// Drains as another server has written them.
    pub(super) fn take_drains(&mut self, rows: Vec<DrainRow>) {
        let rows = rows.into_iter().map(|row| (row.worker.clone(), row));
        let before = std::mem::replace(&mut self.drains.rows, rows.collect());
        let touched: BTreeSet<WorkerRef> = before
            .into_keys()
            .chain(self.drains.rows.keys().cloned())
            .collect();
        self.arm_drains();
        for workers in touched {
            self.maintain(&workers);
            for process in self.fleet.named(&workers) {
                if self.forced_drain(process).is_some() {
                    self.stop_drained(process);
                }
            }
        }
    }

    pub(super) fn put_drain(&mut self, row: DrainRow) {
        let workers = row.worker.clone();
        self.building.drain(&workers);
        self.drains.rows.insert(workers.clone(), row);
        self.arm_drains();
        self.maintain(&workers);
    }

    pub(super) fn end_drain(&mut self, workers: &WorkerRef) {
        self.building.drain(workers);
        self.drains.rows.remove(workers);
        self.arm_drains();
        self.maintain(workers);
    }

    /// Takes these workers out of every line, or puts them back.
    fn maintain(&mut self, workers: &WorkerRef) {
        for process in self.fleet.named(workers) {
            self.keep_maintenance(process);
            self.place_in_lines(process);
        }
    }

    /// A process is in maintenance when its name is.
    pub(super) fn keep_maintenance(&mut self, process: ProcessId) {
        let Some(worker) = self.fleet.get_mut(process) else {
            return;
        };
        let hello = &worker.hello;
        let drain = self.drains.of(&hello.worker, hello.namespace.as_ref());
        worker.maintenance = drain.is_some();
    }

    /// The drain for which what this process runs is to stop.
    pub(super) fn forced_drain(&self, process: ProcessId) -> Option<&DrainRow> {
        let worker = self
            .fleet
            .get(process)
            .filter(|worker| worker.maintenance)?;
        let hello = &worker.hello;
        let drain = self.drains.of(&hello.worker, hello.namespace.as_ref());
        drain.filter(|drain| drain.forced.is_some())
    }

    /// Sets the timer of the first deadline; also when the wall clock went forward.
    pub(super) fn arm_drains(&mut self) {
        if let Some(timer) = self.drains.timer.take() {
            self.wheel.cancel(timer);
        }
        let open = self.drains.rows.values().filter(|row| row.forced.is_none());
        if let Some(deadline) = open.filter_map(|row| row.deadline).min() {
            let at: MonoMs = self.now.mono_at(deadline);
            self.drains.timer = Some(self.wheel.insert(at.0, Timer::Drains));
        }
    }

    /// A deadline may have come: what still runs is asked to stop.
    pub(super) fn drains_due(&mut self, now: Now) {
        self.drains.timer = None;
        let over = |row: &&DrainRow| {
            let come = row.deadline.is_some_and(|deadline| deadline <= now.wall);
            come && row.forced.is_none()
        };
        let over: Vec<DrainRow> = self.drains.rows.values().filter(over).cloned().collect();
        for row in over {
            let workers = row.worker.clone();
            let forced = Some(now.wall);
            // The row is one server's to write; each of them stops what it gave out.
            if self.owns(SegmentId::HOME) {
                self.building.drain(&workers);
            }
            self.drains
                .rows
                .insert(workers.clone(), DrainRow { forced, ..row });
            for process in self.fleet.named(&workers) {
                self.stop_drained(process);
            }
        }
        self.arm_drains();
    }

    fn stop_drained(&mut self, process: ProcessId) {
        let Some(worker) = self.fleet.get(process) else {
            return;
        };
        let Some(stream) = worker.stream else {
            return;
        };
        let attempts = worker.attempts.iter().map(|(run, held)| AttemptRef {
            run: *run,
            attempt: held.attempt,
            fence: held.fence,
        });
        for attempt in attempts.collect::<Vec<_>>() {
            self.effect(Effect::Send {
                stream,
                message: ToWorker::Cancel {
                    attempt,
                    reason: DRAINED,
                },
            });
        }
    }
}

/// What a worker is told when it is asked to stop an attempt at the deadline.
pub(super) const DRAINED: &str = "its worker was drained and the deadline had come";
