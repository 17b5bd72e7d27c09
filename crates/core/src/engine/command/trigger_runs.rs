//! Makes runs on request. A known idempotency key answers with the run of the first request and makes none.
//!
//! What servers call a request among themselves does the same for one that was sent twice because its answer was lost. To
//! its caller that is the first: it is not told as repeated, and the run has no key.

use std::sync::Arc;

use crate::fault::{Fault, armed};
use crate::model::{
    Actor, AuditAction, CheckpointMark, IdempotencyEntry, IdempotencyHash, JobId, Limits, Now,
    Obedience, Origin, Run, SpecError, Standing, WallMs, check_params,
};

use super::super::admit_run::Admission;
use super::super::jobs::Compiled;
use super::super::runs::fresh_run;
use super::super::{Engine, Refusal, Reply, Rerun, Trigger, Triggered, When};

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
        let named = self.jobs.named(&trigger.job);
        // A job of the same name that was made later is another job.
        let same = |id: &JobId| trigger.rerun.as_ref().is_none_or(|rerun| rerun.job == *id);
        let Some(job) = named.filter(same) else {
            return Err(Refusal::NoSuchJob(trigger.job));
        };
        if let Some(key) = &trigger.idempotency_key {
            check_length(key)?;
        }
        let hash = recognised_by(&trigger).map(|hash| (hash, fingerprint(&trigger)));
        if let Some((hash, fingerprint)) = hash
            && let Some(Some(entry)) = self.keys.get(&hash)
        {
            return if entry.fingerprint == fingerprint || armed(Fault::FingerprintIgnored) {
                Ok(Triggered {
                    run: entry.run,
                    repeated: trigger.idempotency_key.is_some(),
                })
            } else {
                Err(Refusal::KeyReused(
                    trigger.idempotency_key.unwrap_or_default(),
                ))
            };
        }
        let compiled = self.definition_for(job, trigger.rerun.as_deref());
        let own = trigger
            .rerun
            .as_ref()
            .and_then(|rerun| rerun.params.as_ref());
        let standing = match trigger.overlap {
            Obedience::Ignore => Standing::of(Origin::Api),
            Obedience::Obey => compiled.standing(trigger.params.as_ref().or(own)),
        };
        let standing = self.admit_trigger(now, job, standing, &trigger)?;
        let letter = trigger.rerun.as_ref().filter(|rerun| rerun.letter);
        let letter = letter.map(|rerun| rerun.of);
        if let Some(letter) = letter {
            let there = self.letters.get(letter) == Some(true);
            if !there && !armed(Fault::LetterRequeuedTwice) {
                return Err(Refusal::NoSuchLetter(letter));
            }
            if there {
                let action = AuditAction::Requeued;
                self.remove_letter(now, actor, &trigger.job.namespace, letter, action);
            }
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
            if !armed(Fault::KeyNotWritten) {
                self.building.key(entry);
            }
        }
        let id = job;
        let job = self.jobs.expect(id);
        let fresh = fresh_run(run, job, Origin::Api, actor.clone(), now);
        let rerun = trigger.rerun.map(|rerun| *rerun);
        let resumed = rerun.as_ref().and_then(|rerun| rerun.checkpoint.clone());
        if let Some(checkpoint) = &resumed {
            self.building.checkpoint(run, checkpoint.clone());
        }
        let run_row = Run {
            due,
            job_version: compiled.version.version,
            retention: compiled.version.spec.retention(),
            nominal: rerun.as_ref().and_then(|rerun| rerun.nominal),
            rerun_of: rerun.as_ref().map(|rerun| rerun.of),
            params: trigger.params.or(rerun.and_then(|rerun| rerun.params)),
            idempotency_key: trigger.idempotency_key,
            standing,
            checkpoint: resumed.map(|checkpoint| CheckpointMark {
                number: checkpoint.number,
                attempt: 0,
                at: now.wall,
                bytes: u32::try_from(checkpoint.body.len()).unwrap_or(u32::MAX),
            }),
            ..fresh
        };
        let queued = run_row.standing.queued;
        self.create_run(run_row, &compiled);
        if !queued {
            self.note_probe(now, id, run, due);
        }
        Ok(Triggered {
            run,
            repeated: false,
        })
    }

    /// The part that a triggered run gets in the job's overlap, or why there is no run.
    fn admit_trigger(
        &self,
        now: Now,
        id: JobId,
        standing: Standing,
        trigger: &Trigger,
    ) -> Result<Standing, Refusal> {
        let job = self.jobs.expect(id);
        if !self.has_key_for(id, &standing) {
            return Err(Refusal::TooManyOverlapKeys(Limits::OVERLAP_KEYS));
        }
        let full = |waiting| Refusal::OverlapFull {
            job: trigger.job.clone(),
            limit: job.compiled.overlap.limit,
            key: standing.key.clone(),
            waiting,
        };
        match self.admit(now.wall, id, &standing, trigger.force) {
            Admission::Go => Ok(standing),
            Admission::Queue => Ok(Standing {
                queued: true,
                ..standing
            }),
            Admission::Full | Admission::Fail => Err(full(None)),
            Admission::QueueFull => Err(full(Some(job.compiled.overlap.depth))),
            Admission::Shut(pass) => Err(Refusal::BreakerOpen {
                job: trigger.job.clone(),
                pass,
            }),
        }
    }

    /// The job's current definition, or the one that a repeated run was made from.
    fn definition_for(&mut self, job: JobId, rerun: Option<&Rerun>) -> Arc<Compiled> {
        let current = self.jobs.expect(job).row.version;
        match rerun.and_then(|rerun| rerun.version.clone()) {
            Some(version) if version.version != current => {
                let number = version.version;
                self.adopt_version(version);
                self.pinned(job, number)
            }
            _ => Arc::clone(&self.jobs.expect(job).compiled),
        }
    }
}

