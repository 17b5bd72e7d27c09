//! `drumtower job trigger`: one run, now or later.

use clap::Args;
use serde_json::{Map, Value};

use super::{Namespace, path};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{Output, text};
use crate::run::wait;

/// Run a job now, or once at a later time
///
/// Prints the id of the run. With --key a repetition of the command within 24 hours gives the
/// same run, not another.
///
///     drumtower job trigger hello
///     drumtower job trigger report --params '{"month": "2026-01"}' --wait
///     drumtower job trigger charge --key order-7
///     drumtower job trigger remind --delay 30m
///     drumtower job trigger remind --at 2026-12-24T18:00:00+01:00
///     drumtower job trigger import --params '{"customer": 7}' --obey-overlap
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Trigger {
    /// The job's name
    name: String,
    /// Parameters instead of the job's own, as JSON
    #[arg(short, long, value_name = "JSON")]
    params: Option<String>,
    /// An idempotency key: the same key gives the same run for 24 hours
    #[arg(short, long)]
    key: Option<String>,
    /// Start it this long from now, such as `90s` or `1h30m`
    #[arg(short, long, conflicts_with = "at")]
    delay: Option<String>,
    /// Start it at this instant, in RFC 3339
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    /// Count it for the job's `overlap`: it waits or is refused when the job is full
    #[arg(long)]
    obey_overlap: bool,
    /// Run it even if the job's circuit breaker is open
    #[arg(long)]
    force: bool,
    /// Wait for the run to end; the exit code is 0 only if it is COMPLETED
    #[arg(short, long)]
    wait: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Trigger {
    pub fn run(self) -> Result<()> {
        let mut call = Call::post(format!(
            "{}/runs",
            path(&self.namespace.namespace, &self.name)
        ));
        let mut body = Map::new();
        if let Some(params) = &self.params {
            let params = crate::params::parse(params)?;
            body.insert("params".to_owned(), params);
        }
        for (key, given) in [("delay", &self.delay), ("at", &self.at)] {
            if let Some(given) = given {
                body.insert(key.to_owned(), Value::from(given.as_str()));
            }
        }
        if self.obey_overlap {
            body.insert("overlap".to_owned(), Value::from("obey"));
        }
        if self.force {
            body.insert("force".to_owned(), Value::from(true));
        }
        if !body.is_empty() {
            call = call.json(Value::Object(body));
        }
        if let Some(key) = &self.key {
            call = call.header("idempotency-key", key);
        }
        let client = Client::new(&self.connect)?;
        let run = client.value(call)?;
        let id = text(&run, "id");
        if self.wait {
            return wait::until_end(&client, &id, None, self.output);
        }
        self.output.one(&run, |_| format!("{id}\n"))
    }
}
