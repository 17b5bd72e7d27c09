//! The circuit breaker of a job: after several failures in a row it lets nothing through for a while, then tries with one
//! run at a time.
//!
//! ```text
//! closed ──`failures` runs in a row failed──► open ──cooldown over──► half open ──`probes` runs completed──► closed
//!                                              ▲                          │
//!                                              └──the probe failed────────┘ (the cooldown doubles, up to `max_cooldown`)
//! ```
//!
//! A run fails when it has failed for good: what is tried again has not failed yet. Cancelled runs say nothing. While it is
//! open only the probe decides; runs that were under way when it opened end as they do. A job that never failed has no row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::parse_duration;

use super::{JobId, JobRecord, Limits, Reason, RunId, RunState, SpecError, WallMs};

/// When a job that keeps failing is left alone for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// How many runs in a row must fail for good for it to open; 5 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub failures: Option<u32>,
    /// How long nothing is let through, such as `30s`; `1m` unless given. It doubles each time a probe fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<String>,
    /// The longest that the cooldown becomes; `1h` unless given, or the cooldown itself where that is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cooldown: Option<String>,
    /// How many runs must complete, one after another, for it to close again; 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub probes: Option<u32>,
}

/// The same, read and with defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    pub failures: u32,
    pub cooldown_ms: u64,
    pub max_cooldown_ms: u64,
    pub probes: u32,
}

impl Breaker {
    /// Reads it under the manifest's key `field`.
    pub fn parsed(&self, field: &str) -> Result<BreakerPolicy, SpecError> {
        let number = |key: &str, given: Option<u32>, default: u32, most: u32| match given {
            Some(number) if number == 0 || number > most => {
                let message = format!("`{number}` is not between 1 and {most}");
                Err(SpecError::new(format!("{field}.{key}"), message))
            }
            given => Ok(given.unwrap_or(default)),
        };
        let cooldown_ms = duration(field, "cooldown", self.cooldown.as_deref(), 60_000)?;
        let longest = cooldown_ms.max(3_600_000);
        let max_cooldown_ms =
            duration(field, "max_cooldown", self.max_cooldown.as_deref(), longest)?;
        if max_cooldown_ms < cooldown_ms {
            let message = "is shorter than `cooldown`: raise it, or leave it out";
            return Err(SpecError::new(format!("{field}.max_cooldown"), message));
        }
        Ok(BreakerPolicy {
            failures: number("failures", self.failures, 5, Limits::BREAKER_FAILURES)?,
            cooldown_ms,
            max_cooldown_ms,
            probes: number("probes", self.probes, 1, Limits::BREAKER_PROBES)?,
        })
    }
}

fn duration(field: &str, key: &str, text: Option<&str>, default: u64) -> Result<u64, SpecError> {
    let fault = |message: String| SpecError::new(format!("{field}.{key}"), message);
    let Some(text) = text else {
        return Ok(default);
    };
    match parse_duration(text) {
        Ok(ms) if ms == 0 || ms > Limits::BREAKER_COOLDOWN_MS => {
            let days = Limits::BREAKER_COOLDOWN_MS / 86_400_000;
            Err(fault(format!("`{text}` is not between 1ms and {days}d")))
        }
        Ok(ms) => Ok(ms),
        Err(error) => Err(fault(error.to_string())),
    }
}

/// What is kept of a job that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerRow {
    pub job: JobId,
    /// Runs in a row that failed for good, up to when it opened.
    pub failures: u32,
    pub open: Option<Open>,
}

/// A breaker that is not closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// When it opened first.
    pub since: WallMs,
    /// When it opened last: the cooldown counts from here.
    pub at: WallMs,
    pub cooldown_ms: u64,
    /// The run that is let through to see whether all is well again.
    pub probe: Option<RunId>,
    /// Probes that completed since it opened last.
    pub passed: u32,
}

/// Whether a breaker lets a run through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    Closed,
    /// As the probe.
    Probe,
    /// Not before then.
    Cooling(WallMs),
    /// Not before this run has ended.
    Probing(RunId),
}

impl Open {
    pub fn until(&self) -> WallMs {
        let cooldown = i64::try_from(self.cooldown_ms).unwrap_or(i64::MAX);
        self.at.plus(cooldown)
    }

    /// A clock that went back behind the opening ends the cooldown: a probe too early does less harm than none for long.
    fn cools(&self, now: WallMs) -> bool {
        now >= self.at && now < self.until()
    }
}

impl JobRecord {
    /// What is kept of its failures, as long as its definition has a breaker: only then does it hold anything back.
    pub fn active_breaker(&self) -> Option<&BreakerRow> {
        let breaker = self.breaker.as_ref();
        breaker.filter(|_| self.version.spec.breaker.is_some())
    }
}

