//! Runs that finished before the bench began, put into a store that no server serves yet, by the store's own verb for it.
//!
//! Nothing was carried out: each row is what an empty handler leaves, three milliseconds from its creation to its end. They
//! are made in order of time, so history, its postings and its roll-ups lie as they would after as many real runs. Their
//! jobs must not be triggered by the bench, or the audit would miss what their workers wrote.

use std::collections::BTreeMap;
use std::path::Path;

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{
    Actor, Attempt, AttemptEnd, AttemptOutcome, Counters, Fence, JobId, JobName, Member,
    NamespaceName, Origin, ProcessId, Reason, Retention, Run, RunId, RunState, SegmentId, Standing,
    Transition, WallMs, WorkerName, id_floor,
};
use drumtower_store::{Commit, Read, Store, sqlite};

use super::super::{interrupt, progress};
use crate::failure::{Failure, Result};

const IN_ONE_COMMIT: u64 = 2000;
const SESSION_MS: i64 = 60_000;
const WORKER: &str = "worker-of-the-past";

/// What is to be there.
#[derive(Clone, Debug)]
pub struct Past {
    /// Names of the jobs, in turn.
    pub jobs: Vec<String>,
    pub runs: u64,
    /// When the first was made, and by when the last was.
    pub from: WallMs,
    pub to: WallMs,
    pub retention: Retention,
}

impl Past {
    /// Writes it into the data directory of a server that is not running.
    pub fn put(&self, data: &Path) -> Result<()> {
        let (writer, reader) = sqlite::open(data, sqlite::Options::default())?;
        let mut pen = Pen::new(Box::new(writer), &reader)?;
        let jobs = self.ids(&reader)?;
        let worker = WorkerName::new(WORKER)
            .map_err(|error| Failure::failed(format!("{WORKER}: {error}")))?;
        let mut number = 0;
        while number < self.runs {
            interrupt::check()?;
            progress(|| format!("{number} of {} finished runs put", self.runs));
            let end = self.runs.min(number + IN_ONE_COMMIT);
            for (number, job) in
                (number..end).zip(jobs.iter().cycle().skip(number as usize % jobs.len()))
            {
                let run = pen.draw(*job, self.created(number));
                pen.add(finished(
                    run,
                    *job,
                    self.created(number),
                    self.retention,
                    &worker,
                ));
            }
            pen.commit()?;
            number = end;
        }
        Ok(pen.store.close()?)
    }

    fn created(&self, number: u64) -> WallMs {
        let length = u128::try_from(self.to.since(self.from)).unwrap_or(0);
        let passed = length * u128::from(number) / u128::from(self.runs.max(1));
        self.from.plus(i64::try_from(passed).unwrap_or(0))
    }

    fn ids(&self, reader: &dyn Read) -> Result<Vec<JobId>> {
        let id = |name: &String| {
            let valid =
                JobName::new(name).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
            let record = reader.job_named(&NamespaceName::default(), &valid)?;
            let record =
                record.ok_or_else(|| Failure::failed(format!("there is no job {name}")))?;
            Ok(record.row.id)
        };
        self.jobs.iter().map(id).collect()
    }
}

/// A session of the store, and what its next commit holds.
struct Pen {
    store: Box<dyn Store>,
    changes: ChangeSet,
    counters: BTreeMap<SegmentId, Counters>,
    /// The last id drawn in each segment.
    drawn: BTreeMap<SegmentId, u64>,
}

impl Pen {
    fn new(mut store: Box<dyn Store>, reader: &dyn Read) -> Result<Self> {
        let session = store.begin_session(&Member::alone("bench"), SESSION_MS)?;
        let ours = NamespaceName::default();
        let counters = reader.counters()?.into_iter();
        Ok(Self {
            store,
            changes: ChangeSet {
                session,
                extend_ms: SESSION_MS,
                ..ChangeSet::default()
            },
            counters: counters
                .filter(|((_, namespace), _)| *namespace == ours)
                .map(|((segment, _), counters)| (segment, counters))
                .collect(),
            drawn: BTreeMap::new(),
        })
    }

