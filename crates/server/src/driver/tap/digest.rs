//! From a change set to facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drumtower_core::change::{ChangeSet, JobChange, RunChange};
use drumtower_core::engine::{WorkerState, WorkerView};
use drumtower_core::model::{
    AuditAction, AuditKind, BackfillRow, BreakerRow, CalendarVersion, JobId, JobName, JobRow,
    NamespaceName, Open, QueueRow, Reason, Run, RunId, RunState, Unfired, WallMs, WorkerName,
};

use super::fact::{
    BackfillFact, BreakerFact, BreakerTurn, CalendarFact, ERROR_BYTES, Fact, JobDeed, JobFact,
    JobKey, QueueFact, RunEnd, RunFact, UnfiredFact, WorkerDeed, WorkerFact,
};

/// Keys of jobs are shared between facts; a fact without one would need its own.
const KEYS: usize = 100_000;

/// Runs that are remembered as running; beyond that some are counted twice.
const RUNNING: usize = 1_000_000;

/// What a commit says beside its rows: how a job that it names by id is called.
pub struct Named {
    pub id: JobId,
    pub namespace: NamespaceName,
    pub name: JobName,
    pub deleted: bool,
}

#[derive(Default)]
pub struct Digest {
    keys: BTreeMap<JobId, Arc<JobKey>>,
    /// Runs that were told to have started and not to have ended.
    running: BTreeSet<RunId>,
    /// Breakers that are known to be open: when each opened last, and whether it is probing.
    breakers: BTreeMap<JobId, (WallMs, bool)>,
    fleet: Option<BTreeMap<WorkerName, (WorkerState, Option<NamespaceName>)>>,
}

impl Digest {
    /// That a job is gone comes last: whatever else the commit says of it is not news of something gone.
    pub fn commit(&mut self, changes: &ChangeSet, names: Vec<Named>) -> Vec<Fact> {
        let gone = names.iter().filter(|job| job.deleted).map(|job| job.id);
        let gone: BTreeSet<JobId> = gone.collect();
        self.learn(names);
        let mut facts = Vec::with_capacity(changes.runs.len() + changes.jobs.len());
        let (deleted, kept): (Vec<_>, Vec<_>) = changes
            .jobs
            .values()
            .partition(|change| row(change).deleted);
        for change in kept {
            facts.push(self.job(change, changes));
        }
        for version in changes.calendars.values() {
            facts.push(calendar(version));
        }
        facts.extend(changes.queues.values().map(|row| queue(row, changes)));
        facts.extend(
            changes
                .backfills
                .values()
                .map(|change| backfill(&change.row)),
        );
        for (job, row) in &changes.breakers {
            facts.extend(self.breaker(*job, row.as_ref(), changes));
        }
        for range in changes.unfired.values() {
            facts.extend(self.unfired(range));
        }
        for change in changes.runs.values() {
            facts.extend(self.run(change, &gone));
        }
        for change in deleted {
            facts.push(self.job(change, changes));
        }
        facts
    }

    fn learn(&mut self, names: Vec<Named>) {
        if self.keys.len() + names.len() > KEYS {
            self.keys.clear();
        }
        for job in names {
            self.keys.entry(job.id).or_insert_with(|| {
                Arc::new(JobKey {
                    id: job.id,
                    namespace: job.namespace,
                    name: job.name,
                })
            });
        }
    }

    fn job(&self, change: &JobChange, changes: &ChangeSet) -> Fact {
        let row = row(change);
        let deed = if row.deleted {
            JobDeed::Deleted
        } else if changes.versions.contains_key(&(row.id, row.version)) {
            JobDeed::Put
        } else if row.paused.is_some() {
            JobDeed::Paused
        } else {
            JobDeed::Resumed
        };
        Fact::Job(JobFact {
            job: self.key_of(row),
            deed,
            version: row.version,
            revision: row.revision,
            at: row.updated,
        })
    }

