//! What becomes of a run whose attempt failed: how often it is tried again, after how long, and when not at all.
//!
//! Failed attempts (failed, timed out) and lost ones (the worker is gone) are counted apart, each against its own maximum.
//! An attempt that was put off by its own handler, or never reached a worker, counts against neither.

use crate::fault::{Fault, armed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::{parse_duration, spread};

use super::job::is_default;
use super::{AttemptEnd, AttemptOutcome, Limits, RunId, SpecError, StatusPattern};

/// Whether and when a run is tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How many attempts may fail in all, the first included; 3 unless given, 1 never tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    /// `exponential` doubles the wait each time, `fixed` keeps it; exponential unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// The wait after the first failure, such as `10s`; `1s` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<String>,
    /// The longest wait, before jitter; `5m` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// Whether each wait is lengthened by up to a half, so that runs that failed together are not tried again together;
    /// true unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// The priority of a run that is tried again; that of the job unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9))]
    pub priority: Option<u32>,
    /// How many attempts may be lost with their worker in all; 3 unless given, 1 never tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_lost: Option<u32>,
    /// What to do about particular failures: the first rule that fits decides, and any other failure is tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<RetryRule>,
    /// Whether a run that failed for good is kept as a dead letter, to be requeued or discarded: `keep` or `drop`; keep
    /// unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadLetter>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeadLetter {
    #[default]
    Keep,
    Drop,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    Fixed,
    #[default]
    Exponential,
}

/// What to do about failures of some kinds; it fits when any of the kinds does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRule {
    /// Exit codes of a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit_codes: Vec<i32>,
    /// Numbers of signals that ended a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<i32>,
    /// An attempt that took longer than its timeout.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout: bool,
    /// Status codes such as `503`, and classes such as `"4xx"`, of the answer to a request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http_status: Vec<StatusPattern>,
    /// `retry` or `give_up`.
    pub action: RetryAction,
    /// Under `retry`, the wait instead of the backoff, such as `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryAction {
    /// Tried again, as long as the maximum allows.
    Retry,
    /// The run fails at once.
    GiveUp,
}

/// What a task itself says should become of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It failed, and is to be tried again after so many milliseconds.
    #[serde(rename = "retry_after_ms")]
    RetryAfter(u64),
    /// It failed, and trying again is of no use.
    GiveUp,
    /// It did not fail: it is to be tried again after so many milliseconds.
    #[serde(rename = "snooze_ms")]
    Snooze(u64),
}

/// The same as [`Retry`], read and with defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    pub max_attempts: u32,
    pub backoff: Backoff,
    pub initial_ms: u64,
    pub max_ms: u64,
    pub jitter: bool,
    pub priority: Option<u32>,
    pub max_lost: u32,
    pub dead_letter: DeadLetter,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    written: RetryRule,
    after_ms: Option<u64>,
}

/// What the rules say about one failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Tried again after so many milliseconds; after the backoff when none are given.
    Retry(Option<u64>),
    GiveUp,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            backoff: Backoff::Exponential,
            initial_ms: 1_000,
            max_ms: 300_000,
            jitter: true,
            priority: None,
            max_lost: 3,
            dead_letter: DeadLetter::Keep,
            rules: Vec::new(),
        }
    }
}

impl RetryPolicy {
    /// The wait before a run is tried again that has failed so many times, the last in attempt `attempt`. It is always the
    /// same for the same attempt of the same run.
    pub fn wait_ms(&self, failures: u32, run: RunId, attempt: u32) -> u64 {
        let doublings = match self.backoff {
            Backoff::Fixed => 0,
            Backoff::Exponential => failures.saturating_sub(1).min(63),
        };
        let wait = self
            .initial_ms
            .saturating_mul(1 << doublings)
            .min(self.max_ms);
        if self.jitter && !armed(Fault::JitterForgotten) {
            wait + spread(run.0, attempt.into(), wait / 2 + 1)
        } else {
            wait
        }
    }

    pub fn ruling(&self, end: &AttemptEnd) -> Ruling {
        match self.rule_for(end).map(|place| &self.rules[place]) {
            None => Ruling::Retry(None),
            Some(rule) => match rule.written.action {
                RetryAction::Retry => Ruling::Retry(rule.after_ms),
                RetryAction::GiveUp => Ruling::GiveUp,
            },
        }
    }

