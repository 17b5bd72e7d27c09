//! `bench throughput`: runs a second through a real server, from a trigger to its end in the store.
//!
//! A server and workers are started from this program as processes of their own, on loopback and on a store made for the
//! occasion. The load is an open loop: it offers its rate whatever the server answers, and a delay counts from when a
//! trigger should have been sent. Workers carry out a handler that does nothing but write down that it ran. When all is
//! done and the server has stopped, the audit compares those journals with the store: `lost` and `duplicated` are its
//! words. A bench that finds any fails.

mod report;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use drumtower_store::TableSize;
use serde_json::Value;

use super::audited::{self, Scope};
use super::fleet::{self, Fleet, Setup};
use super::lists::Lists;
use super::load::{Load, Pack, Triggered, Window};
use super::places::Places;
use super::{interrupt, jobs, samples, usage, worker};
use crate::failure::{Failure, Result};
use crate::output::Output;
use report::Measured;

/// How long the last runs may take to end once nothing more is offered.
const DRAIN: Duration = Duration::from_secs(60);

/// Runs a second through a real server and real workers, with the delays, and an audit of what was lost or doubled
///
/// The load offers its rate whatever the server answers, and delays count from when a trigger should
/// have been sent. The path says how runs come about: many triggers a request, one each, or schedules.
///
///     drumtower bench throughput --rate 23148 --duration 3m --store sqlite:/var/tmp/bench
///     drumtower bench throughput --path single --rate 8000 --connections 64
///     drumtower bench throughput --rate 23148 --workers 1000 --processes 2
///     drumtower bench throughput --rate 23148 --workers 10000 --processes 4 -o json
///     drumtower bench throughput --rate 2000 --lists 20
///     drumtower bench throughput --rate 500 --store postgres://user:word@127.0.0.1/empty --servers 3
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Throughput {
    /// Runs a second to offer
    #[arg(long, default_value_t = 5000, value_name = "COUNT")]
    rate: u32,
    /// How long to offer them
    #[arg(long, default_value = "60s", value_parser = crate::duration::parse, value_name = "DURATION")]
    duration: Duration,
    /// Servers; more than one share the database of --store, and the load goes to all of them in turn
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    servers: u32,
    /// Workers, each with a name and a connection of its own
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    workers: u32,
    /// Processes that host them; as many as workers, at most 8, unless given
    #[arg(long, value_name = "COUNT")]
    processes: Option<u32>,
    /// Runs that one worker takes at once; 8000 shared by all of them, at least 16 each, unless given
    #[arg(long, value_name = "COUNT")]
    capacity: Option<u32>,
    /// How runs come about
    #[arg(long, value_enum, default_value_t = Entrance::Batch)]
    path: Entrance,
    /// Jobs that are triggered in turn; on the path `schedule` there are as many jobs as runs a second
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    jobs: u32,
    /// Connections that carry the triggers, kept alive; 8 for batches, 64 for single ones unless given
    #[arg(long, value_name = "COUNT")]
    connections: Option<u32>,
    /// How often a second to list the runs of one job meanwhile, and to time the answer
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    lists: u32,
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
    /// POST …/jobs/NAME/runs, a request for each run
    Single,
    /// Jobs with `every: 1s`, spread evenly over the second
    Schedule,
}

impl fmt::Display for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Batch => "batch",
            Self::Single => "single",
            Self::Schedule => "schedule",
        })
    }
}

impl Entrance {
    /// How triggers are sent; `None` when schedules make the runs.
    fn pack(self) -> Option<Pack> {
        match self {
            Self::Batch => Some(Pack::Batch),
            Self::Single => Some(Pack::Single),
            Self::Schedule => None,
        }
    }
}

/// Everything that was seen while the server ran.
struct Seen {
    window: Window,
    triggered: Option<Triggered>,
    lists: Option<Value>,
    workers: Value,
    usage: usage::Usage,
    life: Duration,
}

impl Throughput {
    pub fn run(self) -> Result<()> {
        self.check()?;
        fleet::make_room(self.workers, self.processes(), self.connections())?;
        interrupt::listen()?;
        let places = Places::new(self.store.as_deref(), self.journals.as_deref(), self.keep)?;
        places.shared_by(self.servers)?;
        let seen = self.look(&places)?;
        let report = self.audit(&places, seen)?;
        super::progress_done();
        let failed = audited::verdict(&report);
        self.output.one(&report, |_| report::words(&report))?;
        failed
    }

