//! What a user does next.

use drumtower_core::engine::{JobRef, NewBackfill, Rerun, Trigger, When};
use drumtower_core::model::{
    BackfillId, CalendarSpec, Fence, JobRecord, JobSpec, JsonText, LockRef, LockRequest,
    NamespaceName, QueueName, QueueRef, QueueSpec, Requirement, RunId, RunState, TaskNeed,
    WorkerName, WorkerRef,
};
use drumtower_store::{JobFilter, Read, RunFilter};

use super::locks::Hold;
use super::obedience;
use crate::plan::{self, Shape};
use crate::random::Random;
use crate::worker::Worker;
use crate::world::World;

#[derive(Clone, Debug)]
pub enum Deed {
    Put(Box<JobSpec>),
    Pause(JobRef),
    Resume(JobRef),
    Delete(JobRef),
    Trigger(Vec<Trigger>),
    Cancel(RunId),
    ResetBreaker(JobRef),
    Rerun(Vec<Trigger>),
    Calendar(Box<CalendarSpec>),
    PutQueue(Box<QueueSpec>),
    PauseQueue(QueueRef),
    ResumeQueue(QueueRef),
    DeleteQueue(QueueRef),
    Drain(WorkerRef, Option<u64>),
    ResumeWorker(WorkerRef),
    ResetWorker(WorkerRef),
    Backfill(Box<NewBackfill>),
    Tend(BackfillId, Tend),
    Requeue(Vec<Trigger>),
    Discard(NamespaceName, Vec<RunId>),
    /// A key that was used is used for another request.
    Misuse(Box<Trigger>),
    Acquire(LockRequest),
    Renew {
        hold: Hold,
        ttl_ms: Option<u64>,
    },
    /// Without a fence it ends whichever hold there is.
    Release {
        lock: LockRef,
        fence: Option<Fence>,
    },
}

/// What is done to a backfill.
#[derive(Clone, Copy, Debug)]
pub enum Tend {
    Pause,
    Resume,
    Cancel { runs: bool },
}

impl Deed {
    /// Its column in the table of coverage.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Put(_) => "put job",
            Self::Pause(_) => "pause job",
            Self::Resume(_) => "resume job",
            Self::Delete(_) => "delete job",
            Self::Trigger(_) => "trigger",
            Self::Cancel(_) => "cancel",
            Self::ResetBreaker(_) => "breaker",
            Self::Rerun(_) => "rerun",
            Self::Calendar(_) => "calendar",
            Self::PutQueue(_) => "put queue",
            Self::PauseQueue(_) => "pause queue",
            Self::ResumeQueue(_) => "resume queue",
            Self::DeleteQueue(_) => "delete queue",
            Self::Drain(..) => "drain worker",
            Self::ResumeWorker(_) => "resume worker",
            Self::ResetWorker(_) => "reset worker",
            Self::Backfill(_) => "backfill",
            Self::Tend(..) => "tend",
            Self::Requeue(_) => "requeue",
            Self::Discard(..) => "discard",
            Self::Misuse(_) => "misused key",
            Self::Acquire(_) => "lock",
            Self::Renew { .. } => "renew lock",
            Self::Release { .. } => "release",
        }
    }

    pub fn words(&self) -> String {
        match self {
            Self::Put(spec) => format!("put {}", spec.name),
            Self::Pause(job) => format!("pause {}", job.name),
            Self::Resume(job) => format!("resume {}", job.name),
            Self::Delete(job) => format!("delete {}", job.name),
            Self::Trigger(triggers) => {
                format!("{} runs of {}", triggers.len(), triggers[0].job.name)
            }
            Self::Cancel(run) => format!("cancel {run}"),
            Self::ResetBreaker(job) => format!("reset the breaker of {}", job.name),
            Self::Rerun(triggers) => format!("rerun of {}", triggers[0].job.name),
            Self::Calendar(spec) => format!("calendar {}", spec.name),
            Self::PutQueue(spec) => format!("put queue {}", spec.name),
            Self::PauseQueue(queue) => format!("pause queue {}", queue.name),
            Self::ResumeQueue(queue) => format!("resume queue {}", queue.name),
            Self::DeleteQueue(queue) => format!("delete queue {}", queue.name),
            Self::Drain(worker, deadline) => format!("drain {} within {deadline:?}", worker.name),
            Self::ResumeWorker(worker) => format!("resume worker {}", worker.name),
            Self::ResetWorker(worker) => format!("reset worker {}", worker.name),
            Self::Backfill(new) => format!("backfill of {}", new.job.name),
            Self::Tend(id, tend) => format!("{tend:?} {id}"),
            Self::Requeue(triggers) => format!("{} letters once more", triggers.len()),
            Self::Discard(_, runs) => format!("{} letters thrown away", runs.len()),
            Self::Misuse(trigger) => format!("another request of {}", trigger.job.name),
            Self::Acquire(request) => format!("{} for {}", request.lock.name, request.owner),
            Self::Renew { hold, .. } => format!("{} longer for {}", hold.lock.name, hold.owner),
            Self::Release { lock, .. } => format!("{} given back", lock.name),
        }
    }

    pub fn triggers(&self) -> &[Trigger] {
        match self {
            Self::Trigger(triggers) | Self::Rerun(triggers) | Self::Requeue(triggers) => triggers,
            _ => &[],
        }
    }

    /// Whether doing it twice is doing it once.
    pub fn is_repeatable(&self) -> bool {
        if let Self::Backfill(new) = self {
            return new.idempotency_key.is_some();
        }
        self.triggers()
            .iter()
            .all(|trigger| trigger.idempotency_key.is_some())
    }
}

