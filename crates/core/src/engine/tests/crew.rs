//! A worker with much room that runs what it is given and remembers the order.

use std::collections::BTreeMap;

use super::super::*;
use super::world::*;
use crate::model::*;

pub(super) struct Crew {
    pub(super) world: World,
    stream: u64,
    granted: u64,
    beats: u64,
    position: u64,
    /// Attempts under way, in the order in which they were given.
    pub(super) running: Vec<AttemptRef>,
    /// When each run was given to the worker, on the monotonic clock.
    pub(super) starts: Vec<(u64, RunId)>,
}

impl Crew {
    pub(super) fn of(world: World) -> Self {
        let mut crew = Self {
            world,
            stream: 0,
            granted: 0,
            beats: 0,
            position: 0,
            running: Vec::new(),
            starts: Vec::new(),
        };
        crew.dial();
        crew
    }

    /// Dials in, and names what it holds.
    pub(super) fn dial(&mut self) {
        self.stream += 1;
        self.beats += 1;
        self.position = 0;
        let held = self.running.clone();
        let hello = hello(7, self.stream, 10_000);
        self.world.event(self.stream, WorkerEvent::Connected(hello));
        self.world.beat(self.stream, self.beats, 0, held);
        self.granted = 10_000 - self.running.len() as u64;
        let total = self.granted;
        self.world
            .event(self.stream, WorkerEvent::Granted { total });
        self.settle();
    }

    pub(super) fn settle(&mut self) {
        let effects = self.world.commit();
        for effect in effects {
            if let Effect::Send {
                message: ToWorker::Assign(assign),
                ..
            } = effect
            {
                self.position = assign.position;
                self.running.push(assign.attempt);
                self.starts
                    .push((self.world.now.mono.0, assign.attempt.run));
            }
        }
    }

    pub(super) fn pass(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(1_000) {
            self.world.pass(ms.min(1_000));
            self.beats += 1;
            let held = self.running.clone();
            self.world
                .beat(self.stream, self.beats, self.position, held);
            self.settle();
        }
    }

    pub(super) fn end(&mut self, run: RunId, outcome: AttemptOutcome) {
        let place = self.running.iter().position(|attempt| attempt.run == run);
        let attempt = self.running.remove(place.expect("it runs"));
        self.world.report(self.stream, attempt, outcome);
        self.granted += 1;
        let total = self.granted;
        self.world
            .event(self.stream, WorkerEvent::Granted { total });
        self.settle();
    }

    /// Ends what was given first.
    pub(super) fn end_first(&mut self) -> RunId {
        let run = self.running[0].run;
        self.end(run, AttemptOutcome::Succeeded);
        run
    }

    /// Ends everything, in the order it was given; returns that order.
    pub(super) fn drain(&mut self) -> Vec<RunId> {
        let mut order = Vec::new();
        while !self.running.is_empty() {
            order.push(self.end_first());
        }
        order
    }

    pub(super) fn put(&mut self, spec: serde_json::Value) -> JobId {
        let spec: JobSpec = serde_json::from_value(spec).expect("a job");
        let name = spec.name.clone();
        self.command(Command::PutJob {
            spec: Box::new(spec),
            condition: Condition::Any,
        });
        let mut jobs = self.world.tables.jobs.values();
        jobs.find(|row| row.name == name && !row.deleted)
            .expect("it is there")
            .id
    }

    pub(super) fn queue(&mut self, spec: serde_json::Value) {
        let spec: QueueSpec = serde_json::from_value(spec).expect("a queue");
        let condition = Condition::Any;
        self.command(Command::PutQueue { spec, condition });
    }

    /// A command that is carried out.
    pub(super) fn command(&mut self, command: Command) {
        self.world.step(Input::Command {
            ticket: Ticket(0),
            actor: Actor::new("t"),
            command,
        });
        self.settle();
    }

    pub(super) fn trigger(&mut self, job: &str, params: &str) -> RunId {
        self.trigger_many(job, params, 1)[0]
    }

    pub(super) fn trigger_many(&mut self, job: &str, params: &str, count: usize) -> Vec<RunId> {
        let trigger = Trigger {
            params: Some(JsonText::parse("params", params).expect("JSON")),
            ..Trigger::of(job_ref(job))
        };
        let before: Vec<RunId> = self.runs();
        let mut left = count;
        while left > 0 {
            let some = left.min(1_000);
            left -= some;
            let triggers = vec![trigger.clone(); some];
            self.command(Command::TriggerRuns { triggers });
        }
        let mut made = self.runs();
        made.retain(|run| before.binary_search(run).is_err());
        made
    }

    fn runs(&self) -> Vec<RunId> {
        let tables = &self.world.tables;
        let ids: BTreeMap<RunId, ()> = tables
            .active
            .keys()
            .chain(tables.history.keys())
            .map(|run| (*run, ()))
            .collect();
        ids.into_keys().collect()
    }

    pub(super) fn runs_now(&self) -> Vec<RunId> {
        self.running.iter().map(|attempt| attempt.run).collect()
    }

    /// Nothing of limits is left in memory or in the store.
    #[track_caller]
    pub(super) fn is_empty(&self) {
        assert_eq!(self.world.engine.gates.len(), 0, "gates are left");
        assert_eq!(self.world.engine.pens.len(), 0, "pens are left");
        assert_eq!(self.world.engine.pens.length(), 0);
        assert!(self.world.tables.active.is_empty(), "runs are left");
        self.world.check_conservation();
    }
}

pub(super) fn queue_ref(name: &str) -> QueueRef {
    QueueRef {
        namespace: NamespaceName::default(),
        name: QueueName::new(name).expect("a name"),
    }
}

/// A job with something more than a task.
pub(super) fn with(name: &str, more: serde_json::Value) -> serde_json::Value {
    let mut spec = noop(name);
    for (key, value) in more.as_object().expect("keys") {
        spec[key] = value.clone();
    }
    spec
}
