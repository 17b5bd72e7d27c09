//! Which gates a run must pass, whether there is room at them, and who holds it.
//!
//! Limits and queue are those of the job's current definition, whatever version a run is pinned to: they are about what may
//! happen now. An edit holds at once for everything that is not leased, and never stops what is.

use std::sync::Arc;

use crate::fault::{Fault, armed};
use crate::model::{GateKey, MonoMs, Now, QueueRef, RateRow, Run, RunId, key_value};
use crate::rate::{NS_A_MS, Rate};

use super::Engine;
use super::gates::{Gate, GateId};
use super::jobs::Compiled;
use super::time::Timer;

/// Why a gate lets nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The queue is paused.
    Paused,
    /// As many attempts run as may.
    Full { held: u32, most: u32 },
    /// The rate admits the next then.
    Rate { at: MonoMs },
}

/// What a gate limits at the moment.
#[derive(Clone, Copy, Debug, Default)]
struct Says {
    paused: bool,
    most: Option<u32>,
    rate: Option<Rate>,
}

fn mono_ns(at: MonoMs) -> i64 {
    i64::try_from(at.0)
        .unwrap_or(i64::MAX)
        .saturating_mul(NS_A_MS)
}

/// The first millisecond that is not before an instant.
fn mono_ms(ns: i64) -> MonoMs {
    let ms = ns.div_euclid(NS_A_MS) + i64::from(ns.rem_euclid(NS_A_MS) > 0);
    MonoMs(u64::try_from(ms).unwrap_or(0))
}

impl Engine {
    /// The gates of a run, the more particular first; none when nothing limits it.
    pub(super) fn gates_of(&self, run: &Run, pinned: &Compiled) -> Vec<GateKey> {
        let current = &self.jobs.expect(run.job).compiled;
        if !current.is_gated() {
            return Vec::new();
        }
        let params = run.params.as_ref().or(pinned.version.spec.params.as_ref());
        let value = |pointer: &str| Arc::<str>::from(key_value(params, pointer));
        let queue = current.queue();
        let mut gates = Vec::with_capacity(4);
        let per_key = current.limits.as_ref().and_then(|it| it.per_key.as_ref());
        if let Some(per_key) = per_key {
            gates.push(GateKey::JobKey(run.job, value(&per_key.pointer)));
        }
        if let Some(queue) = &queue
            && let Some(per_key) = self.queues.limits(queue).and_then(|it| it.per_key.as_ref())
        {
            gates.push(GateKey::QueueKey(queue.clone(), value(&per_key.pointer)));
        }
        if current.limits.is_some() {
            gates.push(GateKey::Job(run.job));
        }
        gates.extend(queue.map(GateKey::Queue));
        gates
    }

    fn says(&self, key: &GateKey) -> Says {
        let of_job = |job| {
            self.jobs
                .get(job)
                .and_then(|job| job.compiled.limits.as_ref())
        };
        let per_key = |limits: &crate::model::ParsedLimits| {
            limits.per_key.as_ref().map(|per_key| per_key.most)
        };
        match key {
            GateKey::Job(job) => of_job(*job).map_or_else(Says::default, |limits| Says {
                paused: false,
                most: limits.concurrency,
                rate: limits.rate,
            }),
            GateKey::JobKey(job, _) => Says {
                most: of_job(*job).and_then(per_key),
                ..Says::default()
            },
            GateKey::QueueKey(queue, _) => Says {
                most: self.queues.limits(queue).and_then(per_key),
                ..Says::default()
            },
            GateKey::Queue(queue) => {
                let limits = self.queues.limits(queue);
                Says {
                    paused: self.queues.is_paused(queue),
                    most: limits.and_then(|limits| limits.concurrency),
                    rate: limits.and_then(|limits| limits.rate),
                }
            }
        }
    }

    /// Why the gate lets nothing through at the moment; `None` when it does.
    pub(super) fn obstacle(&self, id: GateId) -> Option<Obstacle> {
        let gate = self.gates.expect(id);
        let says = self.says(&gate.key);
        if says.paused {
            return Some(Obstacle::Paused);
        }
        if let Some(most) = says.most
            && gate.held >= most
        {
            let held = gate.held;
            return Some(Obstacle::Full { held, most });
        }
        let now = mono_ns(self.now.mono);
        let rate = says.rate.zip(gate.reached_ns);
        let (rate, reached) = rate.filter(|(rate, reached)| !rate.admits(*reached, now))?;
        let at = mono_ms(rate.next_at(reached));
        Some(Obstacle::Rate { at })
    }

