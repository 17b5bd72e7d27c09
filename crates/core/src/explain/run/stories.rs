//! The time line: every step that the run took, with what is known about it.

use crate::model::format_bytes;
use crate::model::{
    Attempt, BackfillMark, Origin, Reason, RetryPolicy, RunState, Transition, WallMs,
};

use super::lateness::Lateness;
use super::words::instant;
use super::{Event, Happening, Known, attempts};

/// How many events of a long life are told from its beginning and from its end.
const FIRST: usize = 10;
const LAST: usize = 16;

/// Everything that happened, in order.
pub(super) fn tell(known: &Known<'_>) -> Vec<Event> {
    let mut teller = Teller {
        known,
        policy: known.policy(),
        events: Vec::new(),
    };
    for step in &known.run.transitions {
        teller.step(step);
    }
    teller.cancel_request();
    teller.checkpoint();
    shortened(known, teller.events)
}

/// Leaves out the middle of a long life: a run may have some hundred attempts.
fn shortened(known: &Known<'_>, mut events: Vec<Event>) -> Vec<Event> {
    let Some(left_out) = events.len().checked_sub(FIRST + LAST).filter(|it| *it > 1) else {
        return events;
    };
    let text = format!(
        "Here {left_out} steps are left out; `drumtower run show {}` lists them all.",
        known.run.id
    );
    let at = events[FIRST].at;
    let gap = Event::new(at, Happening::LeftOut, text);
    events.splice(FIRST..FIRST + left_out, [gap]);
    events
}

struct Teller<'a> {
    known: &'a Known<'a>,
    policy: Option<RetryPolicy>,
    events: Vec<Event>,
}

