//! `drumtower run wait`: returns when a run has ended.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use super::{path, took};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::duration;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, text};

/// How long the first question to the server may hang: then people are told what a run waits for.
const FIRST_ASK: Duration = Duration::from_secs(2);
/// How long those after it may.
const ASK: Duration = Duration::from_secs(30);
/// A server that restarts is waited for this long.
const RETURN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

/// Wait until a run has ended
///
/// The exit code is 0 only if the run is COMPLETED. A server that restarts meanwhile is
/// waited for.
///
///     drumtower run wait run_06d4ztbp00000
///     drumtower run wait run_06d4ztbp00000 --timeout 10m && echo done
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Wait {
    /// The run's id
    run: String,
    /// Give up after this long, such as 30s or 1h30m
    #[arg(short, long, value_parser = duration::parse, value_name = "DURATION")]
    timeout: Option<Duration>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Wait {
    pub fn run(self) -> Result<()> {
        until_end(
            &Client::new(&self.connect)?,
            &self.run,
            self.timeout,
            self.output,
        )
    }
}

/// Waits for the end of a run and prints how it ended.
pub fn until_end(
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
    output: Output,
) -> Result<()> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let run = ended(client, id, deadline)?;
    output.one(&run, |_| summary(&run))?;
    match text(&run, "state").as_str() {
        "COMPLETED" => Ok(()),
        state => {
            let cause = text(&run, "error");
            let cause = if cause.is_empty() {
                String::new()
            } else {
                format!(": {cause}")
            };
            Err(Failure::failed(format!("{id} is {state}{cause}"))
                .remedy(format!("drumtower run logs {id}")))
        }
    }
}

fn ended(client: &Client, id: &str, deadline: Option<Instant>) -> Result<Value> {
    let mut answered = Instant::now();
    let mut told: Option<String> = None;
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let longest = if told.is_none() { FIRST_ASK } else { ASK };
        let ask = left.map_or(longest, |left| left.min(longest));
        let call = Call::get(format!("{}/wait", path(id)))
            .query("timeout", format!("{}ms", ask.as_millis()));
        match client.value(call) {
            Ok(run)
                if matches!(
                    text(&run, "state").as_str(),
                    "COMPLETED" | "FAILED" | "CANCELLED"
                ) =>
            {
                return Ok(run);
            }
            Ok(run) if left.is_some_and(|left| left <= ask) => {
                let waiting = match text(&run, "waiting") {
                    none if none.is_empty() => none,
                    waiting => format!(": {waiting}"),
                };
                return Err(Failure::failed(format!(
                    "{id} is still {} after the time given{waiting}",
                    text(&run, "state")
                )));
            }
            Ok(run) => {
                answered = Instant::now();
                let waiting = text(&run, "waiting");
                if !waiting.is_empty() && told.as_ref() != Some(&waiting) {
                    crate::output::say(&format!("{id} waits: {waiting}"));
                }
                told = Some(waiting);
            }
            Err(failure) if failure.exit == Exit::Unavailable && answered.elapsed() < RETURN => {
                let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if over {
                    return Err(failure);
                }
                std::thread::sleep(PAUSE);
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn summary(run: &Value) -> String {
    let last = run
        .get("attempts")
        .and_then(Value::as_array)
        .and_then(|attempts| attempts.last());
    let took = last
        .map(|attempt| took(attempt, "end.duration_ms"))
        .filter(|took| !took.is_empty());
    let took = took.map_or_else(String::new, |took| format!(" in {took}"));
    format!("{} {}{took}\n", text(run, "id"), text(run, "state"))
}