impl BreakerRow {
    pub fn pass(row: Option<&Self>, now: WallMs) -> Pass {
        match row.and_then(|row| row.open.as_ref()) {
            None => Pass::Closed,
            Some(open) if open.cools(now) => Pass::Cooling(open.until()),
            Some(Open {
                probe: Some(run), ..
            }) => Pass::Probing(*run),
            Some(_) => Pass::Probe,
        }
    }

    /// `closed`, `open` or `half_open`.
    pub fn state(row: Option<&Self>, now: WallMs) -> &'static str {
        match Self::pass(row, now) {
            Pass::Closed => "closed",
            Pass::Cooling(_) => "open",
            Pass::Probe | Pass::Probing(_) => "half_open",
        }
    }

    /// What is kept after a run of the job has ended.
    pub fn after(
        policy: &BreakerPolicy,
        row: Option<Self>,
        job: JobId,
        end: (RunId, RunState, Reason),
        now: WallMs,
    ) -> Option<Self> {
        let (run, state, reason) = end;
        // Of these the task never ran: they say nothing about it.
        let untried = matches!(reason, Reason::Overlap | Reason::StartTimedOut);
        let failed = state == RunState::Failed && !untried;
        let completed = state == RunState::Completed;
        let row = row.unwrap_or(Self {
            job,
            failures: 0,
            open: None,
        });
        match row.open.clone() {
            None if failed => Some(row.failed(policy, now)),
            None if completed || row.failures == 0 => None,
            Some(open) if open.probe == Some(run) => {
                row.probed(policy, open, failed, completed, now)
            }
            None | Some(_) => Some(row),
        }
    }

    fn failed(self, policy: &BreakerPolicy, now: WallMs) -> Self {
        let failures = self.failures.saturating_add(1);
        let open = (failures >= policy.failures).then_some(Open {
            since: now,
            at: now,
            cooldown_ms: policy.cooldown_ms,
            probe: None,
            passed: 0,
        });
        Self {
            failures,
            open,
            ..self
        }
    }

    fn probed(
        self,
        policy: &BreakerPolicy,
        mut open: Open,
        failed: bool,
        completed: bool,
        now: WallMs,
    ) -> Option<Self> {
        open.probe = None;
        if failed {
            let longer = open.cooldown_ms.saturating_mul(2);
            open.cooldown_ms = longer.min(policy.max_cooldown_ms).max(policy.cooldown_ms);
            open.at = now;
            open.passed = 0;
        }
        if completed {
            open.passed += 1;
            if open.passed >= policy.probes {
                return None;
            }
        }
        Some(Self {
            open: Some(open),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const JOB: JobId = JobId(1);

    fn policy(value: serde_json::Value) -> Result<BreakerPolicy, SpecError> {
        let breaker: Breaker = serde_json::from_value(value).expect("a breaker");
        breaker.parsed("breaker")
    }

    #[test]
    fn wrong_values_are_refused_with_the_remedy() {
        for (value, words) in [
            (
                json!({"failures": 0}),
                "breaker.failures: `0` is not between 1 and 1000",
            ),
            (
                json!({"probes": 101}),
                "breaker.probes: `101` is not between 1 and 100",
            ),
            (
                json!({"cooldown": "0s"}),
                "breaker.cooldown: `0s` is not between 1ms and 30d",
            ),
            (
                json!({"cooldown": "31d"}),
                "breaker.cooldown: `31d` is not between",
            ),
            (json!({"cooldown": "soon"}), "breaker.cooldown: "),
            (
                json!({"cooldown": "2m", "max_cooldown": "1m"}),
                "breaker.max_cooldown: is shorter than `cooldown`: raise it",
            ),
        ] {
            let said = policy(value.clone()).expect_err("refused").to_string();
            assert!(said.contains(words), "{value}: {said}");
        }
        let usual = policy(json!({})).expect("valid");
        assert_eq!(
            (
                usual.failures,
                usual.cooldown_ms,
                usual.max_cooldown_ms,
                usual.probes
            ),
            (5, 60_000, 3_600_000, 1)
        );
        let long = policy(json!({"cooldown": "2h"})).expect("valid");
        assert_eq!(long.max_cooldown_ms, 7_200_000);
    }

    struct Walk {
        policy: BreakerPolicy,
        row: Option<BreakerRow>,
        now: i64,
    }

    impl Walk {
        fn new(value: serde_json::Value) -> Self {
            Self {
                policy: policy(value).expect("valid"),
                row: None,
                now: 1_000_000,
            }
        }

        fn end(&mut self, run: u64, state: RunState) {
            let reason = match state {
                RunState::Failed => Reason::TaskFailed,
                RunState::Cancelled => Reason::Cancelled,
                _ => Reason::Succeeded,
            };
            let end = (RunId(run), state, reason);
            self.row = BreakerRow::after(&self.policy, self.row.take(), JOB, end, WallMs(self.now));
        }

        fn pass(&self) -> Pass {
            BreakerRow::pass(self.row.as_ref(), WallMs(self.now))
        }

        fn probe(&mut self, run: u64) {
            let open = self.row.as_mut().and_then(|row| row.open.as_mut());
            open.expect("open").probe = Some(RunId(run));
        }
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_closes_after_a_probe() {
        let mut walk = Walk::new(json!({"failures": 2, "cooldown": "10s", "max_cooldown": "15s"}));
        walk.end(1, RunState::Failed);
        walk.end(2, RunState::Completed);
        assert_eq!(walk.row, None, "one good run forgets the failures");
        walk.end(3, RunState::Failed);
        walk.end(4, RunState::Cancelled);
        assert_eq!(walk.pass(), Pass::Closed, "a cancelled run says nothing");
        walk.end(5, RunState::Failed);
        assert_eq!(walk.pass(), Pass::Cooling(WallMs(1_010_000)));
        walk.end(6, RunState::Completed);
        assert_eq!(
            walk.pass(),
            Pass::Cooling(WallMs(1_010_000)),
            "it is no probe"
        );
        walk.now += 10_000;
        assert_eq!(walk.pass(), Pass::Probe);
        walk.probe(7);
        assert_eq!(walk.pass(), Pass::Probing(RunId(7)));
        walk.end(8, RunState::Failed);
        assert_eq!(
            walk.pass(),
            Pass::Probing(RunId(7)),
            "only the probe decides"
        );
        walk.end(7, RunState::Failed);
        assert_eq!(
            walk.pass(),
            Pass::Cooling(WallMs(walk.now + 15_000)),
            "doubled, up to the most"
        );
        walk.now += 15_000;
        walk.probe(9);
        walk.end(9, RunState::Cancelled);
        assert_eq!(walk.pass(), Pass::Probe, "another is let through");
        walk.probe(10);
        walk.end(10, RunState::Completed);
        assert_eq!((walk.pass(), &walk.row), (Pass::Closed, &None));
    }

    #[test]
    fn as_many_probes_must_complete_as_it_says() {
        let mut walk = Walk::new(json!({"failures": 1, "cooldown": "1s", "probes": 2}));
        walk.end(1, RunState::Failed);
        walk.now += 1_000;
        walk.probe(2);
        walk.end(2, RunState::Completed);
        assert_eq!(walk.pass(), Pass::Probe);
        walk.probe(3);
        walk.end(3, RunState::Completed);
        assert_eq!(walk.row, None);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_keep_it_open() {
        let mut walk = Walk::new(json!({"failures": 1, "cooldown": "1m"}));
        walk.end(1, RunState::Failed);
        walk.now -= 3_600_000;
        assert_eq!(walk.pass(), Pass::Probe);
    }

    #[test]
    fn a_run_that_failed_because_of_others_says_nothing() {
        let end = (RunId(1), RunState::Failed, Reason::Overlap);
        let policy = policy(json!({"failures": 1})).expect("valid");
        assert_eq!(BreakerRow::after(&policy, None, JOB, end, WallMs(0)), None);
    }

    proptest! {
        /// Whatever ends in whatever order: at most one probe at a time, nothing passes before the cooldown is over, and
        /// the cooldown stays within its bounds.
        #[test]
        fn one_probe_at_a_time(ends in proptest::collection::vec((0_u8..3, 0_i64..20_000, any::<bool>()), 1..100)) {
            let mut walk = Walk::new(json!({"failures": 3, "cooldown": "4s", "max_cooldown": "20s", "probes": 2}));
            let mut probing: Option<u64> = None;
            for (id, (end, pass_ms, of_probe)) in (10..).zip(ends) {
                walk.now += pass_ms;
                match walk.pass() {
                    Pass::Probe => {
                        prop_assert_eq!(probing, None);
                        walk.probe(id);
                        probing = Some(id);
                    }
                    Pass::Probing(run) => prop_assert_eq!(Some(run.0), probing),
                    Pass::Closed | Pass::Cooling(_) => prop_assert_eq!(probing, None),
                }
                let state = [RunState::Failed, RunState::Completed, RunState::Cancelled][usize::from(end)];
                let run = probing.filter(|_| of_probe);
                walk.end(run.unwrap_or(1), state);
                if run.is_some() {
                    probing = None;
                }
                if let Some(open) = walk.row.as_ref().and_then(|row| row.open.as_ref()) {
                    prop_assert!((4_000..=20_000).contains(&open.cooldown_ms));
                }
            }
        }
    }
}
