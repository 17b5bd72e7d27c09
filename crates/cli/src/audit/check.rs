//! `drumtower audit check`: journals against the store of a stopped server.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use drumtower_audit::{Journaled, Options, Report, check, journal};
use drumtower_core::model::WallMs;
use drumtower_store::sqlite;

use super::record::instant;
use crate::connect::require_data_dir;
use crate::duration;
use crate::failure::{Failure, Result};
use crate::output::{Output, pairs};

/// Compare journals and schedules with the store of a stopped server
///
/// Finds runs that were acknowledged or due and are not there, runs and attempts that
/// happened twice or too early, and records that contradict each other. The exit code is 0
/// only if there is nothing to find. Memory: about 100 bytes for each run.
///
///     drumtower audit check --journal /var/tmp/journal --data /var/lib/drumtower
///     drumtower audit check --data DIR --settled -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// A directory of journals; may be repeated
    #[arg(long = "journal", value_name = "DIR")]
    journals: Vec<PathBuf>,
    /// The data directory of the server
    #[arg(long, env = "DRUMTOWER_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Until when the server was up; else the newest time in journals and store
    #[arg(long, value_parser = instant, value_name = "TIME")]
    until: Option<WallMs>,
    /// How long before that every due time must have its fate
    #[arg(long, value_parser = duration::parse, default_value = "1m", value_name = "DURATION")]
    grace: Duration,
    /// How far the clocks of the machines may differ
    #[arg(long, value_parser = duration::parse, default_value = "0s", value_name = "DURATION")]
    clock_bound: Duration,
    /// Everything due has had the time to end: whatever has not is a violation
    #[arg(long)]
    settled: bool,
    /// Whose tasks write journals, so that a COMPLETED run that none of them saw start is lost
    #[arg(long, value_enum, default_value_t)]
    journaled: Whose,
    /// A stretch of time in which nothing was disturbed, as FROM/TO; may be repeated
    #[arg(long = "healthy", value_parser = window, value_name = "FROM/TO")]
    healthy: Vec<(WallMs, WallMs)>,
    /// Runs due in a healthy stretch must have started within this time
    #[arg(long, value_parser = duration::parse, default_value = "1s", value_name = "DURATION")]
    start_within: Duration,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Whose {
    /// Of jobs with at least one start in a journal
    #[default]
    Seen,
    All,
    None,
}

fn window(text: &str) -> std::result::Result<(WallMs, WallMs), String> {
    let (from, to) = text.split_once('/').ok_or("write it as FROM/TO")?;
    Ok((instant(from)?, instant(to)?))
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Check {
    pub fn run(self) -> Result<()> {
        let data = require_data_dir(self.data.as_deref())?;
        if !data.join(sqlite::FILE).is_file() {
            return Err(Failure::usage(format!("{} holds no store", data.display()))
                .remedy("name another with --data"));
        }
        let mut files = Vec::new();
        for dir in &self.journals {
            files.extend(journal::files(dir)?);
        }
        let (writer, reader) = sqlite::open(&data, sqlite::Options::default())?;
        let report = check(&files, &reader, &self.options())?;
        drop(writer);
        let value =
            serde_json::to_value(&report).map_err(|error| Failure::failed(error.to_string()))?;
        self.output.one(&value, |_| words(&report))?;
        match report.counts.violations.values().sum::<u64>() {
            0 => Ok(()),
            count => Err(Failure::failed(format!("{count} violations"))),
        }
    }

    fn options(&self) -> Options {
        Options {
            now: self.until,
            grace_ms: ms(self.grace),
            clock_bound_ms: ms(self.clock_bound),
            journaled: match self.journaled {
                Whose::Seen => Journaled::Seen,
                Whose::All => Journaled::All,
                Whose::None => Journaled::None,
            },
            settled: self.settled,
            healthy: self.healthy.clone(),
            start_within_ms: ms(self.start_within),
            ..Options::default()
        }
    }
}

fn words(report: &Report) -> String {
    let counts = &report.counts;
    let mut text = pairs(&[
        (
            "checked",
            format!(
                "{} runs, {} due times of {} jobs",
                report.checked, counts.due_times, counts.jobs
            ),
        ),
        (
            "journals",
            format!(
                "{} answered, {} started, {} ended",
                counts.answered, counts.started, counts.ended
            ),
        ),
        ("lost", report.lost.to_string()),
        ("duplicated", report.duplicated.to_string()),
        ("early", report.early.to_string()),
        (
            "latest start",
            report.latest_start_ms.map_or("none".to_owned(), |late| {
                format!("{late} ms after it was due")
            }),
        ),
    ]);
    for violation in &report.violations {
        text.push_str(&format!(
            "{} {}: {}\n",
            violation.promise, violation.subject, violation.evidence
        ));
    }
    text
}
