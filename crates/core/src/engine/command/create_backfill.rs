//! Begins a backfill: from nothing to RUNNING. A known idempotency key answers with the backfill of the first request.
//!
//! Refused: a job that is not there, a version without times, an interval that is empty, not over or too long, one that
//! another backfill of the job goes through, and one more than a namespace may have. The version that the caller read is pinned.
//! Runs are made later, when a page of times has been read.

use crate::model::{
    Actor, AuditAction, BackfillId, BackfillRow, BackfillState, IdempotencyEntry, IdempotencyHash,
    JobId, Limits, Now, Obedience, RunId,
};

use super::super::{Engine, NewBackfill, Refusal};
use super::Answer;
use super::trigger_runs::check_length;

impl Engine {
    pub(super) fn create_backfill(&mut self, now: Now, actor: &Actor, new: NewBackfill) -> Answer {
        let plan = &new.plan;
        let key = match &new.idempotency_key {
            Some(key) => Some(hashes(&new, key)?),
            None => None,
        };
        // A job of the same name that was made later is another job.
        let named = self.jobs.named(&new.job);
        let Some(job) = named.filter(|id| *id == new.version.job) else {
            return Err(Refusal::NoSuchJob(new.job));
        };
        if let Some((hash, fingerprint)) = key
            && let Some(Some(entry)) = self.keys.get(&hash)
        {
            let same = entry.fingerprint == fingerprint;
            let id = BackfillId(entry.run.0);
            return match same {
                true => self.backfill_reply(id, true),
                false => Err(Refusal::KeyReused(new.idempotency_key.unwrap_or_default())),
            };
        }
        plan.check(now.wall).map_err(Refusal::Invalid)?;
        plan.check_times(new.times).map_err(Refusal::Invalid)?;
        plan.check_job(&new.version.spec)
            .map_err(Refusal::Invalid)?;
        if self.backfills.running(&new.job.namespace) >= Limits::BACKFILLS {
            return Err(Refusal::TooManyBackfills(Limits::BACKFILLS));
        }
        if let Some(other) = self.backfills.in_the_way(job, plan.from, plan.to) {
            return Err(Refusal::BackfillInTheWay(other));
        }
        self.carry_out_backfill(now, actor, job, new, key)
    }

    fn carry_out_backfill(
        &mut self,
        now: Now,
        actor: &Actor,
        job: JobId,
        new: NewBackfill,
        key: Option<Hashes>,
    ) -> Answer {
        let id = self.segments.backfill_id(job.segment(), now.wall);
        if let Some((hash, fingerprint)) = key {
            let entry = IdempotencyEntry {
                hash,
                fingerprint,
                // The answer to the request, whatever kind of thing it is.
                run: RunId(id.0),
                created: now.wall,
            };
            let seq = self.building_seq();
            self.keys.used(entry.clone(), seq);
            self.building.key(entry);
        }
        let number = new.version.version;
        if self.jobs.expect(job).row.version != number {
            self.adopt_version(new.version);
        }
        self.keep_job(job);
        let plan = new.plan;
        self.begin_backfill(
            now,
            BackfillRow {
                id,
                namespace: new.job.namespace,
                job,
                job_name: new.job.name,
                job_version: number,
                from: plan.from,
                to: plan.to,
                which: plan.which,
                order: plan.order,
                max_active: plan.max_active,
                priority: plan.priority,
                params: plan.params,
                overlap: plan.overlap,
                force: plan.force,
                held: None,
                state: BackfillState::Running,
                cursor: None,
                times: new.times,
                made: 0,
                completed: 0,
                failed: 0,
                cancelled: 0,
                skipped: 0,
                live: Vec::new(),
                created: now.wall,
                actor: actor.clone(),
                ended: None,
                revision: 0,
                step: 0,
            },
        );
        self.touch_backfill(now, actor, id, AuditAction::Created);
        self.backfill_reply(id, false)
    }
}

type Hashes = (IdempotencyHash, IdempotencyHash);

fn hashes(new: &NewBackfill, key: &str) -> Result<Hashes, Refusal> {
    check_length(key)?;
    let (job, plan) = (&new.job, &new.plan);
    let hash = IdempotencyHash::of(job.namespace.as_str(), job.name.as_str(), key);
    let params = plan.params.as_ref().map_or("", |params| params.as_str());
    let (from, to) = (plan.from.0.to_string(), plan.to.0.to_string());
    let (most, priority) = (plan.max_active.to_string(), plan.priority.to_string());
    let mut parts = vec![
        "backfill",
        &from,
        &to,
        plan.which.as_str(),
        plan.order.as_str(),
        &most,
        &priority,
        params,
    ];
    parts.extend((plan.overlap == Obedience::Obey).then_some("obey"));
    parts.extend(plan.force.then_some("force"));
    Ok((hash, IdempotencyHash::fingerprint(&parts)))
}
