//! A queue as callers see it.

use std::collections::BTreeMap;

use drumtower_core::engine;
use drumtower_core::model::{
    Actor, NamespaceName, QueueName, QueueRef, QueueRow, QueueSpec, RunId, SegmentSet, WallMs,
    parked_at,
};
use drumtower_store::{Error, Read};
use schemars::JsonSchema;
use serde::Serialize;

use super::openapi::QueueManifest;
use super::time::Time;

/// A queue, how full it is and who waits.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Queue")]
pub struct Queue<'a> {
    namespace: &'a NamespaceName,
    name: &'a QueueName,
    /// Raised by every edit, pause and resume.
    revision: u64,
    /// Since when and by whom it gives nothing out.
    paused: Option<Paused<'a>>,
    /// Attempts that hold a place.
    running: u32,
    /// Runs that wait for a place or for a worker, those of `parked` too.
    depth: u64,
    /// Runs among them that wait in the store only, because memory holds enough of their kind.
    parked: u64,
    /// Runs among those in memory that a limit holds back, of the queue or of their job. The others wait for a worker.
    held: u64,
    /// When the run that has waited longest was made.
    oldest: Option<Time>,
    /// When the rate admits the next, while it does not.
    rate_until: Option<Time>,
    /// Runs that hold a place, the oldest first, as many as are told.
    holders: &'a [RunId],
    /// Values of `key` of which as many run as may, those with most runs waiting first, as many as are told.
    full_keys: Vec<FullKey<'a>>,
    created: Time,
    updated: Time,
    actor: &'a Actor,
    #[schemars(with = "QueueManifest")]
    spec: &'a QueueSpec,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QueuePause")]
struct Paused<'a> {
    at: Time,
    actor: &'a Actor,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FullKey")]
struct FullKey<'a> {
    /// As JSON; of a long value its hash.
    value: &'a str,
    running: u32,
    /// Runs that wait in memory.
    waiting: usize,
}

impl<'a> Queue<'a> {
    pub fn new(view: &'a engine::QueueView, row: &'a QueueRow, parked: Option<&Parked>) -> Self {
        let oldest = [view.oldest, parked.and_then(|parked| parked.oldest)];
        let parked = parked.map_or(0, |parked| parked.runs);
        Self {
            namespace: &row.spec.namespace,
            name: &row.spec.name,
            revision: row.revision,
            paused: row.paused.as_ref().map(|pause| Paused {
                at: pause.at.into(),
                actor: &pause.actor,
            }),
            running: view.running,
            depth: view.waiting as u64 + parked,
            parked,
            held: view.held as u64,
            oldest: oldest.into_iter().flatten().min().map(Time),
            rate_until: view.rate_until.map(Time),
            holders: &view.holders,
            full_keys: view.full_keys.iter().map(FullKey::from).collect(),
            created: row.created.into(),
            updated: row.updated.into(),
            actor: &row.actor,
            spec: &row.spec,
        }
    }
}

impl<'a> From<&'a engine::KeyView> for FullKey<'a> {
    fn from(key: &'a engine::KeyView) -> Self {
        Self {
            value: &key.value,
            running: key.running,
            waiting: key.waiting,
        }
    }
}

/// Runs of a queue that wait in the store only.
#[derive(Debug, Default)]
pub struct Parked {
    pub runs: u64,
    pub oldest: Option<WallMs>,
}

/// Keys that are looked into for the oldest run of a queue.
const LOOKS: u64 = 20;

/// What the store holds of queues. Runs that are not due yet are in none.
pub fn parked(store: &dyn Read) -> Result<BTreeMap<QueueRef, Parked>, Error> {
    let mut queues: BTreeMap<QueueRef, Parked> = BTreeMap::new();
    let mut looks = LOOKS;
    for parked in store.parked_keys(&SegmentSet::ALL)? {
        let Some((gates, _)) = parked_at(&parked.key) else {
            continue;
        };
        let Some(queue) = gates.last().and_then(|gate| gate.queue()) else {
            continue;
        };
        let entry = queues.entry(queue.clone()).or_default();
        entry.runs += parked.runs;
        if looks > 0 {
            looks -= 1;
            let first = store
                .parked_runs(&SegmentSet::ALL, &parked.key, None, 1)?
                .pop();
            let first = first.map(|run| run.created);
            entry.oldest = [entry.oldest, first].into_iter().flatten().min();
        }
    }
    Ok(queues)
}
