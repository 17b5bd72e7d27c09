//! Which jobs there are, and when each of them is due: known to the bench without asking the server.

use drumtower_core::model::{JobSpec, WallMs};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::random::Random;
use super::super::worker::HANDLER;
use crate::failure::{Failure, Result};

/// Jobs that are not active are not due for this long after they were prepared.
pub const IDLE_FOR_MS: i64 = 2 * 3_600_000;
/// And then for this long, once each, evenly spread; until it is tomorrow and all of them wait again.
const IDLE_SPREAD_MS: i64 = 22 * 3_600_000;
/// 2025-01-01T00:00:00Z.
const ANCHOR_MS: i64 = 1_735_689_600_000;

pub fn job_name(number: u32) -> String {
    format!("bench-{number:07}")
}

/// `active` jobs with intervals, the rest once a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub jobs: u32,
    pub active: u32,
    /// Periods of the active ones lie between these, evenly.
    pub shortest_ms: u64,
    pub longest_ms: u64,
}

impl Plan {
    pub fn period_ms(&self, number: u32) -> u64 {
        let range = self.longest_ms - self.shortest_ms;
        let parts = u64::from(self.active.saturating_sub(1)).max(1);
        (self.shortest_ms + range * u64::from(number) / parts).max(1)
    }

    /// Anywhere in its first period, so that no two jobs keep step.
    fn anchor_ms(&self, number: u32) -> i64 {
        let mut random = Random::new(u64::from(number) + 1);
        random.below(1);
        let offset = random.below(self.period_ms(number));
        ANCHOR_MS.saturating_add_unsigned(offset)
    }

    /// When an active job is due in `[from, to)`, in milliseconds since the epoch.
    pub fn due(&self, number: u32, from_ms: i64, to_ms: i64) -> impl Iterator<Item = i64> + use<> {
        let period = i64::try_from(self.period_ms(number)).unwrap_or(i64::MAX);
        let anchor = self.anchor_ms(number);
        let behind = (from_ms - anchor).rem_euclid(period);
        let first = match behind {
            0 => from_ms,
            behind => from_ms + period - behind,
        };
        std::iter::successors(Some(first), move |due| due.checked_add(period))
            .take_while(move |due| *due < to_ms)
    }

    /// The definition of a job, for a store that is prepared `at`.
    pub fn manifest(&self, number: u32, at: WallMs) -> Result<JobSpec> {
        let schedule = if number < self.active {
            json!({ "every": format!("{}ms", self.period_ms(number)), "anchor": instant(self.anchor_ms(number))? })
        } else {
            json!({ "cron": self.daily(number, at)? })
        };
        manifest(
            number,
            json!({ "schedule": [schedule], "overlap": "allow" }),
        )
    }

    /// A time of the day, in UTC, that is not near `at`.
    fn daily(&self, number: u32, at: WallMs) -> Result<String> {
        let idle = i64::from(self.jobs - self.active).max(1);
        let place = i64::from(number - self.active);
        let due = at.0 + IDLE_FOR_MS + IDLE_SPREAD_MS / idle * place;
        let time = timestamp(due)?.to_zoned(TimeZone::UTC);
        Ok(format!(
            "{} {} {} * * *",
            time.second(),
            time.minute(),
            time.hour()
        ))
    }
}

/// A job of the bench, with more keys than every one of them has.
pub fn manifest(number: u32, more: Value) -> Result<JobSpec> {
    let mut manifest = json!({
        "kind": "Job",
        "name": job_name(number),
        "task": { "handler": { "name": HANDLER } },
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut manifest, more) {
        all.extend(more);
    }
    serde_json::from_value(manifest)
        .map_err(|error| Failure::failed(format!("job {number} of the bench: {error}")))
}

fn timestamp(ms: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(ms)
        .map_err(|error| Failure::failed(format!("{ms} ms is no time: {error}")))
}

/// An instant as manifests have it.
pub fn instant(ms: i64) -> Result<String> {
    Ok(format!("{:.3}", timestamp(ms)?))
}

#[cfg(test)]
mod tests {
    use drumtower_core::schedule::parse_duration;

    use super::*;

    const PLAN: Plan = Plan {
        jobs: 1000,
        active: 11,
        shortest_ms: 1000,
        longest_ms: 2000,
    };

    #[test]
    fn periods_cover_the_range_and_their_times_follow_the_manifest() {
        assert_eq!((PLAN.period_ms(0), PLAN.period_ms(10)), (1000, 2000));
        let from = ANCHOR_MS + 12_345_678;
        for number in 0..PLAN.active {
            let spec = PLAN.manifest(number, WallMs(from)).expect("valid");
            let entry = &spec.schedule[0];
            let every = entry.every.as_deref().expect("an interval");
            let every = i64::try_from(parse_duration(every).expect("a duration")).expect("short");
            let anchor: Timestamp = entry
                .anchor
                .as_deref()
                .and_then(|at| at.parse().ok())
                .expect("an instant");
            let due: Vec<i64> = PLAN.due(number, from, from + 60_000).collect();
            assert!(due.iter().all(|due| (from..from + 60_000).contains(due)));
            assert!(
                due.iter()
                    .all(|due| (due - anchor.as_millisecond()) % every == 0)
            );
            let expected = 60_000 / every;
            assert!((expected..=expected + 1).contains(&(due.len() as i64)));
        }
    }

    #[test]
    fn the_first_due_time_may_be_the_beginning_itself() {
        let first = PLAN.due(3, ANCHOR_MS, i64::MAX).next().expect("a time");
        assert_eq!(PLAN.due(3, first, first + 1).next(), Some(first));
        assert!(PLAN.due(3, first + 1, first + 2).next().is_none());
    }

    #[test]
    fn idle_jobs_wait_for_hours() {
        let at = WallMs(ANCHOR_MS + 3_600_000);
        let cron = |number| PLAN.daily(number, at).expect("a time");
        assert_eq!(cron(11), "0 0 3 * * *");
        assert!(cron(999).ends_with(" 58 0 * * *"), "{}", cron(999));
    }
}
