//! `drumtower backfill wait`: returns when a backfill is over and its runs have ended.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use super::{path, words};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::duration;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, Progress, text};

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(500);
/// A server that restarts is waited for this long.
const RETURN: Duration = Duration::from_secs(60);

/// Wait until a backfill is over and its runs have ended
///
/// The exit code is 0 only if it is COMPLETED and all its runs are. A server that restarts
/// meanwhile is waited for.
///
///     drumtower backfill wait bf_06d4ztbp00000
///     drumtower backfill wait bf_06d4ztbp00000 --timeout 1h
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Wait {
    /// The backfill's id
    backfill: String,
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
        let client = Client::new(&self.connect)?;
        until_over(&client, &self.backfill, self.timeout, self.output)
    }
}

/// Waits for the end of a backfill and of its runs, and prints what it came to.
pub fn until_over(
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
    output: Output,
) -> Result<()> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let backfill = over(client, id, deadline)?;
    output.one(&backfill, |_| words::standing(&backfill))?;
    let whole =
        text(&backfill, "state") == "COMPLETED" && backfill["made"] == backfill["completed"];
    match whole {
        true => Ok(()),
        false => Err(
            Failure::failed(words::standing(&backfill).trim_end().to_owned())
                .remedy(format!("drumtower run list --backfill {id}")),
        ),
    }
}

fn over(client: &Client, id: &str, deadline: Option<Instant>) -> Result<Value> {
    let mut answered = Instant::now();
    let mut progress: Option<Progress> = None;
    loop {
        match client.value(Call::get(path(id))) {
            Ok(backfill) if is_over(&backfill) => return Ok(backfill),
            Ok(backfill) => {
                answered = Instant::now();
                let (done, of) = words::progress(&backfill);
                progress
                    .get_or_insert_with(|| Progress::new("backfilling", of))
                    .at(done);
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    drop(progress);
                    let standing = words::standing(&backfill);
                    return Err(Failure::failed(format!(
                        "after the time given {}",
                        standing.trim_end()
                    )));
                }
            }
            Err(failure) if failure.exit == Exit::Unavailable && answered.elapsed() < RETURN => {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Err(failure);
                }
            }
            Err(failure) => return Err(failure),
        }
        std::thread::sleep(PAUSE);
    }
}

fn is_over(backfill: &Value) -> bool {
    let ended = matches!(text(backfill, "state").as_str(), "COMPLETED" | "CANCELLED");
    ended && backfill["active"] == 0
}
