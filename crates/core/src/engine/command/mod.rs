//! Commands from the edge: one file each. A command is carried out whole or refused; either way its ticket is answered.

mod cancel_backfill;
mod cancel_run;
mod create_backfill;
mod create_token;
mod delete_calendar;
mod delete_job;
mod delete_queue;
mod delete_setting;
mod discard_letters;
mod drain_worker;
mod pause_backfill;
mod pause_job;
mod pause_queue;
mod place;
mod put_calendar;
mod put_job;
mod put_queue;
mod put_setting;
mod release_lock;
mod reset_breaker;
mod reset_worker;
mod resume_backfill;
mod resume_job;
mod resume_queue;
mod resume_worker;
mod revoke_token;
mod trigger_runs;

use crate::model::{Actor, BackfillId, BackfillRow, IdempotencyHash, JobId, NamespaceName, Now};

use super::{
    Command, Condition, Effect, Engine, Input, JobRef, LoadKey, Refusal, Reply, Step, Ticket,
    Trigger,
};

type Answer = Result<Reply, Refusal>;

impl Engine {
    pub(super) fn command(
        &mut self,
        now: Now,
        ticket: Ticket,
        actor: Actor,
        command: Command,
    ) -> Step {
        let elsewhere = command.segments().without(&self.segments.owned());
        if !elsewhere.is_empty() {
            if let Command::PutJob { spec, .. } = &command {
                self.bring_together(spec);
            }
            let reply = Err(Refusal::Elsewhere(Box::new(elsewhere)));
            self.effect(Effect::Reply { ticket, reply });
            return Step::Done;
        }
        let missing = self.missing(&command);
        if !missing.is_empty() {
            if let Command::PutJob { spec, .. } = &command {
                self.keep_before(spec);
            }
            return self.need(
                missing,
                Input::Command {
                    ticket,
                    actor,
                    command,
                },
            );
        }
        let reply = match command {
            Command::PutJob { spec, condition } => self.put_job(now, &actor, *spec, condition),
            Command::PauseJob { job, condition } => self.pause_job(now, &actor, &job, condition),
            Command::ResumeJob { job, condition } => self.resume_job(now, &actor, &job, condition),
            Command::DeleteJob { job, condition } => self.delete_job(now, &actor, &job, condition),
            Command::ResetBreaker { job } => self.reset_breaker(now, &actor, &job),
            Command::PutCalendar { spec, condition } => {
                self.put_calendar(now, &actor, spec, condition)
            }
            Command::DeleteCalendar {
                calendar,
                condition,
            } => self.delete_calendar(now, &actor, calendar, condition),
            Command::PutQueue { spec, condition } => self.put_queue(now, &actor, spec, condition),
            Command::PauseQueue { queue, condition } => {
                self.pause_queue(now, &actor, queue, condition)
            }
            Command::ResumeQueue { queue, condition } => {
                self.resume_queue(now, &actor, queue, condition)
            }
            Command::DeleteQueue { queue, condition } => {
                self.delete_queue(now, &actor, queue, condition)
            }
            Command::TriggerRuns { triggers } => Ok(self.trigger_runs(now, &actor, triggers)),
            Command::CancelRun { run, scope } => self.cancel_run(now, &actor, run, scope.as_ref()),
            Command::DiscardLetters { namespace, runs } => {
                Ok(self.discard_letters(now, &actor, &namespace, runs))
            }
            Command::CreateBackfill { backfill } => self.create_backfill(now, &actor, *backfill),
            Command::PauseBackfill {
                backfill,
                scope,
                condition,
            } => self.pause_backfill(now, &actor, backfill, scope.as_ref(), condition),
            Command::ResumeBackfill {
                backfill,
                scope,
                condition,
            } => self.resume_backfill(now, &actor, backfill, scope.as_ref(), condition),
            Command::CancelBackfill {
                backfill,
                scope,
                condition,
                runs,
            } => self.cancel_backfill(now, &actor, backfill, scope.as_ref(), condition, runs),
            Command::CreateToken { token } => self.create_token(now, &actor, token),
            Command::RevokeToken { id } => self.revoke_token(now, &actor, id),
            Command::PutSetting {
                key,
                value,
                condition,
            } => self.put_setting(now, &actor, key, value, condition),
            Command::DeleteSetting { key, condition } => {
                self.delete_setting(now, &actor, &key, condition)
            }
            Command::DrainWorker {
                worker,
                deadline_ms,
            } => self.drain_worker(now, &actor, worker, deadline_ms),
            Command::ResumeWorker { worker } => self.resume_worker(now, &actor, &worker),
            Command::ResetWorker { worker } => self.reset_worker(now, &actor, &worker),
            Command::AcquireLock { request } => {
                match self.acquire_lock(now, ticket, &actor, request) {
                    Some(answer) => answer,
                    None => return Step::Done,
                }
            }
            Command::RenewLock {
                lock,
                fence,
                ttl_ms,
            } => self.renew_lock(now, &lock, fence, ttl_ms),
            Command::ReleaseLock { lock, fence } => self.give_back_lock(now, &actor, &lock, fence),
        };
        self.effect(Effect::Reply { ticket, reply });
        Step::Done
    }

