//! The workers: what they offer, what they hold, and how much more they take.
//!
//! A worker is one process. It has at most one current stream; what arrives on an older one is dropped. Credit belongs to
//! a stream and dies with it: `granted` and `consumed` are sums since the stream began. A process that is known only from
//! the attempts in the store, after a restart of the server, is a worker without a stream until it dials in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use crate::fault::{Fault, armed};
use crate::lease::Terms;
use crate::model::{
    Fence, MonoMs, Now, ProcessId, Requirement, RunId, SegmentSet, TaskNeed, WallMs, WorkerName,
    WorkerRef,
};
use crate::placement::Candidates;
use crate::wheel;

use super::health::{Kin, Trust};
use super::lines::{Line, LineIx, Lines};
use super::{AttemptRef, Enforcement, Engine, Hello, Load, StreamId};

/// An attempt that a worker holds, as far as the engine knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) attempt: u32,
    pub(super) fence: Fence,
    /// The stream and position it was sent on; `None` when the worker named it itself, or before a restart.
    pub(super) sent: Option<(StreamId, u64)>,
    /// It was given out before this engine lived: until then it may still arrive, from another server, or run by a longer
    /// lease than this engine grants.
    pub(super) arrives_by: MonoMs,
}

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) hello: Hello,
    pub(super) stream: Option<StreamId>,
    pub(super) granted: u64,
    pub(super) consumed: u64,
    /// The credit that it was asked for since it last gave some.
    pub(super) wanted: u32,
    /// Assignments sent on the current stream.
    pub(super) position: u64,
    pub(super) beat: u64,
    /// When a lease was last renewed, as the server must count it.
    pub(super) leased_from: MonoMs,
    pub(super) last_heartbeat: Option<WallMs>,
    pub(super) skew_ms: i64,
    /// Its clock is too far off, and that was told.
    pub(super) skewed: bool,
    pub(super) load: Load,
    /// It said that it takes no more: it is shutting down.
    pub(super) draining: bool,
    /// Its name is drained.
    pub(super) maintenance: bool,
    /// Heartbeats in a row on the current stream.
    pub(super) beats: u32,
    pub(super) trust: Trust,
    pub(super) connected: WallMs,
    pub(super) attempts: BTreeMap<RunId, Held>,
    /// Another server's, of which something was said on this stream and not heard.
    pub(super) unheard: BTreeSet<AttemptRef>,
    pub(super) timer: Option<wheel::Key>,
    /// The lines it is able to serve.
    lines: BTreeSet<LineIx>,
    /// Those of them that it does not stand in: it had no room when its turn came there.
    away: BTreeSet<LineIx>,
}

impl Worker {
    pub(super) fn credit(&self) -> u64 {
        self.granted.saturating_sub(self.consumed)
    }

    /// Whether it has said hello to this engine; streams are numbered from 1.
    pub(super) fn has_dialled(&self) -> bool {
        self.hello.stream_number > 0
    }

    /// Its stream began or broke: nothing was heard on it yet.
    pub(super) fn doubt(&mut self) {
        self.beats = 0;
        self.trust = Trust::Nothing;
    }

    /// Whether it is given work at all, as far as it is known.
    pub(super) fn takes_work(&self) -> bool {
        let open = !self.draining && !self.maintenance;
        self.stream.is_some() && open && self.trust == Trust::Full
    }

    /// Whether it would be given something if there were credit for it.
    pub(super) fn lacks_only_credit(&self) -> bool {
        let open = !self.draining && !self.maintenance;
        self.stream.is_some() && open && self.is_trusted()
    }

    fn is_trusted(&self) -> bool {
        match self.trust {
            Trust::Nothing => false,
            Trust::OneRun => self.attempts.is_empty() || armed(Fault::ProbationUnbounded),
            Trust::Full => true,
        }
    }

    /// When nothing that it holds can still run. What came from another server may have been prolonged there after this one was
    /// last heard of here.
    pub(super) fn over_at(&self, terms: &Terms) -> MonoMs {
        let came = self.attempts.values().map(|held| held.arrives_by).max();
        terms
            .over_at(self.leased_from)
            .max(came.unwrap_or_default())
    }

    /// What belongs to a stream that is gone is void.
    pub(super) fn forget_stream(&mut self) {
        self.granted = 0;
        self.consumed = 0;
        self.wanted = 0;
        self.position = 0;
        self.unheard.clear();
    }

    fn is_able(&self, requirement: &Requirement) -> bool {
        let scope = self
            .hello
            .namespace
            .as_ref()
            .is_none_or(|scope| *scope == requirement.namespace);
        let task = match &requirement.need {
            TaskNeed::Exec => self.hello.exec,
            TaskNeed::Http => self.hello.http,
            TaskNeed::Handler(name) => self.hello.handlers.iter().any(|handler| handler == name),
        };
        scope && task && self.hello.capacity >= requirement.weight
    }

