//! A run's life, written down step by step. What follows on an end is what the engine would do: it asks the same tables.

use drumtower_core::engine::{Held, Hindrance, Load, WorkerState, WorkerView};
use drumtower_core::explain::run::{Account, Known, explain};
use drumtower_core::model::{
    Actor, Attempt, AttemptEnd, AttemptOutcome, BreakerRow, CancelRequest, CheckpointMark, Fence,
    GateKey, JobId, JobName, JobSpec, Judgement, NamespaceName, Open, Origin, ProcessId, Progress,
    Reason, Run, RunId, RunState, Standing, Transition, WallMs, WorkerName,
};
use serde_json::{Value, json};

/// 2026-11-16 08:00:00 UTC.
const START_MS: i64 = 1_794_816_000_000;

/// So many seconds after eight.
pub fn at(seconds: f64) -> WallMs {
    WallMs(START_MS + (seconds * 1000.0).round() as i64)
}

fn actor(name: &str) -> Actor {
    Actor::new(name)
}

pub struct Life {
    pub run: Run,
    pub spec: JobSpec,
    pub fleet: Vec<WorkerView>,
    limit: Option<Hindrance>,
    breaker: Option<BreakerRow>,
    now: WallMs,
}

impl Life {
    /// A run that the schedule made in time, of a job with these keys besides.
    pub fn of_job(keys: Value) -> Self {
        let mut spec = json!({
            "kind": "Job", "name": "report", "task": {"exec": {"argv": ["true"]}},
            "retry": {"jitter": false},
        });
        for (key, value) in keys.as_object().expect("keys") {
            spec[key] = value.clone();
        }
        let spec: JobSpec = serde_json::from_value(spec).expect("a job");
        let run = Run {
            id: RunId(0x0067_8000_0000_1000),
            namespace: spec.namespace.clone(),
            job: JobId(7),
            job_version: 3,
            state: RunState::Pending,
            origin: Origin::Schedule,
            actor: actor("schedule"),
            nominal: Some(at(0.0)),
            due: at(0.0),
            created: at(0.0),
            retention: Default::default(),
            params: None,
            idempotency_key: None,
            parent_run: None,
            root_run: None,
            rerun_of: None,
            backfill: None,
            shard: None,
            not_before: None,
            start_by: None,
            parked: None,
            standing: Standing::of(Origin::Schedule),
            cancel: None,
            attempts: Vec::new(),
            transitions: vec![Transition {
                to: RunState::Pending,
                at: at(0.0),
                reason: Reason::Created,
                attempt: 0,
            }],
            progress: None,
            checkpoint: None,
            result: None,
            error: None,
        };
        Self {
            run,
            spec,
            fleet: vec![worker("mill"), worker("forge")],
            limit: None,
            breaker: None,
            now: at(0.0),
        }
    }

    pub fn new() -> Self {
        Self::of_job(json!({}))
    }

    /// Made by a person instead.
    pub fn by(mut self, name: &str) -> Self {
        self.run.origin = Origin::Api;
        self.run.actor = actor(name);
        self.run.nominal = None;
        self
    }

    /// Made so late.
    pub fn made(mut self, seconds: f64) -> Self {
        self.run.created = at(seconds);
        self.run.transitions[0].at = at(seconds);
        self
    }

