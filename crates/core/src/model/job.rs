//! What a job is: its manifest as people write it, and the rows that keep it.
//!
//! Definition and schedule are separate rows. People edit the first (versioned, with an ETag); firing moves the second.
//! A run pins the version it was made from, so an edit never changes what is already under way.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::{
    self, AnyDay, Bounds, CalendarUse, Calendars, Language, ScheduleEntry, ScheduleSpec,
};

use super::{
    Actor, After, AfterRow, Breaker, BreakerPolicy, BreakerRow, CatchUp, JobId, JobLimits, JobName,
    JsonText, Limits, Misfire, MisfirePolicy, NamespaceName, Notify, Overlap, OverlapPolicy,
    ParsedLimits, QueueName, Requirement, Retry, RetryPolicy, SegmentId, Tallies, Task, WallMs,
};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct SpecError {
    /// The key as a user would write its path, such as `task.exec.argv`.
    pub field: String,
    pub message: String,
}

impl SpecError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// A job as written in a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Drumtower job manifest")]
pub struct JobSpec {
    /// What this document describes: `Job`.
    pub kind: Kind,
    /// The job's name, unique in its namespace; it cannot be changed later.
    #[schemars(with = "String", regex(pattern = r"^[a-z0-9._-]{1,128}$"))]
    pub name: JobName,
    /// The tenant the job belongs to.
    #[serde(default)]
    #[schemars(with = "String", regex(pattern = r"^[a-z0-9._-]{1,128}$"))]
    pub namespace: NamespaceName,
    /// Free key-value pairs to find jobs by, as in `drumtower job list --label team=billing`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What the job is for, shown wherever the job is shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When the job fires by itself: the union of these entries. Without any it runs only when triggered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<ScheduleEntry>,
    /// The jobs that it runs after, besides its schedule: when runs of them have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// Days on which the schedule fires, by named calendars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarUse>,
    /// Puts each time off by a part of this duration, such as `30s`, that is always the same for the same time of the same
    /// job, and never past its next time. It keeps many jobs from starting at one instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// From when to when, and how often, the schedule fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// What becomes of times that were missed while nothing could fire them: the newest makes a run unless told otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub misfire: Misfire,
    /// What becomes of times that passed while the job was paused, when it is resumed: nothing unless told otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_resume: Misfire,
    /// How many runs of the job may be under way at once, and what happens when it is due while there are as many: a word
    /// (`skip`, `allow`, `queue`, `cancel_old`, `fail`) or a map. One, and the due time makes no run, unless told otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// What to run.
    pub task: Task,
    /// Parameters handed to every run; a trigger may bring its own instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub params: Option<JsonText>,
    /// The queue that the job's runs go through, with limits that it shares with other jobs. One that nobody has defined
    /// limits nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", regex(pattern = r"^[a-z0-9._-]{1,128}$"))]
    pub queue: Option<QueueName>,
    /// How many attempts of the job run at once, and how fast they start; without limits unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<JobLimits>,
    /// Which runs go first when there are more than workers can take: 9 is the most urgent, 0 the least.
    #[serde(default = "middle", skip_serializing_if = "is_middle")]
    #[schemars(range(max = 9))]
    pub priority: u32,
    /// How much of a worker's capacity one run takes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: u32,
    /// How a worker is chosen among those with room.
    #[serde(default, skip_serializing_if = "is_default")]
    pub placement: Placement,
    /// Whether and when a failed run is tried again: three attempts in all, a second and then two apart, unless told
    /// otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Retry,
    /// How long a run may wait, from its due time, until a worker is given it, such as `10m`; then it is FAILED. For ever
    /// unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<String>,
    /// When a job that keeps failing is left alone for a while; never unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<Breaker>,
    /// How long an attempt may run before it is killed, such as `30s` or `1h30m`; an hour unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How long an attempt may go without telling of progress and without a checkpoint before it is killed, such as `5m`;
    /// for ever unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_timeout: Option<String>,
    /// How long finished runs are kept, counted from their creation; `7d` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Who is told when the job fails, recovers or starts late. It stands in for the rules of the namespace; without rules
    /// (`rules: []`) nobody is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    Job,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// In turn over the workers that have room.
    #[default]
    RoundRobin,
    /// The less loaded of two workers that have room.
    LeastLoaded,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Retention {
    #[serde(rename = "1d")]
    Day,
    #[default]
    #[serde(rename = "7d")]
    Week,
    #[serde(rename = "30d")]
    Month,
    #[serde(rename = "keep")]
    Keep,
}

impl Retention {
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Keep];