    /// The place of the first rule that fits, from 0.
    pub fn rule_for(&self, end: &AttemptEnd) -> Option<usize> {
        self.rules.iter().position(|rule| rule.written.fits(end))
    }

    /// The rule at a place, as it was written.
    pub fn rule(&self, place: usize) -> Option<&RetryRule> {
        self.rules.get(place).map(|rule| &rule.written)
    }
}

impl RetryRule {
    fn fits(&self, end: &AttemptEnd) -> bool {
        let timed_out = end.outcome == AttemptOutcome::TimedOut;
        // A command that was killed for its time has an exit code or a signal that is not its own.
        if timed_out {
            return self.timeout;
        }
        let among = |list: &[i32], number: Option<i32>| number.is_some_and(|n| list.contains(&n));
        let status = |status: u16| {
            let ranges = self.http_status.iter().map(|pattern| pattern.range());
            ranges
                .into_iter()
                .any(|(first, last)| (first..=last).contains(&status))
        };
        among(&self.exit_codes, end.exit_code)
            || among(&self.signals, end.signal)
            || end.http_status.is_some_and(status)
    }

    fn parsed(&self, field: &str) -> Result<Rule, SpecError> {
        let lists = [
            ("exit_codes", self.exit_codes.len()),
            ("signals", self.signals.len()),
            ("http_status", self.http_status.len()),
        ];
        for (key, length) in lists {
            if length > Limits::RETRY_RULE_ITEMS {
                let message = format!(
                    "may have {} entries, has {length}",
                    Limits::RETRY_RULE_ITEMS
                );
                return Err(SpecError::new(format!("{field}.{key}"), message));
            }
        }
        if lists.iter().all(|(_, length)| *length == 0) && !self.timeout {
            let message =
                "fits nothing: name `exit_codes`, `signals`, `timeout: true` or `http_status`";
            return Err(SpecError::new(field, message));
        }
        if self.after.is_some() && self.action == RetryAction::GiveUp {
            let message = "is for `action: retry`: leave it out under `give_up`";
            return Err(SpecError::new(format!("{field}.after"), message));
        }
        Ok(Rule {
            after_ms: duration(&format!("{field}.after"), self.after.as_deref())?,
            written: self.clone(),
        })
    }
}

impl Retry {
    /// Reads it under the manifest's key `field`.
    pub fn parsed(&self, field: &str) -> Result<RetryPolicy, SpecError> {
        let usual = RetryPolicy::default();
        let under = |key: &str| format!("{field}.{key}");
        let max_attempts = self.max_attempts.unwrap_or(usual.max_attempts);
        let max_lost = self.max_lost.unwrap_or(usual.max_lost);
        for (key, count) in [("max_attempts", max_attempts), ("max_lost", max_lost)] {
            if count == 0 || count > Limits::ATTEMPTS {
                let message = format!(
                    "`{count}` is not between 1 and {}: 1 never tries again",
                    Limits::ATTEMPTS
                );
                return Err(SpecError::new(under(key), message));
            }
        }
        if let Some(priority) = self.priority.filter(|given| *given > Limits::PRIORITY) {
            let message = format!("`{priority}` is not between 0 and {}", Limits::PRIORITY);
            return Err(SpecError::new(under("priority"), message));
        }
        let initial = duration(&under("initial"), self.initial.as_deref())?;
        let initial_ms = initial.unwrap_or(usual.initial_ms);
        let max = duration(&under("max"), self.max.as_deref())?;
        if let Some(max) = max.filter(|max| *max < initial_ms) {
            let message = format!("{max} ms is shorter than the first wait of {initial_ms} ms");
            return Err(SpecError::new(under("max"), message));
        }
        if self.on.len() > Limits::RETRY_RULES {
            let message = format!(
                "may have {} rules, has {}",
                Limits::RETRY_RULES,
                self.on.len()
            );
            return Err(SpecError::new(under("on"), message));
        }
        let rules = self.on.iter().enumerate();
        let rules = rules.map(|(index, rule)| rule.parsed(&format!("{field}.on[{index}]")));
        Ok(RetryPolicy {
            max_attempts,
            backoff: self.backoff.unwrap_or_default(),
            initial_ms,
            max_ms: max.unwrap_or(usual.max_ms.max(initial_ms)),
            jitter: self.jitter.unwrap_or(usual.jitter),
            priority: self.priority,
            max_lost,
            dead_letter: self.dead_letter.unwrap_or_default(),
            rules: rules.collect::<Result<_, _>>()?,
        })
    }
}

