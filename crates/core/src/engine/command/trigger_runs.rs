//! Makes runs on request. A known idempotency key answers with the run of the first request and makes none.

use std::sync::Arc;

use crate::model::{
    Actor, IdempotencyEntry, IdempotencyHash, Limits, Now, Origin, Run, SpecError, WallMs,
    check_params,
};

use super::super::runs::fresh_run;
use super::super::{Engine, Refusal, Reply, Trigger, Triggered, When};

impl Engine {
    pub(super) fn trigger_runs(
        &mut self,
        now: Now,
        actor: &Actor,
        triggers: Vec<Trigger>,
    ) -> Reply {
        Reply::Triggered(
            triggers
                .into_iter()
                .map(|trigger| self.trigger_run(now, actor, trigger))
                .collect(),
        )
    }

    fn trigger_run(
        &mut self,
        now: Now,
        actor: &Actor,
        trigger: Trigger,
    ) -> Result<Triggered, Refusal> {
        check_params("params", trigger.params.as_ref()).map_err(Refusal::Invalid)?;
        let due = due_of(now, &trigger).map_err(Refusal::Invalid)?;
        let Some(job) = self.jobs.named(&trigger.job) else {
            return Err(Refusal::NoSuchJob(trigger.job));
        };
        let hash = match &trigger.idempotency_key {
            Some(key) => Some(check_key(&trigger, key)?),
            None => None,
        };
        if let Some((hash, fingerprint)) = hash
            && let Some(Some(entry)) = self.keys.get(&hash)
        {
            return if entry.fingerprint == fingerprint {
                Ok(Triggered {
                    run: entry.run,
                    repeated: true,
                })
            } else {
                Err(Refusal::KeyReused(
                    trigger.idempotency_key.unwrap_or_default(),
                ))
            };
        }
        let run = self.segments.run_id(job.segment(), now.wall);
        if let Some((hash, fingerprint)) = hash {
            let entry = IdempotencyEntry {
                hash,
                fingerprint,
                run,
                created: now.wall,
            };
            let seq = self.building_seq();
            self.keys.used(entry.clone(), seq);
            self.building.key(entry);
        }
        let job = self.jobs.expect(job);
        let compiled = Arc::clone(&job.compiled);
        let fresh = fresh_run(run, job, Origin::Api, actor.clone(), now);
        let run_row = Run {
            due,
            params: trigger.params,
            idempotency_key: trigger.idempotency_key,
            ..fresh
        };
        self.create_run(run_row, &compiled);
        Ok(Triggered {
            run,
            repeated: false,
        })
    }
}

fn check_key(trigger: &Trigger, key: &str) -> Result<(IdempotencyHash, IdempotencyHash), Refusal> {
    let length = key.chars().count();
    if length == 0 || length > Limits::IDEMPOTENCY_KEY_CHARS {
        let message = format!(
            "has {length} characters: give it 1 to {}",
            Limits::IDEMPOTENCY_KEY_CHARS
        );
        return Err(Refusal::Invalid(SpecError::new("idempotency_key", message)));
    }
    let job = &trigger.job;
    let hash = IdempotencyHash::of(job.namespace.as_str(), job.name.as_str(), key);
    let params = trigger.params.as_ref().map_or("", |params| params.as_str());
    let fingerprint = match trigger.when {
        None => IdempotencyHash::fingerprint(&["trigger", params]),
        Some(When::At(at)) => {
            IdempotencyHash::fingerprint(&["trigger", params, "at", &at.0.to_string()])
        }
        Some(When::After(ms)) => {
            IdempotencyHash::fingerprint(&["trigger", params, "after", &ms.to_string()])
        }
    };
    Ok((hash, fingerprint))
}

/// When the run is due: never before now, and not further ahead than anyone means.
fn due_of(now: Now, trigger: &Trigger) -> Result<WallMs, SpecError> {
    let (field, due) = match trigger.when {
        None => return Ok(now.wall),
        Some(When::At(at)) => ("at", at),
        Some(When::After(ms)) => (
            "delay",
            now.wall.plus(i64::try_from(ms).unwrap_or(i64::MAX)),
        ),
    };
    if due.since(now.wall) > Limits::DELAY_MS {
        let days = Limits::DELAY_MS / 86_400_000;
        let message = format!("lies more than {days} days ahead: use a job with a schedule");
        return Err(SpecError::new(field, message));
    }
    Ok(due.max(now.wall))
}
