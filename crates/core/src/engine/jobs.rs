//! The jobs held in memory, by id and by name.
//!
//! A name is known to be taken, known to be free, or not known. A deleted job stays as a tombstone until no load that
//! began before its deletion can bring it back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{
    AfterRow, BreakerPolicy, BreakerRow, CatchUp, JobId, JobRecord, JobRow, JobSpec, JobVersion,
    JsonText, MisfirePolicy, MonoMs, OverlapPolicy, ParsedLimits, QueueRef, Requirement,
    RetryPolicy, ScheduleRow, SpecError, Standing, Tallies, Task, Unfired, WallMs,
};
use crate::schedule::Schedule;
use crate::wheel;

use super::calendars::View;
use super::in_a_row::Pace;
use super::{Effect, Engine, JobRef, Refusal};

/// One version of a definition, with everything that is computed from it once.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) version: JobVersion,
    pub(super) requirement: Requirement,
    pub(super) park_key: Arc<str>,
    pub(super) schedule: Option<Schedule>,
    pub(super) misfire: CatchUp,
    pub(super) on_resume: CatchUp,
    pub(super) overlap: OverlapPolicy,
    /// What runs with the job's own parameters count under.
    overlap_key: Option<String>,
    pub(super) breaker: Option<BreakerPolicy>,
    pub(super) timeout_ms: u64,
    pub(super) start_timeout_ms: Option<u64>,
    pub(super) progress_timeout_ms: Option<u64>,
    pub(super) retry: RetryPolicy,
    pub(super) limits: Option<ParsedLimits>,
    /// Where runs that are tried again wait, when that is not where the others do.
    pub(super) retried: Option<(Arc<str>, Requirement)>,
}

impl Compiled {
    /// A definition as a user gives it.
    fn new(version: JobVersion, calendars: &View<'_>) -> Result<Self, SpecError> {
        let spec = &version.spec;
        let requirement = spec.requirement();
        Ok(Self {
            schedule: spec.compiled_schedule(calendars)?,
            misfire: spec.parsed_misfire()?,
            on_resume: spec.parsed_on_resume()?,
            overlap_key: spec.parsed_overlap()?.key_in(spec.params.as_ref()),
            overlap: spec.parsed_overlap()?,
            breaker: spec.parsed_breaker()?,
            timeout_ms: spec.parsed_timeout()?,
            start_timeout_ms: spec.parsed_start_timeout()?,
            progress_timeout_ms: spec.parsed_progress_timeout()?,
            retried: retried(&requirement, &spec.parsed_retry()?),
            retry: spec.parsed_retry()?,
            limits: spec.parsed_limits()?,
            park_key: Arc::from(requirement.park_key()),
            requirement,
            version,
        })
    }

    /// A definition as it is stored, without its schedule. What was valid when it was written may not be for this
    /// program, as when a rule became stricter: then the default serves.
    fn without_schedule(version: JobVersion) -> Self {
        let spec = &version.spec;
        let requirement = spec.requirement();
        let misfire = CatchUp::with(MisfirePolicy::Latest);
        let on_resume = CatchUp::with(MisfirePolicy::Skip);
        let retry = spec.parsed_retry().unwrap_or_default();
        let overlap = spec.parsed_overlap().unwrap_or_default();
        Self {
            schedule: None,
            misfire: spec.parsed_misfire().unwrap_or(misfire),
            on_resume: spec.parsed_on_resume().unwrap_or(on_resume),
            overlap_key: overlap.key_in(spec.params.as_ref()),
            overlap,
            breaker: spec.parsed_breaker().unwrap_or(None),
            timeout_ms: spec.parsed_timeout().unwrap_or(JobSpec::DEFAULT_TIMEOUT_MS),
            start_timeout_ms: spec.parsed_start_timeout().unwrap_or(None),
            progress_timeout_ms: spec.parsed_progress_timeout().unwrap_or(None),
            retried: retried(&requirement, &retry),
            retry,
            limits: spec.parsed_limits().unwrap_or(None),
            park_key: Arc::from(requirement.park_key()),
            requirement,
            version,
        }
    }