impl Worker {
    pub(crate) fn named(&self) -> Option<WorkerRef> {
        let name = WorkerName::new(&self.name).ok()?;
        let namespace = None;
        Some(WorkerRef { name, namespace })
    }

    /// Whether it could ever run this.
    pub(crate) fn is_able(&self, needed: &Requirement) -> bool {
        let shape = &self.shape;
        let scope = shape.namespace.as_deref();
        let task = match &needed.need {
            TaskNeed::Exec => shape.exec,
            TaskNeed::Http => false,
            TaskNeed::Handler(name) => shape.handlers.contains(name),
        };
        scope.is_none_or(|scope| scope == needed.namespace.as_str())
            && task
            && shape.capacity >= needed.weight
    }
}

/// What somebody does to a queue: defines it most of the time.
fn queue_deed(random: &mut Random) -> Option<Deed> {
    let namespace = *random.pick(plan::NAMESPACES);
    let queue = QueueRef {
        namespace: NamespaceName::new(namespace).ok()?,
        name: QueueName::new(random.pick::<&str>(plan::QUEUES)).ok()?,
    };
    Some(match random.below(10) {
        0 => Deed::DeleteQueue(queue),
        1 | 2 => Deed::PauseQueue(queue),
        3..6 => Deed::ResumeQueue(queue),
        _ => Deed::PutQueue(Box::new(plan::queue(namespace, random)?)),
    })
}

impl World {
    pub(super) fn choose(&mut self, client: usize) -> Option<Deed> {
        let filter = JobFilter::default();
        let jobs = self.reader.jobs(&filter, None, usize::MAX).ok()?.jobs;
        let now = self.servers[0].clock.now(self.at).wall;
        let calendars = !self.reader.calendars().ok()?.is_empty();
        let fresh = self.number();
        let random = &mut self.clients[client].random;
        if jobs.len() < self.plan.figures.jobs && random.chance(800) {
            let spec = plan::fresh(fresh, now, calendars, self.plan.shape, random);
            return Some(Deed::Put(Box::new(spec)));
        }
        if jobs.is_empty() {
            return None;
        }
        if random.chance(self.plan.figures.locks_permille) {
            return self.lock_deed(client);
        }
        let hot = self.plan.shape == Shape::HotJob && random.chance(850);
        let job = match hot {
            true => jobs[0].clone(),
            false => random.pick(&jobs).clone(),
        };
        let name = JobRef {
            namespace: job.row.namespace.clone(),
            name: job.row.name.clone(),
        };
        match random.below(116) {
            0..10 => {
                let spec = plan::edited(&job.version.spec, now, random);
                Some(Deed::Put(Box::new(spec)))
            }
            10..14 => Some(Deed::Pause(name)),
            14..22 => self.resume(client, jobs),
            22..24 => Some(Deed::Delete(name)),
            24..27 => {
                let namespace = *random.pick(plan::NAMESPACES);
                let spec = plan::calendar(namespace, now, random)?;
                Some(Deed::Calendar(Box::new(spec)))
            }
            27..34 => queue_deed(random),
            34..44 => self.cancel(client),
            44..49 => self.rerun(client),
            49..52 => self.once_more(client),
            52..57 => self.maintain(client),
            57..59 => Some(Deed::ResetBreaker(name)),
            59..63 => self.backfill(client, job),
            63..68 => self.tend(client),
            68..70 => self.misuse(client),
            70..76 => self.letter_deed(client),
            _ => Some(Deed::Trigger(self.triggers(client, &name))),
        }
    }

    /// A worker is taken out of service or put back.
    fn maintain(&mut self, client: usize) -> Option<Deed> {
        let random = &mut self.clients[client].random;
        let worker = random.pick(&self.workers).named()?;
        let longest = 3 * self.plan.figures.longest_task_ms;
        Some(match random.below(10) {
            0..3 => Deed::Drain(worker, None),
            3..6 => Deed::Drain(worker, Some(random.skewed(0, longest))),
            6..9 => Deed::ResumeWorker(worker),
            _ => Deed::ResetWorker(worker),
        })
    }