    /// How many more the gate lets through at the moment, as far as can be said.
    pub(super) fn room_at(&self, id: GateId) -> usize {
        if self.obstacle(id).is_some() {
            return 0;
        }
        let gate = self.gates.expect(id);
        let says = self.says(&gate.key);
        let places = says.most.map(|most| most.saturating_sub(gate.held));
        let now = mono_ns(self.now.mono);
        let reached = gate.reached_ns.unwrap_or(i64::MIN);
        let starts = says.rate.map(|rate| rate.admitted(reached, now));
        let least = places.into_iter().chain(starts).min();
        least.map_or(usize::MAX, |least| least as usize)
    }

    /// A run is given to a worker: it takes a place at each of its gates, and one start of their rates.
    pub(super) fn take_places(&mut self, id: RunId) {
        let Some(pen) = self.runs.expect(id).pen else {
            return;
        };
        let now = mono_ns(self.now.mono);
        for gate in self.pens.expect(pen).gates.iter().copied() {
            let key = self.gates.expect(gate).key.clone();
            if let Some(rate) = self.says(&key).rate {
                let reached = self.gates.expect(gate).reached_ns.unwrap_or(i64::MIN);
                let reached = rate.admit(reached, now);
                self.gates.rate_used(gate, reached, rate.span_ns());
                self.building.rate(key);
            }
        }
        self.hold_places(id);
    }

    /// A leased run is counted at its gates.
    pub(super) fn hold_places(&mut self, id: RunId) {
        let resident = self.runs.expect_mut(id);
        let Some(pen) = resident.pen else {
            return;
        };
        assert!(!resident.holds, "{id} holds its places twice");
        resident.holds = true;
        if armed(Fault::PlaceNotCounted) {
            return;
        }
        for gate in self.pens.expect(pen).gates.iter() {
            self.gates.expect_mut(*gate).held += 1;
        }
    }

    /// The attempt of a run has ended: whoever waits for its places may have them.
    pub(super) fn free_places(&mut self, id: RunId) {
        let resident = self.runs.expect_mut(id);
        let Some(pen) = resident.pen else {
            return;
        };
        if !std::mem::take(&mut resident.holds) {
            return;
        }
        let gates = Arc::clone(&self.pens.expect(pen).gates);
        for gate in gates.iter().copied() {
            let held = &mut self.gates.expect_mut(gate).held;
            *held = held.saturating_sub(1);
            if !armed(Fault::GateNotWoken) {
                self.wake_gate(gate);
            }
        }
    }

    /// Sets the clock that wakes a gate, unless it rings before.
    pub(super) fn arm_gate(&mut self, id: GateId, at: MonoMs) {
        let at = at.max(self.now.mono.plus(1));
        match self.gates.expect(id).timer {
            Some((before, _)) if before <= at => return,
            Some((_, later)) => drop(self.wheel.cancel(later)),
            None => {}
        }
        let timer = self.wheel.insert(at.0, Timer::Gate(id));
        self.gates.expect_mut(id).timer = Some((at, timer));
    }

    /// The rate of a gate may admit the next, or is of no use any more.
    pub(super) fn gate_due(&mut self, id: GateId) {
        if self.gates.get(id).is_some() {
            self.gates.expect_mut(id).timer = None;
            self.wake_gate(id);
            self.drop_gate(id);
        }
    }

    /// Lets go of a gate that nothing waits at and nobody holds a place of. One whose rate has been used stays until that is
    /// over, and its row goes with it.
    pub(super) fn drop_gate(&mut self, id: GateId) {
        let gate = self.gates.expect(id);
        if gate.pens > 0 {
            return;
        }
        if let Some(reached) = gate.reached_ns
            && reached > mono_ns(self.now.mono)
        {
            self.arm_gate(id, mono_ms(reached));
            return;
        }
        let Some(gate) = self.gates.remove(id) else {
            return;
        };
        if let Some((_, timer)) = gate.timer {
            self.wheel.cancel(timer);
        }
        if gate.stored {
            self.building.rate(gate.key);
        }
    }