    fn key_of(&self, row: &JobRow) -> Arc<JobKey> {
        self.keys.get(&row.id).cloned().unwrap_or_else(|| {
            Arc::new(JobKey {
                id: row.id,
                namespace: row.namespace.clone(),
                name: row.name.clone(),
            })
        })
    }

    fn unfired(&self, range: &Unfired) -> Option<Fact> {
        Some(Fact::Unfired(UnfiredFact {
            job: self.keys.get(&range.job).cloned()?,
            first: range.first,
            last: range.last,
            count: range.count,
            reason: range.reason,
        }))
    }

    /// A row changes with every failure; that is told only when the breaker opens, probes or closes. One that was open before
    /// this process began is known by its probe, or closed by hand.
    fn breaker(
        &mut self,
        id: JobId,
        row: Option<&BreakerRow>,
        changes: &ChangeSet,
    ) -> Option<Fact> {
        let job = self.keys.get(&id).cloned()?;
        let open = row.and_then(|row| row.open.as_ref());
        let now = open.map(|open| (open.at, open.probe.is_some()));
        let before = match now {
            Some(now) => self.breakers.insert(id, now),
            None => self.breakers.remove(&id),
        };
        let turn = match (before, now) {
            (before, Some((at, false))) if before.is_none_or(|it| it.0 != at) => {
                BreakerTurn::Opened
            }
            (before, Some((_, true))) if before.is_none_or(|it| !it.1) => BreakerTurn::Probing,
            (Some(_), None) => BreakerTurn::Closed,
            (None, None) if was_reset(&job, changes) => BreakerTurn::Closed,
            _ => return None,
        };
        let opened = open.filter(|_| turn == BreakerTurn::Opened);
        Some(Fact::Breaker(BreakerFact {
            job,
            turn,
            until: opened.map(Open::until),
        }))
    }

    fn run(&mut self, change: &RunChange, gone: &BTreeSet<JobId>) -> Option<Fact> {
        let run = change.run();
        let first = run.attempts.first();
        let started = run.attempts.iter().find_map(|attempt| attempt.started);
        let started_now = self.starts_now(run, started.is_some());
        Some(Fact::Run(RunFact {
            run: run.id,
            job: self.keys.get(&run.job).cloned()?,
            job_deleted: gone.contains(&run.job),
            state: run.state,
            made: matches!(change, RunChange::Insert(_) | RunChange::InsertFinished(_)),
            started_now,
            created: run.created,
            due: run.due,
            at: run.transitions.last().map_or(run.created, |last| last.at),
            attempts: u32::try_from(run.attempts.len()).unwrap_or(u32::MAX),
            assigned: first.map(|attempt| attempt.assigned),
            started,
            worker: run.attempts.last().map(|attempt| attempt.worker.clone()),
            progress: run
                .progress
                .as_ref()
                .filter(|_| !run.state.is_terminal())
                .map(|progress| Box::new(progress.clone())),
            end: run.state.is_terminal().then(|| end(run)),
        }))
    }

    fn starts_now(&mut self, run: &Run, started: bool) -> bool {
        if run.state.is_terminal() {
            return !self.running.remove(&run.id) && started;
        }
        if self.running.len() >= RUNNING {
            self.running.clear();
        }
        started && self.running.insert(run.id)
    }

    /// Compares the fleet with the last look at it; the first look tells nothing.
    pub fn fleet(&mut self, workers: Vec<WorkerView>) -> Vec<Fact> {
        let now: BTreeMap<_, _> = workers
            .into_iter()
            .map(|worker| (worker.name, (worker.state, worker.namespace)))
            .collect();
        let mut facts = Vec::new();
        if let Some(before) = &self.fleet {
            let fact = |name: &WorkerName, deed, state: &(WorkerState, Option<NamespaceName>)| {
                Fact::Worker(WorkerFact {
                    name: name.clone(),
                    namespace: state.1.clone(),
                    deed,
                    state: state.0,
                })
            };
            for (name, state) in &now {
                match before.get(name) {
                    None => facts.push(fact(name, WorkerDeed::Joined, state)),
                    Some(old) if old != state => facts.push(fact(name, WorkerDeed::Changed, state)),
                    Some(_) => {}
                }
            }
            for (name, state) in before {
                if !now.contains_key(name) {
                    facts.push(fact(name, WorkerDeed::Left, state));
                }
            }
        }
        self.fleet = Some(now);
        facts
    }