    /// Whether its runs must pass any gate.
    pub(super) fn is_gated(&self) -> bool {
        self.limits.is_some() || self.version.spec.queue.is_some()
    }

    pub(super) fn queue(&self) -> Option<QueueRef> {
        let name = self.version.spec.queue.clone()?;
        let namespace = self.version.spec.namespace.clone();
        Some(QueueRef { namespace, name })
    }

    /// What says which gates its runs must pass, but for what queues say.
    pub(super) fn gating(&self) -> (bool, Option<QueueRef>, Option<&str>) {
        let per_key = self.limits.as_ref().and_then(|it| it.per_key.as_ref());
        let pointer = per_key.map(|per_key| per_key.pointer.as_str());
        (self.limits.is_some(), self.queue(), pointer)
    }

    pub(super) fn task(&self) -> &Task {
        &self.version.spec.task
    }

    /// The part that a run with these parameters has in the job's overlap, if it counts; `None` is the job's own ones.
    pub(super) fn standing(&self, params: Option<&JsonText>) -> Standing {
        let key = match params {
            None => self.overlap_key.clone(),
            some => self.overlap.key_in(some),
        };
        Standing {
            counts: true,
            key,
            ..Standing::default()
        }
    }

    /// What a run of it asks of a worker, under its key; `again` when an attempt has failed.
    pub(super) fn wanted(&self, again: bool) -> (&Arc<str>, &Requirement) {
        match &self.retried {
            Some((key, requirement)) if again => (key, requirement),
            _ => (&self.park_key, &self.requirement),
        }
    }
}

fn retried(requirement: &Requirement, retry: &RetryPolicy) -> Option<(Arc<str>, Requirement)> {
    let priority = retry.priority.filter(|it| *it != requirement.priority)?;
    let requirement = Requirement {
        priority,
        ..requirement.clone()
    };
    Some((Arc::from(requirement.park_key()), requirement))
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) row: JobRow,
    pub(super) compiled: Arc<Compiled>,
    pub(super) schedule: ScheduleRow,
    /// The cursor as the store has it once the last batch taken is durable; `None` when the row is new.
    pub(super) stored_cursor: Option<WallMs>,
    pub(super) live_scheduled: u32,
    pub(super) tallies: Tallies,
    pub(super) breaker: Option<BreakerRow>,
    /// What has come of the jobs that it runs after.
    pub(super) waits: Option<AfterRow>,
    /// Other jobs run after it, or did; and the batch that last said so.
    pub(super) followed: bool,
    pub(super) followed_in: u64,
    pub(super) last_unfired: Option<Unfired>,
    pub(super) timer: Option<wheel::Key>,
    /// The edition of the calendars that it was compiled with.
    pub(super) edition: u64,
    /// Runs of it that are held in memory.
    pub(super) resident_runs: u32,
    pub(super) pace: Pace,
    /// The last batch that changed anything of it.
    pub(super) changed: u64,
    /// It stands in the queue of those that may leave memory.
    pub(super) idle: bool,
    /// A command asked for it, and it stays at least until then.
    pub(super) kept_until: MonoMs,
}

/// A nominal time and when it is due.
pub(super) type Planned = (WallMs, WallMs);

impl Job {
    pub(super) fn new(
        row: JobRow,
        compiled: Arc<Compiled>,
        schedule: ScheduleRow,
        stored_cursor: Option<WallMs>,
        edition: u64,
    ) -> Self {
        Self {
            row,
            compiled,
            schedule,
            stored_cursor,
            live_scheduled: 0,
            tallies: Tallies::default(),
            breaker: None,
            waits: None,
            followed: false,
            followed_in: 0,
            last_unfired: None,
            timer: None,
            edition,
            resident_runs: 0,
            pace: Pace::default(),
            changed: 0,
            idle: false,
            kept_until: MonoMs(0),
        }
    }