impl Teller<'_> {
    fn step(&mut self, step: &Transition) {
        match step.reason {
            Reason::Created => self.made(step.at),
            Reason::Assigned => self.assigned(step),
            // Told by the attempt, which also knows of starts that ended before they were written.
            Reason::Started => {}
            Reason::Succeeded
            | Reason::TaskFailed
            | Reason::TimedOut
            | Reason::WorkerLost
            | Reason::Undelivered
            | Reason::Retry
            | Reason::Snoozed => self.ended(step),
            Reason::Cancelled | Reason::Superseded | Reason::Expired => self.cancelled(step),
            Reason::StartTimedOut => {
                let text = "It had waited for as long as `start_timeout` allows.".to_owned();
                let event = Event::new(step.at, Happening::StartTimedOut, text);
                self.events.push(event);
            }
            Reason::Overlap => {
                let text = "Others of its job had not ended: the run is FAILED.".to_owned();
                self.events
                    .push(Event::new(step.at, Happening::Failed, text));
            }
        }
    }

    fn say_of(&mut self, attempt: &Attempt, at: WallMs, code: Happening, text: String) {
        self.events.push(Event {
            attempt: Some(attempt.number),
            worker: Some(attempt.worker.clone()),
            ..Event::new(at, code, text)
        });
    }

    fn made(&mut self, at: WallMs) {
        let run = self.known.run;
        let version = run.job_version;
        let whose = match (run.origin, run.nominal) {
            (Origin::Schedule, Some(nominal)) => {
                format!("Made by the schedule for {}", instant(nominal))
            }
            (Origin::Schedule, None) => "Made by the schedule".to_owned(),
            (Origin::Api, _) => format!("Made by {}", run.actor),
            (Origin::Backfill, nominal) => {
                let name = |mark: BackfillMark| mark.backfill.to_string();
                let which = run.backfill.map_or_else(|| "a backfill".to_owned(), name);
                let time = nominal.map_or_else(String::new, |at| format!(" for {}", instant(at)));
                format!("Made by {which}{time}")
            }
            (Origin::After, _) => match run.parent_run {
                Some(before) => format!("Made after the end of {before}"),
                None => "Made after the end of another run".to_owned(),
            },
        };
        let later = match run.due > at.max(run.nominal.unwrap_or(at)) {
            true => format!(", to start at {}", instant(run.due)),
            false => String::new(),
        };
        let text = format!("{whose}{later}, from version {version} of the job.");
        self.events.push(Event {
            actor: Some(run.actor.clone()),
            ..Event::new(at, Happening::Made, text)
        });
        if let Some(before) = run.rerun_of {
            let text = format!("It repeats {before}, which had ended.");
            self.events.push(Event::new(at, Happening::Repeats, text));
        }
    }

    fn assigned(&mut self, step: &Transition) {
        let Some(place) = self.place(step) else {
            return;
        };
        let attempts = &self.known.run.attempts;
        let attempt = &attempts[place];
        let (number, worker) = (attempt.number, &attempt.worker);
        let before = place.checked_sub(1).map(|before| &attempts[before].worker);
        let (happening, text) = match before {
            Some(before) if before != worker => (
                Happening::Moved,
                format!(
                    "Attempt {number} was given to worker {worker}; the one before was with {before}."
                ),
            ),
            _ => (
                Happening::Assigned,
                format!("Attempt {number} was given to worker {worker}."),
            ),
        };
        self.say_of(attempt, step.at, happening, text);
        self.resumed(attempt, step.at);
        self.started(attempt);
    }

    /// What it went on from. Which earlier checkpoint an attempt began with is not known once it has saved one itself.
    fn resumed(&mut self, attempt: &Attempt, at: WallMs) {
        let run = self.known.run;
        let Some(mark) = run
            .checkpoint
            .filter(|it| it.attempt < attempt.number && it.at <= at)
        else {
            return;
        };
        let (number, size) = (mark.number, format_bytes(u64::from(mark.bytes)));
        let left_by = match (mark.attempt, run.rerun_of) {
            (0, Some(before)) => format!("of {before}"),
            (0, None) => "that it was made with".to_owned(),
            (by, _) => format!("of attempt {by}"),
        };
        let text = format!(
            "Attempt {} goes on from checkpoint {number} {left_by} ({size}).",
            attempt.number
        );
        self.say_of(attempt, at, Happening::WentOnFromCheckpoint, text);
    }

    fn started(&mut self, attempt: &Attempt) {
        let Some(started) = attempt.started else {
            return;
        };
        let run = self.known.run;
        let first = run.attempts.iter().find(|it| it.started.is_some());
        let late =
            Lateness::of(run).filter(|_| first.is_some_and(|it| it.number == attempt.number));
        let text = format!("Attempt {} started.", attempt.number);
        let (happening, text) = match late {
            Some(late) => (Happening::StartedLate, format!("{text} {}", late.text())),
            None => (Happening::Started, text),
        };
        self.say_of(attempt, started, happening, text);
    }

    /// An attempt ended, and the run with it or not.
    fn ended(&mut self, step: &Transition) {
        let Some(place) = self.place(step) else {
            return;
        };
        let run = self.known.run;
        let attempt = &run.attempts[place];
        let Some(end) = &attempt.end else {
            return;
        };
        let (happening, mut text) = attempts::ended(attempt, end, step.to == RunState::Cancelled);
        if step.to == RunState::Pending
            && let Some(policy) = &self.policy
            && let Some(again) = attempts::again(policy, run, place)
        {
            text = format!("{text} {again}");
        }
        self.say_of(attempt, step.at, happening, text);
    }

    fn cancelled(&mut self, step: &Transition) {
        let run = self.known.run;
        let last = run.attempts.last();
        // An attempt that ended with this step, and not before it.
        let stopped = last
            .and_then(|it| it.end.as_ref())
            .is_some_and(|end| end.at >= step.at);
        if stopped {
            self.ended(step);
        }
        let text = match (step.reason, stopped) {
            (Reason::Superseded, true) => "With that it has made room for a newer run of its job.",
            (Reason::Superseded, false) => {
                "A newer run of its job took its place before it started: the run is CANCELLED."
            }
            (Reason::Expired, _) => {
                "Its turn came too late, as `misfire.window` says: the run is CANCELLED."
            }
            (_, true) => "With that the run is CANCELLED and is not tried again.",
            (_, false) => "Nothing of it was running: the run is CANCELLED.",
        };
        self.events
            .push(Event::new(step.at, Happening::Cancelled, text.to_owned()));
    }

    fn cancel_request(&mut self) {
        let Some(cancel) = &self.known.run.cancel else {
            return;
        };
        let what = match self.known.with_its_job() {
            true => "deleted its job",
            false => "asked to cancel it",
        };
        let text = format!("{} {what}.", cancel.actor);
        let event = Event {
            actor: Some(cancel.actor.clone()),
            ..Event::new(cancel.at, Happening::CancelRequested, text)
        };
        // Before what it brought about in the same millisecond.
        let brought = |it: &Event| matches!(it.code, Happening::Stopped | Happening::Cancelled);
        let later = |it: &Event| it.at > cancel.at || (it.at == cancel.at && brought(it));
        self.insert(event, later);
    }

    fn checkpoint(&mut self) {
        let run = self.known.run;
        let Some(mark) = run.checkpoint.filter(|mark| mark.attempt > 0) else {
            return;
        };
        let size = format_bytes(u64::from(mark.bytes));
        let text = format!(
            "Attempt {} saved checkpoint {} ({size}), the newest.",
            mark.attempt, mark.number
        );
        let event = Event {
            attempt: Some(mark.attempt),
            ..Event::new(mark.at, Happening::CheckpointSaved, text)
        };
        self.insert(event, |it| it.at > mark.at);
    }

    fn insert(&mut self, event: Event, later: impl Fn(&Event) -> bool) {
        let place = self.events.iter().position(later);
        self.events
            .insert(place.unwrap_or(self.events.len()), event);
    }

    /// Where the attempt that a step concerns is found.
    fn place(&self, step: &Transition) -> Option<usize> {
        let mut attempts = self.known.run.attempts.iter();
        attempts.position(|attempt| attempt.number == step.attempt)
    }
}