    /// Nobody looked at the fleet for a while: what it was then is no measure any more.
    pub fn forget_fleet(&mut self) {
        self.fleet = None;
    }
}

fn row(change: &JobChange) -> &JobRow {
    let (JobChange::Insert(row) | JobChange::Update(row)) = change;
    row
}

fn was_reset(job: &JobKey, changes: &ChangeSet) -> bool {
    changes.audit.values().any(|entry| {
        let object = &entry.object;
        entry.action == AuditAction::Reset
            && object.kind == AuditKind::Job
            && object.namespace.as_ref() == Some(&job.namespace)
            && object.name == job.name.as_str()
    })
}

fn queue(row: &QueueRow, changes: &ChangeSet) -> Fact {
    let queue = row.queue();
    let mut deeds = changes.audit.values().rev().filter(|entry| {
        let object = &entry.object;
        object.kind == AuditKind::Queue
            && object.namespace.as_ref() == Some(&queue.namespace)
            && object.name == queue.name.as_str()
    });
    let deed = match deeds.next().map(|entry| entry.action) {
        _ if row.deleted => JobDeed::Deleted,
        Some(AuditAction::Paused) => JobDeed::Paused,
        Some(AuditAction::Resumed) => JobDeed::Resumed,
        _ => JobDeed::Put,
    };
    Fact::Queue(QueueFact {
        queue,
        deed,
        revision: row.revision,
        at: row.updated,
    })
}

fn backfill(row: &BackfillRow) -> Fact {
    Fact::Backfill(BackfillFact {
        id: row.id,
        namespace: row.namespace.clone(),
        job: row.job_name.clone(),
        job_id: row.job,
        state: row.state,
        held: row.held,
        times: row.times,
        made: row.made,
        completed: row.completed,
        failed: row.failed,
        cancelled: row.cancelled,
        skipped: row.skipped,
        active: row.live.len(),
        ended: row.ended,
    })
}

fn calendar(version: &CalendarVersion) -> Fact {
    Fact::Calendar(CalendarFact {
        namespace: version.spec.namespace.clone(),
        name: version.spec.name.clone(),
        version: version.version,
        deleted: version.deleted,
        at: version.created,
    })
}

fn end(run: &Run) -> RunEnd {
    let ends = || {
        run.attempts
            .iter()
            .filter_map(|attempt| attempt.end.as_ref())
    };
    let last = run.attempts.last().and_then(|attempt| attempt.end.as_ref());
    RunEnd {
        reason: run.transitions.last().map_or(
            match run.state {
                RunState::Completed => Reason::Succeeded,
                RunState::Cancelled => Reason::Cancelled,
                _ => Reason::TaskFailed,
            },
            |last| last.reason,
        ),
        duration_ms: last.map_or(0, |end| end.duration_ms),
        exit_code: last.and_then(|end| end.exit_code),
        cpu_ms: ends().map(|end| end.cpu_ms).sum(),
        peak_memory_bytes: ends().map(|end| end.peak_memory_bytes).max().unwrap_or(0),
        error: run.error.as_deref().map(beginning),
    }
}

/// As much of a text as a fact carries, cut between characters.
fn beginning(text: &str) -> Box<str> {
    let cut = (0..=ERROR_BYTES.min(text.len()))
        .rev()
        .find(|place| text.is_char_boundary(*place));
    Box::from(&text[..cut.unwrap_or(0)])
}
