//! Retention on the model. See [`crate::retention`] for the rules that every store follows.

use std::collections::BTreeMap;

use drumtower_core::change::Prune;
use drumtower_core::model::{Limits, NamespaceName, Retention, RunState, SessionRow};

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
        let oldest = |row: &SessionRow| match row.took {
            None => retention::oldest_session(prune.now),
            Some(_) => retention::oldest_tenure(prune.now),
        };
        self.sessions
            .retain(|_, row| !row.revoked || row.expires >= oldest(row));
    }

    /// Those that died first go first.
    fn prune_letters(&mut self, prune: &Prune, seq: u64) {
        let letters = self.letters.values();
        let order = letters.map(|run| (death(run).0, run.id, run.namespace.clone()));
        let oldest = retention::oldest_letter(prune.now);
        let most = retention::counts_letters(seq).then_some(Limits::DEAD_LETTERS);
        for id in going(order.collect(), oldest, most, prune.limit) {
            self.letters.remove(&id);
        }
    }

    /// Those that ended first go first.
    fn prune_backfills(&mut self, prune: &Prune, seq: u64) {
        let over = self.backfills.values().filter(|row| !row.is_open());
        let order = over.map(|row| (row.ended, row.id, row.namespace.clone()));
        let oldest = Some(retention::oldest_backfill(prune.now));
        let most = retention::counts_letters(seq).then_some(Limits::BACKFILLS_KEPT);
        for id in going(order.collect(), oldest, most, prune.limit) {
            self.backfills.remove(&id);
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

/// Those that go, of rows with their time, id and namespace: those before `oldest`, then what a namespace has beyond `most`.
fn going<T: Ord, I: Ord>(
    mut rows: Vec<(T, I, NamespaceName)>,
    oldest: T,
    most: Option<usize>,
    limit: usize,
) -> Vec<I> {
    rows.sort_unstable();
    let old = rows.iter().take_while(|(at, ..)| *at < oldest).count();
    let young = rows.split_off(old.min(limit));
    let mut gone: Vec<I> = rows.into_iter().map(|(_, id, _)| id).collect();
    let Some(most) = most else {
        return gone;
    };
    let mut kept: BTreeMap<NamespaceName, Vec<I>> = BTreeMap::new();
    for (_, id, namespace) in young {
        kept.entry(namespace).or_default().push(id);
    }
    let counts = kept
        .iter()
        .map(|(namespace, ids)| (namespace.clone(), ids.len()));
    for (namespace, excess) in retention::beyond(counts, most, limit - gone.len()) {
        let ids = kept.remove(&namespace).unwrap_or_default();
        gone.extend(ids.into_iter().take(excess));
    }
    gone
}