    /// The greatest weight among the runs that wait and that it is able to serve.
    pub(super) fn heaviest_waiting(&self, lines: &Lines) -> u32 {
        let lines = self.lines.iter().map(|ix| lines.line(*ix));
        // Of a pen that stands in line all runs may be parked.
        let waited_in =
            lines.filter(|line| line.waits() || line.waiting() > 0 || line.has_parked());
        let weights = waited_in.map(|line| line.requirement.weight);
        weights.max().unwrap_or(0)
    }

    /// Whether it may be given a run of this weight.
    pub(super) fn has_room(&self, weight: u32, terms: &Terms, now: MonoMs) -> bool {
        self.lacks_only_credit()
            && self.beat > 0
            && self.credit() >= u64::from(weight)
            && terms.fresh(self.leased_from, now)
    }
}

#[derive(Debug, Default)]
pub(super) struct Fleet {
    workers: BTreeMap<ProcessId, Worker>,
    streams: BTreeMap<StreamId, ProcessId>,
    /// The one that was looked at last when credit was wanted.
    looked_at: ProcessId,
}

impl Fleet {
    pub(super) fn get(&self, process: ProcessId) -> Option<&Worker> {
        self.workers.get(&process)
    }

    pub(super) fn get_mut(&mut self, process: ProcessId) -> Option<&mut Worker> {
        self.workers.get_mut(&process)
    }

    pub(super) fn expect_mut(&mut self, process: ProcessId) -> &mut Worker {
        self.workers
            .get_mut(&process)
            .unwrap_or_else(|| panic!("worker process {:x} is not known", process.0))
    }

    /// The process whose current stream this is.
    pub(super) fn current(&self, stream: StreamId) -> Option<ProcessId> {
        self.streams.get(&stream).copied()
    }

    pub(super) fn close_stream(&mut self, stream: StreamId) -> Option<ProcessId> {
        self.streams.remove(&stream)
    }

    pub(super) fn open_stream(&mut self, stream: StreamId, process: ProcessId) {
        self.streams.insert(stream, process);
    }

    /// Adds a process, or brings what it says of itself up to date.
    pub(super) fn register(&mut self, now: Now, hello: Hello) -> &mut Worker {
        let process = hello.process;
        let worker = self.workers.entry(process).or_insert_with(|| Worker {
            hello: hello.clone(),
            stream: None,
            granted: 0,
            consumed: 0,
            wanted: 0,
            position: 0,
            beat: 0,
            leased_from: now.mono,
            last_heartbeat: None,
            skew_ms: 0,
            skewed: false,
            load: Load::default(),
            draining: false,
            maintenance: false,
            beats: 0,
            trust: Trust::Nothing,
            connected: now.wall,
            attempts: BTreeMap::new(),
            unheard: BTreeSet::new(),
            timer: None,
            lines: BTreeSet::new(),
            away: BTreeSet::new(),
        });
        worker.hello = hello;
        worker
    }

    pub(super) fn remove(&mut self, process: ProcessId) -> Option<Worker> {
        let worker = self.workers.remove(&process)?;
        if let Some(stream) = worker.stream {
            self.streams.remove(&stream);
        }
        Some(worker)
    }

    pub(super) fn able(&self, requirement: &Requirement) -> Vec<ProcessId> {
        let able = self
            .workers
            .iter()
            .filter(|(_, worker)| worker.is_able(requirement));
        able.map(|(process, _)| *process).collect()
    }

    /// What the workers keep when another engine takes them over: all but their places in lines, timers, and attempts of
    /// segments that are not among those `kept`.
    pub(super) fn leave_engine(&mut self, kept: &SegmentSet) {
        for worker in self.workers.values_mut() {
            worker.lines.clear();
            worker.away.clear();
            worker.timer = None;
            worker.wanted = 0;
            worker
                .attempts
                .retain(|run, _| kept.contains(run.segment()));
        }
        // Known only from attempts, it may be another server's to know.
        self.workers
            .retain(|_, worker| worker.has_dialled() || !worker.attempts.is_empty());
    }

    pub(super) fn retain_attempts(&mut self, stays: impl Fn(RunId, &Held) -> bool) {
        for worker in self.workers.values_mut() {
            worker.attempts.retain(|run, held| stays(*run, held));
        }
    }

    /// Lines have left that nothing waits in.
    pub(super) fn forget_lines(&mut self, gone: &BTreeSet<LineIx>) {
        for worker in self.workers.values_mut() {
            worker.lines.retain(|line| !gone.contains(line));
            worker.away.retain(|line| !gone.contains(line));
        }
    }

    /// Some of those that are able to serve a line, others at each call.
    pub(super) fn some_that_serve(&mut self, line: LineIx, most: usize) -> Vec<ProcessId> {
        let from = self.looked_at;
        let after = self.workers.range((Excluded(from), Unbounded));
        let before = self.workers.range(..=from);
        let looked_at = after.chain(before).take(most);
        let mut serve = Vec::new();
        for (process, worker) in looked_at {
            self.looked_at = *process;
            if worker.lines.contains(&line) {
                serve.push(*process);
            }
        }
        serve
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&ProcessId, &Worker)> {
        self.workers.iter()
    }

