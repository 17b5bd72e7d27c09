//! `bench soak`: whether anything drifts while a server works for long and its history is full.
//!
//! The shortest retention is a day, and nobody wants to wait that long for the first run to go. So the store begins with as
//! many finished runs as the bench will make, spread over as long a time, a day before: they come of age one by one while
//! the bench runs, and history loses at its old end what it gains at the new one. If file, memory or delays grow then, they
//! do so for another reason.

mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use drumtower_core::model::{Retention, WallMs};
use drumtower_server::driver::wall_now;
use serde_json::{Value, json};

use super::audited::{self, Scope};
use super::fleet::{self, Fleet, Setup};
use super::lists::Lists;
use super::load::{Load, Offering, Pack, Triggered};
use super::places::Places;
use super::prepared::{Past, manifest, put_all};
use super::{interrupt, jobs, machine, part, progress_done, samples, usage};
use crate::failure::{Failure, Result};
use crate::output::Output;
use report::{Mark, Measured};

const DAY_MS: i64 = 86_400_000;
/// How long the last runs may take to end.
const DRAIN: Duration = Duration::from_secs(60);
/// What a run leaves in the journals and samples, generously.
const NOTES_BYTES_PER_RUN: u64 = 500;

/// Whether anything drifts while a server works for long: delays, memory, size of the file
///
/// Runs are kept for a day, and the store begins with as many of a day ago as will be made, so that
/// from the first minute on as many leave the history as come. The table has a line a minute, and the
/// drift from the first third to the last.
///
///     drumtower bench soak --store sqlite:/var/tmp/soak --journals /var/tmp
///     drumtower bench soak --duration 2h --rate 1000 --lists 5 -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Soak {
    /// Runs a second to offer
    #[arg(long, default_value_t = 5000, value_name = "COUNT")]
    rate: u32,
    /// How long to offer them
    #[arg(long, default_value = "30m", value_parser = crate::duration::parse, value_name = "DURATION")]
    duration: Duration,
    /// How long a line of the table stands for
    #[arg(long, default_value = "1m", value_parser = crate::duration::parse, value_name = "DURATION")]
    every: Duration,
    /// Begin with an empty history; then nothing is old enough to go
    #[arg(long)]
    empty: bool,
    /// Workers, each with a connection of its own
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    workers: u32,
    /// Processes that host them; as many as workers, at most 8, unless given
    #[arg(long, value_name = "COUNT")]
    processes: Option<u32>,
    /// Jobs that are triggered in turn
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    jobs: u32,
    /// How often a second to list the runs of one job meanwhile
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    lists: u32,
    /// A directory to make the store in, such as sqlite:/mnt/disk/bench; a temporary one unless given
    #[arg(long, value_name = "sqlite:PATH")]
    store: Option<String>,
    /// Where the journals for the audit are written: about 500 bytes a run; in memory where there is such a place
    #[arg(long, value_name = "DIR")]
    journals: Option<PathBuf>,
    /// Leave the store and the journals where they are
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    output: Output,
}

impl Soak {
    pub fn run(self) -> Result<()> {
        self.check()?;
        let processes = self.processes.unwrap_or(fleet::processes(self.workers));
        fleet::make_room(self.workers, processes, Pack::Batch.connections())?;
        interrupt::listen()?;
        let places = Places::new(self.store.as_deref(), self.journals.as_deref(), self.keep)?;
        if places.store.is_some() {
            return Err(
                Failure::usage("--store: the past is put into a store of SQLite only")
                    .remedy("name a directory as sqlite:PATH"),
            );
        }
        let needed = self.runs() * NOTES_BYTES_PER_RUN;
        machine::require_space(&places.journals, needed, "--journals")?;
        self.prepare(&places)?;
        let mut fleet = Fleet::start(&Setup {
            data: &places.data,
            store: None,
            notes: &places.journals,
            servers: 1,
            workers: self.workers,
            processes,
            capacity: fleet::capacity(self.workers),
            journal: true,
        })?;
        let (triggered, marks, lists) = self.offer(&mut fleet, &places)?;
        let workers = fleet.workers()?;
        fleet.stop()?;
        let report = self.report(&places, triggered, marks, lists, workers)?;
        progress_done();
        let verdict = audited::verdict(&report);
        self.output.one(&report, |_| report::words(&report))?;
        verdict
    }

    fn check(&self) -> Result<()> {
        let counts = [
            self.rate,
            self.workers,
            self.processes.unwrap_or(1),
            self.jobs,
        ];
        let short = self.every < Duration::from_secs(1) || self.duration < self.every * 3;
        if counts.contains(&0) || short {
            return Err(Failure::usage(
                "--rate, --workers, --processes and --jobs must be at least 1, --every at least 1s, --duration at least three times that",
            ));
        }
        Ok(())
    }