    /// The age at which a finished run may go; `None` keeps it for ever.
    pub fn age_ms(self) -> Option<i64> {
        const DAY_MS: i64 = 86_400_000;
        match self {
            Self::Day => Some(DAY_MS),
            Self::Week => Some(7 * DAY_MS),
            Self::Month => Some(30 * DAY_MS),
            Self::Keep => None,
        }
    }
}

impl JobSpec {
    pub const DEFAULT_TIMEOUT_MS: u64 = 3_600_000;
    pub const DEFAULT_PRIORITY: u32 = 5;

    /// Checks everything that types alone do not. The first fault is reported.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_labels()?;
        check_description(&self.description)?;
        self.task.check("task")?;
        if self.weight == 0 || self.weight > Limits::WEIGHT {
            return Err(SpecError::new(
                "weight",
                format!("`{}` is not between 1 and {}", self.weight, Limits::WEIGHT),
            ));
        }
        if self.priority > Limits::PRIORITY {
            return Err(SpecError::new(
                "priority",
                format!(
                    "`{}` is not between 0 and {}",
                    self.priority,
                    Limits::PRIORITY
                ),
            ));
        }
        check_params("params", self.params.as_ref())?;
        if let Some(notify) = &self.notify {
            notify.check("notify")?;
        }
        self.parsed_timeout()?;
        self.parsed_start_timeout()?;
        self.parsed_progress_timeout()?;
        self.parsed_retry()?;
        self.parsed_limits()?;
        self.parsed_misfire()?;
        self.parsed_on_resume()?;
        self.parsed_overlap()?;
        self.parsed_breaker()?;
        if let Some(after) = &self.after {
            after.check("after", &self.name)?;
        }
        self.compiled_schedule(&AnyDay).map(|_| ())
    }

    /// Everything that says when it is due.
    pub fn schedule_spec(&self) -> ScheduleSpec<'_> {
        ScheduleSpec {
            entries: &self.schedule,
            calendar: self.calendar.as_ref(),
            jitter: self.jitter.as_deref(),
            bounds: self.bounds.as_ref(),
        }
    }

    /// When it runs by itself, for people; `None` when its schedule cannot be read any more.
    pub fn words(&self, language: Language) -> Option<String> {
        let after = self.after.as_ref().map(|after| after.words(language));
        if self.schedule.is_empty()
            && let Some(after) = after
        {
            return Some(after);
        }
        let times = schedule::describe(&self.schedule_spec(), language).ok()?;
        Some(match after {
            Some(after) => format!("{times}; {after}"),
            None => times,
        })
    }

    pub fn parsed_misfire(&self) -> Result<CatchUp, SpecError> {
        self.misfire.parsed("misfire", MisfirePolicy::Latest)
    }

    pub fn parsed_on_resume(&self) -> Result<CatchUp, SpecError> {
        self.on_resume.parsed("on_resume", MisfirePolicy::Skip)
    }

    pub fn parsed_overlap(&self) -> Result<OverlapPolicy, SpecError> {
        self.overlap.parsed("overlap")
    }

    pub fn parsed_breaker(&self) -> Result<Option<BreakerPolicy>, SpecError> {
        let breaker = self.breaker.as_ref();
        breaker.map(|it| it.parsed("breaker")).transpose()
    }

    pub fn parsed_retry(&self) -> Result<RetryPolicy, SpecError> {
        self.retry.parsed("retry")
    }

    pub fn parsed_limits(&self) -> Result<Option<ParsedLimits>, SpecError> {
        let limits = self.limits.as_ref();
        limits.map(|limits| limits.parsed("limits")).transpose()
    }

    /// How long its finished runs are kept.
    pub fn retention(&self) -> Retention {
        self.retention.unwrap_or_default()
    }

    pub fn requirement(&self) -> Requirement {
        Requirement {
            namespace: self.namespace.clone(),
            need: self.task.need(),
            weight: self.weight,
            priority: self.priority,
        }
    }

    /// The run timeout in milliseconds.
    pub fn parsed_timeout(&self) -> Result<u64, SpecError> {
        let Some(text) = &self.timeout else {
            return Ok(Self::DEFAULT_TIMEOUT_MS);
        };
        match schedule::parse_duration(text) {
            Ok(0) => Err(SpecError::new(
                "timeout",
                "must be longer than 0: give it a duration such as `30s` or leave it out",
            )),
            Ok(ms) => Ok(ms),
            Err(error) => Err(SpecError::new("timeout", error.to_string())),
        }
    }

    /// How long a run may wait for its first start; `None` is for ever.
    pub fn parsed_start_timeout(&self) -> Result<Option<u64>, SpecError> {
        let fault = |message: String| Err(SpecError::new("start_timeout", message));
        let Some(text) = &self.start_timeout else {
            return Ok(None);
        };
        match schedule::parse_duration(text) {
            Ok(0) => fault(
                "must be longer than 0: give it a duration such as `10m` or leave it out"
                    .to_owned(),
            ),
            Ok(ms) if ms > Limits::START_TIMEOUT_MS => fault(format!(
                "`{text}` is longer than {} days: leave it out to let runs wait for ever",
                Limits::START_TIMEOUT_MS / 86_400_000
            )),
            Ok(ms) => Ok(Some(ms)),
            Err(error) => fault(error.to_string()),
        }
    }

    /// How long an attempt may go without a word of progress; `None` is for ever.
    pub fn parsed_progress_timeout(&self) -> Result<Option<u64>, SpecError> {
        let fault = |message: String| Err(SpecError::new("progress_timeout", message));
        let Some(text) = &self.progress_timeout else {
            return Ok(None);
        };
        if matches!(self.task, Task::Http(_)) {
            let message = "an http task tells of no progress: leave it out, and set `timeout`";
            return fault(message.to_owned());
        }
        match schedule::parse_duration(text) {
            Ok(ms) if ms < Limits::PROGRESS_TIMEOUT_MIN_MS => fault(format!(
                "`{text}` is shorter than {}s: workers look for progress once a second",
                Limits::PROGRESS_TIMEOUT_MIN_MS / 1000
            )),
            Ok(ms) => Ok(Some(ms)),
            Err(error) => fault(error.to_string()),
        }
    }

    /// The compiled schedule; `None` when the job fires only by trigger.
    pub fn compiled_schedule(
        &self,
        calendars: &dyn Calendars,
    ) -> Result<Option<schedule::Schedule>, SpecError> {
        schedule::Schedule::compile(&self.schedule_spec(), calendars)
            .map_err(|error| SpecError::new(error.field(), error.fault().to_string()))
    }

    fn check_labels(&self) -> Result<(), SpecError> {
        if self.labels.len() > Limits::LABELS {
            return Err(SpecError::new(
                "labels",
                format!(
                    "may have {} entries, has {}",
                    Limits::LABELS,
                    self.labels.len()
                ),
            ));
        }
        for (key, value) in &self.labels {
            let fits = |text: &str| {
                text.chars().count() <= Limits::LABEL_CHARS && !text.chars().any(char::is_control)
            };
            if key.is_empty() || key.contains(['=', ',']) || !fits(key) || !fits(value) {
                let message = format!(
                    "a label has a key without `=` and `,` and a value, each up to {} printable characters",
                    Limits::LABEL_CHARS
                );
                return Err(SpecError::new(format!("labels.{key}"), message));
            }
        }
        Ok(())
    }
}

