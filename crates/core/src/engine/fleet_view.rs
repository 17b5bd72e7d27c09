//! The fleet as people see it: a copy of what the engine knows of each worker, and why it is in the state it is in.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{DrainRow, MonoMs, NamespaceName, Now, RunId, WallMs, WorkerName};
use crate::schedule::format_duration;

use super::fleet::Worker;
use super::health::{Kin, LOSSES, Record, Standing, Trust, WINDOW_MS};
use super::{Enforcement, Engine, Load};

/// How many of its runs a view of a worker names.
const RUNNING_SHOWN: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum WorkerState {
    /// Connected, with room.
    Online,
    /// Connected, all its weight in use.
    Busy,
    /// Connected and taking no more work: it was drained, or it is shutting down.
    Maintenance,
    /// Nothing is heard of it: its stream is broken, or silent. Its lease may have ended.
    Offline,
    /// Lost again and again: it gets no work for a while, connected or not.
    Faulty,
}

impl WorkerState {
    pub const ALL: [Self; 5] = [
        Self::Online,
        Self::Busy,
        Self::Maintenance,
        Self::Offline,
        Self::Faulty,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Online => "ONLINE",
            Self::Busy => "BUSY",
            Self::Maintenance => "MAINTENANCE",
            Self::Offline => "OFFLINE",
            Self::Faulty => "FAULTY",
        }
    }

    /// Whether it is given work, or would be if it had room.
    pub fn takes_work(self) -> bool {
        matches!(self, Self::Online | Self::Busy)
    }
}

#[derive(Clone, Debug)]
pub struct WorkerView {
    pub name: WorkerName,
    pub state: WorkerState,
    /// What the state rests on, in words; `None` when there is nothing to say.
    pub why: Option<String>,
    /// Whether it has a stream to this server.
    pub linked: bool,
    pub host: String,
    pub version: String,
    pub labels: BTreeMap<String, String>,
    pub namespace: Option<NamespaceName>,
    pub exec: bool,
    pub http: bool,
    pub enforcement: Enforcement,
    pub handlers: Vec<String>,
    pub capacity: u32,
    /// Weight the server may still assign.
    pub credit: u64,
    /// Attempts it holds.
    pub attempts: usize,
    /// The runs of the first of them, oldest first.
    pub running: Vec<RunId>,
    pub load: Load,
    /// The worker's clock minus the server's at the last heartbeat, not corrected for the way.
    pub skew_ms: i64,
    pub connected: WallMs,
    pub last_heartbeat: Option<WallMs>,
    /// It is drained, by this.
    pub drain: Option<DrainRow>,
    /// How often its name was lost within the last ten minutes.
    pub losses: usize,
    /// Until when it is isolated, if it is.
    pub faulty_until: Option<WallMs>,
    /// It is given one run at a time until one has ended.
    pub probation: bool,
    /// Whether a process is behind it, connected or within its lease.
    pub alive: bool,
}

impl Engine {
    /// The workers as people see them: every process, and names that were lost lately and are not back.
    pub fn workers(&self, now: Now) -> Vec<WorkerView> {
        let processes = self.fleet.all();
        let mut views: Vec<WorkerView> = processes
            .map(|(_, worker)| self.worker_view(now, worker))
            .collect();
        let present: std::collections::BTreeSet<Kin> =
            self.fleet.all().map(|(_, worker)| worker.kin()).collect();
        let gone = self.health.all().filter(|(kin, record)| {
            let recent = record.losses(now.mono) > 0 || record.standing != Standing::Trusted;
            recent && !present.contains(*kin)
        });
        views.extend(gone.map(|(kin, record)| self.lost_view(now, kin, record)));
        views
    }

    fn worker_view(&self, now: Now, worker: &Worker) -> WorkerView {
        let kin = worker.kin();
        let mut view = WorkerView {
            linked: worker.stream.is_some(),
            ..self.plain_view(worker)
        };
        view.drain = self.drains.of(&kin.name, kin.namespace.as_ref()).cloned();
        if let Some(record) = self.health.get(&kin) {
            view.held_against(now, record);
        }
        let silent = !self.options.terms.fresh(worker.leased_from, now.mono);
        view.state = if view.faulty_until.is_some() {
            WorkerState::Faulty
        } else if worker.stream.is_none() || silent {
            WorkerState::Offline
        } else if worker.draining || view.drain.is_some() {
            WorkerState::Maintenance
        } else if worker.credit() == 0 {
            WorkerState::Busy
        } else {
            WorkerState::Online
        };
        view.why = view.words(now, worker);
        view
    }

