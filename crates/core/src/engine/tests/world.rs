//! One engine, a tiny store, and a clock that tests move by hand.

use std::collections::{BTreeMap, VecDeque};

use crate::lease::Terms;
use crate::model::*;

use super::super::*;
use super::tables::Tables;

pub(super) const START: i64 = 1_800_000_000_000;

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) tables: Tables,
    pub(super) options: Options,
    pub(super) now: Now,
    /// How many rounds a load is under way; it brings what was committed when it began.
    pub(super) lag: usize,
    /// Runs that were read because they are parked.
    pub(super) parked_read: usize,
    under_way: VecDeque<(usize, Loaded)>,
    tickets: u64,
    deferred: Vec<Input>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(super) fn with_window(ready_window: usize) -> Self {
        Self::with(Options {
            ready_window,
            ..Options::default()
        })
    }

    pub(super) fn with(options: Options) -> Self {
        let now = Now {
            wall: WallMs(START),
            mono: MonoMs(1_000_000),
        };
        let tables = Tables::default();
        let engine = Self::boot(&tables, now, options.clone(), None);
        let mut world = Self {
            engine,
            tables,
            options,
            now,
            lag: 0,
            parked_read: 0,
            under_way: VecDeque::new(),
            tickets: 0,
            deferred: Vec::new(),
        };
        world.commit();
        world
    }

    pub(super) fn boot(
        tables: &Tables,
        now: Now,
        options: Options,
        believed_offset: Option<i64>,
    ) -> Engine {
        let boot = Self::read(tables, &SegmentSet::ALL, believed_offset);
        Engine::boot(options, now, boot)
    }

    /// What the store holds for whoever owns these segments.
    fn read(tables: &Tables, within: &SegmentSet, believed_offset: Option<i64>) -> Boot {
        let segments = (0..SegmentId::COUNT).map(|id| {
            let fresh = SegmentRow {
                id: SegmentId(id),
                owner: SessionId(1),
                epoch: Epoch(1),
                id_mark: 0,
            };
            tables
                .segments
                .get(&SegmentId(id))
                .cloned()
                .unwrap_or(fresh)
        });
        let active: Vec<Run> = tables
            .active
            .values()
            .filter(|run| run.parked.is_none() && within.contains(run.id.segment()))
            .cloned()
            .collect();
        let open = tables.backfills.values().filter(|row| row.is_open());
        let backfills: Vec<BackfillRow> = open.cloned().collect();
        let runs = active.iter().map(|run| (run.job, run.job_version));
        let open = backfills.iter().map(|row| (row.job, row.job_version));
        let pinned: Vec<(JobId, u32)> = runs.chain(open).collect();
        let mut jobs: Vec<JobId> = pinned.iter().map(|(job, _)| *job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let mut parked_keys: Vec<String> = tables
            .active
            .values()
            .filter_map(|run| run.parked.clone())
            .collect();
        parked_keys.sort_unstable();
        parked_keys.dedup();
        Boot {
            session: SessionId(1),
            seq: 1,
            segments: segments.filter(|row| within.contains(row.id)).collect(),
            counters: tables.counters.clone().into_iter().collect(),
            tokens: Vec::new(),
            settings: tables.settings.values().cloned().collect(),
            queues: tables.queues.values().cloned().collect(),
            rates: tables.rates.clone().into_iter().collect(),
            locks: tables.locks.values().cloned().collect(),
            lease_ms: 0,
            ties: tables.ties,
            drains: tables.drains.values().cloned().collect(),
            first_start_by: tables.parked_starts().first().map(|(by, _)| *by),
            jobs: jobs
                .into_iter()
                .filter_map(|id| tables.record(id))
                .collect(),
            versions: tables.old_versions(pinned.into_iter()),
            backfills,
            endings: tables.endings.values().take(ENDING_ROWS).cloned().collect(),
            active,
            parked_keys,
            calendars: tables.calendars.values().cloned().collect(),
            sweeps: tables.sweeps.values().cloned().collect(),
            new_time_zones: None,
            believed_offset,
        }
    }

    /// Segments come or go while the server works on.
    pub(super) fn move_segments(&mut self, give: SegmentSet, take: SegmentSet) {
        self.commit();
        let row = |id| SegmentRow {
            id,
            owner: SessionId(0),
            epoch: Epoch(1),
            id_mark: self.tables.segments.get(&id).map_or(0, |row| row.id_mark),
        };
        let change = Transfer {
            take: take.iter().map(row).collect(),
            revoke: Vec::new(),
            give,
        };
        assert!(self.engine.take_last_batch(self.now).is_none());
        let changes = self.engine.moves(&change);
        let (seq, within) = (changes.seq, self.engine.owns_after(&change));
        self.tables.apply(changes);
        let legacy = self.engine.bequeath(&change.give);
        let boot = Boot {
            seq,
            ..Self::read(&self.tables, &within, Some(self.engine.believed_offset()))
        };
        self.engine = Engine::succeed(self.options.clone(), self.now, boot, legacy);
        self.under_way.clear();
    }

    /// The server dies and another engine boots from what was committed.
    pub(super) fn restart(&mut self) {
        self.engine = Self::boot(&self.tables, self.now, self.options.clone(), None);
        self.under_way.clear();
        self.commit();
    }

    /// The server is started anew and grants other leases than before.
    pub(super) fn restart_granting(&mut self, terms: Terms) {
        let before = std::mem::replace(&mut self.options.terms, terms);
        let boot = Boot {
            lease_ms: before.lease_ms,
            ..Self::read(&self.tables, &SegmentSet::ALL, None)
        };
        self.engine = Engine::boot(self.options.clone(), self.now, boot);
        self.under_way.clear();
        self.commit();
    }

    /// The loop is reset: another engine goes on in the same process.
    pub(super) fn reset(&mut self) {
        let believed_offset = Some(self.engine.believed_offset());
        self.engine = Self::boot(
            &self.tables,
            self.now,
            self.options.clone(),
            believed_offset,
        );
        self.under_way.clear();
        self.commit();
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now.mono.0 += ms;
        self.now.wall.0 += ms as i64;
    }

    pub(super) fn step_clock(&mut self, ms: i64) {
        self.now.wall.0 += ms;
    }

    /// Steps an input, with what it needs. One that must wait for a commit is stepped again after the next.
    pub(super) fn step(&mut self, input: Input) {
        let mut input = input;
        // What is loaded may name another row that is needed.
        for _ in 0..9 {
            let Step::Need {
                request,
                input: again,
            } = self.engine.step(self.now, input)
            else {
                return;
            };
            let loaded = self.tables.load(request);
            assert!(matches!(
                self.engine.step(self.now, Input::Loaded(loaded)),
                Step::Done
            ));
            input = *again;
        }
        self.deferred.push(input);
    }

    /// Begins the loads that are wanted and ends those whose time has come. False when there was nothing to do.
    pub(super) fn loads(&mut self) -> bool {
        let wanted = self.engine.take_loads();
        let mut done = !wanted.is_empty();
        for request in wanted {
            let loaded = self.tables.load(request);
            self.parked_read += loaded.rows.iter().map(parked_in).sum::<usize>();
            self.under_way.push_back((self.lag, loaded));
        }
        for _ in 0..self.under_way.len() {
            match self.under_way.pop_front() {
                // As the driver does.
                Some((0, loaded)) if self.engine.is_full() => {
                    self.under_way.push_back((0, loaded));
                }
                Some((0, loaded)) => {
                    done = true;
                    self.step(Input::Loaded(loaded));
                }
                Some((rounds, loaded)) => self.under_way.push_back((rounds - 1, loaded)),
                None => {}
            }
        }
        done
    }

    pub(super) fn is_loading(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Ticks, then commits until there is nothing left to do at this time. Returns the effects.
    pub(super) fn commit(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        loop {
            self.loads();
            self.step(Input::Tick);
            match self.engine.take_batch(self.now) {
                None => {
                    if !self.loads() {
                        return effects;
                    }
                }
                Some(batch) => {
                    if let Some(changes) = batch.changes {
                        let seq = changes.seq;
                        self.tables.apply(changes);
                        self.engine.acknowledge(seq);
                    }
                    effects.extend(batch.effects);
                    for input in std::mem::take(&mut self.deferred) {
                        self.step(input);
                    }
                }
            }
        }
    }

    /// One batch, and what it needs to be read.
    pub(super) fn commit_once(&mut self) {
        self.loads();
        self.step(Input::Tick);
        if let Some(Batch {
            changes: Some(changes),
            ..
        }) = self.engine.take_batch(self.now)
        {
            let seq = changes.seq;
            self.tables.apply(changes);
            self.engine.acknowledge(seq);
        }
    }

    pub(super) fn tick_through(&mut self, ms: u64, step: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        for _ in 0..ms / step {
            self.pass(step);
            effects.extend(self.commit());
        }
        effects
    }

    pub(super) fn command(&mut self, command: Command) -> Result<Reply, Refusal> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.step(Input::Command {
            ticket,
            actor: Actor::new("tester"),
            command,
        });
        let mut answer = None;
        for effect in self.commit() {
            if let Effect::Reply {
                ticket: answered,
                reply,
            } = effect
                && answered == ticket
            {
                answer = Some(reply);
            }
        }
        answer.expect("every ticket is answered")
    }

    pub(super) fn put(&mut self, yaml_like: serde_json::Value) -> JobId {
        let spec: JobSpec = serde_json::from_value(yaml_like).expect("a valid manifest");
        match self.command(Command::PutJob {
            spec: Box::new(spec),
            condition: Condition::Any,
        }) {
            Ok(Reply::Job { record, .. }) => record.row.id,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn trigger(
        &mut self,
        job: &str,
        params: Option<&str>,
        key: Option<&str>,
    ) -> Result<Triggered, Refusal> {
        let trigger = Trigger {
            job: job_ref(job),
            params: params.map(|text| JsonText::parse("params", text).expect("JSON")),
            idempotency_key: key.map(str::to_owned),
            request: None,
            when: None,
            rerun: None,
            overlap: Obedience::Ignore,
            force: false,
        };
        match self.command(Command::TriggerRuns {
            triggers: vec![trigger],
        })? {
            Reply::Triggered(mut results) => results.remove(0),
            other => panic!("{other:?}"),
        }
    }

    /// Triggers a job so many times, in thousands.
    pub(super) fn trigger_many(&mut self, job: &str, count: usize, when: Option<When>) {
        for _ in 0..count / 1000 {
            let trigger = Trigger {
                job: job_ref(job),
                params: None,
                idempotency_key: None,
                request: None,
                when,
                rerun: None,
                overlap: Obedience::Ignore,
                force: false,
            };
            let triggers = vec![trigger; 1000];
            self.command(Command::TriggerRuns { triggers })
                .expect("made");
        }
    }

    pub(super) fn event(&mut self, stream: u64, event: WorkerEvent) {
        self.step(Input::Worker {
            stream: StreamId(stream),
            event,
        });
    }

    /// A worker dials in, beats once and grants its whole capacity.
    pub(super) fn worker(
        &mut self,
        process: u64,
        stream: u64,
        capacity: u32,
        held: Vec<AttemptRef>,
        beat: u64,
    ) -> Vec<Effect> {
        self.event(
            stream,
            WorkerEvent::Connected(hello(process, stream, capacity)),
        );
        self.beat(stream, beat, 0, held);
        self.event(
            stream,
            WorkerEvent::Granted {
                total: u64::from(capacity),
            },
        );
        self.commit()
    }

    pub(super) fn beat(
        &mut self,
        stream: u64,
        number: u64,
        acked_position: u64,
        held: Vec<AttemptRef>,
    ) {
        let wall = self.now.wall;
        let heartbeat = Heartbeat {
            number,
            acked_position,
            held,
            load: Load::default(),
            wall,
        };
        self.event(stream, WorkerEvent::Heartbeat(heartbeat));
    }

    /// The worker's report, not committed yet.
    pub(super) fn report(&mut self, stream: u64, attempt: AttemptRef, outcome: AttemptOutcome) {
        self.report_with(stream, attempt, |finished| finished.outcome = outcome);
    }

    /// A failure with whatever a worker may say of it, not committed yet.
    pub(super) fn report_with(
        &mut self,
        stream: u64,
        attempt: AttemptRef,
        change: impl FnOnce(&mut Finished),
    ) {
        let mut finished = Finished {
            attempt,
            outcome: AttemptOutcome::Failed,
            started: Some(self.now.wall),
            duration_ms: 1,
            exit_code: None,
            signal: None,
            http_status: None,
            verdict: None,
            cpu_ms: 0,
            peak_memory_bytes: 0,
            result: None,
            error: None,
            log: None,
        };
        change(&mut finished);
        self.event(stream, WorkerEvent::Finished(finished));
    }

    pub(super) fn finish(
        &mut self,
        stream: u64,
        attempt: AttemptRef,
        outcome: AttemptOutcome,
    ) -> Vec<Effect> {
        self.report(stream, attempt, outcome);
        self.commit()
    }

    /// Conservation: what was created has ended or is live, by the counters and by the tables.
    pub(super) fn check_conservation(&self) {
        let created: u64 = self
            .tables
            .counters
            .values()
            .map(|counters| counters.created)
            .sum();
        let live: u64 = self
            .tables
            .counters
            .values()
            .map(|counters| counters.live())
            .sum();
        assert_eq!(
            created,
            (self.tables.active.len() + self.tables.history.len()) as u64
        );
        assert_eq!(live, self.tables.active.len() as u64);
    }
}

fn parked_in(row: &LoadedRow) -> usize {
    match row {
        LoadedRow::Parked { runs, .. }
        | LoadedRow::Sorted { runs, .. }
        | LoadedRow::Queued { runs, .. } => runs.len(),
        _ => 0,
    }
}

pub(super) fn job_ref(name: &str) -> JobRef {
    JobRef {
        namespace: NamespaceName::default(),
        name: JobName::new(name).expect("a name"),
    }
}

pub(super) fn hello(process: u64, stream: u64, capacity: u32) -> Hello {
    Hello {
        worker: WorkerName::new(&format!("w{process}")).expect("a name"),
        process: ProcessId(process),
        stream_number: stream,
        namespace: None,
        host: "localhost".into(),
        version: "1".into(),
        labels: BTreeMap::new(),
        exec: true,
        http: true,
        enforcement: Default::default(),
        handlers: vec!["noop".into()],
        capacity,
        links: true,
    }
}

pub(super) fn assignments(effects: &[Effect]) -> Vec<(u64, AttemptRef)> {
    let assigned = effects.iter().filter_map(|effect| match effect {
        Effect::Send {
            stream,
            message: ToWorker::Assign(assign),
        } => Some((stream.0, assign.attempt)),
        _ => None,
    });
    assigned.collect()
}

pub(super) fn noop(name: &str) -> serde_json::Value {
    serde_json::json!({"kind": "Job", "name": name, "task": {"handler": {"name": "noop"}}})
}

/// The same job, whose runs are never tried again.
pub(super) fn once(mut spec: serde_json::Value) -> serde_json::Value {
    spec["retry"] = serde_json::json!({"max_attempts": 1, "max_lost": 1});
    spec
}

pub(super) fn every(name: &str, every: &str, overlap: &str) -> serde_json::Value {
    let mut spec = noop(name);
    spec["schedule"] = serde_json::json!([{"every": every}]);
    spec["overlap"] = overlap.into();
    spec
}