fn duration(field: &str, text: Option<&str>) -> Result<Option<u64>, SpecError> {
    let Some(text) = text else {
        return Ok(None);
    };
    match parse_duration(text) {
        Ok(ms) if ms <= Limits::RETRY_WAIT_MS => Ok(Some(ms)),
        Ok(_) => {
            let days = Limits::RETRY_WAIT_MS / 86_400_000;
            let message = format!("`{text}` is longer than {days} days: use a job with a schedule");
            Err(SpecError::new(field, message))
        }
        Err(error) => Err(SpecError::new(field, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WallMs;

    fn policy(json: &str) -> Result<RetryPolicy, SpecError> {
        let retry: Retry = serde_json::from_str(json).expect("JSON");
        retry.parsed("retry")
    }

    fn end(outcome: AttemptOutcome) -> AttemptEnd {
        AttemptEnd {
            outcome,
            at: WallMs(0),
            duration_ms: 1,
            exit_code: None,
            signal: None,
            http_status: None,
            verdict: None,
            cpu_ms: 0,
            peak_memory_bytes: 0,
            error: None,
            log: None,
        }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_jitter_only_lengthens_them() {
        let plain = policy(r#"{"jitter": false, "max": "10s"}"#).expect("valid");
        let waits = (1..=6).map(|failures| plain.wait_ms(failures, RunId(1), failures));
        assert_eq!(
            waits.collect::<Vec<_>>(),
            [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]
        );
        assert_eq!(plain.wait_ms(u32::MAX, RunId(1), 1), 10_000);
        let jittered = policy(r#"{"max": "10s"}"#).expect("valid");
        let mut seen = std::collections::BTreeSet::new();
        for run in 0..100 {
            let wait = jittered.wait_ms(3, RunId(run), 3);
            assert!((4_000..=6_000).contains(&wait), "{wait}");
            assert_eq!(wait, jittered.wait_ms(3, RunId(run), 3));
            seen.insert(wait);
        }
        assert!(seen.len() > 50, "jitter spreads");
        let fixed = policy(r#"{"backoff": "fixed", "initial": "10m", "jitter": false}"#);
        assert_eq!(fixed.expect("valid").wait_ms(9, RunId(1), 9), 600_000);
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = policy(
            r#"{"on": [{"exit_codes": [2, 3], "action": "give_up"},
                       {"exit_codes": [3], "signals": [9], "action": "retry", "after": "7s"},
                       {"http_status": ["4xx"], "action": "give_up"}, {"timeout": true, "action": "give_up"}]}"#,
        )
        .expect("valid");
        let of = |change: &dyn Fn(&mut AttemptEnd)| {
            let mut end = end(AttemptOutcome::Failed);
            change(&mut end);
            policy.ruling(&end)
        };
        assert_eq!(of(&|end| end.exit_code = Some(3)), Ruling::GiveUp);
        assert_eq!(of(&|end| end.exit_code = Some(4)), Ruling::Retry(None));
        assert_eq!(of(&|end| end.signal = Some(9)), Ruling::Retry(Some(7_000)));
        assert_eq!(of(&|end| end.http_status = Some(404)), Ruling::GiveUp);
        assert_eq!(of(&|end| end.http_status = Some(503)), Ruling::Retry(None));
        let killed = |end: &mut AttemptEnd| {
            end.outcome = AttemptOutcome::TimedOut;
            end.signal = Some(9);
        };
        assert_eq!(of(&killed), Ruling::GiveUp);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_place() {
        for (json, field) in [
            (r#"{"max_attempts": 0}"#, "retry.max_attempts"),
            (r#"{"max_lost": 101}"#, "retry.max_lost"),
            (r#"{"priority": 10}"#, "retry.priority"),
            (r#"{"initial": "soon"}"#, "retry.initial"),
            (r#"{"initial": "10s", "max": "5s"}"#, "retry.max"),
            (r#"{"initial": "31d"}"#, "retry.initial"),
            (r#"{"on": [{"action": "retry"}]}"#, "retry.on[0]"),
            (
                r#"{"on": [{"timeout": true, "action": "give_up", "after": "1s"}]}"#,
                "retry.on[0].after",
            ),
        ] {
            let error = policy(json).expect_err(json);
            assert_eq!(error.field, field, "{error}");
        }
    }
}
