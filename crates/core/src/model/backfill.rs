//! Backfills: runs made for times that have passed, beside the live schedule.
//!
//! ```text
//! RUNNING ⇄ PAUSED      by people
//! RUNNING ──► COMPLETED  every time is settled and every run of it has ended
//! RUNNING | PAUSED ──► CANCELLED  by people, or because the job was deleted
//! ```
//!
//! The row names the runs of it that have not ended, so that a new owner of the segment knows at once how many more it
//! may make. The cursor, the counts and the runs change in one commit, and the row is compared with what it was: no time
//! is settled twice by the same backfill.
//!
//! What its row has had since it was first written down is left out of its own form (`skip`): the store keeps it beside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Actor, BackfillId, JobId, JobName, JobSpec, JsonText, Limits, NamespaceName, Obedience, RunId,
    RunState, SpecError, WallMs,
};

/// Which times of the interval make runs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BackfillWhich {
    /// Those that no run was made of, for whatever reason.
    #[default]
    Missing,
    /// Those whose newest run is FAILED.
    Failed,
    /// All of them, whatever was made of them before.
    All,
}

impl BackfillWhich {
    pub const ALL: [Self; 3] = [Self::Missing, Self::Failed, Self::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::All => "all",
        }
    }
}

/// In which order the times of the interval are gone through.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BackfillOrder {
    #[default]
    OldestFirst,
    NewestFirst,
}

impl BackfillOrder {
    pub const ALL: [Self; 2] = [Self::OldestFirst, Self::NewestFirst];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OldestFirst => "oldest_first",
            Self::NewestFirst => "newest_first",
        }
    }
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum BackfillState {
    Running,
    Paused,
    Completed,
    Cancelled,
}

impl BackfillState {
    pub const ALL: [Self; 4] = [
        Self::Running,
        Self::Paused,
        Self::Completed,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Completed => "COMPLETED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether it makes no more runs, ever.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

/// What a backfill that could make a run waits for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BackfillHold {
    /// As many runs of its job, or of the key, are under way as may be.
    Overlap,
    /// The circuit breaker of its job lets nothing through.
    Breaker,
}

/// What a run that a backfill made says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillMark {
    pub backfill: BackfillId,
    /// The priority of the line it waits in, instead of its job's.
    pub priority: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillRow {
    pub id: BackfillId,
    pub namespace: NamespaceName,
    pub job: JobId,
    /// For people: the job may be gone.
    pub job_name: JobName,
    /// The version whose schedule says the times and that the runs are made from.
    pub job_version: u32,
    /// The first instant of the interval, and the first after it.
    pub from: WallMs,
    pub to: WallMs,
    pub which: BackfillWhich,
    pub order: BackfillOrder,
    /// How many runs of it may be under way at once.
    pub max_active: u32,
    pub priority: u32,
    /// Instead of the job's own.
    pub params: Option<JsonText>,
    /// Whether its runs count for the job's overlap, so that it waits while the job is full.
    #[serde(skip)]
    pub overlap: Obedience,
    /// Whether it makes runs even while the job's breaker is open.
    #[serde(skip)]
    pub force: bool,
    pub state: BackfillState,
    /// Why it makes no run although it could have another one under way.
    #[serde(skip)]
    pub held: Option<BackfillHold>,
    /// How far it has come: the last time that was settled, in the order that it goes.
    pub cursor: Option<WallMs>,
    /// How many times the schedule has in the interval.
    pub times: u64,
    pub made: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    /// Times that it looked at and made no run of.
    pub skipped: u64,
    /// Runs of it that have not ended, in the order they were made.
    pub live: Vec<RunId>,
    pub created: WallMs,
    pub actor: Actor,
    /// When it came to its last state.
    pub ended: Option<WallMs>,
    /// Grows with each deed of people; what `If-Match` asks for.
    pub revision: u64,
    /// Grows with each commit that changes the row.
    pub step: u64,
}

impl BackfillRow {
    /// Whether the engine has anything left to do for it.
    pub fn is_open(&self) -> bool {
        !self.state.is_over() || !self.live.is_empty()
    }

    /// Whether an instant of the one interval lies in the other.
    pub fn overlaps(&self, from: WallMs, to: WallMs) -> bool {
        self.from < to && from < self.to
    }

