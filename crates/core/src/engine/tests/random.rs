//! Random histories: whatever happens in whatever order, the promises about runs hold.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::*;
use super::backfills::{Tend, drawn};
use super::crew::queue_ref;
use super::fires::account_every;
use super::tables::Tables;
use super::told::tell_every_run;
use super::world::*;
use crate::model::*;

#[derive(Clone, Debug)]
enum Act {
    Pass(u64),
    StepClock(i64),
    Trigger,
    Limit(usize),
    Queue(usize),
    PauseQueue(bool),
    DeleteQueue,
    /// A trigger of this timed job, or of one with keys, that obeys its overlap.
    Obey(usize, u8),
    Connect(u64),
    Break(u64),
    Beat(u64),
    Finish(u64, End),
    Cancel(usize),
    Restart,
    Pause,
    Resume,
    Policy(usize),
    Lag(usize),
    Drain(u64, Option<u64>),
    ResumeWorker(u64),
    /// A backfill of a job, over so many seconds up to so many seconds ago.
    Backfill(usize, i64, i64, u32),
    /// What people do to the newest, or the one before it.
    Tend(usize, Tend),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Good,
    Bad,
    TooLong,
    PutOff,
    GivenUp,
}

const ENDS: [End; 5] = [End::Good, End::Bad, End::TooLong, End::PutOff, End::GivenUp];

/// What a job may say about times that passed, and about failures.
const POLICIES: [&str; 17] = [
    r#"{"misfire": {"policy": "skip"}}"#,
    r#"{"misfire": {"policy": "all", "max": 7}, "on_resume": {"policy": "all", "gap": "1500ms"}}"#,
    r#"{"misfire": {"policy": "all", "window": "20s", "gap": "2s"}, "on_resume": {"policy": "latest"}}"#,
    r#"{"misfire": {"window": "10s"}}"#,
    r#"{"overlap": "skip"}"#,
    r#"{"start_timeout": "8s"}"#,
    r#"{"retry": {"max_attempts": 5, "initial": "90s", "max_lost": 1}}"#,
    r#"{"retry": {"max_attempts": 2, "initial": "0s", "priority": 9, "max_lost": 5}}"#,
    r#"{"overlap": "queue", "misfire": {"policy": "all", "max": 9, "window": "30s"}}"#,
    r#"{"overlap": {"on_full": "queue", "limit": 2, "depth": 2, "keep": "newest"}}"#,
    r#"{"overlap": {"on_full": "queue", "limit": 3, "depth": 2, "key": "/k"}, "params": {"k": 1}}"#,
    r#"{"overlap": {"on_full": "cancel_old", "limit": 2}}"#,
    r#"{"overlap": "cancel_old", "misfire": {"policy": "all"}}"#,
    r#"{"overlap": "fail"}"#,
    r#"{"overlap": "queue", "breaker": {"failures": 1, "cooldown": "8s", "max_cooldown": "30s"}, "retry": {"max_attempts": 1}}"#,
    r#"{"queue": "q"}"#,
    r#"{"queue": "q", "limits": {"concurrency": 1}, "retry": {"initial": "0s"}}"#,
];
/// What the job that is triggered may say about limits.
const LIMITS: [&str; 6] = [
    "{}",
    r#"{"limits": {"concurrency": 1}}"#,
    r#"{"limits": {"concurrency": 3, "key": "/k", "per_key": 1}}"#,
    r#"{"limits": {"key": "", "per_key": 2}, "queue": "q"}"#,
    r#"{"limits": {"rate": "2/5s", "burst": 2}, "queue": "q"}"#,
    r#"{"queue": "other", "priority": 9}"#,
];
const QUEUES: [&str; 5] = [
    "{}",
    r#"{"concurrency": 1}"#,
    r#"{"concurrency": 3, "key": "/k", "per_key": 1}"#,
    r#"{"key": "/k", "per_key": 2}"#,
    r#"{"rate": "3/4s", "concurrency": 4}"#,
];
/// The jobs whose times are accounted for, with their periods.
const TIMED: [(&str, i64); 3] = [("a", 1000), ("c", 700), ("d", 90_000)];

fn timed(name: &str, period: i64, policy: &str) -> serde_json::Value {
    let mut spec = every(name, &format!("{period}ms"), "allow");
    let policy: serde_json::Value = serde_json::from_str(policy).expect("JSON");
    for (key, value) in policy.as_object().expect("keys") {
        spec[key] = value.clone();
    }
    if name == "c" {
        spec["jitter"] = serde_json::json!("500ms");
    }
    spec
}