    fn draw(&mut self, job: JobId, created: WallMs) -> RunId {
        let last = self.drawn.entry(job.segment()).or_default();
        *last = id_floor(created, job.segment()).max(*last + 1);
        RunId(*last)
    }

    fn add(&mut self, run: Run) {
        let segment = run.id.segment();
        let counters = self.counters.entry(segment).or_default();
        counters.created += 1;
        counters.completed += 1;
        let key = (segment, run.namespace.clone());
        self.changes.counters.insert(key, *counters);
        self.changes
            .runs
            .insert(run.id, RunChange::InsertFinished(Box::new(run)));
    }

    fn commit(&mut self) -> Result<()> {
        self.changes.seq += 1;
        match self.store.commit(&self.changes)? {
            Commit::Done => {
                self.changes.runs.clear();
                self.changes.counters.clear();
                Ok(())
            }
            Commit::Fenced => Err(Failure::failed("someone else has taken the store")),
        }
    }
}

/// A run that did nothing, as it lies in the history.
fn finished(
    id: RunId,
    job: JobId,
    created: WallMs,
    retention: Retention,
    worker: &WorkerName,
) -> Run {
    let step = |to, after_ms, reason, attempt| Transition {
        to,
        at: created.plus(after_ms),
        reason,
        attempt,
    };
    Run {
        id,
        namespace: NamespaceName::default(),
        job,
        job_version: 1,
        state: RunState::Completed,
        origin: Origin::Api,
        actor: Actor::new("bench"),
        nominal: None,
        due: created,
        created,
        retention,
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
        standing: Standing::of(Origin::Api),
        progress: None,
        checkpoint: None,
        cancel: None,
        attempts: vec![Attempt {
            number: 1,
            fence: Fence(1),
            worker: worker.clone(),
            process: ProcessId(1),
            assigned: created.plus(1),
            started: Some(created.plus(2)),
            end: Some(AttemptEnd {
                outcome: AttemptOutcome::Succeeded,
                at: created.plus(3),
                duration_ms: 1,
                exit_code: None,
                signal: None,
                http_status: None,
                verdict: None,
                cpu_ms: 0,
                peak_memory_bytes: 0,
                error: None,
                log: None,
            }),
        }],
        transitions: vec![
            step(RunState::Pending, 0, Reason::Created, 0),
            step(RunState::Scheduled, 1, Reason::Assigned, 1),
            step(RunState::Running, 2, Reason::Started, 1),
            step(RunState::Completed, 3, Reason::Succeeded, 1),
        ],
        result: None,
        error: None,
    }
}

#[cfg(test)]
mod tests {
    use drumtower_store::RunFilter;

    use super::super::{manifest, put_all};
    use super::*;

    const FROM: WallMs = WallMs(1_790_000_000_000);

    #[test]
    fn the_past_is_in_order_and_the_audit_agrees_with_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let to = FROM.plus(10_000);
        let plain = |number| manifest(number, serde_json::json!({}));
        put_all(dir.path(), to, 3, plain).expect("jobs");
        let past = Past {
            jobs: vec![super::super::job_name(0), super::super::job_name(2)],
            runs: 4500,
            from: FROM,
            to,
            retention: Retention::Day,
        };
        past.put(dir.path()).expect("runs");
        let (_writer, reader) =
            sqlite::open(dir.path(), sqlite::Options::default()).expect("a store");
        let page = reader
            .runs(&RunFilter::default(), None, 5000)
            .expect("runs");
        assert_eq!(page.runs.len(), 4500);
        assert!(page.runs.iter().all(|run| run.id.created() == run.created));
        let none = drumtower_audit::check::Options::default();
        let report = drumtower_audit::check(&[], &reader, &none).expect("an audit");
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.counts.completed, 4500);
    }
}