/// Whether a key has a length that may be kept.
pub(super) fn check_length(key: &str) -> Result<(), Refusal> {
    let length = key.chars().count();
    if length == 0 || length > Limits::IDEMPOTENCY_KEY_CHARS {
        let message = format!(
            "has {length} characters: give it 1 to {}",
            Limits::IDEMPOTENCY_KEY_CHARS
        );
        return Err(Refusal::Invalid(SpecError::new("idempotency_key", message)));
    }
    Ok(())
}

/// What a repetition of the trigger is recognised by, if by anything: the caller's key before what a server called it.
pub(super) fn recognised_by(trigger: &Trigger) -> Option<IdempotencyHash> {
    let job = &trigger.job;
    let (namespace, name) = (job.namespace.as_str(), job.name.as_str());
    match (&trigger.idempotency_key, trigger.request) {
        (Some(key), _) => Some(IdempotencyHash::of(namespace, name, key)),
        (None, request) => {
            request.map(|request| IdempotencyHash::of_request(namespace, name, request))
        }
    }
}

/// What the trigger asks for.
fn fingerprint(trigger: &Trigger) -> IdempotencyHash {
    let params = trigger.params.as_ref().map_or("", |params| params.as_str());
    let rerun = trigger.rerun.as_ref().map(|rerun| {
        let version = rerun.version.as_ref().map_or(0, |version| version.version);
        let resume = if rerun.checkpoint.is_some() {
            " resume"
        } else {
            ""
        };
        format!("{} {version}{resume}", rerun.of)
    });
    let verb = rerun.as_deref().unwrap_or("trigger");
    let (word, when) = match trigger.when {
        None => ("", String::new()),
        Some(When::At(at)) => ("at", at.0.to_string()),
        Some(When::After(ms)) => ("after", ms.to_string()),
    };
    let mut parts = vec![verb, params];
    if !word.is_empty() {
        parts.extend([word, &when]);
    }
    if trigger.overlap == Obedience::Obey {
        parts.push("obey");
    }
    IdempotencyHash::fingerprint(&parts)
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