/// The bound on what people write about a job or a calendar.
pub(super) fn check_description(description: &str) -> Result<(), SpecError> {
    if description.chars().count() > Limits::DESCRIPTION_CHARS {
        return Err(SpecError::new(
            "description",
            format!(
                "may have {} characters: shorten it",
                Limits::DESCRIPTION_CHARS
            ),
        ));
    }
    Ok(())
}

/// The bound on parameters, wherever they come from.
pub(crate) fn check_params(field: &str, params: Option<&JsonText>) -> Result<(), SpecError> {
    match params {
        Some(params) if params.as_str().len() > Limits::PARAMS_BYTES => {
            let message = format!(
                "may have {} bytes, has {}",
                Limits::PARAMS_BYTES,
                params.as_str().len()
            );
            Err(SpecError::new(field, message))
        }
        _ => Ok(()),
    }
}

fn middle() -> u32 {
    JobSpec::DEFAULT_PRIORITY
}

fn is_middle(value: &u32) -> bool {
    *value == JobSpec::DEFAULT_PRIORITY
}

fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A job's row: what changes when people act on it. Deleted jobs stay as a row, so that their runs keep a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    pub id: JobId,
    pub namespace: NamespaceName,
    pub name: JobName,
    pub segment: SegmentId,
    /// The current version of the definition, from 1.
    pub version: u32,
    /// Raised by every edit, pause, resume and deletion: the ETag.
    pub revision: u64,
    pub paused: Option<Pause>,
    pub deleted: bool,
    pub created: WallMs,
    pub updated: WallMs,
    pub actor: Actor,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub at: WallMs,
    pub actor: Actor,
}