fn triggered(limits: &str) -> serde_json::Value {
    let mut spec = noop("b");
    spec["retry"] = serde_json::json!({"initial": "90s", "max_attempts": 4});
    let limits: serde_json::Value = serde_json::from_str(limits).expect("JSON");
    for (key, value) in limits.as_object().expect("keys") {
        spec[key] = value.clone();
    }
    spec
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1_u64..4_000).prop_map(Act::Pass),
        1 => (-5_000_i64..5_000).prop_map(Act::StepClock),
        1 => (-7_200_000_i64..7_200_000).prop_map(Act::StepClock),
        1 => (5_000_u64..200_000).prop_map(Act::Pass),
        1 => (0..POLICIES.len()).prop_map(Act::Policy),
        1 => (0_usize..6).prop_map(Act::Lag),
        4 => Just(Act::Trigger),
        1 => (0..LIMITS.len()).prop_map(Act::Limit),
        1 => (0..QUEUES.len()).prop_map(Act::Queue),
        1 => any::<bool>().prop_map(Act::PauseQueue),
        1 => Just(Act::DeleteQueue),
        3 => ((0_usize..4), (0_u8..3)).prop_map(|(job, key)| Act::Obey(job, key)),
        2 => (0_u64..3).prop_map(Act::Connect),
        1 => (0_u64..3).prop_map(Act::Break),
        4 => (0_u64..3).prop_map(Act::Beat),
        6 => ((0_u64..3), (0..ENDS.len())).prop_map(|(worker, end)| Act::Finish(worker, ENDS[end])),
        1 => (0_usize..8).prop_map(Act::Cancel),
        1 => Just(Act::Restart),
        1 => ((0_u64..3), proptest::option::of(0_u64..30_000))
            .prop_map(|(worker, deadline)| Act::Drain(worker, deadline)),
        1 => (0_u64..3).prop_map(Act::ResumeWorker),
        1 => Just(Act::Pause),
        1 => Just(Act::Resume),
        2 => (0_usize..3, 1_i64..60, 0_i64..30, 1_u32..9).prop_map(|(job, length, ago, choice)| {
            Act::Backfill(job, length, ago, choice)
        }),
        2 => (0_usize..2, 0..Tend::ALL.len()).prop_map(|(back, tend)| Act::Tend(back, Tend::ALL[tend])),
    ]
}

/// A worker that keeps the rules: it runs what it is given while its lease lasts.
#[derive(Default)]
struct Puppet {
    stream: Option<u64>,
    held: BTreeSet<AttemptRef>,
    position: u64,
    granted: u64,
    consumed: u64,
    leased_until: u64,
}

/// The gates of a run by what the store says, with what each allows.
fn gates(tables: &Tables, run: &Run) -> Vec<(GateKey, Option<u32>)> {
    let row = &tables.jobs[&run.job];
    let spec = &tables.versions[&(run.job, row.version)].spec;
    let params = run.params.as_ref();
    let value = |pointer: &str| std::sync::Arc::<str>::from(key_value(params, pointer));
    let mut gates = Vec::new();
    if let Some(limits) = &spec.limits {
        gates.push((GateKey::Job(run.job), limits.concurrency));
        if let Some(key) = &limits.key {
            gates.push((GateKey::JobKey(run.job, value(key)), limits.per_key));
        }
    }
    let queue = spec.queue.as_ref().map(|name| queue_ref(name.as_str()));
    if let Some(row) = queue.and_then(|queue| tables.queues.get(&queue))
        && !row.deleted
    {
        gates.push((GateKey::Queue(row.queue()), row.spec.concurrency));
        if let Some(key) = &row.spec.key {
            let gate = GateKey::QueueKey(row.queue(), value(key));
            gates.push((gate, row.spec.per_key));
        }
    }
    gates
}

const CAPACITY: u32 = 2;

fn named(process: u64) -> WorkerRef {
    WorkerRef {
        name: hello(process, 1, CAPACITY).worker,
        namespace: None,
    }
}

struct Play {
    world: World,
    puppets: BTreeMap<u64, Puppet>,
    streams: u64,
    beats: u64,
    sent_at: BTreeMap<u64, u64>,
    started: BTreeSet<(RunId, u32)>,
    fences: BTreeMap<RunId, Fence>,
    /// The most that the timed jobs may have under way since the last look, and how many they had then.
    most: u32,
    were: BTreeMap<(JobId, Option<String>), u32>,
    /// How far the wall clock was set back in all.
    set_back: i64,
    /// What gates allowed when it was last looked.
    allowed: BTreeMap<GateKey, u32>,
    triggered: u64,
}

