//! Tells a job of the end of a run that it may run after, and makes its run when it has all that it needs.
//!
//! Which jobs a job follows is looked up here in its definition as it is now: one that was edited, deleted or paused since
//! the end is as if it had been so before.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::model::{
    AfterRow, Arrival, Ending, JobId, JobName, JobSpec, Limits, NamespaceName, Need, Now, Origin,
    Run, SpecError, UnfiredReason, Unmade,
};

use super::admit_run::Admission;
use super::runs::fresh_run;
use super::{Engine, JobRef, LoadKey, Refusal};

impl Engine {
    /// A run of a job that this one may follow has ended.
    pub(super) fn follow_job(&mut self, now: Now, id: JobId, ending: &Ending) {
        let job = self.jobs.expect(id);
        let compiled = Arc::clone(&job.compiled);
        let counts = |after: &&crate::model::After| {
            after.on.takes(ending.state) && after.jobs.contains(&ending.name)
        };
        let after = compiled.version.spec.after.as_ref().filter(counts);
        let Some(after) = after.filter(|_| !job.row.deleted) else {
            return;
        };
        if job.row.paused.is_some() {
            self.note_unmade(id, ending, UnfiredReason::Paused);
            return;
        }
        if after.need == Need::All && !self.has_arrived(id, ending, &after.jobs) {
            return;
        }
        let standing = compiled.standing(None);
        match self.admit(now.wall, id, &standing, false) {
            Admission::Full => self.note_unmade(id, ending, UnfiredReason::Overlap),
            Admission::QueueFull => self.note_unmade(id, ending, UnfiredReason::QueueFull),
            Admission::Shut(_) => self.note_unmade(id, ending, UnfiredReason::Breaker),
            made @ (Admission::Go | Admission::Queue | Admission::Fail) => {
                let run_id = self.segments.run_id(id.segment(), now.wall);
                let server = self.options.server.clone();
                let run = Run {
                    parent_run: Some(ending.run),
                    root_run: Some(ending.root),
                    standing,
                    ..fresh_run(run_id, self.jobs.expect(id), Origin::After, server, now)
                };
                self.make_admitted(now, run, &compiled, made);
            }
        }
    }

    /// Keeps the end. True when each of the jobs has one, which are used up then.
    fn has_arrived(&mut self, id: JobId, ending: &Ending, needed: &[JobName]) -> bool {
        let row = self.jobs.expect_mut(id).waits.get_or_insert_default();
        let arrival = Arrival {
            run: ending.run,
            state: ending.state,
            at: ending.at,
        };
        let kept = row.arrived.entry(ending.name.clone()).or_insert(arrival);
        if kept.at <= arrival.at {
            *kept = arrival;
        }
        let all = needed.iter().all(|job| row.arrived.contains_key(job));
        if all {
            row.arrived.clear();
        }
        self.write_waits(id);
        all
    }

    fn note_unmade(&mut self, id: JobId, ending: &Ending, reason: UnfiredReason) {
        let row = self.jobs.expect_mut(id).waits.get_or_insert_default();
        let before = row.unmade.map_or(0, |unmade| unmade.count);
        row.unmade = Some(Unmade {
            count: before.saturating_add(1),
            run: ending.run,
            at: ending.at,
            reason,
        });
        self.write_waits(id);
    }

    fn write_waits(&mut self, id: JobId) {
        let waits = &mut self.jobs.expect_mut(id).waits;
        if waits.as_ref().is_some_and(AfterRow::is_empty) {
            *waits = None;
        }
        let arrived = waits.as_ref().map_or(0, |row| row.arrived.len());
        self.building.waits(id, arrived);
        self.mark_job(id);
    }