    pub(super) fn record(&self) -> JobRecord {
        JobRecord {
            row: self.row.clone(),
            version: self.compiled.version.clone(),
            schedule: self.schedule.clone(),
            live_scheduled: self.live_scheduled,
            tallies: self.tallies.clone(),
            breaker: self.breaker.clone(),
            waits: self.waits.clone(),
            followed: self.followed,
            last_unfired: self.last_unfired.clone(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Jobs {
    resident: BTreeMap<JobId, Job>,
    names: BTreeMap<JobRef, JobId>,
    free_names: BTreeSet<JobRef>,
    /// Names that jobs run after and that no job has, with the batch that last said so.
    wanted: BTreeMap<JobRef, u64>,
    /// Deleted jobs, with the batch that says so.
    tombstones: BTreeMap<JobId, u64>,
    /// Versions that resident runs are pinned to and that are not their job's current one.
    pub(super) old_versions: BTreeMap<(JobId, u32), Arc<Compiled>>,
}

/// Free names are a convenience: asking the store again costs little.
const FREE_NAMES: usize = 10_000;

impl Jobs {
    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.resident.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.resident.get_mut(&id)
    }

    pub(super) fn expect(&self, id: JobId) -> &Job {
        self.resident
            .get(&id)
            .unwrap_or_else(|| panic!("{id} is not resident"))
    }

    pub(super) fn expect_mut(&mut self, id: JobId) -> &mut Job {
        self.resident
            .get_mut(&id)
            .unwrap_or_else(|| panic!("{id} is not resident"))
    }

    pub(super) fn named(&self, name: &JobRef) -> Option<JobId> {
        self.names.get(name).copied()
    }

    /// Whether the name is known to be taken or free.
    pub(super) fn knows(&self, name: &JobRef) -> bool {
        self.names.contains_key(name) || self.free_names.contains(name)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Job> {
        self.resident.values()
    }

    pub(super) fn len(&self) -> usize {
        self.resident.len()
    }

    pub(super) fn ids(&self) -> Vec<JobId> {
        self.resident.keys().copied().collect()
    }

    pub(super) fn insert(&mut self, job: Job) {
        let id = job.row.id;
        if !job.row.deleted {
            let name = JobRef {
                namespace: job.row.namespace.clone(),
                name: job.row.name.clone(),
            };
            self.free_names.remove(&name);
            let before = self.names.insert(name, id);
            assert!(
                before.is_none_or(|before| before == id),
                "{id} took a name that is taken"
            );
        }
        self.resident.insert(id, job);
    }

    /// Lets go of a job that the store has whole.
    pub(super) fn evict(&mut self, id: JobId) {
        if let Some(job) = self.resident.remove(&id) {
            let name = JobRef {
                namespace: job.row.namespace,
                name: job.row.name,
            };
            self.names.remove(&name);
        }
    }

    pub(super) fn note_free(&mut self, name: JobRef) {
        if self.free_names.len() >= FREE_NAMES {
            self.free_names.clear();
        }
        self.free_names.insert(name);
    }

    /// A job that does not exist is followed.
    pub(super) fn note_awaited(&mut self, name: JobRef, seq: u64) {
        let known = self.wanted.entry(name).or_insert(seq);
        *known = seq.max(*known);
    }

    /// Whether other jobs wait for a job of this name, which is made now.
    pub(super) fn take_awaited(&mut self, name: &JobRef) -> bool {
        self.wanted.remove(name).is_some()
    }

    pub(super) fn deleted(&mut self, id: JobId, seq: u64) {
        let job = self.expect(id);
        let (row, followed) = (&job.row, job.followed);
        let name = JobRef {
            namespace: row.namespace.clone(),
            name: row.name.clone(),
        };
        if followed {
            self.note_awaited(name.clone(), seq);
        }
        self.names.remove(&name);
        self.note_free(name);
        self.tombstones.insert(id, seq);
    }

    /// Lets go of versions that no resident run is pinned to.
    pub(super) fn forget_versions(&mut self) {
        self.old_versions
            .retain(|_, compiled| Arc::strong_count(compiled) > 1);
    }

    /// Lets go of names that are awaited and that the store knows to be, when they are many. Whether they are free has to be
    /// asked with that.
    fn forget_awaited(&mut self, safe: u64) {
        if self.wanted.len() > FREE_NAMES {
            self.wanted.retain(|_, seq| *seq > safe);
            self.free_names.clear();
        }
    }

    /// Lets go of tombstones that no load can revive and no live run needs.
    pub(super) fn forget_tombstones(&mut self, safe: u64) {
        self.forget_awaited(safe);
        let resident = &mut self.resident;
        self.tombstones.retain(|id, seq| {
            let in_use =
                |job: &Job| job.live_scheduled > 0 || job.resident_runs > 0 || job.changed > safe;
            let needed = *seq > safe || resident.get(id).is_some_and(in_use);
            if !needed {
                resident.remove(id);
            }
            needed
        });
    }
}

impl Engine {
    /// Takes a loaded job unless it is resident already.
    ///
    /// The store may still have the version before an edit that is on its way: a run loaded with it may be pinned to it.
    pub(super) fn adopt_job(&mut self, record: JobRecord) {
        if let Some(job) = self.jobs.get(record.row.id) {
            if job.compiled.version.version != record.version.version {
                self.adopt_version(record.version);
            }
            return;
        }
        let id = record.row.id;
        let compiled = match record.row.deleted {
            true => Arc::new(Compiled::without_schedule(record.version)),
            false => self.compile_stored(record.version, record.schedule.fired_through),
        };
        let cursor = Some(record.schedule.fired_through);
        let edition = self.calendars.edition();
        if record.row.deleted {
            self.jobs.tombstones.insert(id, 0);
        }
        self.jobs.insert(Job {
            live_scheduled: record.live_scheduled,
            tallies: record.tallies,
            breaker: record.breaker,
            waits: record.waits,
            followed: record.followed,
            last_unfired: record.last_unfired,
            ..Job::new(record.row, compiled, record.schedule, cursor, edition)
        });
        self.arm_job(id);
    }

    /// The definition that a run is pinned to. Whoever loads a run loads this first.
    pub(super) fn pinned(&self, job: JobId, version: u32) -> Arc<Compiled> {
        let current = &self.jobs.expect(job).compiled;
        if current.version.version == version {
            return Arc::clone(current);
        }
        match self.jobs.old_versions.get(&(job, version)) {
            Some(compiled) => Arc::clone(compiled),
            None => panic!("version {version} of {job} is not resident"),
        }
    }

    pub(super) fn adopt_version(&mut self, version: JobVersion) {
        let key = (version.job, version.version);
        if self.jobs.old_versions.contains_key(&key) {
            return;
        }
        let compiled = Arc::new(Compiled::without_schedule(version));
        self.jobs.old_versions.insert(key, compiled);
    }

    /// Compiles a definition as a user gives it.
    pub(super) fn compile_given(
        &self,
        version: JobVersion,
        since: WallMs,
    ) -> Result<Compiled, Refusal> {
        let namespace = version.spec.namespace.clone();
        let calendars = self.calendars.of(&namespace, since);
        Compiled::new(version, &calendars).map_err(Refusal::Invalid)
    }

    /// Compiles a definition as it is stored, with the calendars in force from `since` on. A schedule that cannot be read
    /// any more, because a time zone went away or a rule became stricter, fires no more until it is edited.
    pub(super) fn compile_stored(&mut self, version: JobVersion, since: WallMs) -> Arc<Compiled> {
        let namespace = version.spec.namespace.clone();
        let calendars = self.calendars.of(&namespace, since);
        let compiled = Compiled::new(version.clone(), &calendars).unwrap_or_else(|fault| {
            let name = &version.spec.name;
            let text = format!(
                "the stored definition of job `{name}` in namespace `{namespace}` is not valid any more: {fault}; apply it anew"
            );
            self.building.effects.push(Effect::Alarm { text });
            Compiled::without_schedule(version)
        });
        Arc::new(compiled)
    }
}