impl Play {
    fn new(window: usize) -> Self {
        let mut world = World::with_window(window);
        for (name, period) in TIMED {
            world.put(timed(name, period, "{}"));
        }
        world.put(triggered("{}"));
        let mut keyed = noop("k");
        keyed["overlap"] =
            serde_json::json!({"key": "/k", "on_full": "queue", "limit": 2, "depth": 3});
        world.put(keyed);
        let puppets = (0..3).map(|process| (process, Puppet::default())).collect();
        let mut play = Self {
            world,
            puppets,
            streams: 0,
            beats: 0,
            sent_at: BTreeMap::new(),
            started: BTreeSet::new(),
            fences: BTreeMap::new(),
            most: u32::MAX,
            were: BTreeMap::new(),
            set_back: 0,
            allowed: BTreeMap::new(),
            triggered: 0,
        };
        play.settle();
        play
    }

    fn settle(&mut self) {
        let effects = self.world.commit();
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        let terms = crate::lease::Terms::default();
        self.check_limits(&effects);
        for effect in effects {
            let Effect::Send { stream, message } = effect else {
                continue;
            };
            let Some(puppet) = self
                .puppets
                .values_mut()
                .find(|puppet| puppet.stream == Some(stream.0))
            else {
                continue;
            };
            match message {
                ToWorker::Renew { beat, .. } => {
                    puppet.leased_until = puppet
                        .leased_until
                        .max(self.sent_at[&beat] + terms.lease_ms);
                }
                ToWorker::Assign(assign) => {
                    let run = &self.world.tables.active[&assign.attempt.run];
                    let worker = &run.attempts.last().expect("an attempt").worker;
                    let mut drained = self.world.tables.drains.keys();
                    assert!(!drained.any(|it| it.name == *worker), "{worker} is drained");
                    let first = run.attempts.len() == 1;
                    let late = |by: WallMs| first && by <= run.attempts[0].assigned;
                    assert!(
                        !run.start_by.is_some_and(late),
                        "{} is given too late",
                        run.id
                    );
                    puppet.position = assign.position;
                    puppet.consumed += u64::from(assign.weight);
                    assert!(puppet.consumed <= puppet.granted, "assigned without credit");
                    let attempt = assign.attempt;
                    assert!(
                        self.started.insert((attempt.run, attempt.attempt)),
                        "an attempt was assigned twice"
                    );
                    let before = self.fences.insert(attempt.run, attempt.fence);
                    assert!(
                        before.is_none_or(|before| before < attempt.fence),
                        "a fence did not grow"
                    );
                    puppet.leased_until = puppet
                        .leased_until
                        .max(self.sent_at[&assign.beat] + terms.lease_ms);
                    puppet.held.insert(attempt);
                }
                ToWorker::FinishAck { attempt } | ToWorker::Cancel { attempt, .. } => {
                    puppet.held.remove(&attempt);
                }
                ToWorker::Welcome { .. }
                | ToWorker::Want { .. }
                | ToWorker::RecallAnswer { .. }
                | ToWorker::CheckpointAck { .. } => {}
            }
        }
        self.check();
    }

    /// Where something was given out there is no more than may be, by the store: unless a limit has just been lowered.
    fn check_limits(&mut self, effects: &[Effect]) {
        let mut held: BTreeMap<GateKey, u32> = BTreeMap::new();
        let mut allowed: BTreeMap<GateKey, u32> = BTreeMap::new();
        let tables = &self.world.tables;
        for run in tables
            .active
            .values()
            .filter(|run| run.current_attempt().is_some())
        {
            for (gate, most) in gates(tables, run) {
                *held.entry(gate.clone()).or_default() += 1;
                allowed.extend(most.map(|most| (gate, most)));
            }
        }
        for (_, attempt) in assignments(effects) {
            let Some(run) = tables.active.get(&attempt.run) else {
                continue;
            };
            for (gate, most) in gates(tables, run) {
                let before = self.allowed.get(&gate).copied();
                let most = most.map_or(u32::MAX, |most| most.max(before.unwrap_or(u32::MAX)));
                assert!(
                    held.get(&gate).is_none_or(|held| *held <= most),
                    "{gate} has {held:?}"
                );
            }
        }
        self.allowed = allowed;
    }