    /// A rate that had been used when the last engine ended.
    pub(super) fn revive_rate(&mut self, now: Now, key: &GateKey, row: RateRow) {
        let wall = now.wall.0.saturating_mul(NS_A_MS);
        let ahead = row.reached_ns.saturating_sub(wall).min(row.span_ns);
        let id = self.gates.of(key);
        let reached = mono_ns(now.mono).saturating_add(ahead);
        self.gates.rate_used(id, reached, row.span_ns);
        self.arm_gate(id, now.mono);
    }

    /// How far a rate has been used, by the wall clock.
    pub(super) fn rate_row(&self, key: &GateKey) -> Option<RateRow> {
        let gate = self.gates.expect(self.gates.find(key)?);
        let ahead = gate.reached_ns?.saturating_sub(mono_ns(self.now.mono));
        let wall = self.now.wall.0.saturating_mul(NS_A_MS);
        Some(RateRow {
            reached_ns: wall.saturating_add(ahead),
            span_ns: gate.span_ns,
        })
    }

    /// The wall clock has moved against the other: rows that speak of the time to come are written anew, as many as fit.
    pub(super) fn rewrite_rates(&mut self) {
        let now = mono_ns(self.now.mono);
        let used: Vec<GateId> = self.gates.rated().collect();
        for id in used {
            let gate = self.gates.expect(id);
            if gate.stored && gate.reached_ns > Some(now) && !self.building.is_full() {
                let key = gate.key.clone();
                self.building.rate(key);
            }
        }
    }

    /// The gates of a queue, or of one job, wake: what they say has changed.
    pub(super) fn limits_changed(&mut self, concerns: impl Fn(&GateKey) -> bool) {
        for id in self.gates.ids() {
            let concerned = |gate: &Gate| concerns(&gate.key);
            if self.gates.get(id).is_some_and(concerned) {
                self.bound_rate(id);
                self.wake_gate(id);
            }
        }
    }

    /// What was used of another rate counts as a burst of this one at most, so that nobody waits for what is not so any more.
    fn bound_rate(&mut self, id: GateId) {
        let gate = self.gates.expect(id);
        let rate = self.says(&gate.key).rate.zip(gate.reached_ns);
        if let Some((rate, reached)) = rate {
            let most = mono_ns(self.now.mono).saturating_add(rate.span_ns());
            if reached > most {
                let key = gate.key.clone();
                self.gates.rate_used(id, most, rate.span_ns());
                self.building.rate(key);
            }
        }
    }

    /// Gives every resident run that `concerns` picks its gates anew: what decides on them has changed.
    pub(super) fn regate(&mut self, concerns: impl Fn(&Run, Option<&QueueRef>) -> bool) {
        let queue_of = |resident: &super::runs::Resident| {
            let job = self.jobs.get(resident.run.job);
            job.and_then(|job| job.compiled.queue())
        };
        let picked: Vec<RunId> = self
            .runs
            .all()
            // One that waits for its turn comes to its gates after it.
            .filter(|resident| !resident.run.standing.queued)
            .filter(|resident| concerns(&resident.run, queue_of(resident).as_ref()))
            .map(|resident| resident.run.id)
            .collect();
        let waits = |id: &RunId| {
            let resident = self.runs.expect(*id);
            resident.run.current_attempt().is_none() && !self.delays.holds(*id)
        };
        let plain = |id: &RunId| self.runs.expect(*id).pen.is_none();
        let (waiting, others): (Vec<RunId>, Vec<RunId>) = picked.into_iter().partition(waits);
        self.lines
            .remove_all(&waiting.iter().copied().filter(plain).collect());
        for id in others {
            let leased = self.runs.expect(id).run.current_attempt().is_some();
            self.free_places(id);
            self.leave_pen(id);
            if leased {
                self.join_pen_of(id);
                self.hold_places(id);
            }
        }
        for id in waiting {
            if self.runs.expect(id).pen.is_some() {
                self.leave_line(id);
            }
            self.enter_line(id, super::enter_line::Enter::Kept);
        }
    }
}
