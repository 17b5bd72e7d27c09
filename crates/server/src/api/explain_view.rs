//! A row of an explanation as callers see it.

use drumtower_core::explain::run::Cause;
use drumtower_core::explain::{Fate, Row, RunFact};
use drumtower_core::model::{
    CalendarName, JobName, NamespaceName, RunId, RunState, UnfiredReason, WallMs,
};
use drumtower_core::schedule::{Excluded, Exclusion};
use schemars::JsonSchema;
use serde::Serialize;

use super::time::Time;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Explained")]
pub struct RowView<'a> {
    first: Time,
    last: Time,
    count: u64,
    due: Option<Time>,
    version: u32,
    /// run, unfired, excluded, planned, pending or unknown.
    fate: &'static str,
    reason: Option<&'static str>,
    run: Option<RunId>,
    state: Option<RunState>,
    started: Option<Time>,
    /// Start minus due time.
    delay_ms: Option<i64>,
    calendar: Option<&'a CalendarName>,
    moved_to: Option<Time>,
    local: Option<&'a str>,
    timezone: Option<&'a str>,
    text: String,
}

/// What became of the due times of an interval.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Explanation")]
pub struct Explanation<'a> {
    pub namespace: &'a NamespaceName,
    pub job: &'a JobName,
    pub from: Time,
    pub to: Time,
    /// Why a run that is due now would find no worker; `null` when one could take it.
    pub waiting: Option<String>,
    /// The same as a code that stays when the words are improved.
    pub waiting_code: Option<Cause>,
    pub rows: Vec<RowView<'a>>,
    /// Passed as `cursor` it continues the answer; `null` at its end.
    pub next: Option<String>,
}

impl<'a> From<&'a Row> for RowView<'a> {
    fn from(row: &'a Row) -> Self {
        let (fate, reason) = named(&row.fate);
        let plain = Self {
            first: row.first.into(),
            last: row.last.into(),
            count: row.count,
            due: row.due.map(Time),
            version: row.version,
            fate,
            reason,
            run: None,
            state: None,
            started: None,
            delay_ms: None,
            calendar: None,
            moved_to: None,
            local: None,
            timezone: None,
            text: row.text(),
        };
        match &row.fate {
            Fate::Run(run) => plain.with_run(run),
            Fate::Excluded(excluded) => plain.with_excluded(excluded),
            _ => plain,
        }
    }
}

impl<'a> RowView<'a> {
    /// Says more of a run that waits.
    pub fn because(mut self, waiting: Option<&str>) -> Self {
        if let (Some(RunState::Pending), Some(waiting)) = (self.state, waiting) {
            self.text = format!("{}: {waiting}", RunState::Pending.as_str());
        }
        self
    }

    fn with_run(self, run: &RunFact) -> Self {
        Self {
            run: Some(run.id),
            state: Some(run.state),
            started: run.started.map(Time),
            delay_ms: run.started.map(|started| started.since(run.due)),
            ..self
        }
    }

    fn with_excluded(self, excluded: &'a Excluded) -> Self {
        let (calendar, moved_to) = match &excluded.why {
            Exclusion::Calendar { name, rolled_to } => (Some(name), *rolled_to),
            Exclusion::DstGapMoved { to } => (None, Some(*to)),
            _ => (None, None),
        };
        Self {
            calendar,
            moved_to: moved_to.map(|at| Time(WallMs(at))),
            local: Some(&excluded.local_first),
            timezone: Some(&excluded.timezone),
            ..self
        }
    }
}

fn named(fate: &Fate) -> (&'static str, Option<&'static str>) {
    match fate {
        Fate::Run(_) => ("run", None),
        Fate::Unfired(unmade) => {
            let reason = match unmade.reason() {
                UnfiredReason::Overlap => "overlap",
                UnfiredReason::Misfire => "misfire",
                UnfiredReason::Paused => "paused",
                UnfiredReason::Edited => "edited",
                UnfiredReason::QueueFull => "queue_full",
                UnfiredReason::Breaker => "breaker",
            };
            ("unfired", Some(reason))
        }
        Fate::Excluded(excluded) => {
            let reason = match excluded.why {
                Exclusion::Calendar { .. } => "calendar",
                Exclusion::DstGapSkipped | Exclusion::DstGapMoved { .. } => "dst_gap",
                Exclusion::FoldNotChosen => "dst_fold",
                Exclusion::BeforeStart => "before_start",
                Exclusion::AfterEnd => "after_end",
            };
            ("excluded", Some(reason))
        }
        Fate::UsedUp { .. } => ("excluded", Some("max_fires")),
        Fate::Pending => ("pending", None),
        Fate::Paused(_) => ("pending", Some("paused")),
        Fate::Planned => ("planned", None),
        Fate::PlannedPaused(_) => ("planned", Some("paused")),
        Fate::Forgotten => ("unknown", Some("retention")),
        Fate::Unrecorded => ("unknown", Some("unrecorded")),
    }
}
