//! What columns hold and how they are asked, the same in every database.
//!
//! Overlap: most runs are what their origin makes them: those of a schedule count for the job as a whole, others do not
//! count. Only of the rest a column tells: `s` for one of a schedule or `o` for another, then `l` for one that is under way,
//! `q` for one that waits for its turn or `n` for one that does not count, then a colon and the key where there is one.

use drumtower_core::model::{
    BackfillState, JobRow, Origin, Retention, Run, RunId, RunState, Standing, SweepCause, Tallies,
    WorkerRef,
};

use crate::read::death;
use crate::{BackfillFilter, Error, JobFilter};

pub const CLASSES: usize = Retention::ALL.len();

pub fn class_of(retention: Retention) -> usize {
    match retention {
        Retention::Day => 0,
        Retention::Week => 1,
        Retention::Month => 2,
        Retention::Keep => 3,
    }
}

/// Completed is zero, which takes no byte in a row.
pub fn verdict_of(state: RunState) -> u8 {
    match state {
        RunState::Completed => 0,
        RunState::Cancelled => 2,
        _ => 1,
    }
}

pub fn state_of(verdict: u8) -> RunState {
    match verdict {
        0 => RunState::Completed,
        2 => RunState::Cancelled,
        _ => RunState::Failed,
    }
}

/// The column of a run.
pub fn standing(run: &Run) -> Option<String> {
    let standing = &run.standing;
    let usual = Standing {
        superseded: standing.superseded,
        ..Standing::of(run.origin)
    };
    (*standing != usual).then(|| text(run.origin, standing))
}

fn text(origin: Origin, standing: &Standing) -> String {
    let made = match origin {
        Origin::Schedule => 's',
        _ => 'o',
    };
    let place = match (standing.counts, standing.queued) {
        (false, _) => 'n',
        (true, false) => 'l',
        (true, true) => 'q',
    };
    match &standing.key {
        None => format!("{made}{place}"),
        Some(key) => format!("{made}{place}:{key}"),
    }
}

/// Whether a run was made by a schedule, and its standing.
fn read(text: &str) -> Option<(bool, Standing)> {
    let (made, rest) = text.split_at_checked(1)?;
    let (place, key) = rest.split_at_checked(1)?;
    let standing = Standing {
        counts: place != "n",
        queued: place == "q",
        key: match key {
            "" => None,
            key => Some(key.strip_prefix(':')?.to_owned()),
        },
        superseded: false,
    };
    Some((made == "s", standing))
}

/// What there is of each key, from the counts of the column's texts and of the runs that schedules made.
pub fn tallies(scheduled: u32, texts: &[(String, u32)]) -> Result<Tallies, Error> {
    let mut tallies = Tallies::default();
    let mut unusual = 0;
    for (text, runs) in texts {
        let broken = || Error::Corrupt(format!("`{text}` is no standing of a run"));
        let (made, standing) = read(text).ok_or_else(broken)?;
        tallies.add(&standing, *runs);
        if made {
            unusual += runs;
        }
    }
    let usual = Standing::of(Origin::Schedule);
    tallies.add(&usual, scheduled.saturating_sub(unusual));
    Ok(tallies)
}

/// The columns of runs that count under a key and do not wait for their turn: those of the schedule, and others.
pub fn live_texts(key: Option<&str>) -> [String; 2] {
    let standing = Standing {
        counts: true,
        key: key.map(str::to_owned),
        ..Standing::default()
    };
    [Origin::Schedule, Origin::Api].map(|origin| text(origin, &standing))
}

/// The number of a backfill's state.
pub fn backfill_state(state: BackfillState) -> i64 {
    match state {
        BackfillState::Running => 0,
        BackfillState::Paused => 1,
        BackfillState::Completed => 2,
        BackfillState::Cancelled => 3,
    }
}

/// The states that a filter takes, as a set of bits.
pub fn backfill_states(filter: &BackfillFilter) -> i64 {
    let states = match filter.states.as_slice() {
        [] => &BackfillState::ALL[..],
        states => states,
    };
    states
        .iter()
        .fold(0, |set, state| set | 1 << backfill_state(*state))
}

/// Names hold no slash, so a key is of one cause alone.
pub fn cause_key(cause: &SweepCause) -> String {
    match cause {
        SweepCause::Calendar(calendar) => {
            format!("calendar/{}/{}", calendar.namespace, calendar.name)
        }
        SweepCause::TimeZones => "time_zones".to_owned(),
    }
}

/// An empty namespace is that of every worker of the name.
pub fn drain_key(workers: &WorkerRef) -> (&str, &str) {
    let namespace = workers.namespace.as_ref().map_or("", |it| it.as_str());
    (workers.name.as_str(), namespace)
}

/// The word for why a run became a dead letter.
pub fn letter_reason(run: &Run) -> &'static str {
    death(run).1.map_or("", |reason| reason.as_str())
}

/// A payload that does not go into the row: the codec byte, the format byte, the text.
pub fn raw(text: &str) -> Vec<u8> {
    [&[0, 1], text.as_bytes()].concat()
}

/// Reads back what [`raw`] made.
pub fn open_raw(blob: Option<&[u8]>, run: RunId) -> Result<String, Error> {
    let text = blob
        .and_then(|blob| blob.strip_prefix(&[0, 1]))
        .and_then(|text| String::from_utf8(text.to_vec()).ok());
    text.ok_or_else(|| Error::Corrupt(format!("a payload of {run} is missing or cannot be read")))
}

/// Where the first job that a filter takes may be. The empty text comes before every name.
pub fn first_job(filter: &JobFilter) -> (&str, String) {
    match (&filter.namespace, &filter.prefix) {
        (Some(namespace), Some(prefix)) => (namespace.as_str(), prefix.clone()),
        (Some(namespace), None) => (namespace.as_str(), String::new()),
        (None, _) => ("", String::new()),
    }
}

/// Whether neither this job nor any after it is taken.
pub fn is_past(filter: &JobFilter, row: &JobRow) -> bool {
    let Some(only) = &filter.namespace else {
        return false;
    };
    let beyond = |prefix: &String| {
        let name = row.name.as_str();
        name > prefix.as_str() && !name.starts_with(prefix)
    };
    row.namespace > *only || (row.namespace == *only && filter.prefix.as_ref().is_some_and(beyond))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        for key in [None, Some("7".to_owned()), Some("\"a:b\"".to_owned())] {
            for (counts, queued) in [(true, false), (true, true), (false, false)] {
                let standing = Standing {
                    counts,
                    queued,
                    key: key.clone(),
                    superseded: false,
                };
                let text = text(Origin::Schedule, &standing);
                assert_eq!(read(&text), Some((true, standing)), "{text}");
            }
        }
        for broken in ["", "s", "slx"] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