    /// The processes that these words name.
    pub(super) fn named(&self, workers: &WorkerRef) -> Vec<ProcessId> {
        let named = self.workers.iter().filter(|(_, worker)| {
            let hello = &worker.hello;
            workers.names(&hello.worker, hello.namespace.as_ref())
        });
        named.map(|(process, _)| *process).collect()
    }

    /// The processes of one name whose tokens are bound alike.
    pub(super) fn of(&self, kin: &Kin) -> Vec<ProcessId> {
        let kindred = self.workers.iter().filter(|(_, worker)| {
            let hello = &worker.hello;
            hello.worker == kin.name && hello.namespace == kin.namespace
        });
        kindred.map(|(process, _)| *process).collect()
    }
}

/// The members of one line, for placement.
pub(super) struct Members<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) line: &'a Line,
}

impl Candidates for Members<'_> {
    fn len(&self) -> usize {
        self.line.members().len()
    }

    fn load(&self, index: usize) -> u32 {
        let worker = self
            .line
            .members()
            .get(index)
            .and_then(|process| self.fleet.get(*process));
        worker.map_or(u32::MAX, |worker| {
            let capacity = u64::from(worker.hello.capacity.max(1));
            let used = capacity.saturating_sub(worker.credit());
            ((used * 1000 / capacity) as u32).saturating_add(worker.load.cpu_permille.min(1000))
        })
    }
}

impl Engine {
    /// A process that attempts in the store name, before it has dialled in. Its leases count from now.
    pub(super) fn expect_worker(&mut self, now: Now, name: &WorkerName, process: ProcessId) {
        if self.fleet.get(process).is_none() {
            let hello = Hello {
                worker: name.clone(),
                process,
                stream_number: 0,
                namespace: None,
                host: String::new(),
                version: String::new(),
                labels: BTreeMap::new(),
                exec: false,
                http: false,
                enforcement: Enforcement::default(),
                handlers: Vec::new(),
                capacity: 0,
                links: false,
            };
            self.fleet.register(now, hello);
            self.keep_maintenance(process);
            self.arm_lease(now, process);
        }
    }

    /// Computes anew which lines a process is able to serve: what it offers has changed.
    pub(super) fn match_lines(&mut self, process: ProcessId) {
        let Some(worker) = self.fleet.get_mut(process) else {
            return;
        };
        for line in std::mem::take(&mut worker.lines) {
            self.lines.leave(line, process);
        }
        worker.away.clear();
        let all = self.lines.all();
        let able = all.filter(|(_, line)| worker.is_able(&line.requirement));
        let able: Vec<LineIx> = able.map(|(ix, _)| ix).collect();
        for line in able {
            self.stand_in(process, line);
        }
    }

    /// A process that is able to serve a line stands in it, until it is found to have no room.
    pub(super) fn stand_in(&mut self, process: ProcessId, line: LineIx) {
        self.fleet.expect_mut(process).lines.insert(line);
        self.lines.join(line, process);
    }

    /// A process has no room for a run of a line.
    pub(super) fn step_out(&mut self, process: ProcessId, line: LineIx) {
        self.lines.leave(line, process);
        self.fleet.expect_mut(process).away.insert(line);
    }

    /// Puts a process back in the lines that it was taken out of, where it has room.
    pub(super) fn place_in_lines(&mut self, process: ProcessId) {
        let now = MonoMs(self.wheel.now());
        let terms = &self.options.terms;
        let Some(worker) = self.fleet.get_mut(process) else {
            return;
        };
        if worker.away.is_empty() || !worker.has_room(1, terms, now) {
            return;
        }
        let mut away = std::mem::take(&mut worker.away);
        away.retain(|ix| {
            let weight = self.lines.line(*ix).requirement.weight;
            let room = worker.has_room(weight, terms, now);
            if room {
                self.lines.join(*ix, process);
            }
            !room
        });
        worker.away = away;
    }

    pub(super) fn leave_all_lines(&mut self, process: ProcessId) {
        let Some(worker) = self.fleet.get_mut(process) else {
            return;
        };
        worker.away.clone_from(&worker.lines);
        for ix in &worker.lines {
            self.lines.leave(*ix, process);
        }
    }

    /// How many workers have room for a run of a line.
    pub(super) fn workers_with_room(&self, line: &Line) -> usize {
        let now = MonoMs(self.wheel.now());
        let (terms, weight) = (&self.options.terms, line.requirement.weight);
        let members = line.members().iter();
        let workers = members.filter_map(|process| self.fleet.get(*process));
        workers
            .filter(|worker| worker.has_room(weight, terms, now))
            .count()
    }

    /// The worker lets go of exactly this attempt.
    pub(super) fn release_attempt(&mut self, process: ProcessId, attempt: AttemptRef) {
        if let Some(worker) = self.fleet.get_mut(process) {
            let held = worker.attempts.get(&attempt.run);
            if held
                .is_some_and(|held| held.attempt == attempt.attempt && held.fence == attempt.fence)
            {
                worker.attempts.remove(&attempt.run);
            }
        }
    }
}
