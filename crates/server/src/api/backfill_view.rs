//! A backfill as callers see it, and what one would do.

use std::collections::BTreeMap;

use drumtower_core::backfill::TimeFate;
use drumtower_core::model::{
    Actor, BackfillHold, BackfillId, BackfillOrder, BackfillPlan, BackfillRow, BackfillState,
    BackfillWhich, JobId, JobName, JsonText, NamespaceName, Obedience, RunId,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::time::Time;
use crate::history::Preview;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Backfill")]
pub struct BackfillView<'a> {
    id: BackfillId,
    namespace: &'a NamespaceName,
    job: &'a JobName,
    job_id: JobId,
    /// The version that was in force when it was created: its schedule says the times, its task is what runs.
    job_version: u32,
    from: Time,
    to: Time,
    which: BackfillWhich,
    order: BackfillOrder,
    max_active: u32,
    priority: u32,
    params: Option<&'a JsonText>,
    /// Whether its runs count for the job's overlap.
    overlap: Obedience,
    /// Whether it makes runs also while the job's circuit breaker is open.
    force: bool,
    state: BackfillState,
    /// Why it makes no run although fewer than `max_active` are under way: its job takes no more by its `overlap`, or its
    /// circuit `breaker` is open.
    held: Option<BackfillHold>,
    /// How far it has come: the last time that it settled, in its order.
    cursor: Option<Time>,
    /// How many times the schedule has in the interval.
    times: u64,
    /// How many runs it made.
    made: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
    /// Times that it looked at and made no run of.
    skipped: u64,
    /// How many of its runs are under way.
    active: usize,
    /// Those runs.
    active_runs: &'a [RunId],
    created: Time,
    actor: &'a Actor,
    /// When it came to its last state.
    ended: Option<Time>,
    revision: u64,
}

impl<'a> From<&'a BackfillRow> for BackfillView<'a> {
    fn from(row: &'a BackfillRow) -> Self {
        Self {
            id: row.id,
            namespace: &row.namespace,
            job: &row.job_name,
            job_id: row.job,
            job_version: row.job_version,
            from: row.from.into(),
            to: row.to.into(),
            which: row.which,
            order: row.order,
            max_active: row.max_active,
            priority: row.priority,
            params: row.params.as_ref(),
            overlap: row.overlap,
            force: row.force,
            state: row.state,
            held: row.held,
            cursor: row.cursor.map(Time),
            times: row.times,
            made: row.made,
            completed: row.completed,
            failed: row.failed,
            cancelled: row.cancelled,
            skipped: row.skipped,
            active: row.live.len(),
            active_runs: &row.live,
            created: row.created.into(),
            actor: &row.actor,
            ended: row.ended.map(Time),
            revision: row.revision,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BackfillPreview")]
pub struct PreviewView {
    job_version: u32,
    from: Time,
    to: Time,
    which: BackfillWhich,
    /// How many times the schedule has in the interval.
    times: u64,
    /// How many runs it would make.
    runs: u64,
    /// What became of the times so far.
    fates: BTreeMap<&'static str, FateView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BackfillFate")]
struct FateView {
    count: u64,
    /// Whether such times would make runs.
    taken: bool,
    /// The earliest of them.
    first: Vec<Time>,
}

impl PreviewView {
    pub fn new(job_version: u32, plan: &BackfillPlan, preview: Preview) -> Self {
        let mut fates = BTreeMap::new();
        for fate in TimeFate::ALL {
            let foreseen = preview.fates.get(&fate).cloned().unwrap_or_default();
            let view = FateView {
                count: foreseen.count,
                taken: plan.which.takes(fate),
                first: foreseen.first.into_iter().map(Time).collect(),
            };
            fates.insert(fate.as_str(), view);
        }
        Self {
            job_version,
            from: plan.from.into(),
            to: plan.to.into(),
            which: plan.which,
            times: preview.times,
            runs: preview.runs,
            fates,
        }
    }
}
