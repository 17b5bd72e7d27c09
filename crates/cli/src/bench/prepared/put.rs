//! Puts jobs into a store that no server serves yet, by the server's own loop and engine, without the network.
//!
//! The clock stands still meanwhile, so nothing fires however long it takes. The loop is ended and begun anew now and
//! then: an engine keeps in memory what it was given, and a million jobs are many.

use std::path::Path;
use std::sync::Arc;

use drumtower_core::engine::{Command, Condition, NewToken};
use drumtower_core::model::{Actor, JobSpec, MonoMs, Now, Role, WallMs};
use drumtower_server::auth::Secret;
use drumtower_server::driver::{self, Clock, Handle, Health};
use drumtower_store::sqlite;
use tokio::task::JoinSet;

use super::super::{interrupt, progress};
use crate::failure::{Failure, Result};

/// Fewer than the loop lets wait.
const AT_ONCE: usize = 4000;
const IN_ONE_LIFE: u32 = 100_000;

/// Time does not pass.
struct Standing(Now);

impl Clock for Standing {
    fn now(&self) -> Now {
        self.0
    }
}

/// Puts jobs 0 to `count` as of `at`, and gives the secret of a token for workers.
pub fn put_all(
    data: &Path,
    at: WallMs,
    count: u32,
    spec: impl Fn(u32) -> Result<JobSpec>,
) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("no runtime: {error}")))?;
    let secret =
        Secret::draw().map_err(|error| Failure::failed(format!("no random bits: {error}")))?;
    let token = Command::CreateToken {
        token: NewToken {
            name: "bench".to_owned(),
            role: Role::Worker,
            namespace: None,
            hash: secret.digest(),
        },
    };
    runtime.block_on(async {
        let handle = open(data, at).await?;
        send(handle.clone(), token).await?;
        handle.stop().await;
        let mut first = 0;
        while first < count {
            let end = count.min(first.saturating_add(IN_ONE_LIFE));
            let handle = open(data, at).await?;
            let put = put(&handle, first..end, count, &spec).await;
            handle.stop().await;
            put?;
            first = end;
        }
        Ok(secret.text().to_owned())
    })
}

async fn open(data: &Path, at: WallMs) -> Result<Handle> {
    let (writer, reader) = sqlite::open(data, sqlite::Options::default())?;
    let clock = Standing(Now {
        wall: at,
        mono: MonoMs(1_000_000),
    });
    let handle = driver::start(
        driver::Options::default(),
        Box::new(writer),
        Arc::new(reader),
        Arc::new(clock),
    )
    .map_err(|error| Failure::failed(format!("no thread: {error}")))?;
    let mut health = handle.health();
    let settled = health
        .wait_for(|health| *health != Health::Starting)
        .await
        .map(|health| health.clone());
    match settled {
        Ok(Health::Ready) => Ok(handle),
        other => Err(Failure::failed(format!(
            "the store in {} is not ready: {other:?}",
            data.display()
        ))),
    }
}

async fn put(
    handle: &Handle,
    numbers: std::ops::Range<u32>,
    count: u32,
    spec: &impl Fn(u32) -> Result<JobSpec>,
) -> Result<()> {
    let mut sent = JoinSet::new();
    for number in numbers {
        while sent.len() >= AT_ONCE {
            answered(&mut sent).await?;
        }
        if number % 1000 == 0 {
            interrupt::check()?;
            progress(|| format!("{number} of {count} jobs put"));
        }
        let command = Command::PutJob {
            spec: Box::new(spec(number)?),
            condition: Condition::Absent,
        };
        sent.spawn(send(handle.clone(), command));
    }
    while !sent.is_empty() {
        answered(&mut sent).await?;
    }
    Ok(())
}

async fn answered(sent: &mut JoinSet<Result<()>>) -> Result<()> {
    match sent.join_next().await {
        Some(Ok(answer)) => answer,
        Some(Err(error)) => Err(Failure::failed(format!("a job was not put: {error}"))),
        None => Ok(()),
    }
}

async fn send(handle: Handle, command: Command) -> Result<()> {
    match handle.command(Actor::new("bench"), command).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(refusal)) => Err(Failure::failed(format!("a job was refused: {refusal}"))),
        Err(error) => Err(Failure::failed(format!("a job was not put: {error}"))),
    }
}