    fn resume(&mut self, client: usize, jobs: Vec<JobRecord>) -> Option<Deed> {
        let paused: Vec<_> = jobs
            .into_iter()
            .filter(|job| job.row.paused.is_some())
            .collect();
        if paused.is_empty() {
            return None;
        }
        let job = self.clients[client].random.pick(&paused);
        Some(Deed::Resume(JobRef {
            namespace: job.row.namespace.clone(),
            name: job.row.name.clone(),
        }))
    }

    fn triggers(&mut self, client: usize, job: &JobRef) -> Vec<Trigger> {
        let shape = self.plan.shape;
        let user = &mut self.clients[client];
        let count = match user.random.below(20) {
            _ if shape.is_quiet() => 1,
            0..3 if shape == Shape::Bursts => user.random.between(100, 600),
            0..6 if shape == Shape::HotJob => user.random.between(20, 200),
            0..3 if shape == Shape::ManyKeys => user.random.between(50, 250),
            0 => user.random.skewed(2, 120),
            1..4 => user.random.between(2, 6),
            _ => 1,
        };
        let mut triggers = Vec::new();
        for _ in 0..count {
            user.keys += 1;
            let key = format!("c{client}-{}", user.keys);
            let customer = match shape {
                Shape::ManyKeys => user.random.between(1, 150),
                _ => user.random.skewed(1, 4),
            };
            let params = format!("{{\"order\":{},\"customer\":{customer}}}", user.keys);
            let when = match user.random.below(12) {
                0..2 => Some(When::After(user.random.skewed(1, 90_000))),
                2 => Some(When::After(user.random.skewed(1, 900_000))),
                _ => None,
            };
            let idempotency_key = user.random.chance(800).then_some(key);
            let force = idempotency_key.is_some() && user.random.chance(100);
            self.checks
                .forced(idempotency_key.as_ref().filter(|_| force));
            triggers.push(Trigger {
                params: JsonText::parse("params", &params).ok(),
                idempotency_key,
                when,
                overlap: obedience(&mut user.random),
                force,
                ..Trigger::of(job.clone())
            });
        }
        triggers
    }

    fn cancel(&mut self, client: usize) -> Option<Deed> {
        let known = self.clients[client].runs.len() as u64;
        if known > 0 && self.clients[client].random.chance(400) {
            let index = self.clients[client].random.below(known) as usize;
            return Some(Deed::Cancel(self.clients[client].runs[index]));
        }
        let states = vec![RunState::Pending, RunState::Scheduled, RunState::Running];
        let filter = RunFilter {
            states,
            ..RunFilter::default()
        };
        let live = self.reader.runs(&filter, None, 50).ok()?.runs;
        if live.is_empty() {
            return None;
        }
        let run = self.clients[client].random.pick(&live).id;
        Some(Deed::Cancel(run))
    }

    fn rerun(&mut self, client: usize) -> Option<Deed> {
        let states = vec![RunState::Completed, RunState::Failed, RunState::Cancelled];
        let filter = RunFilter {
            states,
            ..RunFilter::default()
        };
        let ended = self.reader.runs(&filter, None, 50).ok()?.runs;
        if ended.is_empty() {
            return None;
        }
        let run = self.clients[client].random.pick(&ended).clone();
        let job = self.reader.job(run.job).ok()??;
        let pinned = self.reader.job_version(run.job, run.job_version).ok()??;
        let saved = self.reader.checkpoint(run.id).ok()?;
        let user = &mut self.clients[client];
        user.keys += 1;
        let key = format!("c{client}-{}", user.keys);
        let rerun = Rerun {
            of: run.id,
            job: run.job,
            nominal: run.nominal,
            params: run.params,
            version: user.random.chance(500).then_some(pinned),
            checkpoint: saved.filter(|_| user.random.chance(500)),
            letter: false,
        };
        let name = JobRef {
            namespace: job.row.namespace,
            name: job.row.name,
        };
        Some(Deed::Rerun(vec![Trigger {
            idempotency_key: Some(key),
            rerun: Some(Box::new(rerun)),
            overlap: obedience(&mut user.random),
            ..Trigger::of(name)
        }]))
    }

    /// A request that was answered is made once more, as it was.
    fn once_more(&mut self, client: usize) -> Option<Deed> {
        let user = &mut self.clients[client];
        if user.made.is_empty() {
            return None;
        }
        let again = user.random.pick(&user.made).clone();
        let open = self.calls.values().flat_map(|call| call.deed.triggers());
        if open
            .clone()
            .any(|it| it.idempotency_key == again.idempotency_key)
        {
            return None;
        }
        Some(Deed::Trigger(vec![again]))
    }

    /// A key that was answered is used for something else, which is refused.
    fn misuse(&mut self, client: usize) -> Option<Deed> {
        let user = &mut self.clients[client];
        if user.made.is_empty() {
            return None;
        }
        let mut other = user.random.pick(&user.made).clone();
        other.params = JsonText::parse("params", "{\"order\":0}").ok();
        Some(Deed::Misuse(Box::new(other)))
    }
}
