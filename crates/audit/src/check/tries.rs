//! How often a run was tried, and after how long, with what its job allows.
//!
//! The job's `retry` is read a second time here, from the definition that the run is pinned to.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use drumtower_core::model::{
    Attempt, AttemptOutcome, Backoff, JobId, Reason, Retry, RetryAction, Run, RunState, Verdict,
};
use drumtower_store::Read;

use super::options::Options;
use super::report::{Class, Report};
use crate::Error;
use crate::expand::milliseconds;

/// How often a handler may put its run off.
const SNOOZES: usize = 100;
/// Of a run that cannot be delivered.
const UNDELIVERED: usize = 10;
const STOPS: usize = 100;

/// What a definition allows. What cannot be read allows anything.
#[derive(Clone, Debug)]
pub(super) struct Allowed {
    failed: usize,
    lost: usize,
    initial_ms: i64,
    max_ms: i64,
    doubles: bool,
    /// The shortest wait that a rule gives instead.
    by_rule_ms: i64,
    /// Whether a rule may give up before the maximum.
    gives_up: bool,
}

impl Allowed {
    fn read(retry: &Retry) -> Self {
        let duration = |text: &Option<String>, usual: i64| match text {
            Some(text) => milliseconds(text).unwrap_or(0),
            None => usual,
        };
        let waits = retry
            .on
            .iter()
            .filter(|rule| rule.action == RetryAction::Retry && rule.after.is_some())
            .map(|rule| duration(&rule.after, i64::MAX));
        let initial_ms = duration(&retry.initial, 1_000);
        Self {
            failed: retry.max_attempts.unwrap_or(3) as usize,
            lost: retry.max_lost.unwrap_or(3) as usize,
            initial_ms,
            max_ms: duration(&retry.max, 300_000.max(initial_ms)),
            doubles: retry.backoff != Some(Backoff::Fixed),
            by_rule_ms: waits.min().unwrap_or(i64::MAX),
            gives_up: retry
                .on
                .iter()
                .any(|rule| rule.action == RetryAction::GiveUp),
        }
    }

    /// How often it may be stopped because its worker leaves: what must not be repeated, once.
    fn stops(&self) -> usize {
        match self.lost {
            0 | 1 => 1,
            _ => STOPS,
        }
    }

    /// The shortest that a run may wait after its `failures`th failure.
    fn wait_ms(&self, failures: usize) -> i64 {
        let mut wait = self.initial_ms;
        let doublings = if self.doubles { failures - 1 } else { 0 };
        for _ in 0..doublings.min(63) {
            wait = wait.saturating_mul(2);
        }
        wait.min(self.max_ms).min(self.by_rule_ms)
    }

    pub(super) fn check(&self, run: &Run, options: &Options, report: &mut Report) {
        self.counts(run, report);
        self.waits(run, options, report);
        self.not_too_few(run, report);
    }

    /// A run fails for good only when its tries are used up, or when it was told to give up.
    fn not_too_few(&self, run: &Run, report: &mut Report) {
        use AttemptOutcome::{Cancelled, Failed, Lost, Snoozed, TimedOut, Undelivered};
        let last = run.attempts.last().and_then(|attempt| attempt.end.as_ref());
        let (RunState::Failed, Some(end)) = (run.state, last) else {
            return;
        };
        let ended = |outcomes: &[AttemptOutcome]| {
            let ends = run.attempts.iter().filter_map(|it| it.end.as_ref());
            ends.filter(|end| outcomes.contains(&end.outcome)).count()
        };
        let told = self.gives_up || end.verdict == Some(Verdict::GiveUp);
        let (count, most) = match run.transitions.last().map(|step| step.reason) {
            Some(Reason::WorkerLost) if end.outcome == Undelivered => {
                (ended(&[Undelivered]), UNDELIVERED)
            }
            Some(Reason::WorkerLost) if end.outcome == Cancelled => {
                (ended(&[Cancelled]), self.stops())
            }
            Some(Reason::WorkerLost) => (ended(&[Lost]), self.lost),
            Some(Reason::TaskFailed) if end.outcome == Snoozed => (ended(&[Snoozed]), SNOOZES + 1),
            Some(Reason::TaskFailed | Reason::TimedOut) if !told => {
                (ended(&[Failed, TimedOut]), self.failed)
            }
            _ => return,
        };
        if count < most {
            report.add(Class::Other, "V12", run.id, || {
                format!("it failed for good after {count} tries of {most} that it may have")
            });
        }
    }

    fn counts(&self, run: &Run, report: &mut Report) {
        use AttemptOutcome::{Cancelled, Failed, Lost, Snoozed, TimedOut, Undelivered};
        // The last may be what ended a run that was cancelled.
        let stops = self.stops() + usize::from(run.state == RunState::Cancelled);
        let kinds: [(&str, &[AttemptOutcome], usize); 5] = [
            ("failed", &[Failed, TimedOut], self.failed),
            ("were lost", &[Lost], self.lost),
            ("were stopped", &[Cancelled], stops),
            ("were put off", &[Snoozed], SNOOZES + 1),
            ("never arrived", &[Undelivered], UNDELIVERED),
        ];
        for (what, outcomes, most) in kinds {
            let ended = |attempt: &&Attempt| {
                let end = attempt.end.as_ref();
                end.is_some_and(|end| outcomes.contains(&end.outcome))
            };
            let count = run.attempts.iter().filter(ended).count();
            if count > most {
                report.add(Class::Other, "V12", run.id, || {
                    format!("{count} of its attempts {what}, of {most} that may")
                });
            }
        }
    }

    fn waits(&self, run: &Run, options: &Options, report: &mut Report) {
        let mut failures = 0;
        for pair in run.attempts.windows(2) {
            let Some(end) = &pair[0].end else { continue };
            let wait = match (end.outcome, end.verdict) {
                (AttemptOutcome::Failed | AttemptOutcome::TimedOut, verdict) => {
                    failures += 1;
                    match verdict {
                        Some(Verdict::GiveUp) => i64::MAX,
                        Some(Verdict::RetryAfter(ms) | Verdict::Snooze(ms)) => ms.cast_signed(),
                        None => self.wait_ms(failures),
                    }
                }
                (AttemptOutcome::Snoozed, Some(Verdict::Snooze(ms))) => ms.cast_signed(),
                _ => 0,
            };
            // Both are the server's word.
            let waited = pair[1].assigned.since(end.at);
            if wait > 0 && waited.saturating_add(options.clock_back_ms) < wait {
                report.add(Class::Other, "V12", run.id, || {
                    let number = pair[1].number;
                    format!("attempt {number} came {waited} ms after the one before had ended, {wait} ms were due")
                });
            }
        }
    }
}

/// What definitions allow, each read once.
#[derive(Default)]
pub(super) struct Definitions {
    read: BTreeMap<(JobId, u32), Option<Allowed>>,
}

impl Definitions {
    /// `None` when the definition is not kept any more.
    pub(super) fn of(&mut self, store: &dyn Read, run: &Run) -> Result<Option<&Allowed>, Error> {
        let key = (run.job, run.job_version);
        let allowed = match self.read.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let version = store.job_version(key.0, key.1)?;
                entry.insert(version.map(|version| Allowed::read(&version.spec.retry)))
            }
        };
        Ok(allowed.as_ref())
    }
}
