//! One entry of a schedule.

use drumtower_core::schedule::{DstFold, DstGap, ScheduleEntry};
use jiff::civil::DateTime;

use super::cron::Cron;
use super::days::Choice;
use super::local::Local;
use super::{duration, instant};

#[derive(Clone, Debug)]
pub(super) enum Rule {
    Cron(Box<Cron>),
    Every {
        period_ms: i64,
        anchor_ms: i64,
        local: Local,
    },
    /// The zone says which day it is, and carries it to another one.
    At {
        at: i64,
        local: Local,
    },
    LocalAt {
        civil: DateTime,
        local: Local,
    },
}

impl Rule {
    pub fn read(entry: &ScheduleEntry) -> Result<Self, String> {
        let gap: DstGap = entry.dst_gap.unwrap_or_default();
        let fold: DstFold = entry.dst_fold.unwrap_or_default();
        let local = Local::named(entry.timezone.as_deref().unwrap_or("UTC"), gap, fold)?;
        match (&entry.cron, &entry.every, &entry.at) {
            (Some(line), None, None) => {
                Cron::parse(line, entry.day_rule.unwrap_or_default(), local)
                    .map(|cron| Self::Cron(Box::new(cron)))
            }
            (None, Some(every), None) => {
                let period_ms = duration(every)?;
                if period_ms == 0 {
                    return Err("an interval of nothing".to_owned());
                }
                Ok(Self::Every {
                    period_ms,
                    anchor_ms: entry.anchor.as_deref().map_or(Ok(0), instant)?,
                    local,
                })
            }
            (None, None, Some(at)) => match instant(at) {
                Ok(at) => Ok(Self::At { at, local }),
                Err(_) => at
                    .trim()
                    .parse()
                    .map(|civil| Self::LocalAt { civil, local })
                    .map_err(|error| format!("`{at}`: {error}")),
            },
            _ => Err("it is not exactly one of cron, every, at and after_end".to_owned()),
        }
    }

    /// The least distance between two of its times that need be thought of.
    pub fn spacing_ms(&self) -> i64 {
        match self {
            Self::Cron(cron) => cron.spacing_ms(),
            Self::Every { period_ms, .. } => *period_ms,
            Self::At { .. } | Self::LocalAt { .. } => 60_000,
        }
    }

    /// Times in `[from, through]`, in any order and possibly repeated.
    pub fn times(&self, from: i64, through: i64, choice: &Choice) -> Vec<i64> {
        let mut found = match self {
            Self::Cron(cron) => cron.times(from, through, choice),
            Self::Every {
                period_ms,
                anchor_ms,
                local,
            } => multiples(*period_ms, *anchor_ms, from, through)
                .filter(|at| {
                    choice.is_open() || local.date_at(*at).is_some_and(|date| choice.counts(date))
                })
                .collect(),
            Self::At { at, local } => match local.shown(*at) {
                Some(civil) if choice.counts(civil.date()) => vec![*at],
                Some(civil) => rolled(civil, local, choice),
                None => vec![],
            },
            Self::LocalAt { civil, local } => rolled(*civil, local, choice),
        };
        found.retain(|at| (from..=through).contains(at));
        found
    }
}

/// A local time on the day that it is rolled to, which is its own if that counts.
fn rolled(civil: DateTime, local: &Local, choice: &Choice) -> Vec<i64> {
    match choice.target(civil.date()) {
        Some(day) => local.instants(day.to_datetime(civil.time())),
        None => vec![],
    }
}

/// The times `anchor + k · period` in `[from, through]`.
fn multiples(period_ms: i64, anchor_ms: i64, from: i64, through: i64) -> impl Iterator<Item = i64> {
    let late = (i128::from(from) - i128::from(anchor_ms)).rem_euclid(period_ms.into());
    let wait = if late == 0 {
        0
    } else {
        period_ms - late as i64
    };
    std::iter::successors(from.checked_add(wait), move |at| at.checked_add(period_ms))
        .take_while(move |at| *at <= through)
}
