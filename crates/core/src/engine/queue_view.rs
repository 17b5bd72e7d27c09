//! How full queues are, who holds their places, and what a run waits for.

use std::collections::BTreeMap;

use crate::model::{GateKey, JobId, Limits, QueueRef, QueueRow, Run, RunId, WallMs, parked_at};

use super::gates::GateId;
use super::limits::Obstacle;
use super::pens::Pen;
use super::{Engine, Now};

/// A queue as memory has it. What is parked in the store beside it is not counted here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    pub queue: QueueRef,
    /// `None` when jobs name it and nobody has defined it.
    pub row: Option<QueueRow>,
    /// Attempts that run.
    pub running: u32,
    /// Runs that wait, in memory.
    pub waiting: usize,
    /// Those of them that a limit holds back, of the queue or of their job; the others wait for a worker.
    pub held: usize,
    /// When the oldest of those that wait was made.
    pub oldest: Option<WallMs>,
    /// Runs that hold a place, the oldest first, as many as are told.
    pub holders: Vec<RunId>,
    /// Values of its key that let nothing through, with attempts that run and runs that wait: the most first.
    pub full_keys: Vec<KeyView>,
    /// When its rate admits the next, while it does not.
    pub rate_until: Option<WallMs>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyView {
    pub value: String,
    pub running: u32,
    pub waiting: usize,
}

/// What holds a run back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindrance {
    pub gate: GateKey,
    pub what: Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Paused,
    Full { held: u32, most: u32 },
    Rate { until: WallMs },
}

impl QueueView {
    /// One of which memory has nothing.
    pub fn empty(queue: QueueRef) -> Self {
        Self {
            queue,
            row: None,
            running: 0,
            waiting: 0,
            held: 0,
            oldest: None,
            holders: Vec::new(),
            full_keys: Vec::new(),
            rate_until: None,
        }
    }
}

impl Engine {
    /// Every queue that is defined or has anything in memory, in order.
    pub fn queues(&self) -> Vec<QueueView> {
        let mut views: BTreeMap<QueueRef, QueueView> = BTreeMap::new();
        let view = |queue: &QueueRef| QueueView {
            row: self.queues.row(queue).filter(|row| !row.deleted).cloned(),
            ..QueueView::empty(queue.clone())
        };
        for row in self.queues.defined() {
            views.insert(row.queue(), view(&row.queue()));
        }
        for id in self.gates.ids() {
            let gate = self.gates.expect(id);
            let Some(queue) = gate.key.queue() else {
                continue;
            };
            let told = views.entry(queue.clone()).or_insert_with(|| view(queue));
            match gate.key.value() {
                None => {
                    (told.running, told.waiting) = (gate.held, gate.waiting);
                    told.rate_until = self.rate_until(id);
                }
                Some(value) if self.obstacle(id).is_some() => told.full_keys.push(KeyView {
                    value,
                    running: gate.held,
                    waiting: gate.waiting,
                }),
                Some(_) => {}
            }
        }
        if views.is_empty() {
            return Vec::new();
        }
        self.add_penned(&mut views);
        self.add_holders(&mut views);
        let mut views: Vec<QueueView> = views.into_values().collect();
        for view in &mut views {
            view.full_keys
                .sort_by_key(|key| std::cmp::Reverse((key.waiting, key.running)));
            view.full_keys.truncate(Limits::QUEUE_HOLDERS);
        }
        views
    }

    fn add_penned(&self, views: &mut BTreeMap<QueueRef, QueueView>) {
        for pen in self.pens.all() {
            let root = &self.gates.expect(pen.root()).key;
            let oldest = pen.queue.front().map(|waiting| waiting.run.created());
            if let Some(view) = root.queue().and_then(|queue| views.get_mut(queue))
                && let Some(oldest) = oldest
            {
                view.oldest = Some(view.oldest.map_or(oldest, |before| before.min(oldest)));
                if self.is_held_back(pen) {
                    view.held += pen.queue.len();
                }
            }
        }
    }

    /// Whether a limit keeps all runs of a pen from workers. One that only waits for another's turn is not held back.
    fn is_held_back(&self, pen: &Pen) -> bool {
        pen.gates.iter().any(|gate| self.obstacle(*gate).is_some())
    }

    fn add_holders(&self, views: &mut BTreeMap<QueueRef, QueueView>) {
        for resident in self.runs.all().filter(|resident| resident.holds) {
            let Some(pen) = resident.pen else {
                continue;
            };
            let root = &self.gates.expect(self.pens.expect(pen).root()).key;
            if let Some(view) = root.queue().and_then(|queue| views.get_mut(queue))
                && view.holders.len() < Limits::QUEUE_HOLDERS
            {
                view.holders.push(resident.run.id);
            }
        }
    }

    /// What holds a waiting run back, of which the store may know more than memory; `None` when no limit does.
    pub fn hindrance(&self, run: &Run) -> Option<Hindrance> {
        let resident = self.runs.get(run.id);
        let pen = resident.filter(|it| !it.holds).and_then(|it| it.pen);
        let gates: Vec<GateId> = match pen {
            Some(pen) => self.pens.expect(pen).gates.to_vec(),
            None if resident.is_some() => Vec::new(),
            None => {
                let parked = run.parked.as_deref().and_then(parked_at);
                let keys = parked.map_or_else(Vec::new, |(keys, _)| keys);
                keys.iter().filter_map(|key| self.gates.find(key)).collect()
            }
        };
        self.first_hindrance(gates)
    }

    /// What holds back whatever run of a job comes next, its key aside.
    pub fn hindrance_of_job(&self, job: JobId) -> Option<Hindrance> {
        let queue = self.jobs.get(job).and_then(|job| job.compiled.queue());
        let keys = [Some(GateKey::Job(job)), queue.map(GateKey::Queue)];
        let gates = keys.iter().flatten().filter_map(|key| self.gates.find(key));
        self.first_hindrance(gates.collect())
    }

    fn first_hindrance(&self, gates: Vec<GateId>) -> Option<Hindrance> {
        gates.into_iter().find_map(|id| {
            let what = match self.obstacle(id)? {
                Obstacle::Paused => Held::Paused,
                Obstacle::Full { held, most } => Held::Full { held, most },
                Obstacle::Rate { .. } => Held::Rate {
                    until: self.rate_until(id)?,
                },
            };
            let gate = self.gates.expect(id).key.clone();
            Some(Hindrance { gate, what })
        })
    }

    fn rate_until(&self, id: GateId) -> Option<WallMs> {
        let Some(Obstacle::Rate { at }) = self.obstacle(id) else {
            return None;
        };
        let Now { wall, mono } = self.now;
        let ahead = at.0.saturating_sub(mono.0);
        Some(wall.plus(i64::try_from(ahead).unwrap_or(i64::MAX)))
    }
}