    /// The definition of a job has changed, or the job is gone: what it does not wait for any more is forgotten, and the
    /// jobs that it follows know of it.
    pub(super) fn follow_anew(&mut self, id: JobId) {
        let seq = self.building_seq();
        let job = self.jobs.expect_mut(id);
        let compiled = Arc::clone(&job.compiled);
        let after = compiled.version.spec.after.as_ref();
        let after = after.filter(|_| !job.row.deleted);
        if let Some(row) = &mut job.waits {
            match after {
                Some(after) if after.need == Need::All => row.arrived.retain(|name, arrival| {
                    after.jobs.contains(name) && after.on.takes(arrival.state)
                }),
                Some(_) => row.arrived.clear(),
                None => *row = AfterRow::default(),
            }
            self.write_waits(id);
        }
        for name in after.into_iter().flat_map(|after| &after.jobs) {
            let upstream = JobRef {
                namespace: compiled.version.spec.namespace.clone(),
                name: name.clone(),
            };
            match self.jobs.named(&upstream) {
                Some(upstream) => {
                    let job = self.jobs.expect_mut(upstream);
                    (job.followed, job.followed_in) = (true, seq);
                    self.mark_job(upstream);
                }
                None => self.jobs.note_awaited(upstream, seq),
            }
        }
    }

    /// Names of jobs that come before this definition and of which it is not known whether they exist.
    pub(super) fn missing_before(&self, spec: &JobSpec) -> Vec<LoadKey> {
        // What is refused anyway needs nothing more.
        let before = self.walk_before(spec).unwrap_or_default();
        let unknown = before.into_iter().filter(|job| !self.jobs.knows(job));
        unknown.map(LoadKey::JobNamed).collect()
    }

    /// Keeps the jobs that come before this definition until all of them have been read.
    pub(super) fn keep_before(&mut self, spec: &JobSpec) {
        for job in self.walk_before(spec).unwrap_or_default() {
            if let Some(id) = self.jobs.named(&job) {
                self.keep_job(id);
            }
        }
    }

    /// Refuses a definition that would come before itself, or after too many. One that follows whom it followed before
    /// changes nothing of that.
    pub(super) fn check_before(&self, name: &JobRef, spec: &JobSpec) -> Result<(), Refusal> {
        let old = self.jobs.named(name).map(|id| self.jobs.expect(id));
        if old.is_some_and(|job| job.compiled.version.spec.after == spec.after) {
            return Ok(());
        }
        let walked = self.walk_before(spec).map(drop);
        walked.map_err(|message| Refusal::Invalid(SpecError::new("after.jobs", message)))
    }

    /// The jobs that come before, the nearest first, as far as they are known.
    fn walk_before(&self, spec: &JobSpec) -> Result<Vec<JobRef>, String> {
        let after = spec.after.iter();
        let mut steps: Vec<Step<'_>> = Vec::new();
        let mut seen: BTreeSet<&JobName> = BTreeSet::new();
        let mut ahead: VecDeque<(&JobName, Option<usize>)> = VecDeque::new();
        for name in after.flat_map(|after| &after.jobs) {
            if seen.insert(name) {
                ahead.push_back((name, None));
            }
        }
        while let Some((name, from)) = ahead.pop_front() {
            if *name == spec.name {
                return Err(told(&spec.name, &steps, from));
            }
            if steps.len() == Limits::AFTER_WALK {
                let most = Limits::AFTER_WALK;
                return Err(format!(
                    "more than {most} jobs come before it: make the chain shorter"
                ));
            }
            let step = steps.len();
            steps.push(Step { name, from });
            let found = self.jobs.named(&job_ref(&spec.namespace, name));
            let found = found.map(|id| self.jobs.expect(id));
            let before = found.and_then(|job| job.compiled.version.spec.after.as_ref());
            for name in before.into_iter().flat_map(|after| &after.jobs) {
                if seen.insert(name) {
                    ahead.push_back((name, Some(step)));
                }
            }
        }
        let steps = steps.iter();
        Ok(steps
            .map(|step| job_ref(&spec.namespace, step.name))
            .collect())
    }
}

/// A job on the way back, and the one that runs after it.
struct Step<'a> {
    name: &'a JobName,
    from: Option<usize>,
}

fn job_ref(namespace: &NamespaceName, name: &JobName) -> JobRef {
    JobRef {
        namespace: namespace.clone(),
        name: name.clone(),
    }
}

/// The circle that leads from a job back to itself, in words.
fn told(own: &JobName, steps: &[Step<'_>], mut from: Option<usize>) -> String {
    let mut names = vec![own];
    while let Some(step) = from {
        names.push(steps[step].name);
        from = steps[step].from;
    }
    names.push(own);
    names.reverse();
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let circle = names.join(" runs after ");
    format!("{circle}: they would wait for each other for ever; take one of them out")
}
