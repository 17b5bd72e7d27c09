//! Fates in words, for people.

use jiff::Timestamp;

use crate::model::{Pause, RunState, WallMs};
use crate::schedule::{Excluded, Exclusion, format_duration};

use super::{Fate, Row, RunFact, Unmade};

impl Row {
    /// What became of the times, in a few words.
    pub fn text(&self) -> String {
        match &self.fate {
            Fate::Run(run) => of_run(run),
            Fate::Unfired(unmade) => of_unmade(*unmade),
            Fate::Excluded(excluded) => of_excluded(excluded),
            Fate::UsedUp { most } => format!("the schedule had made its {most} runs"),
            Fate::Pending => "its time has come and it is about to be decided".to_owned(),
            Fate::Paused(pause) => format!(
                "paused by {}; `on_resume` decides when the job is resumed",
                who_and_when(pause)
            ),
            Fate::Planned => "planned".to_owned(),
            Fate::PlannedPaused(pause) => {
                format!("no run while the job is paused by {}", who_and_when(pause))
            }
            Fate::Forgotten => "no longer known: older than the runs that are kept".to_owned(),
            Fate::Unrecorded => "nothing is recorded of it".to_owned(),
        }
    }
}

fn of_run(run: &RunFact) -> String {
    let state = run.state.as_str();
    match run.started {
        Some(started) => {
            let late = started.since(run.due);
            let late = match u64::try_from(late) {
                Ok(late) => format!("started {} after its due time", format_duration(late)),
                Err(_) => format!(
                    "started {} before its due time by the worker's clock",
                    format_duration(late.unsigned_abs())
                ),
            };
            format!("{state}, {late}")
        }
        None if run.queued && run.state == RunState::Pending => {
            format!("{state}, waits for another run of the job to end")
        }
        None if run.state == RunState::Pending => format!("{state}, waits for a worker"),
        None => format!("{state}, not started"),
    }
}

fn of_unmade(unmade: Unmade) -> String {
    match unmade {
        Unmade::Overlap => "a run of it had not ended".to_owned(),
        Unmade::QueueFull => {
            "runs of it had not ended, and as many waited as its `overlap` allows".to_owned()
        }
        Unmade::Breaker => "its circuit breaker was open after runs of it had failed".to_owned(),
        Unmade::Paused => "the job was paused".to_owned(),
        Unmade::Edited => "the schedule was edited before it was decided".to_owned(),
        Unmade::MissedButNewest { of } => {
            format!("missed while nothing could fire it: the newest of {of} ran")
        }
        Unmade::Missed => {
            "missed while nothing could fire it, and beyond what `misfire` makes up for".to_owned()
        }
        Unmade::MissedAndSkipped => {
            "missed while nothing could fire it; `misfire` says skip".to_owned()
        }
    }
}

fn of_excluded(excluded: &Excluded) -> String {
    let Excluded {
        local_first,
        timezone,
        why,
        ..
    } = excluded;
    match why {
        Exclusion::Calendar {
            name,
            rolled_to: None,
        } => format!("calendar {name} leaves the day out"),
        Exclusion::Calendar {
            name,
            rolled_to: Some(to),
        } => format!(
            "calendar {name} leaves the day out: moved to {}",
            instant(WallMs(*to))
        ),
        Exclusion::DstGapSkipped => {
            format!("clocks in {timezone} skip {local_first}")
        }
        Exclusion::DstGapMoved { to } => format!(
            "clocks in {timezone} skip {local_first}: moved to {}",
            instant(WallMs(*to))
        ),
        Exclusion::FoldNotChosen => {
            format!("clocks in {timezone} show {local_first} twice; the other pass counts")
        }
        Exclusion::BeforeStart => "before the start of the schedule's bounds".to_owned(),
        Exclusion::AfterEnd => "after the end of the schedule's bounds".to_owned(),
    }
}

fn who_and_when(pause: &Pause) -> String {
    format!("{} since {}", pause.actor, instant(pause.at))
}

fn instant(at: WallMs) -> String {
    match Timestamp::from_millisecond(at.0) {
        Ok(at) => at.to_string(),
        Err(_) => format!("{} ms", at.0),
    }
}