    /// A worker as it is by itself, without what is known about its name.
    pub(super) fn plain_view(&self, worker: &Worker) -> WorkerView {
        WorkerView {
            name: worker.hello.worker.clone(),
            state: WorkerState::Offline,
            why: None,
            linked: false,
            host: worker.hello.host.clone(),
            version: worker.hello.version.clone(),
            labels: worker.hello.labels.clone(),
            namespace: worker.hello.namespace.clone(),
            exec: worker.hello.exec,
            http: worker.hello.http,
            enforcement: worker.hello.enforcement.clone(),
            handlers: worker.hello.handlers.clone(),
            capacity: worker.hello.capacity,
            credit: worker.credit(),
            attempts: worker.attempts.len(),
            running: worker
                .attempts
                .keys()
                .take(RUNNING_SHOWN)
                .copied()
                .collect(),
            load: worker.load,
            skew_ms: worker.skew_ms,
            connected: worker.connected,
            last_heartbeat: worker.last_heartbeat,
            drain: None,
            losses: 0,
            faulty_until: None,
            probation: false,
            alive: true,
        }
    }

    /// A name that was lost and is not back.
    fn lost_view(&self, now: Now, kin: &Kin, record: &Record) -> WorkerView {
        let mut view = record.seen.clone();
        view.drain = self.drains.of(&kin.name, kin.namespace.as_ref()).cloned();
        view.held_against(now, record);
        let silence = view.last_heartbeat.map(|at| now.wall.since(at).max(0));
        let lost = match silence {
            Some(ms) => format!(
                "lost: nothing was heard of it for {}",
                rounded(ms.unsigned_abs())
            ),
            None => "lost: it dialled in and sent no heartbeat".to_owned(),
        };
        view.state = match view.faulty_until {
            Some(_) => WorkerState::Faulty,
            None => WorkerState::Offline,
        };
        view.why = Some(match view.isolation(now) {
            Some(words) => words,
            None => lost,
        });
        view
    }
}

impl WorkerView {
    fn held_against(&mut self, now: Now, record: &Record) {
        self.losses = record.losses(now.mono);
        self.probation = record.standing == Standing::Probation;
        self.faulty_until = match record.standing {
            Standing::Isolated { until } => Some(wall_at(now, until)),
            Standing::Trusted | Standing::Probation => None,
        };
    }

    fn isolation(&self, now: Now) -> Option<String> {
        let left = self.faulty_until?.since(now.wall).max(0).unsigned_abs();
        let window = format_duration(WINDOW_MS);
        Some(format!(
            "lost again and again ({} times in {window}): it gets no work for another {}",
            self.losses,
            rounded(left)
        ))
    }

    fn words(&self, now: Now, worker: &Worker) -> Option<String> {
        let silent = now.mono.0.saturating_sub(worker.leased_from.0);
        let left = || match self.attempts {
            0 => "it runs nothing".to_owned(),
            1 => "one run has to end".to_owned(),
            many => format!("{many} runs have to end"),
        };
        match self.state {
            WorkerState::Faulty => self.isolation(now),
            WorkerState::Offline if worker.stream.is_none() && !worker.has_dialled() => {
                Some("it has not dialled in since the server was started".to_owned())
            }
            WorkerState::Offline if worker.stream.is_none() => {
                Some("its connection is broken".to_owned())
            }
            WorkerState::Offline => {
                Some(format!("nothing was heard of it for {}", rounded(silent)))
            }
            WorkerState::Maintenance => Some(match &self.drain {
                Some(drain) if drain.forced.is_some() && self.attempts > 0 => {
                    format!(
                        "drained by {}: the deadline has come, {}",
                        drain.actor,
                        left()
                    )
                }
                Some(drain) => format!("drained by {}: {}", drain.actor, left()),
                None => format!("it is shutting down: {}", left()),
            }),
            WorkerState::Online | WorkerState::Busy => match worker.trust {
                Trust::OneRun => {
                    Some("on probation: one run at a time until one has ended".to_owned())
                }
                Trust::Nothing if worker.beats > 0 => Some(format!(
                    "it was lost {} times lately: it is given work after {} heartbeats in a row",
                    self.losses,
                    self.losses.min(LOSSES)
                )),
                Trust::Nothing | Trust::Full => None,
            },
        }
    }
}

fn wall_at(now: Now, at: MonoMs) -> WallMs {
    let ahead = at.0.saturating_sub(now.mono.0);
    now.wall.plus(i64::try_from(ahead).unwrap_or(i64::MAX))
}

/// In whole seconds.
fn rounded(ms: u64) -> String {
    format_duration(ms.div_ceil(1_000).max(1) * 1_000)
}

#[cfg(test)]
pub(super) fn a_view(name: &str) -> WorkerView {
    WorkerView {
        name: WorkerName::new(name).unwrap_or_else(|fault| panic!("{fault}")),
        state: WorkerState::Offline,
        why: None,
        linked: false,
        host: String::new(),
        version: String::new(),
        labels: BTreeMap::new(),
        namespace: None,
        exec: true,
        http: true,
        enforcement: Enforcement::default(),
        handlers: Vec::new(),
        capacity: 1,
        credit: 0,
        attempts: 0,
        running: Vec::new(),
        load: Load::default(),
        skew_ms: 0,
        connected: WallMs(0),
        last_heartbeat: None,
        drain: None,
        losses: 0,
        faulty_until: None,
        probation: false,
        alive: false,
    }
}