    fn check(&self) -> Result<()> {
        let counts = [
            self.rate,
            self.servers,
            self.workers,
            self.processes(),
            self.capacity(),
            self.jobs,
            self.connections(),
        ];
        if counts.contains(&0) || self.duration < Duration::from_secs(1) {
            return Err(Failure::usage(
                "--rate, --servers, --workers, --processes, --capacity, --jobs and --connections must be at least 1, --duration at least 1s",
            ));
        }
        Ok(())
    }

    fn processes(&self) -> u32 {
        self.processes.unwrap_or(fleet::processes(self.workers))
    }

    fn capacity(&self) -> u32 {
        self.capacity.unwrap_or(fleet::capacity(self.workers))
    }

    fn connections(&self) -> u32 {
        let usual = self.path.pack().map_or(1, Pack::connections);
        self.connections.unwrap_or(usual)
    }

    fn look(&self, places: &Places) -> Result<Seen> {
        let mut fleet = Fleet::start(&Setup {
            data: &places.data,
            store: places.store.as_deref(),
            notes: &places.journals,
            servers: self.servers,
            workers: self.workers,
            processes: self.processes(),
            capacity: self.capacity(),
            journal: true,
        })?;
        match self.path.pack() {
            Some(_) => jobs::put_plain(fleet.target(), self.jobs)?,
            None => jobs::put_scheduled(fleet.target(), self.rate)?,
        }
        let before = fleet.usage();
        let names = jobs::names(self.jobs.min(20));
        let lists = Lists::start(fleet.target(), names, self.lists);
        let (window, triggered) = match self.path.pack() {
            Some(pack) => {
                let triggered = self.offer(&mut fleet, places, pack)?;
                (triggered.window, Some(triggered))
            }
            None => (self.watch_schedules(&mut fleet)?, None),
        };
        Ok(Seen {
            window,
            triggered,
            lists: lists.map(Lists::finish).transpose()?,
            workers: fleet.workers()?,
            usage: fleet.usage().since(&before),
            life: fleet.stop()?,
        })
    }

    /// Offers triggers and waits until every answered run has been carried out.
    fn offer(&self, fleet: &mut Fleet, places: &Places, pack: Pack) -> Result<Triggered> {
        let load = Load {
            targets: fleet.callers().to_vec(),
            pack,
            rate: self.rate,
            duration: self.duration,
            connections: self.connections(),
            jobs: jobs::names(self.jobs),
            journals: places.journals.clone(),
        };
        let offering = load.start()?;
        while !offering.is_finished() {
            fleet.watch(|ran| format!("{} triggered, {ran} ran", offering.answered()))?;
        }
        let triggered = offering.finish()?;
        fleet.drain(triggered.runs.len() as u64, DRAIN)?;
        Ok(triggered)
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

    fn audit(&self, places: &Places, seen: Seen) -> Result<Value> {
        let scope = Scope {
            until_us: (self.path == Entrance::Schedule).then_some(seen.window.to_us),
            settled: self.path != Entrance::Schedule,
            has_a_past: false,
        };
        let (audited, ends) = audited::check(
            &places.data,
            &places.address,
            &places.journals,
            scope,
            super::figures::ends,
        )?;
        let measured = Measured {
            path: self.path.to_string(),
            rate: self.rate,
            duration: self.duration,
            workers: self.workers,
            window: seen.window,
            triggered: seen.triggered,
            lists: seen.lists,
            workers_seen: seen.workers,
            samples: samples::read_all(&places.journals)?,
            ends,
            usage: seen.usage,
            life: seen.life,
            commits: audited.commits,
            store_bytes: match places.address.tables()? {
                tables if tables.is_empty() => usage::directory_bytes(&places.data),
                tables => tables.iter().map(TableSize::bytes).sum(),
            },
            tables: places.address.tables()?,
            audit: audited.report,
        };
        measured.report(super::machine::facts(Some(&places.data)))
    }
}