    /// A run of it has ended.
    pub fn count_end(&mut self, run: RunId, state: RunState) {
        self.live.retain(|live| *live != run);
        match state {
            RunState::Completed => self.completed += 1,
            RunState::Failed => self.failed += 1,
            RunState::Cancelled => self.cancelled += 1,
            RunState::Pending | RunState::Scheduled | RunState::Running => {
                panic!("{run} of {} ended in {}", self.id, state.as_str())
            }
        }
    }
}

/// What is asked for, beside the job and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillPlan {
    pub from: WallMs,
    pub to: WallMs,
    pub which: BackfillWhich,
    pub order: BackfillOrder,
    pub max_active: u32,
    pub priority: u32,
    pub params: Option<JsonText>,
    pub overlap: Obedience,
    pub force: bool,
}

impl BackfillPlan {
    pub const DEFAULT_MAX_ACTIVE: u32 = 1;
    pub const DEFAULT_PRIORITY: u32 = 0;

    /// The interval with everything else as it is when nothing is said.
    pub fn over(from: WallMs, to: WallMs) -> Self {
        Self {
            from,
            to,
            which: BackfillWhich::default(),
            order: BackfillOrder::default(),
            max_active: Self::DEFAULT_MAX_ACTIVE,
            priority: Self::DEFAULT_PRIORITY,
            params: None,
            overlap: Obedience::default(),
            force: false,
        }
    }

    pub fn check(&self, now: WallMs) -> Result<(), SpecError> {
        if self.from >= self.to {
            let message = "is not after `from`: give a later `to` or an earlier `from`";
            return Err(SpecError::new("to", message));
        }
        if self.to > now {
            let message = "lies in the future: a backfill is of times that have passed; the schedule makes the others";
            return Err(SpecError::new("to", message));
        }
        if !(1..=Limits::BACKFILL_ACTIVE).contains(&self.max_active) {
            let (given, most) = (self.max_active, Limits::BACKFILL_ACTIVE);
            let message = format!("`{given}` is not between 1 and {most}");
            return Err(SpecError::new("max_active", message));
        }
        if self.priority > Limits::PRIORITY {
            let (given, most) = (self.priority, Limits::PRIORITY);
            let message = format!("`{given}` is not between 0 and {most}");
            return Err(SpecError::new("priority", message));
        }
        let bytes = self.params.as_ref().map_or(0, |it| it.as_str().len());
        if bytes > Limits::BACKFILL_PARAMS_BYTES {
            let most = Limits::BACKFILL_PARAMS_BYTES;
            return Err(SpecError::new(
                "params",
                format!("may have {most} bytes, has {bytes}"),
            ));
        }
        Ok(())
    }

    /// Whether a definition has times that runs can be made of.
    pub fn check_job(&self, spec: &JobSpec) -> Result<(), SpecError> {
        let message = if spec.schedule.is_empty() {
            "has no schedule, so there are no times to make runs of: trigger it instead"
        } else if spec.schedule.iter().any(|entry| entry.after_end.is_some()) {
            "counts from the end of its last run (`after_end`), so no time of it can be missing: trigger it instead"
        } else {
            return Ok(());
        };
        Err(SpecError::new("schedule", message))
    }

    /// Whether the interval has no more times than one backfill may go through.
    pub fn check_times(&self, times: u64) -> Result<(), SpecError> {
        if times > Limits::BACKFILL_TIMES {
            let most = Limits::BACKFILL_TIMES;
            let message = format!(
                "leaves more than {most} times of the schedule in the interval: make several backfills of shorter ones"
            );
            return Err(SpecError::new("to", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_bounds_is_refused_by_field() {
        let now = WallMs(10_000);
        let plan = BackfillPlan::over(WallMs(0), WallMs(10_000));
        assert_eq!(plan.check(now), Ok(()));
        let cases = [
            (
                "to",
                BackfillPlan {
                    to: WallMs(0),
                    ..plan.clone()
                },
            ),
            (
                "to",
                BackfillPlan {
                    to: WallMs(10_001),
                    ..plan.clone()
                },
            ),
            (
                "max_active",
                BackfillPlan {
                    max_active: 0,
                    ..plan.clone()
                },
            ),
            (
                "max_active",
                BackfillPlan {
                    max_active: Limits::BACKFILL_ACTIVE + 1,
                    ..plan.clone()
                },
            ),
            (
                "priority",
                BackfillPlan {
                    priority: Limits::PRIORITY + 1,
                    ..plan.clone()
                },
            ),
        ];
        for (field, plan) in cases {
            let fault = plan.check(now).expect_err(field);
            assert!(fault.to_string().contains(field), "{fault}");
        }
        assert_eq!(plan.check_times(Limits::BACKFILL_TIMES), Ok(()));
        assert!(plan.check_times(Limits::BACKFILL_TIMES + 1).is_err());
    }
}