    /// At most one authorised attempt of a run at any instant; terminal runs are held by nobody with right.
    fn check(&self) {
        let now = self.world.now.mono.0;
        let mut holders = BTreeMap::new();
        for puppet in self
            .puppets
            .values()
            .filter(|puppet| now < puppet.leased_until)
        {
            for attempt in &puppet.held {
                assert!(
                    holders.insert(attempt.run, attempt).is_none(),
                    "{} is authorised twice",
                    attempt.run
                );
            }
        }
        self.world.check_conservation();
    }

    /// No job, and no key of one, has more under way than its overlap allows. A limit that was lowered stops nobody.
    fn check_overlap(&mut self) {
        let mut now: BTreeMap<(JobId, Option<String>), u32> = BTreeMap::new();
        for run in self.world.tables.active.values() {
            if run.standing.counts && !run.standing.queued {
                *now.entry((run.job, run.standing.key.clone())).or_default() += 1;
            }
        }
        for (key, live) in &now {
            let name = self.world.tables.jobs[&key.0].name.as_str();
            let most = if name == "k" { 2 } else { self.most };
            let before = self.were.get(key).copied().unwrap_or(0);
            assert!(*live <= most.max(before), "{live} of {name} under {key:?}");
        }
        self.were = now;
    }

    fn connect(&mut self, process: u64) {
        self.streams += 1;
        let stream = self.streams;
        let Some(puppet) = self.puppets.get_mut(&process) else {
            return;
        };
        puppet.stream = Some(stream);
        puppet.position = 0;
        puppet.consumed = 0;
        self.world.event(
            stream,
            WorkerEvent::Connected(hello(process, stream, CAPACITY)),
        );
        self.beat(process);
        if let Some(puppet) = self.puppets.get_mut(&process) {
            puppet.granted = u64::from(CAPACITY).saturating_sub(puppet.held.len() as u64);
            self.world.event(
                stream,
                WorkerEvent::Granted {
                    total: puppet.granted,
                },
            );
        }
    }

    fn beat(&mut self, process: u64) {
        let now = self.world.now.mono.0;
        let Some(puppet) = self.puppets.get_mut(&process) else {
            return;
        };
        if now >= puppet.leased_until {
            puppet.held.clear();
        }
        let Some(stream) = puppet.stream else { return };
        self.beats += 1;
        self.sent_at.insert(self.beats, now);
        let (position, held) = (puppet.position, puppet.held.iter().copied().collect());
        self.world.beat(stream, self.beats, position, held);
    }

    fn finish(&mut self, process: u64, end: End) {
        let Some(puppet) = self.puppets.get_mut(&process) else {
            return;
        };
        let (Some(stream), Some(attempt)) = (puppet.stream, puppet.held.first().copied()) else {
            return;
        };
        let (outcome, verdict) = match end {
            End::Good => (AttemptOutcome::Succeeded, None),
            End::Bad => (AttemptOutcome::Failed, None),
            End::TooLong => (AttemptOutcome::TimedOut, None),
            End::PutOff => (AttemptOutcome::Snoozed, Some(Verdict::Snooze(70_000))),
            End::GivenUp => (AttemptOutcome::Failed, Some(Verdict::GiveUp)),
        };
        self.world.report_with(stream, attempt, |finished| {
            (finished.outcome, finished.verdict) = (outcome, verdict);
        });
        self.settle();
        if let Some(puppet) = self.puppets.get_mut(&process) {
            puppet.held.remove(&attempt);
            puppet.granted += 1;
            self.world.event(
                stream,
                WorkerEvent::Granted {
                    total: puppet.granted,
                },
            );
        }
    }