/// One immutable version of a job's definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobVersion {
    pub job: JobId,
    pub version: u32,
    pub spec: JobSpec,
    pub created: WallMs,
    pub actor: Actor,
}

/// The narrow row that firing moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRow {
    pub job: JobId,
    /// Every nominal time up to here has its fate.
    pub fired_through: WallMs,
    /// The next nominal time; `None` while paused, deleted, without schedule or past its last time.
    pub next_nominal: Option<WallMs>,
    /// When that is due: what the read-ahead index is on.
    pub next_due: Option<WallMs>,
    /// How many runs the schedule has made.
    pub fires: u64,
    /// Times up to here passed while the job was paused; those above the cursor obey `on_resume`.
    pub paused_through: Option<WallMs>,
}

/// A job with everything the engine needs of it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    pub row: JobRow,
    pub version: JobVersion,
    pub schedule: ScheduleRow,
    /// Scheduled runs that have not ended.
    pub live_scheduled: u32,
    /// Runs that have not ended as the overlap counts them.
    pub tallies: Tallies,
    /// Nothing when it never failed, or not since it was well.
    pub breaker: Option<BreakerRow>,
    /// What has come of the jobs that it runs after.
    pub waits: Option<AfterRow>,
    /// Whether other jobs run after it.
    pub followed: bool,
    /// The newest range of unfired times, which the next one may extend.
    pub last_unfired: Option<Unfired>,
}

/// A range of nominal times that made no run, with one reason. Keyed by job and first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfired {
    pub job: JobId,
    pub first: WallMs,
    pub last: WallMs,
    pub version: u32,
    /// How many nominal times the range holds; from 10,000 on it is a lower bound.
    pub count: u64,
    pub reason: UnfiredReason,
    pub server: Actor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnfiredReason {
    /// As many runs of the job as may be had not ended.
    Overlap,
    /// Missed while nothing could fire it, and not the newest or too old.
    Misfire,
    /// The job was paused.
    Paused,
    /// The schedule was edited before the time was decided.
    Edited,
    /// As many runs of the job waited for their turn as may.
    QueueFull,
    /// The job's circuit breaker was open.
    Breaker,
}
