//! Schedules, expanded for the second time.
//!
//! This is the checker's own reading of `schedule:` in a manifest. It is slow and plain on purpose and takes nothing
//! from the scheduler but the words of the manifest and the time-zone database.

mod cron;

#[cfg(test)]
mod tests;

use drumtower_core::model::{JobVersion, WallMs};
use jiff::Timestamp;

use crate::Error;
use cron::Cron;

/// All nominal times of one version of a job.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Rule {
    Cron(Box<Cron>),
    Every { period_ms: i64, anchor_ms: i64 },
    At(i64),
}

impl Plan {
    pub fn new(version: &JobVersion) -> Result<Self, Error> {
        let mut rules = Vec::new();
        for (index, entry) in version.spec.schedule.iter().enumerate() {
            let rule = match (&entry.cron, &entry.every, &entry.at) {
                (Some(line), None, None) => {
                    Cron::parse(line, entry.timezone.as_deref().unwrap_or("UTC"))
                        .map(|cron| Rule::Cron(Box::new(cron)))
                }
                (None, Some(every), None) => interval(every, entry.anchor.as_deref()),
                (None, None, Some(at)) => instant(at).map(Rule::At),
                _ => Err("it is not exactly one of cron, every and at".to_owned()),
            };
            rules.push(rule.map_err(|message| Error::Schedule {
                job: version.job.to_string(),
                version: version.version,
                entry: index + 1,
                message,
            })?);
        }
        Ok(Self { rules })
    }

    /// Every time in `[from, through]`, in order, each once. Both must be finite when the plan holds anything that
    /// repeats: the answer is a list.
    pub fn times(&self, from: WallMs, through: WallMs) -> Vec<WallMs> {
        let mut times = Vec::new();
        if from <= through {
            for rule in &self.rules {
                rule.collect(from.0, through.0, &mut times);
            }
        }
        times.sort_unstable();
        times.dedup();
        times
    }
}

impl Rule {
    fn collect(&self, from: i64, through: i64, times: &mut Vec<WallMs>) {
        match self {
            Self::At(at) => times.extend((from..=through).contains(at).then_some(WallMs(*at))),
            Self::Every {
                period_ms,
                anchor_ms,
            } => {
                let late = from.saturating_sub(*anchor_ms).rem_euclid(*period_ms);
                let mut at = if late == 0 {
                    from
                } else {
                    from.saturating_add(period_ms - late)
                };
                while at <= through {
                    times.push(WallMs(at));
                    let Some(next) = at.checked_add(*period_ms) else {
                        break;
                    };
                    at = next;
                }
            }
            Self::Cron(cron) => {
                let after = from.saturating_sub(1).div_euclid(1000);
                times.extend(
                    cron.times(after, through.div_euclid(1000))
                        .into_iter()
                        .map(|second| WallMs(second * 1000)),
                );
            }
        }
    }
}

fn interval(every: &str, anchor: Option<&str>) -> Result<Rule, String> {
    let period_ms = milliseconds(every).filter(|period| *period > 0);
    let period_ms = period_ms.ok_or_else(|| format!("`{every}` is not a duration"))?;
    Ok(Rule::Every {
        period_ms,
        anchor_ms: anchor.map_or(Ok(0), instant)?,
    })
}

fn instant(text: &str) -> Result<i64, String> {
    text.trim()
        .parse::<Timestamp>()
        .map(Timestamp::as_millisecond)
        .map_err(|error| format!("`{text}`: {error}"))
}

/// Reads `1h30m` from the right: each unit takes the digits before it.
fn milliseconds(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    let mut total = 0_i64;
    while !rest.is_empty() {
        let letters = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let digits = letters.trim_end_matches(|c: char| c.is_ascii_digit());
        let unit = match &rest[letters.len()..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        let number: i64 = letters[digits.len()..].parse().ok()?;
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = digits;
    }
    Some(total)
}
