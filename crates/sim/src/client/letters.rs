//! Users who look after runs that failed for good: they requeue some, and throw others away.

use drumtower_core::engine::{JobRef, Rerun, Trigger};
use drumtower_core::model::Run;
use drumtower_store::{LetterFilter, Read};

use super::{Deed, obedience};
use crate::world::World;

/// The keys of requests that requeue begin so: a run tells by its key what made it.
pub(crate) const REQUEUED: &str = "requeue-";

impl World {
    pub(super) fn letter_deed(&mut self, client: usize) -> Option<Deed> {
        let filter = LetterFilter::default();
        let letters = self.reader.letters(&filter, None, 40).ok()?.runs;
        if letters.is_empty() {
            return None;
        }
        let random = &mut self.clients[client].random;
        let first = random.pick(&letters).clone();
        let many = random.chance(300);
        // Many servers may have what is not of one job: nobody carries that out as a whole.
        let together = |run: &Run| match self.servers.len() {
            1 => run.namespace == first.namespace,
            _ => run.job == first.job,
        };
        let same = |run: &Run| together(run) && (many || run.id == first.id);
        let chosen: Vec<Run> = letters.into_iter().filter(same).collect();
        if random.chance(250) {
            let runs: Vec<_> = chosen.iter().map(|run| run.id).collect();
            self.checks.discard_asked(&runs);
            return Some(Deed::Discard(first.namespace, runs));
        }
        let triggers: Vec<Trigger> = chosen
            .iter()
            .filter_map(|run| self.requeued(client, run))
            .collect();
        (!triggers.is_empty()).then_some(Deed::Requeue(triggers))
    }

    fn requeued(&mut self, client: usize, run: &Run) -> Option<Trigger> {
        let job = self.reader.job(run.job).ok()??;
        let pinned = self.reader.job_version(run.job, run.job_version).ok()??;
        let saved = self.reader.checkpoint(run.id).ok()?;
        let user = &mut self.clients[client];
        user.keys += 1;
        let key = format!("{REQUEUED}c{client}-{}", user.keys);
        let rerun = Rerun {
            of: run.id,
            job: run.job,
            nominal: run.nominal,
            params: run.params.clone(),
            version: user.random.chance(500).then_some(pinned),
            checkpoint: saved.filter(|_| user.random.chance(500)),
            letter: true,
        };
        Some(Trigger {
            idempotency_key: Some(key),
            rerun: Some(Box::new(rerun)),
            overlap: obedience(&mut user.random),
            ..Trigger::of(JobRef {
                namespace: job.row.namespace,
                name: job.row.name,
            })
        })
    }
}