    pub fn change(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn given(mut self, seconds: f64, worker: &str) -> Self {
        let number = u32::try_from(self.run.attempts.len()).expect("few") + 1;
        self.run.attempts.push(Attempt {
            number,
            fence: Fence(number.into()),
            worker: WorkerName::new(worker).expect("a name"),
            process: ProcessId(number.into()),
            assigned: at(seconds),
            started: None,
            end: None,
        });
        self.run.not_before = None;
        let reason = Reason::Assigned;
        self.run
            .transition(RunState::Scheduled, at(seconds), reason);
        self
    }

    pub fn started(mut self, seconds: f64) -> Self {
        self.run.attempts.last_mut().expect("given").started = Some(at(seconds));
        let reason = Reason::Started;
        self.run.transition(RunState::Running, at(seconds), reason);
        self
    }

    pub fn checkpoint(mut self, seconds: f64, number: u64) -> Self {
        self.run.checkpoint = Some(CheckpointMark {
            number,
            attempt: u32::try_from(self.run.attempts.len()).expect("few"),
            at: at(seconds),
            bytes: 2048,
        });
        self
    }

    pub fn progress(mut self, seconds: f64, percent: u8, message: &str) -> Self {
        self.run.progress = Some(Progress {
            percent,
            message: Some(message.to_owned()),
            at: at(seconds),
        });
        self
    }

    pub fn cancel(mut self, seconds: f64, name: &str) -> Self {
        self.run.cancel = Some(CancelRequest {
            at: at(seconds),
            actor: actor(name),
        });
        if self.run.current_attempt().is_none() {
            let reason = Reason::Cancelled;
            self.run
                .transition(RunState::Cancelled, at(seconds), reason);
            self.run.error = Some(format!("cancelled by {name} before it started"));
        }
        self
    }

    pub fn ended(self, seconds: f64, outcome: AttemptOutcome, error: &str) -> Self {
        self.ended_with(seconds, outcome, error, |_| {})
    }

    pub fn ended_with(
        mut self,
        seconds: f64,
        outcome: AttemptOutcome,
        error: &str,
        more: impl FnOnce(&mut AttemptEnd),
    ) -> Self {
        let now = at(seconds);
        let last = self.run.attempts.last_mut().expect("given");
        let since = last.started.unwrap_or(last.assigned);
        let mut end = AttemptEnd {
            outcome,
            at: now,
            duration_ms: now.since(since).unsigned_abs(),
            exit_code: None,
            signal: None,
            http_status: None,
            verdict: None,
            cpu_ms: 0,
            peak_memory_bytes: 0,
            error: (!error.is_empty()).then(|| error.to_owned()),
            log: None,
        };
        more(&mut end);
        last.end = Some(end);
        let policy = self.spec.parsed_retry().expect("valid");
        let judgement = policy.judge(self.run.id, &self.run.attempts);
        let line = outcome.line();
        match (judgement, line.again) {
            (_, Some(_)) if self.run.cancel.is_some() => {
                let reason = Reason::Cancelled;
                self.run.transition(RunState::Cancelled, now, reason);
            }
            (Some(Judgement::Again { wait_ms, .. }), Some(reason)) => {
                self.run.transition(RunState::Pending, now, reason);
                let wait = i64::try_from(wait_ms).expect("short");
                self.run.not_before = (wait > 0).then(|| now.plus(wait));
            }
            _ => {
                self.run.transition(line.end.0, now, line.end.1);
                self.run.error = (!error.is_empty()).then(|| error.to_owned());
            }
        }
        self
    }

    /// It waits at this gate.
    pub fn limited(mut self, gate: &str, what: Held) -> Self {
        let gate = GateKey::parse(gate).expect("a gate");
        self.limit = Some(Hindrance { gate, what });
        self
    }

    /// The breaker of its job opened then, and tries with this run.
    pub fn broken(mut self, seconds: f64, probe: Option<RunId>) -> Self {
        self.breaker = Some(BreakerRow {
            job: self.run.job,
            failures: 5,
            open: Some(Open {
                since: at(seconds),
                at: at(seconds),
                cooldown_ms: 60_000,
                probe,
                passed: 0,
            }),
        });
        self
    }

    pub fn seen(mut self, seconds: f64) -> Account {
        self.now = at(seconds);
        let job: JobName = self.spec.name.clone();
        explain(&Known {
            run: &self.run,
            job: Some(&job),
            spec: Some(&self.spec),
            fleet: Some(&self.fleet),
            limit: self.limit.as_ref(),
            breaker: self.breaker.as_ref(),
            now: self.now,
        })
    }
}

/// A worker that runs commands.
fn worker(name: &str) -> WorkerView {
    WorkerView {
        name: WorkerName::new(name).expect("a name"),
        state: WorkerState::Busy,
        why: None,
        linked: true,
        alive: true,
        drain: None,
        losses: 0,
        faulty_until: None,
        probation: false,
        host: String::new(),
        version: String::new(),
        labels: Default::default(),
        namespace: None,
        exec: true,
        http: false,
        enforcement: Default::default(),
        handlers: Vec::new(),
        capacity: 4,
        credit: 0,
        attempts: 4,
        running: Vec::new(),
        load: Load::default(),
        skew_ms: 0,
        connected: at(-3600.0),
        last_heartbeat: Some(at(-1.0)),
    }
}

pub fn namespace(name: &str) -> NamespaceName {
    NamespaceName::new(name).expect("a name")
}
