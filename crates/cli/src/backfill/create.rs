//! `drumtower backfill create`: begin one, or tell what it would do.

use clap::Args;
use serde_json::{Map, Value};

use super::{wait, words};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::job::{self, Namespace};
use crate::moment::Moment;
use crate::output::{Output, text};

/// Make runs of times that have passed
///
/// Of the times that the job's schedule, as it is now, has from --from up to --to, itself not
/// included: those without a run unless --which says otherwise. The live schedule goes on as
/// if there were no backfill; with --obey-overlap its runs and those of the schedule count
/// together. Prints the id of the backfill.
///
///     drumtower backfill create report --from -7d --to now --dry-run
///     drumtower backfill create report --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z
///     drumtower backfill create report --from -1d --to now --which failed --max-active 4 --wait
///     drumtower backfill create report --from -1d --to now --which all --order newest_first
///     drumtower backfill create report --from -1d --to now --obey-overlap
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Create {
    /// The job's name
    name: String,
    /// The first instant: RFC 3339, or a duration such as `-7d` from now
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    from: Moment,
    /// The end, written likewise, or `now`; itself not included
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    to: Moment,
    /// Which times make runs: those without a run, those whose newest run failed, or all
    #[arg(long, default_value = "missing", value_parser = ["missing", "failed", "all"])]
    which: String,
    /// In which order
    #[arg(long, default_value = "oldest_first", value_parser = ["oldest_first", "newest_first"])]
    order: String,
    /// How many of its runs may be under way at once
    #[arg(long, default_value_t = 1, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..=100))]
    max_active: u32,
    /// The priority of its runs; jobs have 5 unless they say otherwise
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=9))]
    priority: u32,
    /// Parameters instead of the job's own, as JSON
    #[arg(short, long, value_name = "JSON")]
    params: Option<String>,
    /// Count its runs for the job's `overlap`: while as many are under way as may be, it waits
    /// before it makes the next
    #[arg(long)]
    obey_overlap: bool,
    /// Make runs also while the job's circuit breaker is open, instead of waiting
    #[arg(long)]
    force: bool,
    /// An idempotency key: the same key gives the same backfill for 24 hours
    #[arg(short, long, conflicts_with = "dry_run")]
    key: Option<String>,
    /// Only tell what it would do
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Wait until it is over; the exit code is 0 only if all its runs are COMPLETED
    #[arg(short, long)]
    wait: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Create {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let address = job::path(&self.namespace.namespace, &self.name);
        let body = self.body()?;
        if self.dry_run {
            let call = Call::post(format!("{address}/backfills:preview"));
            let preview = client.value(call.json(body))?;
            return self.output.one(&preview, |_| words::foreseen(&preview));
        }
        let mut call = Call::post(format!("{address}/backfills")).json(body);
        if let Some(key) = &self.key {
            call = call.header("idempotency-key", key);
        }
        let backfill = client.value(call)?;
        let id = text(&backfill, "id");
        if self.wait {
            return wait::until_over(&client, &id, None, self.output);
        }
        self.output.one(&backfill, |_| format!("{id}\n"))
    }

    fn body(&self) -> Result<Value> {
        let mut body = Map::new();
        let given = [
            ("from", Value::from(self.from.instant().to_string())),
            ("to", Value::from(self.to.instant().to_string())),
            ("which", Value::from(self.which.as_str())),
            ("order", Value::from(self.order.as_str())),
            ("max_active", Value::from(self.max_active)),
            ("priority", Value::from(self.priority)),
        ];
        for (key, value) in given {
            body.insert(key.to_owned(), value);
        }
        if self.obey_overlap {
            body.insert("overlap".to_owned(), Value::from("obey"));
        }
        if self.force {
            body.insert("force".to_owned(), Value::from(true));
        }
        if let Some(params) = &self.params {
            body.insert("params".to_owned(), crate::params::parse(params)?);
        }
        Ok(Value::Object(body))
    }
}