    fn act(&mut self, act: Act) {
        let mut after = self.most;
        match act {
            Act::Pass(ms) => self.world.pass(ms),
            Act::StepClock(ms) => {
                self.set_back += ms.min(0).abs();
                self.world.step_clock(ms);
            }
            Act::Trigger => {
                self.triggered += 1;
                let params = format!(r#"{{"k": {}}}"#, self.triggered % 3);
                let trigger = Trigger {
                    params: Some(JsonText::parse("params", &params).expect("JSON")),
                    ..Trigger::of(job_ref("b"))
                };
                self.step_command(Command::TriggerRuns {
                    triggers: vec![trigger],
                });
            }
            Act::Obey(index, key) => {
                let name = TIMED.get(index).map_or("k", |(name, _)| *name);
                let params = format!(r#"{{"k": {key}}}"#);
                let trigger = Trigger {
                    params: JsonText::parse("params", &params).ok(),
                    overlap: Obedience::Obey,
                    ..Trigger::of(job_ref(name))
                };
                self.step_command(Command::TriggerRuns {
                    triggers: vec![trigger],
                });
            }
            Act::Limit(index) => self.step_command(Command::PutJob {
                spec: serde_json::from_value(triggered(LIMITS[index])).expect("a manifest"),
                condition: Condition::Any,
            }),
            Act::Queue(index) => {
                let mut spec: serde_json::Value =
                    serde_json::from_str(QUEUES[index]).expect("JSON");
                spec["kind"] = "Queue".into();
                spec["name"] = "q".into();
                self.step_command(Command::PutQueue {
                    spec: serde_json::from_value(spec).expect("a manifest"),
                    condition: Condition::Any,
                });
            }
            Act::PauseQueue(paused) => self.pause_queue(paused),
            Act::DeleteQueue => self.step_command(Command::DeleteQueue {
                queue: queue_ref("q"),
                condition: Condition::Any,
            }),
            Act::Connect(process) => self.connect(process),
            Act::Break(process) => {
                if let Some(stream) = self
                    .puppets
                    .get_mut(&process)
                    .and_then(|puppet| puppet.stream.take())
                {
                    self.world.event(stream, WorkerEvent::Disconnected);
                }
            }
            Act::Beat(process) => self.beat(process),
            Act::Finish(process, end) => self.finish(process, end),
            Act::Cancel(index) => {
                if let Some(run) = self.world.tables.active.keys().nth(index).copied() {
                    self.step_command(Command::CancelRun { run, scope: None });
                }
            }
            Act::Restart => {
                for puppet in self.puppets.values_mut() {
                    puppet.stream = None;
                }
                self.world.restart();
            }
            Act::Pause | Act::Resume => {
                for (name, _) in TIMED {
                    let (job, condition) = (job_ref(name), Condition::Any);
                    let command = match act {
                        Act::Pause => Command::PauseJob { job, condition },
                        _ => Command::ResumeJob { job, condition },
                    };
                    self.step_command(command);
                }
            }
            Act::Lag(rounds) => self.world.lag = rounds,
            Act::Drain(process, deadline_ms) => {
                let worker = named(process);
                self.step_command(Command::DrainWorker {
                    worker,
                    deadline_ms,
                });
            }
            Act::ResumeWorker(process) => {
                let worker = named(process);
                self.step_command(Command::ResumeWorker { worker });
            }
            Act::Backfill(job, length, ago, choice) => {
                let command = drawn(&self.world, TIMED[job].0, length, ago, choice);
                self.step_command(command);
            }
            Act::Tend(back, tend) => {
                let newest = self.world.tables.backfills.keys().rev().nth(back).copied();
                if let Some(backfill) = newest {
                    self.step_command(tend.command(backfill));
                }
            }
            Act::Policy(index) => {
                let spec: JobSpec =
                    serde_json::from_value(timed("a", 1000, POLICIES[index])).expect("a manifest");
                let overlap = spec.parsed_overlap().expect("valid");
                let most = overlap.most().unwrap_or(u32::MAX);
                self.most = self.most.max(most);
                after = most;
                for (name, period) in TIMED {
                    let spec = timed(name, period, POLICIES[index]);
                    self.step_command(Command::PutJob {
                        spec: serde_json::from_value(spec).expect("a manifest"),
                        condition: Condition::Any,
                    });
                }
            }
        }
        self.settle();
        self.check_overlap();
        self.most = after;
    }

    fn pause_queue(&mut self, paused: bool) {
        let (queue, condition) = (queue_ref("q"), Condition::Any);
        self.step_command(match paused {
            true => Command::PauseQueue { queue, condition },
            false => Command::ResumeQueue { queue, condition },
        });
    }

    /// Nothing more is made, workers keep alive and succeed at everything: all runs end.
    fn drain(&mut self) {
        for process in 0..3 {
            let worker = named(process);
            self.step_command(Command::ResumeWorker { worker });
        }
        for (name, _) in TIMED {
            let (job, condition) = (job_ref(name), Condition::Any);
            self.step_command(Command::PauseJob { job, condition });
        }
        self.pause_queue(false);
        let backfills: Vec<BackfillId> = self.world.tables.backfills.keys().copied().collect();
        for backfill in backfills {
            self.step_command(Tend::Resume.command(backfill));
        }
        for process in 0..3 {
            self.connect(process);
        }
        self.settle();
        for _ in 0..10_000 {
            let open = |row: &BackfillRow| row.is_open();
            if self.world.tables.active.is_empty()
                && !self.world.tables.backfills.values().any(open)
            {
                self.world.pass(60_000);
                self.settle();
                let engine = &self.world.engine;
                assert_eq!((engine.gates.len(), engine.pens.len()), (0, 0));
                return;
            }
            self.world.pass(10_000);
            for process in 0..3 {
                self.beat(process);
                self.settle();
                while !self.puppets[&process].held.is_empty() {
                    self.finish(process, End::Good);
                    self.settle();
                }
            }
        }
        panic!("{:#?} never ended", self.world.tables.active);
    }

    /// No run failed, was lost or was tried again otherwise than its job allows.
    fn check_tries(&self) {
        let tables = &self.world.tables;
        for run in tables.active.values().chain(tables.history.values()) {
            let spec = &tables.versions[&(run.job, run.job_version)].spec;
            let policy = spec.parsed_retry().expect("a policy");
            let failed = run.ends_in(AttemptOutcome::is_failure);
            let lost = run.ends_in(AttemptOutcome::is_loss);
            assert!(failed <= policy.max_attempts as usize, "{run:#?}");
            assert!(lost <= policy.max_lost as usize, "{run:#?}");
            let mut failures = 0;
            for pair in run.attempts.windows(2) {
                let end = pair[0].end.as_ref().expect("one after another");
                let wait = match end.outcome {
                    AttemptOutcome::Snoozed => 70_000,
                    outcome if outcome.is_failure() => {
                        failures += 1;
                        assert_eq!(end.verdict, None, "given up and tried again");
                        policy.initial_ms << (failures - 1)
                    }
                    _ => 0,
                };
                let waited = pair[1].assigned.since(end.at) + self.set_back;
                assert!(waited >= wait.min(policy.max_ms).cast_signed(), "{run:#?}");
            }
        }
    }

    fn step_command(&mut self, command: Command) {
        self.world.step(Input::Command {
            ticket: Ticket(0),
            actor: Actor::new("t"),
            command,
        });
    }

    /// Every due time up to the cursor has one fate, and the cursor is not far behind an active job.
    fn account(&self) {
        for (name, period) in TIMED {
            let tables = &self.world.tables;
            let row = tables.jobs.values().find(|row| row.name.as_str() == name);
            let row = row.expect("a job");
            let schedule = &tables.schedules[&row.id];
            let through = schedule.fired_through.0;
            account_every(&self.world, row.id, period, START, through);
            if row.paused.is_none() {
                let next = schedule.next_nominal.expect("it never ends").0;
                assert_eq!(next, (through / period + 1) * period);
                let now = self.world.engine.believed(self.world.now).wall;
                let due = schedule.next_due.expect("it never ends");
                assert!(
                    due.0 >= next && due > now,
                    "{name} is due and does not fire"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn promises_hold_in_random_histories(
        window in prop_oneof![Just(2), Just(100_000)],
        acts in proptest::collection::vec(act(), 1..80),
    ) {
        let mut play = Play::new(window);
        for act in acts {
            play.act(act);
        }
        play.world.lag = 0;
        // What is read late has a pause before it is gone on with.
        for pause in [0, 100] {
            play.world.pass(pause);
            play.settle();
            while play.world.is_loading() {
                play.settle();
            }
        }
        play.account();
        play.check_tries();
        tell_every_run(&play.world);
        play.drain();
        play.check_tries();
        tell_every_run(&play.world);
        for run in play.world.tables.active.values().chain(play.world.tables.history.values()) {
            let mut state = RunState::Pending;
            for transition in &run.transitions[1..] {
                prop_assert!(state.may_become(transition.to));
                state = transition.to;
            }
            prop_assert_eq!(state, run.state);
        }
        let nominal: Vec<_> = play.world.tables.active.values().chain(play.world.tables.history.values())
            .filter(|run| run.origin == Origin::Schedule)
            .filter_map(|run| Some((run.job, run.nominal?))).collect();
        let unique: BTreeSet<_> = nominal.iter().collect();
        prop_assert_eq!(unique.len(), nominal.len());
    }
}
