//! Dependencies: a job that runs when runs of other jobs have ended.
//!
//! ```text
//! run of A ends ──► Ending (a row, in the commit of the end) ──► told to each follower, page by page ──► gone
//!                                                                     │
//!                  need any: a run      need all: kept as an Arrival until each job has one, then a run
//! ```
//!
//! Of each job the newest end that counts is kept, and a run uses all of them up. Ends of runs that a backfill made do not
//! count, nor do those that come while the follower is paused. What made no run although it should have is told by the
//! [`Unmade`] of the row.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::Language;

use super::job::is_default;
use super::{
    JobId, JobName, Limits, NamespaceName, RunId, RunState, SpecError, UnfiredReason, WallMs,
};

/// The jobs whose ends make a job run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The jobs of the same namespace that it runs after, 64 at most. One that does not exist yet may be made later.
    #[schemars(with = "Vec<String>", length(min = 1, max = 64))]
    pub jobs: Vec<JobName>,
    /// Whether it takes a run of each of them (`all`, unless given) or runs after every run of any (`any`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub need: Need,
    /// Which ends count: those of runs that completed (`success`, unless given), that failed for good (`failure`), or all,
    /// cancelled ones too (`either`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub on: AfterOn,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// When each of the jobs has had a run that counts since the last time: one run.
    #[default]
    All,
    /// After each run that counts of any of the jobs: one run.
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AfterOn {
    /// Runs that completed.
    #[default]
    Success,
    /// Runs that failed for good.
    Failure,
    /// Runs however they ended, cancelled ones too.
    Either,
}

impl AfterOn {
    pub fn takes(self, state: RunState) -> bool {
        match self {
            Self::Success => state == RunState::Completed,
            Self::Failure => state == RunState::Failed,
            Self::Either => state.is_terminal(),
        }
    }
}

impl After {
    /// When it makes the job run, for people.
    pub fn words(&self, language: Language) -> String {
        let names: Vec<&str> = self.jobs.iter().map(JobName::as_str).collect();
        match (language, self.need) {
            (Language::English, Need::All) => {
                let end = match (self.on, names.len()) {
                    (AfterOn::Success, 1) => "has completed",
                    (AfterOn::Success, _) => "have completed",
                    (AfterOn::Failure, 1) => "has failed",
                    (AfterOn::Failure, _) => "have failed",
                    (AfterOn::Either, 1) => "has ended",
                    (AfterOn::Either, _) => "have ended",
                };
                format!("after {} {end}", names.join(" and "))
            }
            (Language::English, Need::Any) => {
                let end = match self.on {
                    AfterOn::Success => "completes",
                    AfterOn::Failure => "fails",
                    AfterOn::Either => "ends",
                };
                format!("each time {} {end}", names.join(" or "))
            }
            (Language::Chinese, need) => {
                let (and, each) = match (need, names.len()) {
                    (_, 1) => ("", "每次"),
                    (Need::All, _) => (" 和 ", "都"),
                    (Need::Any, _) => (" 或 ", "每次"),
                };
                let end = match self.on {
                    AfterOn::Success => "成功完成",
                    AfterOn::Failure => "失败",
                    AfterOn::Either => "结束",
                };
                format!("在 {} {each}{end}之后", names.join(and))
            }
        }
    }

    /// Checks it under the manifest's key `field`, of the job `own`.
    pub fn check(&self, field: &str, own: &JobName) -> Result<(), SpecError> {
        let key = format!("{field}.jobs");
        let fault = |message: String| Err(SpecError::new(key.clone(), message));
        if self.jobs.is_empty() {
            return fault("names no job: name one, or leave `after` out".to_owned());
        }
        if self.jobs.len() > Limits::AFTER_JOBS {
            let (most, has) = (Limits::AFTER_JOBS, self.jobs.len());
            return fault(format!("may name {most} jobs, names {has}"));
        }
        let mut named = BTreeSet::new();
        for job in &self.jobs {
            if job == own {
                return fault(format!(
                    "`{job}` is the job itself, which would never end: take it out"
                ));
            }
            if !named.insert(job) {
                return fault(format!("names `{job}` twice: once is enough"));
            }
        }
        Ok(())
    }
}

/// What is kept of a job that waits for others. One that nothing has happened to has no row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterRow {
    /// The newest end of each job that counts and that no run was made of.
    pub arrived: BTreeMap<JobName, Arrival>,
    /// Ends that should have made a run and did not.
    pub unmade: Option<Unmade>,
}

/// A run of another job that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    pub run: RunId,
    pub state: RunState,
    pub at: WallMs,
}

/// Ends that made no run, of which the last is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmade {
    pub count: u64,
    /// The run whose end it was.
    pub run: RunId,
    pub at: WallMs,
    pub reason: UnfiredReason,
}

impl AfterRow {
    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.unmade.is_none()
    }
}

/// The end of a run that other jobs may follow, until each of them has been told. Keyed by the run, which ends once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub run: RunId,
    /// The run that everything began with.
    pub root: RunId,
    pub namespace: NamespaceName,
    /// The job whose run it was.
    pub name: JobName,
    pub state: RunState,
    pub at: WallMs,
    /// Followers up to this one have been told.
    pub through: Option<JobId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> JobName {
        JobName::new(text).expect("a name")
    }

    fn of(jobs: &[&str]) -> After {
        After {
            jobs: jobs.iter().map(|job| name(job)).collect(),
            need: Need::All,
            on: AfterOn::Success,
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_name() {
        let says = |after: After| match after.check("after", &name("own")) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert_eq!(says(of(&["a", "b"])), "");
        assert_eq!(
            says(of(&[])),
            "after.jobs: names no job: name one, or leave `after` out"
        );
        assert_eq!(
            says(of(&["a", "own"])),
            "after.jobs: `own` is the job itself, which would never end: take it out"
        );
        assert_eq!(
            says(of(&["a", "a"])),
            "after.jobs: names `a` twice: once is enough"
        );
        let many: Vec<String> = (0..65).map(|n| format!("job-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(says(of(&many)), "after.jobs: may name 64 jobs, names 65");
        assert_eq!(says(of(&many[1..])), "");
    }

    #[test]
    fn it_is_told_in_two_languages() {
        let told = |jobs: &[&str], need, on| {
            let after = After {
                need,
                on,
                ..of(jobs)
            };
            [Language::English, Language::Chinese].map(|language| after.words(language))
        };
        assert_eq!(
            told(&["a"], Need::All, AfterOn::Success),
            ["after a has completed", "在 a 每次成功完成之后"]
        );
        assert_eq!(
            told(&["a", "b"], Need::All, AfterOn::Failure),
            ["after a and b have failed", "在 a 和 b 都失败之后"]
        );
        assert_eq!(
            told(&["a", "b"], Need::Any, AfterOn::Either),
            ["each time a or b ends", "在 a 或 b 每次结束之后"]
        );
    }

    #[test]
    fn each_kind_of_end_counts_where_it_should() {
        let counts = |on: AfterOn| RunState::ALL.map(|state| on.takes(state));
        let [pending, scheduled, running] = [false; 3];
        assert_eq!(
            counts(AfterOn::Success),
            [pending, scheduled, running, true, false, false]
        );
        assert_eq!(
            counts(AfterOn::Failure),
            [pending, scheduled, running, false, true, false]
        );
        assert_eq!(
            counts(AfterOn::Either),
            [pending, scheduled, running, true, true, true]
        );
    }
}
