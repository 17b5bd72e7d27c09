//! What it costs to give runs out: an engine by itself, with one worker that is always nearly full.
//!
//! `dispatch_cost KINDS RUNS [SPEC]` makes KINDS jobs, each with a handler and therefore a line of its own, runs each once, and
//! then RUNS runs of one more job, whose manifest SPEC adds to (JSON). Each of those has another `/c` in its parameters. The
//! engine has no clock of its own and nothing is timed here: count instructions from outside, with two values of RUNS, and the
//! difference is what RUNS cost. For example: `perf stat -e instructions:u`, or `valgrind --tool=callgrind`.

use std::collections::BTreeMap;

use drumtower_core::engine::{
    Assign, Boot, Command, Condition, Effect, Engine, Finished, Heartbeat, Hello, Input, JobRef,
    Load, Options, Step, StreamId, Ticket, ToWorker, Trigger, WorkerEvent,
};
use drumtower_core::model::{
    Actor, AttemptOutcome, Epoch, JobName, JobSpec, JsonText, MonoMs, NamespaceName, Now,
    ProcessId, SegmentId, SegmentRow, SessionId, WallMs, WorkerName,
};

const CAPACITY: u32 = 4;
const STREAM: StreamId = StreamId(1);

struct Bench {
    engine: Engine,
    now: Now,
    beats: u64,
    granted: u64,
    assigned: Vec<Assign>,
    given: usize,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = || args.next().and_then(|text| text.parse::<usize>().ok());
    let (Some(kinds), Some(runs)) = (number(), number()) else {
        panic!("usage: dispatch_cost KINDS RUNS [SPEC]");
    };
    let more: serde_json::Value = args.next().map_or(serde_json::json!({}), |text| {
        serde_json::from_str(&text).expect("SPEC is JSON")
    });
    let mut bench = Bench::new(kinds);
    for kind in 0..kinds {
        let name = format!("kind-{kind}");
        bench.put(&name, &serde_json::json!({}));
        bench.trigger(&name, kind, 1);
        bench.serve();
    }
    bench.put("busy", &more);
    for some in 0..runs / 100 {
        bench.trigger("busy", some * 100, 100);
        bench.serve();
    }
    println!("{} runs were given out", bench.given);
}

impl Bench {
    fn new(kinds: usize) -> Self {
        let now = Now {
            wall: WallMs(1_800_000_000_000),
            mono: MonoMs(1_000_000),
        };
        let segments = (0..SegmentId::COUNT).map(|id| SegmentRow {
            id: SegmentId(id),
            owner: SessionId(1),
            epoch: Epoch(1),
            id_mark: 0,
        });
        let boot = Boot {
            session: SessionId(1),
            seq: 1,
            segments: segments.collect(),
            ..Boot::default()
        };
        let mut bench = Self {
            engine: Engine::boot(Options::default(), now, boot),
            now,
            beats: 0,
            granted: u64::from(CAPACITY),
            assigned: Vec::new(),
            given: 0,
        };
        let handlers = (0..kinds).map(|kind| format!("kind-{kind}"));
        bench.event(WorkerEvent::Connected(Hello {
            worker: WorkerName::new("w").expect("a name"),
            process: ProcessId(1),
            stream_number: 1,
            namespace: None,
            host: "localhost".into(),
            version: "1".into(),
            labels: BTreeMap::new(),
            exec: true,
            http: true,
            enforcement: Default::default(),
            handlers: handlers.chain(["busy".to_owned()]).collect(),
            capacity: CAPACITY,
            links: false,
        }));
        bench.beat();
        let total = bench.granted;
        bench.event(WorkerEvent::Granted { total });
        bench.commit();
        bench
    }

    fn step(&mut self, input: Input) {
        let mut input = input;
        while let Step::Need {
            request,
            input: again,
        } = self.engine.step(self.now, input)
        {
            // Nothing is stored: a name that is not in memory is free.
            let rows = request.keys.into_iter().filter_map(|key| match key {
                drumtower_core::engine::LoadKey::JobNamed(name) => {
                    Some(drumtower_core::engine::LoadedRow::JobNamed(name, None))
                }
                _ => None,
            });
            let loaded = drumtower_core::engine::Loaded {
                id: request.id,
                rows: rows.collect(),
            };
            let _ = self.engine.step(self.now, Input::Loaded(loaded));
            input = *again;
        }
    }

    fn event(&mut self, event: WorkerEvent) {
        let stream = STREAM;
        self.step(Input::Worker { stream, event });
    }

    fn beat(&mut self) {
        self.beats += 1;
        let held = self.assigned.iter().map(|assign| assign.attempt);
        let heartbeat = Heartbeat {
            number: self.beats,
            acked_position: 0,
            held: held.collect(),
            load: Load::default(),
            wall: self.now.wall,
        };
        self.event(WorkerEvent::Heartbeat(heartbeat));
    }

    fn command(&mut self, command: Command) {
        self.step(Input::Command {
            ticket: Ticket(1),
            actor: Actor::new("bench"),
            command,
        });
        self.commit();
    }

    fn put(&mut self, name: &str, more: &serde_json::Value) {
        let mut spec = serde_json::json!({
            "kind": "Job", "name": name, "task": {"handler": {"name": name}},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let spec: JobSpec = serde_json::from_value(spec).expect("SPEC adds to a job");
        self.command(Command::PutJob {
            spec: Box::new(spec),
            condition: Condition::Any,
        });
    }

    fn trigger(&mut self, name: &str, first: usize, count: usize) {
        let trigger = |n: usize| Trigger {
            params: JsonText::parse("params", &format!(r#"{{"c": {n}}}"#)).ok(),
            ..Trigger::of(JobRef {
                namespace: NamespaceName::default(),
                name: JobName::new(name).expect("a name"),
            })
        };
        let triggers = (first..first + count).map(trigger).collect();
        self.command(Command::TriggerRuns { triggers });
    }

    /// Runs all that waits, one attempt at a time.
    fn serve(&mut self) {
        while let Some(assign) = self.assigned.pop() {
            self.event(WorkerEvent::Finished(Finished {
                attempt: assign.attempt,
                outcome: AttemptOutcome::Succeeded,
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
            }));
            self.granted += 1;
            let total = self.granted;
            self.event(WorkerEvent::Granted { total });
            self.commit();
        }
    }

    fn commit(&mut self) {
        while let Some(batch) = self.engine.take_batch(self.now) {
            if let Some(changes) = batch.changes {
                self.engine.acknowledge(changes.seq);
            }
            for effect in batch.effects {
                if let Effect::Send {
                    message: ToWorker::Assign(assign),
                    ..
                } = effect
                {
                    self.given += 1;
                    self.assigned.push(*assign);
                }
            }
        }
    }
}
