//! Why a run waits, was tried again, moved, put off, cancelled or died, and what to do about it: in plain words, with times
//! and actors.
//!
//! A pure function of the run's row, the version of the job that it is pinned to, what is known of the workers, and the
//! time. It asks the same functions that the engine acts by ([`RetryPolicy::judge`](crate::model::RetryPolicy::judge)), and
//! it matches every reason, outcome and origin by name, so that a cause without words does not compile.
//!
//! An account has three parts: a *headline*, the one sentence that answers "why?"; a *time line*, what happened in order; and
//! *advice*, with commands to type. Each sentence has a code that stays when its words are improved.

mod advice;
mod attempts;
mod code;
mod head;
mod lateness;
mod limit;
mod stories;
mod wait;
mod words;

use std::fmt::Write;

use crate::engine::{Hindrance, WorkerView};
use crate::model::{
    Actor, BreakerRow, CancelRequest, JobName, JobSpec, RetryPolicy, Run, WallMs, WorkerName,
};

pub use advice::Advice;
pub use code::{Cause, Happening, Remedy};
pub use wait::{Obstacle, Wait};

/// What an account is made from.
pub struct Known<'a> {
    pub run: &'a Run,
    /// `None` when the job was deleted for good.
    pub job: Option<&'a JobName>,
    /// As the version says that the run is pinned to; `None` when that is gone.
    pub spec: Option<&'a JobSpec>,
    /// `None` when nobody could be asked.
    pub fleet: Option<&'a [WorkerView]>,
    /// The limit that holds it back, if one does.
    pub limit: Option<&'a Hindrance>,
    /// What is kept of its job's failures, while the job has a breaker.
    pub breaker: Option<&'a BreakerRow>,
    pub now: WallMs,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Which run of which job it is, and its state.
    pub subject: String,
    pub headline: Headline,
    pub timeline: Vec<Event>,
    pub advice: Vec<Advice>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    pub code: Cause,
    pub text: String,
}

/// One line of the time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub at: WallMs,
    pub code: Happening,
    pub text: String,
    pub attempt: Option<u32>,
    pub worker: Option<WorkerName>,
    pub actor: Option<Actor>,
}

impl Event {
    fn new(at: WallMs, code: Happening, text: String) -> Self {
        Self {
            at,
            code,
            text,
            attempt: None,
            worker: None,
            actor: None,
        }
    }
}

/// The account of one run.
pub fn explain(known: &Known<'_>) -> Account {
    let headline = head::line(known);
    Account {
        subject: known.subject(),
        timeline: stories::tell(known),
        advice: advice::give(known, headline.code),
        headline,
    }
}

impl Known<'_> {
    fn policy(&self) -> Option<RetryPolicy> {
        self.spec.and_then(|spec| spec.parsed_retry().ok())
    }

    /// Whether it was cancelled because its job was deleted.
    fn with_its_job(&self) -> bool {
        self.run.error.as_deref() == Some(CancelRequest::JOB_DELETED)
    }

    fn subject(&self) -> String {
        let run = self.run;
        let of = match self.job {
            Some(job) => format!("of {}/{job}", run.namespace),
            None => format!("of a deleted job in {}", run.namespace),
        };
        format!("{} {of} is {}.", run.id, run.state.as_str())
    }
}

impl Account {
    /// All of it, as it is printed.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.subject, self.headline.text);
        text.push_str("\nWhat happened (times in UTC)\n");
        for event in &self.timeline {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {}  {}", words::moment(event.at), event.text);
        }
        text.push_str("\nWhat to do\n");
        for advice in &self.advice {
            let _ = writeln!(text, "  {}", advice.text);
            for command in &advice.commands {
                let _ = writeln!(text, "    {command}");
            }
        }
        text
    }
}