    fn runs(&self) -> u64 {
        (self.duration.as_secs_f64() * f64::from(self.rate)) as u64
    }

    /// The jobs that are triggered, one that has a past, and that past.
    fn prepare(&self, places: &Places) -> Result<()> {
        part("preparing a store with a past");
        let now = wall_now();
        let mut names = jobs::names(self.jobs);
        names.push("past".to_owned());
        put_all(&places.data, now, self.jobs + 1, |number| {
            let name = names.get(number as usize);
            manifest(
                number,
                json!({ "name": name, "retention": "1d", "overlap": "allow" }),
            )
        })?;
        if self.empty {
            return Ok(());
        }
        // What is put first takes as long to put as it is given here to stay.
        let setting_up = i64::try_from(self.runs() / 20_000).unwrap_or(0) * 1000;
        let from = now.plus(setting_up - DAY_MS);
        let length = i64::try_from(self.duration.as_millis()).unwrap_or(DAY_MS);
        let past = Past {
            jobs: vec!["past".to_owned()],
            runs: self.runs(),
            from,
            to: WallMs((from.0 + length).min(now.0)),
            retention: Retention::Day,
        };
        past.put(&places.data)
    }

    /// Offers the load, and looks at the server at the end of each line of the table.
    fn offer(
        &self,
        fleet: &mut Fleet,
        places: &Places,
    ) -> Result<(Triggered, Vec<Mark>, Option<Value>)> {
        part(&format!("soaking for {} s", self.duration.as_secs()));
        let mut names = jobs::names(self.jobs.min(20));
        names.push("past".to_owned());
        let lists = Lists::start(fleet.target(), names, self.lists);
        let load = Load {
            targets: fleet.callers().to_vec(),
            pack: Pack::Batch,
            rate: self.rate,
            duration: self.duration,
            connections: Pack::Batch.connections(),
            jobs: jobs::names(self.jobs),
            journals: places.journals.clone(),
        };
        let mut marks = vec![mark(fleet, places)];
        let offering = load.start()?;
        self.look_on(fleet, places, &offering, &mut marks)?;
        let triggered = offering.finish()?;
        fleet.drain(triggered.runs.len() as u64, DRAIN)?;
        let lists = lists.map(Lists::finish).transpose()?;
        Ok((triggered, marks, lists))
    }

    fn look_on(
        &self,
        fleet: &mut Fleet,
        places: &Places,
        offering: &Offering,
        marks: &mut Vec<Mark>,
    ) -> Result<()> {
        let mut next = Instant::now() + self.every;
        let lines = self.duration.as_secs_f64() / self.every.as_secs_f64();
        while !offering.is_finished() || marks.len() <= lines as usize {
            let line = marks.len();
            fleet.watch(|ran| format!("{ran} ran, line {line} of {lines}"))?;
            if Instant::now() >= next && marks.len() <= lines as usize {
                marks.push(mark(fleet, places));
                next += self.every;
            }
        }
        Ok(())
    }

    fn report(
        &self,
        places: &Places,
        triggered: Triggered,
        marks: Vec<Mark>,
        lists: Option<Value>,
        workers: Value,
    ) -> Result<Value> {
        let scope = Scope {
            settled: true,
            has_a_past: !self.empty,
            ..Scope::default()
        };
        let (audited, ()) = audited::check(
            &places.data,
            &places.address,
            &places.journals,
            scope,
            |_| Ok(()),
        )?;
        let measured = Measured {
            every: self.every,
            triggered,
            samples: samples::read_all(&places.journals)?,
            marks,
        };
        let lines = measured.lines()?;
        Ok(json!({
            "scenario": "soak",
            "rate": self.rate,
            "duration_s": self.duration.as_secs_f64(),
            "every_s": self.every.as_secs_f64(),
            "workers": self.workers,
            "refused": measured.triggered.refused,
            "unanswered": measured.triggered.unknown,
            "start_delay_ms": measured.whole()?.value(),
            "drift": report::drift(&lines),
            "lines": lines,
            "lists": lists,
            "workers_seen": workers,
            "put": if self.empty { 0 } else { self.runs() },
            "pruned": audited.report.counts.pruned,
            "lost": audited.report.lost,
            "duplicated": audited.report.duplicated,
            "audit": audited::value(&audited.report),
            "machine": machine::facts(Some(&places.data)),
        }))
    }
}

fn mark(fleet: &Fleet, places: &Places) -> Mark {
    Mark {
        usage: fleet.usage(),
        store_bytes: usage::directory_bytes(&places.data),
    }
}
