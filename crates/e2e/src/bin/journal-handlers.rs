//! A worker built with the SDK whose handlers write down when they started and ended: `journal-handlers NAME DIR`.
//!
//! `journal` takes `{"ms": 30, "fail": 50}` or nothing: how long it takes, and how many attempts of a hundred fail. `echo` answers with its parameters. `save` saves as many bytes as a checkpoint
//! may have and fails; begun with a checkpoint, it answers with what is in it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use drumtower_audit::journal::wall_now;
use drumtower_audit::{Journal, Outcome, Record};
use drumtower_core::model::WallMs;
use drumtower_sdk::{Context, HandlerError, Worker};
use serde::Deserialize;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Deserialize)]
struct Params {
    ms: u64,
    #[serde(default)]
    fail: u64,
}

const AT_ONCE: Params = Params { ms: 0, fail: 0 };

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().ok_or("a name is missing")?;
    let dir = PathBuf::from(
        arguments
            .next()
            .ok_or("the directory of the journals is missing")?,
    );
    let journal = Arc::new(Mutex::new(Journal::create(&dir, "handlers")?));
    let worker = Worker::builder(std::env::var("DRUMTOWER_URL")?)
        .token(std::env::var("DRUMTOWER_TOKEN")?)
        .name(name.to_string_lossy())
        .capacity(64)
        .handler(
            "journal",
            move |context: Context, params: Option<Params>| {
                carry_out(context, params.unwrap_or(AT_ONCE), Arc::clone(&journal))
            },
        )
        .handler("save", |context: Context, (): ()| save(context))
        .handler(
            "echo",
            |_: Context, params: Value| async move { Ok(params) },
        )
        .build()?;
    let mut stop = signal(SignalKind::terminate())?;
    worker
        .run(async move {
            let _ = stop.recv().await;
        })
        .await?;
    Ok(())
}

async fn save(context: Context) -> Result<[u64; 2], HandlerError> {
    if let Some(saved) = context.last_checkpoint() {
        let sum = saved.iter().map(|byte| u64::from(*byte)).sum();
        return Ok([saved.len() as u64, sum]);
    }
    context.progress(50, "half way");
    context.checkpoint(vec![3; 1024 * 1024]).await?;
    Err(HandlerError::new("saved"))
}

async fn carry_out(
    context: Context,
    params: Params,
    journal: Arc<Mutex<Journal>>,
) -> Result<(), HandlerError> {
    let (run, attempt) = (context.run_id(), context.attempt());
    let started = Record::Started {
        run,
        attempt,
        fence: context.fence(),
        nominal_ms: context.nominal_time().map(wall),
        due_ms: Some(wall(context.due_time())),
        wall_ms: wall_now(),
        pid: std::process::id(),
    };
    write(&journal, &started)?;
    let fails = fastrand::Rng::with_seed(run.0 ^ u64::from(attempt)).u64(0..100) < params.fail;
    let outcome = tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(params.ms)) => match fails {
            true => Outcome::Failed,
            false => Outcome::Succeeded,
        },
        () = context.cancelled() => Outcome::Cancelled,
    };
    write(
        &journal,
        &Record::Ended {
            run,
            attempt,
            wall_ms: wall_now(),
            outcome,
        },
    )?;
    match outcome {
        Outcome::Succeeded => Ok(()),
        Outcome::Failed => Err(HandlerError::new("it was to fail")),
        _ => Err(HandlerError::new("told to stop")),
    }
}

fn write(journal: &Mutex<Journal>, record: &Record) -> Result<(), HandlerError> {
    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(journal.write(record)?)
}

fn wall(time: SystemTime) -> WallMs {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    WallMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
