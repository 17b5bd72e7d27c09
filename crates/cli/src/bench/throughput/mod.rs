//! `bench throughput`: runs a second through a real server, from a trigger to its end in the store.
//!
//! A server and workers are started from this program as processes of their own, on loopback and on a store made for the
//! occasion. The load is an open loop: it offers its rate whatever the server answers, and a delay counts from when a
//! trigger should have been sent. Workers carry out a handler that does nothing but write down that it ran. When all is
//! done and the server has stopped, the audit compares those journals with the store: `lost` and `duplicated` are its
//! words. A bench that finds any fails.

mod jobs;
mod load;
mod report;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use drumtower_audit::check::{Journaled, Options};
use drumtower_core::model::{SegmentSet, WallMs};
use drumtower_store::{Address, TableSize, sqlite};
use serde_json::Value;

use super::fleet::{Fleet, Setup};
use super::{interrupt, room, samples, usage, worker};
use crate::failure::{Failure, Result};
use crate::output::{Output, say};
use report::Measured;

/// How long the last runs may take to end once nothing more is offered.
const DRAIN: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
pub struct Throughput {
    /// Runs a second to offer
    #[arg(long, default_value_t = 5000, value_name = "COUNT")]
    rate: u32,
    /// How long to offer them
    #[arg(long, default_value = "60s", value_parser = crate::duration::parse, value_name = "DURATION")]
    duration: Duration,
    /// Worker processes
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    workers: u32,
    /// Runs that one worker takes at once
    #[arg(long, default_value_t = 4000, value_name = "COUNT")]
    capacity: u32,
    /// How runs come about
    #[arg(long, value_enum, default_value_t = Entrance::Batch)]
    path: Entrance,
    /// Jobs that batches trigger in turn; on the path `schedule` there are as many jobs as runs a second
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    jobs: u32,
    /// Connections that carry the batches
    #[arg(long, default_value_t = 8, value_name = "COUNT")]
    connections: u32,
    /// A directory to make the store in, such as sqlite:/mnt/disk/bench, or the URL of an empty database of PostgreSQL, in
    /// which the tables stay; a temporary directory unless given
    #[arg(long, value_name = "sqlite:PATH|postgres://…")]
    store: Option<String>,
    /// Where the journals for the audit are written; in memory (/dev/shm) where there is such a place, so that they do not
    /// compete with the store for the disk
    #[arg(long, value_name = "DIR")]
    journals: Option<PathBuf>,
    /// Leave the store and the journals where they are
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    output: Output,
}

/// The way in that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Entrance {
    /// POST /api/v1/runs:batch, every few milliseconds
    Batch,
    /// Jobs with `every: 1s`, spread evenly over the second
    Schedule,
}

impl fmt::Display for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Batch => "batch",
            Self::Schedule => "schedule",
        })
    }
}

/// Where the state is to be kept.
#[derive(Clone, Debug)]
enum Place {
    Directory(Option<PathBuf>),
    Database(Address),
}

fn parse_store(text: &str) -> Result<Place> {
    if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
        return Ok(Place::Directory(Some(PathBuf::from(path))));
    }
    match text.parse::<Address>() {
        Ok(address) if !address.is_embedded() => Ok(Place::Database(address)),
        Ok(_) => Err(Failure::usage("--store: a store is written as sqlite:PATH")),
        Err(why) => Err(Failure::usage(format!("--store: {why}"))),
    }
}

/// When the offer began and ended, in microseconds of the wall clock.
#[derive(Clone, Copy, Debug)]
struct Window {
    from_us: u64,
    to_us: u64,
}

/// The directories of one bench.
struct Places {
    data: PathBuf,
    address: Address,
    journals: PathBuf,
    /// Removed when dropped.
    _temporary: Vec<tempfile::TempDir>,
    /// Made by this bench in a place that the caller chose.
    made: Option<PathBuf>,
}

impl Drop for Places {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            let _ = std::fs::remove_dir_all(made);
        }
    }
}

impl Throughput {
    pub fn run(self) -> Result<()> {
        self.check()?;
        interrupt::listen()?;
        let places = self.places()?;
        let mut fleet = Fleet::start(&Setup {
            data: &places.data,
            store: self
                .store
                .as_deref()
                .filter(|_| !places.address.is_embedded()),
            notes: &places.journals,
            workers: self.workers,
            capacity: self.capacity,
            journal: true,
        })?;
        let before;
        let (window, triggered) = match self.path {
            Entrance::Batch => {
                jobs::put_plain(fleet.target(), self.jobs)?;
                before = fleet.usage();
                self.offer_batches(&mut fleet, &places)?
            }
            Entrance::Schedule => {
                jobs::put_scheduled(fleet.target(), self.rate)?;
                before = fleet.usage();
                (self.watch_schedules(&mut fleet)?, None)
            }
        };
        let usage = fleet.usage().since(&before);
        let life = fleet.stop()?;
        super::progress(|| "auditing".to_owned());
        let report = self.audit(&places, window, triggered, usage, life)?;
        super::progress_done();
        let failed = report::verdict(&report);
        self.output.one(&report, |_| report::words(&report))?;
        failed
    }