    /// The rows a command needs that are not in memory.
    fn missing(&self, command: &Command) -> Vec<LoadKey> {
        let mut keys = match command {
            Command::PutJob { spec, .. } => {
                let mut keys = self.missing_name(&JobRef {
                    namespace: spec.namespace.clone(),
                    name: spec.name.clone(),
                });
                keys.extend(self.missing_before(spec));
                keys
            }
            Command::PauseJob { job, .. }
            | Command::ResumeJob { job, .. }
            | Command::DeleteJob { job, .. }
            | Command::ResetBreaker { job } => self.missing_name(job),
            Command::TriggerRuns { triggers } => triggers
                .iter()
                .flat_map(|trigger| self.missing_for(trigger))
                .collect(),
            Command::CancelRun { run, .. } => {
                let known = self.runs.get(*run).is_some() || self.looked_up.contains_key(run);
                if known {
                    Vec::new()
                } else {
                    vec![LoadKey::Run(*run)]
                }
            }
            Command::DeleteCalendar { calendar, .. } => {
                if self.users_asked.contains_key(calendar) {
                    Vec::new()
                } else {
                    vec![LoadKey::CalendarUsers(calendar.clone())]
                }
            }
            Command::DiscardLetters { runs, .. } => runs
                .iter()
                .filter_map(|run| self.missing_letter(*run))
                .collect(),
            Command::CreateBackfill { backfill } => {
                let mut keys = self.missing_name(&backfill.job);
                if let Some(key) = &backfill.idempotency_key {
                    let hash = key_hash(&backfill.job, key);
                    keys.extend(self.missing_key(hash));
                    let known = self.keys.get(&hash).flatten();
                    let first = known.map(|entry| self.missing_backfill(BackfillId(entry.run.0)));
                    keys.extend(first.unwrap_or_default());
                }
                keys
            }
            Command::PauseBackfill { backfill, .. } | Command::ResumeBackfill { backfill, .. } => {
                self.missing_backfill(*backfill)
            }
            Command::CancelBackfill { backfill, .. } => self.missing_with_runs(*backfill),
            Command::PutCalendar { .. }
            | Command::PutQueue { .. }
            | Command::PauseQueue { .. }
            | Command::ResumeQueue { .. }
            | Command::DeleteQueue { .. }
            | Command::CreateToken { .. }
            | Command::RevokeToken { .. }
            | Command::PutSetting { .. }
            | Command::DeleteSetting { .. }
            | Command::DrainWorker { .. }
            | Command::ResumeWorker { .. }
            | Command::ResetWorker { .. }
            | Command::AcquireLock { .. }
            | Command::RenewLock { .. }
            | Command::ReleaseLock { .. } => Vec::new(),
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn missing_name(&self, job: &JobRef) -> Vec<LoadKey> {
        if self.jobs.knows(job) {
            Vec::new()
        } else {
            vec![LoadKey::JobNamed(job.clone())]
        }
    }

    fn missing_for(&self, trigger: &Trigger) -> Vec<LoadKey> {
        let mut keys = self.missing_name(&trigger.job);
        let letter = trigger.rerun.as_ref().filter(|rerun| rerun.letter);
        keys.extend(letter.and_then(|rerun| self.missing_letter(rerun.of)));
        let key = trigger_runs::recognised_by(trigger);
        keys.extend(key.and_then(|hash| self.missing_key(hash)));
        keys
    }

    fn missing_key(&self, hash: IdempotencyHash) -> Option<LoadKey> {
        let known = self.keys.get(&hash).is_some();
        (!known).then_some(LoadKey::Idempotency(hash))
    }

    fn missing_backfill(&self, id: BackfillId) -> Vec<LoadKey> {
        let known = self.backfills.get(id).is_some() || self.backfills.over(id).is_some();
        if known {
            Vec::new()
        } else {
            vec![LoadKey::Backfill(id)]
        }
    }

    /// The backfill, or those of its runs that have not ended and are not in memory.
    fn missing_with_runs(&self, id: BackfillId) -> Vec<LoadKey> {
        let Some(row) = self.backfills.get(id) else {
            return self.missing_backfill(id);
        };
        let away = row.live.iter().filter(|run| self.runs.get(**run).is_none());
        away.map(|run| LoadKey::Run(*run)).collect()
    }

    /// A backfill that the caller may see, at the revision that it expects; `Err` also when it is over.
    fn find_backfill(
        &self,
        id: BackfillId,
        scope: Option<&NamespaceName>,
        condition: Condition,
    ) -> Result<&BackfillRow, Refusal> {
        let row = self.backfills.get(id).or(self.backfills.over(id).flatten());
        let seen = |row: &&BackfillRow| scope.is_none_or(|scope| *scope == row.namespace);
        let row = row.filter(seen).ok_or(Refusal::NoSuchBackfill(id))?;
        let current = row.revision;
        match condition {
            Condition::Revision(given) if given != current => {
                Err(Refusal::StaleBackfill { id, given, current })
            }
            _ => Ok(row),
        }
    }

    fn backfill_reply(&self, id: BackfillId, repeated: bool) -> Answer {
        let row = self.backfills.get(id).or(self.backfills.over(id).flatten());
        let row = row.ok_or(Refusal::NoSuchBackfill(id))?;
        Ok(Reply::Backfill {
            row: Box::new(row.clone()),
            repeated,
        })
    }

    /// The job of that name, at the revision that the caller expects.
    fn find_job(&self, job: &JobRef, condition: Condition) -> Result<JobId, Refusal> {
        let Some(id) = self.jobs.named(job) else {
            return Err(Refusal::NoSuchJob(job.clone()));
        };
        let current = self.jobs.expect(id).row.revision;
        match condition {
            Condition::Any => Ok(id),
            Condition::Revision(given) if given == current => Ok(id),
            Condition::Revision(given) => Err(Refusal::Stale { given, current }),
            Condition::Absent => Err(Refusal::AlreadyThere(job.clone())),
        }
    }

    /// Notes an edit of a job's row by `actor`.
    fn touch_job(&mut self, now: Now, actor: &Actor, id: JobId) {
        self.keep_job(id);
        let row = &mut self.jobs.expect_mut(id).row;
        row.revision += 1;
        row.updated = now.wall;
        row.actor = actor.clone();
        self.building.job_updated(id);
        self.mark_job(id);
    }

    fn job_reply(&self, id: JobId, created: bool) -> Reply {
        Reply::Job {
            record: Box::new(self.jobs.expect(id).record()),
            created,
        }
    }
}

fn key_hash(job: &JobRef, key: &str) -> IdempotencyHash {
    IdempotencyHash::of(job.namespace.as_str(), job.name.as_str(), key)
}
