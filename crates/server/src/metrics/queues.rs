//! What is told of queues.

use std::collections::BTreeMap;

use drumtower_core::engine::QueueView;
use drumtower_core::model::QueueRef;

use super::text::Text;
use crate::api::{Edge, parked_in_queues};
use crate::auth::Principal;

/// Queues with series of their own: those in which most waits and runs.
const QUEUES: usize = 1000;

/// A queue that is defined, with the runs that wait and the attempts that run.
struct Told {
    queue: QueueRef,
    waiting: u64,
    running: u32,
}

type Value = fn(&Told) -> f64;

pub async fn queues(text: &mut Text, edge: &Edge, principal: &Principal) {
    let told = look(edge, principal).await;
    let values: [(&'static str, Value); 2] = [
        ("drumtower_queue_waiting_runs", |told| told.waiting as f64),
        ("drumtower_queue_running_attempts", |told| {
            f64::from(told.running)
        }),
    ];
    for (name, value) in values {
        let mut samples = text.family(name);
        for told in &told {
            let labels = [
                ("namespace", told.queue.namespace.as_str()),
                ("queue", told.queue.name.as_str()),
            ];
            samples.add(&labels, value(told));
        }
    }
}

/// None when the engine or the store does not answer.
async fn look(edge: &Edge, principal: &Principal) -> Vec<Told> {
    let asked = tokio::time::timeout(super::scrape::ENGINE_MAY_TAKE, edge.handle.queues()).await;
    let Ok(Ok(views)) = asked else {
        return Vec::new();
    };
    let defined = |view: &QueueView| view.row.is_some() && principal.sees(&view.queue.namespace);
    let views: Vec<QueueView> = views.into_iter().filter(defined).collect();
    if views.is_empty() {
        return Vec::new();
    }
    let parked: BTreeMap<QueueRef, u64> = parked_in_queues(edge).await;
    let mut told: Vec<Told> = views
        .into_iter()
        .map(|view| Told {
            waiting: view.waiting as u64 + parked.get(&view.queue).copied().unwrap_or(0),
            running: view.running,
            queue: view.queue,
        })
        .collect();
    told.sort_by(|one, other| {
        let busy = |told: &Told| std::cmp::Reverse((told.waiting, told.running));
        (busy(one), &one.queue).cmp(&(busy(other), &other.queue))
    });
    told.truncate(QUEUES);
    told.sort_by(|one, other| one.queue.cmp(&other.queue));
    told
}
