//! The worker of the benches: the SDK's, with one handler that does nothing but write down that it ran. A process may host
//! many of them, each with a name, an identity and a connection of its own; they share a journal.
//!
//! The journal is written in groups, at the latest after [`FLUSH_EVERY`]. That is weaker than the journal's own rule
//! (before the answer), and it can only make the audit stricter: a worker that died would leave ends without a start,
//! which count as lost. No worker is killed here, and one that ends badly fails the bench.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use drumtower_audit::{Journal, Outcome, Record};
use drumtower_core::model::WallMs;
use drumtower_sdk::{Context, HandlerError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::samples::{Recorder, Sample};
use crate::failure::{Failure, Result};

/// The name of the handler.
pub const HANDLER: &str = "bench-noop";
/// Between two workers of one process that begin to dial: thousands at once would starve each other.
const STEP: Duration = Duration::from_millis(10);
const FLUSH_EVERY: Duration = Duration::from_millis(50);

#[derive(Args, Debug)]
pub struct Worker {
    /// Where the server listens; given again, the other servers that share its database
    #[arg(long, required = true)]
    url: Vec<String>,
    /// The token to show to it
    #[arg(long, env = "DRUMTOWER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// How it is called; of several, how their names begin
    #[arg(long)]
    name: String,
    /// How many workers this process hosts
    #[arg(long, default_value_t = 1)]
    count: u32,
    /// Runs that each takes at once
    #[arg(long)]
    capacity: u32,
    /// The directory of the journals, for benches that are audited
    #[arg(long)]
    journals: Option<PathBuf>,
    /// The file to make for its samples
    #[arg(long)]
    samples: PathBuf,
}

/// Everything this worker writes down.
struct Notes {
    journal: Option<Journal>,
    samples: Recorder,
    pid: u32,
}

impl Notes {
    fn take(&mut self, context: &Context, started_us: u64, ended_us: u64) {
        let due_us = since_epoch_us(context.due_time());
        let run = context.run_id();
        if let Some(journal) = &mut self.journal {
            let wall = |us: u64| WallMs(i64::try_from(us / 1000).unwrap_or(i64::MAX));
            let attempt = context.attempt();
            journal.push(&Record::Started {
                run,
                attempt,
                fence: context.fence(),
                nominal_ms: context
                    .nominal_time()
                    .map(|time| wall(since_epoch_us(time))),
                due_ms: Some(wall(due_us)),
                wall_ms: wall(started_us),
                pid: self.pid,
            });
            journal.push(&Record::Ended {
                run,
                attempt,
                wall_ms: wall(ended_us),
                outcome: Outcome::Succeeded,
            });
        }
        self.samples.push(Sample {
            run,
            job: number_in(context.job()),
            due_us,
            started_us,
            ended_us,
        });
    }

    /// The journal first: a sample tells the bench that its run is in the journal.
    fn flush(&mut self) -> Result<()> {
        if let Some(journal) = &mut self.journal {
            journal.flush()?;
        }
        self.samples
            .flush()
            .map_err(|error| Failure::failed(format!("samples cannot be written: {error}")))
    }
}

impl Worker {
    pub fn run(self) -> Result<()> {
        // One thread: a handler that does nothing gains nothing from a second, and the machine is shared with the server.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::failed(format!("no runtime: {error}")))?;
        runtime.block_on(self.work())
    }

    async fn work(self) -> Result<()> {
        let samples = Recorder::create(&self.samples)
            .map_err(|error| Failure::file(&self.samples, &error))?;
        let journals = self.journals.as_deref();
        let journal = journals
            .map(|dir| Journal::create(dir, &self.name))
            .transpose()?;
        let notes = Arc::new(Mutex::new(Notes {
            journal,
            samples,
            pid: std::process::id(),
        }));
        let mut terminate = signal(SignalKind::terminate())
            .map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
        let flushing = tokio::spawn(flush_now_and_then(Arc::clone(&notes)));
        let leave = CancellationToken::new();
        let mut workers = JoinSet::new();
        let mut waiting = self.names().into_iter();
        let mut steps = tokio::time::interval(STEP);
        let ended = loop {
            tokio::select! {
                _ = steps.tick(), if waiting.len() > 0 && !leave.is_cancelled() => {
                    if let Some(name) = waiting.next() {
                        let worker = self.build(&name, &notes)?;
                        workers.spawn(worker.run(leave.clone().cancelled_owned()));
                    }
                }
                _ = terminate.recv(), if !leave.is_cancelled() => leave.cancel(),
                ended = workers.join_next(), if leave.is_cancelled() || !workers.is_empty() => match ended {
                    Some(Ok(Ok(()))) => {}
                    Some(Ok(Err(error))) => break Err(Failure::failed(error.to_string())),
                    Some(Err(error)) => break Err(Failure::failed(error.to_string())),
                    None => break Ok(()),
                },
            }
        };
        flushing.abort();
        lock(&notes).flush()?;
        ended
    }

    fn names(&self) -> Vec<String> {
        match self.count {
            0 | 1 => vec![self.name.clone()],
            many => (1..=many)
                .map(|number| format!("{}-{number}", self.name))
                .collect(),
        }
    }

    fn build(&self, name: &str, notes: &Arc<Mutex<Notes>>) -> Result<drumtower_sdk::Worker> {
        let taken = Arc::clone(notes);
        let handler = move |context: Context, _: Option<serde_json::Value>| {
            let started_us = wall_us();
            lock(&taken).take(&context, started_us, wall_us());
            std::future::ready(Ok::<(), HandlerError>(()))
        };
        let (first, others) = self
            .url
            .split_first()
            .ok_or_else(|| Failure::usage("--url: name a server"))?;
        let mut builder = drumtower_sdk::Worker::builder(first)
            .name(name)
            .capacity(self.capacity)
            .handler(HANDLER, handler);
        for url in others {
            builder = builder.server(url);
        }
        if let Some(token) = &self.token {
            builder = builder.token(token);
        }
        builder
            .build()
            .map_err(|error| Failure::failed(error.to_string()))
    }
}

async fn flush_now_and_then(notes: Arc<Mutex<Notes>>) {
    let mut ticks = tokio::time::interval(FLUSH_EVERY);
    loop {
        ticks.tick().await;
        // What cannot be written is missing in the audit, and the last flush says why.
        let _ = lock(&notes).flush();
    }
}

fn lock(notes: &Mutex<Notes>) -> std::sync::MutexGuard<'_, Notes> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The digits at the end of a job's name; 0 when there are none.
fn number_in(job: &str) -> u64 {
    let digits = job.trim_end_matches(|letter: char| letter.is_ascii_digit());
    job.get(digits.len()..)
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// The wall clock in microseconds.
pub fn wall_us() -> u64 {
    since_epoch_us(SystemTime::now())
}

fn since_epoch_us(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}
