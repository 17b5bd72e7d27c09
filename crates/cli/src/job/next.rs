//! `drumtower job next`: when a job, or a schedule that is yet to be, is due.

use clap::Args;
use drumtower_core::model::NamespaceName;
use drumtower_core::schedule::{
    self, AnyDay, DayRule, Direction, DstFold, DstGap, Language, Preview, Schedule, ScheduleEntry,
    ScheduleSpec, describe,
};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::path;
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Failure, Result};
use crate::moment::Moment;
use crate::output::{self, Cell, Column, Format, Output, View, render, text};

/// Show when a job, or a schedule, is due
///
/// A name asks the server about the job. Anything with a space, or that begins with `@`, is a
/// schedule, computed here without a server: a cron line, `every DURATION`, or `at INSTANT`.
///
///     drumtower job next report
///     drumtower job next '30 2 * * mon-fri' --timezone Asia/Shanghai
///     drumtower job next '30 2 * * *' --timezone Europe/Berlin --from 2027-03-27T00:00:00Z
///     drumtower job next 'every 90m' -n 3 --back
///     drumtower job next @monthly -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Next {
    /// A job's name, or a schedule
    #[arg(value_name = "NAME|SCHEDULE")]
    what: String,
    /// How many times
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    /// After this instant: RFC 3339, `now`, or a duration such as `-2h` or `+1d` from now
    #[arg(
        long,
        value_name = "INSTANT",
        default_value = "now",
        allow_hyphen_values = true
    )]
    from: Moment,
    /// The times at or before that instant instead, the latest first
    #[arg(long)]
    back: bool,
    /// The time zone of a schedule, an IANA name such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// How the two day fields of a cron line go together: or, and
    #[arg(long, value_name = "RULE", value_parser = choice::<DayRule>)]
    day_rule: Option<DayRule>,
    /// What becomes of a local time that clocks skip: shift, skip, at_transition
    #[arg(long, value_name = "CHOICE", value_parser = choice::<DstGap>)]
    dst_gap: Option<DstGap>,
    /// Which pass of a local time that clocks show twice counts: first, last, both
    #[arg(long, value_name = "CHOICE", value_parser = choice::<DstFold>)]
    dst_fold: Option<DstFold>,
    /// Say it in Chinese
    #[arg(long)]
    zh: bool,
    /// The namespace of the job
    #[arg(long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    namespace: NamespaceName,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Reads a choice by its name in manifests.
fn choice<T: DeserializeOwned>(text: &str) -> std::result::Result<T, String> {
    serde_json::from_value(Value::from(text)).map_err(|error| error.to_string())
}

const COLUMNS: &[Column] = &[
    Column {
        head: "TIME",
        cell: |time| Cell::Text(output::exact(&text(time, "nominal"))),
    },
    Column {
        head: "LOCAL",
        cell: |time| Cell::text(time, "local"),
    },
    Column {
        head: "DUE",
        cell: |time| match time["due"] == time["nominal"] {
            true => Cell::Text(String::new()),
            false => Cell::Text(output::exact(&text(time, "due"))),
        },
    },
    Column {
        head: "NOTE",
        cell: |time| Cell::text(time, "note"),
    },
];

impl Next {
    pub fn run(self) -> Result<()> {
        let answer = match self.entry()? {
            Some(entry) => self.here(entry)?,
            None => self.asked()?,
        };
        self.output
            .one(&answer, |view| words(&answer, self.zh, view))?;
        if self.output.output == Format::Table {
            for warning in answer["warnings"].as_array().into_iter().flatten() {
                output::say(&format!(
                    "warning: {}",
                    output::tame(&text(warning, "text"))
                ));
            }
        }
        Ok(())
    }

    /// The schedule that is written on the command line; `None` when it is the name of a job.
    fn entry(&self) -> Result<Option<ScheduleEntry>> {
        let what = self.what.trim();
        let mut entry = ScheduleEntry {
            timezone: self.timezone.clone(),
            day_rule: self.day_rule,
            dst_gap: self.dst_gap,
            dst_fold: self.dst_fold,
            ..ScheduleEntry::default()
        };
        let has_options = entry != ScheduleEntry::default();
        let form = what
            .split_once(' ')
            .map(|(form, rest)| (form, rest.trim().to_owned()));
        match form {
            Some(("every", every)) => entry.every = Some(every),
            Some(("at", at)) => entry.at = Some(at),
            Some(_) => entry.cron = Some(what.to_owned()),
            None if what.starts_with('@') => entry.cron = Some(what.to_owned()),
            None if has_options => {
                let message = "--timezone, --day-rule, --dst-gap and --dst-fold are for a schedule written here; the job has its own";
                return Err(Failure::usage(message).remedy(
                    "leave them out, or write the schedule: `drumtower job next '0 9 * * *'`",
                ));
            }
            None => return Ok(None),
        }
        Ok(Some(entry))
    }

    fn here(&self, entry: ScheduleEntry) -> Result<Value> {
        let spec = ScheduleSpec {
            entries: &[entry],
            calendar: None,
            jitter: None,
            bounds: None,
        };
        let refused = |error: schedule::Error| Failure::usage(error.to_string());
        let from = self.from.instant().as_millisecond();
        let schedule = Schedule::compile(&spec, &AnyDay).map_err(refused)?;
        let schedule = schedule.ok_or_else(|| Failure::usage("the schedule is empty"))?;
        let direction = match self.back {
            true => Direction::Backwards,
            false => Direction::Forwards,
        };
        let Preview { times, warnings } =
            schedule::preview(&schedule, &spec, None, from, self.count.into(), direction);
        let at = |ms: i64| {
            let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX);
            format!("{at:.3}")
        };
        let times = times.into_iter().map(|time| {
            json!({
                "nominal": at(time.nominal),
                "due": at(time.due),
                "local": time.local,
                "note": time.note,
            })
        });
        let warnings = warnings.into_iter().map(
            |warning| json!({"code": warning.code, "entry": warning.entry, "text": warning.text}),
        );
        Ok(json!({
            "words": describe(&spec, Language::English).map_err(refused)?,
            "words_zh": describe(&spec, Language::Chinese).map_err(refused)?,
            "times": times.collect::<Vec<_>>(),
            "warnings": warnings.collect::<Vec<_>>(),
        }))
    }

    fn asked(&self) -> Result<Value> {
        let client = Client::new(&self.connect)?;
        let path = path(&self.namespace, &self.what);
        let call = Call::get(format!("{path}/next"))
            .query("from", self.from.instant())
            .query("count", self.count)
            .query("backwards", self.back);
        client.value(call)
    }
}

/// The answer for people: a sentence and the times. In a pipe the times alone.
fn words(answer: &Value, chinese: bool, view: View) -> String {
    let times = answer["times"].as_array().cloned().unwrap_or_default();
    let table = render(&times, COLUMNS, view);
    if !view.terminal {
        return table;
    }
    let sentence = text(answer, if chinese { "words_zh" } else { "words" });
    let table = match times.is_empty() {
        true => "no times\n".to_owned(),
        false => table,
    };
    format!("{}\n\n{table}", output::tame(&sentence))
}
