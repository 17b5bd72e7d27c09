//! Retention on the model. See [`crate::retention`] for the rules that every store follows.

use std::collections::BTreeMap;

use drumtower_core::change::Prune;
use drumtower_core::model::{Limits, Retention, RunState};

use super::state::State;
use crate::read::death;
use crate::{PrunedRow, retention};

impl State {
    pub fn prune(&mut self, prune: &Prune, seq: u64) {
        let mut left = prune.limit;
        for class in retention::turn(seq) {
            left -= self.prune_class(class, prune, left);
        }
        let oldest = retention::oldest_hour(prune.now);
        drop_first(&mut self.keys, prune.limit, |_, entry| {
            entry.hour() < oldest
        });
        let oldest = retention::oldest_minute(prune.now);
        drop_first(&mut self.rollups, prune.limit, |key, _| key.0 < oldest);
        let oldest = retention::oldest_unfired(prune.now);
        let old = self.unfired.values().filter(|range| range.last < oldest);
        let mut gone: Vec<_> = old
            .map(|range| (range.last, range.job, range.first))
            .collect();
        gone.sort_unstable();
        for (_, job, first) in gone.into_iter().take(prune.limit) {
            self.unfired.remove(&(job, first));
        }
        let first = retention::first_audit(prune.now);
        drop_first(&mut self.audit, prune.limit, |id, _| *id < first);
        self.prune_letters(prune, seq);
        self.prune_backfills(prune, seq);
        let oldest = retention::oldest_session(prune.now);
        self.sessions
            .retain(|_, row| !row.revoked || row.expires >= oldest);
    }

    /// Those that died first go first.
    fn prune_letters(&mut self, prune: &Prune, seq: u64) {
        let mut order: Vec<_> = self
            .letters
            .values()
            .map(|run| (death(run).0, run.id))
            .collect();
        order.sort_unstable();
        let oldest = retention::oldest_letter(prune.now);
        let old = order.iter().take_while(|(died, _)| *died < oldest).count();
        let beyond = match retention::counts_letters(seq) {
            true => order.len().saturating_sub(Limits::DEAD_LETTERS),
            false => 0,
        };
        for (_, id) in order.iter().take(old.max(beyond).min(prune.limit)) {
            self.letters.remove(id);
        }
    }

    /// Those that ended first go first.
    fn prune_backfills(&mut self, prune: &Prune, seq: u64) {
        let over = self.backfills.values().filter(|row| !row.is_open());
        let mut order: Vec<_> = over.map(|row| (row.ended, row.id)).collect();
        order.sort_unstable();
        let oldest = Some(retention::oldest_backfill(prune.now));
        let old = order.iter().take_while(|(at, _)| *at < oldest).count();
        let beyond = match retention::counts_letters(seq) {
            true => order.len().saturating_sub(Limits::BACKFILLS_KEPT),
            false => 0,
        };
        for (_, id) in order.iter().take(old.max(beyond).min(prune.limit)) {
            self.backfills.remove(id);
        }
    }

    fn prune_class(&mut self, class: Retention, prune: &Prune, limit: usize) -> usize {
        let mut gone = 0;
        while gone < limit {
            let Some((key, id)) = self
                .finish_order
                .range((class, 0)..)
                .next()
                .map(|(key, id)| (*key, *id))
            else {
                break;
            };
            let Some(run) = self.finished.get(&id) else {
                break;
            };
            if key.0 != class || !retention::may_go(run.retention, run.created, prune.now) {
                break;
            }
            let row = self
                .pruned
                .entry(run.namespace.clone())
                .or_insert_with(|| PrunedRow {
                    namespace: run.namespace.clone(),
                    completed: 0,
                    failed: 0,
                    cancelled: 0,
                });
            if run.state != RunState::Completed {
                self.checkpoints.remove(&id);
            }
            match run.state {
                RunState::Completed => row.completed += 1,
                RunState::Cancelled => row.cancelled += 1,
                _ => row.failed += 1,
            }
            self.finished.remove(&id);
            self.finish_order.remove(&key);
            gone += 1;
        }
        gone
    }
}

/// Removes rows from the front for as long as they are old, and at most `limit`.
fn drop_first<K: Ord, V>(
    map: &mut BTreeMap<K, V>,
    limit: usize,
    old: impl Fn(&K, &V) -> bool,
) -> Vec<(K, V)> {
    let mut gone = Vec::new();
    while gone.len() < limit
        && map
            .first_key_value()
            .is_some_and(|(key, value)| old(key, value))
    {
        gone.extend(map.pop_first());
    }
    gone
}
