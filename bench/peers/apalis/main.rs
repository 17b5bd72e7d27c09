//! apalis on PostgreSQL, woken by NOTIFY, and on SQLite, woken by its update hook; both also poll.
//!
//! `setup` of apalis-sqlite switches syncing off for the connection it is given. It runs in the process that prepares, on a
//! pool of its own; every other connection has SQLite's default, which syncs each commit, and that is checked.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use apalis::prelude::*;
use apalis_postgres::{PgPool, PostgresStorage};
use apalis_sqlite::{SqlitePool, SqliteStorage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

type Result<T> = std::result::Result<T, BoxDynError>;

const QUEUE: &str = "noop";
static TASK: OnceLock<Value> = OnceLock::new();
static STARTS: OnceLock<File> = OnceLock::new();

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Job {
    n: u64,
    meant: u64,
}

fn task() -> &'static Value {
    TASK.get_or_init(|| {
        let text = std::env::args().nth(1).expect("the task as JSON");
        serde_json::from_str(&text).expect("the task as JSON")
    })
}

fn number(key: &str) -> u64 {
    let task = task();
    let value = task.get(key).or_else(|| task["settings"].get(key));
    value.and_then(Value::as_u64).unwrap_or_else(|| panic!("no {key}"))
}

fn url() -> &'static str {
    task()["url"].as_str().expect("a URL")
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    since.as_micros() as u64
}

fn answer(line: Value) {
    println!("{line}");
}

/// The handler.
async fn started(job: Job) -> Result<()> {
    let at = now_us();
    let mut file = STARTS.get_or_init(|| {
        let path = task()["starts"].as_str().expect("a file for starts");
        OpenOptions::new().append(true).create(true).open(path).expect("a file for starts")
    });
    file.write_all(format!("{:9} {:16} {:16}\n", job.n, job.meant, at).as_bytes())?;
    Ok(())
}

fn sqlite_url() -> String {
    format!("sqlite:{}/jobs.db?mode=rwc", url())
}

async fn postgres_pool() -> Result<PgPool> {
    Ok(PgPool::connect(url()).await?)
}

async fn synced(pool: &SqlitePool) -> Result<()> {
    let level: i64 = sqlx::query_scalar("pragma synchronous").fetch_one(pool).await?;
    if level == 2 { Ok(()) } else { Err(format!("synchronous is {level}, not FULL").into()) }
}

fn postgres(pool: &PgPool) -> PostgresStorage<Job> {
    let config = apalis_postgres::Config::default().queue(QUEUE).batch_size(number("batch_size") as usize);
    PostgresStorage::new(pool).with_config(config)
}

fn sqlite(pool: &SqlitePool) -> SqliteStorage<Job> {
    let config = apalis_sqlite::Config::default().queue(QUEUE).batch_size(number("batch_size") as usize);
    SqliteStorage::new(pool).with_config(config)
}

/// Enqueues beforehand, in batches.
macro_rules! enqueue {
    ($storage:expr) => {{
        let mut storage = $storage;
        let (jobs, batch) = (number("jobs"), number("enqueueBatch"));
        for from in (0..jobs).step_by(batch as usize) {
            let to = jobs.min(from + batch);
            storage.push_bulk((from..to).map(|n| Job { n, meant: 0 }).collect()).await?;
        }
        answer(json!({ "prepared": jobs }));
    }};
}

/// Offers `rate` jobs a second in an open loop: what is due on a tick is one batch, eight are under way at most.
macro_rules! offer {
    ($storage:expr) => {{
        let storage = $storage;
        let (rate, total) = (number("rate"), number("rate") * number("seconds"));
        let begin = now_us() + 1_000_000;
        let room = std::sync::Arc::new(tokio::sync::Semaphore::new(8));
        let mut sent = tokio::task::JoinSet::new();
        let mut next = 0;
        while next < total {
            let meant = |n| begin + n * 1_000_000 / rate;
            if let Ok(permit) = room.clone().try_acquire_owned() {
                let now = now_us();
                let due: Vec<Job> =
                    (next..total).take_while(|n| meant(*n) <= now).map(|n| Job { n, meant: meant(n) }).collect();
                next += due.len() as u64;
                if !due.is_empty() {
                    let mut storage = storage.clone();
                    sent.spawn(async move {
                        let count = due.len() as u64;
                        let pushed = storage.push_bulk(due).await;
                        drop(permit);
                        pushed.map(|()| count).map_err(|error| eprintln!("{error}")).unwrap_or(0)
                    });
                }
            }
            tokio::time::sleep(Duration::from_millis(4)).await;
        }
        let offered: u64 = sent.join_all().await.into_iter().sum();
        answer(json!({ "offered": offered }));
    }};
}

/// Works until our input closes.
macro_rules! work {
    ($backend:expr) => {{
        let backend = $backend.poll_with_interval(Duration::from_millis(number("poll_interval_ms")));
        let worker = WorkerBuilder::new(format!("noop-{}", std::process::id()))
            .backend(backend)
            .concurrency(number("concurrency") as usize)
            .build(started);
        answer(json!({ "began_us": now_us() }));
        worker.run_until(told()).await?;
        answer(json!({ "stopped": true }));
    }};
}

async fn told() -> std::result::Result<(), std::io::Error> {
    let mut lines = BufReader::new(stdin()).lines();
    while lines.next_line().await?.is_some() {}
    Ok(())
}

/// Answers each line of our input with how many jobs are not done, by apalis' own table.
macro_rules! counting {
    ($pool:expr, $query:expr) => {{
        let pool = $pool;
        let mut lines = BufReader::new(stdin()).lines();
        while lines.next_line().await?.is_some() {
            let left: i64 = sqlx::query_scalar($query).fetch_one(&pool).await?;
            answer(json!({ "left": left, "at_us": now_us() }));
        }
    }};
}

async fn on_postgres(what: &str) -> Result<()> {
    let pool = postgres_pool().await?;
    match what {
        "prepare" => {
            PostgresStorage::setup(&pool).await?;
            enqueue!(postgres(&pool));
        }
        "offer" => offer!(postgres(&pool)),
        "work" => work!(postgres(&pool).with_pubsub()),
        _ => counting!(pool, "select count(*) from apalis.jobs where status <> 'Done'"),
    }
    Ok(())
}

async fn on_sqlite(what: &str) -> Result<()> {
    if what == "prepare" {
        let pool = SqlitePool::connect(&sqlite_url()).await?;
        SqliteStorage::setup(&pool).await?;
        pool.close().await;
    }
    let (pool, listener) = SqliteStorage::connect_with_callback(&sqlite_url())?;
    synced(&pool).await?;
    match what {
        "prepare" => enqueue!(sqlite(&pool)),
        "work" => {
            if task().get("rate").is_some() {
                let pool = pool.clone();
                tokio::spawn(async move {
                    offer!(sqlite(&pool));
                    Ok::<(), BoxDynError>(())
                });
            }
            work!(sqlite(&pool).with_callback(listener));
        }
        _ => counting!(pool, "select count(*) from Jobs where status <> 'Done'"),
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let what = task()["do"].as_str().expect("what to do");
    if url().starts_with("postgres:") { on_postgres(what).await } else { on_sqlite(what).await }
}