    fn check(&self) -> Result<()> {
        let counts = [
            self.rate,
            self.workers,
            self.capacity,
            self.jobs,
            self.connections,
        ];
        if counts.contains(&0) || self.duration < Duration::from_secs(1) {
            return Err(Failure::usage(
                "--rate, --workers, --capacity, --jobs and --connections must be at least 1, --duration at least 1s",
            ));
        }
        Ok(())
    }

    fn places(&self) -> Result<Places> {
        let mut temporary = Vec::new();
        let mut make = |inside: &Path| {
            let dir = room::temporary(inside, self.keep)?;
            let path = dir.path().to_owned();
            temporary.push(dir);
            Ok::<_, Failure>(path)
        };
        let system = std::env::temp_dir();
        let journals = make(&self.journals.clone().unwrap_or_else(room::in_memory))?;
        let place = match &self.store {
            Some(store) => parse_store(store)?,
            None => Place::Directory(None),
        };
        let (given, address) = match place {
            Place::Directory(given) => (given, Address::default()),
            Place::Database(address) => (None, address),
        };
        let data = match &given {
            Some(data) => data.clone(),
            None => make(&system)?.join("data"),
        };
        if std::fs::read_dir(&data).is_ok_and(|mut files| files.next().is_some()) {
            return Err(Failure::usage(format!("{} is not empty", data.display()))
                .remedy("name a directory that is not there yet"));
        }
        std::fs::create_dir_all(&data).map_err(|error| Failure::file(&data, &error))?;
        if !address.is_embedded() {
            let (_, reader) = address.open(&data, sqlite::Options::default())?;
            let jobs = reader.jobs_by_id(&SegmentSet::ALL, None, 1)?;
            if !jobs.is_empty() {
                return Err(Failure::usage(format!("{address} holds jobs already"))
                    .remedy("name an empty database"));
            }
        }
        if self.keep {
            say(&format!(
                "store: {}\njournals: {}",
                data.display(),
                journals.display()
            ));
        }
        let made = given.filter(|_| !self.keep);
        Ok(Places {
            data,
            address,
            journals,
            _temporary: temporary,
            made,
        })
    }

    /// Offers batches and waits until every answered run has been carried out.
    fn offer_batches(
        &self,
        fleet: &mut Fleet,
        places: &Places,
    ) -> Result<(Window, Option<load::Triggered>)> {
        let load = load::Load {
            target: fleet.target().clone(),
            rate: self.rate,
            duration: self.duration,
            connections: self.connections,
            jobs: self.jobs,
            journals: places.journals.clone(),
        };
        let offering = load.start()?;
        while !offering.is_finished() {
            fleet.watch(|ran| format!("{} triggered, {ran} ran", offering.answered()))?;
        }
        let triggered = offering.finish()?;
        let expected = triggered.runs.len() as u64;
        let until = Instant::now() + DRAIN;
        while fleet.ran() < expected && Instant::now() < until {
            fleet.watch(|ran| format!("{expected} triggered, {ran} ran"))?;
        }
        Ok((triggered.window, Some(triggered)))
    }

    /// Watches schedules fire for as long as was asked.
    fn watch_schedules(&self, fleet: &mut Fleet) -> Result<Window> {
        // The jobs fire from the moment they are put; what is measured begins when that has calmed down.
        let calm = Instant::now() + Duration::from_secs(3);
        while Instant::now() < calm {
            fleet.watch(|ran| format!("{} jobs put, {ran} ran", self.rate))?;
        }
        let from_us = worker::wall_us();
        let to_us = from_us + u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX / 2);
        while worker::wall_us() < to_us + 1_000_000 {
            fleet.watch(|ran| format!("{} jobs, {ran} ran", self.rate))?;
        }
        Ok(Window { from_us, to_us })
    }

    fn audit(
        &self,
        places: &Places,
        window: Window,
        triggered: Option<load::Triggered>,
        usage: usage::Usage,
        life: Duration,
    ) -> Result<Value> {
        let embedded = sqlite::Options::default();
        let (mut writer, reader) = places.address.open(&places.data, embedded)?;
        // Each commit of the server's session is one number, and one fdatasync.
        let commits = writer
            .live_sessions()?
            .iter()
            .map(|session| session.seq)
            .sum();
        let now = (self.path == Entrance::Schedule)
            .then(|| WallMs(i64::try_from(window.to_us / 1000).unwrap_or(i64::MAX)));
        let options = Options {
            now,
            grace_ms: 2_000,
            journaled: Journaled::All,
            settled: self.path == Entrance::Batch,
            ..Options::default()
        };
        let journals = drumtower_audit::journal::files(&places.journals)?;
        let audit = drumtower_audit::check(&journals, reader.as_ref(), &options)?;
        let measured = Measured {
            path: self.path.to_string(),
            rate: self.rate,
            duration: self.duration,
            workers: self.workers,
            window,
            triggered,
            samples: samples::read_all(&places.journals)?,
            ends: report::ends(reader.as_ref())?,
            usage,
            life,
            commits,
            store_bytes: match places.address.tables()? {
                tables if tables.is_empty() => usage::directory_bytes(&places.data),
                tables => tables.iter().map(TableSize::bytes).sum(),
            },
            tables: places.address.tables()?,
            audit,
        };
        measured.report(super::machine::facts(Some(&places.data)))
    }
}
